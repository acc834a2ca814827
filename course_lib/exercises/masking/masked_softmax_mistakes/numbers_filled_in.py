"""Mistakes in `masked_softmax`: the number that replaces masked scores."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.masking.masked_softmax_mistakes.parts import add, fill, zeroed

mistake = Mistakes()


FILL = "masks_in_half_precision: Which number to fill in"


def _times(weights, mask):
    return weights * mask


@mistake(look=FILL)
def minus_a_billion(scores, mask):
    """Masked scores become a large negative number. This has two effects. If the dtype can represent it, a fully masked
    row becomes uniform, because all its scores are equally low. And float16, whose largest number is 65504, cannot
    represent it. What is below every number, in every dtype? And which weights should a row without any key have?"""
    return fill(-1e9)(scores, mask)


@mistake(look=FILL)
def minus_a_billion_then_zeroed(scores, mask):
    """Right except in float16, whose largest number is 65504: the large negative number does not fit. What
    is below every number, in every dtype?"""
    return fill(-1e9, zeroed)(scores, mask)


@mistake(look=FILL)
def lowest_float32(scores, mask):
    """Masked scores become the lowest float32 number. This has two effects. In float32 and float64, a fully masked row
    becomes uniform, because all its scores are equally low. And neither float16 nor bfloat16 can represent the
    number."""
    return fill(torch.finfo(torch.float32).min)(scores, mask)


@mistake(look=FILL)
def lowest_float32_then_zeroed(scores, mask):
    """Right except in float16 and bfloat16: the lowest float32 number does not fit there. What is below every number,
    in every dtype?"""
    return fill(torch.finfo(torch.float32).min, zeroed)(scores, mask)


@mistake(look=FILL)
def minus_ten_thousand(scores, mask):
    """Masked scores become a number such as −10000. That fits float16, but an allowed score can be as low,
    and a fully masked row becomes uniform."""
    return fill(-1e4)(scores, mask)


@mistake(look=FILL)
def minus_ten_thousand_then_zeroed(scores, mask):
    """Masked scores become −10000. An allowed score can be as low, and then the masked keys take a share of the
    weights."""
    return fill(-1e4, zeroed)(scores, mask)


@mistake(look=FILL)
def minus_ten_thousand_times_mask(scores, mask):
    """Masked scores become −10000, and masked weights are removed afterwards. If an allowed score is as low, the
    remaining weights of a row sum to less than one."""
    return fill(-1e4, _times)(scores, mask)


@mistake(look=FILL)
def filled_with_zero(scores, mask):
    """Masked scores become 0, by filling or multiplying. A score of 0 is not a small score: its weight is e⁰ over the
    sum."""
    return fill(0.0)(scores, mask)


@mistake(look=FILL)
def filled_with_zero_then_zeroed(scores, mask):
    """Masked scores become 0, and only fully masked rows are set to zero. A score of 0 is not a small score: in all
    other rows its key still gets e⁰ over the sum."""
    return fill(0.0, zeroed)(scores, mask)


@mistake(look=FILL)
def filled_with_zero_times_mask(scores, mask):
    """Masked scores become 0, contribute e⁰ each to the sum, and are then removed: the remaining weights of a row sum
    to less than one."""
    return fill(0.0, _times)(scores, mask)


@mistake(look=FILL)
def filled_with_the_lowest_score(scores, mask):
    """Masked scores become the lowest of the scores. They still get a weight, as large as that of the worst key."""
    return fill(lambda scores: scores.min().item())(scores, mask)


@mistake(look=FILL)
def plus_infinity(scores, mask):
    """Masked scores become +∞, the largest score of all. Their weight should be zero: which score gives that?"""
    return fill(math.inf)(scores, mask)


@mistake
def mask_ignored(scores, mask):
    """The weights do not depend on the mask."""
    return scores.softmax(-1)


@mistake
def mask_added(scores, mask):
    """The mask is added as it is: True adds 1 to a score. Use a bool mask to select scores, not as a number to add."""
    return add(lambda scores, mask: mask)(scores, mask)


@mistake
def mask_added_then_zeroed(scores, mask):
    """The mask is added as it is, True as 1, and only fully masked rows are set to zero. Use a bool mask to select
    scores, not as a number to add."""
    return add(lambda scores, mask: mask, zeroed)(scores, mask)
