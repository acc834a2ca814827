"""Mistakes in `head_switched_off`: how heads are merged and projected, and what is changed."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.inspection.head_switched_off import head_switched_off
from course_lib.exercises.inspection.head_switched_off_mistakes.parts import (
    output_with,
    project,
    side_by_side,
    without,
    zeroed,
)

mistake = Mistakes()


def _slice_of_the_output(heads, weight, bias, off):
    """The full output, with zeros where the head was before the projection."""
    output = project(side_by_side(heads), weight, bias)
    output[..., off * heads.shape[3] : (off + 1) * heads.shape[3]] = 0
    return output


@mistake
def reshaped_without_transposing(heads, weight, bias, off):
    """The heads are reshaped to `(B, L, …)` while H still comes before L. The shape is right, but the vectors of
    different positions are mixed up: the two axes have to be exchanged first."""
    return output_with(merge=lambda heads: heads.reshape(heads.shape[0], heads.shape[2], -1))(heads, weight, bias, off)


@mistake
def features_interleaved(heads, weight, bias, off):
    """The merged vector holds the first features of all heads, then the second ones, and so on. All features of head
    0 come first, then those of head 1."""
    return output_with(merge=lambda heads: heads.permute(0, 2, 3, 1).flatten(2))(heads, weight, bias, off)


@mistake
def heads_reversed(heads, weight, bias, off):
    """The heads are laid side by side in reverse order. Head 0 comes first."""
    return output_with(merge=lambda heads: side_by_side(heads.flip(1)))(heads, weight, bias, off)


@mistake
def heads_summed(heads, weight, bias, off):
    """The heads are added into one vector of d_head features. The projection expects them side by side."""
    return output_with(merge=lambda heads: heads.sum(1))(heads, weight, bias, off)


@mistake
def head_removed(heads, weight, bias, off):
    """The head is removed altogether, and the vector is now too short for the matrix. Either its place stays, with
    zeros, or the columns of the matrix that belong to it go as well."""
    return output_with(lambda heads, off: torch.cat((heads[:, :off], heads[:, off + 1 :]), 1))(heads, weight, bias, off)


@mistake
def others_moved_up(heads, weight, bias, off):
    """The head is removed and the heads after it move up, so they meet the columns of another head. The columns of
    the matrix that belong to the removed head have to go, not the last ones."""
    return project(
        side_by_side(torch.cat((heads[:, :off], heads[:, off + 1 :]), 1)),
        weight[:, : weight.shape[1] - heads.shape[-1]],
        bias,
    )


@mistake
def batch_and_positions_exchanged(heads, weight, bias, off):
    """Batch and positions are exchanged in the result. It is `(B, L, d_out)`."""
    return output_with(merge=lambda heads: heads.permute(2, 0, 1, 3).flatten(2))(heads, weight, bias, off)


@mistake
def not_projected(heads, weight, bias, off):
    """The heads are merged, but not projected: the matrix and the bias are still to be applied."""
    return side_by_side(without(heads, off))


@mistake
def bias_lost(heads, weight, bias, off):
    """The bias is missing. It belongs to the projection and not to a head, so it stays."""
    return output_with(project=lambda merged, weight, bias: merged @ weight.T)(heads, weight, bias, off)


@mistake
def bias_shared_out(heads, weight, bias, off):
    """The bias is reduced as if each head owned a share of it. It belongs to the projection and not to a head, so it
    stays whole."""
    return project(side_by_side(without(heads, off)), weight, bias * (heads.shape[1] - 1) / heads.shape[1])


@mistake
def bias_once_per_head(heads, weight, bias, off):
    """The bias is added once for each remaining head. It belongs to the projection, which adds it once."""
    return project(side_by_side(without(heads, off)), weight, bias * (heads.shape[1] - 1))


@mistake
def weight_not_transposed(heads, weight, bias, off):
    """The projection is applied as x W. An `nn.Linear` computes W x for a vector x; with vectors as rows, that is a
    product with the transposed matrix."""
    return output_with(project=lambda merged, weight, bias: merged @ weight + bias)(heads, weight, bias, off)


@mistake
def output_features_off(heads, weight, bias, off):
    """The features of the *output* are set to zero. The projection mixes the heads, so none of its output features
    belongs to a single head."""
    return project(side_by_side(heads), weight, bias) * side_by_side(without(torch.ones_like(heads), off))


@mistake
def slice_of_the_output_off(heads, weight, bias, off):
    """A slice of the *output* is set to zero, at the place where the head was before the projection. The projection
    mixes the heads, so no output feature belongs to a single head."""
    return _slice_of_the_output(heads, weight, bias, off)


@mistake
def bias_of_the_head_off(heads, weight, bias, off):
    """A slice of the bias is set to zero together with the head. The bias belongs to the output features, not to the
    heads, so it stays whole."""
    return project(
        side_by_side(without(heads, off)),
        weight,
        zeroed(bias, slice(off * heads.shape[3], (off + 1) * heads.shape[3])),
    )


@mistake
def bias_twice(heads, weight, bias, off):
    """The bias is added twice. It belongs to the projection, which adds it once."""
    return output_with(project=lambda merged, weight, bias: merged @ weight.T + 2 * bias)(heads, weight, bias, off)


@mistake
def bias_times_the_number_of_heads(heads, weight, bias, off):
    """The bias is added once for each head, the silent one included. It belongs to the projection, which adds it
    once."""
    return project(side_by_side(without(heads, off)), weight, bias * heads.shape[1])


@mistake
def bias_subtracted(heads, weight, bias, off):
    """The bias is subtracted instead of added."""
    return output_with(project=lambda merged, weight, bias: merged @ weight.T - bias)(heads, weight, bias, off)


@mistake
def one_row_of_the_matrix_off(heads, weight, bias, off):
    """Row number `off` of the matrix is set to zero. A row makes one output feature from all heads; a head enters
    through d_head *columns*."""
    return project(side_by_side(heads), zeroed(weight, off), bias)


@mistake
def rows_of_the_matrix_off(heads, weight, bias, off):
    """The *rows* of the matrix at the place of the head are set to zero. A row makes one output feature from all
    heads; what a head contributes goes through the *columns*."""
    return project(side_by_side(heads), zeroed(weight, slice(off * heads.shape[3], (off + 1) * heads.shape[3])), bias)


@mistake
def difference_returned(heads, weight, bias, off):
    """This is the *change* that switching off the head makes, or its negative. The output without the head is
    wanted."""
    return side_by_side(heads - without(heads, off)) @ weight.T


@mistake
def caller_changed(heads, weight, bias, off):
    """The output is right, but the caller's heads are changed: an assignment to a part of a tensor works in place.
    Switching off one head after another, you would soon have none left. Work on a copy."""
    heads[:, off] = 0
    return project(side_by_side(heads), weight, bias)


@mistake
def matrix_changed(heads, weight, bias, off):
    """The output is right, but the caller's matrix is changed: its columns for this head are overwritten, and the
    model has lost the head for good. Work on a copy."""
    d_head = heads.shape[-1]
    weight[:, off * d_head : (off + 1) * d_head] = 0
    return project(side_by_side(heads), weight, bias)


@mistake
def float32_inside(heads, weight, bias, off):
    """Somewhere inside, the numbers become float32, so float64 input loses half of its digits."""
    return head_switched_off(heads.float(), weight.float(), bias.float(), off).to(heads.dtype)


def others(heads, off):
    return torch.cat((heads[:, :off], heads[:, off + 1 :]), 1)


def full(heads, weight, bias):
    return project(side_by_side(heads), weight, bias)


def zeroed_after_reshaping(heads, weight, bias, off):
    batch, num_heads, length, d_head = heads.shape
    merged = heads.reshape(batch, length, num_heads, d_head).clone()
    merged[:, :, off] = 0
    return project(merged.flatten(2), weight, bias)


@mistake
def columns_of_the_first_head(heads, weight, bias, off):
    """The contribution that is subtracted has been computed with the columns of head 0. Each head has its own
    columns of the matrix."""
    return full(heads, weight, bias) - heads[:, off] @ weight[:, : heads.shape[3]].T


@mistake
def head_doubled(heads, weight, bias, off):
    """The contribution of the head is added once more instead of subtracted, so the head counts twice."""
    return output_with(lambda heads, off: 2 * heads - without(heads, off))(heads, weight, bias, off)


@mistake
def zeros_in_front(heads, weight, bias, off):
    """The head is removed and zeros are put in front, so the heads before it meet the columns of another head. The
    zeros belong where the head was."""
    return output_with(lambda heads, off: torch.cat((0 * heads[:, :1], others(heads, off)), 1))(
        heads, weight, bias, off
    )


@mistake(key="zeroed_after_reshaping")
def zeroed_after_reshaping_(heads, weight, bias, off):
    """The heads are reshaped to `(B, L, H, d_head)` while H still comes before L, so the zeros do not meet the head,
    and positions are mixed up. The two axes have to be exchanged first."""
    return zeroed_after_reshaping(heads, weight, bias, off)


@mistake
def output_scaled_up(heads, weight, bias, off):
    """The whole output is scaled up to make up for the missing head, the bias as well. Nothing should be scaled."""
    return head_switched_off(heads, weight, bias, off) * (heads.shape[1] / max(heads.shape[1] - 1, 1))


@mistake
def output_scaled_down(heads, weight, bias, off):
    """The whole output is scaled down, as in an average over the heads. Nothing should be scaled."""
    return head_switched_off(heads, weight, bias, off) * ((heads.shape[1] - 1) / heads.shape[1])


@mistake
def head_zero_never_off(heads, weight, bias, off):
    """Head 0 is never switched off: 0 counts as False in Python, so `if off` skips it."""
    return head_switched_off(heads, weight, bias, off) if off else full(heads, weight, bias)


@mistake
def only_first_columns_of_the_others(heads, weight, bias, off):
    """Every remaining head is projected with the columns of head 0. Each head has its own columns of the matrix."""
    return others(heads, off).sum(1) @ weight[:, : heads.shape[3]].T + bias


@mistake
def averaged_over_the_positions(heads, weight, bias, off):
    """The output is averaged over the positions. Each position has its own, `(B, L, d_out)`."""
    return head_switched_off(heads, weight, bias, off).mean(1)


@mistake
def residual_of_the_output(heads, weight, bias, off):
    """The output of the head is subtracted *after* the projection, feature by feature, without being projected
    itself."""
    return full(heads, weight, bias) - side_by_side(heads - without(heads, off))


@mistake
def squeezed(heads, weight, bias, off):
    """Axes of length 1 are squeezed away: a single sentence or a single position loses its axis."""
    return head_switched_off(heads, weight, bias, off).squeeze()


def slice_too_short(heads, weight, bias, off):
    merged, d_head = side_by_side(heads).clone(), heads.shape[-1]
    merged[..., off * d_head : (off + 1) * d_head - 1] = 0
    return project(merged, weight, bias)


@mistake
def last_feature_left_on(heads, weight, bias, off):
    """The last feature of the head still reaches the output. A slice ends *before* its second number, so the head's
    features are `off * d_head : (off + 1) * d_head`."""
    return slice_too_short(heads, weight, bias, off)
