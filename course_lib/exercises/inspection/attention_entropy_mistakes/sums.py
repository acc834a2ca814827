"""Mistakes in `attention_entropy`: what is summed."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.inspection.attention_entropy_mistakes.parts import entropy, safe_log

mistake = Mistakes()


@mistake
def over_the_queries(weights):
    """The sum runs over the queries. Each query has a distribution over the keys, which are the last axis."""
    return entropy(combine=lambda terms: terms.sum(-2))(weights)


@mistake
def axis_from_the_left(weights):
    """The sum runs over axis 1, which is the axis of the keys only if there is no batch dimension. Count from the
    right."""
    return entropy(combine=lambda terms: terms.sum(1))(weights)


@mistake
def first_axis(weights):
    """The sum runs over axis 0: the queries, or the batch. The keys are the last axis."""
    return entropy(combine=lambda terms: terms.sum(0))(weights)


@mistake
def mean_over_keys(weights):
    """The terms are averaged over the keys instead of summed, so the result is too small by a factor of L_k. The
    weights inside the sum already make it an average, that of −log w."""
    return entropy(combine=lambda terms: terms.mean(-1))(weights)


@mistake
def one_number(weights):
    """Everything is summed into a single number. Each query has its own entropy, so only the axis of the keys
    disappears."""
    return entropy(combine=lambda terms: terms.sum())(weights)


@mistake
def averaged_over_queries(weights):
    """The entropies of the queries are averaged into one number per map. The entropy of each query is wanted."""
    return entropy(combine=lambda terms: terms.sum(-1).mean(-1))(weights)


@mistake
def average_of_everything(weights):
    """There is one number for all maps: the mean over queries and batch. The entropy of each query is wanted."""
    return entropy(combine=lambda terms: terms.sum(-1).mean())(weights)


@mistake
def summed_over_queries_too(weights):
    """The sum runs over queries and keys, so there is one number per map. Each query has its own entropy."""
    return entropy(combine=lambda terms: terms.sum((-1, -2)))(weights)


@mistake
def squeezed(weights):
    """Axes of length 1 are squeezed away. A batch of one sequence, or a single query, loses its axis."""
    return entropy(combine=lambda terms: terms.sum(-1).squeeze())(weights)


@mistake
def batch_flattened(weights):
    """The batch dimensions are flattened into one axis with the queries. The result is `(..., L_q)`."""
    return entropy(combine=lambda terms: terms.sum(-1).flatten())(weights)


@mistake
def averaged_over_the_axis_before(weights):
    """The entropies are averaged over the first axis, such as the batch. The entropy of each query is wanted, in
    every map."""
    return entropy(combine=lambda terms: terms.sum(-1).mean(0))(weights)


@mistake
def axis_kept(weights):
    """The axis of the keys is still there, with length 1. The result is `(..., L_q)`."""
    return entropy(combine=lambda terms: terms.sum(-1, keepdim=True))(weights)


@mistake
def not_summed(weights):
    """These are the terms −w log w of the single keys. The entropy of a query is their sum over the keys."""
    return entropy(combine=lambda terms: terms)(weights)


@mistake
def weight_missing(weights):
    """The logarithms are summed without the weights in front. The entropy is the average of −log w *under the
    weights*, so keys with a large weight count more."""
    return -safe_log(weights).sum(-1)


@mistake
def plain_mean_of_logs(weights):
    """The logarithms are averaged as if all keys had the same weight. The entropy is the average of −log w *under
    the weights*."""
    return -safe_log(weights).mean(-1)
