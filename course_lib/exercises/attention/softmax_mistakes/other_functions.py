"""Mistakes in `softmax`: another function of the scores, and what is changed."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.softmax import softmax
from course_lib.exercises.attention.steps_of_softmax import largest, softmax_with

mistake = Mistakes()


@mistake
def not_normalised(scores, dim=-1):
    """These are the exponentials. Weights have to sum to one."""
    return softmax_with(total=lambda e, dim: 1.0)(scores, dim)


@mistake
def plain_exponentials(scores, dim=-1):
    """The exponentials are returned as they are, not divided by their sum. (And large scores overflow.)"""
    return scores.exp()


@mistake
def no_exponential(scores, dim=-1):
    """The scores themselves are divided by their sum. Scores may be negative, and the sum may be 0; which function
    makes every score positive and keeps their order?"""
    return scores / scores.sum(dim, keepdim=True)


@mistake
def shifted_without_exponential(scores, dim=-1):
    """The largest score is subtracted, and the differences are divided by their sum. The exponential is missing, so
    the best score gets weight 0."""
    return softmax_with(power=lambda x: x)(scores, dim)


@mistake
def sizes(scores, dim=-1):
    """The absolute scores are divided by their sum. A strongly negative score then gets much attention; it should
    get next to none."""
    return scores.abs() / scores.abs().sum(dim, keepdim=True)


@mistake
def min_max(scores, dim=-1):
    """The scores are rescaled to the range from 0 to 1. That depends on the smallest and the largest score only;
    the weights should be ratios of exponentials, and sum to one."""
    return (scores - scores.amin(dim, keepdim=True)) / (largest(scores, dim) - scores.amin(dim, keepdim=True))


@mistake
def sigmoid(scores, dim=-1):
    """Each score goes through a sigmoid of its own. These numbers also lie between 0 and 1, but they do not sum to one:
    keys compete for one unit of attention."""
    return torch.sigmoid(scores)


@mistake
def base_2(scores, dim=-1):
    """The powers are of 2, not of e. A score larger by 1 should make its weight larger by the factor 2.718…"""
    return softmax_with(power=torch.exp2)(scores, dim)


@mistake
def base_10(scores, dim=-1):
    """The powers are of 10, not of e. A score larger by 1 should make its weight larger by the factor 2.718…"""
    return softmax_with(power=lambda x: 10.0**x)(scores, dim)


@mistake
def logarithms(scores, dim=-1):
    """These are the logarithms of the weights. One more step, and they are positive and sum to one."""
    return torch.log_softmax(scores, dim)


@mistake
def signs_turned(scores, dim=-1):
    """The smallest score gets the largest weight. Look at the sign in the exponent, or at the order of a
    subtraction."""
    return softmax(-scores, dim)


@mistake
def signs_turned_unstable(scores, dim=-1):
    """The differences are largest score minus score, so they have the wrong sign, and their exponentials overflow."""
    return softmax_with(power=lambda x: (-x).exp())(scores, dim)


@mistake
def hard(scores, dim=-1):
    """The best score gets everything. That is the limit of very sharp attention; a softmax gives every key some weight,
    and gradients flow through it."""
    return (scores == largest(scores, dim)).to(scores.dtype)


@mistake
def scaled_by_root(scores, dim=-1):
    """The scores are divided by the root of their number first. That root belongs to dot products and is not part of
    the softmax."""
    return softmax(scores / scores.shape[dim] ** 0.5, dim)


@mistake
def twice(scores, dim=-1):
    """The softmax is applied twice. Weights are not scores, and a second softmax evens them out."""
    return softmax(softmax(scores, dim), dim)


@mistake
def mean_for_sum(scores, dim=-1):
    """The exponentials are divided by their mean. The weights then sum to the number of scores instead of one."""
    return softmax_with(total=lambda e, dim: e.mean(dim, keepdim=True))(scores, dim)


@mistake
def root_of_squares(scores, dim=-1):
    """The exponentials are divided by their length as a vector, so the *squares* sum to one. The weights themselves
    should."""
    return softmax_with(total=lambda e, dim: e.norm(dim=dim, keepdim=True))(scores, dim)


@mistake
def float32_inside(scores, dim=-1):
    """Somewhere inside, the scores become float32, so float64 input loses half of its digits."""
    return softmax(scores.float(), dim).to(scores.dtype)


@mistake
def caller_changed(scores, dim=-1):
    """The weights are right, but the caller's scores are changed: `-=`, or a method whose name ends in `_`, works in
    place."""
    scores -= scores.amax(dim, keepdim=True)
    return scores.exp() / scores.exp().sum(dim, keepdim=True)


@mistake
def caller_changed_unstable(scores, dim=-1):
    """The exponentials are written over the caller's scores: a method whose name ends in `_` works in place. (And
    large scores overflow.)"""
    scores.exp_()
    return scores / scores.sum(dim, keepdim=True)


@mistake
def sum_detached(scores, dim=-1):
    """The weights are right, but the sum is detached from the graph. A score changes the other weights through the sum,
    so the sum has to stay in the graph."""
    exponentials = (scores - scores.amax(dim, keepdim=True).detach()).exp()
    return exponentials / exponentials.sum(dim, keepdim=True).detach()
