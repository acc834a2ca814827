"""course_lib.multi_head: heads split and merged, and the module against PyTorch's; so is the full one of course_kit."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from oracles import (
    CLOSE,
    DTYPES,
    MASKS,
    assert_same_function,
    leaf,
    no_side_effects,
    randomise,
    torch_mask,
    torch_names,
)
from torch import nn
from torch.testing import assert_close

import course_lib as cl
from course_kit import nn as full
from course_lib.masking import causal_mask
from course_lib.multi_head import merge_heads, multi_head_parameter_count, split_heads

LEADING = [(), (3,), (3, 13)]
D_MODEL, HEADS = 22, 2  # two heads of 11 features
KINDS = [pytest.param(cl.MultiHeadAttention, id="plain"), pytest.param(full.MultiHeadAttention, id="full")]


def inputs(dtype=torch.float64):
    """A query, keys and values that differ from one another."""
    return leaf(3, 5, D_MODEL, dtype=dtype), leaf(3, 7, D_MODEL, dtype=dtype), leaf(3, 7, D_MODEL, dtype=dtype)


def attention(kind):
    return randomise(kind(D_MODEL, HEADS)).double()


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_split_heads_by_hand():
    # Position 0 has features 1 2 3 4, position 1 has 5 6 7 8; head 0 takes the first two of each, head 1 the others.
    x = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]]).float()
    heads = split_heads(x, 2)
    assert heads.tolist() == [[[1, 2], [5, 6]], [[3, 4], [7, 8]]]
    assert heads.data_ptr() == x.data_ptr()  # nothing is copied


@pytest.mark.parametrize("kind", KINDS)
def test_multi_head_attention_by_hand(kind):
    # Two heads of one feature, identity projections, d_k = 1. Head 0: scores ln 3 · (1, 0), weights 3/4 and 1/4,
    # 0.75 · 4 + 0.25 · 8 = 5. Head 1: scores 0 · (0, 1), weights 1/2 and 1/2, (10 + 20) / 2 = 15.
    # The output projection swaps the two and adds (1, -1): (16, 4).
    module = kind(2, 2)
    for projection in (module.q_proj, module.k_proj, module.v_proj):
        projection.weight.data = torch.eye(2)
    for bias in (module.q_proj.bias, module.k_proj.bias, module.v_proj.bias):
        bias.data.zero_()
    module.out_proj.weight.data = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    module.out_proj.bias.data = torch.tensor([1.0, -1.0])
    query, key = torch.tensor([[[math.log(3.0), 0.0]]]), torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    value = torch.tensor([[[4.0, 10.0], [8.0, 20.0]]])
    output, weights = module(query, key, value)
    assert_close(output, torch.tensor([[[16.0, 4.0]]]))
    assert_close(weights, torch.tensor([[[[0.75, 0.25]], [[0.5, 0.5]]]]))


def test_parameter_count_by_hand():
    # Four matrices of 6 · 6 and four biases of 6: 144 + 24.
    assert (multi_head_parameter_count(6, 3), multi_head_parameter_count(6, 3, bias=False)) == (168, 144)


# --- heads ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leading", LEADING)
@pytest.mark.parametrize("num_heads", [1, 2, 11, 22])
def test_each_head_takes_its_slice_of_the_features_and_merging_undoes_splitting(leading, num_heads):
    x = torch.randn(*leading, 5, 22)
    with no_side_effects(x):
        heads = split_heads(x, num_heads)
    assert torch.equal(heads, torch.stack(x.chunk(num_heads, -1), -3))
    assert torch.equal(merge_heads(heads), x)


@pytest.mark.parametrize("kind", KINDS)
def test_the_count_of_parameters_is_that_of_the_module(kind):
    module = kind(D_MODEL, HEADS)
    assert multi_head_parameter_count(D_MODEL, HEADS) == sum(p.numel() for p in module.parameters())
    names = {f"{name}_proj.{kind}" for name in ("q", "k", "v", "out") for kind in ("weight", "bias")}
    assert {name for name, _ in module.named_parameters()} == names


# --- against PyTorch --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kind", KINDS)
def test_output_weights_and_gradients_are_those_of_nn_multihead_attention(mask, kind):
    ours, mask, x = attention(kind), MASKS[mask](), inputs()
    theirs = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True).double()
    theirs.load_state_dict(torch_names(ours.state_dict()))
    output, weights = ours(*x, mask)
    expected, expected_weights = theirs(*x, attn_mask=torch_mask(mask), average_attn_weights=False)
    assert_close(weights, expected_weights, **CLOSE)
    assert_same_function(output, expected, ours, theirs, x, torch_names)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_fully_masked_query_brings_home_the_output_bias_only(dtype, kind):
    module, x = randomise(kind(D_MODEL, HEADS)).to(dtype), inputs(dtype)
    mask = torch.rand(5, 7) < 0.6
    mask[2], mask[3] = False, True
    output, weights = module(*x, mask)
    assert output.dtype == dtype
    assert_close(output[:, 2], module.out_proj.bias.expand(3, D_MODEL), rtol=0, atol=0)
    assert (weights[:, :, 2] == 0.0).all()
    output.sum().backward()
    assert all(tensor.grad.isfinite().all() for tensor in (*x, *module.parameters()))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("kind", KINDS)
def test_lower_precision_is_near_the_float64_result(dtype, kind):
    module = kind(D_MODEL, HEADS).to(dtype)
    x = [tensor.detach() for tensor in inputs(dtype)]
    output, _ = module(*x)
    exact, _ = copy.deepcopy(module).double()(*(tensor.double() for tensor in x))
    # Both begin with weights that keep numbers near 1 in size (4 at most). Three products in a row, each rounded to
    # eps / 2 of up to 4 in its inputs, weights and result: about 3 · 3 · 2 eps.
    assert_close(output.double(), exact, rtol=0, atol=18 * torch.finfo(dtype).eps)


# --- properties -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_future_tokens_do_not_change_the_past(kind):
    module, x = attention(kind), torch.randn(3, 7, D_MODEL, dtype=torch.float64)
    other = torch.cat((x[:, :4], torch.randn(3, 3, D_MODEL, dtype=torch.float64)), 1)
    before, after = (module(y, y, y, causal_mask(7))[0] for y in (x, other))
    assert_close(before[:, :4], after[:, :4], **CLOSE)
    assert (before[:, 4:] - after[:, 4:]).abs().amax(-1).min() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_has_no_side_effects_and_a_copy_computes_the_same(kind):
    module, x, mask = attention(kind), inputs(), torch.rand(3, 1, 5, 7) < 0.5
    loaded = kind(D_MODEL, HEADS).double()
    loaded.load_state_dict(module.state_dict())
    with no_side_effects(*x, mask, *module.parameters()):
        expected = module(*x, mask)
    for twin in (loaded, copy.deepcopy(module)):
        assert_close(twin(*x, mask), expected, rtol=0, atol=0)


# --- errors -----------------------------------------------------------------------------------------------------------


def test_a_number_of_heads_that_does_not_divide_is_refused():
    for function in (
        lambda num_heads: split_heads(torch.randn(3, 5, 22), num_heads),
        lambda num_heads: multi_head_parameter_count(22, num_heads),
        lambda num_heads: cl.MultiHeadAttention(22, num_heads),
        lambda num_heads: full.MultiHeadAttention(22, num_heads),
    ):
        for num_heads in (4, 44):
            with pytest.raises(ValueError, match=rf"num_heads must divide d_model, got {num_heads} for d_model = 22"):
                function(num_heads)
        with pytest.raises(
            ValueError, match=r"num_heads must (be at least 1, got 0|divide d_model, got 0 for d_model)"
        ):
            function(0)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_says_which_shapes_do_not_fit_and_what_to_do(kind, unchecked):
    for shapes, words in (
        ([(5, 22), (3, 7, 22), (3, 7, 22)], r"query must be \(batch, len_q, d_model\), got \(5, 22\); add .*\[None\]"),
        ([(3, 5, 22), (3, 7, 11), (3, 7, 22)], r"query and key must agree in d_model, .*; build the module"),
        ([(3, 5, 11), (3, 7, 11), (3, 7, 11)], r"query must be .* with d_model = 22, got \(3, 5, 11\); build the"),
        ([(3, 5, 22), (2, 7, 22), (2, 7, 22)], r"query and key must agree in batch, .*from the same batch"),
        ([(3, 5, 22), (3, 7, 22), (3, 5, 22)], r"key and value must agree in len_k, .*; each key"),
    ):
        with pytest.raises(ValueError, match=words):
            attention(kind)(*(torch.randn(shape).double() for shape in shapes))
    with pytest.raises(TypeError, match=r"mask must be a bool tensor, got torch.float32 \(5, 7\); True .*mask.bool"):
        attention(kind)(*inputs(), torch.ones(5, 7))
    for shape in ((3, 5, 7), (3, 1, 5), (5, 6), (2, 3, 2, 5, 7)):
        with pytest.raises(
            ValueError, match=r"mask must broadcast to \(.*\) = \(3, 2, 5, .*\), got .*\(B, 1, 1, L_k\)"
        ):
            attention(kind)(*inputs(), torch.ones(shape, dtype=torch.bool))
