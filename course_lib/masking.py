"""Masks: which query may attend to which key.

A mask is a bool tensor, **True = may attend**, that broadcasts against the scores `(..., L_q, L_k)`. This is the
convention of `torch.nn.functional.scaled_dot_product_attention`; `torch.nn.MultiheadAttention` means the opposite.
"""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib._checks import checked
from course_lib._typing import Bool, Count, Float, Int, Mask, Size

__all__ = ["causal_mask", "decoder_mask", "masked_softmax", "padding_mask", "sliding_window_mask"]


@checked
def padding_mask(tokens: Int[Tensor, "batch length"], pad_id: int) -> Bool[Tensor, "batch 1 1 length"]:
    """Allow every key that is not padding, for all heads and all queries; `pad_id` is the id of the padding."""
    return (tokens != pad_id)[:, None, None, :]  # (B, 1, 1, L)


@checked
def causal_mask(length: Count) -> Bool[Tensor, "length length"]:
    """Each position may attend to itself and to the past: True where `key ≤ query`.

    Source: Vaswani et al. (2017), section 3.2.3.
    """
    return torch.ones(length, length, dtype=torch.bool).tril()  # (L, L)


@checked
def decoder_mask(tokens: Int[Tensor, "batch length"], pad_id: int) -> Bool[Tensor, "batch 1 length length"]:
    """Allow the keys that are neither in the future nor padding: the self-attention mask of a decoder.

    Rows of padded queries are left as they are: their outputs are not used.
    """
    return padding_mask(tokens, pad_id) & causal_mask(tokens.shape[1]).to(tokens.device)  # (B, 1, L, L)


@checked
def masked_softmax(
    scores: Float[Tensor, "*batch len_q len_k"], mask: Mask["*batch len_q len_k"]
) -> Float[Tensor, "*batch len_q len_k"]:
    """Softmax over the keys that the mask allows; the others get weight exactly 0.

    `weights_ij = exp(s_ij) / Σ_{l allowed} exp(s_il)` where the mask is True, else 0. A query that may attend to
    nothing gets a row of zeros, and its scores a gradient of zero: no NaN for finite scores, in any floating-point
    dtype. The forbidden scores become −∞, whose exponential is 0 in every dtype; −1e9 would overflow in float16, and a
    real score may be lower still.
    """
    has_key = mask.any(-1, keepdim=True)  # (..., L_q, 1), False where the whole row is masked
    opened = mask | ~has_key  # such a row is opened, so that its softmax is finite in value and gradient
    weights = scores.masked_fill(~opened, float("-inf")).softmax(dim=-1)
    return weights.masked_fill(~has_key, 0.0)  # and closed again


@checked(window="a position sees itself")
def sliding_window_mask(length: Count, window: Size) -> Bool[Tensor, "length length"]:
    """Each position may attend to itself and to the `window − 1` before it: True where `0 ≤ query − key < window`.

    Source: Beltagy, Peters & Cohan (2020), section 3.1, looking back only.
    """
    position = torch.arange(length)
    distance = position[:, None] - position  # (L, L): query minus key, how far back the key lies
    return (distance >= 0) & (distance < window)
