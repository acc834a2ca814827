"""The mistakes in `previous_token_score` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.inspection.previous_token_score_mistakes import measures_and_averages, other_weights

__all__ = ["mistake"]

mistake = Mistakes(other_weights, measures_and_averages)
