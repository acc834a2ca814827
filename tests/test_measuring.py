"""Counting what autograd keeps, and what is in memory at one time."""

import pytest
import torch

from course_kit.measuring import numbers_kept, peak_numbers
from course_kit.nn import fused_attention
from course_lib import scaled_dot_product_attention

KEPT = {
    "a tensor kept twice is counted once": (lambda a: a * a, 15),
    "and so are two views of one storage": (lambda a: a.T @ a, 15),
    "a view counts as what it keeps alive": (lambda a: a[:1].exp() * 2 + a.sin().sum(), 15 + 5),
    "alone it counts as the storage behind it": (lambda a: a[:1].sin(), 15),
    "wherever it begins": (lambda a: a.T[2:].sin(), 15),
    "and a copy as itself": (lambda a: a[:1].clone().sin(), 5),
    "a sum keeps nothing": (lambda a: a + a, 0),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_kept(name):
    function, expected = KEPT[name]
    for dtype in (torch.float16, torch.float32, torch.float64):  # numbers are counted, not bytes
        a = torch.randn(3, 5).to(dtype)
        assert numbers_kept(function, a) == expected
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


def chain():
    y = torch.zeros(1000)
    for _ in range(5):
        y = y + 1  # the old y is freed after the new one is made
    return y


def up_and_down():
    a = torch.zeros(700) + 1
    del a
    return torch.zeros(300) + 1


X = torch.randn(10, 10)
PEAKS = {
    "the peak of a chain is two results": (chain, 2000),
    "what is freed before the end counts at its peak only": (up_and_down, 1400),  # torch.zeros(700), and the sum
    "views need nothing more": (lambda: X.T[2:].view_as(X.T[2:]), 0),
    "nor do operations in place": (lambda: X.add_(1), 0),
    "exp, and the copy that flatten makes": (lambda: X.exp().T.mul_(2).flatten(0), 200),
    "numbers, not bytes": (lambda: X.double(), 100),
    "a function without results": (lambda: None, 0),
}


@pytest.mark.parametrize("name", PEAKS)
def test_the_peak(name):
    function, expected = PEAKS[name]
    assert peak_numbers(function) == expected


def test_the_backward_pass_belongs_to_the_peak():
    x = torch.randn(1000, requires_grad=True)
    # The two gradients of the product and their sum, 1,000 numbers each; the sum of the squares and its gradient.
    assert peak_numbers(lambda: (x * x).sum().backward()) == 3002


def test_the_peak_of_something_else_is_an_error(unchecked):
    with pytest.raises(TypeError, match="function must be a function, got 5"):
        peak_numbers(5)
