"""Position codes as modules: added to the embeddings, or inside attention."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from course_lib import positional_encoding as plain
from course_lib._checks import checked
from course_lib._typing import Count, Float, Int, Positive, Size
from course_lib.positional_encoding import alibi_bias, apply_rotary, sinusoidal_encoding

__all__ = [
    "AlibiPosition",
    "AttentionPosition",
    "LearnedPositionalEmbedding",
    "RotaryPosition",
    "SinusoidalPositionalEncoding",
]


@runtime_checkable
class AttentionPosition(Protocol):
    """A position code that acts inside attention: `RotaryPosition` turns queries and keys, `AlibiPosition` adds a bias.

    Query i is at position `L_k − L_q + i`, so that the last query and the last key have the same position.

    A code that also works with a `KeyValueCache` takes one more keyword argument in both methods, `positions`: int
    `(L_k,)`, the positions of the keys. The queries have the positions of the last L_q keys.
    """

    def rotate(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Queries `(..., L_q, d_head)` and keys `(..., L_k, d_head)`, each turned to its position."""
        ...

    def bias(self, query: Tensor, key: Tensor) -> Tensor | None:
        """What to add to the scores, broadcastable to `(..., H, L_q, L_k)`, or None."""
        ...


@checked(d_model="build the position code with the width of x")
class SinusoidalPositionalEncoding(nn.Module):
    """Add the sinusoidal encoding; no parameters, any length."""

    def __init__(self, d_model: Size):
        super().__init__()
        self.d_model = d_model
        # A cache, grown to the longest sequence seen. No buffer: .half() would round it for good.
        self._table = sinusoidal_encoding(0, d_model)

    def forward(
        self, x: Float[Tensor, "*batch length d_model"], *, offset: Count = 0
    ) -> Float[Tensor, "*batch length d_model"]:
        """x plus the encodings of positions offset … offset + length − 1."""
        end = offset + x.shape[-2]
        if end > len(self._table) or self._table.device != x.device:
            # Twice what is needed, so that decoding token by token does not rebuild it at every step.
            self._table = sinusoidal_encoding(2 * end, self.d_model).to(x.device)
        return x + self._table[offset:end].to(x.dtype)


@checked(d_model="build the position code with the width of x")
class LearnedPositionalEmbedding(plain.LearnedPositionalEmbedding):
    """The embedding of `course_lib`, which can also begin at another position than 0."""

    def forward(
        self, x: Float[Tensor, "*batch length d_model"], *, offset: Count = 0
    ) -> Float[Tensor, "*batch length d_model"]:
        """x plus the embeddings of positions offset … offset + length − 1.

        Raises:
            ValueError: x ends beyond max_length.
        """
        end, max_length = offset + x.shape[-2], self.embedding.num_embeddings
        if end > max_length:
            raise ValueError(
                f"x must be at most max_length = {max_length} positions long, got {end}; a learned embedding knows "
                f"no further positions: build it longer, cut the input, or use a sinusoidal encoding"
            )
        return x + self.embedding.weight[offset:end]


@checked(base="the paper has 10000", len_k="positions are those of the keys")
class RotaryPosition(nn.Module):
    """Rotary positions inside `MultiHeadAttention`: `apply_rotary` turns queries and keys."""

    def __init__(self, base: Positive = 10_000.0):
        super().__init__()
        self.base = base

    def rotate(
        self,
        query: Float[Tensor, "*batch len_q d"],
        key: Float[Tensor, "*batch len_k d"],
        *,
        positions: Int[Tensor, " len_k"] | None = None,
    ) -> tuple[Float[Tensor, "*batch len_q d"], Float[Tensor, "*batch len_k d"]]:
        """Turn queries and keys to their positions; the last query has the position of the last key.

        Positions are those of the keys, 0 … L_k − 1 if not given.
        """
        offset = _query_offset(query, key)
        if positions is None:
            positions = torch.arange(key.shape[-2], device=key.device)
        return apply_rotary(query, positions[offset:], self.base), apply_rotary(key, positions, self.base)

    def bias(self, query: Tensor, key: Tensor, *, positions: Tensor | None = None) -> None:
        """Nothing is added to the scores."""
        return None

    def extra_repr(self) -> str:
        """The base."""
        return f"base={self.base}"


@checked(len_k="positions are those of the keys")
class AlibiPosition(nn.Module):
    """ALiBi inside `MultiHeadAttention`: `alibi_bias` lowers the scores in proportion to the distance."""

    def __init__(self):
        super().__init__()
        self._penalty_by_distance: dict[int, Tensor] = {}  # by the number of heads

    def rotate(self, query: Tensor, key: Tensor, *, positions: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Queries and keys stay as they are."""
        return query, key

    def bias(
        self,
        query: Float[Tensor, "batch num_heads len_q d"],
        key: Float[Tensor, "batch num_heads len_k d"],
        *,
        positions: Int[Tensor, " len_k"] | None = None,
    ) -> Float[Tensor, "num_heads len_q len_k"]:
        """Positions are those of the keys, each in 0 … L_k − 1; that range itself if not given."""
        offset, (num_heads, len_k) = _query_offset(query, key), (query.shape[-3], key.shape[-2])
        if positions is None:
            return alibi_bias(num_heads, len_k)[:, offset:].to(query)
        penalty = self._penalty_by_distance.get(num_heads)
        if penalty is None or penalty.shape[-1] < len_k or penalty.device != query.device:
            # Twice the size needed, so that decoding rarely has to compute it again.
            penalty = alibi_bias(num_heads, 2 * len_k)[:, 0].to(query.device)  # (H, 2 L_k)
            self._penalty_by_distance[num_heads] = penalty
        distance = (positions[offset:, None] - positions).abs()  # (L_q, L_k)
        return penalty[:, distance].to(query.dtype)  # (H, L_q, L_k)


def _query_offset(query: Tensor, key: Tensor) -> int:
    offset = key.shape[-2] - query.shape[-2]
    if offset < 0:
        raise ValueError(
            f"with positions inside attention there must be a key for every query, got {query.shape[-2]} queries and "
            f"{key.shape[-2]} keys; use them in self-attention only"
        )
    return offset
