"""Mistakes in switching off a head: what is set to zero, how the heads are merged, and the projection."""

from __future__ import annotations

import torch

from course_lib.exercises._exercise import Exercise

__all__ = ["add_slips"]


def _side_by_side(heads):
    return heads.transpose(1, 2).flatten(2)


def _without(heads, off):
    keep = torch.ones(heads.shape[1], dtype=heads.dtype)
    keep[off] = 0
    return heads * keep[:, None, None]


def _project(merged, weight, bias):
    return merged @ weight.T + bias


def _output(silence=_without, merge=_side_by_side, project=_project):
    """The output with another way to switch off, to merge, or to project."""
    return lambda heads, weight, bias, off: project(merge(silence(heads, off)), weight, bias)


def _zeroed(heads, index):
    """A copy of the heads with zeros at the index."""
    heads = heads.clone()
    heads[index] = 0
    return heads


def _features_zeroed(features):
    """The output with a range of the merged features set to zero; `features` gives it from off, H and d_head."""

    def head_switched_off(heads, weight, bias, off):
        merged = _side_by_side(heads).clone()
        merged[..., features(off, heads.shape[1], heads.shape[3])] = 0
        return _project(merged, weight, bias)

    return head_switched_off


def add_slips(exercise: Exercise) -> None:
    """Add the mistakes to the exercise `head_switched_off`."""
    _add_which_head(exercise)
    _add_what_for_it(exercise)
    _add_axes(exercise)
    _add_merging(exercise)
    _add_projection(exercise)
    _add_conduct(exercise)


def _add_which_head(exercise: Exercise) -> None:
    exercise.misconception(
        "the_head_alone",
        "This is the contribution of head `off`, with all other heads switched off: the opposite of what is wanted.",
    )(_output(lambda heads, off: heads - _without(heads, off)))
    exercise.misconception(
        "nothing_off",
        "This is the full output: no head has been switched off.",
    )(_output(lambda heads, off: heads))
    exercise.misconception(
        "counted_from_one",
        "Head `off − 1` is switched off. Heads are counted from 0.",
    )(_output(lambda heads, off: _without(heads, off - 1)))
    exercise.misconception(
        "all_from_there_on",
        "Head `off` and all heads after it are switched off. Only head `off` should be.",
    )(_output(lambda heads, off: _zeroed(heads, (slice(None), slice(off, None)))))
    exercise.misconception(
        "all_up_to_there",
        "Head `off` and all heads before it are switched off. Only head `off` should be.",
    )(_output(lambda heads, off: _zeroed(heads, (slice(None), slice(off + 1)))))
    exercise.misconception(
        "all_off",
        "All heads are switched off, so that only the bias is left. Only head `off` should be.",
    )(_output(lambda heads, off: heads * 0))
    exercise.misconception(
        "always_the_first",
        "Head 0 is switched off, whatever `off` is.",
    )(_output(lambda heads, off: _without(heads, 0)))
    exercise.misconception(
        "always_the_last",
        "The last head is switched off, whatever `off` is.",
    )(_output(lambda heads, off: _without(heads, -1)))


def _add_what_for_it(exercise: Exercise) -> None:
    exercise.misconception(
        "scaled_up",
        "The other heads are scaled up to make up for the missing one, as dropout does. They should contribute what "
        "they did before.",
    )(_output(lambda heads, off: _without(heads, off) * (heads.shape[1] / max(heads.shape[1] - 1, 1))))
    exercise.misconception(
        "mean_of_the_other_heads",
        "The vectors of the head are replaced by the mean over all heads. A head that is switched off contributes "
        "nothing, so its vectors are zero.",
    )(_output(lambda heads, off: _without(heads, off) + (heads - _without(heads, off)) * 0 + _filled(heads, off, 1)))
    exercise.misconception(
        "mean_over_the_positions",
        "The vectors of the head are replaced by their mean over the positions. A head that is switched off "
        "contributes nothing, so its vectors are zero.",
    )(_output(lambda heads, off: _without(heads, off) + _filled(heads, off, 2)))
    exercise.misconception(
        "set_to_one",
        "The vectors of the head are set to one, so they still contribute: the sum of some columns of the matrix. A "
        "vector that contributes nothing is zero.",
    )(_output(lambda heads, off: _without(heads, off) + _without(torch.ones_like(heads), off).sub(1).neg()))
    exercise.misconception(
        "minus_infinity",
        "The vectors of the head are set to −∞, which gives NaN or ∞ in every output. −∞ masks *scores*, before a "
        "softmax; these vectors are added up, and what contributes nothing to a sum is zero.",
    )(_output(lambda heads, off: heads.index_fill(1, torch.tensor([off]), -torch.inf)))
    exercise.misconception(
        "taken_away_twice",
        "The contribution of the head is subtracted from vectors that no longer contain it, so it comes in with the "
        "opposite sign.",
    )(_output(lambda heads, off: 2 * _without(heads, off) - heads))


def _filled(heads, off, axis):
    """The mean of the heads along an axis, in place of one head, and zero elsewhere."""
    mean = heads.mean(axis, keepdim=True).expand_as(heads)
    return mean - _without(mean, off)


def _add_axes(exercise: Exercise) -> None:
    exercise.misconception(
        "sequence_off",
        "Sequence number `off` of the batch is set to zero, not head number `off`. The heads are axis 1.",
    )(_output(lambda heads, off: _zeroed(heads, off)))
    exercise.misconception(
        "position_off",
        "Position number `off` is set to zero in all heads. The axes are batch, heads, positions, features.",
    )(_output(lambda heads, off: _zeroed(heads, (slice(None), slice(None), off))))
    exercise.misconception(
        "feature_off",
        "Feature number `off` is set to zero in all heads. A whole head has to be.",
    )(_output(lambda heads, off: _zeroed(heads, (..., off))))
    exercise.misconception(
        "slice_from_off",
        "Of the merged features, those from `off` on are set to zero. Head `off` begins at `off` times the width of a "
        "head.",
    )(_features_zeroed(lambda off, num_heads, d_head: slice(off, off + d_head)))
    exercise.misconception(
        "one_merged_feature",
        "Only one of the merged features is set to zero, number `off`. A head has d_head of them.",
    )(_features_zeroed(lambda off, num_heads, d_head: off))
    exercise.misconception(
        "slice_of_the_number_of_heads",
        "The slice of merged features is H wide and begins at a multiple of H. The slice of a head is d_head wide.",
    )(_features_zeroed(lambda off, num_heads, d_head: slice(off * num_heads, (off + 1) * num_heads)))
    exercise.misconception(
        "every_hth_feature",
        "Every H-th of the merged features is set to zero. The features of a head are next to each other.",
    )(_features_zeroed(lambda off, num_heads, d_head: slice(off, None, num_heads)))
    exercise.misconception(
        "one_feature_too_many",
        "The slice ends one feature too late, and the first feature of the next head is lost. The end of a slice is "
        "not part of it.",
    )(_features_zeroed(lambda off, num_heads, d_head: slice(off * d_head, (off + 1) * d_head + 1)))


def _add_merging(exercise: Exercise) -> None:
    exercise.misconception(
        "reshaped_without_transposing",
        "The heads are reshaped to `(B, L, …)` while H still comes before L. The shape is right, but the vectors of "
        "different positions are mixed up: the two axes have to be exchanged first.",
    )(_output(merge=lambda heads: heads.reshape(heads.shape[0], heads.shape[2], -1)))
    exercise.misconception(
        "features_interleaved",
        "The merged vector holds the first features of all heads, then the second ones, and so on. All features of "
        "head 0 come first, then those of head 1.",
    )(_output(merge=lambda heads: heads.permute(0, 2, 3, 1).flatten(2)))
    exercise.misconception(
        "heads_reversed",
        "The heads are laid side by side in reverse order. Head 0 comes first.",
    )(_output(merge=lambda heads: _side_by_side(heads.flip(1))))
    exercise.misconception(
        "heads_summed",
        "The heads are added into one vector of d_head features. The projection expects them side by side.",
    )(_output(merge=lambda heads: heads.sum(1)))
    exercise.misconception(
        "head_removed",
        "The head is removed altogether, and the vector is now too short for the matrix. Either its place stays, with "
        "zeros, or the columns of the matrix that belong to it go as well.",
    )(_output(lambda heads, off: torch.cat((heads[:, :off], heads[:, off + 1 :]), 1)))
    exercise.misconception(
        "others_moved_up",
        "The head is removed and the heads after it move up, so they meet the columns of another head. The columns of "
        "the matrix that belong to the removed head have to go, not the last ones.",
    )(
        lambda heads, weight, bias, off: _project(
            _side_by_side(torch.cat((heads[:, :off], heads[:, off + 1 :]), 1)),
            weight[:, : weight.shape[1] - heads.shape[-1]],
            bias,
        )
    )
    exercise.misconception(
        "not_projected",
        "The heads are merged, but not projected: the matrix and the bias are still to be applied.",
    )(lambda heads, weight, bias, off: _side_by_side(_without(heads, off)))


def _add_projection(exercise: Exercise) -> None:
    exercise.misconception(
        "bias_lost",
        "The bias is missing. It belongs to the projection and not to a head, so it stays.",
    )(_output(project=lambda merged, weight, bias: merged @ weight.T))
    exercise.misconception(
        "bias_shared_out",
        "The bias is reduced as if each head owned a share of it. It belongs to the projection and not to a head, so "
        "it stays whole.",
    )(
        lambda heads, weight, bias, off: _project(
            _side_by_side(_without(heads, off)), weight, bias * (heads.shape[1] - 1) / heads.shape[1]
        )
    )
    exercise.misconception(
        "bias_once_per_head",
        "The bias is added once for each remaining head. It belongs to the projection, which adds it once.",
    )(
        lambda heads, weight, bias, off: _project(
            _side_by_side(_without(heads, off)), weight, bias * (heads.shape[1] - 1)
        )
    )
    exercise.misconception(
        "weight_not_transposed",
        "The projection is applied as x W. An `nn.Linear` computes W x for a vector x; with vectors as rows, that is a "
        "product with the transposed matrix.",
    )(_output(project=lambda merged, weight, bias: merged @ weight + bias))
    exercise.misconception(
        "output_features_off",
        "The features of the *output* are set to zero. The projection mixes the heads, so none of its output features "
        "belongs to a single head.",
    )(
        lambda heads, weight, bias, off: (
            _project(_side_by_side(heads), weight, bias) * _side_by_side(_without(torch.ones_like(heads), off))
        )
    )
    exercise.misconception(
        "rows_of_the_matrix_off",
        "The *rows* of the matrix at the place of the head are set to zero. A row makes one output feature from all "
        "heads; what a head contributes goes through the *columns*.",
    )(
        lambda heads, weight, bias, off: _project(
            _side_by_side(heads), _zeroed(weight, slice(off * heads.shape[3], (off + 1) * heads.shape[3])), bias
        )
    )
    exercise.misconception(
        "difference_returned",
        "This is the *change* that switching off the head makes, or its negative. The output without the head is "
        "wanted.",
    )(lambda heads, weight, bias, off: _side_by_side(heads - _without(heads, off)) @ weight.T)


def _add_conduct(exercise: Exercise) -> None:
    @exercise.misconception(
        "caller_changed",
        "The output is right, but the caller's heads are changed: an assignment to a part of a tensor works in place. "
        "A learner who switches off one head after another would soon have none left.",
    )
    def _(heads, weight, bias, off):
        heads[:, off] = 0
        return _project(_side_by_side(heads), weight, bias)

    @exercise.misconception(
        "matrix_changed",
        "The output is right, but the caller's matrix is changed: its columns for this head are overwritten, and the "
        "model has lost the head for good. Work on a copy.",
    )
    def _(heads, weight, bias, off):
        d_head = heads.shape[-1]
        weight[:, off * d_head : (off + 1) * d_head] = 0
        return _project(_side_by_side(heads), weight, bias)

    exercise.misconception(
        "float32_inside",
        "Somewhere inside, the numbers become float32, so float64 input loses half of its digits.",
    )(
        lambda heads, weight, bias, off: exercise.reference(heads.float(), weight.float(), bias.float(), off).to(
            heads.dtype
        )
    )
