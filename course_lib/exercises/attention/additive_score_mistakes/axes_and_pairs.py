"""Mistakes in `additive_score`: which query meets which key, and where they stand."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.additive_score import additive_score
from course_lib.exercises.attention.additive_score_mistakes.parts import additive, swap

mistake = Mistakes()


def _unpaired(place):
    """The additive score with new axes put in by `place(hidden_query, hidden_key)`."""

    def additive_score(query, key, w_query, w_key, v):
        hidden_query, hidden_key = place(query @ w_query.T, key @ w_key.T)
        return torch.tanh(hidden_query + hidden_key) @ v

    return additive_score


def _repeated(repeat_query, repeat_key):
    """The additive score over a long list of pairs, without batch dimensions."""

    def additive_score(query, key, w_query, w_key, v):
        len_q, len_k = query.shape[0], key.shape[0]
        hidden = repeat_query(query @ w_query.T, len_k) + repeat_key(key @ w_key.T, len_q)
        return (torch.tanh(hidden) @ v).view(len_q, len_k)

    return additive_score


@mistake
def summed_over_keys(query, key, w_query, w_key, v):
    """The product with `v` is summed over the keys instead of the features of the hidden layer."""
    return additive(reduce=lambda h, v: (h * v).sum(-2))(query, key, w_query, w_key, v)


@mistake
def signs_turned(query, key, w_query, w_key, v):
    """Right but for the sign."""
    return additive(after=lambda s: -s)(query, key, w_query, w_key, v)


@mistake
def concatenated(query, key, w_query, w_key, v):
    """Queries and keys are joined end to end, which works only for equal numbers of both and makes no pairs.
    Every query has to meet every key."""
    return torch.tanh(torch.cat([query, key], -1) @ torch.cat([w_query, w_key], -1).T) @ v


@mistake
def axis_of_one_left(query, key, w_query, w_key, v):
    """The numbers are right, but a last axis of length 1 is left over. There is one score per pair."""
    return additive(reduce=lambda h, v: h @ v.unsqueeze(-1))(query, key, w_query, w_key, v)


@mistake
def hidden_layer_returned(query, key, w_query, w_key, v):
    """The hidden layer itself is returned. The product with `v`, which turns it into a single number, is missing."""
    return additive(reduce=lambda h, v: h)(query, key, w_query, w_key, v)


@mistake
def squeezed(query, key, w_query, w_key, v):
    """`squeeze()` without an axis removes *every* axis of length 1, including that of a single query."""
    return additive(reduce=lambda h, v: (h @ v.unsqueeze(-1)).squeeze())(query, key, w_query, w_key, v)


@mistake
def keys_by_queries(query, key, w_query, w_key, v):
    """Rows belong to keys here, columns to queries. It should be the other way round: a row holds the scores of one
    query."""
    return _unpaired(lambda q, k: (q.unsqueeze(-3), k.unsqueeze(-2)))(query, key, w_query, w_key, v)


@mistake
def pairs_missing(query, key, w_query, w_key, v):
    """The i-th query is added to the i-th key. Every query has to meet every key, so each of the two needs a new axis
    of length 1 where the other has its positions."""
    return _unpaired(lambda q, k: (q, k))(query, key, w_query, w_key, v)


@mistake
def pairs_missing_as_a_row(query, key, w_query, w_key, v):
    """It works for a single query, as in a decoder that makes one step at a time. With several queries, each has to
    meet every key, so each of the two needs a new axis of length 1 where the other has its positions."""
    return (torch.tanh(query @ w_query.T + key @ w_key.T) @ v).unsqueeze(-2)


@mistake
def pairs_mixed(query, key, w_query, w_key, v):
    """Queries and keys are both repeated in the same order, so the rows do not cover all pairs. One of the two has to
    change slowly while the other runs through all its values."""
    return _repeated(lambda q, len_k: q.repeat(len_k, 1), lambda k, len_q: k.repeat(len_q, 1))(
        query, key, w_query, w_key, v
    )


@mistake
def pairs_in_the_keys_order(query, key, w_query, w_key, v):
    """All pairs are there, but in the wrong order: the table is filled row by row, and a row belongs to a query."""
    return _repeated(lambda q, len_k: q.repeat(len_k, 1), lambda k, len_q: k.repeat_interleave(len_q, 0))(
        query, key, w_query, w_key, v
    )


@mistake
def reshaped_keys_by_queries(query, key, w_query, w_key, v):
    """A table of keys by queries is given the right shape with `view` or `reshape`, which keeps the numbers in the same
    order. Exchanging two axes is a different operation."""
    return swap(additive_score(query, key, w_query, w_key, v)).reshape(*query.shape[:-1], key.shape[-2])


@mistake
def new_axes_from_the_left(query, key, w_query, w_key, v):
    """The new axes are counted from the left, which works only without batch dimensions. Counted from the right, they
    fit any number."""
    return _unpaired(lambda q, k: (q.unsqueeze(1), k.unsqueeze(0)))(query, key, w_query, w_key, v)


@mistake
def new_axes_after_one_batch_dimension(query, key, w_query, w_key, v):
    """The new axes are counted from the left, which fits exactly one batch dimension. Counted from the right they
    fit any number."""
    return _unpaired(lambda q, k: (q.unsqueeze(2), k.unsqueeze(1)))(query, key, w_query, w_key, v)
