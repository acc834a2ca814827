"""The mistakes in `linear_attention` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.linear_attention_mistakes import feature_maps, past, results, weights

__all__ = ["mistake"]

mistake = Mistakes(feature_maps, past, weights, results)
