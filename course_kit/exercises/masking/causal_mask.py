"""Exercise `causal_mask`: metadata, stub and cases."""

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.masking import causal_mask

exercise = Exercise(
    **texts_next_to(__file__),
    forbidden=("torch.nn.generate_square_subsequent_mask", "torch.nn._generate_square_subsequent_mask"),
    difficulty=1,
    minutes=5,
    stub='''\
def causal_mask(length):
    """Bool (L, L): True where key <= query."""
    raise NotImplementedError
''',
    reference=causal_mask,
    returns=("mask",),
    read_next="masking: Causal mask",
    differentiable=False,
)


@exercise.holds("A query may attend to itself and to earlier positions, but to no later ones", weight=2)
def _(draw):
    yield Case(args=(3,), degenerate_because="a small case, to be read by eye")
    for length in draw.sizes(2, 4, 9):
        yield Case(args=(length,), note=f"length {length}")


@exercise.holds("It works for every length")
def _(draw):
    yield Case(args=(1,), note="one token, which sees itself")
    yield Case(args=(2,), note="two tokens")
    yield Case(args=(37,), note="37 tokens")
    yield Case(args=(300,), note="300 tokens")
