"""The mistakes in `softmax` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.softmax_mistakes import extremes, other_functions, shifts_and_axes

__all__ = ["mistake"]

mistake = Mistakes(shifts_and_axes, extremes, other_functions)
