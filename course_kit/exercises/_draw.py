"""Random material for cases. One seed, one sequence of draws: the same cases on every machine."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["Draw"]


class Draw:
    """Draws tensors and sizes from a generator of its own; the global random state is not touched.

    Args:
        seed: any integer.
    """

    def __init__(self, seed: int):
        self.generator = torch.Generator().manual_seed(seed % 2**63)

    def integer(self, low: int, high: int) -> int:
        """An integer with low ≤ n ≤ high."""
        return int(torch.randint(low, high + 1, (), generator=self.generator))

    def sizes(self, count: int, low: int = 2, high: int = 7, *, but: tuple[int, ...] = ()) -> list[int]:
        """`count` different sizes between low and high, none of `but`."""
        free = [n for n in range(low, high + 1) if n not in but]
        if count > len(free):
            raise ValueError(f"{count} different sizes do not exist between {low} and {high} without {but}")
        return [free[i] for i in torch.randperm(len(free), generator=self.generator)[:count].tolist()]

    def batches(self, *, but: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
        """No, one and two batch dimensions, of sizes that differ from `but` and from each other."""
        one, two = self.sizes(2, 2, 9, but=but)
        return [(), (one,), (two, one)]

    def choice(self, options: tuple | list):
        """One of the options."""
        return options[self.integer(0, len(options) - 1)]

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> Tensor:
        """Normal numbers; both signs, where there are two numbers or more."""
        x = torch.randn(shape, generator=self.generator, dtype=torch.float64)
        flat = x.view(-1)
        if flat.numel() > 1 and bool((flat > 0).all() | (flat < 0).all()):
            flat[0] = -flat[0]
        return (x * scale).to(dtype)

    def weights(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Attention weights: all positive, and each row sums to one."""
        return self.normal(*shape, dtype=dtype, scale=1.5).softmax(-1)

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0, dtype: torch.dtype = torch.float32) -> Tensor:
        """Numbers between low and high."""
        return (low + (high - low) * torch.rand(*shape, generator=self.generator, dtype=torch.float64)).to(dtype)

    def integers(self, *shape: int, low: int, high: int) -> Tensor:
        """Integers with low ≤ n ≤ high, int64."""
        return torch.randint(low, high + 1, shape, generator=self.generator)

    def mask(self, *shape: int, share: float = 0.6) -> Tensor:
        """A bool mask in which every row (last axis) has a True, and a False where it is longer than one."""
        mask = torch.rand(*shape, generator=self.generator) < share
        rows = mask.view(-1, shape[-1])
        for row in rows:
            place = self.integer(0, shape[-1] - 1)
            if not row.any():
                row[place] = True
            if row.all() and len(row) > 1:
                row[place] = False
        return mask
