"""The building blocks of the mistakes in `masked_softmax`."""

from __future__ import annotations

import math
import operator

__all__ = ["add", "as_it_is", "divided", "fill", "repaired", "zeroed"]


def zeroed(weights, mask):
    """Zeros for rows without a key, whatever the weights are there."""
    return weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)


def repaired(weights, mask):
    return weights.nan_to_num(0.0)


def as_it_is(weights, mask):
    return weights


def fill(number=-math.inf, then=as_it_is, dim=-1, hide=operator.inv):
    """Fill, softmax, and a step that changes the weights."""

    def masked_softmax(scores, mask):
        filled = scores.masked_fill(hide(mask), number(scores) if callable(number) else number)
        return then(filled.softmax(dim), mask)

    return masked_softmax


def add(bias, then=as_it_is):
    """A bias made from the mask, added to the scores."""
    return lambda scores, mask: then((scores + bias(scores, mask)).softmax(-1), mask)


def divided(top, bottom=None):
    """The positive numbers that the mask allows, divided by their sum."""
    bottom = bottom or (lambda total: total)

    def masked_softmax(scores, mask):
        kept = top(scores, mask) * mask
        return kept / bottom(kept.sum(-1, keepdim=True))

    return masked_softmax
