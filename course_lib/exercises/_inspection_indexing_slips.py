"""Mistakes of indexing in the exercises on the inside of a trained model: −1 as an index, repeated indices, slices."""

from __future__ import annotations

import torch

from course_lib.exercises._exercise import Exercise
from course_lib.exercises._inspection_switched_off_slips import project, side_by_side

__all__ = ["add_indexing_between_slips", "add_indexing_switched_off_slips"]


def _counted(words):
    """How many pieces each word has; tokens that are left out do not count."""
    return torch.bincount(words[words >= 0], minlength=int(words.max()) + 1)


def _added_one_by_one(weights, query_words, key_words):
    shape = *weights.shape[:-2], int(query_words.max()) + 1, int(key_words.max()) + 1
    between = torch.zeros(shape, dtype=weights.dtype)
    for i, query in enumerate(query_words.tolist()):
        for j, key in enumerate(key_words.tolist()):
            between[..., query, key] += weights[..., i, j]  # −1 is the last word
    return between / _counted(query_words)[:, None]


def _written_once(weights, query_words, key_words):
    kept = weights[..., query_words >= 0, :][..., key_words >= 0]
    query_words, key_words = query_words[query_words >= 0], key_words[key_words >= 0]
    summed = torch.zeros(*kept.shape[:-1], int(key_words.max()) + 1, dtype=weights.dtype)
    summed[..., key_words] += kept
    total = torch.zeros(*kept.shape[:-2], int(query_words.max()) + 1, summed.shape[-1], dtype=weights.dtype)
    total[..., query_words, :] += summed
    return total / _counted(query_words)[:, None]


def add_indexing_between_slips(exercise: Exercise) -> None:
    """Add the mistakes to the exercise `attention_between_words`."""
    exercise.misconception(
        "minus_one_is_the_last_word",
        "The number −1 is used as an index. In Python it counts from the end, so the weights of the tokens that are to "
        "be left out are added to the *last* word. Skip these tokens.",
    )(_added_one_by_one)
    exercise.misconception(
        "written_once",
        "An assignment such as `out[..., words] += w` writes each place only once, even where an index occurs several "
        "times, so of a word's pieces only one counts. `index_add` adds them all, and so does a matrix product.",
    )(_written_once)


def add_indexing_switched_off_slips(exercise: Exercise) -> None:
    """Add the mistakes to the exercise `head_switched_off`."""

    def slice_too_short(heads, weight, bias, off):
        merged, d_head = side_by_side(heads).clone(), heads.shape[-1]
        merged[..., off * d_head : (off + 1) * d_head - 1] = 0
        return project(merged, weight, bias)

    exercise.misconception(
        "last_feature_left_on",
        "The last feature of the head still reaches the output. A slice ends *before* its second number, so the head's "
        "features are `off * d_head : (off + 1) * d_head`.",
    )(slice_too_short)
