"""Sizes and masks, as the cases of both layers have them."""

from __future__ import annotations

import torch

from course_lib.exercises._draw import Draw

__all__ = ["causal", "layer_sizes"]


def layer_sizes(draw: Draw, count: int):
    """d_model and num_heads, then other sizes that differ from both and from the width of a head."""
    num_heads, d_head = draw.sizes(2, 2, 4)
    return num_heads * d_head, num_heads, *draw.sizes(count, 2, 9, but=(num_heads, d_head, num_heads * d_head))


def causal(length: int):
    return torch.ones(length, length, dtype=torch.bool).tril()
