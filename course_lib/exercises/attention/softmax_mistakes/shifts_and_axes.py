"""Mistakes in `softmax`: what is taken off the scores, and along which axis."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.softmax import softmax
from course_lib.exercises.attention.steps_of_softmax import UNSTABLE, nothing, softmax_with

mistake = Mistakes()


@mistake
def unstable(scores, dim=-1):
    """Right for small scores, but large ones overflow to inf, and far negative ones vanish, so that 0 is divided by
    0. A constant added to all scores of a row cancels in the fraction: which one keeps the exponents in range?"""
    return UNSTABLE(scores, dim)


@mistake
def largest_of_all(scores, dim=-1):
    """The largest score of the whole tensor is taken off every row. A row that lies far below it vanishes
    altogether. Each row may have its own constant."""
    return softmax_with(shift=lambda s, dim: s.max())(scores, dim)


@mistake
def largest_of_all_and_sum_of_all(scores, dim=-1):
    """The whole tensor sums to one, as if it were one long row. Along `dim` every row has to sum to one by itself."""
    return softmax_with(shift=lambda s, dim: s.max(), total=lambda e, dim: e.sum())(scores, dim)


@mistake
def sum_of_all(scores, dim=-1):
    """The exponentials are divided by the sum of all of them, so that the whole tensor sums to one. Along `dim`
    every row has to."""
    return softmax_with(total=lambda e, dim: e.sum())(scores, dim)


@mistake
def unstable_and_sum_of_all(scores, dim=-1):
    """All exponentials of the tensor are added up; only those along `dim` belong together. (And large scores
    overflow.)"""
    return softmax_with(shift=nothing, total=lambda e, dim: e.sum())(scores, dim)


@mistake
def dim_ignored(scores, dim=-1):
    """It always runs along the last axis, whatever `dim` says. What the argument is for: the axis that sums to one."""
    return softmax(scores, -1)


@mistake
def dim_ignored_unstable(scores, dim=-1):
    """`dim` is not used: the sum always runs along the last axis. (And large scores overflow.)"""
    return UNSTABLE(scores, -1)


@mistake
def first_axis(scores, dim=-1):
    """It always runs along the first axis. The contract's axis is `dim`, and that is the last one unless told
    otherwise."""
    return softmax(scores, 0)


@mistake
def first_axis_by_default(scores, dim=0):
    """When no axis is named, it runs along the first one. The default of `dim` should be the last axis, the axis of
    the keys."""
    return softmax(scores, dim)


@mistake
def axis_1(scores, dim=-1):
    """It always runs along axis 1. That is the last axis of a matrix, and of nothing else; the axis to use is `dim`."""
    return softmax(scores, 1)


@mistake
def axis_1_by_default(scores, dim=1):
    """When no axis is named, it runs along axis 1, counted from the left. A vector has no such axis; the last one
    has a number that is the same for all tensors."""
    return softmax(scores, dim)


@mistake
def torch_softmax_without_dim(scores, dim=-1):
    """PyTorch's softmax without `dim` picks an axis by the number of axes: the first of three, the second of two or
    four. It is deprecated for that reason; here `dim` says which."""
    return F.softmax(scores)


@mistake
def slice_by_slice(scores, dim=-1):
    """A loop over the first axis makes each slice sum to one. A slice is a row in a matrix only; `dim` says which
    axis it is, whatever the number of axes, and no loop is needed."""
    return torch.stack([(s - s.max()).exp() / (s - s.max()).exp().sum() for s in scores])


@mistake
def axis_dropped(scores, dim=-1):
    """The maximum or the sum along `dim` has lost that axis. Axes are lined up from the right, so what is left meets
    the wrong ones. There is an option that keeps the axis, with length 1."""
    return softmax_with(total=lambda e, dim: e.sum(dim))(scores, dim)


@mistake
def max_gives_a_pair(scores, dim=-1):
    """`max` along an axis returns two things, the largest values and their positions. Only the values are wanted
    here."""
    return softmax_with(shift=lambda s, dim: s.max(dim, keepdim=True))(scores, dim)


@mistake
def sum_over_last_axis(scores, dim=-1):
    """The largest score is sought along `dim`, but the sum runs along the last axis. Both belong to the same row."""
    return softmax_with(total=lambda e, dim: e.sum(-1, keepdim=True))(scores, dim)


@mistake
def shift_over_last_axis(scores, dim=-1):
    """The sum runs along `dim`, but the largest score is sought along the last axis. What is taken off cancels only
    if it is the same for all scores that are summed together."""
    return softmax_with(shift=lambda s, dim: s.amax(-1, keepdim=True))(scores, dim)
