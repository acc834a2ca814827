"""Mistakes in `softmax`: what is subtracted from the scores, and along which axis."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.softmax import softmax
from course_lib.exercises.attention.steps_of_softmax import UNSTABLE, nothing, softmax_with

mistake = Mistakes()


@mistake
def unstable(scores, dim=-1):
    """Right for small scores, but the exponentials of large ones overflow to inf, and those of very negative ones
    become 0, so 0 is divided by 0. A constant added to all scores of a row cancels in the fraction: which constant
    keeps the exponents in range?"""
    return UNSTABLE(scores, dim)


@mistake
def largest_of_all(scores, dim=-1):
    """The largest score of the whole tensor is subtracted from every row. In a row far below it, all exponentials
    become 0. Each row may have its own constant."""
    return softmax_with(shift=lambda s, dim: s.max())(scores, dim)


@mistake
def largest_of_all_and_sum_of_all(scores, dim=-1):
    """The whole tensor sums to one, as if it were one long row. Each row along `dim` has to sum to one by itself."""
    return softmax_with(shift=lambda s, dim: s.max(), total=lambda e, dim: e.sum())(scores, dim)


@mistake
def sum_of_all(scores, dim=-1):
    """The exponentials are divided by the sum of all of them, so the whole tensor sums to one. Every row along `dim`
    has to."""
    return softmax_with(total=lambda e, dim: e.sum())(scores, dim)


@mistake
def unstable_and_sum_of_all(scores, dim=-1):
    """All exponentials of the tensor are added up; only those along `dim` belong together. (And large scores
    overflow.)"""
    return softmax_with(shift=nothing, total=lambda e, dim: e.sum())(scores, dim)


@mistake
def dim_ignored(scores, dim=-1):
    """It always runs along the last axis, whatever `dim` is. The argument names the axis that sums to one."""
    return softmax(scores, -1)


@mistake
def dim_ignored_unstable(scores, dim=-1):
    """`dim` is not used: the sum always runs along the last axis. (And large scores overflow.)"""
    return UNSTABLE(scores, -1)


@mistake
def first_axis(scores, dim=-1):
    """It always runs along the first axis. The axis should be `dim`, which is the last one by default."""
    return softmax(scores, 0)


@mistake
def first_axis_by_default(scores, dim=0):
    """When no axis is named, it runs along the first one. The default of `dim` should be the last axis, the axis of
    the keys."""
    return softmax(scores, dim)


@mistake
def axis_1(scores, dim=-1):
    """It always runs along axis 1. That is the last axis only of a matrix; the axis to use is `dim`."""
    return softmax(scores, 1)


@mistake
def axis_1_by_default(scores, dim=1):
    """When no axis is named, it runs along axis 1, counted from the left. A vector has no such axis; the last axis has
    an index that works for all tensors."""
    return softmax(scores, dim)


@mistake
def torch_softmax_without_dim(scores, dim=-1):
    """PyTorch's softmax without `dim` picks an axis according to the number of axes: the first of three, the second of
    two or four. It is deprecated for that reason; use `dim`."""
    return F.softmax(scores)


@mistake
def slice_by_slice(scores, dim=-1):
    """A loop over the first axis makes each slice sum to one. A slice is a row only in a matrix; `dim` names the axis,
    whatever the number of axes, and no loop is needed."""
    return torch.stack([(s - s.max()).exp() / (s - s.max()).exp().sum() for s in scores])


@mistake
def axis_dropped(scores, dim=-1):
    """The maximum or the sum along `dim` has lost that axis. Axes are lined up from the right, so the remaining axes
    are combined with the wrong ones. There is an option that keeps the axis, with length 1."""
    return softmax_with(total=lambda e, dim: e.sum(dim))(scores, dim)


@mistake
def max_gives_a_pair(scores, dim=-1):
    """`max` along an axis returns two things, the largest values and their positions. Only the values are wanted
    here."""
    return softmax_with(shift=lambda s, dim: s.max(dim, keepdim=True))(scores, dim)


@mistake
def sum_over_last_axis(scores, dim=-1):
    """The maximum is taken along `dim`, but the sum runs along the last axis. Both belong to the same row."""
    return softmax_with(total=lambda e, dim: e.sum(-1, keepdim=True))(scores, dim)


@mistake
def sum_over_first_axis(scores, dim=-1):
    """The maximum is taken along `dim`, but the sum runs along the first axis. Both belong to the same row."""
    return softmax_with(total=lambda e, dim: e.sum(0, keepdim=True))(scores, dim)


@mistake
def sum_axis_put_back_at_1(scores, dim=-1):
    """The axis that the sum has lost is put back as axis 1, which is its place only in a matrix whose rows are summed.
    For a vector and for other values of `dim`, it belongs somewhere else; there is an option that keeps it."""
    return softmax_with(total=lambda e, dim: e.sum(dim).unsqueeze(1))(scores, dim)


@mistake
def largest_size_of_all(scores, dim=-1):
    """The largest absolute value of the whole tensor is subtracted from every row. In a row far below it, all
    exponentials become 0. Each row may have its own constant."""
    return softmax_with(shift=lambda s, dim: s.abs().max())(scores, dim)


@mistake
def shift_over_last_axis(scores, dim=-1):
    """The sum runs along `dim`, but the maximum is taken along the last axis. The number subtracted cancels only if it
    is the same for all scores that are summed together."""
    return softmax_with(shift=lambda s, dim: s.amax(-1, keepdim=True))(scores, dim)
