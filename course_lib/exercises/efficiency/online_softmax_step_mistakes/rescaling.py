"""Mistakes in `online_softmax_step`: what happens to the old sums."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.online_softmax_step_mistakes.parts import step_with

mistake = Mistakes()


def _same(old, *others):
    return old


@mistake
def nothing_rescaled(*args):
    """When the maximum grows, the old total and the old output keep their size, although their terms were computed with
    the old maximum. Both need the same factor."""
    return step_with(rescaled_total=_same, rescaled_output=_same)(*args)


@mistake
def output_not_rescaled(*args):
    """The total is rescaled when the maximum grows, but the output so far is not. Both are sums of exponentials with
    the old maximum in them."""
    return step_with(rescaled_output=_same)(*args)


@mistake
def total_not_rescaled(*args):
    """The output is rescaled when the maximum grows, but the total so far is not. Both are sums of exponentials with
    the old maximum in them."""
    return step_with(rescaled_total=_same)(*args)


@mistake
def factor_turned_round(*args):
    """The factor of the old sums is the wrong way round: it is above 1 where the maximum has grown. A larger maximum
    makes every term smaller."""
    return step_with(correction=lambda old, new, scores: (new - old).exp())(*args)


@mistake
def factor_without_exponential(*args):
    """The old sums are multiplied by a difference of the maxima. It belongs in an exponent, because the maximum is
    subtracted in one."""
    return step_with(correction=lambda old, new, scores: old - new)(*args)


@mistake
def factor_is_a_ratio(*args):
    """The old sums are multiplied by the ratio of the two maxima. The maximum is subtracted inside an exponential, so
    what matters is the difference of the maxima."""
    return step_with(correction=lambda old, new, scores: old / new)(*args)


@mistake
def everything_rescaled(*args):
    """The block's own terms are rescaled together with the old ones. They are computed with the new maximum already."""
    return step_with(weights=lambda scores, new, old: (scores + old[..., None] - 2 * new[..., None]).exp())(*args)


@mistake
def block_rescaled_instead_of_old_sums(*args):
    """The factor for a larger maximum is applied to the wrong terms. Those of the block are computed with the new
    maximum already; the old sums were computed with the old one."""
    return step_with(
        rescaled_total=_same,
        rescaled_output=_same,
        weights=lambda scores, new, old: (scores + old[..., None] - 2 * new[..., None]).exp(),
    )(*args)


@mistake
def rescaled_by_the_block(*args):
    """The factor compares the old maximum with the largest score of the *block*. Where the maximum does not grow, the
    old sums must not change."""
    return step_with(correction=lambda old, new, scores: (old - scores.amax(-1)).exp())(*args)


@mistake
def old_sums_dropped(*args):
    """Only the keys of the block are left in total and output. The old sums have to be added to those of the block."""
    return step_with(
        rescaled_total=lambda total, factor: torch.zeros_like(total),
        rescaled_output=lambda output, factor: torch.zeros_like(output),
    )(*args)
