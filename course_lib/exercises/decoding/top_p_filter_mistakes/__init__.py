"""The mistakes in `top_p_filter` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.top_p_filter_mistakes import parts_exchanged, set, values

__all__ = ["mistake"]

mistake = Mistakes(set, values, parts_exchanged)
