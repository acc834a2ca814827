"""The building blocks of the mistakes in `attention_entropy`."""

from __future__ import annotations

import torch

__all__ = ["entropy", "safe_log", "terms"]


def safe_log(weights):
    return torch.where(weights > 0, weights, 1).log()


def terms(weights):
    return -weights * safe_log(weights)


def entropy(log=safe_log, combine=lambda terms: terms.sum(-1)):
    """The entropy with another logarithm, or other sums."""
    return lambda weights: combine(-weights * log(weights))
