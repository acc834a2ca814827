"""The mistakes in `layer_norm` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.transformer.layer_norm_mistakes import formula, gain_bias_and_axes

__all__ = ["mistake"]

mistake = Mistakes(formula, gain_bias_and_axes)
