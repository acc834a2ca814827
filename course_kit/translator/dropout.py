"""`ByteDropout`: dropout for training on a CPU, in less time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

__all__ = ["ByteDropout"]


class ByteDropout(nn.Dropout):
    """Dropout from one random byte per entry: what `nn.Dropout` does, with p rounded to a 256th, in less time on a CPU.

    There, drawing 32 bits for each entry is a large part of a small model's training step;
    benchmarks/training_step.py measures how large. On other devices, where not training, and where p is rounded to none
    or all, it is `nn.Dropout`.
    """

    def forward(self, x: Tensor) -> Tensor:
        """`(...)` to `(...)`: each entry 0 with probability p, else divided by 1 − p."""
        dropped = round(self.p * 256)
        if not self.training or dropped in (0, 256) or x.device.type != "cpu":
            return super().forward(x)
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)  # eight bytes each
        kept = words.view(torch.uint8)[: x.numel()].view(x.shape) >= dropped
        return x * kept * (256 / (256 - dropped))

    @classmethod
    @contextmanager
    def inside(cls, model: nn.Module) -> Iterator[None]:
        """Put it in the place of every `nn.Dropout` of a model; afterwards the model has its own modules again.

        Parameters and their names stay as they are.
        """
        places = [
            (module, name, child)
            for module in model.modules()
            for name, child in module.named_children()
            if type(child) is nn.Dropout
        ]
        for module, name, child in places:
            setattr(module, name, cls(child.p).train(child.training))
        try:
            yield
        finally:
            for module, name, child in places:
                setattr(module, name, child)
