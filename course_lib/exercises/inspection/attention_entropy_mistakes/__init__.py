"""The mistakes in `attention_entropy` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.inspection.attention_entropy_mistakes import logarithms, other_measures, sums

__all__ = ["mistake"]

mistake = Mistakes(logarithms, sums, other_measures)
