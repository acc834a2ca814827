"""Copies that lie in memory as the original does, because `view` works or fails accordingly."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

__all__ = ["copied", "laid_out"]


def copied(tensor: Tensor) -> Tensor:
    """A copy with the gaps that the original has in memory. One without gaps, or whose numbers share memory, is
    cloned."""
    return laid_out(tensor, tensor.stride(), tensor.storage_offset()) if _has_gaps(tensor) else tensor.clone()


def laid_out(tensor: Tensor, strides: Sequence[int], offset: int) -> Tensor:
    """A copy with these strides and this offset in memory; zeros fill the gaps."""
    last = offset + sum((length - 1) * step for length, step in zip(tensor.shape, strides, strict=True))
    return tensor.new_zeros(last + 1).as_strided(tensor.shape, strides, offset).copy_(tensor)


def _has_gaps(tensor: Tensor) -> bool:
    reach = 0  # from the first number to the last one
    for step, length in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if length > 1 and step <= reach:
            return False  # two indices may lead to one place
        reach += (length - 1) * step
    return 0 < tensor.numel() <= reach
