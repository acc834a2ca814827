"""The mistakes in `speculative_acceptance` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.speculative_acceptance_mistakes import accept, residual, results

__all__ = ["mistake"]

mistake = Mistakes(accept, residual, results)
