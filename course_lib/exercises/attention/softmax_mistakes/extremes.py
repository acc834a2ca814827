"""Mistakes in `softmax`: scores that are large or far apart."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.softmax import softmax
from course_lib.exercises.attention.steps_of_softmax import UNSTABLE, largest, nothing, softmax_with

mistake = Mistakes()


@mistake
def divided_by_largest(scores, dim=-1):
    """The scores are divided by the largest one. Only an added or subtracted constant cancels in the fraction; a factor
    changes the weights."""
    return UNSTABLE(scores / largest(scores, dim), dim)


@mistake
def divided_by_largest_size(scores, dim=-1):
    """The scores are divided by the largest absolute value. A factor on the scores changes how sharp the weights are;
    subtracting a constant does not."""
    return UNSTABLE(scores / scores.abs().amax(dim, keepdim=True), dim)


@mistake
def standardised(scores, dim=-1):
    """The scores are first normalised to mean 0 and standard deviation 1. Subtracting the mean is harmless, but
    dividing by the standard deviation changes the weights."""
    return softmax(scores / scores.std(dim, keepdim=True), dim)


@mistake
def smallest_taken_off(scores, dim=-1):
    """The smallest score is subtracted. It cancels too, but leaves large positive exponents: which constant leaves
    none above 0?"""
    return softmax_with(shift=lambda s, dim: s.amin(dim, keepdim=True))(scores, dim)


@mistake
def mean_taken_off(scores, dim=-1):
    """The mean score is subtracted. It cancels too, but where scores differ by thousands, the largest still overflows:
    which constant leaves no exponent above 0?"""
    return softmax_with(shift=lambda s, dim: s.mean(dim, keepdim=True))(scores, dim)


@mistake
def largest_size_taken_off(scores, dim=-1):
    """The largest *absolute* value is subtracted. Where all scores are far below zero, every exponent then becomes even
    lower, and the sum is 0."""
    return softmax_with(shift=lambda s, dim: s.abs().amax(dim, keepdim=True))(scores, dim)


@mistake
def largest_added(scores, dim=-1):
    """The largest score is added. It cancels in the fraction, but makes large exponents larger still."""
    return softmax_with(shift=lambda s, dim: -largest(s, dim))(scores, dim)


@mistake
def clamped(scores, dim=-1):
    """Large scores are clipped. The result is finite, but wrong: scores beyond the bound become equal, although their
    difference determines the weights."""
    return UNSTABLE(scores.clamp(-50.0, 50.0), dim)


@mistake
def clamped_at_the_edge(scores, dim=-1):
    """Large scores are clipped where a single exponential still fits. The sum of several does not fit, and scores
    beyond the bound become equal, although their difference determines the weights."""
    return UNSTABLE(scores.clamp(-88.0, 88.0), dim)


@mistake
def clamped_above(scores, dim=-1):
    """Scores above a bound are clipped, so their differences are lost, and the exponentials of very negative scores are
    still 0. Subtracting a constant from the whole row loses nothing."""
    return UNSTABLE(scores.clamp(max=80.0), dim)


@mistake
def small_number_in_the_sum(scores, dim=-1):
    """A small number added to the sum hides the division of 0 by 0, but then the row sums to 0 and not to 1, and large
    scores still overflow. Keep the exponents in range instead."""
    return softmax_with(shift=nothing, total=lambda e, dim: e.sum(dim, keepdim=True) + 1e-12)(scores, dim)


@mistake
def small_number_in_a_safe_sum(scores, dim=-1):
    """A small number is added to the sum. After the largest score has been subtracted, the sum is at least 1 and needs
    no protection; the weights no longer sum to one, which shows in float64."""
    return softmax_with(total=lambda e, dim: e.sum(dim, keepdim=True) + 1e-8)(scores, dim)


@mistake
def larger_number_in_a_safe_sum(scores, dim=-1):
    """A number such as 1e-6 is added to the sum, which is at least 1 already and needs no protection. The weights no
    longer sum to one, which shows in float64."""
    return softmax_with(total=lambda e, dim: e.sum(dim, keepdim=True) + 1e-6)(scores, dim)


@mistake
def one_in_the_sum(scores, dim=-1):
    """The sum has a 1 that the formula does not have, so the weights sum to less than one."""
    return softmax_with(shift=nothing, total=lambda e, dim: e.sum(dim, keepdim=True) + 1.0)(scores, dim)


@mistake
def one_in_a_safe_sum(scores, dim=-1):
    """The sum has a 1 too many: the largest exponential is counted in it already."""
    return softmax_with(total=lambda e, dim: e.sum(dim, keepdim=True) + 1.0)(scores, dim)


@mistake
def shift_above_only(scores, dim=-1):
    """The constant is subtracted in the numerator, but not in the denominator. It cancels only if it is in both."""
    return (scores - largest(scores, dim)).exp() / scores.exp().sum(dim, keepdim=True)


@mistake
def shift_below_only(scores, dim=-1):
    """The constant is subtracted in the denominator, but not in the numerator. It cancels only if it is in both."""
    return scores.exp() / (scores - largest(scores, dim)).exp().sum(dim, keepdim=True)


@mistake
def sum_without_own(scores, dim=-1):
    """Each exponential is divided by the sum of the *others*. That gives odds; for weights, the sum includes the
    score's own exponential."""
    return softmax_with(total=lambda e, dim: e.sum(dim, keepdim=True) - e)(scores, dim)


@mistake
def axis_put_back_last(scores, dim=-1):
    """The axis that the sum has lost is put back at the end. That is right only if it was the last axis; for other
    values of `dim` it belongs where it was."""
    return softmax_with(total=lambda e, dim: e.sum(dim).unsqueeze(-1))(scores, dim)


@mistake
def moved_and_left(scores, dim=-1):
    """The axis `dim` is moved to the end and stays there. The result needs the axes in their original order."""
    return softmax(scores.transpose(dim, -1), -1)


@mistake
def nan_replaced(scores, dim=-1):
    """Where the exponentials overflow, `nan` is replaced afterwards. The replacements are not the right weights; if the
    exponents stay in range, no `nan` appears."""
    return UNSTABLE(scores, dim).nan_to_num()
