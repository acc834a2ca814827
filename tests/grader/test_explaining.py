"""Names of axes in what is said about a wrong shape."""

from __future__ import annotations

import pytest
import torch

from course_kit.checker.verdict.explaining import axis_names, shape_in_words
from course_kit.exercises import Case, find

SMALLEST = {"d_model": 2, "num_heads": 2, "batch": 1, "len_q": 1, "len_k": 2}
TEN = {"d_model": 6, "num_heads": 2, "batch": 10, "len_q": 5, "len_k": 7}


@pytest.mark.parametrize(
    ("shape", "sizes", "words"),
    [
        ((5, 7), TEN, "(5 = len_q, 7 = len_k)"),
        ((5, 7), TEN | {"len_q": 7}, ""),  # two axes have this length
        ((5, 5), TEN, ""),  # one of them may be another axis
        ((10, 7), TEN, "(10, 7 = len_k)"),  # 10 is the batch, or num_heads · len_q
        ((5, 35), TEN, "(5 = len_q, 35 = len_q · len_k)"),
        # All axes of a result are known, though lengths are shared.
        ((1, 2, 1, 2), SMALLEST, "(1 = batch, 2 = num_heads, 1 = len_q, 2 = len_k)"),
        ((1, 1, 2), SMALLEST, "(1 = batch, 1 = len_q, 2 = d_model)"),
        ((2, 2, 1, 2), SMALLEST, ""),
    ],
)
def test_a_length_is_named_where_only_one_axis_or_product_has_it(shape, sizes, words):
    query, key = (torch.zeros(sizes["batch"], sizes[length], sizes["d_model"]) for length in ("len_q", "len_k"))
    case = Case(init=(sizes["d_model"], sizes["num_heads"]), args=(query, key, key))
    assert shape_in_words(shape, axis_names(find("MultiHeadAttention"), case)) == words


def test_two_axes_of_one_length_do_not_share_a_name():
    axes = axis_names(find("split_heads"), Case(args=(torch.zeros(3, 5, 6), 2)))
    assert shape_in_words((3, 2, 5, 3), axes) == "(3, 2 = num_heads, 5 = length, 3)"


def test_half_of_the_features_is_not_taken_for_another_axis():
    axes = axis_names(find("apply_rotary"), Case(args=(torch.zeros(2, 3, 4), torch.zeros(3))))
    assert 2 not in axes  # the batch, or pairs of features
