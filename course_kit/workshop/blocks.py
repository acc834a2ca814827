"""The course's blocks with places for a learner's functions: attention, layer norm, positions and masks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from course_kit.nn import AlibiPosition, MultiHeadAttention, RotaryPosition
from course_kit.nn.attention import attention_with_bias
from course_lib._checks import checked
from course_lib._typing import Float
from course_lib.attention import dot_product_score
from course_lib.multi_head import merge_heads, split_heads

__all__ = [
    "AlibiOfParts",
    "AttentionOfParts",
    "DecoderMaskOfParts",
    "NormOfParts",
    "RotaryOfParts",
    "SinusoidsOfParts",
]


@checked(d_model="build the module with the width of the input")
class AttentionOfParts(MultiHeadAttention):
    """The course's multi-head attention, with its steps done by given functions."""

    def __init__(self, d_model: int, num_heads: int, given: Mapping[str, Callable], position: nn.Module | None):
        super().__init__(d_model, num_heads, position=position)
        self.split = given.get("split_heads", split_heads)
        self.merge = given.get("merge_heads", merge_heads)
        self.attention = given.get("scaled_dot_product_attention")
        self.masked_softmax = given.get("masked_softmax")
        self.softmax = given.get("softmax")
        self.attend = given.get("attend")

    def forward(
        self,
        query: Float[Tensor, "batch len_q d_model"],
        key: Float[Tensor, "batch len_k d_model"],
        value: Float[Tensor, "batch len_k d_model"],
        mask: Tensor | None = None,
        *,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "batch len_q d_model"], Float[Tensor, "batch heads len_q len_k"] | None]:
        """As in `MultiHeadAttention`; the weights are computed in any case."""
        q, k, v = (self.split(x, self.num_heads) for x in self._project(query, key, value))  # (B, H, L, d_head)
        bias = None
        if self.position is not None:
            q, k = self.position.rotate(q, k)
            bias = self.position.bias(q, k)
        heads, weights = self._attend(q, k, v, mask, bias)
        return self.out_proj(self.merge(heads)), weights if need_weights else None  # (B, L_q, d_model)

    def _attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, bias: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        if self.attention is not None:
            return self.attention(q, k, v, mask)
        if not (self.attend or self.softmax or (self.masked_softmax and mask is not None)):
            return attention_with_bias(q, k, v, mask, bias=bias)
        scores = dot_product_score(q / q.shape[-1] ** 0.5, k)  # (B, H, L_q, L_k)
        if bias is not None:
            scores = scores + bias.to(scores.dtype)
        if mask is not None and self.masked_softmax:
            weights = self.masked_softmax(scores, mask)
            return weights @ v, weights
        if mask is not None:
            # The lowest score of which the exercises promise that it is right; -inf is not promised. Its weight is 0.
            scores = scores.masked_fill(~mask, -1e4)
        if self.attend:
            return self.attend(scores, v)
        weights = self.softmax(scores, dim=-1)
        return weights @ v, weights


class NormOfParts(nn.LayerNorm):
    """An `nn.LayerNorm` that leaves the computation to a given `layer_norm`."""

    def __init__(self, d_model: int, function: Callable):
        super().__init__(d_model)
        self.function = function

    def forward(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
        """`(..., d)` to `(..., d)`."""
        return self.function(x, self.weight, self.bias, self.eps)


class SinusoidsOfParts(nn.Module):
    """Adds a given `sinusoidal_encoding`, computed once per length."""

    def __init__(self, function: Callable):
        super().__init__()
        self.function = function
        self._tables: dict[int, Tensor] = {}

    def forward(self, x: Float[Tensor, "batch length d_model"]) -> Float[Tensor, "batch length d_model"]:
        """`(B, L, d_model)` plus the table."""
        length, d_model = x.shape[-2:]
        if length not in self._tables:
            self._tables[length] = self.function(length, d_model).detach()
        return x + self._tables[length].to(x)


class RotaryOfParts(RotaryPosition):
    """Rotary positions by a given `apply_rotary`."""

    def __init__(self, function: Callable):
        super().__init__()
        self.function = function

    def rotate(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Each at positions 0 … L − 1; here they are as many."""
        positions = torch.arange(key.shape[-2], device=key.device)
        return self.function(query, positions), self.function(key, positions)


class AlibiOfParts(AlibiPosition):
    """ALiBi by a given `alibi_bias`."""

    def __init__(self, function: Callable):
        super().__init__()
        self.function = function

    def bias(self, query: Tensor, key: Tensor) -> Float[Tensor, "num_heads len_q len_k"]:
        """`(H, L, L)`."""
        return self.function(query.shape[-3], key.shape[-2]).to(query)


class DecoderMaskOfParts:
    """Causal, and no padded key, from two masks."""

    def __init__(self, padding: Callable, causal: Callable):
        self.padding, self.causal = padding, causal

    def __call__(self, tokens: Tensor, pad_id: int) -> Tensor:
        return self.padding(tokens, pad_id) & self.causal(tokens.shape[1]).to(tokens.device)  # (B, 1, L, L)
