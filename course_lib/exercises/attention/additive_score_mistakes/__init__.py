"""The mistakes in `additive_score` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.additive_score_mistakes import axes_and_pairs, other_scores, tanh_and_v

__all__ = ["mistake"]

mistake = Mistakes(tanh_and_v, axes_and_pairs, other_scores)
