"""course_lib.scaled_dot_product: the equation, its gradient and its cost, and what its fuller versions share."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from oracles import CLOSE, DTYPES, assert_same, leaf, no_side_effects
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
    # Nothing comes back through a saturated softmax.
    assert softmax_backward(torch.tensor([0.0, 1.0, 0.0]), torch.randn(3)).tolist() == [0.0, 0.0, 0.0]


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
    assert_same(attention(*inputs, mask), F.scaled_dot_product_attention(*inputs, attn_mask=mask), inputs)


@pytest.mark.parametrize("leading", LEADING)
@pytest.mark.parametrize("masked", [False, True])
def test_self_attention_and_its_gradients_are_those_of_torch(leading, masked):
    x, w_q, w_k, w_v = inputs = leaf(*leading, 7, 17), leaf(17, 11), leaf(17, 11), leaf(17, 13)
    mask = causal_mask(7) if masked else None
    projected = (F.linear(x, weight.T) for weight in (w_q, w_k, w_v))
    theirs = F.scaled_dot_product_attention(*projected, attn_mask=mask)
    assert_same(self_attention(*inputs, mask)[0], theirs, inputs)


@pytest.mark.parametrize("leading", LEADING)
def test_the_returned_weights_and_their_gradients_are_the_softmax_of_the_scores(leading):
    query, key, value = leaf(*leading, 5, 11), leaf(*leading, 7, 11), leaf(*leading, 7, 13)
    output, weights = scaled_dot_product_attention(query, key, value)
    assert_same(weights, torch.softmax(query @ key.mT / math.sqrt(11), -1), (query, key))
    assert_close(output, weights @ value, **CLOSE)


@pytest.mark.parametrize("leading", LEADING)
def test_softmax_backward_is_what_autograd_computes(leading):
    scores, grad = leaf(*leading, 7), torch.randn(*leading, 7, dtype=torch.float64)
    weights = torch.softmax(scores, -1)
    assert_close(softmax_backward(weights.detach(), grad), torch.autograd.grad(weights, scores, grad)[0], **CLOSE)


def test_flops_are_those_that_torch_counts():
    with FlopCounterMode(display=False) as counter:
        scaled_dot_product_attention(torch.randn(5, 11), torch.randn(7, 11), torch.randn(7, 13))
    assert attention_flops(5, 7, 11, 13) == counter.get_total_flops()


# --- all three paths --------------------------------------------------------------------------------------------------


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
def test_arguments_and_random_state_stay_as_they_are(attention):
    query, key, value, mask = torch.randn(5, 11), torch.randn(7, 11), torch.randn(7, 13), torch.rand(5, 7) < 0.5
    with no_side_effects(query, key, value, mask):
        attention(query, key, value), attention(query, key, value, mask)


# --- errors -----------------------------------------------------------------------------------------------------------


def test_an_error_says_what_does_not_fit_and_what_to_do(unchecked):
    def t(*shape):
        return torch.randn(shape)

    for attention in (plain_attention, explicit_attention, fused_attention):
        for arguments, error, words in (
            ((t(5, 11), t(7, 11), t(5, 13)), ValueError, r"key and value must agree in len_k, .*; each key has"),
            ((t(5, 11), t(7, 13), t(7, 13)), ValueError, r"query and key must agree in d_k, .*; project"),
            ((t(5, 11), t(5, 11), t(5, 13), t(5, 5)), TypeError, r"mask must be a bool tensor, got .*mask\.bool\(\)"),
            (
                (t(5, 11), t(7, 11), t(7, 13), t(7, 5) > 0),
                ValueError,
                r"\(5, 7\), got \(7, 5\).*causal one \(L_q, L_k\)",
            ),
        ):
            with pytest.raises(error, match=words):
                attention(*arguments)
    with pytest.raises(ValueError, match=r"x and w_q must agree in d_model, .*transposed"):
        self_attention(t(3, 4), t(5, 4), t(4, 5), t(4, 2))
    with pytest.raises(ValueError, match=r"w_q and w_k must agree in d_k, .* feature by feature"):
        self_attention(t(3, 4), t(4, 5), t(4, 2), t(4, 2))
    with pytest.raises(ValueError, match=r"the shape of weights, \(2, 3\), got \(3, 2, 3\); pass one"):
        softmax_backward(t(2, 3), t(3, 2, 3))
    with pytest.raises(ValueError, match=r"agree in length, .*one gradient per weight"):
        softmax_backward(t(3), t(4))


def test_heads_may_share_keys_and_values(unchecked):
    query, key = torch.randn(2, 3, 5, 4), torch.randn(7, 4)
    output, weights = scaled_dot_product_attention(query, key, key)
    assert (output.shape, weights.shape) == ((2, 3, 5, 4), (2, 3, 5, 7))


@PATHS
def test_no_keys_at_all_give_zeros(attention):
    output = attention(torch.randn(2, 5, 11), torch.randn(2, 0, 11), torch.randn(2, 0, 13))
    assert torch.equal(output, torch.zeros(2, 5, 13))


def test_large_scores_in_half_precision_stay_finite():
    x = torch.full((4, 64), 40.0, dtype=torch.float16)  # 64 · 40² is beyond float16, and divided by 8 it is not
    assert torch.equal(scaled_dot_product_attention(x, x, x)[0], x)
