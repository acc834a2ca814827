"""Counting what autograd keeps."""

import torch

from course_lib import fused_attention, scaled_dot_product_attention
from course_lib.measuring import numbers_kept


def test_a_product_keeps_both_factors():
    # The gradient of a @ b needs a (3 × 5) and b (5 × 7).
    assert numbers_kept(torch.matmul, torch.randn(3, 5), torch.randn(5, 7)) == 15 + 35


def test_a_tensor_kept_twice_is_counted_once():
    assert numbers_kept(lambda a: a * a, torch.randn(3, 5)) == 15
    assert numbers_kept(lambda a: a.T @ a, torch.randn(3, 5)) == 15  # two views of one storage


def test_a_view_counts_as_what_it_keeps_alive():
    assert numbers_kept(lambda a: a[:1].exp() * 2 + a.sin().sum(), torch.randn(3, 5)) == 15 + 5


def test_a_view_alone_counts_as_the_storage_behind_it():
    """Of 15 numbers the sine needs 5, and the other 10 stay alive with them."""
    assert numbers_kept(lambda a: a[:1].sin(), torch.randn(3, 5)) == 15
    assert numbers_kept(lambda a: a.T[2:].sin(), torch.randn(3, 5)) == 15
    assert numbers_kept(lambda a: a[:1].clone().sin(), torch.randn(3, 5)) == 5


def test_numbers_are_counted_not_bytes():
    for dtype in (torch.float16, torch.float32, torch.float64):
        assert numbers_kept(torch.sin, torch.randn(3, 5).to(dtype)) == 15


def test_a_sum_keeps_nothing():
    assert numbers_kept(lambda a, b: a + b, torch.randn(3, 5), torch.randn(3, 5)) == 0


def test_inputs_are_left_alone():
    a = torch.randn(3, 5)
    numbers_kept(torch.exp, a)
    assert not a.requires_grad


def test_the_fused_kernel_does_not_keep_the_weights():
    inputs = [torch.randn(1, 2, 64, 8) for _ in range(3)]
    weights = 2 * 64 * 64
    assert numbers_kept(scaled_dot_product_attention, *inputs) >= weights
    assert numbers_kept(fused_attention, *inputs) < weights
