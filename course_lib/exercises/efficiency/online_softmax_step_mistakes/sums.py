"""Mistakes in `online_softmax_step`: total and output."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.online_softmax_step_mistakes.parts import exponentials, grown, step_with

mistake = Mistakes()


@mistake
def output_normalised(*args):
    """The output is divided by the total. The next block needs the sum itself; the division comes after the last
    block."""
    return step_with(finish=lambda maximum, total, output: (maximum, total, output / total[..., None]))(*args)


@mistake
def state_taken_as_normalised(maximum, total, output, scores, value):
    """The output is multiplied by the old total and divided by the new one, as if it were an average. Here it is a sum:
    the division comes after the last block."""
    new, grown, added = step_with()(maximum, total, output * total[..., None], scores, value)
    return new, grown, added / grown[..., None]


@mistake
def total_of_the_values(*args):
    """The total is the sum over the queries. For each query it is the sum over the keys, the last axis of the
    scores."""
    return step_with(block_total=lambda weights: weights.sum(-2))(*args)


@mistake
def one_total_for_all(*args):
    """The exponentials of all queries are added up. Each query has a total of its own."""
    return step_with(block_total=lambda weights: weights.sum())(*args)


@mistake
def mean_for_total(*args):
    """The exponentials of the block are averaged. The total is their sum, so that a longer block counts for more."""
    return step_with(block_total=lambda weights: weights.mean(-1))(*args)


@mistake
def keys_counted(*args):
    """The total counts the keys of the block. It should be the sum of their exponentials."""
    return step_with(block_total=lambda weights: torch.full_like(weights[..., 0], weights.shape[-1]))(*args)


@mistake
def values_summed(*args):
    """The values of the block are added up with equal weights. Each value is multiplied by the exponential of its
    score."""
    return step_with(average=lambda weights, value: torch.ones_like(weights) @ value)(*args)


@mistake
def factor_along_the_values(*args):
    """The factor, one number per query, lines up with the last axis of the output, the features. It needs another axis
    at the end."""
    return step_with(rescaled_output=lambda output, factor: output * factor)(*args)


@mistake
def maximum_along_the_keys(*args):
    """The maximum, one number per query, lines up with the last axis of the scores, the keys. It needs another axis at
    the end."""
    return step_with(weights=lambda scores, new, old: (scores - new).exp())(*args)


@mistake
def state_changed_in_place(maximum, total, output, scores, value):
    """The results are right, but the old total and output are changed in place. They are arguments, and belong to the
    caller."""
    larger = grown(maximum, scores)
    factor = (maximum - larger).exp()
    weights = exponentials(scores, larger, maximum)
    total *= factor
    total += weights.sum(-1)
    output *= factor[..., None]
    output += weights @ value
    return larger, total, output
