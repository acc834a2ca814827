"""course_kit.nn.attention: attention with a bias and dropout, step by step and by PyTorch's fused kernels."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from oracles import CLOSE, DTYPES, assert_same, leaf, no_side_effects
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
    "keys alone": lambda: torch.tensor([1, 0, 1, 1, 0, 1, 0]).bool(),
    "queries only": lambda: torch.tensor([1, 0, 1, 1, 0]).bool()[:, None],
    "3-D": lambda: (torch.rand(3, 5, 7) < 0.6).index_fill(1, torch.tensor([0]), False),
    "4-D": lambda: (torch.rand(2, 3, 5, 7) < 0.6).index_fill(2, torch.tensor([4]), False),
    "nothing allowed": lambda: torch.zeros(5, 7, dtype=torch.bool),
}
BIASES = {"no bias": (), "2-D bias": (5, 7), "3-D bias": (3, 5, 7), "4-D bias": (2, 1, 5, 7), "key bias": (1, 7)}


@pytest.mark.parametrize("mask", MASKS)
def test_without_bias_and_dropout_it_is_the_plain_function_in_values_and_gradients(mask):
    inputs, mask = (leaf(2, 3, 5, 11), leaf(2, 3, 7, 11), leaf(2, 3, 7, 13)), MASKS[mask]()
    pairs = zip(attention_with_bias(*inputs, mask), scaled_dot_product_attention(*inputs, mask), strict=True)
    for (ours, theirs), leaves in zip(pairs, (inputs, inputs[:2]), strict=True):  # output, weights
        assert_same(ours, theirs, leaves)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("bias", BIASES)
def test_both_paths_agree_in_values_and_gradients(mask, bias):
    inputs = leaf(2, 3, 5, 11), leaf(2, 3, 7, 11), leaf(2, 3, 7, 13)
    mask, bias = MASKS[mask](), leaf(*BIASES[bias]) if BIASES[bias] else None
    leaves = inputs if bias is None else (*inputs, bias)
    assert_same(explicit_attention(*inputs, mask, bias=bias), fused_attention(*inputs, mask, bias=bias), leaves)


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
    mask, bias = torch.rand(5, 7) < 0.6, torch.randn(5, 7)  # the bias takes the dtype of the query
    mask[2], mask[3] = False, True
    with no_side_effects(*inputs, mask, bias):
        output = attention(*inputs, mask, bias=bias)
    assert output.dtype == attention(*inputs, bias=bias).dtype == dtype
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
def test_a_bias_that_would_enlarge_the_scores_and_a_dropout_beyond_one_are_refused(attention, unchecked):
    query, key, value = torch.randn(2, 5, 11), torch.randn(2, 7, 11), torch.randn(2, 7, 13)
    with pytest.raises(ValueError, match=r"bias must broadcast .*\(2, 5, 7\), got \(3, 2, 5, 7\); .*\(H, L_q, L_k\)"):
        attention(query, key, value, bias=torch.randn(3, 2, 5, 7))
    with pytest.raises(ValueError, match=r"dropout must be in \[0, 1\], got .*; 0 switches it off"):
        attention(query, key, value, dropout=1.1)


# --- masks ------------------------------------------------------------------------------------------------------------


def test_only_rows_without_a_key_are_unmasked():
    allowed, has_key = unmask_empty_rows(torch.tensor([[True, False], [False, False]]))
    assert allowed.tolist() == [[True, False], [True, True]]
    assert has_key.tolist() == [[True], [False]]


def test_what_broadcasts_is_what_pytorch_says():
    shapes = [shape for count in range(4) for shape in itertools.product((0, 1, 3), repeat=count)]
    for shape, target in itertools.product(shapes, repeat=2):
        try:
            expected = torch.ones(shape).expand(target).shape == torch.Size(target)
        except RuntimeError:
            expected = False
        assert broadcasts_to(shape, target) == expected, (shape, target)


def test_a_float_mask_and_one_that_would_enlarge_the_scores_are_refused():
    assert check_mask(torch.ones(1, 7, dtype=torch.bool), (3, 5, 7)) is None
    with pytest.raises(ValueError, match=r"broadcast to the scores .*\(3, 5, 7\), got .*padding mask is \(B, 1, 1, L"):
        check_mask(torch.ones(2, 5, 7, dtype=torch.bool), (3, 5, 7))
    with pytest.raises(TypeError, match=r"mask must be a bool tensor, got torch.float32 .*; True where .*mask == 0"):
        check_mask(torch.ones(5, 7), (5, 7))
