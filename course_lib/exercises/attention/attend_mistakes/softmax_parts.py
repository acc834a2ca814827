"""Mistakes in `attend`: the parts of the softmax, and scores."""

from __future__ import annotations

import torch.nn.functional as F

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.attend import attend
from course_lib.exercises.attention.attend_mistakes.parts import attend_with
from course_lib.exercises.attention.softmax import softmax
from course_lib.exercises.attention.steps_of_softmax import UNSTABLE, nothing, softmax_with

mistake = Mistakes()


@mistake
def unstable_softmax(scores, value):
    """Large scores overflow, far negative ones all vanish. Subtracting a constant from all scores of a row does not
    change the weights: which constant helps?"""
    return attend_with(UNSTABLE)(scores, value)


@mistake
def largest_of_all(scores, value):
    """The largest score of the whole tensor is subtracted from every row. In a row far below it, all exponentials
    become 0. Each row may have its own constant."""
    return attend_with(lambda s: (s - s.max()).exp() / (s - s.max()).exp().sum(-1, keepdim=True))(scores, value)


@mistake
def mean_taken_off(scores, value):
    """The mean of each row is subtracted from its scores. Where they differ by thousands, the largest still overflows:
    which constant leaves no exponent above 0?"""
    return attend_with(softmax_with(shift=lambda s, dim: s.mean(dim, keepdim=True)))(scores, value)


@mistake
def clamped(scores, value):
    """Large scores are clipped. The result is finite, but scores beyond the bound become equal, although their
    difference determines the weights."""
    return attend_with(lambda s: softmax(s.clamp(-50.0, 50.0)))(scores, value)


@mistake
def small_number_in_the_sum(scores, value):
    """A small number added to the sum hides a division of 0 by 0, but then the row does not sum to one, and large
    scores still overflow."""
    return attend_with(softmax_with(shift=nothing, total=lambda e, dim: e.sum(dim, keepdim=True) + 1e-12))(
        scores, value
    )


@mistake
def small_number_in_a_safe_sum(scores, value):
    """A small number is added to the sum of the exponentials. After the largest score has been subtracted, the sum is
    at least 1 and needs no protection; the weights no longer sum to one, which shows in float64."""
    return attend_with(softmax_with(total=lambda e, dim: e.sum(dim, keepdim=True) + 1e-8))(scores, value)


@mistake
def nan_replaced(scores, value):
    """Where the exponentials overflow, `nan` is replaced afterwards. The replacements are not the right weights; if the
    exponents stay in range, no `nan` appears."""
    return attend_with(lambda s: UNSTABLE(s).nan_to_num())(scores, value)


@mistake
def axis_dropped(scores, value):
    """The sum or the maximum over the keys has lost that axis, so it is lined up with the wrong one. There is an option
    that keeps the axis, with length 1."""
    return attend_with(lambda s: s.exp() / s.exp().sum(-1))(scores, value)


@mistake
def max_gives_a_pair(scores, value):
    """`max` along an axis returns two things, the largest values and their positions. Only the values are wanted
    here."""
    return attend_with(softmax_with(shift=lambda s, dim: s.max(dim, keepdim=True)))(scores, value)


@mistake
def hard(scores, value):
    """The best key gets everything. That is the limit of very sharp attention; a softmax gives every key some weight,
    and gradients flow through it."""
    return attend_with(lambda s: F.one_hot(s.argmax(-1), s.shape[-1]).to(s.dtype))(scores, value)


@mistake
def signs_turned(scores, value):
    """The smallest score gets the largest weight. A high score means that the key fits."""
    return attend_with(lambda s: softmax(-s))(scores, value)


@mistake
def softmax_twice(scores, value):
    """The softmax is applied twice. Weights are not scores, and a second softmax evens them out."""
    return attend_with(lambda s: softmax(softmax(s)))(scores, value)


@mistake
def scaled_by_keys(scores, value):
    """The scores are divided by the root of the number of keys. Scaling belongs to the score function; here the scores
    are used as they are."""
    return attend_with(lambda s: softmax(s / s.shape[-1] ** 0.5))(scores, value)


@mistake
def scaled_by_features(scores, value):
    """The scores are divided by the root of the number of features. Scaling belongs to the score function; here the
    scores are used as they are."""
    return attend(scores / value.shape[-1] ** 0.5, value)


@mistake
def uniform(scores, value):
    """All keys get the same weight, whatever their scores."""
    return attend_with(lambda s: softmax(0 * s))(scores, value)
