"""Exercise `multi_head_parameter_count`: metadata, stub and cases."""

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises.multi_head.sizes import HEADS_AND_WIDTHS
from course_lib.multi_head import multi_head_parameter_count

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=1,
    minutes=5,
    stub='''\
def multi_head_parameter_count(d_model, num_heads, bias=True):
    """Number of parameters of MultiHeadAttention(d_model, num_heads)."""
    raise NotImplementedError
''',
    reference=multi_head_parameter_count,
    returns=("parameters",),
    read_next="cost_of_heads: Counting the parameters",
    differentiable=False,
)


@exercise.holds("Four matrices with their biases are counted, however many heads share them", weight=2)
def _(draw):
    yield Case(args=(2, 1), note="two features, one head", degenerate_because="the smallest case, to be read by eye")
    for pair in (*HEADS_AND_WIDTHS, (3, 5), (8, 64)):
        yield Case(args=(pair[0] * pair[1], pair[0]))
    for num_heads in (1, 12):
        yield Case(
            args=(12, num_heads),
            note=f"{num_heads} heads for 12 features",
            degenerate_because="an extreme number of heads",
        )


@exercise.holds("Without biases only the matrices are counted")
def _(draw):
    for pair in HEADS_AND_WIDTHS:
        yield Case(args=(pair[0] * pair[1], pair[0], False), note="bias=False")
    yield Case(args=(12, 3, True), note="bias=True, said aloud")


@exercise.holds("It is an exact int, for wide models too")
def _(draw):
    yield Case(args=(300_000_009, 3), note="300 million features")
    yield Case(args=(200_000_006, 2, False), note="200 million features, no bias")
