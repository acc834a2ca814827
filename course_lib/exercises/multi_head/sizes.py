"""Sizes that the cases of several exercises of this chapter share."""

from __future__ import annotations

__all__ = ["HEADS_AND_WIDTHS"]

# (num_heads, d_head): both orders, so that neither of them can stand for the other.
HEADS_AND_WIDTHS = ((2, 3), (3, 2), (2, 4), (4, 2))
