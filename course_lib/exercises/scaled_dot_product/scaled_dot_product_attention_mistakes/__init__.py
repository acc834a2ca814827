"""The mistakes in `scaled_dot_product_attention` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.scaled_dot_product.scaled_dot_product_attention_mistakes import (
    inherited,
    masks,
    order_of_steps,
    scores,
    shapes_of_masks,
    usual,
    weights_and_output,
)

__all__ = ["mistake"]

mistake = Mistakes(usual, scores, weights_and_output, masks, shapes_of_masks, order_of_steps, inherited)
