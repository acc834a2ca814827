"""Names of axes in what is said about a wrong shape."""

from __future__ import annotations

import torch

from course_kit.checker.verdict.explaining import axis_names, shape_in_words
from course_kit.exercises import Case, find


def words(shape, *, d_model, num_heads, batch, len_q, len_k):
    key = torch.zeros(batch, len_k, d_model)
    case = Case(init=(d_model, num_heads), args=(torch.zeros(batch, len_q, d_model), key, key))
    return shape_in_words(shape, axis_names(find("MultiHeadAttention"), case))


def test_a_length_that_one_axis_has_names_it():
    assert words((5, 7), d_model=6, num_heads=2, batch=4, len_q=5, len_k=7) == "(5 = len_q, 7 = len_k)"


def test_a_length_that_two_axes_have_names_none():
    assert words((5, 7), d_model=6, num_heads=2, batch=4, len_q=7, len_k=7) == ""


def test_all_axes_of_a_result_are_named_though_lengths_are_shared():
    smallest = {"d_model": 2, "num_heads": 2, "batch": 1, "len_q": 1, "len_k": 2}
    assert words((1, 2, 1, 2), **smallest) == "(1 = batch, 2 = num_heads, 1 = len_q, 2 = len_k)"
    assert words((1, 1, 2), **smallest) == "(1 = batch, 1 = len_q, 2 = d_model)"


def test_a_shape_that_is_no_result_is_not_named_as_one():
    assert words((2, 2, 1, 2), d_model=2, num_heads=2, batch=1, len_q=1, len_k=2) == ""


def test_a_length_that_a_product_has_too_is_not_named():
    sizes = {"d_model": 6, "num_heads": 2, "batch": 10, "len_q": 5, "len_k": 7}
    assert words((10, 7), **sizes) == "(10, 7 = len_k)"  # 10 is the batch, or num_heads · len_q
    assert words((5, 35), **sizes) == "(5 = len_q, 35 = len_q · len_k)"


def test_two_axes_of_one_length_do_not_share_a_name():
    case = Case(args=(torch.zeros(3, 5, 6), 2))
    axes = axis_names(find("split_heads"), case)
    assert shape_in_words((3, 2, 5, 3), axes) == "(3, 2 = num_heads, 5 = length, 3)"


def test_half_of_the_features_is_not_taken_for_another_axis():
    axes = axis_names(find("apply_rotary"), Case(args=(torch.zeros(2, 3, 4), torch.zeros(3))))
    assert 2 not in axes  # the batch, or pairs of features
