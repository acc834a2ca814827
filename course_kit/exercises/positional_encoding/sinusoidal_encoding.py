"""Exercise `sinusoidal_encoding`: metadata, stub and cases."""

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.positional_encoding import sinusoidal_encoding

__all__ = ["exercise", "sinusoidal_encoding"]


exercise = Exercise(
    **texts_next_to(__file__),
    forbidden=(
        "transformers.create_sinusoidal_embeddings",
        "transformers.create_weight",
        "transformers.get_sinusoidal_embedding",
    ),
    difficulty=2,
    minutes=15,
    stub='''\
def sinusoidal_encoding(length, d_model):
    """(length, d_model): sine and cosine of each position, in turns."""
    raise NotImplementedError
''',
    reference=sinusoidal_encoding,
    returns=("encoding",),
    read_next="positional_encoding: Sinusoidal positional encoding: sines and cosines",
    differentiable=False,
)


@exercise.holds(
    "Column 2i is the sine of pos / 10000^(2i / d_model), column 2i + 1 is the cosine of the same angle", weight=3
)
def _(draw):
    yield Case(args=(2, 2), note="two positions, one pair: (0, 1) and sine and cosine of 1")
    for d_model in (4, 6, 8):
        (length,) = draw.sizes(1, 3, 9, but=(d_model,))
        yield Case(args=(length, d_model))
    yield Case(args=(5, 10), note="the table of the chapter")
    yield Case(args=(7, 16))
    yield Case(args=(3, 514), note="a wide model")


@exercise.holds("An odd d_model works, and the last column is a sine")
def _(draw):
    for d_model in (3, 5, 7):
        (length,) = draw.sizes(1, 3, 9, but=(d_model,))
        yield Case(args=(length, d_model), note="odd d_model")
    yield Case(args=(4, 1), note="a single column")
    yield Case(args=(2, 515), note="a wide model of odd d_model")


@exercise.holds("There is one row for each position from 0, for any length")
def _(draw):
    yield Case(args=(1, 6), note="position 0 alone")
    yield Case(args=(1100, 2), note="1,100 positions", tolerance=15)
    yield Case(args=(5003, 4), note="more than 5,000 positions", tolerance=50)
