"""course_kit.costs.layers: five causal layers with equally many parameters, against PyTorch's own."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from oracles import CLOSE, leaf, randomise
from torch import nn
from torch.testing import assert_close

from course_kit.costs.layers import (
    KINDS,
    CausalAttention,
    CausalConvolution,
    GatedRecurrence,
    mixing_layer,
    window_attention,
)
from course_kit.nn import MultiHeadAttention
from course_lib import causal_mask, sliding_window_mask

each_kind = pytest.mark.parametrize("kind", KINDS)


def with_gradients(output, *inputs):
    """An output and its gradients with respect to the inputs, for one and the same random loss."""
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(3), dtype=output.dtype)
    return output, *torch.autograd.grad((output * weights).sum(), inputs)


# --- against others ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [(), (2,), (2, 3)])
@pytest.mark.parametrize("window", [1, 2, 5, 11, 40])
def test_a_window_computes_what_a_mask_over_all_scores_does(window, batch):
    inputs = [leaf(*batch, 11, 7) for _ in range(3)]
    ours = with_gradients(window_attention(*inputs, window), *inputs)
    mask = sliding_window_mask(11, window)
    theirs = with_gradients(F.scaled_dot_product_attention(*inputs, attn_mask=mask), *inputs)
    for one, other in zip(ours, theirs, strict=True):
        assert_close(one, other, **CLOSE)


def test_two_positions_and_a_window_of_two_by_hand():
    query, key = torch.tensor([[1.0], [2.0]]), torch.tensor([[0.0], [torch.tensor(3.0).log() / 2]])
    value = torch.tensor([[4.0], [8.0]])  # the second query weighs the keys 1 : 3
    assert_close(window_attention(query, key, value, 2), torch.tensor([[4.0], [7.0]]))
    assert_close(window_attention(query, key, value, 1), value)


@pytest.mark.parametrize("window", [None, 3])
def test_the_attention_layer_is_multi_head_attention_with_one_head(window):
    ours = randomise(CausalAttention(6, window)).double()
    theirs = MultiHeadAttention(6, 1, bias=False).double()
    theirs.load_state_dict(ours.state_dict())
    x = leaf(2, 7, 6)
    mask = causal_mask(7) if window is None else sliding_window_mask(7, window)
    found, wanted = with_gradients(ours(x), x), with_gradients(theirs(x, x, x, mask)[0], x)
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other, **CLOSE)


def test_the_recurrence_is_a_gru_whose_reset_gate_is_open():
    ours = randomise(GatedRecurrence(5)).double()
    theirs = nn.GRU(5, 5, batch_first=True).double()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.zero_()
        theirs.bias_ih_l0[:5] = 100.0  # σ(100) is 1 in float64
        for weight, own in ((theirs.weight_ih_l0, ours.of_input.weight), (theirs.weight_hh_l0, ours.of_state.weight)):
            weight[5:10], weight[10:] = -own[:5], own[5:]  # PyTorch's gate says what is kept, ours what is replaced
    x = leaf(2, 7, 5)
    found, wanted = with_gradients(ours(x), x), with_gradients(theirs(x)[0], x)
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other, **CLOSE)


@pytest.mark.parametrize(("kernel_size", "dilation"), [(4, 1), (3, 1), (2, 8), (4, 4), (1, 1)])
def test_a_convolution_is_a_sum_over_earlier_positions(kernel_size, dilation):
    layer = randomise(CausalConvolution(5, kernel_size, dilation)).double()
    x = leaf(2, 13, 5)
    wanted = torch.zeros(2, 13, 5, dtype=torch.float64)
    for place in range(13):
        for back in range(kernel_size):
            if place - back * dilation >= 0:
                weight = layer.conv.weight[:, :, kernel_size - 1 - back]
                wanted[:, place] += x[:, place - back * dilation] @ weight.T
    found, wanted = with_gradients(layer(x), x), with_gradients(wanted, x)
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other, **CLOSE)


# --- what all of them share -------------------------------------------------------------------------------------------


@each_kind
@pytest.mark.parametrize("d_model", [1, 5, 8])
def test_all_layers_have_four_square_matrices(kind, d_model):
    for number in (0, 2):
        parameters = mixing_layer(kind, d_model, number).parameters()
        assert sum(parameter.numel() for parameter in parameters) == 4 * d_model**2


@each_kind
def test_future_positions_do_not_change_the_past(kind):
    layer = mixing_layer(kind, 5, window=3).double()
    x = torch.randn(2, 11, 5, dtype=torch.float64)
    changed = torch.cat((x[:, :6], torch.randn(2, 5, 5, dtype=torch.float64)), dim=1)
    before, after = layer(x), layer(changed)
    assert torch.equal(before[:, :6], after[:, :6])
    assert (before[:, 6:] != after[:, 6:]).any(-1).all()


@each_kind
def test_sequences_of_a_batch_do_not_mix(kind):
    layer = mixing_layer(kind, 5, window=3).double()
    x = torch.randn(3, 7, 5, dtype=torch.float64)
    assert_close(layer(x), torch.cat([layer(each[None]) for each in x]), **CLOSE)


def test_dilation_grows_with_the_number_of_the_layer():
    assert [mixing_layer("dilated", 2, number).conv.dilation for number in range(4)] == [(1,), (4,), (16,), (64,)]
    assert mixing_layer("dilated", 2, 2, kernel_size=3).conv.dilation == (9,)
    assert mixing_layer("convolution", 2, 2).conv.dilation == (1,)


X = torch.randn(1, 3, 4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: mixing_layer("attention", 4), ValueError, "kind must be one of self-attention, .*got 'attention'"),
        (lambda: mixing_layer("recurrent", 2.5), TypeError, "d_model must be a whole number, got 2.5"),
        (lambda: mixing_layer("dilated", 2, -1), ValueError, "number must be at least 0, got -1"),
        (lambda: mixing_layer("restricted", 2, window=0), ValueError, "window must be at least 1, got 0"),
        (lambda: CausalAttention(0), ValueError, "d_model must be at least 1, got 0"),
        (lambda: CausalAttention(4, True), TypeError, "window must be a whole number, got True"),
        (lambda: CausalConvolution(4, 0), ValueError, "kernel_size must be at least 1"),
        (lambda: CausalConvolution(4, dilation=0), ValueError, "dilation must be at least 1"),
        (lambda: window_attention(X, X, X[:, :2], 2), ValueError, r"same shape, got \(1, 3, 4\).*\(1, 2, 4\)"),
        (lambda: window_attention(X, X.double(), X, 2), TypeError, "query, key and value must have the same dtype"),
        (lambda: window_attention(X[0, 0], X, X, 2), ValueError, "query must have at least two axes"),
        (lambda: window_attention(X, X, X, 0), ValueError, "window must be at least 1, got 0"),
        *(
            (lambda kind=kind, x=x: mixing_layer(kind, 4)(x), error, message)
            for kind in KINDS
            for x, error, message in [
                (X.long(), TypeError, "x must be a floating-point tensor, got torch.int64"),
                (X[..., :3], ValueError, r"x must be \(..., 4\), got \(1, 3, 3\)"),
                (X[0], ValueError, r"x must be \(batch, length, d_model\).*got \(3, 4\); add a batch axis"),
                (X[:, :0], ValueError, r"at least one position, got \(1, 0, 4\)"),
            ]
        ),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_cannot_be_computed_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
