"""Mistakes in `attend`: the axis of the softmax, and weights that do not sum to one."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.attend_mistakes.parts import attend_with
from course_lib.exercises.attention.softmax import softmax
from course_lib.exercises.attention.steps_of_softmax import largest

mistake = Mistakes()


@mistake
def softmax_over_queries(scores, value):
    """Each column of the weights sums to one, but each row should. Every query shares out one unit of attention: over
    which axis?"""
    return attend_with(lambda s: softmax(s, -2))(scores, value)


@mistake
def softmax_first_axis(scores, value):
    """The softmax runs over the first axis, which is the batch, or the queries if there is no batch. The keys are on
    the last axis."""
    return attend_with(lambda s: softmax(s, 0))(scores, value)


@mistake
def softmax_axis_1(scores, value):
    """The softmax runs over axis 1, counted from the left. That is the axis of the keys only if there is no batch;
    count from the right."""
    return attend_with(lambda s: softmax(s, 1))(scores, value)


@mistake
def softmax_axis_2(scores, value):
    """The softmax runs over axis 2, counted from the left. That is the axis of the keys only with exactly one batch
    dimension; count from the right."""
    return attend_with(lambda s: softmax(s, 2))(scores, value)


@mistake
def softmax_without_dim(scores, value):
    """The softmax is called without an axis, so PyTorch guesses one from the number of axes: right for two, wrong for
    three and four. State which axis holds the keys."""
    return attend_with(F.softmax)(scores, value)


@mistake
def softmax_over_everything(scores, value):
    """All weights together sum to one. Each query has one unit of attention of its own, so each row has to."""
    return attend_with(lambda s: (s - s.max()).exp() / (s - s.max()).exp().sum())(scores, value)


@mistake
def softmax_over_everything_unstable(scores, value):
    """The exponentials are divided by the sum of all of them, so that all weights together sum to one; each row
    should. (And large scores overflow.)"""
    return attend_with(lambda s: s.exp() / s.exp().sum())(scores, value)


@mistake
def softmax_over_both_axes(scores, value):
    """The softmax runs over queries and keys together, so a whole matrix sums to one. Each row should."""
    return attend_with(lambda s: softmax(s.flatten(-2)).view(s.shape))(scores, value)


@mistake
def no_softmax(scores, value):
    """The scores are used as weights. Weights have to be positive and sum to one in every row."""
    return attend_with(lambda s: s)(scores, value)


@mistake
def scores_divided_by_sum(scores, value):
    """The scores are divided by their sum. Scores may be negative, and the weights would be too: the exponential has to
    make them positive first."""
    return attend_with(lambda s: s / s.sum(-1, keepdim=True))(scores, value)


@mistake
def not_normalised(scores, value):
    """The exponentials are used as weights. They are positive, but do not sum to one yet."""
    return attend_with(torch.exp)(scores, value)


@mistake
def shifted_not_normalised(scores, value):
    """The largest weight of each row is 1. The *sum* of the row should be."""
    return attend_with(lambda s: (s - largest(s, -1)).exp())(scores, value)


@mistake
def sigmoid(scores, value):
    """Each score goes through a sigmoid of its own, so the weights do not sum to one. Keys compete for a query's
    attention."""
    return attend_with(torch.sigmoid)(scores, value)


@mistake
def logarithms(scores, value):
    """The weights are logarithms, all negative. Weights are positive and sum to one."""
    return attend_with(lambda s: s.log_softmax(-1))(scores, value)
