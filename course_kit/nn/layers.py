"""Encoder and decoder layers with all that models need: dropout, pre-norm, position codes, caches."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from course_kit.nn.cache import KeyValueCache
from course_kit.nn.multi_head import MultiHeadAttention
from course_kit.nn.positions import AttentionPosition
from course_lib import transformer as plain
from course_lib._checks import checked
from course_lib._typing import Float, Mask, NotNegative, Probability, Size

__all__ = ["DecoderLayer", "EncoderLayer", "FeedForward"]


@checked(d_model="build the module with the width of the input", activation="pass torch.relu, for example")
class FeedForward(plain.FeedForward):
    """`course_lib.FeedForward` with dropout on the hidden features, and any activation: BERT takes `F.gelu`."""

    def __init__(
        self,
        d_model: Size,
        d_ff: Size,
        *,
        dropout: Probability = 0.0,
        activation: Callable[[Tensor], Tensor] = torch.relu,
    ):
        super().__init__(d_model, d_ff)
        self.dropout = nn.Dropout(dropout)
        self.activation = activation

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """Each position is processed independently."""
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class _Residual(nn.Module):
    """What every sub-layer is wrapped in: norm(x + f(x)) after the paper, x + f(norm(x)) for pre-norm."""

    def __init__(self, dropout: float, norm_first: bool):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor, norm: nn.LayerNorm, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        if self.norm_first:
            return x + self.dropout(sublayer(norm(x)))
        return norm(x + self.dropout(sublayer(x)))


@checked(d_model="build the module with the width of the input", activation="pass torch.relu, for example")
class EncoderLayer(plain.EncoderLayer):
    """`course_lib.EncoderLayer` with further features; without them it computes the same.

    Pre-norm puts each norm before its sub-layer, and the sum is not normed.

    Args:
        d_model: features of a position.
        num_heads: H, divides d_model.
        d_ff: hidden features of the feed-forward network.
        dropout: used on attention weights, hidden features and the output of both sub-layers while training.
        norm_first: True for pre-norm.
        position: a position code inside attention, such as `RotaryPosition()`.
        activation: of the feed-forward network.
        norm_eps: keeps the layer norms' roots away from zero.

    Raises:
        ValueError: num_heads does not divide d_model.

    Source: Vaswani et al. (2017), section 3.1; pre-norm: Xiong et al. (2020).
    """

    def __init__(
        self,
        d_model: Size,
        num_heads: Size,
        d_ff: Size,
        *,
        dropout: Probability = 0.0,
        norm_first: bool = False,
        position: AttentionPosition | None = None,
        activation: Callable[[Tensor], Tensor] = torch.relu,
        norm_eps: NotNegative = 1e-5,
    ):
        nn.Module.__init__(self)  # the parts of `course_lib` under the same names, but fuller ones
        self.self_attention = MultiHeadAttention(d_model, num_heads, dropout=dropout, position=position)
        self.feed_forward = FeedForward(d_model, d_ff, dropout=dropout, activation=activation)
        self.norm1 = nn.LayerNorm(d_model, eps=norm_eps)
        self.norm2 = nn.LayerNorm(d_model, eps=norm_eps)
        self.residual = _Residual(dropout, norm_first)

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        mask: Mask["batch num_heads length len_all"] | None = None,
        *,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "batch length d_model"]:
        """Every position attends to those that the mask allows.

        Args:
            x: a vector for each position.
            mask: bool, True = may attend.
            cache: keys and values of the positions before x, which the mask then covers too.
        """
        kept = _cache_kwargs(cache)
        x = self.residual(x, self.norm1, lambda y: self.self_attention(y, y, y, mask, need_weights=False, **kept)[0])
        return self.residual(x, self.norm2, self.feed_forward)


@checked(d_model="build the module with the width of the input", batch="memory is the encoder's output for this batch")
class DecoderLayer(plain.DecoderLayer):
    """`course_lib.DecoderLayer` with further features; without them it computes the same.

    The arguments are those of `EncoderLayer`, without activation and norm_eps. The position code acts only in
    self-attention, since there is no distance between a source position and a target position.

    Raises:
        ValueError: num_heads does not divide d_model.

    Source: Vaswani et al. (2017), section 3.1.
    """

    def __init__(
        self,
        d_model: Size,
        num_heads: Size,
        d_ff: Size,
        *,
        dropout: Probability = 0.0,
        norm_first: bool = False,
        position: AttentionPosition | None = None,
    ):
        nn.Module.__init__(self)
        self.self_attention = MultiHeadAttention(d_model, num_heads, dropout=dropout, position=position)
        self.cross_attention = MultiHeadAttention(d_model, num_heads, dropout=dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout=dropout)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.residual = _Residual(dropout, norm_first)

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        memory: Float[Tensor, "batch len_memory d_model"],
        self_mask: Mask["batch num_heads length len_all"] | None = None,
        memory_mask: Mask["batch num_heads length len_memory"] | None = None,
        *,
        cache: tuple[KeyValueCache, KeyValueCache] | None = None,
    ) -> Float[Tensor, "batch length d_model"]:
        """The target x attends to itself, then to memory.

        Args:
            x: the target so far.
            memory: the encoder's output; keys and values of cross-attention.
            self_mask: bool, True = may attend; causal in a decoder.
            memory_mask: bool, True = may attend; the padding mask of the source.
            cache: a pair, for self-attention and for cross-attention. The first holds the positions before x, which
                `self_mask` then covers too.
        """
        own, cross = ({"need_weights": False, **_cache_kwargs(kept)} for kept in cache or (None, None))
        x = self.residual(x, self.norm1, lambda y: self.self_attention(y, y, y, self_mask, **own)[0])
        x = self.residual(x, self.norm2, lambda y: self.cross_attention(y, memory, memory, memory_mask, **cross)[0])
        return self.residual(x, self.norm3, self.feed_forward)


def _cache_kwargs(cache: KeyValueCache | None) -> dict[str, KeyValueCache]:
    """The cache as a keyword argument, if there is one: an attention of a learner's own need not have that argument."""
    return {} if cache is None else {"cache": cache}
