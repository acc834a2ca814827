"""A softmax with steps exchanged, as the mistakes of three exercises use it."""

from __future__ import annotations

import torch

__all__ = ["UNSTABLE", "largest", "nothing", "softmax_with"]


def largest(scores, dim):
    return scores.amax(dim, keepdim=True)


def _total(exponentials, dim):
    return exponentials.sum(dim, keepdim=True)


def softmax_with(shift=largest, power=torch.exp, total=_total):
    """Softmax with one step exchanged."""

    def softmax(scores, dim=-1):
        exponentials = power(scores - shift(scores, dim))
        return exponentials / total(exponentials, dim)

    return softmax


def nothing(scores, dim):
    return 0.0


UNSTABLE = softmax_with(shift=nothing)
