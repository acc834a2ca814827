"""course_kit.costs: what the formulas say is what PyTorch counts, to the last operation, step and number."""

from __future__ import annotations

import math

import pytest
import torch
from oracles import no_side_effects
from torch import nn

from course_kit.costs.counting import counted_operations, counted_steps, measured_path
from course_kit.costs.formulas import kept_numbers, longest_path, operations, sequential_steps
from course_kit.costs.layers import KINDS, mixing_layer
from course_kit.measuring import numbers_kept
from course_lib import attention_flops

each_kind = pytest.mark.parametrize("kind", KINDS)
sizes = pytest.mark.parametrize(("length", "d_model"), [(1, 5), (2, 3), (7, 5), (13, 3), (31, 11)])


@each_kind
@sizes
def test_operations_are_those_that_pytorch_counts(kind, length, d_model):
    for window, kernel_size in ((3, 4), (1, 2), (17, 3)):
        options = {"window": window, "kernel_size": kernel_size}
        counted = counted_operations(mixing_layer(kind, d_model, **options), torch.randn(2, length, d_model))
        assert counted == 2 * operations(kind, length, d_model, **options)


@each_kind
def test_without_projections_attention_costs_what_the_table_of_the_paper_counts(kind):
    table = {
        "self-attention": attention_flops(13, 13, 5, 5),
        "restricted": attention_flops(13, 3, 5, 5),
        "convolution": 2 * 4 * 13 * 5**2,
        "dilated": 2 * 4 * 13 * 5**2,
        "recurrent": 2 * 4 * 13 * 5**2,
    }
    assert operations(kind, 13, 5, window=3, projections=False) == table[kind]


@each_kind
@sizes
def test_steps_are_the_longest_chain_of_products(kind, length, d_model):
    layer = mixing_layer(kind, d_model, window=3)
    assert counted_steps(layer(torch.randn(2, length, d_model))) == sequential_steps(kind, length)
    deeper = nn.Sequential(*(mixing_layer(kind, d_model, n, window=3) for n in range(2)))
    steps = counted_steps(deeper(torch.randn(2, length, d_model)))
    assert steps == 2 * sequential_steps(kind, length)


def test_a_chain_counts_once_where_it_meets_another():
    a, b = torch.randn(2, 3, 3, requires_grad=True)
    assert counted_steps(a @ b + (a @ b) @ (a @ b)) == 2
    assert counted_steps(a + b) == 0
    assert counted_steps(nn.functional.linear(a, b, a[0])) == 1


@each_kind
@pytest.mark.parametrize("length", [1, 2, 3, 7, 13, 16, 17, 31])
def test_the_gradient_is_zero_until_the_path_is_complete(kind, length):
    for window, kernel_size in ((5, 4), (2, 3), (17, 2)):
        options = {"window": window, "kernel_size": kernel_size}
        assert measured_path(kind, length, 3, **options) == longest_path(kind, length, **options)


def test_paths_by_hand():
    assert [longest_path(kind, 10, window=4, kernel_size=3) for kind in KINDS] == [1, 3, 9, 5, 3]
    assert [longest_path(kind, 1) for kind in KINDS] == [0] * 5
    assert longest_path("dilated", 4**5) == 5
    assert longest_path("dilated", 4**5 + 1) == 6


@each_kind
@sizes
def test_numbers_are_those_that_autograd_keeps(kind, length, d_model):
    layer = mixing_layer(kind, d_model, window=3)
    parameters = sum(parameter.numel() for parameter in layer.parameters())
    if kind == "recurrent" and length == 1:
        parameters -= 2 * d_model**2  # one state, computed from zeros, needs no gradient of the state before it
    kept = numbers_kept(layer, torch.randn(1, length, d_model)) - parameters
    assert kept == kept_numbers(kind, length, d_model, window=3)


@each_kind
def test_orders_of_growth_are_those_of_table_1(kind):
    """Vaswani et al. (2017): exponents of the length, when it is long."""
    n, d = 2**20, 4

    def exponent(cost):
        return round(math.log2(cost(2 * n) / cost(n)), 2)

    assert exponent(lambda n: operations(kind, n, d, projections=False)) == (2 if kind == "self-attention" else 1)
    assert exponent(lambda n: sequential_steps(kind, n)) == (1 if kind == "recurrent" else 0)
    path = {"self-attention": 0, "restricted": 1, "recurrent": 1, "convolution": 1, "dilated": 0.14}
    assert exponent(lambda n: longest_path(kind, n)) == path[kind]  # log₄ n: 10 layers become 11, rounded up
    assert exponent(lambda n: kept_numbers(kind, n, d)) == (2 if kind == "self-attention" else 1)


def test_measuring_leaves_no_trace():
    layer, x = mixing_layer("recurrent", 3), torch.randn(1, 5, 3)
    with no_side_effects(x, *layer.parameters()):
        measured_path("dilated", 7, 3)
        counted_operations(layer, x)
    assert all(parameter.grad is None for parameter in layer.parameters())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: operations("attention", 3, 4), "kind must be one of"),
        (lambda: measured_path("none", 3), "kind must be one of"),
        (lambda: longest_path("dilated", 3, kernel_size=1), "kernel_size must be at least 2, got 1"),
        (lambda: measured_path("restricted", 3, window=1), "window must be at least 2, got 1"),
        (lambda: measured_path("restricted", 201), "length must be at most 200, got 201; .*underflow"),
        (lambda: counted_steps(torch.ones(3)), r"computed with gradients, got none; .* outside no_grad\(\)"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_cannot_be_counted_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
