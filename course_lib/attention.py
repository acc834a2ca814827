"""Attention as a weighted average: scores measure how well a query fits each key; a softmax makes them weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from course_lib._checks import checked
from course_lib._typing import Float, Positive, Size

__all__ = ["AdditiveScore", "additive_score", "attend", "dot_product_score", "kernel_regression", "softmax"]


@checked
def softmax(scores: Float[Tensor, "..."], dim: int = -1) -> Float[Tensor, "..."]:
    """Turn finite scores into weights that sum to one along `dim`; in attention, the axis of the keys.

    `softmax(s)_j = exp(s_j) / Σ_l exp(s_l)`. A constant added to all scores cancels, so the largest score is
    subtracted first: every exponent is then at most 0 and nothing overflows, however large the scores are. Scores
    are logarithms of weights: a difference of 1 is a factor e.

    Raises:
        ValueError: the scores have no axis `dim`, or nothing along it.

    Source: Bridle (1990); the shift is folklore, analysed by Blanchard, Higham & Higham (2021).
    """
    _check_axis(scores, dim)
    shifted = scores - scores.amax(dim, keepdim=True)  # the largest is 0 now, so that no exponential overflows
    exponentials = shifted.exp()
    return exponentials / exponentials.sum(dim, keepdim=True)


def _check_axis(scores: Tensor, dim: int) -> None:
    if not -scores.dim() <= dim < scores.dim():
        raise ValueError(f"dim must be an axis of scores {tuple(scores.shape)}, got {dim}; -1 is the last one")
    if not scores.shape[dim]:
        raise ValueError(f"scores must have an entry along dim = {dim}, got {tuple(scores.shape)}; pass some keys")


@checked(d_k="project one of them to the width of the other")
def dot_product_score(
    query: Float[Tensor, "*batch len_q d_k"], key: Float[Tensor, "*batch len_k d_k"]
) -> Float[Tensor, "*batch len_q len_k"]:
    """Score every query against every key by their dot product.

    `score_ij = q_i · k_j = ‖q_i‖ ‖k_j‖ cos(angle between them)`.

    Source: Luong, Pham & Manning (2015), section 3.1, "dot".
    """
    return query @ key.transpose(-2, -1)  # (..., L_q, L_k)


@checked(d_attn="it is the width of the hidden layer", d_q="w_query multiplies queries", d_k="w_key multiplies keys")
def additive_score(
    query: Float[Tensor, "*batch len_q d_q"],
    key: Float[Tensor, "*batch len_k d_k"],
    w_query: Float[Tensor, "d_attn d_q"],
    w_key: Float[Tensor, "d_attn d_k"],
    v: Float[Tensor, " d_attn"],
) -> Float[Tensor, "*batch len_q len_k"]:
    """Score every query against every key by a network with one hidden layer.

    `score_ij = v · tanh(W_query q_i + W_key k_j)`. Queries and keys may have different widths. The hidden
    layer holds `L_q · L_k · d_attn` numbers for each pair of sequences.

    Source: Bahdanau, Cho & Bengio (2015), appendix A.1.2.
    """
    hidden_query = (query @ w_query.T).unsqueeze(-2)  # (..., L_q, 1, d_attn)
    hidden_key = (key @ w_key.T).unsqueeze(-3)  # (..., 1, L_k, d_attn)
    return torch.tanh(hidden_query + hidden_key) @ v  # (..., L_q, L_k)


@checked(len_k="the last axis of the scores counts keys, and each key has one value")
def attend(
    scores: Float[Tensor, "*batch len_q len_k"], value: Float[Tensor, "*batch len_k d_v"]
) -> tuple[Float[Tensor, "*batch len_q d_v"], Float[Tensor, "*batch len_q len_k"]]:
    """Average the values, each weighted by the softmax of its score; returns the output and the weights.

    `output_i = Σ_j weights_ij v_j` with `weights_i = softmax(scores_i)`.

    Source: Bahdanau, Cho & Bengio (2015), equations 5 and 6.
    """
    weights = torch.softmax(scores, dim=-1)  # (..., L_q, L_k)
    return weights @ value, weights  # (..., L_q, d_v)


@checked(m="pass one y for each known x", bandwidth="it is the width of the kernel in units of x")
def kernel_regression(
    x_query: Float[Tensor, " n"], x_key: Float[Tensor, " m"], y_key: Float[Tensor, " m"], bandwidth: Positive
) -> Float[Tensor, " n"]:
    """Predict y at `x_query` as a weighted average of the known `y_key`, in which the nearest points count most.

    `f(x) = Σ_j K(x − x_j) y_j / Σ_l K(x − x_l)` with `K(u) = exp(−u² / (2 · bandwidth²))`. This is attention with the
    score `−(x − x_j)² / (2 · bandwidth²)`. Far from all keys the nearest ones decide; while the scores are finite,
    nothing is divided by zero.

    Source: Nadaraya (1964); Watson (1964).
    """
    distance = x_query.unsqueeze(-1) - x_key  # (n, m)
    scores = -0.5 * (distance / bandwidth) ** 2  # logarithms of the kernel
    return torch.softmax(scores, dim=-1) @ y_key  # (n,)


@checked
class AdditiveScore(nn.Module):
    """The additive score with its parameters: `w_query`, `w_key` and `v` of `additive_score`."""

    def __init__(self, d_query: Size, d_key: Size, d_attn: Size):
        super().__init__()
        self.w_query = nn.Parameter(nn.init.xavier_uniform_(torch.empty(d_attn, d_query)))
        self.w_key = nn.Parameter(nn.init.xavier_uniform_(torch.empty(d_attn, d_key)))
        # Initialised as a (1, d_attn) matrix: v maps the hidden layer to one number, and Xavier needs two axes.
        self.v = nn.Parameter(nn.init.xavier_uniform_(torch.empty(1, d_attn)).squeeze(0))

    def forward(
        self, query: Float[Tensor, "*batch len_q d_query"], key: Float[Tensor, "*batch len_k d_key"]
    ) -> Float[Tensor, "*batch len_q len_k"]:
        """Scores of all queries against all keys."""
        return additive_score(query, key, self.w_query, self.w_key, self.v)
