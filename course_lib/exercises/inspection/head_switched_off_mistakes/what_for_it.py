"""Mistakes in `head_switched_off`: what takes its place, and axes."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.inspection.head_switched_off_mistakes.parts import (
    features_zeroed,
    output_with,
    without,
    zeroed,
)

mistake = Mistakes()


def _filled(heads, off, axis):
    """The mean of the heads along an axis, in place of one head, and zero elsewhere."""
    mean = heads.mean(axis, keepdim=True).expand_as(heads)
    return mean - without(mean, off)


@mistake
def scaled_down(heads, weight, bias, off):
    """The other heads are scaled down, as in an average over all heads with one of them zero. They should contribute
    what they did before."""
    return output_with(lambda heads, off: without(heads, off) * ((heads.shape[1] - 1) / heads.shape[1]))(
        heads, weight, bias, off
    )


@mistake
def divided_by_the_number_of_heads(heads, weight, bias, off):
    """The heads are divided by their number. They are laid side by side, not averaged."""
    return output_with(lambda heads, off: without(heads, off) / heads.shape[1])(heads, weight, bias, off)


@mistake
def halved(heads, weight, bias, off):
    """The vectors of the head are halved, so it still contributes. A head that is switched off contributes nothing."""
    return output_with(lambda heads, off: (heads + without(heads, off)) / 2)(heads, weight, bias, off)


@mistake
def mean_over_the_batch(heads, weight, bias, off):
    """The vectors of the head are replaced by their mean over the batch. A head that is switched off contributes
    nothing, so its vectors are zero."""
    return output_with(lambda heads, off: without(heads, off) + _filled(heads, off, 0))(heads, weight, bias, off)


@mistake
def mean_over_batch_and_positions(heads, weight, bias, off):
    """The vectors of the head are replaced by their mean over batch and positions. A head that is switched off
    contributes nothing, so its vectors are zero."""
    return output_with(lambda heads, off: without(heads, off) + _filled(heads, off, (0, 2)))(heads, weight, bias, off)


@mistake
def neighbour_in_its_place(heads, weight, bias, off):
    """The vectors of a neighbouring head take the place of those of head `off`. Its place has to be filled with
    zeros."""
    return output_with(lambda heads, off: without(heads, off) + heads.roll(-1, 1) - without(heads.roll(-1, 1), off))(
        heads, weight, bias, off
    )


@mistake
def scaled_up(heads, weight, bias, off):
    """The other heads are scaled up to make up for the missing one, as dropout does. They should contribute what
    they did before."""
    return output_with(lambda heads, off: without(heads, off) * (heads.shape[1] / max(heads.shape[1] - 1, 1)))(
        heads, weight, bias, off
    )


@mistake
def mean_of_the_other_heads(heads, weight, bias, off):
    """The vectors of the head are replaced by the mean over all heads. A head that is switched off contributes
    nothing, so its vectors are zero."""
    return output_with(lambda heads, off: without(heads, off) + _filled(heads, off, 1))(heads, weight, bias, off)


@mistake
def mean_over_the_positions(heads, weight, bias, off):
    """The vectors of the head are replaced by their mean over the positions. A head that is switched off contributes
    nothing, so its vectors are zero."""
    return output_with(lambda heads, off: without(heads, off) + _filled(heads, off, 2))(heads, weight, bias, off)


@mistake
def set_to_one(heads, weight, bias, off):
    """The vectors of the head are set to one, so they still contribute: the sum of some columns of the matrix. A
    vector that contributes nothing is zero."""
    return output_with(lambda heads, off: without(heads, off) + without(torch.ones_like(heads), off).sub(1).neg())(
        heads, weight, bias, off
    )


@mistake
def minus_infinity(heads, weight, bias, off):
    """The vectors of the head are set to −∞, which gives NaN or ∞ in every output. −∞ masks *scores*, before a softmax;
    these vectors are summed, so they have to be zero to contribute nothing."""
    return output_with(lambda heads, off: heads.index_fill(1, torch.tensor([off]), -torch.inf))(
        heads, weight, bias, off
    )


@mistake
def taken_away_twice(heads, weight, bias, off):
    """The contribution of the head is subtracted from vectors that no longer contain it, so it comes in with the
    opposite sign."""
    return output_with(lambda heads, off: 2 * without(heads, off) - heads)(heads, weight, bias, off)


@mistake
def sequence_off(heads, weight, bias, off):
    """Sequence number `off` of the batch is set to zero, not head number `off`. The heads are axis 1."""
    return output_with(lambda heads, off: zeroed(heads, off))(heads, weight, bias, off)


@mistake
def position_off(heads, weight, bias, off):
    """Position number `off` is set to zero in all heads. The axes are batch, heads, positions, features."""
    return output_with(lambda heads, off: zeroed(heads, (slice(None), slice(None), off)))(heads, weight, bias, off)


@mistake
def feature_off(heads, weight, bias, off):
    """Feature number `off` is set to zero in all heads. A whole head has to be."""
    return output_with(lambda heads, off: zeroed(heads, (..., off)))(heads, weight, bias, off)


@mistake
def slice_from_off(heads, weight, bias, off):
    """Of the merged features, those from `off` on are set to zero. Head `off` begins at `off` times the width of a
    head."""
    return features_zeroed(lambda off, num_heads, d_head: slice(off, off + d_head))(heads, weight, bias, off)


@mistake
def one_merged_feature(heads, weight, bias, off):
    """Only one of the merged features is set to zero, number `off`. A head has d_head of them."""
    return features_zeroed(lambda off, num_heads, d_head: off)(heads, weight, bias, off)


@mistake
def slice_of_the_number_of_heads(heads, weight, bias, off):
    """The slice of merged features is H wide and begins at a multiple of H. The slice of a head is d_head wide."""
    return features_zeroed(lambda off, num_heads, d_head: slice(off * num_heads, (off + 1) * num_heads))(
        heads, weight, bias, off
    )


@mistake
def every_hth_feature(heads, weight, bias, off):
    """Every H-th of the merged features is set to zero. The features of a head are next to each other."""
    return features_zeroed(lambda off, num_heads, d_head: slice(off, None, num_heads))(heads, weight, bias, off)


@mistake
def one_feature_too_many(heads, weight, bias, off):
    """The slice ends one feature too late, and the first feature of the next head is lost. The end of a slice is not
    part of it."""
    return features_zeroed(lambda off, num_heads, d_head: slice(off * d_head, (off + 1) * d_head + 1))(
        heads, weight, bias, off
    )
