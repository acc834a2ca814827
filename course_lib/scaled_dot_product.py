"""Scaled dot-product attention: softmax(Q Kᵀ / √d_k) V."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from course_lib._checks import checked
from course_lib._typing import Count, Float, Mask
from course_lib.masking import masked_softmax

__all__ = ["attention_flops", "scaled_dot_product_attention", "self_attention", "softmax_backward"]


@checked(d_k="project one of them to the width of the other", len_k="each key has one value")
def scaled_dot_product_attention(
    query: Float[Tensor, "*batch len_q d_k"],
    key: Float[Tensor, "*batch len_k d_k"],
    value: Float[Tensor, "*batch len_k d_v"],
    mask: Mask["*batch len_q len_k"] | None = None,
) -> tuple[Float[Tensor, "*batch len_q d_v"], Float[Tensor, "*batch len_q len_k"]]:
    """Average the values, each weighted by how well its key fits the query; returns the output and the weights.

    `output = softmax(Q Kᵀ / √d_k) V`. The root keeps the scores' standard deviation at 1, whatever d_k is, when the
    features of query and key are independent with mean 0 and variance 1. A query that may attend to nothing gets an
    output of zeros.

    Source: Vaswani et al. (2017), section 3.2.1, equation 1.
    """
    # To divide the query is to divide the scores, and in half precision it keeps them in range.
    scores = query / math.sqrt(query.shape[-1]) @ key.transpose(-2, -1)  # (..., L_q, L_k)
    weights = torch.softmax(scores, dim=-1) if mask is None else masked_softmax(scores, mask)
    return weights @ value, weights  # (..., L_q, d_v)


@checked(
    d_model="the weight of an nn.Linear has to be transposed", d_k="queries and keys are compared feature by feature"
)
def self_attention(
    x: Float[Tensor, "*batch length d_model"],
    w_q: Float[Tensor, "d_model d_k"],
    w_k: Float[Tensor, "d_model d_k"],
    w_v: Float[Tensor, "d_model d_v"],
    mask: Mask["*batch length length"] | None = None,
) -> tuple[Float[Tensor, "*batch length d_v"], Float[Tensor, "*batch length length"]]:
    """Let the tokens of a sequence attend to each other, through a learned query, key and value for each token.

    `Q = X W_Q`, `K = X W_K` and `V = X W_V`; `output = softmax(Q Kᵀ / √d_k) V`. Tokens are rows, so they are
    multiplied by a matrix on their right. A query that may attend to nothing gets an output of zeros.

    Source: Vaswani et al. (2017), sections 3.2.1 and 3.2.3, with one head and without an output projection.
    """
    return scaled_dot_product_attention(x @ w_q, x @ w_k, x @ w_v, mask)


@checked(length="pass one gradient per weight")
def softmax_backward(
    weights: Float[Tensor, "*batch length"], grad_weights: Float[Tensor, "*batch length"]
) -> Float[Tensor, "*batch length"]:
    """Carry a gradient back through a softmax, by hand: from the weights to the scores.

    The Jacobian is `∂w_i/∂s_j = w_i (δ_ij − w_j)`, so `grad_s_j = w_j (g_j − Σ_i g_i w_i)`: a score has a positive
    gradient where g_j is above the weighted average of g. Where a weight is 0 or 1, the gradient is zero, because the
    softmax is saturated.
    """
    _check_same_shape(weights, grad_weights)
    mean = (weights * grad_weights).sum(-1, keepdim=True)  # (..., 1): the average gradient under the weights
    return weights * (grad_weights - mean)


def _check_same_shape(weights: Tensor, grad_weights: Tensor) -> None:
    if weights.shape != grad_weights.shape:
        raise ValueError(
            f"grad_weights must have the shape of weights, {tuple(weights.shape)}, got {tuple(grad_weights.shape)}; "
            f"pass one gradient per weight"
        )


@checked
def attention_flops(len_q: Count, len_k: Count, d_k: Count, d_v: Count) -> int:
    """Floating-point operations of the two matrix products of attention, with a multiply-add counted as 2.

    For each sequence and head, `Q Kᵀ` costs `2 · L_q · L_k · d_k`, and weights times `V` cost `2 · L_q · L_k · d_v`.
    The softmax is not counted.
    """
    scores = 2 * len_q * len_k * d_k  # (len_q, d_k) times (d_k, len_k)
    output = 2 * len_q * len_k * d_v  # (len_q, len_k) times (len_k, d_v)
    return scores + output
