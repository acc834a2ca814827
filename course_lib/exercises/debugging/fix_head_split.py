"""Exercise `fix_head_split`: metadata, stub and cases."""

from __future__ import annotations

from course_lib.exercises._exercise import Case, Exercise
from course_lib.exercises._files import beside

__all__ = ["exercise", "fix_head_split"]


def fix_head_split(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2)  # (..., H, L, d_head)


exercise = Exercise(
    **beside(__file__),
    name="fix_head_split",
    chapter="debugging",
    repair=True,
    difficulty=1,
    minutes=5,
    stub='''\
def fix_head_split(x, num_heads):
    """(..., L, d_model) to (..., num_heads, L, d_head), contiguous slices of features."""
    raise NotImplementedError  # delete this line once you have decided
    *batch, length, d_model = x.shape
    return x.reshape(*batch, num_heads, length, d_model // num_heads)
''',
    reference=fix_head_split,
    shapes={"x": "... length d_model"},
    look="debugging: Shapes made of different primes",
)


@exercise.holds("The result is right")
def _(draw):
    for batch in draw.batches():
        length, num_heads, d_head = draw.sizes(3, 2, 7, but=batch)
        yield Case(args=(draw.normal(*batch, length, num_heads * d_head), num_heads))
