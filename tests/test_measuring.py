"""Counting what autograd keeps, and what is in memory at one time."""

import pytest
import torch

from course_kit.measuring import numbers_kept, peak_numbers
from course_kit.nn import fused_attention
from course_lib import scaled_dot_product_attention


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


def test_tensors_that_are_in_memory_in_any_case_can_be_left_out():
    a, b = torch.randn(3, 5, requires_grad=True), torch.randn(5, 7, requires_grad=True)
    assert numbers_kept(lambda: a @ b) == 15 + 35
    assert numbers_kept(lambda: a @ b, without=[a]) == 35
    assert numbers_kept(lambda: a @ b, without=iter([a.T[1:], b])) == 0  # a view stands for its storage
    layer = torch.nn.Linear(5, 7)
    assert numbers_kept(layer, torch.randn(3, 5), without=layer.parameters()) == 15


@pytest.mark.parametrize(("without", "came"), [(5, "int"), ([5], "type int"), ("ab", "type str")])
def test_only_tensors_can_be_left_out(without, came, unchecked):
    with pytest.raises(TypeError, match=f"without must be .*{came}"):
        numbers_kept(torch.exp, torch.randn(3), without=without)


# --- peak -------------------------------------------------------------------------------------------------------------


def test_the_peak_of_a_chain_is_two_results():
    x = torch.randn(1000)

    def chain():
        y = x
        for _ in range(5):
            y = y + 1  # the old y is freed after the new one is made
        return y

    assert peak_numbers(chain) == 2000


def test_what_is_freed_before_the_end_counts_at_its_peak_only():
    def up_and_down():
        a = torch.zeros(700) + 1
        del a
        return torch.zeros(300) + 1

    assert peak_numbers(up_and_down) == 1400  # torch.zeros(700), and the sum


def test_views_and_operations_in_place_need_nothing_more():
    x = torch.randn(10, 10)
    assert peak_numbers(lambda: x.T[2:].view_as(x.T[2:])) == 0
    assert peak_numbers(lambda: x.add_(1)) == 0
    assert peak_numbers(lambda: x.exp().T.mul_(2).flatten(0)) == 200  # exp, and the copy that flatten makes


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int64])
def test_the_peak_is_in_numbers_too(dtype):
    x = torch.ones(10, dtype=dtype)
    assert peak_numbers(lambda: x * 2) == 10


def test_the_backward_pass_belongs_to_the_peak():
    x = torch.randn(1000, requires_grad=True)

    def step():
        (x * x).sum().backward()

    # The two gradients of the product and their sum, 1,000 numbers each; the sum of the squares and its gradient.
    assert peak_numbers(step) == 3002


def test_a_function_without_results_needs_nothing():
    assert peak_numbers(lambda: None) == 0


def test_the_peak_of_something_else_is_an_error(unchecked):
    with pytest.raises(TypeError, match="function must be a function, got 5"):
        peak_numbers(5)
