"""Mistakes in `additive_score`: another score, and what it is made from."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.additive_score import additive_score
from course_lib.exercises.attention.additive_score_mistakes.parts import additive

mistake = Mistakes()


@mistake
def multiplied(query, key, w_query, w_key, v):
    """The projected query and key are multiplied. In the additive score they are added, which gives it its name."""
    return additive(join=torch.mul)(query, key, w_query, w_key, v)


@mistake
def subtracted(query, key, w_query, w_key, v):
    """The projected key is taken from the projected query. The formula adds them."""
    return additive(join=torch.sub)(query, key, w_query, w_key, v)


@mistake
def dot_product(query, key, w_query, w_key, v):
    """The projected queries and keys are multiplied as in the dot-product score. The additive score sends their sum
    through a hidden layer."""
    return (query @ w_query.T) @ (key @ w_key.T).transpose(-2, -1)


@mistake
def dot_product_weighted(query, key, w_query, w_key, v):
    """This is a dot product of the projections, weighted by `v`. The additive score adds the projections and applies a
    tanh."""
    return (query @ w_query.T * v) @ (key @ w_key.T).transpose(-2, -1)


@mistake
def queries_forgotten(query, key, w_query, w_key, v):
    """The score does not depend on the query, so every query would attend to the same keys."""
    return additive(join=lambda q, k: 0 * q + k)(query, key, w_query, w_key, v)


@mistake
def keys_forgotten(query, key, w_query, w_key, v):
    """The score does not depend on the key, so all keys would get the same weight."""
    return additive(join=lambda q, k: q + 0 * k)(query, key, w_query, w_key, v)


@mistake
def softmaxed(query, key, w_query, w_key, v):
    """These are weights: a softmax over the keys has been applied. The exercise asks for the scores that go into it."""
    return additive(after=lambda s: s.softmax(-1))(query, key, w_query, w_key, v)


@mistake
def softmaxed_over_queries(query, key, w_query, w_key, v):
    """A softmax has been applied, and over the queries at that. The exercise asks for the scores before any softmax."""
    return additive(after=lambda s: s.softmax(-2))(query, key, w_query, w_key, v)


@mistake
def scaled_by_hidden_width(query, key, w_query, w_key, v):
    """The scores are divided by the root of the hidden width. That division belongs to the scaled dot product; here
    `v` is learned and takes care of the size."""
    return additive(reduce=lambda h, v: h @ v / h.shape[-1] ** 0.5)(query, key, w_query, w_key, v)


@mistake
def scaled_by_key_width(query, key, w_query, w_key, v):
    """The scores are divided by the root of the keys' width. That division belongs to the scaled dot product."""
    return additive_score(query, key, w_query, w_key, v) / key.shape[-1] ** 0.5


@mistake
def scaled_by_query_width(query, key, w_query, w_key, v):
    """The scores are divided by the root of the queries' width. That division belongs to the scaled dot product."""
    return additive_score(query, key, w_query, w_key, v) / query.shape[-1] ** 0.5


@mistake
def weights_not_turned(query, key, w_query, w_key, v):
    """Rows are multiplied by the weights as they are stored. `w_query` is (d_attn, d_q): its *last* axis has to
    meet the features of a query. Write both shapes side by side."""
    return torch.tanh((query @ w_query).unsqueeze(-2) + (key @ w_key).unsqueeze(-3)) @ v


@mistake
def weights_exchanged(query, key, w_query, w_key, v):
    """Queries are multiplied by the matrix of the keys, and keys by that of the queries. The names say which
    belongs to which."""
    return additive_score(query, key, w_key, w_query, v)


@mistake
def queries_and_keys_exchanged(query, key, w_query, w_key, v):
    """Queries and keys are exchanged before the projection, so each is multiplied by the matrix of the other."""
    return additive_score(key, query, w_query, w_key, v)


@mistake
def one_matrix_for_both(query, key, w_query, w_key, v):
    """The same matrix is used for queries and keys. Each has its own; they may even differ in width."""
    return additive_score(query, key, w_query, w_query, v)


@mistake
def keys_matrix_for_both(query, key, w_query, w_key, v):
    """The matrix of the keys is used for the queries as well. Each has its own; they may even differ in width."""
    return additive_score(query, key, w_key, w_key, v)


@mistake
def before_the_projection(query, key, w_query, w_key, v):
    """Queries and keys are added before they are projected. They may differ in width; only the hidden layer has one
    width for both."""
    return torch.tanh((query.unsqueeze(-2) + key.unsqueeze(-3)) @ w_query.T) @ v


@mistake
def all_axes_turned(query, key, w_query, w_key, v):
    """`.T` on queries or keys reverses all axes, the batch included. Each row is a vector already; only the weights
    have to be transposed."""
    return torch.tanh((w_query @ query.T).T.unsqueeze(-2) + (w_key @ key.T).T.unsqueeze(-3)) @ v


@mistake
def float32_inside(query, key, w_query, w_key, v):
    """Somewhere inside, the numbers become float32, so float64 input loses half of its digits."""
    return additive_score(query.float(), key.float(), w_query.float(), w_key.float(), v.float()).to(query.dtype)


@mistake
def loops_without_batch(query, key, w_query, w_key, v):
    """The loops run over the first axis of queries and keys, which is the batch if there is one.
    Broadcasting needs no loops and fits any number of batch dimensions."""
    scores = query.new_zeros(query.shape[0], key.shape[0])
    for i in range(query.shape[0]):
        for j in range(key.shape[0]):
            scores[i, j] = v @ torch.tanh(w_query @ query[i] + w_key @ key[j])
    return scores
