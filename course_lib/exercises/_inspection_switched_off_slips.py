"""Mistakes in switching off a head: which one it is, what takes its place, and in which axis."""

from __future__ import annotations

import torch

from course_lib.exercises._exercise import Exercise

__all__ = ["add_slips", "output_with", "project", "side_by_side", "without", "zeroed"]


def side_by_side(heads):
    return heads.transpose(1, 2).flatten(2)


def without(heads, off):
    keep = torch.ones(heads.shape[1], dtype=heads.dtype)
    keep[off] = 0
    return heads * keep[:, None, None]


def project(merged, weight, bias):
    return merged @ weight.T + bias


def output_with(silence=without, merge=side_by_side, project=project):
    """The output with another way to switch off, to merge, or to project."""
    return lambda heads, weight, bias, off: project(merge(silence(heads, off)), weight, bias)


def zeroed(heads, index):
    """A copy of the heads with zeros at the index."""
    heads = heads.clone()
    heads[index] = 0
    return heads


def _featureszeroed(features):
    """The output with a range of the merged features set to zero; `features` gives it from off, H and d_head."""

    def head_switched_off(heads, weight, bias, off):
        merged = side_by_side(heads).clone()
        merged[..., features(off, heads.shape[1], heads.shape[3])] = 0
        return project(merged, weight, bias)

    return head_switched_off


def add_slips(exercise: Exercise) -> None:
    """Add the mistakes to the exercise `head_switched_off`."""
    _add_which_head(exercise)
    _add_which_other_head(exercise)
    _add_what_for_it(exercise)
    _add_axes(exercise)


def _add_which_head(exercise: Exercise) -> None:
    exercise.misconception(
        "the_head_alone",
        "This is the contribution of head `off`, with all other heads switched off: the opposite of what is wanted.",
    )(output_with(lambda heads, off: heads - without(heads, off)))
    exercise.misconception(
        "nothing_off",
        "This is the full output: no head has been switched off.",
    )(output_with(lambda heads, off: heads))
    exercise.misconception(
        "counted_from_one",
        "Head `off − 1` is switched off. Heads are counted from 0.",
    )(output_with(lambda heads, off: without(heads, off - 1)))
    exercise.misconception(
        "all_from_there_on",
        "Head `off` and all heads after it are switched off. Only head `off` should be.",
    )(output_with(lambda heads, off: zeroed(heads, (slice(None), slice(off, None)))))
    exercise.misconception(
        "all_up_to_there",
        "Head `off` and all heads before it are switched off. Only head `off` should be.",
    )(output_with(lambda heads, off: zeroed(heads, (slice(None), slice(off + 1)))))
    exercise.misconception(
        "all_off",
        "All heads are switched off, so that only the bias is left. Only head `off` should be.",
    )(output_with(lambda heads, off: heads * 0))
    exercise.misconception(
        "always_the_first",
        "Head 0 is switched off, whatever `off` is.",
    )(output_with(lambda heads, off: without(heads, 0)))
    exercise.misconception(
        "always_the_last",
        "The last head is switched off, whatever `off` is.",
    )(output_with(lambda heads, off: without(heads, -1)))


def _add_which_other_head(exercise: Exercise) -> None:
    exercise.misconception(
        "counted_from_the_end",
        "The heads are counted from the end. Head 0 is the first one.",
    )(output_with(lambda heads, off: without(heads, heads.shape[1] - 1 - off)))
    exercise.misconception(
        "negative_index",
        "Head `−off` is switched off, which counts from the end. Heads are counted from 0 at the front.",
    )(output_with(lambda heads, off: without(heads, -off)))
    exercise.misconception(
        "next_head",
        "The head after head `off` is switched off, or the first one if there is none. Heads are counted from 0.",
    )(output_with(lambda heads, off: without(heads, (off + 1) % heads.shape[1])))
    exercise.misconception(
        "two_heads",
        "Two heads are switched off, head `off` and the one after it: the slice ends one too late.",
    )(output_with(lambda heads, off: zeroed(heads, (slice(None), slice(off, off + 2)))))
    exercise.misconception(
        "all_before",
        "All heads *before* head `off` are switched off, and head `off` itself is not.",
    )(output_with(lambda heads, off: zeroed(heads, (slice(None), slice(off)))))
    exercise.misconception(
        "all_after",
        "All heads *after* head `off` are switched off, and head `off` itself is not.",
    )(output_with(lambda heads, off: zeroed(heads, (slice(None), slice(off + 1, None)))))
    exercise.misconception(
        "only_in_the_first_sequence",
        "The head is switched off in the first sequence of the batch only.",
    )(output_with(lambda heads, off: zeroed(heads, (0, off))))
    exercise.misconception(
        "only_at_the_first_position",
        "The head is switched off at the first position only. It should contribute nothing at any position.",
    )(output_with(lambda heads, off: zeroed(heads, (slice(None), off, 0))))
    exercise.misconception(
        "only_at_the_last_position",
        "The head is switched off at the last position only. It should contribute nothing at any position.",
    )(output_with(lambda heads, off: zeroed(heads, (slice(None), off, -1))))
    exercise.misconception(
        "only_its_first_feature",
        "Only the first feature of the head is set to zero. All of its features have to be.",
    )(_featureszeroed(lambda off, num_heads, d_head: off * d_head))


def _add_what_for_it(exercise: Exercise) -> None:
    exercise.misconception(
        "scaled_down",
        "The other heads are scaled down, as in an average over all heads with one of them zero. They should "
        "contribute what they did before.",
    )(output_with(lambda heads, off: without(heads, off) * ((heads.shape[1] - 1) / heads.shape[1])))
    exercise.misconception(
        "divided_by_the_number_of_heads",
        "The heads are divided by their number. They are laid side by side, not averaged.",
    )(output_with(lambda heads, off: without(heads, off) / heads.shape[1]))
    exercise.misconception(
        "halved",
        "The vectors of the head are halved, so it still contributes. A head that is switched off contributes nothing.",
    )(output_with(lambda heads, off: (heads + without(heads, off)) / 2))
    exercise.misconception(
        "mean_over_the_batch",
        "The vectors of the head are replaced by their mean over the batch. A head that is switched off contributes "
        "nothing, so its vectors are zero.",
    )(output_with(lambda heads, off: without(heads, off) + _filled(heads, off, 0)))
    exercise.misconception(
        "mean_over_batch_and_positions",
        "The vectors of the head are replaced by their mean over batch and positions. A head that is switched off "
        "contributes nothing, so its vectors are zero.",
    )(output_with(lambda heads, off: without(heads, off) + _filled(heads, off, (0, 2))))
    exercise.misconception(
        "neighbour_in_its_place",
        "The vectors of a neighbouring head take the place of those of head `off`. Its place has to be filled with "
        "zeros.",
    )(output_with(lambda heads, off: without(heads, off) + heads.roll(-1, 1) - without(heads.roll(-1, 1), off)))
    exercise.misconception(
        "scaled_up",
        "The other heads are scaled up to make up for the missing one, as dropout does. They should contribute what "
        "they did before.",
    )(output_with(lambda heads, off: without(heads, off) * (heads.shape[1] / max(heads.shape[1] - 1, 1))))
    exercise.misconception(
        "mean_of_the_other_heads",
        "The vectors of the head are replaced by the mean over all heads. A head that is switched off contributes "
        "nothing, so its vectors are zero.",
    )(output_with(lambda heads, off: without(heads, off) + _filled(heads, off, 1)))
    exercise.misconception(
        "mean_over_the_positions",
        "The vectors of the head are replaced by their mean over the positions. A head that is switched off "
        "contributes nothing, so its vectors are zero.",
    )(output_with(lambda heads, off: without(heads, off) + _filled(heads, off, 2)))
    exercise.misconception(
        "set_to_one",
        "The vectors of the head are set to one, so they still contribute: the sum of some columns of the matrix. A "
        "vector that contributes nothing is zero.",
    )(output_with(lambda heads, off: without(heads, off) + without(torch.ones_like(heads), off).sub(1).neg()))
    exercise.misconception(
        "minus_infinity",
        "The vectors of the head are set to −∞, which gives NaN or ∞ in every output. −∞ masks *scores*, before a "
        "softmax; these vectors are added up, and what contributes nothing to a sum is zero.",
    )(output_with(lambda heads, off: heads.index_fill(1, torch.tensor([off]), -torch.inf)))
    exercise.misconception(
        "taken_away_twice",
        "The contribution of the head is subtracted from vectors that no longer contain it, so it comes in with the "
        "opposite sign.",
    )(output_with(lambda heads, off: 2 * without(heads, off) - heads))


def _filled(heads, off, axis):
    """The mean of the heads along an axis, in place of one head, and zero elsewhere."""
    mean = heads.mean(axis, keepdim=True).expand_as(heads)
    return mean - without(mean, off)


def _add_axes(exercise: Exercise) -> None:
    exercise.misconception(
        "sequence_off",
        "Sequence number `off` of the batch is set to zero, not head number `off`. The heads are axis 1.",
    )(output_with(lambda heads, off: zeroed(heads, off)))
    exercise.misconception(
        "position_off",
        "Position number `off` is set to zero in all heads. The axes are batch, heads, positions, features.",
    )(output_with(lambda heads, off: zeroed(heads, (slice(None), slice(None), off))))
    exercise.misconception(
        "feature_off",
        "Feature number `off` is set to zero in all heads. A whole head has to be.",
    )(output_with(lambda heads, off: zeroed(heads, (..., off))))
    exercise.misconception(
        "slice_from_off",
        "Of the merged features, those from `off` on are set to zero. Head `off` begins at `off` times the width of a "
        "head.",
    )(_featureszeroed(lambda off, num_heads, d_head: slice(off, off + d_head)))
    exercise.misconception(
        "one_merged_feature",
        "Only one of the merged features is set to zero, number `off`. A head has d_head of them.",
    )(_featureszeroed(lambda off, num_heads, d_head: off))
    exercise.misconception(
        "slice_of_the_number_of_heads",
        "The slice of merged features is H wide and begins at a multiple of H. The slice of a head is d_head wide.",
    )(_featureszeroed(lambda off, num_heads, d_head: slice(off * num_heads, (off + 1) * num_heads)))
    exercise.misconception(
        "every_hth_feature",
        "Every H-th of the merged features is set to zero. The features of a head are next to each other.",
    )(_featureszeroed(lambda off, num_heads, d_head: slice(off, None, num_heads)))
    exercise.misconception(
        "one_feature_too_many",
        "The slice ends one feature too late, and the first feature of the next head is lost. The end of a slice is "
        "not part of it.",
    )(_featureszeroed(lambda off, num_heads, d_head: slice(off * d_head, (off + 1) * d_head + 1)))
