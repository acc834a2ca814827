"""The transformer's building blocks: layer norm, feed-forward, the encoder layer and the decoder layer.

`course_lib.models` stacks them into whole models.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from course_kit._checks import check_finite, check_floats, check_probability, check_whole, check_width
from course_lib._typing import Bool, Float
from course_lib.cache import KeyValueCache
from course_lib.multi_head import AttentionPosition, MultiHeadAttention

__all__ = ["DecoderLayer", "EncoderLayer", "FeedForward", "layer_norm", "transformer_parameter_count"]


def layer_norm(
    x: Float[Tensor, "*batch d"], gain: Float[Tensor, " d"], bias: Float[Tensor, " d"], eps: float = 1e-5
) -> Float[Tensor, "*batch d"]:
    """Shift and scale each vector to mean 0 and variance 1 over its features, then apply a learned gain and bias.

    `y = gain · (x − mean) / √(variance + eps) + bias`; the variance is divided by d, not by d − 1.

    Args:
        x: `(..., d)`.
        gain: `(d,)`.
        bias: `(d,)`.
        eps: keeps the root away from zero; added to the variance, inside the root.

    Returns:
        `(..., d)`.

    Raises:
        TypeError: x, gain or bias is not a floating-point tensor, or eps is not a number.
        ValueError: gain or bias is not `(d,)`, or eps is negative.

    Source: Ba, Kiros & Hinton (2016), equation 4.
    """
    _check_per_feature(x, eps, gain=gain, bias=bias)
    centred = x - x.mean(-1, keepdim=True)
    variance = (centred * centred).mean(-1, keepdim=True)
    return centred * torch.rsqrt(variance + eps) * gain + bias


def _check_per_feature(x: Tensor, eps: float, **parameters: Tensor) -> None:
    check_floats(axes=1, x=x, **parameters)
    check_finite("eps", eps, 0)
    for name, parameter in parameters.items():
        if parameter.shape != x.shape[-1:]:
            raise ValueError(
                f"{name} must be (d,) = {tuple(x.shape[-1:])}, one number per feature of x, got "
                f"{tuple(parameter.shape)}; the mean is taken over the last axis"
            )


class FeedForward(nn.Module):
    """The same two-layer network at every position.

    `FFN(x) = W_2 f(W_1 x + b_1) + b_2`, with `f = relu` in the paper.

    Args:
        d_model: features of input and output.
        d_ff: hidden features.
        dropout: probability of dropping a hidden feature while training.
        activation: f, applied to each hidden feature; BERT takes `torch.nn.functional.gelu`.

    Raises:
        TypeError: a size is not a whole number, dropout is not a number, or activation cannot be called.
        ValueError: a size is less than 1, or dropout is not in [0, 1).

    Source: Vaswani et al. (2017), section 3.3.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        activation: Callable[[Tensor], Tensor] = torch.relu,
    ):
        super().__init__()
        _check_feed_forward(d_model, d_ff, dropout, activation)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)
        self.activation = activation

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch d_model"]:
        """`(..., d_model)` to `(..., d_model)`; each position is processed independently.

        Raises:
            TypeError: x is not a floating-point tensor.
            ValueError: x has another width.
        """
        check_width(self.linear1.in_features, x=x)
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


def _check_feed_forward(d_model: int, d_ff: int, dropout: float, activation: Callable = torch.relu) -> None:
    check_whole(d_model=d_model, d_ff=d_ff)
    check_probability("dropout", dropout)
    if not callable(activation):
        raise TypeError(f"activation must be a function of a tensor, got {activation!r}; pass torch.relu, for example")


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


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each with a residual connection and a layer norm.

    Post-norm, as in the paper: `x ← norm1(x + attention(x))`, then `x ← norm2(x + feed_forward(x))`. Pre-norm puts each
    norm before its sub-layer, and the sum is not normed.

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
        d_model: int,
        num_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        norm_first: bool = False,
        position: AttentionPosition | None = None,
        activation: Callable[[Tensor], Tensor] = torch.relu,
        norm_eps: float = 1e-5,
    ):
        super().__init__()
        _check_feed_forward(d_model, d_ff, dropout, activation)
        check_finite("norm_eps", norm_eps, 0)
        self.self_attention = MultiHeadAttention(d_model, num_heads, dropout=dropout, position=position)
        self.feed_forward = FeedForward(d_model, d_ff, dropout=dropout, activation=activation)
        self.norm1 = nn.LayerNorm(d_model, eps=norm_eps)
        self.norm2 = nn.LayerNorm(d_model, eps=norm_eps)
        self.residual = _Residual(dropout, norm_first)

    def forward(
        self,
        x: Float[Tensor, "batch length d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        *,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "batch length d_model"]:
        """`(B, L, d_model)` to `(B, L, d_model)`.

        Args:
            x: `(B, L, d_model)`.
            mask: bool, True = may attend, broadcasts to `(B, H, L, L)`.
            cache: keys and values of the positions before x, which the mask then covers too.
        """
        check_floats(x=x)
        kept = _kept(cache)
        x = self.residual(x, self.norm1, lambda y: self.self_attention(y, y, y, mask, need_weights=False, **kept)[0])
        return self.residual(x, self.norm2, self.feed_forward)


class DecoderLayer(nn.Module):
    """Self-attention, then cross-attention to the encoder's output, then feed-forward.

    The arguments are those of `EncoderLayer`, without activation and norm_eps. The position code acts only in
    self-attention, since there is no distance between a source position and a target position.

    Raises:
        ValueError: num_heads does not divide d_model.

    Source: Vaswani et al. (2017), section 3.1.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        norm_first: bool = False,
        position: AttentionPosition | None = None,
    ):
        super().__init__()
        _check_feed_forward(d_model, d_ff, dropout)
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
        self_mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
        *,
        cache: tuple[KeyValueCache, KeyValueCache] | None = None,
    ) -> Float[Tensor, "batch length d_model"]:
        """`(B, L, d_model)` to `(B, L, d_model)`.

        Args:
            x: the target so far, `(B, L, d_model)`.
            memory: the encoder's output, `(B, L_memory, d_model)`; keys and values of cross-attention.
            self_mask: bool, True = may attend, broadcasts to `(B, H, L, L)`; causal in a decoder.
            memory_mask: bool, True = may attend, broadcasts to `(B, H, L, L_memory)`; the padding mask of the source.
            cache: a pair, for self-attention and for cross-attention. The first holds the positions before x, which
                `self_mask` then covers too.
        """
        check_floats(x=x, memory=memory)
        own, cross = map(_kept, cache or (None, None))
        x = self.residual(
            x,
            self.norm1,
            lambda y: self.self_attention(y, y, y, self_mask, need_weights=False, **own)[0],
        )
        x = self.residual(
            x,
            self.norm2,
            lambda y: self.cross_attention(y, memory, memory, memory_mask, need_weights=False, **cross)[0],
        )
        return self.residual(x, self.norm3, self.feed_forward)


def _kept(cache: KeyValueCache | None) -> dict[str, KeyValueCache]:
    """The cache as a keyword argument, if there is one: an attention of someone else's need not know of caches."""
    return {} if cache is None else {"cache": cache}


def transformer_parameter_count(vocab_size: int, d_model: int, num_layers: int, d_ff: int) -> int:
    """Parameters of an encoder–decoder with one embedding shared by source, target and output, without final norms.

    With `d = d_model`, an attention has `4d² + 4d`, a feed-forward network `2 d d_ff + d_ff + d`, a norm `2d`, and the
    embedding `vocab_size · d`. An encoder layer consists of one attention, one feed-forward network and two norms; a
    decoder layer of two, one and three.

    Returns:
        The number of parameters; for the paper's base model (37000, 512, 6, 2048) 63,082,496.

    Raises:
        TypeError: a size is not a whole number.
        ValueError: a size is negative.
    """
    check_whole(vocab_size=vocab_size, d_model=d_model, num_layers=num_layers, d_ff=d_ff, least=0)
    attention = 4 * d_model * d_model + 4 * d_model
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    return vocab_size * d_model + num_layers * (encoder_layer + decoder_layer)
