"""course_lib.scaled_dot_product: the equation, its gradient and its cost, and what its fuller versions share."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from oracles import CLOSE, DTYPES, leaf, no_side_effects
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from course_kit.nn.attention import attention_with_bias, fused_attention
from course_lib.masking import causal_mask
from course_lib.scaled_dot_product import (
    attention_flops,
    scaled_dot_product_attention,
    self_attention,
    softmax_backward,
)

LEADING = [(), (2,), (2, 3)]


def plain_attention(*args):
    return scaled_dot_product_attention(*args)[0]


def explicit_attention(*args):
    return attention_with_bias(*args)[0]


PATHS = pytest.mark.parametrize(
    "attention", [plain_attention, explicit_attention, fused_attention], ids=["plain", "explicit", "fused"]
)


# --- by hand ----------------------------------------------------------------------------------------------------------


@PATHS
def test_attention_by_hand(attention):
    # d_k = 4, so scores are halved: (ln 9, 0) / 2 = (ln 3, 0), weights 3/4 and 1/4, output 0.75 · 4 + 0.25 · 8 = 5.
    query = torch.tensor([[math.log(9.0), 0.0, 0.0, 0.0]], dtype=torch.float64)
    key = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]], dtype=torch.float64)
    value = torch.tensor([[4.0], [8.0]], dtype=torch.float64)
    assert attention(query, key, value).item() == pytest.approx(5.0, abs=1e-12)
    # Only the second key allowed: its value, 8. None allowed: 0.
    assert attention(query, key, value, torch.tensor([[False, True]])).item() == pytest.approx(8.0, abs=1e-12)
    assert attention(query, key, value, torch.tensor([[False, False]])).item() == 0.0


def test_self_attention_by_hand():
    x = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    # d_k = 4, so the root is 2. Token 1 has the query (ln 9, 0, 0, 0), the keys are (1, 0, 0, 0) and (0, 1, 0, 0):
    # scores (ln 9, 0) / 2 = (ln 3, 0), weights 3/4 and 1/4. Token 2 has the query 0: weights 1/2 and 1/2.
    w_q = torch.tensor([[math.log(9.0), 0, 0, 0], [0, 0, 0, 0]], dtype=torch.float64)
    w_k = torch.tensor([[1.0, 0, 0, 0], [0, 1, 0, 0]], dtype=torch.float64)
    w_v = torch.tensor([[4.0], [8.0]], dtype=torch.float64)
    output, weights = self_attention(x, w_q, w_k, w_v)
    assert_close(weights, torch.tensor([[0.75, 0.25], [0.5, 0.5]], dtype=torch.float64), **CLOSE)
    assert_close(output, torch.tensor([[5.0], [6.0]], dtype=torch.float64), **CLOSE)
    # The first token may not attend to itself: only the value 8 is left for it.
    output, _ = self_attention(x, w_q, w_k, w_v, torch.tensor([[False, True], [True, True]]))
    assert_close(output, torch.tensor([[8.0], [6.0]], dtype=torch.float64), **CLOSE)


def test_softmax_backward_by_hand():
    # Average of g under w: 0.25 · 4 + 0.75 · 8 = 7. So 0.25 · (4 - 7) = -0.75 and 0.75 · (8 - 7) = 0.75.
    weights, grad = torch.tensor([0.25, 0.75]), torch.tensor([4.0, 8.0])
    assert softmax_backward(weights, grad).tolist() == [-0.75, 0.75]


def test_flops_by_hand():
    # Scores: 2 · 3 pairs, 5 multiply-adds each, 2 operations a multiply-add: 60. Output: 2 · 7 numbers, 3 each: 84.
    assert attention_flops(len_q=2, len_k=3, d_k=5, d_v=7) == 60 + 84


def test_weights_for_seed_42():
    # Published in the course's sources (COVERAGE.md, notebook B), to four decimals.
    torch.manual_seed(42)
    query, key, value = (torch.randn(3, 2) for _ in range(3))
    weights = scaled_dot_product_attention(query, key, value)[1]
    expected = torch.tensor([[0.4028, 0.2886, 0.3086], [0.3538, 0.3069, 0.3393], [0.1303, 0.4630, 0.4067]])
    assert_close(weights, expected, rtol=0, atol=5.1e-5)  # half a unit of the fourth decimal


# --- against PyTorch --------------------------------------------------------------------------------------------------


@PATHS
@pytest.mark.parametrize("leading", LEADING)
@pytest.mark.parametrize("masked", [False, True])
def test_output_and_gradients_are_those_of_torch(attention, leading, masked):
    inputs = leaf(*leading, 5, 11), leaf(*leading, 7, 11), leaf(*leading, 7, 13)
    mask = causal_mask(7)[-5:] if masked else None
    ours = attention(*inputs, mask)
    theirs = F.scaled_dot_product_attention(*inputs, attn_mask=mask)
    grad = torch.randn_like(theirs)
    assert ours.shape == (*leading, 5, 13)
    assert_close(ours, theirs, **CLOSE)
    assert_close(torch.autograd.grad(ours, inputs, grad), torch.autograd.grad(theirs, inputs, grad), **CLOSE)


@pytest.mark.parametrize("leading", LEADING)
@pytest.mark.parametrize("masked", [False, True])
def test_self_attention_and_its_gradients_are_those_of_torch(leading, masked):
    x, w_q, w_k, w_v = inputs = leaf(*leading, 7, 17), leaf(17, 11), leaf(17, 11), leaf(17, 13)
    mask = causal_mask(7) if masked else None
    ours, _ = self_attention(*inputs, mask)
    projected = (F.linear(x, weight.T) for weight in (w_q, w_k, w_v))
    theirs = F.scaled_dot_product_attention(*projected, attn_mask=mask)
    grad = torch.randn_like(theirs)
    assert ours.shape == (*leading, 7, 13)
    assert_close(ours, theirs, **CLOSE)
    assert_close(torch.autograd.grad(ours, inputs, grad), torch.autograd.grad(theirs, inputs, grad), **CLOSE)


def test_self_attention_of_reordered_tokens_is_reordered():
    x, w_q, w_k, w_v = leaf(3, 7, 17), leaf(17, 11), leaf(17, 11), leaf(17, 13)
    order = torch.tensor([3, 0, 6, 1, 5, 2, 4])
    output, weights = self_attention(x, w_q, w_k, w_v)
    reordered, its_weights = self_attention(x[:, order], w_q, w_k, w_v)
    assert_close(reordered, output[:, order], **CLOSE)
    assert_close(its_weights, weights[:, order][:, :, order], **CLOSE)


def test_only_the_product_of_query_and_key_matrix_decides_the_weights():
    # x W_Q (x W_K)ᵀ = x (W_Q W_Kᵀ) xᵀ: turning the features of both matrices alike changes nothing.
    x, w_q, w_k, w_v = leaf(7, 17), leaf(17, 11), leaf(17, 11), leaf(17, 13)
    turn, _ = torch.linalg.qr(leaf(11, 11))
    weights = self_attention(x, w_q, w_k, w_v)[1]
    assert_close(self_attention(x, w_q @ turn, w_k @ turn, w_v)[1], weights, **CLOSE)
    assert not torch.allclose(self_attention(x, w_q @ turn, w_k, w_v)[1], weights)


@pytest.mark.parametrize("leading", LEADING)
def test_weights_are_the_ones_that_average_the_values(leading):
    query, key = torch.randn(*leading, 5, 11), torch.randn(*leading, 7, 11)
    output, weights = scaled_dot_product_attention(query, key, torch.eye(7).expand(*leading, 7, 7))
    assert weights.shape == (*leading, 5, 7)
    assert_close(output, weights)
    assert_close(weights.sum(-1), torch.ones(*leading, 5))


def test_gradients_flow_through_the_returned_weights():
    query, key, value = leaf(5, 11), leaf(7, 11), leaf(7, 13)
    _, weights = scaled_dot_product_attention(query, key, value)
    expected = torch.softmax(query @ key.T / math.sqrt(11), -1)
    grad = torch.randn(5, 7, dtype=torch.float64)
    ours, theirs = (torch.autograd.grad(w, (query, key), grad) for w in (weights, expected))
    assert_close(ours, theirs, **CLOSE)


@pytest.mark.parametrize("leading", LEADING)
def test_softmax_backward_is_what_autograd_computes(leading):
    scores, grad = leaf(*leading, 7), torch.randn(*leading, 7, dtype=torch.float64)
    weights = torch.softmax(scores, -1)
    assert_close(softmax_backward(weights.detach(), grad), torch.autograd.grad(weights, scores, grad)[0], **CLOSE)


def test_nothing_comes_back_through_a_saturated_softmax():
    assert softmax_backward(torch.tensor([0.0, 1.0, 0.0]), torch.randn(3)).tolist() == [0.0, 0.0, 0.0]


def test_flops_are_those_that_torch_counts():
    with FlopCounterMode(display=False) as counter:
        scaled_dot_product_attention(torch.randn(5, 11), torch.randn(7, 11), torch.randn(7, 13))
    assert attention_flops(5, 7, 11, 13) == counter.get_total_flops()


# --- all three paths --------------------------------------------------------------------------------------------------


def test_a_mask_over_keys_alone_works_on_both_paths():
    inputs, mask = (leaf(2, 3, 5, 11), leaf(2, 3, 7, 11), leaf(2, 3, 7, 13)), torch.tensor([1, 0, 1, 1, 0, 1, 0]).bool()
    assert_close(explicit_attention(*inputs, mask), fused_attention(*inputs, mask), **CLOSE)


@PATHS
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_fully_masked_query_gets_zeros_and_finite_gradients_in_every_dtype(attention, dtype):
    inputs = leaf(2, 5, 11, dtype=dtype), leaf(2, 7, 11, dtype=dtype), leaf(2, 7, 13, dtype=dtype)
    mask = torch.rand(5, 7) < 0.6
    mask[2], mask[3] = False, True
    output = attention(*inputs, mask)
    assert output.dtype == dtype
    assert (output[:, 2] == 0.0).all()
    assert (output[:, 3] != 0.0).any()
    output.sum().backward()
    assert all(x.grad.isfinite().all() for x in inputs)
    assert (inputs[0].grad[:, 2] == 0.0).all()


@PATHS
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_lower_precision_is_near_the_float64_result(attention, dtype):
    inputs = [torch.randn(2, length, d).to(dtype) for length, d in ((5, 11), (7, 11), (7, 13))]
    mask = causal_mask(7)[-5:]
    exact = explicit_attention(*(x.double() for x in inputs), mask)
    # Scores up to about 4 are rounded to eps / 2 of themselves; so the weights are off by about 4 · eps / 2 of
    # themselves, and by two more roundings; values are up to about 3 in size: (2 + 1) · 3 eps, and as much again.
    assert_close(attention(*inputs, mask).double(), exact, rtol=0, atol=16 * torch.finfo(dtype).eps)


@PATHS
def test_scores_of_ten_thousand_are_finite(attention):
    query, key = 100 * torch.ones(5, 4), 100 * torch.tensor([[1.0], [-1.0], [0.5]]) * torch.ones(4)
    assert_close(attention(query, key, torch.eye(3)), torch.tensor([1.0, 0.0, 0.0]).expand(5, 3))


# --- properties -------------------------------------------------------------------------------------------------------


@PATHS
def test_future_tokens_do_not_change_the_past(attention):
    query, key, value = torch.randn(2, 7, 11), torch.randn(2, 7, 11), torch.randn(2, 7, 13)
    before = attention(query, key, value, causal_mask(7))
    for x in (query, key, value):
        x[:, 4:] = torch.randn_like(x[:, 4:])
    after = attention(query, key, value, causal_mask(7))
    assert_close(before[:, :4], after[:, :4])
    assert not torch.isclose(before[:, 4:], after[:, 4:]).any(-1).all()


@PATHS
def test_the_order_of_the_keys_does_not_matter(attention):
    query, key, value = (torch.randn(2, length, 11, dtype=torch.float64) for length in (5, 7, 7))
    order = torch.randperm(7)
    assert_close(attention(query, key, value), attention(query, key[:, order], value[:, order]), **CLOSE)


@PATHS
@pytest.mark.parametrize("masked", [False, True])
def test_arguments_and_random_state_stay_as_they_are(attention, masked):
    query, key, value = torch.randn(5, 11), torch.randn(7, 11), torch.randn(7, 13)
    mask = torch.rand(5, 7) < 0.5 if masked else None
    with no_side_effects(query, key, value, *([mask] if masked else [])):
        attention(query, key, value, mask)


def test_scaled_scores_have_standard_deviation_one_whatever_d_k_is():
    for d_k in (2, 31, 257):
        query, key = torch.randn(503, d_k, dtype=torch.float64), torch.randn(101, d_k, dtype=torch.float64)
        _, weights = scaled_dot_product_attention(query, key, key)
        log_weights = weights.log()
        # Log-weights are scores less a constant a row. About 100 independent keys: std is known to about a tenth.
        assert log_weights.std(-1).mean() == pytest.approx(1.0, abs=0.2)


# --- errors -----------------------------------------------------------------------------------------------------------


@PATHS
def test_a_float_mask_is_refused_not_added(attention, unchecked):
    x = torch.randn(5, 11)
    with pytest.raises(TypeError, match=r"mask must be a bool tensor, got torch.float32 .*; .*mask\.bool\(\)"):
        attention(x, x, x, torch.ones(5, 5))


@PATHS
@pytest.mark.parametrize("shape", [(7, 5), (3, 5, 7), (2, 3, 5, 7)])
def test_a_mask_that_would_change_the_shape_of_the_scores_is_refused(attention, shape):
    query, key, value = torch.randn(2, 5, 11), torch.randn(2, 7, 11), torch.randn(2, 7, 13)
    with pytest.raises(ValueError, match=r"broadcast to .*\(2, 5, 7\), got .*causal one \(L_q, L_k\)"):
        attention(query, key, value, torch.ones(shape, dtype=torch.bool))


@PATHS
def test_keys_and_values_of_different_number_are_refused(attention, unchecked):
    with pytest.raises(ValueError, match=r"key and value must agree in len_k, .*\(7, 11\).*\(5, 13\).*; each key has"):
        attention(torch.randn(5, 11), torch.randn(7, 11), torch.randn(5, 13))


@PATHS
def test_queries_and_keys_of_different_width_are_refused(attention, unchecked):
    with pytest.raises(ValueError, match=r"query and key must agree in d_k, .*\(5, 11\).*\(7, 13\).*; project"):
        attention(torch.randn(5, 11), torch.randn(7, 13), torch.randn(7, 13))


@PATHS
def test_no_keys_at_all_give_zeros(attention):
    output = attention(torch.randn(2, 5, 11), torch.randn(2, 0, 11), torch.randn(2, 0, 13))
    assert torch.equal(output, torch.zeros(2, 5, 13))


def test_large_scores_in_half_precision_stay_finite():
    x = torch.full((4, 64), 40.0, dtype=torch.float16)  # 64 · 40² is beyond float16, and divided by 8 it is not
    output, weights = scaled_dot_product_attention(x, x, x)
    assert torch.equal(output, x)
    assert torch.allclose(weights, torch.full((4, 4), 0.25, dtype=torch.float16))


def test_a_gradient_of_another_shape_is_refused(unchecked):
    with pytest.raises(
        ValueError, match=r"grad_weights must have the shape of weights, \(2, 3\), got \(3, 2, 3\); pass one"
    ):
        softmax_backward(torch.rand(2, 3), torch.rand(3, 2, 3))
