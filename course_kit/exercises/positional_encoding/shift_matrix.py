"""Exercise `shift_matrix`: metadata, stub and cases."""

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.positional_encoding import shift_matrix

__all__ = ["exercise", "shift_matrix"]


exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=3,
    minutes=20,
    stub='''\
def shift_matrix(offset, d_model):
    """(d_model, d_model): shift_matrix(k, d) @ pe[p] = pe[p + k] for every p."""
    raise NotImplementedError
''',
    reference=shift_matrix,
    returns=("matrix",),
    read_next="shift_is_a_rotation: A shift is a rotation: the matrix",
    differentiable=False,
)


@exercise.holds("It maps the code of every position p to the code of p + offset", weight=3)
def _(draw):
    yield Case(args=(1, 2), note="one pair, one step: cosine and sine of 1 in the first row")
    for d_model in (4, 6, 8):
        yield Case(args=(draw.choice([n for n in (2, 3, 5, 7) if n != d_model]), d_model))
    yield Case(args=(9, 10))
    yield Case(args=(3, 66), note="a wide model")


@exercise.holds("A negative offset goes back, and an offset of 0 changes nothing")
def _(draw):
    for d_model in (2, 4, 6):
        yield Case(args=(-draw.choice((1, 3, 5)), d_model), note="a negative offset")
    yield Case(args=(0, 8), note="no offset")


@exercise.holds("Far shifts are right, too")
def _(draw):
    yield Case(args=(100, 6), note="100 positions", tolerance=5)
    yield Case(args=(5003, 4), note="5,003 positions", tolerance=50)
    yield Case(args=(-5003, 8), note="5,003 positions back", tolerance=50)
