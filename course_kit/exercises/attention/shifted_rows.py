"""Scores that are far apart, as the cases of two exercises have them."""

from __future__ import annotations

import torch

from course_kit.exercises._draw import Draw

__all__ = ["shifted_rows"]


def shifted_rows(draw: Draw, length: int, dtype=torch.float32):
    """Three rows of common scores, raised by 1e4, lowered by 1e4, and as they are."""
    return draw.normal(3, length, dtype=dtype) + torch.tensor([[1e4], [-1e4], [0.0]], dtype=dtype)
