"""The mistakes in `masked_softmax` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.masking.masked_softmax_mistakes import (
    axes,
    dtypes_and_results,
    numbers_filled_in,
    rows_without_a_key,
    weights_masked,
)

__all__ = ["mistake"]

mistake = Mistakes(rows_without_a_key, numbers_filled_in, axes, weights_masked, dtypes_and_results)
