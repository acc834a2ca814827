"""The building blocks of the mistakes in `attention_rollout`."""

from __future__ import annotations

import torch

__all__ = ["half", "identity", "rescaled", "rollout_with"]


def identity(weights):
    return torch.eye(weights.shape[-1], dtype=weights.dtype)


def rescaled(matrix):
    return matrix / matrix.sum(-1, keepdim=True)


def half(mean, eye):
    return (mean + eye) / 2


def rollout_with(
    heads=lambda weights: weights.mean(2),
    mix=half,
    join=lambda layer, rollout: layer @ rollout,
    layers=lambda mixed: mixed,
    begin=lambda mixed: mixed[0],
):
    """A rollout with heads, identity or product computed in another way."""

    def attention_rollout(weights):
        mixed = layers(mix(heads(weights), identity(weights)))
        rollout = begin(mixed)
        for layer in mixed[1:]:
            rollout = join(layer, rollout)
        return rollout

    return attention_rollout
