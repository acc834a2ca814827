"""Masks: which query may attend to which key.

A mask is a bool tensor, **True = may attend**, that broadcasts against the scores `(..., L_q, L_k)`. This is the
convention of `torch.nn.functional.scaled_dot_product_attention`; `torch.nn.MultiheadAttention` means the opposite.
"""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib._typing import Bool, Float, Int
from course_lib.attention import softmax

__all__ = [
    "causal_mask",
    "check_mask",
    "decoder_mask",
    "masked_softmax",
    "padding_mask",
    "sliding_window_mask",
]


def check_mask(mask: Tensor, scores_shape: tuple[int, ...]) -> None:
    """Refuse a mask that is not bool or does not broadcast against the scores.

    Args:
        mask: what the caller gave, True = may attend.
        scores_shape: `(..., L_q, L_k)`.

    Raises:
        TypeError: the mask is not a bool tensor; a float mask would be added by some functions, multiplied by others.
        ValueError: the mask does not broadcast against the scores, or would enlarge them.
    """
    if mask.dtype != torch.bool:
        raise TypeError(
            f"mask must be a bool tensor with True where a query may attend, got {mask.dtype}; "
            f"for a mask of ones and zeros pass mask.bool(), for one of zeros and -inf pass mask == 0"
        )
    try:
        fits = torch.broadcast_shapes(mask.shape, scores_shape) == torch.Size(scores_shape)
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            f"mask must broadcast to the scores (..., L_q, L_k) = {tuple(scores_shape)}, got {tuple(mask.shape)}; "
            f"a padding mask is (B, 1, 1, L_k) for scores with heads and (B, 1, L_k) without, a causal one (L_q, L_k)"
        )


def masked_softmax(
    scores: Float[Tensor, "*batch len_q len_k"], mask: Bool[Tensor, ...]
) -> Float[Tensor, "*batch len_q len_k"]:
    """Softmax over the keys that the mask allows; the others get weight exactly 0.

    weights_ij = exp(s_ij) / Σ_{l allowed} exp(s_il) where the mask is True, else 0. A query that may attend to
    nothing gets a row of zeros, and its scores a gradient of zero: no NaN, in any floating-point dtype.

    Args:
        scores: `(..., L_q, L_k)`.
        mask: bool, True = may attend, broadcasts against the scores.

    Returns:
        Weights `(..., L_q, L_k)`.

    Raises:
        TypeError: the mask is not bool.
        ValueError: the mask does not broadcast against the scores, or would enlarge them.
    """
    check_mask(mask, scores.shape)
    # The lowest finite number of the dtype, not -inf (a row of which is NaN) and not -1e9 (out of range in float16).
    weights = softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim=-1)
    # Rows with nothing allowed are uniform by now, and a score near the minimum could leak: zero what is forbidden.
    return weights.masked_fill(~mask, 0.0)


def padding_mask(tokens: Int[Tensor, "batch length"], pad_id: int) -> Bool[Tensor, "batch 1 1 length"]:
    """Allow every key that is not padding, for all heads and all queries.

    Args:
        tokens: ids of the keys' sequence, `(B, L)`.
        pad_id: the id that fills up short sequences.

    Returns:
        bool `(B, 1, 1, L)`.
    """
    return (tokens != pad_id)[:, None, None, :]  # (B, 1, 1, L)


def causal_mask(length: int, *, device: torch.device | str | None = None) -> Bool[Tensor, "length length"]:
    """Allow each position itself and the past: True where key ≤ query.

    Args:
        length: number of positions L.
        device: where the mask is made; the default device if not given.

    Returns:
        bool `(L, L)`, lower triangle with its diagonal.

    Source: Vaswani et al. (2017), section 3.2.3.
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def decoder_mask(tokens: Int[Tensor, "batch length"], pad_id: int) -> Bool[Tensor, "batch 1 length length"]:
    """Allow what is both past (or present) and not padding: the self-attention mask of a decoder.

    Args:
        tokens: ids, `(B, L)`.
        pad_id: the id that fills up short sequences.

    Returns:
        bool `(B, 1, L, L)`. Rows of padded queries are left as they are: their outputs are not used.
    """
    return padding_mask(tokens, pad_id) & causal_mask(tokens.shape[1], device=tokens.device)  # (B, 1, L, L)


def sliding_window_mask(
    length: int, window: int, *, device: torch.device | str | None = None
) -> Bool[Tensor, "length length"]:
    """Allow each position itself and the window − 1 before it: True where 0 ≤ query − key < window.

    Args:
        length: number of positions L.
        window: how many keys a query sees at most, ≥ 1.
        device: where the mask is made; the default device if not given.

    Returns:
        bool `(L, L)`.

    Raises:
        ValueError: window is less than 1.

    Source: Beltagy, Peters & Cohan (2020), section 3.1, looking back only.
    """
    if window < 1:
        raise ValueError(f"window must be at least 1 (a position sees itself), got {window}")
    causal = causal_mask(length, device=device)
    return causal & ~causal.tril(-window)
