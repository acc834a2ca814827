"""The mistakes in `warmup_rate` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.training.warmup_rate_mistakes import powers_and_rounding, terms_and_exponents, width_and_steps

__all__ = ["mistake"]

mistake = Mistakes(terms_and_exponents, width_and_steps, powers_and_rounding)
