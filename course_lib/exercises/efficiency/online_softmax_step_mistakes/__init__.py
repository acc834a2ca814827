"""The mistakes in `online_softmax_step` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.online_softmax_step_mistakes import maxima, rescaling, results, sums

__all__ = ["mistake"]

mistake = Mistakes(rescaling, maxima, sums, results)
