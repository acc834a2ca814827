"""Exercise `alibi_bias`: metadata, stub and cases."""

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.positional_encoding import alibi_bias

__all__ = ["alibi_bias", "exercise"]


exercise = Exercise(
    **texts_next_to(__file__),
    forbidden=("transformers.build_alibi_tensor", "transformers.build_mpt_alibi_tensor"),
    difficulty=2,
    minutes=10,
    stub='''\
def alibi_bias(num_heads, length):
    """(H, L, L), float32: -slope_h * |i - j| with slope_h = 2^(-8 (h + 1) / H)."""
    raise NotImplementedError
''',
    reference=alibi_bias,
    returns=("bias",),
    read_next="relative_positions: ALiBi: a penalty on distance",
    differentiable=False,
)


@exercise.holds(
    "With 8 heads the slopes are 1/2, 1/4, …, 1/256, and the score falls with the distance |i − j|", weight=2
)
def _(draw):
    for length in (2, *draw.sizes(2, 3, 7)):
        yield Case(args=(8, length), note="8 heads")


@exercise.holds("With any other power of two the slopes are 2^(−8 (h + 1) / H)", weight=2)
def _(draw):
    for num_heads in (2, 4, 16):
        (length,) = draw.sizes(1, 3, 9, but=(num_heads,))
        yield Case(args=(num_heads, length), note=f"{num_heads} heads")
    yield Case(args=(1, 3), note="one head: slope 1/256")
    yield Case(args=(64, 3), note="64 heads")
    yield Case(args=(4, 1), note="one position")


@exercise.holds("The bias keeps falling in proportion to the distance, however far the key is")
def _(draw):
    yield Case(args=(2, 40), note="40 positions")
    yield Case(args=(4, 30), note="30 positions")
    yield Case(args=(1, 300), note="300 positions")
