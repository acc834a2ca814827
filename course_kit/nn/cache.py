"""Keys and values that are kept from one step of decoding to the next: the key–value cache.

`KeyValueCache` belongs to one `MultiHeadAttention`, `DecoderCache` to a whole decoder and to the beam that it decodes.
`course_lib.decoding.cached_attention` has the idea in a few lines.
"""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib._checks import checked
from course_lib._typing import Bool, Float, Int, Size

__all__ = ["DecoderCache", "KeyValueCache"]


@checked
class KeyValueCache:
    """Keys and values that a `MultiHeadAttention` has computed, kept for queries to come.

    `attention(x, x, x, cache=cache)` adds the keys and values of x after those of earlier calls, and lets the queries
    of x attend to all of them. In cross-attention (`is_static=True`) the first call fills the cache, and the others
    take all from it: their key and value are ignored. Use it without gradients, because it keeps writing to the
    same memory.

    Args:
        is_static: whether only the first call adds to it.
        parallel_hypotheses: whether what one call adds shares one position of the sequence, as the hypotheses of a beam
            do; otherwise one after another.
    """

    def __init__(self, *, is_static: bool = False, parallel_hypotheses: bool = False):
        self.is_static = is_static
        self.parallel_hypotheses = parallel_hypotheses
        self._lengths: list[int] = []  # how many keys each call added
        self._keys: Tensor | None = None  # (B, H, capacity, d_head), of which `len(self)` are in use
        self._values: Tensor | None = None

    def __len__(self) -> int:
        return sum(self._lengths)

    @property
    def is_full(self) -> bool:
        """Whether it is full, so that nothing will be added."""
        return self.is_static and self._keys is not None

    @property
    def keys(self) -> Float[Tensor, "batch heads length d_head"]:
        """`(B, H, L, d_head)`, a view."""
        return self._keys[:, :, : len(self)]

    @property
    def values(self) -> Float[Tensor, "batch heads length d_head"]:
        """`(B, H, L, d_head)`, a view."""
        return self._values[:, :, : len(self)]

    @property
    def positions(self) -> Int[Tensor, " length"]:
        """The positions of the keys in the sequence, `(L,)`."""
        device = self._keys.device
        if not self.parallel_hypotheses:
            return torch.arange(len(self), device=device)
        calls = torch.arange(len(self._lengths), device=device)
        return calls.repeat_interleave(torch.tensor(self._lengths, device=device), output_size=len(self))

    def next_positions(self, number: int, device: torch.device | None = None) -> Int[Tensor, " number"]:
        """The positions of the keys of the next call, if there are `number` of them."""
        if self.parallel_hypotheses:
            return torch.full((number,), len(self._lengths), device=device)
        return torch.arange(len(self), len(self) + number, device=device)

    def append(
        self, keys: Float[Tensor, "batch heads new d_head"], values: Float[Tensor, "batch heads new d_head"]
    ) -> tuple[Float[Tensor, "batch heads length d_head"], Float[Tensor, "batch heads length d_head"]]:
        """Add keys and values `(B, H, new, d_head)`, and return all: `(B, H, L, d_head)` each.

        Raises:
            ValueError: they are of another batch than those that are kept.
        """
        if self._keys is not None and len(keys) != len(self._keys):
            raise ValueError(
                f"the cache holds keys of a batch of {len(self._keys)}, got a batch of {len(keys)}; select(rows) "
                f"keeps some of its rows; for another batch create a new cache"
            )
        old, new = len(self), len(self) + keys.shape[-2]
        if self._keys is None:
            # Contiguous, since cross-attention reads these again at every step.
            self._keys, self._values = keys.contiguous(), values.contiguous()
        else:
            if new > self._keys.shape[-2]:
                # Twice what is needed: each key is copied about once in all, not at every step.
                self._keys, self._values = (_with_room(x[:, :, :old], 2 * new) for x in (self._keys, self._values))
            self._keys[:, :, old:new] = keys
            self._values[:, :, old:new] = values
        self._lengths.append(keys.shape[-2])
        return self.keys, self.values

    def select(self, rows: Int[Tensor, " rows"]) -> None:
        """Keep these rows of the batch, in this order; a row may be taken more than once."""
        if self._keys is not None:
            self._keys, self._values = self.keys.index_select(0, rows), self.values.index_select(0, rows)


@checked(len_source="pass what encode returns, and padding_mask(source, pad_id)")
class DecoderCache:
    """All that a `Transformer` keeps from one step of decoding to the next: `Transformer.begin` makes it.

    A step decodes W tokens of each sentence, the last ones of W hypotheses. Their keys and values are added side by
    side. The hypotheses of a beam form a tree, so a mask says which of these columns belong to the past of which
    hypothesis. A beam can therefore be reordered without copying any key, and what hypotheses share is stored once.

    Args:
        memory: from `encode`.
        memory_mask: True = may attend.
        num_layers: how many layers the decoder has.
    """

    def __init__(
        self,
        memory: Float[Tensor, "batch len_source d_model"],
        memory_mask: Bool[Tensor, "batch 1 1 len_source"],
        num_layers: Size,
    ):
        self.memory = memory
        self.memory_mask = memory_mask
        self.layers = [
            (KeyValueCache(parallel_hypotheses=True), KeyValueCache(is_static=True)) for _ in range(num_layers)
        ]
        self.steps = 0
        self._past: Tensor | None = None  # bool (B, W, columns); None while there is one hypothesis, whose past is all

    def select(self, rows: Int[Tensor, " rows"]) -> None:
        """Keep these sentences, in this order; one may be taken more than once."""
        self.memory, self.memory_mask = self.memory.index_select(0, rows), self.memory_mask.index_select(0, rows)
        if self._past is not None:
            self._past = self._past.index_select(0, rows)
        for caches in self.layers:
            for cache in caches:
                cache.select(rows)

    def mask_for_next_step(self, width: Size, parents: Int[Tensor, "batch width"] | None) -> Bool[Tensor, "..."] | None:
        """Begin a step: the self-attention mask `(B, 1, W, columns)` of W hypotheses that continue `parents`.

        None means a mask that allows everything.

        Raises:
            ValueError: parents are missing where the number of hypotheses changes, have the wrong shape, or (on a CPU)
                are not among the last step's hypotheses.
        """
        batch = self.memory.shape[0]
        before = 1 if self._past is None else self._past.shape[1]
        if parents is None and self.steps and width != before:
            raise ValueError(
                f"{width} hypotheses per sentence follow {before}, so parents must say which of them each one "
                f"continues, as int {(batch, width)}, got None"
            )
        if parents is not None and parents.shape != (batch, width):
            raise ValueError(f"parents must be one for each token, {(batch, width)}, got {tuple(parents.shape)}")
        if parents is not None and parents.device.type == "cpu" and parents.numel():
            low, high = int(parents.min()), int(parents.max())
            if low < 0 or high >= before:
                raise ValueError(
                    f"parents must lie in 0 … {before - 1}, the last step's hypotheses, got {low} … {high}"
                )
        columns = len(self.layers[0][0])
        self.steps += 1
        if self._past is None and width == 1:
            return None
        past = self._past
        if past is None:
            past = self.memory.new_ones(batch, 1, columns, dtype=torch.bool)
        if parents is not None:
            past = past.gather(1, parents[..., None].expand(-1, -1, columns))  # (B, W, columns)
        elif columns == 0:
            past = past.expand(-1, width, -1)
        own = torch.eye(width, dtype=torch.bool, device=past.device).expand(batch, -1, -1)  # (B, W, W)
        self._past = torch.cat((past, own), dim=-1)  # (B, W, columns + W)
        return self._past[:, None]


def _with_room(x: Tensor, capacity: int) -> Tensor:
    roomy = x.new_empty(*x.shape[:2], capacity, x.shape[-1])  # (B, H, capacity, d_head)
    roomy[:, :, : x.shape[-2]] = x
    return roomy
