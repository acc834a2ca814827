"""Sentences of similar length side by side: cut into slices, and padded."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from course_lib._typing import Int

__all__ = ["padded", "slices"]


def slices(order: list[int], length: Callable[[int], int], max_tokens: int) -> Iterator[list[int]]:
    """Neighbours in an order, as many as fit when padded to the longest; one at least."""
    slice_, longest = [], 0
    for i in order:
        longest = max(longest, length(i))
        if slice_ and longest * (len(slice_) + 1) > max_tokens:
            yield slice_
            slice_, longest = [], length(i)
        slice_.append(i)
    if slice_:
        yield slice_


def padded(rows: list[list[int]], pad_id: int, device: torch.device) -> Int[Tensor, "batch length"]:
    """Rows of ids as one tensor, padded to the longest."""
    tensors = [torch.tensor(row) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=pad_id).to(device)
