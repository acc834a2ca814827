"""Mistakes in `linear_attention`: which positions an output depends on."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.linear_attention_mistakes.parts import linear_with, positive

mistake = Mistakes()


def _running(update=lambda old, new: old + new, *, read_before=False, of_total=None):
    """The recurrent form with another update of the state, or another moment at which it is read."""

    def solution(query, key, value):
        query, key = positive(query), positive(key)
        state, total, outputs = 0 * key[..., 0, :, None] * value[..., 0, None, :], 0 * key[..., 0, :], []
        for q, k, v in zip(query.unbind(-2), key.unbind(-2), value.unbind(-2), strict=True):
            before = state, total
            state, total = update(state, k[..., :, None] * v[..., None, :]), (of_total or update)(total, k)
            seen, weight = before if read_before else (state, total)
            outputs.append((q[..., None] * seen).sum(-2) / (q * weight).sum(-1, keepdim=True))
        return torch.stack(outputs, -2)

    return solution


def _cumulated(sums):
    """The parallel form with other running sums than those along the positions."""

    def solution(query, key, value):
        query, key = positive(query), positive(key)
        state = sums(key[..., :, None] * value[..., None, :], extra=1)  # (..., L, d_k, d_v)
        total = sums(key, extra=0)  # (..., L, d_k)
        return (query[..., None] * state).sum(-2) / (query * total).sum(-1, keepdim=True)

    return solution


@mistake(look="masking: Causal mask")
def not_causal(query, key, value):
    """Every position averages the values of the whole sequence, later ones included. The sums run over j ≤ i only."""
    return linear_with(past=lambda scores: scores)(query, key, value)


@mistake(look="masking: Causal mask")
def only_later_positions(query, key, value):
    """Every position averages its own value and *later* ones: this is the other triangle of the matrix."""
    return linear_with(past=lambda scores: scores.triu())(query, key, value)


@mistake
def own_position_excluded(query, key, value):
    """A position does not count itself, so the first one has nothing to average and becomes 0 / 0. The sums run over j
    ≤ i. Is the state read before it is updated?"""
    return _running(read_before=True)(query, key, value)


@mistake
def own_position_excluded_without_nan(query, key, value):
    """A position does not count itself: the sums run over j < i, where j ≤ i is asked for, and the output of the first
    position is zero."""
    return own_position_excluded(query, key, value).nan_to_num(0.0)


@mistake
def own_position_missing_above(query, key, value):
    """The denominator counts the position itself, but the numerator does not. The state has to be updated before the
    output is computed."""
    return linear_with(
        past=lambda scores: scores.tril(-1),
        divisor=lambda weights, scores, query, key: scores.tril().sum(-1, keepdim=True),
    )(query, key, value)


@mistake
def own_position_missing_below(query, key, value):
    """The numerator counts the position itself, but the denominator does not, so it is zero at the first position. Both
    sums run over j ≤ i."""
    return linear_with(divisor=lambda weights, scores, query, key: scores.tril(-1).sum(-1, keepdim=True))(
        query, key, value
    )


@mistake
def one_position_too_many(query, key, value):
    """Every position also counts the next one. The sums run over j ≤ i."""
    return linear_with(past=lambda scores: scores.tril(1))(query, key, value)


@mistake
def own_position_alone(query, key, value):
    """The state holds only the newest position, so each output is its own value: the state is replaced where it should
    grow."""
    return _running(lambda old, new: new)(query, key, value)


@mistake
def own_matrix_over_all_keys(query, key, value):
    """The matrix is replaced at each position, while the sum of the keys grows. Both are running sums."""
    return _running(lambda old, new: new, of_total=lambda old, new: old + new)(query, key, value)


@mistake
def state_detached(query, key, value):
    """The outputs are right, but no gradient reaches earlier positions: the state is cut off from the graph at every
    step, by `detach`, `.data` or `no_grad`."""
    return _running(lambda old, new: old.detach() + new)(query, key, value)


@mistake
def state_changed_in_place(query, key, value):
    """The values are right, but the backward pass fails: the state is changed in place, and its earlier contents, which
    the gradients need, are overwritten. Each step needs a new tensor."""
    query, key = positive(query), positive(key)
    state = key.new_zeros(*key.shape[:-2], key.shape[-1], value.shape[-1])
    total, outputs = torch.zeros_like(key[..., 0, :]), []
    for q, k, v in zip(query.unbind(-2), key.unbind(-2), value.unbind(-2), strict=True):
        state += k[..., :, None] * v[..., None, :]
        total += k
        outputs.append((q[..., None, :] @ state)[..., 0, :] / (q * total).sum(-1, keepdim=True))
    return torch.stack(outputs, -2)


@mistake
def sum_of_keys_replaced(query, key, value):
    """The denominator contains the key of the position itself and no earlier one. It is a running sum, like the
    numerator: is it replaced at each position where it should grow?"""
    return _running(of_total=lambda old, new: new)(query, key, value)


@mistake
def state_averaged_with_the_newest(query, key, value):
    """The state is averaged with the newest position, so that older ones fade. All positions up to i count alike, apart
    from their weights."""
    return _running(lambda old, new: (old + new) / 2)(query, key, value)


@mistake
def multiplied_instead_of_added(query, key, value):
    """The state is multiplied by the newest outer product, and so it remains zero. It is a sum."""
    return _running(lambda old, new: old * new)(query, key, value)


def _sum_along(axis):
    return lambda x, extra: x.cumsum(axis)


@mistake
def running_sum_over_axis_one(query, key, value):
    """The running sum goes along axis 1, counted from the left. That is the axis of the positions for exactly one batch
    dimension."""
    return _cumulated(_sum_along(1))(query, key, value)


@mistake
def running_sum_over_axis_two(query, key, value):
    """The running sum goes along axis 2, counted from the left. That is the axis of the positions for exactly two batch
    dimensions."""
    return _cumulated(_sum_along(2))(query, key, value)


@mistake
def running_sum_over_the_first_axis(query, key, value):
    """The running sum, or the loop, goes along the first axis. That is the axis of the positions only without a batch;
    otherwise one sequence is added to the next."""
    return _cumulated(_sum_along(0))(query, key, value)


@mistake
def running_sum_over_the_same_negative_axis(query, key, value):
    """The running sum of the outer products goes along axis −2, as that of the keys does. The outer products have one
    axis more, so for them axis −2 belongs to the features."""
    return _cumulated(_sum_along(-2))(query, key, value)


@mistake
def state_shared_by_the_batch(query, key, value):
    """The state is summed over the batch, so each output depends on other sequences. Each sequence has a state of its
    own."""
    return _cumulated(
        lambda x, extra: (
            lambda s: s.sum(tuple(range(x.dim() - 2 - extra)), keepdim=True) if x.dim() > 2 + extra else s
        )(x.cumsum(-2 - extra))
    )(query, key, value)


@mistake
def masked_with_minus_infinity(query, key, value):
    """The scores of later positions are set to −∞, as for a softmax. Here nothing is exponentiated: a weight of zero is
    the number 0."""
    future = torch.ones(query.shape[-2], query.shape[-2], dtype=torch.bool).triu(1)
    return linear_with(past=lambda scores: scores.masked_fill(future, -math.inf))(query, key, value)
