"""course_kit.nn.attention: attention with a bias and dropout, step by step and by PyTorch's fused kernels."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import pytest
import torch
from oracles import CLOSE, DTYPES, leaf, no_side_effects
from torch.testing import assert_close

from course_kit.nn.attention import attention_with_bias, broadcasts_to, check_mask, fused_attention, unmask_empty_rows
from course_lib.masking import causal_mask
from course_lib.scaled_dot_product import scaled_dot_product_attention


def explicit_attention(*args, **kwargs):
    return attention_with_bias(*args, **kwargs)[0]


PATHS = pytest.mark.parametrize("attention", [explicit_attention, fused_attention], ids=["explicit", "fused"])

# Masks and biases against scores (2, 3, 5, 7); each mask leaves some row without any key, where it can.
MASKS = {
    "none": lambda: None,
    "causal": lambda: causal_mask(7)[-5:],
    "padding": lambda: torch.tensor([[1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0, 0]]).bool()[:, None, None, :],
    "2-D": lambda: (torch.rand(5, 7) < 0.6).index_fill(0, torch.tensor([2]), False),
    "queries only": lambda: torch.tensor([1, 0, 1, 1, 0]).bool()[:, None],
    "3-D": lambda: (torch.rand(3, 5, 7) < 0.6).index_fill(1, torch.tensor([0]), False),
    "4-D": lambda: (torch.rand(2, 3, 5, 7) < 0.6).index_fill(2, torch.tensor([4]), False),
    "nothing allowed": lambda: torch.zeros(5, 7, dtype=torch.bool),
}
BIASES = {"no bias": (), "2-D bias": (5, 7), "3-D bias": (3, 5, 7), "4-D bias": (2, 1, 5, 7), "key bias": (1, 7)}


@pytest.mark.parametrize("mask", MASKS)
def test_without_bias_and_dropout_both_are_the_plain_function_in_values_and_gradients(mask):
    inputs, mask = (leaf(2, 3, 5, 11), leaf(2, 3, 7, 11), leaf(2, 3, 7, 13)), MASKS[mask]()
    plain, its_weights = scaled_dot_product_attention(*inputs, mask)
    explicit, weights = attention_with_bias(*inputs, mask)
    assert_close(weights, its_weights, **CLOSE)
    grad, grad_weights = torch.randn_like(plain), torch.randn_like(weights)
    expected = torch.autograd.grad(plain, inputs, grad, retain_graph=True)
    for output in (explicit, fused_attention(*inputs, mask)):
        assert_close(output, plain, **CLOSE)
        assert_close(torch.autograd.grad(output, inputs, grad, retain_graph=True), expected, **CLOSE)
    ours, theirs = (torch.autograd.grad(w, inputs[:2], grad_weights) for w in (weights, its_weights))
    assert_close(ours, theirs, **CLOSE)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("bias", BIASES)
def test_both_paths_agree_in_values_and_gradients(mask, bias):
    inputs = leaf(2, 3, 5, 11), leaf(2, 3, 7, 11), leaf(2, 3, 7, 13)
    mask, bias = MASKS[mask](), leaf(*BIASES[bias]) if BIASES[bias] else None
    explicit = explicit_attention(*inputs, mask, bias=bias)
    fused = fused_attention(*inputs, mask, bias=bias)
    assert_close(explicit, fused, **CLOSE)
    leaves, grad = inputs if bias is None else (*inputs, bias), torch.randn_like(fused)
    assert_close(torch.autograd.grad(explicit, leaves, grad), torch.autograd.grad(fused, leaves, grad), **CLOSE)


@PATHS
def test_a_bias_by_hand(attention):
    # d_k = 4, so scores are halved: (ln 9, 0) / 2 = (ln 3, 0). A bias of ln 3 on the second key makes both scores ln 3:
    # weights 1/2 and 1/2, output 6.
    query = torch.tensor([[math.log(9.0), 0.0, 0.0, 0.0]], dtype=torch.float64)
    key = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]], dtype=torch.float64)
    value = torch.tensor([[4.0], [8.0]], dtype=torch.float64)
    bias = torch.tensor([[0.0, math.log(3.0)]], dtype=torch.float64)
    assert attention(query, key, value, bias=bias).item() == pytest.approx(6.0, abs=1e-12)


@PATHS
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_fully_masked_query_with_a_bias_gets_zeros_and_finite_gradients_in_every_dtype(attention, dtype):
    inputs = leaf(2, 5, 11, dtype=dtype), leaf(2, 7, 11, dtype=dtype), leaf(2, 7, 13, dtype=dtype)
    mask = torch.rand(5, 7) < 0.6
    mask[2], mask[3] = False, True
    output = attention(*inputs, mask, bias=torch.randn(5, 7).to(dtype))
    assert output.dtype == dtype
    assert (output[:, 2] == 0.0).all()
    assert (output[:, 3] != 0.0).any()
    output.sum().backward()
    assert all(x.grad.isfinite().all() for x in inputs)
    assert (inputs[0].grad[:, 2] == 0.0).all()


@PATHS
def test_a_batch_of_keys_for_one_query_takes_a_mask_and_a_bias_for_each(attention, unchecked):
    query, key, value = leaf(5, 11), leaf(2, 7, 11), leaf(2, 7, 13)
    mask, bias = causal_mask(7)[-5:].expand(2, 5, 7), leaf(2, 5, 7)
    each = [attention(query, key[i], value[i], mask[i], bias=bias[i]) for i in range(2)]
    assert_close(attention(query, key, value, mask, bias=bias), torch.stack(each), **CLOSE)


@PATHS
@pytest.mark.parametrize("masked", [False, True])
def test_arguments_and_random_state_stay_as_they_are(attention, masked):
    query, key, value, bias = torch.randn(5, 11), torch.randn(7, 11), torch.randn(7, 13), torch.randn(5, 7)
    mask = torch.rand(5, 7) < 0.5 if masked else None
    with no_side_effects(query, key, value, bias, *([mask] if masked else [])):
        attention(query, key, value, mask, bias=bias)


@PATHS
def test_a_bias_takes_the_dtype_of_the_query(attention):
    query, key, value = (torch.randn(3, 5, 7, dtype=torch.bfloat16) for _ in range(3))
    output = attention(query, key, value, bias=torch.randn(5, 5))
    assert output.dtype == torch.bfloat16


def test_dropped_weights_are_zero_and_kept_ones_are_scaled_up():
    query, key, value = torch.randn(31, 11), torch.randn(37, 11), torch.randn(37, 13)
    _, whole = scaled_dot_product_attention(query, key, value)
    output, weights = attention_with_bias(query, key, value, dropout=0.75)
    dropped = weights == 0.0
    assert dropped.float().mean() == pytest.approx(0.75, abs=0.05)  # 1147 draws: one standard deviation is 0.013
    assert_close(weights[~dropped], 4.0 * whole[~dropped])
    assert_close(output, weights @ value)


def test_the_fused_path_drops_weights_too():
    # With one key the weight is 1: dropped with probability 0.75 it is 0, kept it is 4.
    query, key, value = torch.randn(1009, 11), torch.randn(1, 11), torch.ones(1, 1)
    output = fused_attention(query, key, value, dropout=0.75)
    masked = fused_attention(query, key, value, torch.ones(1009, 1, dtype=torch.bool), dropout=0.75)
    for result in (output, masked):
        assert set(result.flatten().tolist()) == {0.0, 4.0}
        assert (result == 0.0).float().mean() == pytest.approx(0.75, abs=0.05)  # one standard deviation is 0.014


@PATHS
def test_a_bias_that_would_enlarge_the_scores_is_refused(attention, unchecked):
    query, key, value = torch.randn(2, 5, 11), torch.randn(2, 7, 11), torch.randn(2, 7, 13)
    with pytest.raises(ValueError, match=r"bias must broadcast .*\(2, 5, 7\), got \(3, 2, 5, 7\); .*\(H, L_q, L_k\)"):
        attention(query, key, value, bias=torch.randn(3, 2, 5, 7))


@PATHS
@pytest.mark.parametrize("dropout", [-0.1, 1.1, math.nan])
def test_a_dropout_that_is_not_a_probability_is_refused(attention, dropout):
    with pytest.raises(ValueError, match=r"dropout must be in \[0, 1\], got .*; 0 switches it off"):
        attention(torch.randn(5, 11), torch.randn(7, 11), torch.randn(7, 13), dropout=dropout)


# --- masks ------------------------------------------------------------------------------------------------------------


def test_only_rows_without_a_key_are_unmasked():
    allowed, has_key = unmask_empty_rows(torch.tensor([[True, False], [False, False]]))
    assert allowed.tolist() == [[True, False], [True, True]]
    assert has_key.tolist() == [[True], [False]]


def test_a_mask_that_fits_is_let_through():
    assert check_mask(torch.ones(1, 7, dtype=torch.bool), (3, 5, 7)) is None


def test_what_broadcasts_is_what_pytorch_says():
    shapes = [shape for count in range(4) for shape in itertools.product((0, 1, 2, 3), repeat=count)]
    for shape, target in itertools.product(shapes, repeat=2):
        try:
            expected = torch.ones(shape).expand(target).shape == torch.Size(target)
        except RuntimeError:
            expected = False
        assert broadcasts_to(shape, target) == expected, (shape, target)


def test_a_mask_that_does_not_fit_is_refused_without_loading_a_computer_algebra_system():
    code = "import sys, course_kit.nn.attention as a; a.broadcasts_to((2, 3), (4, 3)); sys.exit('sympy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("shape", [(7, 5), (5,), (2, 5, 7), (11, 3, 5, 7)])
def test_a_mask_that_would_enlarge_the_scores_is_refused(shape):
    with pytest.raises(ValueError, match=r"broadcast to the scores .*\(3, 5, 7\), got .*padding mask is \(B, 1, 1, L"):
        check_mask(torch.ones(shape, dtype=torch.bool), (3, 5, 7))


def test_a_float_mask_is_refused():
    with pytest.raises(TypeError, match=r"mask must be a bool tensor, got torch.float32 .*; True where .*mask == 0"):
        check_mask(torch.ones(5, 7), (5, 7))
