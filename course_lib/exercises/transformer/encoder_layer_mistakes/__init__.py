"""The mistakes in `EncoderLayer` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.transformer.encoder_layer_mistakes import (
    masks,
    order_of_steps,
    residuals_and_parts,
    two_at_once,
)

__all__ = ["mistake"]

mistake = Mistakes(residuals_and_parts, masks, two_at_once, order_of_steps)
