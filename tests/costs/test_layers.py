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


def same_with_gradients(ours, theirs, *inputs):
    """Two outputs and their gradients with respect to the inputs."""
    assert_close(ours, theirs, **CLOSE)
    grad = torch.randn_like(ours)
    assert_close(*(torch.autograd.grad(output, inputs, grad) for output in (ours, theirs)), **CLOSE)


# --- against others ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [(), (2, 3)])
@pytest.mark.parametrize("window", [1, 2, 5, 11, 40])
def test_a_window_computes_what_a_mask_over_all_scores_does(window, batch):
    inputs = [leaf(*batch, 11, 7) for _ in range(3)]
    theirs = F.scaled_dot_product_attention(*inputs, attn_mask=sliding_window_mask(11, window))
    same_with_gradients(window_attention(*inputs, window), theirs, *inputs)


def test_two_positions_and_a_window_of_two_by_hand():
    query, key = torch.tensor([[1.0], [2.0]]), torch.tensor([[0.0], [torch.tensor(3.0).log() / 2]])
    value = torch.tensor([[4.0], [8.0]])  # the second query weighs the keys 1 : 3
    assert_close(window_attention(query, key, value, 2), torch.tensor([[4.0], [7.0]]))
    assert_close(window_attention(query, key, value, 1), value)


@pytest.mark.parametrize("window", [None, 3])
def test_the_attention_layer_is_multi_head_attention_with_one_head(window):
    ours, x = randomise(CausalAttention(6, window)).double(), leaf(2, 7, 6)
    theirs = MultiHeadAttention(6, 1, bias=False).double()
    theirs.load_state_dict(ours.state_dict())
    mask = causal_mask(7) if window is None else sliding_window_mask(7, window)
    same_with_gradients(ours(x), theirs(x, x, x, mask)[0], x)


def test_the_recurrence_is_a_gru_whose_reset_gate_is_open():
    ours, x = randomise(GatedRecurrence(5)).double(), leaf(2, 7, 5)
    theirs = nn.GRU(5, 5, batch_first=True).double()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.zero_()
        theirs.bias_ih_l0[:5] = 100.0  # σ(100) is 1 in float64
        for weight, own in ((theirs.weight_ih_l0, ours.of_input.weight), (theirs.weight_hh_l0, ours.of_state.weight)):
            weight[5:10], weight[10:] = -own[:5], own[5:]  # PyTorch's gate says what is kept, ours what is replaced
    same_with_gradients(ours(x), theirs(x)[0], x)


@pytest.mark.parametrize(("kernel_size", "dilation"), [(4, 1), (2, 8), (4, 4), (1, 1)])
def test_a_convolution_is_a_sum_over_earlier_positions(kernel_size, dilation):
    layer, x = randomise(CausalConvolution(5, kernel_size, dilation)).double(), leaf(2, 13, 5)
    places = []
    for place in range(13):
        seen = [back for back in range(kernel_size) if place - back * dilation >= 0]
        weights = [layer.conv.weight[:, :, kernel_size - 1 - back].T for back in seen]
        places.append(sum(x[:, place - back * dilation] @ w for back, w in zip(seen, weights, strict=True)))
    same_with_gradients(layer(x), torch.stack(places, dim=1), x)


# --- what all of them share -------------------------------------------------------------------------------------------


@each_kind
def test_all_layers_have_four_square_matrices(kind):
    for d_model, number in ((1, 0), (5, 2), (8, 0)):
        assert sum(p.numel() for p in mixing_layer(kind, d_model, number).parameters()) == 4 * d_model**2


@each_kind
def test_future_positions_and_other_sequences_do_not_change_an_output(kind):
    layer = mixing_layer(kind, 5, window=3).double()
    x = torch.randn(2, 11, 5, dtype=torch.float64)
    changed = torch.cat((x[:, :6], torch.randn(2, 5, 5, dtype=torch.float64)), dim=1)
    before, after = layer(x), layer(changed)
    assert torch.equal(before[:, :6], after[:, :6])
    assert (before[:, 6:] != after[:, 6:]).any(-1).all()
    assert_close(before, torch.cat([layer(each[None]) for each in x]), **CLOSE)


def test_dilation_grows_with_the_number_of_the_layer():
    assert [mixing_layer("dilated", 2, number).conv.dilation for number in range(4)] == [(1,), (4,), (16,), (64,)]
    assert mixing_layer("dilated", 2, 2, kernel_size=3).conv.dilation == (9,)
    assert mixing_layer("convolution", 2, 2).conv.dilation == (1,)


@each_kind
@pytest.mark.usefixtures("unchecked")
def test_inputs_of_another_dtype_or_shape_are_refused(kind):
    x = torch.randn(1, 3, 4)
    for wrong, error, message in (
        (x.long(), TypeError, "x must be a floating-point tensor, got torch.int64"),
        (x[..., :3], ValueError, r"x must be \(..., 4\), got \(1, 3, 3\)"),
        (x[0], ValueError, r"x must be \(batch, length, d_model\).*got \(3, 4\); add a batch axis"),
        (x[:, :0], ValueError, r"at least one position, got \(1, 0, 4\)"),
    ):
        with pytest.raises(error, match=message):
            mixing_layer(kind, 4)(wrong)


def test_a_window_needs_one_key_and_one_value_per_query_of_its_dtype(unchecked):
    x = torch.randn(1, 3, 4)
    with pytest.raises(ValueError, match=r"same shape, got \(1, 3, 4\).*\(1, 2, 4\)"):
        window_attention(x, x, x[:, :2], 2)
    with pytest.raises(TypeError, match="query, key and value must have the same dtype, got"):
        window_attention(x, x.double(), x, 2)
