"""Mistakes in `attend`: the weighted average of the values."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.attend_mistakes.parts import attend_with

mistake = Mistakes()


@mistake
def mean_of_weighted(scores, value):
    """The weighted values are averaged once more, over the number of keys. The weights sum to one already, so their
    sum *is* the average."""
    return attend_with(average=lambda w, v: w @ v / v.shape[-2])(scores, value)


@mistake
def weights_turned(scores, value):
    """The weights are transposed before they are multiplied by the values. A row of the weights belongs to a query, and
    its entries to the values: no axis has to move."""
    return attend_with(average=lambda w, v: w.transpose(-2, -1) @ v)(scores, value)


@mistake
def values_turned(scores, value):
    """The values are transposed. They have one row per key already, and it is the keys that are summed over; the
    transpose belongs to query times key."""
    return attend_with(average=lambda w, v: w @ v.transpose(-2, -1))(scores, value)


@mistake
def values_first(scores, value):
    """The factors are in the wrong order: values times weights. The weights come first, so that the sum runs over the
    keys."""
    return attend_with(average=lambda w, v: v @ w)(scores, value)


@mistake
def entry_by_entry(scores, value):
    """Weights and values are multiplied entry by entry. The average sums over the keys, which is what a matrix
    product does."""
    return attend_with(average=torch.mul)(scores, value)


@mistake
def not_summed(scores, value):
    """Every value is multiplied by its weight, but the products are not summed over the keys."""
    return attend_with(average=lambda w, v: w.unsqueeze(-1) * v.unsqueeze(-3))(scores, value)


@mistake
def summed_without_room_for_queries(scores, value):
    """Weights and values are multiplied and summed with broadcasting that works only without a batch: the values have
    no axis where the queries are, so with a batch the wrong axes are combined."""
    return attend_with(average=lambda w, v: (w.unsqueeze(-1) * v).sum(-2))(scores, value)


@mistake
def summed_over_queries(scores, value):
    """The products of weights and values are summed over the queries. For each query, the average is over the values of
    the *keys*."""
    return attend_with(average=lambda w, v: (w.unsqueeze(-1) * v.unsqueeze(-3)).sum(-3))(scores, value)


@mistake
def bmm(scores, value):
    """`torch.bmm` takes exactly one batch dimension. Another product accepts any number, including none."""
    return attend_with(average=torch.bmm)(scores, value)


@mistake
def mm(scores, value):
    """`torch.mm` takes two matrices and no batch. Another product accepts any number of batch dimensions."""
    return attend_with(average=torch.mm)(scores, value)


@mistake
def einsum_without_batch(scores, value):
    """The letters of `einsum` leave no room for batch dimensions; `...` would."""
    return attend_with(average=lambda w, v: torch.einsum("qk,kd->qd", w, v))(scores, value)


@mistake
def einsum_one_batch_dimension(scores, value):
    """The letters of `einsum` fit exactly one batch dimension; `...` fits any number."""
    return attend_with(average=lambda w, v: torch.einsum("bqk,bkd->bqd", w, v))(scores, value)
