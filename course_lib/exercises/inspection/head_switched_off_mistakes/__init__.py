"""The mistakes in `head_switched_off` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.inspection.head_switched_off_mistakes import merging_and_projection, what_for_it, which_head

__all__ = ["mistake"]

mistake = Mistakes(which_head, what_for_it, merging_and_projection)
