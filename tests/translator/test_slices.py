"""Sentences side by side: no slice holds more than its limit, padding included."""

from __future__ import annotations

import pytest
import torch

from course_kit.translator.slices import padded, slices


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([1, 2, 3, 3], [[0, 1], [2, 3]]),  # a third row would be padded to 3: nine tokens
        ([2, 2, 2, 2], [[0, 1, 2], [3]]),
        ([3, 3, 5, 2, 2], [[0, 1], [2], [3, 4]]),  # the 5 begins a slice, and no other row fits beside it
        ([9, 1], [[0], [1]]),  # one that is too long gets a slice of its own
        ([], []),
    ],
)
def test_slices_of_six_tokens_by_hand(lengths, expected):
    assert list(slices(list(range(len(lengths))), lengths.__getitem__, 6)) == expected


def test_rows_are_padded_at_the_end():
    assert padded([[3, 4], [5]], 1, torch.device("cpu")).tolist() == [[3, 4], [5, 1]]
