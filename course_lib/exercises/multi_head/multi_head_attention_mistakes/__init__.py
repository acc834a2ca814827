"""The mistakes in `MultiHeadAttention` by theme, in the order in which they are tried."""

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.multi_head.multi_head_attention_mistakes import (
    checks_and_extras,
    constructor,
    heads,
    inherited,
    masks,
    projections,
    results,
    scale_and_softmax,
    shapes_of_masks,
    two_at_once,
)

__all__ = ["mistake"]

mistake = Mistakes(
    heads,
    scale_and_softmax,
    projections,
    masks,
    results,
    constructor,
    two_at_once,
    shapes_of_masks,
    checks_and_extras,
    inherited,
)
