"""The building blocks of the mistakes in `previous_token_score`."""

from __future__ import annotations

__all__ = ["diagonal", "score"]


def diagonal(weights, offset=-1):
    return weights.diagonal(offset, -2, -1)


def score(take=diagonal, combine=lambda taken, weights: taken.mean(-1)):
    """The score with other weights taken, or another average."""
    return lambda weights: combine(take(weights), weights)
