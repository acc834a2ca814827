"""Mistakes in `masked_softmax`: the meaning of True, and the axis of the sum."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.masking.masked_softmax_mistakes.parts import fill, repaired, zeroed

mistake = Mistakes()


def _itself(mask):
    return mask


@mistake(look="notation: Conventions")
def turned_round(scores, mask):
    """Attention goes exactly where the mask forbids it. True means *may attend*; check the condition of the fill."""
    return fill(hide=_itself)(scores, mask)


@mistake(look="notation: Conventions")
def turned_round_then_repaired(scores, mask):
    """Attention goes exactly where the mask forbids it, and rows in which every key is allowed are all zeros. True
    means *may attend*; check the condition of the fill."""
    return fill(then=repaired, hide=_itself)(scores, mask)


@mistake(look="notation: Conventions")
def turned_round_and_masked_after(scores, mask):
    """The allowed keys are hidden before the softmax, and the masked ones are set to zero after it, so no weight is
    left. True means *may attend*; check the condition of the fill."""
    return fill(then=lambda weights, mask: weights.masked_fill(~mask, 0.0), hide=_itself)(scores, mask)


@mistake(look="notation: Conventions")
def turned_round_then_zeroed(scores, mask):
    """The fully masked rows are right, but in all others attention goes exactly where the mask forbids it. Check the
    condition of the fill."""
    return fill(then=zeroed, hide=_itself)(scores, mask)


@mistake
def over_queries(scores, mask):
    """Each column of the weights sums to one, but each row should. Every query shares out one unit of attention: over
    which axis?"""
    return fill(dim=-2)(scores, mask)


@mistake
def over_queries_repaired(scores, mask):
    """Each column of the weights sums to one, or to zero where it was `nan`, but each row should. Over which axis does
    a query share out its attention?"""
    return fill(then=repaired, dim=-2)(scores, mask)


@mistake
def over_first_axis(scores, mask):
    """The softmax runs over the first axis. That is wrong for any number of batch dimensions; count axes from the
    right."""
    return fill(dim=0)(scores, mask)


@mistake
def over_first_axis_repaired(scores, mask):
    """The softmax runs over the first axis, and `nan` is replaced by zero. Count axes from the right: the keys are the
    last one, whatever comes before."""
    return fill(then=repaired, dim=0)(scores, mask)


@mistake
def over_axis_1(scores, mask):
    """The softmax runs over axis 1, counted from the left. That is the axis of the keys only if there is no batch;
    count from the right."""
    return fill(dim=1)(scores, mask)


@mistake
def over_axis_1_repaired(scores, mask):
    """Right without a batch but wrong with one: the softmax runs over axis 1, counted from the left. Count from the
    right."""
    return fill(then=repaired, dim=1)(scores, mask)


@mistake
def axis_left_out(scores, mask):
    """The softmax is called without an axis, and takes axis 0 or 1 depending on how many there are. It should always
    run over the keys."""
    return torch.nn.functional.softmax(scores.masked_fill(~mask, -math.inf))


@mistake
def axis_left_out_repaired(scores, mask):
    """The softmax is called without an axis, and takes axis 0 or 1 depending on how many there are; `nan` is replaced
    by zero. It should always run over the keys."""
    return torch.nn.functional.softmax(scores.masked_fill(~mask, -math.inf)).nan_to_num(0.0)


@mistake
def over_all_pairs(scores, mask):
    """One softmax runs over all queries and keys together: all weights of a matrix sum to one. Each row has its own."""
    return scores.masked_fill(~mask, -math.inf).flatten(-2).softmax(-1).view(scores.shape).nan_to_num(0.0)
