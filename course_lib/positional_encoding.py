"""Position codes: how attention, which ignores order by itself, gets the positions of tokens."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from course_kit._checks import check_finite, check_floats, check_ids, check_whole
from course_lib._typing import Float, Int

__all__ = [
    "AlibiPosition",
    "LearnedPositionalEmbedding",
    "RotaryPosition",
    "SinusoidalPositionalEncoding",
    "alibi_bias",
    "apply_rotary",
    "shift_matrix",
    "sinusoidal_encoding",
]


def sinusoidal_encoding(
    length: int, d_model: int, *, device: torch.device | str | None = None
) -> Float[Tensor, "length d_model"]:
    """A sine and a cosine of each position at falling frequencies.

    `PE[pos, 2i] = sin(pos / 10000^(2i / d_model))`, and `PE[pos, 2i + 1]` is the cosine of the same angle. An odd
    d_model ends on a sine.

    Args:
        length: number of positions, from 0.
        d_model: number of features.
        device: where the table is made; the default device if not given.

    Returns:
        float32 `(length, d_model)`. Angles are computed in float64, because at position 5,000 float32 is off by 1e-4.

    Raises:
        TypeError: length or d_model is not a whole number.
        ValueError: length is negative, or d_model is less than 1.

    Source: Vaswani et al. (2017), section 3.5.
    """
    check_whole(length=length, least=0)
    check_whole(d_model=d_model)
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64, device=device)  # (ceil(d_model / 2),)
    position = torch.arange(length, dtype=torch.float64, device=device)[:, None]  # (length, 1)
    angle = position * 10_000.0 ** (-two_i / d_model)  # (length, ceil(d_model / 2))
    pairs = torch.stack((angle.sin(), angle.cos()), dim=-1)  # (length, ceil(d_model / 2), 2)
    return pairs.flatten(-2)[:, :d_model].float()  # (length, d_model): an odd width drops the last cosine


def shift_matrix(offset: int, d_model: int) -> Float[Tensor, "d_model d_model"]:
    """The matrix that moves every sinusoidal encoding by `offset` positions: `M @ pe[p] = pe[p + offset]` for every p.

    Each pair `(sin a, cos a)` is turned by the angle `offset · frequency`: `[[cos, sin], [−sin, cos]]`.

    Args:
        offset: how far, in positions; may be negative.
        d_model: number of features, even.

    Returns:
        float32 `(d_model, d_model)`, block-diagonal, orthogonal.

    Raises:
        TypeError: offset is not a number, or d_model is not a whole number.
        ValueError: d_model is less than 2, or odd, so that the last sine has no cosine to turn with, or offset is not
            finite.
    """
    check_finite("offset", offset)
    _check_even("d_model", d_model, least=2)
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)  # (d_model / 2,)
    angle = float(offset) * 10_000.0 ** (-two_i / d_model)  # how far each pair turns
    cos, sin = angle.cos(), angle.sin()
    blocks = torch.stack((cos, sin, -sin, cos), dim=-1).view(-1, 2, 2)  # (d_model / 2, 2, 2)
    return torch.block_diag(*blocks).float()  # (d_model, d_model)


def apply_rotary(
    x: Float[Tensor, "*batch length d"], positions: Int[Tensor, " length"], base: float = 10_000.0
) -> Float[Tensor, "*batch length d"]:
    """Turn each pair of features `(x_2i, x_2i+1)` by an angle that grows with the position.

    `angle = position · base^(−2i / d)`. The dot product of a turned query and a turned key depends only on their
    distance, since turning both by the same angle changes nothing.

    Args:
        x: `(..., L, d)`, d even.
        positions: `(L,)`, in tokens.
        base: the slowest pair turns by `base^(2/d) / base` per position.

    Returns:
        `(..., L, d)`, of the same dtype; the length of every vector is unchanged. Angles are computed in float64.

    Raises:
        TypeError: x is not a floating-point tensor, positions is not a tensor of integers, or base is not a number.
        ValueError: d is odd, positions does not have one entry per row of x, or base is not positive and finite.

    Source: Su et al. (2024), section 3.2.2, equation 15.
    """
    _check_rotary(x, positions, base)
    d = x.shape[-1]
    if positions.shape != (x.shape[-2],):
        raise ValueError(
            f"positions must be one per row of x, ({x.shape[-2]},), got {tuple(positions.shape)}; "
            f"for the usual order pass torch.arange(x.shape[-2])"
        )
    pair = torch.arange(0, d, 2, dtype=torch.float64, device=x.device)
    angle = positions[:, None].to(x.device, torch.float64) * base ** (-pair / d)  # (L, d / 2)
    return _turn_pairs(x, angle.cos().to(x.dtype), angle.sin().to(x.dtype))


def alibi_bias(
    num_heads: int, length: int, *, device: torch.device | str | None = None
) -> Float[Tensor, "num_heads length length"]:
    """A penalty on the score that grows with the distance between query and key, at a different rate in each head.

    `bias[h, i, j] = −slope_h · |i − j|` with `slope_h = 2^(−8 (h + 1) / H)`, where h counts from 0.

    Args:
        num_heads: H, a power of two.
        length: number of positions L.
        device: where the bias is made; the default device if not given.

    Returns:
        float32 `(H, L, L)`.

    Raises:
        TypeError: num_heads or length is not a whole number.
        ValueError: num_heads is not a power of two (the paper uses only these, and published code differs in other
            cases), or length is negative.

    Source: Press, Smith & Lewis (2022), section 3, made symmetric for use without a causal mask.
    """
    _check_power_of_two(num_heads)
    check_whole(length=length, least=0)
    head = torch.arange(1, num_heads + 1, dtype=torch.float64, device=device)  # h + 1
    slope = 2.0 ** (-8.0 * head / num_heads)  # (H,)
    position = torch.arange(length, dtype=torch.float64, device=device)
    distance = (position[:, None] - position).abs()  # (L, L)
    return (-slope[:, None, None] * distance).float()  # (H, L, L)


class SinusoidalPositionalEncoding(nn.Module):
    """Add the sinusoidal encoding; no parameters, any length.

    Args:
        d_model: number of features.
    """

    def __init__(self, d_model: int):
        super().__init__()
        check_whole(d_model=d_model)
        self.d_model = d_model
        # A cache, grown to the longest sequence seen. No buffer: .half() would round it for good.
        self._table = sinusoidal_encoding(0, d_model)

    def forward(
        self, x: Float[Tensor, "batch length d_model"], *, offset: int = 0
    ) -> Float[Tensor, "batch length d_model"]:
        """x `(B, L, d_model)` plus the encodings of positions offset … offset + L − 1.

        Raises:
            TypeError: x is not a floating-point tensor, or offset is not a whole number.
            ValueError: x has another width, or offset is negative.
        """
        _check_input(x, self.d_model, offset)
        end = offset + x.shape[-2]
        if end > len(self._table) or self._table.device != x.device:
            # Twice what is needed, so that decoding token by token does not rebuild it at every step.
            self._table = sinusoidal_encoding(2 * end, self.d_model, device=x.device)
        return x + self._table[offset:end].to(x.dtype)


class LearnedPositionalEmbedding(nn.Module):
    """Add a trained vector for each position, up to a length fixed in advance.

    Args:
        max_length: number of positions that have a vector.
        d_model: number of features.

    Source: Gehring et al. (2017), section 3.1; used by BERT and GPT.
    """

    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        check_whole(max_length=max_length, d_model=d_model)
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(
        self, x: Float[Tensor, "batch length d_model"], *, offset: int = 0
    ) -> Float[Tensor, "batch length d_model"]:
        """x `(B, L, d_model)` plus the embeddings of positions offset … offset + L − 1.

        Raises:
            TypeError: x is not a floating-point tensor, or offset is not a whole number.
            ValueError: x ends beyond max_length, or has another width, or offset is negative.
        """
        _check_input(x, self.embedding.embedding_dim, offset)
        end, max_length = offset + x.shape[-2], self.embedding.num_embeddings
        if end > max_length:
            raise ValueError(
                f"x must be at most max_length = {max_length} positions long, got {end}; a learned embedding knows "
                f"no further positions: build it longer, cut the input, or use a sinusoidal encoding"
            )
        return x + self.embedding.weight[offset:end]


class RotaryPosition(nn.Module):
    """Rotary positions inside `MultiHeadAttention`: `apply_rotary` turns queries and keys.

    Args:
        base: see `apply_rotary`.
    """

    def __init__(self, base: float = 10_000.0):
        super().__init__()
        _check_base(base)
        self.base = base

    def rotate(
        self, query: Tensor, key: Tensor, *, positions: Int[Tensor, " length"] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Turn queries and keys to their positions; the last query has the position of the last key.

        Args:
            query: `(..., L_q, d)`.
            key: `(..., L_k, d)`.
            positions: those of the keys, `(L_k,)`; 0 … L_k − 1 if not given.
        """
        offset = _query_offset(query, key, positions)
        if positions is None:
            positions = torch.arange(key.shape[-2], device=key.device)
        query_positions = positions[offset:]
        return apply_rotary(query, query_positions, self.base), apply_rotary(key, positions, self.base)

    def bias(self, query: Tensor, key: Tensor, *, positions: Int[Tensor, " length"] | None = None) -> None:
        """Nothing is added to the scores."""
        return None

    def extra_repr(self) -> str:
        """The base."""
        return f"base={self.base}"


class AlibiPosition(nn.Module):
    """ALiBi inside `MultiHeadAttention`: `alibi_bias` lowers the scores in proportion to the distance."""

    def __init__(self):
        super().__init__()
        self._falls: dict[int, Tensor] = {}  # by the number of heads

    def rotate(
        self, query: Tensor, key: Tensor, *, positions: Int[Tensor, " length"] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Queries and keys stay as they are."""
        return query, key

    def bias(
        self, query: Tensor, key: Tensor, *, positions: Int[Tensor, " length"] | None = None
    ) -> Float[Tensor, "num_heads len_q len_k"]:
        """`(H, L_q, L_k)` for queries `(B, H, L_q, d)` and keys `(B, H, L_k, d)`.

        Args:
            query: `(B, H, L_q, d)`.
            key: `(B, H, L_k, d)`.
            positions: those of the keys, `(L_k,)`, each in 0 … L_k − 1; that range itself if not given.
        """
        offset, (num_heads, len_k) = _query_offset(query, key, positions), (query.shape[-3], key.shape[-2])
        if positions is None:
            return alibi_bias(num_heads, len_k, device=query.device)[:, offset:].to(query.dtype)
        fall = self._falls.get(num_heads)
        if fall is None or fall.shape[-1] < len_k or fall.device != query.device:
            # The penalty of each head at each distance; twice the size needed, so that decoding rarely has to recompute
            # it.
            fall = self._falls[num_heads] = alibi_bias(num_heads, 2 * len_k, device=query.device)[:, 0]  # (H, 2 L_k)
        distance = (positions[offset:, None] - positions).abs()  # (L_q, L_k)
        return fall[:, distance].to(query.dtype)  # (H, L_q, L_k)


def _query_offset(query: Tensor, key: Tensor, positions: Tensor | None) -> int:
    check_floats(axes=2, query=query, key=key)
    if positions is not None:
        check_ids(axes=1, positions=positions)
        if len(positions) != key.shape[-2]:
            raise ValueError(f"positions must be one per key, ({key.shape[-2]},), got {tuple(positions.shape)}")
    offset = key.shape[-2] - query.shape[-2]
    if offset < 0:
        raise ValueError(
            f"with positions inside attention there must be a key for every query, got {query.shape[-2]} queries and "
            f"{key.shape[-2]} keys; use them in self-attention only"
        )
    return offset


def _turn_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    even, odd = x[..., 0::2], x[..., 1::2]  # (..., L, d / 2)
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)  # (..., L, d)


def _check_input(x: Tensor, d_model: int, offset: int) -> None:
    check_whole(offset=offset, least=0)
    check_floats(x=x)
    if x.dim() < 2 or x.shape[-1] != d_model:
        raise ValueError(
            f"x must be (..., L, d_model), with d_model = {d_model} features in its last axis, got {tuple(x.shape)}; "
            f"build the position code with the width of x"
        )


def _check_rotary(x: Tensor, positions: Tensor, base: float) -> None:
    check_floats(x=x)
    if x.dim() < 2:
        raise ValueError(f"x must be (..., L, d), got {tuple(x.shape)}; for a single vector pass x[None]")
    check_ids(positions=positions)
    _check_even("the last axis of x", x.shape[-1])
    _check_base(base)


def _check_power_of_two(num_heads: int) -> None:
    check_whole(num_heads=num_heads, least=-math.inf)
    if num_heads < 1 or num_heads & (num_heads - 1):
        raise ValueError(f"num_heads must be a power of two for ALiBi's slopes, got {num_heads}; take 1, 2, 4, 8, 16 …")


def _check_base(base: float) -> None:
    check_finite("base", base)
    if base <= 0:
        raise ValueError(f"base must be positive, got {base}; the paper has 10000")


def _check_even(name: str, d: int, least: int = 0) -> None:
    check_whole(**{name: d}, least=least)
    if d % 2:
        raise ValueError(f"{name} must be even, since features are rotated in pairs, got {d}; add or drop a feature")
