"""Sizes and masks, as the cases of both layers have them."""

from __future__ import annotations

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises.multi_head.sizes import merged_by_chance

__all__ = ["causal", "layer_sizes"]


def layer_sizes(draw: Draw, count: int):
    """d_model and num_heads, then other sizes that differ from both and from the width of a head."""
    num_heads, d_head = draw.sizes(2, 2, 4)
    d_model = num_heads * d_head
    others = draw.sizes(count, 2, 9, but=(num_heads, d_head, d_model))
    while merged_by_chance(*others, num_heads, d_head) or merged_by_chance(*others, num_heads, d_model):
        others = draw.sizes(count, 2, 9, but=(num_heads, d_head, d_model))
    return d_model, num_heads, *others


def causal(length: int):
    return torch.ones(length, length, dtype=torch.bool).tril()
