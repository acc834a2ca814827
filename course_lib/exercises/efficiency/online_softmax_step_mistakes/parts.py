"""The building blocks of the mistakes in `online_softmax_step`."""

from __future__ import annotations

import torch

__all__ = ["exponentials", "grown", "step_with"]


def grown(maximum, scores):
    return torch.maximum(maximum, scores.amax(-1))


def _factor(maximum, larger, scores):
    return (maximum - larger).exp()


def exponentials(scores, larger, maximum):
    return (scores - larger[..., None]).exp()


def step_with(
    *,
    larger=grown,
    correction=_factor,
    weights=exponentials,
    rescaled_total=lambda total, factor: total * factor,
    rescaled_output=lambda output, factor: output * factor[..., None],
    block_total=lambda weights: weights.sum(-1),
    average=torch.matmul,
    finish=lambda maximum, total, output: (maximum, total, output),
):
    """The step with parts replaced; unchanged, it is right."""

    def step(maximum, total, output, scores, value):
        new_maximum = larger(maximum, scores)
        factor = correction(maximum, new_maximum, scores)
        shares = weights(scores, new_maximum, maximum)
        total = rescaled_total(total, factor) + block_total(shares)
        output = rescaled_output(output, factor) + average(shares, value)
        return finish(new_maximum, total, output)

    return step
