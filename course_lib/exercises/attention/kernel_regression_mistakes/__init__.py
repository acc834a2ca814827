"""The mistakes in `kernel_regression` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.kernel_regression_mistakes import (
    far_from_every_key,
    kernel,
    pairs_and_results,
    weights,
)

__all__ = ["mistake"]

mistake = Mistakes(far_from_every_key, kernel, weights, pairs_and_results)
