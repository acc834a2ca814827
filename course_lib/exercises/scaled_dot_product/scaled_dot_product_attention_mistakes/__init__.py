"""The mistakes in `scaled_dot_product_attention` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.scaled_dot_product.scaled_dot_product_attention_mistakes import (
    inherited,
    masks,
    order_of_steps,
    scale_and_mask,
    scores,
    shapes_of_masks,
    weights_and_output,
)

__all__ = ["mistake"]

mistake = Mistakes(scale_and_mask, scores, weights_and_output, masks, shapes_of_masks, order_of_steps, inherited)
