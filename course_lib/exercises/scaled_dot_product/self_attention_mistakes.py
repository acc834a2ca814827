"""The mistakes in `self_attention`."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.scaled_dot_product.scaled_dot_product_attention import exercise as attention_exercise

mistake = Mistakes()


def _attend(query, key, value, mask=None, scale=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(scale or query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(-1)
    return weights @ value, weights


@mistake
def query_matrix_for_keys(x, w_q, w_k, w_v, mask=None):
    """The keys are made with the matrix of the queries. Each of the three matrices has its own role."""
    return _attend(x @ w_q, x @ w_q, x @ w_v, mask)


@mistake
def key_matrix_for_queries(x, w_q, w_k, w_v, mask=None):
    """The queries are made with the matrix of the keys. Each of the three matrices has its own role."""
    return _attend(x @ w_k, x @ w_k, x @ w_v, mask)


@mistake
def queries_and_keys_swapped(x, w_q, w_k, w_v, mask=None):
    """Queries and keys are exchanged: the query comes from the matrix of the keys. Rows of the scores belong to
    queries, columns to keys."""
    return _attend(x @ w_k, x @ w_q, x @ w_v, mask)


@mistake
def key_matrix_for_values(x, w_q, w_k, w_v, mask=None):
    """The values are made with the matrix of the keys. The features that a token passes on need not be those by which
    it is found."""
    return _attend(x @ w_q, x @ w_k, x @ w_k, mask)


@mistake
def query_matrix_for_values(x, w_q, w_k, w_v, mask=None):
    """The values are made with the matrix of the queries. Each of the three matrices has its own role."""
    return _attend(x @ w_q, x @ w_k, x @ w_q, mask)


@mistake
def queries_not_projected(x, w_q, w_k, w_v, mask=None):
    """The vectors of x are used as queries. Which matrix turns a token's vector into its query?"""
    return _attend(x, x @ w_k, x @ w_v, mask)


@mistake
def keys_not_projected(x, w_q, w_k, w_v, mask=None):
    """The vectors of x are used as keys. Which matrix turns a token's vector into its key?"""
    return _attend(x @ w_q, x, x @ w_v, mask)


@mistake
def scores_from_x(x, w_q, w_k, w_v, mask=None):
    """The scores compare the vectors of x with each other, and `w_q` and `w_k` are not used. They should compare
    queries with keys."""
    return _attend(x, x, x @ w_v, mask)


@mistake
def scores_from_x_with_the_right_scale(x, w_q, w_k, w_v, mask=None):
    """The scores are dot products of the vectors of x with each other: the matrices `w_q` and `w_k` change no score.
    They should compare queries with keys. (The root of d_k in the divisor is right.)"""
    return _attend(x, x, x @ w_v, mask, scale=w_k.shape[-1])


@mistake
def scores_from_x_without_scale(x, w_q, w_k, w_v, mask=None):
    """Two things: the scores compare the vectors of x with each other, where they should compare queries with keys; and
    they are not scaled."""
    return _attend(x, x, x @ w_v, mask, scale=1)


@mistake
def x_for_everything(x, w_q, w_k, w_v, mask=None):
    """The vectors of x attend to each other as they are: none of the three matrices is used. Which of them makes the
    queries, which the keys, and which the values?"""
    return _attend(x, x, x, mask)


@mistake
def values_not_projected(x, w_q, w_k, w_v, mask=None):
    """The vectors of x themselves are averaged. The output is an average of *values*, which have their own matrix."""
    return _attend(x @ w_q, x @ w_k, x, mask)


@mistake
def values_projected_twice(x, w_q, w_k, w_v, mask=None):
    """The matrix of the values is applied twice, before the average and after it. Once is enough."""
    output, weights = _attend(x @ w_q, x @ w_k, x @ w_v, mask)
    return output @ w_v, weights


@mistake
def scale_by_model_width(x, w_q, w_k, w_v, mask=None):
    """The scores are divided by the root of the width of x. How many products does each score add up?"""
    return _attend(x @ w_q, x @ w_k, x @ w_v, mask, scale=x.shape[-1])


@mistake
def scale_by_length(x, w_q, w_k, w_v, mask=None):
    """The scores are divided by the root of the number of tokens. How many products does each score add up?"""
    return _attend(x @ w_q, x @ w_k, x @ w_v, mask, scale=x.shape[-2])


@mistake
def all_matrices_transposed(x, w_q, w_k, w_v, mask=None):
    """The matrices are transposed before the products. Here they are `(d_model, …)` already, unlike the weight of an
    `nn.Linear`."""
    return _attend(x @ w_q.T, x @ w_k.T, x @ w_v.T, mask)


@mistake
def matrices_on_the_left(x, w_q, w_k, w_v, mask=None):
    """The matrices stand to the left of x. Tokens are rows here, so a matrix that changes their features stands to
    the right."""
    return _attend(w_q @ x, w_k @ x, w_v @ x, mask)


@mistake
def residual_added(x, w_q, w_k, w_v, mask=None):
    """The vectors of x are added to the output. A residual connection belongs to the layer around the attention."""
    output, weights = _attend(x @ w_q, x @ w_k, x @ w_v, mask)
    return output + x, weights


@mistake
def keys_transposed_with_their_batch(x, w_q, w_k, w_v, mask=None):
    """The keys are transposed by `.T`, which reverses all axes, those of the batch included. Only the last two are the
    matrix of one sequence."""
    return _attend(x @ w_q, (x @ w_k).permute(*range(x.dim() - 1, -1, -1)).transpose(-2, -1), x @ w_v, mask)


@mistake
def sequences_joined(x, w_q, w_k, w_v, mask=None):
    """All sequences of the batch are joined into one before they attend. Each sequence attends to its own tokens
    only."""
    together = x.reshape(-1, x.shape[-1])
    output, weights = _attend(together @ w_q, together @ w_k, together @ w_v, mask)
    return output.reshape(*x.shape[:-1], -1), weights


@mistake
def projections_detached(x, w_q, w_k, w_v, mask=None):
    """The projections are detached from the graph, so the three matrices get no gradient and cannot be learned."""
    with torch.no_grad():
        query, key, value = x @ w_q, x @ w_k, x @ w_v
    return _attend(query, key, value, mask)


def _around(attention):
    """Self-attention around a wrong attention."""
    return lambda x, w_q, w_k, w_v, mask=None: attention(x @ w_q, x @ w_k, x @ w_v, mask)


# The attention among the projections has its own exercise.
mistake.contains(attention_exercise, _around, called="attention")
