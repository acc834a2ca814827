"""The building blocks of the mistakes in `scaled_dot_product_attention`."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

__all__ = ["attention_with", "dot_products", "filled", "root"]


def root(query, key, value):
    return math.sqrt(query.shape[-1])


def dot_products(query, key):
    return query @ key.transpose(-2, -1)


def filled(scores, mask):
    return scores.masked_fill(~mask, -math.inf)


def _softmax(scores):
    return scores.softmax(-1)


def attention_with(
    *,
    compare: Callable = dot_products,
    scale: Callable = root,
    hide: Callable = filled,
    softmax: Callable = _softmax,
    average: Callable = torch.matmul,
    finish: Callable | None = None,
) -> Callable:
    """Attention with some of its steps replaced.

    Args:
        compare: scores from query and key.
        scale: divisor from query, key and value.
        hide: masked scores from scores and mask.
        softmax: weights from scores.
        average: output from weights and value.
        finish: the result, from output and weights.
    """

    def attention(query, key, value, mask=None):
        scores = compare(query, key) / scale(query, key, value)
        weights = softmax(scores if mask is None else hide(scores, mask))
        output = average(weights, value)
        return (output, weights) if finish is None else finish(output, weights)

    return attention
