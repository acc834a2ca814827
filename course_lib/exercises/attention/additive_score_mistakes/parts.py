"""The building blocks of the mistakes in `additive_score`."""

from __future__ import annotations

import torch

__all__ = ["additive", "swap"]


def additive(activation=torch.tanh, join=torch.add, reduce=torch.matmul, after=lambda scores: scores):
    """The additive score with one step replaced."""

    def additive_score(query, key, w_query, w_key, v):
        hidden_query = (query @ w_query.T).unsqueeze(-2)
        hidden_key = (key @ w_key.T).unsqueeze(-3)
        return after(reduce(activation(join(hidden_query, hidden_key)), v))

    return additive_score


def swap(x):
    return x.transpose(-2, -1)
