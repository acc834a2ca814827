"""course_lib.masking: who may attend to whom, and a softmax that keeps to it."""

from __future__ import annotations

import pytest
import torch
from oracles import CLOSE, DTYPES, leaf, no_side_effects
from torch.testing import assert_close

from course_lib.masking import causal_mask, decoder_mask, masked_softmax, padding_mask, sliding_window_mask

PAD = 9

# --- by hand ----------------------------------------------------------------------------------------------------------


def test_masked_softmax_by_hand():
    # Row 0: 1 : 3 over the allowed two, the huge third is forbidden. Row 1: all allowed, 1 : 3 : 4.
    # Row 2: one allowed key takes everything. Row 3: nothing allowed, nothing taken.
    scores = torch.tensor([[1.0, 3.0, 1e30], [1.0, 3.0, 4.0], [1.0, 3.0, 4.0], [1.0, 3.0, 4.0]]).double().log()
    mask = torch.tensor([[1, 1, 0], [1, 1, 1], [0, 1, 0], [0, 0, 0]]).bool()
    expected = torch.tensor([[0.25, 0.75, 0.0], [0.125, 0.375, 0.5], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]).double()
    with no_side_effects(scores, mask):
        assert_close(masked_softmax(scores, mask), expected, **CLOSE)


def test_masks_by_hand():
    # Token 9 is padding.
    tokens = torch.tensor([[4, 5, 9], [6, 9, 9]])
    assert padding_mask(tokens, PAD).int().tolist() == [[[[1, 1, 0]]], [[[1, 0, 0]]]]
    assert causal_mask(3).int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    assert decoder_mask(tokens, PAD).int().tolist() == [
        [[[1, 0, 0], [1, 1, 0], [1, 1, 0]]],
        [[[1, 0, 0], [1, 0, 0], [1, 0, 0]]],
    ]
    assert sliding_window_mask(4, 2).int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]


# --- masks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, 2, 7])
def test_a_causal_mask_allows_the_present_and_the_past(length):
    assert causal_mask(length).tolist() == [[key <= query for key in range(length)] for query in range(length)]


@pytest.mark.parametrize("window", [1, 2, 3, 7, 11])
def test_a_sliding_window_allows_the_last_few(window):
    expected = [[0 <= query - key < window for key in range(7)] for query in range(7)]
    assert sliding_window_mask(7, window).tolist() == expected


def test_a_padding_mask_allows_every_real_token_wherever_the_padding_is():
    tokens = torch.tensor([[PAD, 1, 2, PAD, 3], [1, 2, 3, 4, PAD], [0, 0, 0, 0, 0]])
    with no_side_effects(tokens):
        mask = padding_mask(tokens, PAD)
    assert mask[:, 0, 0].tolist() == [[token != PAD for token in row] for row in tokens.tolist()]


def test_a_decoder_mask_allows_what_both_of_its_parts_allow():
    tokens = torch.randint(7, 10, (3, 5))
    mask = decoder_mask(tokens, PAD)
    assert mask.shape == (3, 1, 5, 5)
    for sentence, query, key in torch.cartesian_prod(torch.arange(3), torch.arange(5), torch.arange(5)).tolist():
        assert mask[sentence, 0, query, key] == (key <= query and tokens[sentence, key] != PAD)


def test_masks_of_tokens_are_made_where_the_tokens_are():
    tokens = torch.empty(2, 5, dtype=torch.long, device="meta")
    assert {mask.device.type for mask in (padding_mask(tokens, 0), decoder_mask(tokens, 0))} == {"meta"}


# --- masked softmax ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask_shape", [(5, 7), (1, 7), (7,), (5, 1), (3, 5, 7), (2, 1, 1, 7), (2, 3, 5, 7), ()])
def test_a_mask_of_any_rank_broadcasts_and_gives_torch_softmax_of_scores_with_minus_infinity(mask_shape):
    scores, mask = leaf(2, 3, 5, 7), torch.rand(mask_shape) < 0.6
    filled = scores.masked_fill(~mask, -torch.inf)
    expected = torch.softmax(filled, -1).nan_to_num(0.0)  # PyTorch has NaN where nothing is allowed
    weights = masked_softmax(scores, mask)
    assert_close(weights, expected, **CLOSE)
    rows = mask.expand(2, 3, 5, 7).any(-1)
    assert_close(weights.sum(-1), rows.double(), **CLOSE)
    assert (weights[~mask.expand(2, 3, 5, 7)] == 0.0).all()


def test_the_gradient_is_that_of_torch_softmax_over_the_allowed_keys_alone():
    scores, grad = leaf(5, 7), torch.randn(5, 7, dtype=torch.float64)
    mask = torch.rand(5, 7) < 0.5
    mask[:, 3] = True
    ours = torch.autograd.grad(masked_softmax(scores, mask), scores, grad)[0]
    for row in range(5):
        allowed = scores[row, mask[row]].detach().requires_grad_()
        torch.softmax(allowed, -1).backward(grad[row, mask[row]])
        assert_close(ours[row, mask[row]], allowed.grad, **CLOSE)
        assert (ours[row, ~mask[row]] == 0.0).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_in_every_dtype_masked_weights_are_zero_rows_sum_to_one_and_gradients_are_finite(dtype):
    scores = (10 * torch.randn(3, 5, 7)).to(dtype).requires_grad_()
    mask = torch.rand(3, 5, 7) < 0.5
    mask[:, 0], mask[:, 1] = False, True
    weights = masked_softmax(scores, mask)
    assert weights.dtype == dtype
    assert (weights[~mask] == 0.0).all()
    # Seven weights of at most 1, each rounded twice, and the sum: less than 7 eps.
    assert_close(weights.sum(-1), mask.any(-1).to(dtype), rtol=0, atol=7 * torch.finfo(dtype).eps)
    weights.backward(torch.randn(3, 5, 7).to(dtype))
    assert scores.grad.isfinite().all()
    assert (scores.grad[:, 0] == 0.0).all()  # nothing allowed, nothing to learn


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_no_nan_appears_even_on_the_way_back():
    scores, mask = leaf(5, 7), torch.rand(5, 7) < 0.5
    mask[2] = False
    with torch.autograd.detect_anomaly():
        masked_softmax(scores, mask).square().sum().backward()


@pytest.mark.parametrize("dtype", DTYPES)
def test_allowed_scores_beat_forbidden_ones_however_low_they_are(dtype):
    lowest = torch.finfo(dtype).min
    scores = torch.tensor([[-1e4, -1e4, 1e4, 0.0], [lowest, 0.0, 0.0, 1e4]], dtype=dtype)
    mask = torch.tensor([[True, True, False, False], [True, False, False, False]])
    assert masked_softmax(scores, mask).tolist() == [[0.5, 0.5, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]


# --- errors -----------------------------------------------------------------------------------------------------------


def test_an_error_says_what_a_mask_must_be(unchecked):
    for dtype in (torch.float32, torch.int64, torch.uint8):
        with pytest.raises(TypeError, match=rf"bool tensor, got {dtype} .*; True where .*mask\.bool\(\).*mask == 0"):
            masked_softmax(torch.randn(5, 7), torch.ones(5, 7, dtype=dtype))
    for shape in ((7, 5), (5,), (3, 5), (2, 5, 7), (11, 3, 5, 7)):
        with pytest.raises(ValueError, match=r"broadcast to .*\(3, 5, 7\), got .*padding mask is \(B, 1, 1, L"):
            masked_softmax(torch.randn(3, 5, 7), torch.ones(shape, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"window must be at least 1, got 0; .*sees itself"):
        sliding_window_mask(5, 0)
