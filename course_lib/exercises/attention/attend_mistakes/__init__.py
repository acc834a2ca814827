"""The mistakes in `attend` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.attend_mistakes import average, axes_of_the_softmax, softmax_parts, what_comes_back

__all__ = ["mistake"]

mistake = Mistakes(axes_of_the_softmax, softmax_parts, average, what_comes_back)
