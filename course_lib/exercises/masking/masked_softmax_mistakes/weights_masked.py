"""Mistakes in `masked_softmax`: masking weights instead of scores."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.masking.masked_softmax_mistakes.parts import divided

mistake = Mistakes()


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
    return (
        (scores - scores.masked_fill(~opened, -math.inf).amax(-1, keepdim=True)).masked_fill(~opened, -math.inf).exp()
    )


def _softmax_of_all(scores, mask):
    return scores.softmax(-1)


@mistake(look=BEFORE)
def mask_after_softmax(scores, mask):
    """The mask is applied to the finished weights, so the remaining weights of a row sum to less than one. At which
    step must a key be excluded?"""
    return scores.softmax(-1) * mask


@mistake(look=BEFORE)
def renormalised(scores, mask):
    """Masked keys still count before the mask is applied: in the softmax, or in the largest score that is subtracted.
    The remaining weights are divided by their sum, which is 0 / 0 in a fully masked row, and in a row whose masked
    score is far above the others."""
    return divided(_softmax_of_all)(scores, mask)


@mistake(look=BEFORE)
def renormalised_repaired(scores, mask):
    """Masked keys still count before the mask is applied: in the softmax, or in the largest score that is subtracted.
    Where one is far above the others, their weights become 0. Hiding the `nan` loses that row, and leaves `nan` in the
    gradient of fully masked rows."""
    return divided(_softmax_of_all)(scores, mask).nan_to_num(0.0)


@mistake(look=BEFORE)
def renormalised_or_one(scores, mask):
    """Masked keys still count before the mask is applied: in the softmax, or in the largest score that is subtracted.
    Where one is far above the others, all remaining weights and their sum become 0."""
    return divided(_softmax_of_all, lambda total: total + (total == 0))(scores, mask)


for _eps in (1e-12, 1e-9, 1e-8, 1e-6, 1e-5):
    mistake.named(
        f"renormalised_with_eps_{_eps:g}",
        f"Masked keys still take part before the mask comes, and what it leaves is divided by its sum, to which a "
        f"small number such as {_eps:g} is added or which is never below it. So some rows do not sum to 1, in float16 "
        f"such a number is 0 or nearly so, and a masked score far above the others leaves nothing.",
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
        "1, and in float16 such a number is 0. Which rows need such a protection, and which do not?",
        look=EMPTY,
    )(divided(_shifted_by_the_allowed, lambda total, eps=_eps: total + eps))


@mistake(look=BEFORE)
def shifted_exp_with_eps(scores, mask):
    """The largest score of *all* keys is subtracted, and about 1e-6 is added to the sum. A masked key far above the
    others makes their weights 0, rows do not sum to 1, and in float16 such a number is nearly lost. Which keys are in
    the sum, and which constant ensures that one of them contributes e⁰?"""
    return divided(_shifted, lambda total: total + 1e-6)(scores, mask)


@mistake(look=EXP)
def unstable(scores, mask):
    """Large scores overflow: e¹⁰⁰ is more than a float32 can hold. And a fully masked row is 0 / 0. Subtracting one
    number from all scores of a row does not change the weights. Only allowed keys are in the sum: which number makes
    its largest term e⁰, whatever the masked scores are?"""
    return divided(_exp_of_all)(scores, mask)


@mistake(look=EXP)
def unstable_repaired(scores, mask):
    """Large scores overflow, low ones all become 0, and the resulting `nan` is hidden. Subtracting one number from all
    scores of a row does not change the weights. Only allowed keys are in the sum: which number makes its largest term
    e⁰, whatever the masked scores are?"""
    return divided(_exp_of_all)(scores, mask).nan_to_num(0.0)


@mistake(look=EXP)
def unstable_or_one(scores, mask):
    """Large scores overflow: e¹⁰⁰ is more than a float32 can hold; low ones all become 0. Fully masked rows are right,
    but a number has to be subtracted from the scores of each row first. Only allowed keys are in the sum: which number
    makes its largest term e⁰, whatever the masked scores are?"""
    return divided(_exp_of_all, lambda total: total + (total == 0))(scores, mask)


@mistake(look=EXP)
def unstable_filled_or_one(scores, mask):
    """Fully masked rows are right, and e to a masked score is replaced by 0. But e to an allowed score overflows if the
    score is high, and if all are low, every term becomes 0. Subtracting one number from all scores of a row does not
    change the weights: which number makes the largest term of the sum e⁰, whatever the masked scores are?"""
    return _exp_filled(scores, mask)


@mistake(look=EXP)
def one_largest_for_all_rows(scores, mask):
    """The largest score of *all rows* is subtracted before the exponential. In rows far below it, every exponential is
    0, which gives 0 / 0."""
    return divided(_shifted_by_one_number)(scores, mask)


@mistake(look=EXP)
def one_largest_for_all_rows_or_one(scores, mask):
    """The largest score of *all rows* is subtracted before the exponential. In rows far below it, every exponential is
    0, so the row becomes zeros."""
    return divided(_shifted_by_one_number, lambda total: total + (total == 0))(scores, mask)


@mistake(look=EXP)
def no_exponential(scores, mask):
    """The scores themselves are divided by their sum. A softmax turns them into positive numbers first."""
    return divided(lambda scores, mask: scores)(scores, mask)
