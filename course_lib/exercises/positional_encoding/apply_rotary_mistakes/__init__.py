"""The mistakes in `apply_rotary` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.positional_encoding.apply_rotary_mistakes import (
    angles,
    axes_and_dtypes,
    partners,
    positions,
    turns,
)

__all__ = ["mistake"]

mistake = Mistakes(partners, turns, angles, positions, axes_and_dtypes)
