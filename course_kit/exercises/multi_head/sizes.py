"""Sizes that the cases of several exercises of this chapter share."""

from __future__ import annotations

from itertools import combinations

__all__ = ["HEADS_AND_WIDTHS", "merged_by_chance"]

# (num_heads, d_head): both orders, so that neither of them can stand for the other.
HEADS_AND_WIDTHS = ((2, 3), (3, 2), (2, 4), (4, 2))


def merged_by_chance(*lengths: int) -> bool:
    """Whether two axes that are merged by mistake have the length of a third, whose name a report would then give."""
    return any(a * b in lengths for a, b in combinations(lengths, 2) if min(a, b) > 1)
