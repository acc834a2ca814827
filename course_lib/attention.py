"""Attention as a weighted average: scores measure how well a query fits each key; a softmax makes them weights."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from course_lib._checks import check_axes, check_axis, check_dtypes, check_number, check_whole
from course_lib._typing import Float

__all__ = ["AdditiveScore", "additive_score", "attend", "dot_product_score", "kernel_regression", "softmax"]


def softmax(scores: Float[Tensor, "*shape"], dim: int = -1) -> Float[Tensor, "*shape"]:
    """Turn scores into positive weights that sum to one along `dim`.

    `softmax(s)_j = exp(s_j) / Σ_l exp(s_l)`. A constant added to all scores cancels, so the largest score is
    subtracted first: every exponent is then at most 0 and nothing overflows, however large the scores are.

    Args:
        scores: real numbers of any shape, in nats (a difference of 1 is a factor e between weights).
        dim: the axis that sums to one; in attention the axis of the keys.

    Returns:
        Weights of the same shape, dtype and device.

    Raises:
        TypeError: scores is not a floating-point tensor, or dim is not a whole number.
        ValueError: the scores have no axis `dim`.

    Source: Bridle (1990); the shift is folklore, analysed by Blanchard, Higham & Higham (2021).
    """
    check_axis(dim, scores=scores)
    if scores.shape[dim] == 0:
        return scores.clone()  # nothing to choose from, and no largest score
    # The shift cancels in the value and so in the gradient: detached, it costs nothing in the backward pass.
    shifted = scores - scores.amax(dim, keepdim=True).detach()
    exponentials = shifted.exp()
    return exponentials / exponentials.sum(dim, keepdim=True)


def dot_product_score(
    query: Float[Tensor, "*batch len_q d_k"], key: Float[Tensor, "*batch len_k d_k"]
) -> Float[Tensor, "*batch len_q len_k"]:
    """Score every query against every key by their dot product.

    `score_ij = q_i · k_j = ‖q_i‖ ‖k_j‖ cos(angle between them)`.

    Args:
        query: `(..., L_q, d_k)`.
        key: `(..., L_k, d_k)`.

    Returns:
        Scores `(..., L_q, L_k)`.

    Raises:
        TypeError: query and key are not floating-point tensors of one dtype.
        ValueError: query and key differ in their last axis, or belong to different batches.

    Source: Luong, Pham & Manning (2015), section 3.1, "dot".
    """
    check_axes(query=query, key=key)
    check_features(query, key)
    return query @ key.transpose(-2, -1)  # (..., L_q, L_k)


def check_features(query: Tensor, key: Tensor) -> None:
    """Refuse a query and a key that cannot be multiplied.

    Raises:
        ValueError: they differ in their last axis.
    """
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"query and key must have the same number of features in their last axis, got "
            f"query {tuple(query.shape)} and key {tuple(key.shape)}; project one of them to the width of the other"
        )


def additive_score(
    query: Float[Tensor, "*batch len_q d_q"],
    key: Float[Tensor, "*batch len_k d_k"],
    w_query: Float[Tensor, "d_attn d_q"],
    w_key: Float[Tensor, "d_attn d_k"],
    v: Float[Tensor, " d_attn"],
) -> Float[Tensor, "*batch len_q len_k"]:
    """Score every query against every key by a network with one hidden layer.

    `score_ij = v · tanh(W_query q_i + W_key k_j)`. Queries and keys may differ in width.

    Args:
        query: `(..., L_q, d_q)`.
        key: `(..., L_k, d_k)`.
        w_query: `(d_attn, d_q)`.
        w_key: `(d_attn, d_k)`.
        v: `(d_attn,)`.

    Returns:
        Scores `(..., L_q, L_k)`. The hidden layer holds `L_q · L_k · d_attn` numbers while they are computed.

    Raises:
        TypeError: an argument is not a floating-point tensor, or two differ in their dtype.
        ValueError: a weight does not fit the width of the query or the key, or these belong to different batches.

    Source: Bahdanau, Cho & Bengio (2015), appendix A.1.2.
    """
    check_axes(query=query, key=key)
    check_dtypes(query=query, w_query=w_query, w_key=w_key, v=v)
    _check_hidden_layer(query, key, w_query, w_key, v)
    hidden_query = (query @ w_query.T).unsqueeze(-2)  # (..., L_q, 1, d_attn)
    hidden_key = (key @ w_key.T).unsqueeze(-3)  # (..., 1, L_k, d_attn)
    return torch.tanh(hidden_query + hidden_key) @ v  # (..., L_q, L_k)


def _check_hidden_layer(query: Tensor, key: Tensor, w_query: Tensor, w_key: Tensor, v: Tensor) -> None:
    if v.dim() != 1:
        raise ValueError(f"v must be (d_attn,), got {tuple(v.shape)}; it maps the hidden layer to one score")
    for name, weight, tensor in (("w_query", w_query, query), ("w_key", w_key, key)):
        if weight.shape != (v.shape[0], tensor.shape[-1]):
            raise ValueError(
                f"{name} must be (d_attn, features) = {(v.shape[0], tensor.shape[-1])}, got {tuple(weight.shape)}; "
                f"d_attn is the length of v, features the last axis of what the weight multiplies"
            )


def attend(
    scores: Float[Tensor, "*batch len_q len_k"], value: Float[Tensor, "*batch len_k d_v"]
) -> tuple[Float[Tensor, "*batch len_q d_v"], Float[Tensor, "*batch len_q len_k"]]:
    """Average the values, each weighted by the softmax of its score.

    `output_i = Σ_j weights_ij v_j` with `weights_i = softmax(scores_i)`.

    Args:
        scores: `(..., L_q, L_k)`.
        value: `(..., L_k, d_v)`.

    Returns:
        `(output, weights)`: `(..., L_q, d_v)` and `(..., L_q, L_k)`.

    Raises:
        TypeError: scores and value are not floating-point tensors of one dtype.
        ValueError: the scores do not have one column per value, or scores and values belong to different batches.

    Source: Bahdanau, Cho & Bengio (2015), equations 5 and 6.
    """
    check_axes(scores=scores, value=value)
    if scores.shape[-1] != value.shape[-2]:
        raise ValueError(
            f"scores must have one column per value, got scores {tuple(scores.shape)} for values {tuple(value.shape)}; "
            f"the last axis of the scores counts keys, and each key has one value"
        )
    weights = softmax(scores, dim=-1)
    return weights @ value, weights  # (..., L_q, d_v)


def kernel_regression(
    x_query: Float[Tensor, " n"], x_key: Float[Tensor, " m"], y_key: Float[Tensor, " m"], bandwidth: float
) -> Float[Tensor, " n"]:
    """Predict y at `x_query` as a weighted average of the known `y_key`, in which the nearest points count most.

    `f(x) = Σ_j K(x − x_j) y_j / Σ_l K(x − x_l)` with `K(u) = exp(−u² / (2 · bandwidth²))`. This is attention with the
    score `−(x − x_j)² / (2 · bandwidth²)`.

    Args:
        x_query: `(n,)`, where to predict.
        x_key: `(m,)`, where y is known.
        y_key: `(m,)`, the known values.
        bandwidth: width of the kernel in the units of x, > 0.

    Returns:
        Predictions `(n,)`; far from all keys, the nearest keys decide, and nothing is divided by zero.

    Raises:
        TypeError: x_query, x_key and y_key are not floating-point tensors of one dtype, or bandwidth is not a number.
        ValueError: bandwidth is not positive and finite, or the shapes do not fit.

    Source: Nadaraya (1964); Watson (1964).
    """
    check_dtypes(x_query=x_query, x_key=x_key, y_key=y_key)
    check_number("bandwidth", bandwidth)
    if not 0 < bandwidth < math.inf:
        raise ValueError(
            f"bandwidth must be positive and finite, got {bandwidth}; it is the width of the kernel in units of x"
        )
    if x_query.dim() != 1 or x_key.dim() != 1 or x_key.shape != y_key.shape:
        raise ValueError(
            f"expected x_query (n,), x_key (m,) and y_key (m,), got {tuple(x_query.shape)}, {tuple(x_key.shape)} and "
            f"{tuple(y_key.shape)}; pass one y for each known x"
        )
    distance = x_query.unsqueeze(-1) - x_key  # (n, m)
    output, _ = attend(-0.5 * (distance / bandwidth) ** 2, y_key.unsqueeze(-1))  # (n, 1)
    return output.squeeze(-1)  # (n,)


class AdditiveScore(nn.Module):
    """The additive score with its parameters: `w_query`, `w_key` and `v` of `additive_score`.

    Args:
        d_query: features of a query.
        d_key: features of a key.
        d_attn: width of the hidden layer.
    """

    def __init__(self, d_query: int, d_key: int, d_attn: int):
        super().__init__()
        check_whole(d_query=d_query, d_key=d_key, d_attn=d_attn)
        self.w_query = nn.Parameter(nn.init.xavier_uniform_(torch.empty(d_attn, d_query)))
        self.w_key = nn.Parameter(nn.init.xavier_uniform_(torch.empty(d_attn, d_key)))
        # As a (1, d_attn) matrix: v maps the hidden layer to one number.
        self.v = nn.Parameter(nn.init.xavier_uniform_(torch.empty(1, d_attn)).squeeze(0))

    def forward(
        self, query: Float[Tensor, "*batch len_q d_query"], key: Float[Tensor, "*batch len_k d_key"]
    ) -> Float[Tensor, "*batch len_q len_k"]:
        """Scores `(..., L_q, L_k)` of queries `(..., L_q, d_query)` against keys `(..., L_k, d_key)`."""
        return additive_score(query, key, self.w_query, self.w_key, self.v)
