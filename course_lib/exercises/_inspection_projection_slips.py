"""Mistakes after switching off a head: how the heads are merged, and how they are projected."""

from __future__ import annotations

import torch

from course_lib.exercises._exercise import Exercise
from course_lib.exercises._inspection_switched_off_slips import output_with, project, side_by_side, without, zeroed

__all__ = ["add_projection_slips"]


def _slice_of_the_output(heads, weight, bias, off):
    """The full output, with zeros where the head was before the projection."""
    output = project(side_by_side(heads), weight, bias)
    output[..., off * heads.shape[3] : (off + 1) * heads.shape[3]] = 0
    return output


def add_projection_slips(exercise: Exercise) -> None:
    """Add the mistakes to the exercise `head_switched_off`."""
    _add_merging(exercise)
    _add_projection(exercise)
    _add_conduct(exercise)


def _add_merging(exercise: Exercise) -> None:
    exercise.misconception(
        "reshaped_without_transposing",
        "The heads are reshaped to `(B, L, …)` while H still comes before L. The shape is right, but the vectors of "
        "different positions are mixed up: the two axes have to be exchanged first.",
    )(output_with(merge=lambda heads: heads.reshape(heads.shape[0], heads.shape[2], -1)))
    exercise.misconception(
        "features_interleaved",
        "The merged vector holds the first features of all heads, then the second ones, and so on. All features of "
        "head 0 come first, then those of head 1.",
    )(output_with(merge=lambda heads: heads.permute(0, 2, 3, 1).flatten(2)))
    exercise.misconception(
        "heads_reversed",
        "The heads are laid side by side in reverse order. Head 0 comes first.",
    )(output_with(merge=lambda heads: side_by_side(heads.flip(1))))
    exercise.misconception(
        "heads_summed",
        "The heads are added into one vector of d_head features. The projection expects them side by side.",
    )(output_with(merge=lambda heads: heads.sum(1)))
    exercise.misconception(
        "head_removed",
        "The head is removed altogether, and the vector is now too short for the matrix. Either its place stays, with "
        "zeros, or the columns of the matrix that belong to it go as well.",
    )(output_with(lambda heads, off: torch.cat((heads[:, :off], heads[:, off + 1 :]), 1)))
    exercise.misconception(
        "others_moved_up",
        "The head is removed and the heads after it move up, so they meet the columns of another head. The columns of "
        "the matrix that belong to the removed head have to go, not the last ones.",
    )(
        lambda heads, weight, bias, off: project(
            side_by_side(torch.cat((heads[:, :off], heads[:, off + 1 :]), 1)),
            weight[:, : weight.shape[1] - heads.shape[-1]],
            bias,
        )
    )
    exercise.misconception(
        "batch_and_positions_exchanged",
        "Batch and positions are exchanged in the result. It is `(B, L, d_out)`.",
    )(output_with(merge=lambda heads: heads.permute(2, 0, 1, 3).flatten(2)))
    exercise.misconception(
        "not_projected",
        "The heads are merged, but not projected: the matrix and the bias are still to be applied.",
    )(lambda heads, weight, bias, off: side_by_side(without(heads, off)))


def _add_projection(exercise: Exercise) -> None:
    exercise.misconception(
        "bias_lost",
        "The bias is missing. It belongs to the projection and not to a head, so it stays.",
    )(output_with(project=lambda merged, weight, bias: merged @ weight.T))
    exercise.misconception(
        "bias_shared_out",
        "The bias is reduced as if each head owned a share of it. It belongs to the projection and not to a head, so "
        "it stays whole.",
    )(
        lambda heads, weight, bias, off: project(
            side_by_side(without(heads, off)), weight, bias * (heads.shape[1] - 1) / heads.shape[1]
        )
    )
    exercise.misconception(
        "bias_once_per_head",
        "The bias is added once for each remaining head. It belongs to the projection, which adds it once.",
    )(lambda heads, weight, bias, off: project(side_by_side(without(heads, off)), weight, bias * (heads.shape[1] - 1)))
    exercise.misconception(
        "weight_not_transposed",
        "The projection is applied as x W. An `nn.Linear` computes W x for a vector x; with vectors as rows, that is a "
        "product with the transposed matrix.",
    )(output_with(project=lambda merged, weight, bias: merged @ weight + bias))
    exercise.misconception(
        "output_features_off",
        "The features of the *output* are set to zero. The projection mixes the heads, so none of its output features "
        "belongs to a single head.",
    )(
        lambda heads, weight, bias, off: (
            project(side_by_side(heads), weight, bias) * side_by_side(without(torch.ones_like(heads), off))
        )
    )
    exercise.misconception(
        "slice_of_the_output_off",
        "A slice of the *output* is set to zero, at the place where the head was before the projection. The projection "
        "mixes the heads, so no output feature belongs to a single head.",
    )(_slice_of_the_output)
    exercise.misconception(
        "bias_of_the_head_off",
        "A slice of the bias is set to zero together with the head. The bias belongs to the output features, not to "
        "the heads, so it stays whole.",
    )(
        lambda heads, weight, bias, off: project(
            side_by_side(without(heads, off)),
            weight,
            zeroed(bias, slice(off * heads.shape[3], (off + 1) * heads.shape[3])),
        )
    )
    exercise.misconception(
        "bias_twice",
        "The bias is added twice. It belongs to the projection, which adds it once.",
    )(output_with(project=lambda merged, weight, bias: merged @ weight.T + 2 * bias))
    exercise.misconception(
        "bias_times_the_number_of_heads",
        "The bias is added once for each head, the silent one included. It belongs to the projection, which adds it "
        "once.",
    )(lambda heads, weight, bias, off: project(side_by_side(without(heads, off)), weight, bias * heads.shape[1]))
    exercise.misconception(
        "bias_subtracted",
        "The bias is subtracted instead of added.",
    )(output_with(project=lambda merged, weight, bias: merged @ weight.T - bias))
    exercise.misconception(
        "one_row_of_the_matrix_off",
        "Row number `off` of the matrix is set to zero. A row makes one output feature from all heads; a head enters "
        "through d_head *columns*.",
    )(lambda heads, weight, bias, off: project(side_by_side(heads), zeroed(weight, off), bias))
    exercise.misconception(
        "rows_of_the_matrix_off",
        "The *rows* of the matrix at the place of the head are set to zero. A row makes one output feature from all "
        "heads; what a head contributes goes through the *columns*.",
    )(
        lambda heads, weight, bias, off: project(
            side_by_side(heads), zeroed(weight, slice(off * heads.shape[3], (off + 1) * heads.shape[3])), bias
        )
    )
    exercise.misconception(
        "difference_returned",
        "This is the *change* that switching off the head makes, or its negative. The output without the head is "
        "wanted.",
    )(lambda heads, weight, bias, off: side_by_side(heads - without(heads, off)) @ weight.T)


def _add_conduct(exercise: Exercise) -> None:
    @exercise.misconception(
        "caller_changed",
        "The output is right, but the caller's heads are changed: an assignment to a part of a tensor works in place. "
        "A learner who switches off one head after another would soon have none left.",
    )
    def _(heads, weight, bias, off):
        heads[:, off] = 0
        return project(side_by_side(heads), weight, bias)

    @exercise.misconception(
        "matrix_changed",
        "The output is right, but the caller's matrix is changed: its columns for this head are overwritten, and the "
        "model has lost the head for good. Work on a copy.",
    )
    def _(heads, weight, bias, off):
        d_head = heads.shape[-1]
        weight[:, off * d_head : (off + 1) * d_head] = 0
        return project(side_by_side(heads), weight, bias)

    exercise.misconception(
        "float32_inside",
        "Somewhere inside, the numbers become float32, so float64 input loses half of its digits.",
    )(
        lambda heads, weight, bias, off: exercise.reference(heads.float(), weight.float(), bias.float(), off).to(
            heads.dtype
        )
    )
