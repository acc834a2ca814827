"""Attention with a bias on the scores and dropout, step by step and by PyTorch's fused kernels."""

from __future__ import annotations

import math
from typing import Annotated

import torch
import torch.nn.functional as F
from torch import Tensor

from course_lib._checks import checked, got
from course_lib._typing import Bool, Bounds, Float, Mask, Shape
from course_lib.attention import dot_product_score
from course_lib.masking import masked_softmax

__all__ = ["attention_with_bias", "broadcasts_to", "check_mask", "fused_attention", "unmask_empty_rows"]

Bias = Annotated[Float[Tensor, "..."], Shape("floating-point", "*batch len_q len_k", broadcast=True)]
_ADVICE = {
    "d_k": "project one of them to the width of the other",
    "len_k": "each key has one value",
    "bias": "a bias for each head is (H, L_q, L_k), of floating-point numbers",
    "dropout": "0 switches it off",
}


@checked(**_ADVICE)
def attention_with_bias(
    query: Float[Tensor, "*batch len_q d_k"],
    key: Float[Tensor, "*batch len_k d_k"],
    value: Float[Tensor, "*batch len_k d_v"],
    mask: Mask["*batch len_q len_k"] | None = None,
    *,
    bias: Bias | None = None,
    dropout: Annotated[float, Bounds(0, 1)] = 0.0,
) -> tuple[Float[Tensor, "*batch len_q d_v"], Float[Tensor, "*batch len_q len_k"]]:
    """Scaled dot-product attention with a bias on the scores and dropout on the weights; returns output and weights.

    `output = softmax(Q Kᵀ / √d_k + bias) V`. A query that may attend to nothing gets an output of zeros. The weights
    are the ones that were applied: with dropout, their rows sum to one only on average.

    Args:
        bias: added to the scaled scores, in any floating-point dtype; positions enter here (ALiBi).
        dropout: probability with which each weight is set to zero, the rest scaled up to keep the expectation. The
            caller passes 0.0 outside training.

    Source: Vaswani et al. (2017), section 3.2.1, equation 1.
    """
    # Scaling the query costs L_q · d_k products, scaling the scores L_q · L_k; the scores stay smaller, too.
    scores = dot_product_score(query / math.sqrt(query.shape[-1]), key)  # (..., L_q, L_k)
    if bias is not None:
        scores = scores + bias.to(scores.dtype)
    weights = torch.softmax(scores, dim=-1) if mask is None else masked_softmax(scores, mask)
    weights = F.dropout(weights, dropout)
    return weights @ value, weights  # (..., L_q, d_v)


@checked(**_ADVICE)
def fused_attention(
    query: Float[Tensor, "*batch len_q d_k"],
    key: Float[Tensor, "*batch len_k d_k"],
    value: Float[Tensor, "*batch len_k d_v"],
    mask: Mask["*batch len_q len_k"] | None = None,
    *,
    bias: Bias | None = None,
    dropout: Annotated[float, Bounds(0, 1)] = 0.0,
) -> Float[Tensor, "*batch len_q d_v"]:
    """The output of `attention_with_bias` without the weights, by PyTorch's own function.

    Where PyTorch has a fused kernel, it is faster and needs less memory; otherwise it computes attention step by step
    (on a CPU with dropout, for instance). A query that may attend to nothing gets an output of zeros here too, whereas
    PyTorch's kernels disagree with each other.

    Source: Dao et al. (2022) for the algorithm; `torch.nn.functional.scaled_dot_product_attention` does the work.
    """
    if bias is not None:
        bias = bias.to(query.dtype)
    if mask is None:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=bias, dropout_p=dropout)
    allowed, has_key = unmask_empty_rows(mask)
    if bias is not None:
        # torch.broadcast_shapes imports sympy: half a second, and 40 MB.
        batch = torch.broadcast_tensors(*(x[..., :0, :0] for x in (query, key, value)))[0].shape[:-2]
        scores_shape = (*batch, query.shape[-2], key.shape[-2])
        allowed = bias.expand(scores_shape).masked_fill(~allowed, float("-inf"))
    output = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed, dropout_p=dropout)
    return output.masked_fill(~has_key, 0.0)


@checked
def unmask_empty_rows(mask: Bool[Tensor, "..."]) -> tuple[Bool[Tensor, "..."], Bool[Tensor, "..."]]:
    """Allow everything to the queries that may attend to nothing, and say which queries have a key.

    A softmax over nothing is 0 / 0. In such a row, the softmax over all keys is finite in value and gradient, whichever
    kernel computes it, and the caller sets its result to zero.

    Args:
        mask: True = may attend, `(..., L_q, L_k)` or a shape that broadcasts to it.

    Returns:
        `(allowed, has_key)`: the mask with at least two axes, and `(..., L_q, 1)`, False where the row was empty.
    """
    mask = torch.atleast_2d(mask)
    has_key = mask.any(-1, keepdim=True)
    return mask | ~has_key, has_key


def check_mask(mask: Tensor, scores_shape: tuple[int, ...]) -> None:
    """Refuse a mask that is not bool or does not broadcast to the scores `(..., L_q, L_k)`.

    Raises:
        TypeError: the mask is not a bool tensor; a float mask would be added by some functions, multiplied by others.
        ValueError: the mask does not broadcast to the scores, or would enlarge them.
    """
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        raise TypeError(
            f"mask must be a bool tensor, got {got(mask)}; True where a query may attend; for a mask of ones and zeros "
            f"pass mask.bool(), for one of zeros and -inf mask == 0"
        )
    if not broadcasts_to(mask.shape, scores_shape):
        raise ValueError(
            f"mask must broadcast to the scores (..., L_q, L_k) = {tuple(scores_shape)}, got {tuple(mask.shape)}; "
            f"a padding mask is (B, 1, 1, L_k) for scores with heads and (B, 1, L_k) without, a causal one (L_q, L_k)"
        )


def broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether a tensor of this shape broadcasts against one of the target shape without enlarging it."""
    fits = all(size in (1, wanted) for size, wanted in zip(reversed(shape), reversed(target), strict=False))
    return len(shape) <= len(target) and fits
