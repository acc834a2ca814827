"""Position codes: how attention, which ignores order by itself, is told where tokens are."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from course_lib._checks import check_finite, checked
from course_lib._typing import Count, Float, Int, Positive, Size

__all__ = ["LearnedPositionalEmbedding", "alibi_bias", "apply_rotary", "shift_matrix", "sinusoidal_encoding"]


@checked
def sinusoidal_encoding(length: Count, d_model: Size) -> Float[Tensor, "length d_model"]:
    """A sine and a cosine of each position at falling frequencies.

    `PE[pos, 2i] = sin(pos / 10000^(2i / d_model))`, and `PE[pos, 2i + 1]` is the cosine of the same angle. If d_model
    is odd, the last feature is a sine. Angles are computed in float64, because float32 is off by up to 4e-4 for
    positions up to 5,000; the result is float32.

    Source: Vaswani et al. (2017), section 3.5.
    """
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)  # (ceil(d_model / 2),)
    position = torch.arange(length, dtype=torch.float64)[:, None]  # (length, 1)
    angle = position * 10_000.0 ** (-two_i / d_model)  # (length, ceil(d_model / 2))
    pairs = torch.stack((angle.sin(), angle.cos()), dim=-1)  # (length, ceil(d_model / 2), 2)
    return pairs.flatten(-2)[:, :d_model].float()  # (length, d_model): an odd width drops the last cosine


@checked
def shift_matrix(offset: float, d_model: Size) -> Float[Tensor, "d_model d_model"]:
    """The matrix that moves every sinusoidal encoding by `offset` positions: `M @ pe[p] = pe[p + offset]` for every p.

    Each pair `(sin a, cos a)` is turned by the angle `offset · frequency`: `[[cos, sin], [−sin, cos]]`. The matrix is
    block-diagonal and orthogonal, in float32.

    Raises:
        ValueError: d_model is odd, so that the last sine has no cosine to turn with, or offset is not finite.
    """
    check_finite("offset", offset)
    _check_even("d_model", d_model)
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)  # (d_model / 2,)
    angle = float(offset) * 10_000.0 ** (-two_i / d_model)  # how far each pair turns
    cos, sin = angle.cos(), angle.sin()
    blocks = torch.stack((cos, sin, -sin, cos), dim=-1).view(-1, 2, 2)  # (d_model / 2, 2, 2)
    return torch.block_diag(*blocks).float()  # (d_model, d_model)


@checked(length="for the usual order pass torch.arange(x.shape[-2])", base="the paper has 10000")
def apply_rotary(
    x: Float[Tensor, "*batch length d"], positions: Int[Tensor, " length"], base: Positive = 10000.0
) -> Float[Tensor, "*batch length d"]:
    """Turn each pair of features `(x_2i, x_2i+1)` by an angle that grows with the position.

    `angle = position · base^(−2i / d)`. For a given query and key, the dot product of the turned vectors depends only
    on the difference of their positions, since turning both by the same angle changes nothing. Angles are computed in
    float64.

    Raises:
        ValueError: d is odd.

    Source: Su et al. (2024), section 3.2.2, equation 15.
    """
    _check_even("the last axis of x", x.shape[-1])
    d = x.shape[-1]
    two_i = torch.arange(0, d, 2, dtype=torch.float64, device=x.device)  # (d / 2,)
    angle = positions[:, None] * base ** (-two_i / d)  # (L, d / 2), float64
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]  # (..., L, d / 2)
    turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)  # (..., L, d / 2, 2)
    return turned.flatten(-2)  # (..., L, d)


def _check_even(name: str, d: int) -> None:
    if d % 2:
        raise ValueError(f"{name} must be even, since features are rotated in pairs, got {d}; add or drop a feature")


@checked
def alibi_bias(num_heads: Size, length: Count) -> Float[Tensor, "num_heads length length"]:
    """A score penalty that grows with the distance between query and key, at a different rate in each head.

    `bias[h, i, j] = −slope_h · |i − j|` with `slope_h = 2^(−8 (h + 1) / H)`, where h counts from 0; float32.

    Raises:
        ValueError: num_heads is not a power of two; for other numbers, published code differs.

    Source: Press, Smith & Lewis (2022), section 3, made symmetric for use without a causal mask.
    """
    _check_power_of_two(num_heads)
    head = torch.arange(1, num_heads + 1, dtype=torch.float64)  # h + 1
    slope = 2.0 ** (-8.0 * head / num_heads)  # (H,)
    position = torch.arange(length, dtype=torch.float64)
    distance = (position[:, None] - position).abs()  # (L, L)
    return (-slope[:, None, None] * distance).float()  # (H, L, L)


def _check_power_of_two(num_heads: int) -> None:
    if num_heads & (num_heads - 1):
        raise ValueError(f"num_heads must be a power of two for ALiBi's slopes, got {num_heads}; take 1, 2, 4, 8, 16 …")


@checked(d_model="build the position code with the width of x")
class LearnedPositionalEmbedding(nn.Module):
    """Add a trained vector for each position, up to a length fixed in advance.

    Raises:
        ValueError: in `forward`, x has more than max_length positions.

    Source: Gehring et al. (2017), section 3.1; used by BERT and GPT.
    """

    def __init__(self, max_length: Size, d_model: Size):
        super().__init__()
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x: Float[Tensor, "batch length d_model"]) -> Float[Tensor, "batch length d_model"]:
        """x plus the vectors of positions 0 to length − 1."""
        length, max_length = x.shape[1], self.embedding.num_embeddings
        if length > max_length:
            raise ValueError(f"x must be at most {max_length} positions long, got {length}; build a longer table")
        positions = torch.arange(length, device=x.device)  # (L,)
        return x + self.embedding(positions)  # (B, L, d_model) + (L, d_model)
