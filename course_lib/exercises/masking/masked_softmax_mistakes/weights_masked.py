"""Mistakes in `masked_softmax`: weights, and not scores, are masked."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.masking.masked_softmax_mistakes.parts import divided

mistake = Mistakes()


INF = float("inf")
EMPTY = "masking: Rows without a key"
BEFORE = "masking: A mask acts before the softmax"
EXP = "attention: The softmax turns scores into weights"


def _exp_of_all(scores, mask):
    return scores.exp()


def _exp_filled(scores, mask):
    kept = scores.exp().masked_fill(~mask, 0.0)
    total = kept.sum(-1, keepdim=True)
    return torch.where(total > 0, kept / total, 0.0)


def _shifted(scores, mask):
    return (scores - scores.amax(-1, keepdim=True)).exp()


def _shifted_by_one_number(scores, mask):
    return (scores - scores.max()).exp()


def _shifted_by_the_allowed(scores, mask):
    opened = mask | ~mask.any(-1, keepdim=True)
    return (scores - scores.masked_fill(~opened, -INF).amax(-1, keepdim=True)).masked_fill(~opened, -INF).exp()


def _softmax_of_all(scores, mask):
    return scores.softmax(-1)


@mistake(look=BEFORE)
def mask_after_softmax(scores, mask):
    """The mask is applied to the finished weights, so what is left in a row sums to less than one. At which step
    must a key be out?"""
    return scores.softmax(-1) * mask


@mistake(look=BEFORE)
def renormalised(scores, mask):
    """Masked keys still take part before the mask comes: in the softmax, or in the largest score that is taken off.
    What the mask leaves is divided by its sum, and that is 0 / 0 in a fully masked row, and in a row whose masked
    score is far above the others."""
    return divided(_softmax_of_all)(scores, mask)


@mistake(look=BEFORE)
def renormalised_repaired(scores, mask):
    """Masked keys still take part before the mask comes: in the softmax, or in the largest score that is taken off.
    Where one is far above the others, nothing is left of them. Hiding the `nan` loses that row, and leaves `nan` in
    the gradient of fully masked rows."""
    return divided(_softmax_of_all)(scores, mask).nan_to_num(0.0)


@mistake(look=BEFORE)
def renormalised_or_one(scores, mask):
    """Masked keys still take part before the mask comes: in the softmax, or in the largest score that is taken off.
    Where one is far above the others, nothing is left of them to be divided by a sum."""
    return divided(_softmax_of_all, lambda total: total + (total == 0))(scores, mask)


for _eps in (1e-12, 1e-9, 1e-8, 1e-6, 1e-5):
    mistake.named(
        f"renormalised_with_eps_{_eps:g}",
        f"Masked keys still take part before the mask comes, and what it leaves is divided by its sum plus about "
        f"{_eps:g}. "
        "So rows do not sum to 1, in float16 the small number is 0, and a masked score far above the others leaves "
        "nothing.",
        look=BEFORE,
    )(divided(_softmax_of_all, lambda total, eps=_eps: total + eps))


for _eps in (1e-9, 1e-8, 1e-6, 1e-5):
    mistake.named(
        f"exp_with_eps_{_eps:g}",
        f"e to the scores, masked, is divided by its sum plus about {_eps:g}. Large scores overflow, low ones vanish "
        f"beside "
        "the small number, and in float16 it is 0 itself.",
        look=EXP,
    )(divided(_exp_of_all, lambda total, eps=_eps: total + eps))
    mistake.named(
        f"eps_in_the_sum_{_eps:g}",
        f"The sum that the weights are divided by gets about {_eps:g} more, against a division by 0. So rows do not "
        f"sum to "
        "1, and in float16 such a number is 0. Which rows need help, and which do not?",
        look=EMPTY,
    )(divided(_shifted_by_the_allowed, lambda total, eps=_eps: total + eps))


@mistake(look=BEFORE)
def shifted_exp_with_eps(scores, mask):
    """The largest score of *all* keys is taken off, and the sum gets about 1e-6 more. A masked key far above the
    others leaves nothing of them, rows do not sum to 1, and in float16 such a number is nearly lost. Which keys are
    in the sum, and should one of them not be sure to count e⁰ there?"""
    return divided(_shifted, lambda total: total + 1e-6)(scores, mask)


@mistake(look=EXP)
def unstable(scores, mask):
    """Large scores overflow: e¹⁰⁰ is more than a float32 can hold. And a fully masked row is 0 / 0. One number may
    be taken from all scores of a row, and the weights stay. Only open keys stand in the sum: which number makes its
    largest term e⁰, whatever a masked key says?"""
    return divided(_exp_of_all)(scores, mask)


@mistake(look=EXP)
def unstable_repaired(scores, mask):
    """Large scores overflow, low ones all become 0, and the `nan` that this gives is hidden. One number may be taken
    from all scores of a row, and the weights stay. Only open keys stand in the sum: which number makes its largest
    term e⁰, whatever a masked key says?"""
    return divided(_exp_of_all)(scores, mask).nan_to_num(0.0)


@mistake(look=EXP)
def unstable_or_one(scores, mask):
    """Large scores overflow: e¹⁰⁰ is more than a float32 can hold; low ones all become 0. Fully masked rows are
    well, but a number has to be taken from the scores of a row first. Only open keys stand in the sum: which number
    makes its largest term e⁰, whatever a masked key says?"""
    return divided(_exp_of_all, lambda total: total + (total == 0))(scores, mask)


@mistake(look=EXP)
def unstable_filled_or_one(scores, mask):
    """Fully masked rows are well, and e to a masked score is replaced by 0. But e to an open one overflows where it
    is high, and where all are low nothing is left. One number may be taken from all scores of a row, and the weights
    stay: which one makes the largest term of the sum e⁰, whatever a masked key says?"""
    return _exp_filled(scores, mask)


@mistake(look=EXP)
def one_largest_for_all_rows(scores, mask):
    """The largest score of *all rows* is taken off before the exponential. Rows far below it have nothing left: 0 /
    0."""
    return divided(_shifted_by_one_number)(scores, mask)


@mistake(look=EXP)
def one_largest_for_all_rows_or_one(scores, mask):
    """The largest score of *all rows* is taken off before the exponential. Rows far below it have nothing left, and
    come out as zeros."""
    return divided(_shifted_by_one_number, lambda total: total + (total == 0))(scores, mask)


@mistake(look=EXP)
def no_exponential(scores, mask):
    """The scores themselves are divided by their sum. A softmax makes positive numbers of them first."""
    return divided(lambda scores, mask: scores)(scores, mask)
