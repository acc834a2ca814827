"""The mistakes in `teacher_forcing_pair` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.training.teacher_forcing_pair_mistakes import shifts, slices

__all__ = ["mistake"]

mistake = Mistakes(shifts, slices)
