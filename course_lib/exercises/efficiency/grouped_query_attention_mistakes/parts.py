"""The building blocks of the mistakes in `grouped_query_attention`."""

from __future__ import annotations

import math
from collections.abc import Callable

__all__ = ["grouped", "interleaved", "repeated"]


def repeated(x, heads):
    """One head for each query head, the consecutive ones of a group alike."""
    return x.repeat_interleave(heads // x.shape[1], dim=1)


def interleaved(x, heads):
    """One head for each query head, in turns."""
    return x.repeat(1, heads // x.shape[1], 1, 1)


def grouped(
    *,
    keys: Callable = repeated,
    values: Callable = repeated,
    compare: Callable = lambda query, key: query @ key.transpose(-2, -1),
    scale: Callable = lambda query, key: math.sqrt(query.shape[-1]),
    softmax: Callable = lambda scores: scores.softmax(-1),
    finish: Callable = lambda output, query, key: output,
) -> Callable:
    """Grouped-query attention with some of its steps replaced.

    Args:
        keys: keys for each query head, from those of the groups and the number of query heads.
        values: values for each query head.
        compare: scores from query and repeated key.
        scale: divisor from query and key as they are given.
        softmax: weights from scores.
        finish: the result, from output, query and key.
    """

    def solution(query, key, value):
        heads = query.shape[1]
        weights = softmax(compare(query, keys(key, heads)) / scale(query, key))
        return finish(weights @ values(value, heads), query, key)

    return solution
