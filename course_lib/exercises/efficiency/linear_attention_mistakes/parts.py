"""The building blocks of the mistakes in `linear_attention`."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F

__all__ = ["linear_with", "positive"]


def positive(x):
    return F.elu(x) + 1


def linear_with(
    *,
    features: Callable = positive,
    of_query: Callable | None = None,
    of_key: Callable | None = None,
    compare: Callable = lambda query, key: query @ key.transpose(-2, -1),
    past: Callable = lambda scores: scores.tril(),
    divisor: Callable = lambda weights, scores, query, key: weights.sum(-1, keepdim=True),
    of_value: Callable = lambda value: value,
    finish: Callable = lambda output: output,
) -> Callable:
    """Causal linear attention, as a matrix of weights, with some of its steps replaced.

    Args:
        features: the feature map.
        of_query: the feature map of the queries, if another one.
        of_key: the feature map of the keys, if another one.
        compare: scores from the features of queries and keys.
        past: the scores of all keys without those of later ones.
        divisor: what the sums of values are divided by, from weights, scores, and features of queries and keys.
        of_value: the values that are summed.
        finish: the result, from the output.
    """

    def solution(query, key, value):
        query, key = (of_query or features)(query), (of_key or features)(key)
        scores = compare(query, key)
        weights = past(scores)
        return finish(weights @ of_value(value) / divisor(weights, scores, query, key))

    return solution
