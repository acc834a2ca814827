"""Scaled dot-product attention: softmax(Q Kᵀ / √d_k) V."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from course_kit._checks import check_axes, check_finite, check_floats
from course_lib._checks import checked
from course_lib._typing import Bool, Count, Float, Mask
from course_lib.attention import dot_product_score
from course_lib.masking import broadcasts_to, check_mask, masked_softmax, open_empty_rows

__all__ = ["attention_flops", "scaled_dot_product_attention", "self_attention", "softmax_backward"]


@checked(d_k="project one of them to the width of the other", len_k="each key has one value")
def scaled_dot_product_attention(
    query: Float[Tensor, "*batch len_q d_k"],
    key: Float[Tensor, "*batch len_k d_k"],
    value: Float[Tensor, "*batch len_k d_v"],
    mask: Mask["*batch len_q len_k"] | None = None,
) -> tuple[Float[Tensor, "*batch len_q d_v"], Float[Tensor, "*batch len_q len_k"]]:
    """Average the values, each weighted by how well its key fits the query; returns the output and the weights.

    `output = softmax(Q Kᵀ / √d_k) V`. The root keeps the scores' standard deviation at 1 when the features of query
    and key are independent with variance 1, whatever d_k is. A query that may attend to nothing gets an output of
    zeros.

    Source: Vaswani et al. (2017), section 3.2.1, equation 1.
    """
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (..., L_q, L_k)
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
    """Carry a gradient back through a softmax, by hand: from that of the weights to that of the scores.

    The Jacobian is `∂w_i/∂s_j = w_i (δ_ij − w_j)`, so `grad_s_j = w_j (g_j − Σ_i g_i w_i)`: a score has a positive
    gradient where g_j is above the weighted average of g. Where a weight is 0 or 1, the gradient is zero, because the
    softmax is saturated.
    """
    mean = (weights * grad_weights).sum(-1, keepdim=True)  # (..., 1): the average gradient under the weights
    return weights * (grad_weights - mean)


@checked
def attention_flops(len_q: Count, len_k: Count, d_k: Count, d_v: Count) -> int:
    """Floating-point operations of the two matrix products of attention, with a multiply-add counted as 2.

    `Q Kᵀ` costs `2 · L_q · L_k · d_k`, and weights times `V` cost `2 · L_q · L_k · d_v`. The softmax is not counted.
    """
    scores = 2 * len_q * len_k * d_k  # (len_q, d_k) times (d_k, len_k)
    output = 2 * len_q * len_k * d_v  # (len_q, len_k) times (len_k, d_v)
    return scores + output


# MOVING: to course_kit.nn.attention.


def attention_with_bias(
    query: Float[Tensor, "*batch len_q d_k"],
    key: Float[Tensor, "*batch len_k d_k"],
    value: Float[Tensor, "*batch len_k d_v"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    bias: Float[Tensor, "..."] | None = None,
    dropout: float = 0.0,
) -> tuple[Float[Tensor, "*batch len_q d_v"], Float[Tensor, "*batch len_q len_k"]]:
    """Average the values, each weighted by how well its key fits the query.

    `output = softmax(Q Kᵀ / √d_k + bias) V`. The root keeps the scores' standard deviation at 1 when the features of
    query and key are independent with variance 1, whatever d_k is.

    Args:
        query: `(..., L_q, d_k)`.
        key: `(..., L_k, d_k)`.
        value: `(..., L_k, d_v)`.
        mask: bool, True = may attend, broadcasts against `(..., L_q, L_k)`. A query that may attend to nothing gets
            an output of zeros.
        bias: added to the scaled scores, broadcasts against `(..., L_q, L_k)`; positions enter here (ALiBi).
        dropout: probability with which each weight is set to zero, the rest scaled up to keep the expectation. The
            caller passes 0.0 outside training.

    Returns:
        `(output, weights)`: `(..., L_q, d_v)` and `(..., L_q, L_k)`. The weights are the ones that were applied: with
        dropout, their rows sum to one only on average.

    Raises:
        TypeError: the mask is not bool, query, key and value are not of one floating-point dtype, the bias is not a
            floating-point tensor, or dropout is not a number.
        ValueError: shapes do not fit together (the message says which), or dropout is not a probability.

    Source: Vaswani et al. (2017), section 3.2.1, equation 1.
    """
    _check_inputs(query, key, value, bias, dropout)
    # Scaling the query costs L_q · d_k products, scaling the scores L_q · L_k; the result is the same.
    scores = dot_product_score(query / math.sqrt(query.shape[-1]), key)  # (..., L_q, L_k)
    if bias is not None:
        scores = scores + bias.to(scores.dtype)
    # torch.softmax computes what attention.softmax does, in one pass over memory instead of four.
    weights = torch.softmax(scores, dim=-1) if mask is None else masked_softmax(scores, mask)
    weights = F.dropout(weights, dropout)
    return weights @ value, weights  # (..., L_q, d_v)


def fused_attention(
    query: Float[Tensor, "*batch len_q d_k"],
    key: Float[Tensor, "*batch len_k d_k"],
    value: Float[Tensor, "*batch len_k d_v"],
    mask: Bool[Tensor, "..."] | None = None,
    *,
    bias: Float[Tensor, "..."] | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "*batch len_q d_v"]:
    """The same output without the weights, by PyTorch's own function: less memory and more speed where it is fused.

    Arguments and errors are those of `scaled_dot_product_attention`. A query that may attend to nothing gets an output
    of zeros here too, whereas PyTorch's own kernels disagree with each other. PyTorch has a fused kernel for most
    inputs, and otherwise computes attention explicitly (on a CPU with dropout, for instance).

    Source: Dao et al. (2022) for the algorithm; `torch.nn.functional.scaled_dot_product_attention` does the work.
    """
    _check_inputs(query, key, value, bias, dropout)
    if bias is not None:
        bias = bias.to(query.dtype)
    if mask is None:
        return F.scaled_dot_product_attention(query, key, value, attn_mask=bias, dropout_p=dropout)
    scores_shape = (*query.shape[:-1], key.shape[-2])
    check_mask(mask, scores_shape)
    allowed, has_key = open_empty_rows(mask)
    if bias is not None:
        allowed = bias.expand(scores_shape).masked_fill(~allowed, float("-inf"))
    output = F.scaled_dot_product_attention(query, key, value, attn_mask=allowed, dropout_p=dropout)
    return output.masked_fill(~has_key, 0.0)


def check_attention_shapes(query: Tensor, key: Tensor, value: Tensor) -> None:
    """Refuse a query, keys and values that do not belong together.

    Raises:
        TypeError: one is not a floating-point tensor, or they differ in their dtype.
        ValueError: their numbers of features, their lengths or their leading axes do not fit together.
    """
    check_axes(query=query, key=key, value=value)
    if query.shape[-1] != key.shape[-1]:
        raise ValueError("query and key must have the same number of features")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"key and value must have the same length (second axis from the right), got key {tuple(key.shape)} and "
            f"value {tuple(value.shape)}; each key has one value"
        )


def _check_inputs(query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, dropout: float) -> None:
    check_attention_shapes(query, key, value)
    if dropout != 0.0:
        check_finite("dropout", dropout, 0, 1)
    scores_shape = (*query.shape[:-1], key.shape[-2])
    if bias is None:
        return
    check_floats(bias=bias)
    if not broadcasts_to(bias.shape, scores_shape):
        raise ValueError(
            f"bias must broadcast to the scores (..., L_q, L_k) = {scores_shape}, got {tuple(bias.shape)}; "
            f"a bias for each head is (H, L_q, L_k)"
        )
