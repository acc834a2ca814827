"""Masks: which query may attend to which key.

A mask is a bool tensor, **True = may attend**, that broadcasts against the scores `(..., L_q, L_k)`. This is the
convention of `torch.nn.functional.scaled_dot_product_attention`; `torch.nn.MultiheadAttention` means the opposite.
"""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib._checks import check_whole, checked, got
from course_lib._typing import Bool, Count, Float, Int, Mask, Size

__all__ = ["causal_mask", "decoder_mask", "masked_softmax", "padding_mask", "sliding_window_mask"]


@checked
def padding_mask(tokens: Int[Tensor, "batch length"], pad_id: int) -> Bool[Tensor, "batch 1 1 length"]:
    """Allow every key that is not padding, for all heads and all queries; `pad_id` fills up short sequences."""
    return (tokens != pad_id)[:, None, None, :]  # (B, 1, 1, L)


@checked
def causal_mask(length: Count) -> Bool[Tensor, "length length"]:
    """Allow each position itself and the past: True where `key ≤ query`.

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
    nothing gets a row of zeros, and its scores a gradient of zero: no NaN, in any floating-point dtype. The forbidden
    scores become −∞, whose exponential is 0 in every dtype; −1e9 is out of range in float16, and a low score passes it.
    """
    has_key = mask.any(-1, keepdim=True)  # (..., L_q, 1), False where the whole row is masked
    opened = mask | ~has_key  # such a row is opened, so that its softmax is finite in value and gradient
    weights = scores.masked_fill(~opened, float("-inf")).softmax(dim=-1)
    return weights.masked_fill(~has_key, 0.0)  # and closed again


@checked(window="a position sees itself")
def sliding_window_mask(length: Count, window: Size) -> Bool[Tensor, "length length"]:
    """Allow each position itself and the `window − 1` before it: True where `0 ≤ query − key < window`.

    Source: Beltagy, Peters & Cohan (2020), section 3.1, looking back only.
    """
    position = torch.arange(length)
    distance = position[:, None] - position  # (L, L): query minus key, how far back the key lies
    return (distance >= 0) & (distance < window)


# MOVING: to course_kit.nn.attention and course_kit._checks.


def check_mask(mask: Tensor, scores_shape: tuple[int, ...]) -> None:
    """Refuse a mask that is not bool or does not broadcast against the scores.

    Args:
        mask: what the caller gave, True = may attend.
        scores_shape: `(..., L_q, L_k)`.

    Raises:
        TypeError: the mask is not a bool tensor; a float mask would be added by some functions, multiplied by others.
        ValueError: the scores have fewer than two axes, or the mask does not broadcast against them or would enlarge
            them.
    """
    _check_bool(mask)
    if len(scores_shape) < 2:
        raise ValueError(
            f"scores must have at least two axes, (..., L_q, L_k), got {tuple(scores_shape)}; for one query pass "
            f"scores[None]"
        )
    if not broadcasts_to(mask.shape, scores_shape):
        raise ValueError(
            f"mask must broadcast to the scores (..., L_q, L_k) = {tuple(scores_shape)}, got {tuple(mask.shape)}; "
            f"a padding mask is (B, 1, 1, L_k) for scores with heads and (B, 1, L_k) without, a causal one (L_q, L_k)"
        )


def _check_bool(mask: Tensor) -> None:
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise TypeError(
            f"mask must be a bool tensor with True where a query may attend, got "
            f"{getattr(mask, 'dtype', type(mask).__name__)}; "
            f"for a mask of ones and zeros pass mask.bool(), for one of zeros and -inf pass mask == 0"
        )


def broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether a tensor of this shape broadcasts against one of the target shape without enlarging it."""
    # torch.broadcast_shapes imports sympy where shapes differ: a second, and 40 MB.
    fits = all(size in (1, wanted) for size, wanted in zip(reversed(shape), reversed(target), strict=False))
    return len(shape) <= len(target) and fits


def open_empty_rows(mask: Bool[Tensor, "..."]) -> tuple[Bool[Tensor, "..."], Bool[Tensor, "..."]]:
    """Allow everything to the queries that may attend to nothing, and say which queries have a key.

    A softmax over nothing is 0 / 0. With such a row opened, the softmax is finite in value and gradient, whichever
    kernel computes it, and the caller sets its result to zero.

    Args:
        mask: bool, True = may attend, `(..., L_q, L_k)` or a shape that broadcasts to it.

    Returns:
        `(opened, has_key)`: the mask with at least two axes, and bool `(..., L_q, 1)`, False where the row was empty.

    Raises:
        TypeError: mask is not a bool tensor.
    """
    _check_bool(mask)
    mask = torch.atleast_2d(mask)
    has_key = mask.any(-1, keepdim=True)
    return mask | ~has_key, has_key


def check_tokens(tokens: Tensor, pad_id: int = 0) -> None:
    """Refuse tokens that are not a batch of ids, and a pad_id that is not an id.

    Raises:
        TypeError: tokens is not a tensor, or pad_id is not a whole number.
        ValueError: tokens is not `(B, L)`, or not of integers; or pad_id does not fit into 64 bits.
    """
    if not isinstance(tokens, Tensor):
        raise TypeError(f"tokens must be a tensor of ids (batch, length), got {got(tokens)}; pass torch.tensor(tokens)")
    if tokens.dim() != 2 or tokens.is_floating_point() or tokens.is_complex():
        raise ValueError(
            f"tokens must be integer ids (batch, length), got {got(tokens)}; for one sentence add a batch axis with "
            f"tokens[None]"
        )
    check_whole(pad_id=pad_id, least=-(2**63))
