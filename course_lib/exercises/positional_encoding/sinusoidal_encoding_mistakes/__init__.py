"""The mistakes in `sinusoidal_encoding` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.positional_encoding.sinusoidal_encoding_mistakes import (
    columns,
    exponents,
    odd_widths,
    positions_and_results,
)

__all__ = ["mistake"]

mistake = Mistakes(columns, exponents, positions_and_results, odd_widths)
