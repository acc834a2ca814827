"""What computes the next token's logits in `search`: with a cache, or all positions anew."""

from __future__ import annotations

import torch
from torch import Tensor

from course_kit.nn import Transformer

__all__ = ["Cached", "Uncached", "of_parents"]


class _Steps:
    def __init__(self, model: Transformer):
        self.model = model
        self.pad_id = model.config.pad_id
        self.dtype = torch.promote_types(model.output.weight.dtype, torch.float32)


class Uncached(_Steps):
    """All positions recomputed at each step, by `Transformer.decode`."""

    def __init__(self, model: Transformer, source: Tensor):
        super().__init__(model)
        self.source, self.memory = source, model.encode(source)
        self.written: Tensor | None = None  # (R, W, n)

    def step(self, tokens: Tensor, parents: Tensor | None = None) -> Tensor:
        """Logits `(R, W, V)` after one token more, `(R, W)`; `parents` as in `Transformer.step`."""
        width = tokens.shape[1]
        past = () if self.written is None else (of_parents(parents, self.written),)
        self.written = torch.cat((*past, tokens[..., None]), -1)
        memory, source = (x.repeat_interleave(width, 0) for x in (self.memory, self.source))  # (R * W, …)
        logits = self.model.decode(self.written.flatten(0, 1), memory, source)[:, -1]  # (R * W, V)
        return logits.to(self.dtype).unflatten(0, (-1, width))

    def select(self, rows: Tensor) -> None:
        """Keep these sentences."""
        self.source, self.memory, self.written = (
            x.index_select(0, rows) for x in (self.source, self.memory, self.written)
        )


class Cached(_Steps):
    """The new position only, by `Transformer.step`."""

    def __init__(self, model: Transformer, source: Tensor):
        super().__init__(model)
        self.cache = model.begin(source)

    def step(self, tokens: Tensor, parents: Tensor | None = None) -> Tensor:
        """As in `Uncached`."""
        return self.model.step(tokens, self.cache, parents=parents).to(self.dtype)

    def select(self, rows: Tensor) -> None:
        """Keep these sentences."""
        self.cache.select(rows)


def of_parents(parents: Tensor | None, x: Tensor) -> Tensor:
    """What belongs to the parents, `(R, W)`, of x `(R, W before, n)`."""
    return x if parents is None else x.gather(1, parents[..., None].expand(-1, -1, x.shape[-1]))  # (R, W, n)
