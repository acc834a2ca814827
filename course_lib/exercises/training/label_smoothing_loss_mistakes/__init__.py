"""The mistakes in `label_smoothing_loss` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.training.label_smoothing_loss_mistakes import (
    formulas,
    limits_and_two_at_once,
    logarithms,
    mass,
    padding_and_mean,
    parts_exchanged,
)

__all__ = ["mistake"]

mistake = Mistakes(padding_and_mean, mass, logarithms, formulas, parts_exchanged, limits_and_two_at_once)
