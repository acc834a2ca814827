"""Exercise `transformer_parameter_count`: metadata, stub and cases."""

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.transformer import transformer_parameter_count

COUNTING = "transformer_parameters: Counting parameters"


exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=10,
    stub='''\
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    """Parameters of an encoder-decoder with one shared embedding."""
    raise NotImplementedError
''',
    reference=transformer_parameter_count,
    returns=("parameters",),
    read_next=COUNTING,
    differentiable=False,
)


@exercise.holds("Every matrix, bias, gain and embedding is counted once", weight=3)
def _(draw):
    yield Case(args=(3, 2, 1, 5), note="one layer of each kind; 6 parameters are the embedding")
    for _ in range(4):
        yield Case(args=tuple(draw.sizes(4, 2, 40)))


@exercise.holds("It is an exact int, for large models too")
def _(draw):
    yield Case(args=(37000, 512, 6, 2048), note="the base model of the paper")
    yield Case(args=(37000, 1024, 6, 4096), note="the big model of the paper")
    yield Case(args=(999_999_937, 16_777_259, 3, 33_554_467), note="more parameters than a float counts exactly")
