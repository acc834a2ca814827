"""Token ids with padding, as the cases of two exercises have them."""

from __future__ import annotations

import torch

from course_kit.exercises._draw import Draw

__all__ = ["padded_tokens"]


def padded_tokens(draw: Draw, pad_id: int, where: str = "end"):
    """Token ids `(B, L)` on both sides of pad_id, 0 among them; all but the first sequence padded."""
    rows, length = draw.sizes(2, 3, 7)
    tokens = draw.integers(rows, length, low=0, high=9)
    tokens += tokens >= pad_id  # none of them is pad_id
    real = torch.tensor([n for n in (0, pad_id + 3, 1) if n != pad_id])
    tokens[0, : len(real)] = real
    for row in tokens[1:]:
        pads = draw.integer(1, length - 2)
        start = {"end": length - pads, "start": 0, "middle": 1}[where]
        row[start : start + pads] = pad_id
    return tokens
