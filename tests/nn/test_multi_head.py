"""course_kit.nn.multi_head: what the full attention has besides the plain one, and that it equals it without."""

from __future__ import annotations

import math

import pytest
import torch
from oracles import CLOSE, DTYPES, MASKS, assert_same_function, gradients, leaf, no_side_effects, randomise, torch_names
from torch import nn
from torch.testing import assert_close

import course_lib as cl
from course_kit.nn import AlibiPosition, AttentionPosition, MultiHeadAttention, RotaryPosition, record_attention
from course_lib.masking import causal_mask
from course_lib.multi_head import multi_head_parameter_count

D_MODEL, HEADS = 22, 2  # two heads of 11 features


def inputs(dtype=torch.float64):
    """A query, keys and values that differ from one another."""
    return leaf(3, 5, D_MODEL, dtype=dtype), leaf(3, 7, D_MODEL, dtype=dtype), leaf(3, 7, D_MODEL, dtype=dtype)


def attention(**options):
    return randomise(MultiHeadAttention(D_MODEL, HEADS, **options)).double()


# --- against the plain one --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("need_weights", [True, False])
def test_without_further_options_it_is_the_plain_one(mask, need_weights):
    module, plain, mask, x = attention(), cl.MultiHeadAttention(D_MODEL, HEADS).double(), MASKS[mask](), inputs()
    plain.load_state_dict(module.state_dict())
    expected = plain(*x, mask)
    assert_same_function(module(*x, mask, need_weights=need_weights)[0], expected[0], module, plain, x)
    if need_weights:
        assert_close(module(*x, mask)[1], expected[1], **CLOSE)
    assert isinstance(module, cl.MultiHeadAttention)


def test_self_attention_is_the_plain_one_with_stacked_weights():
    module, plain, x = attention(), cl.MultiHeadAttention(D_MODEL, HEADS).double(), leaf(3, 7, D_MODEL)
    plain.load_state_dict(module.state_dict())
    assert_same_function(module(x, x, x)[0], plain(x, x, x)[0], module, plain, (x,))
    with torch.no_grad():
        assert_close(module(x, x, x), plain(x, x, x), **CLOSE)


@pytest.mark.parametrize("bias", [True, False])
def test_the_count_of_parameters_is_that_of_the_module(bias):
    module = MultiHeadAttention(D_MODEL, HEADS, bias=bias)
    assert multi_head_parameter_count(D_MODEL, HEADS, bias) == sum(p.numel() for p in module.parameters())
    names = {f"{name}_proj.{kind}" for name in ("q", "k", "v", "out") for kind in (("weight", "bias")[: 1 + bias])}
    assert {name for name, _ in module.named_parameters()} == names


# --- against PyTorch --------------------------------------------------------------------------------------------------


def nn_attention(ours, **options):
    theirs = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True, bias=ours.q_proj.bias is not None, **options)
    theirs = theirs.double()
    theirs.load_state_dict(torch_names(ours.state_dict()))
    return theirs


def their_mask(mask):
    """(B · H, L_q, L_k) with True = may not attend."""
    return None if mask is None else ~mask.expand(3, HEADS, 5, 7).reshape(3 * HEADS, 5, 7)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("need_weights", [True, False])
def test_without_biases_it_is_nn_multihead_attention_without(mask, need_weights):
    ours, mask, x = attention(bias=False), MASKS[mask](), inputs()
    theirs = nn_attention(ours)
    output, weights = ours(*x, mask, need_weights=need_weights)
    expected, expected_weights = theirs(*x, attn_mask=their_mask(mask), average_attn_weights=False)
    assert_close(output, expected, **CLOSE)
    if need_weights:
        assert_close(weights, expected_weights, **CLOSE)

    grad = torch.randn_like(output)
    our_gradients = torch.autograd.grad(output, x, grad, retain_graph=True)
    assert_close(our_gradients, torch.autograd.grad(expected, x, grad, retain_graph=True), **CLOSE)
    output.backward(grad)
    expected.backward(grad)
    assert_close(torch_names(gradients(ours)), gradients(theirs), **CLOSE)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_from_torch_copies_weights_dropout_dtype_and_mode(bias, training, dtype):
    theirs = randomise(nn.MultiheadAttention(D_MODEL, HEADS, dropout=0.25, bias=bias, batch_first=True)).to(dtype)
    ours = MultiHeadAttention.from_torch(theirs.train(training))
    assert_close(torch_names(ours.state_dict()), dict(theirs.state_dict()), rtol=0, atol=0)
    assert (ours.dropout, ours.num_heads, ours.training) == (0.25, HEADS, training)
    x = inputs(dtype)
    assert_close(ours.eval()(*x)[0], theirs.eval()(*x)[0])
    ours.q_proj.weight.data.zero_()
    assert theirs.in_proj_weight.abs().min() > 0  # a copy


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_to_torch_copies_weights_dropout_dtype_and_mode(bias, training, dtype):
    ours = randomise(MultiHeadAttention(D_MODEL, HEADS, dropout=0.25, bias=bias)).to(dtype)
    theirs = ours.train(training).to_torch()
    assert_close(dict(theirs.state_dict()), torch_names(ours.state_dict()), rtol=0, atol=0)
    assert (theirs.dropout, theirs.num_heads, theirs.training) == (0.25, HEADS, training)
    x = inputs(dtype)
    assert_close(theirs.eval()(*x)[0], ours.eval()(*x)[0])
    theirs.in_proj_weight.data.zero_()
    assert ours.q_proj.weight.abs().min() > 0  # a copy


@pytest.mark.parametrize("bias", [True, False])
def test_there_and_back_again_is_the_same_module(bias):
    ours = randomise(MultiHeadAttention(D_MODEL, HEADS, bias=bias))
    back = MultiHeadAttention.from_torch(ours.to_torch())
    assert_close(dict(back.state_dict()), dict(ours.state_dict()), rtol=0, atol=0)


# --- the two paths ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [*MASKS, "nothing allowed"])
@pytest.mark.parametrize("position", [None, RotaryPosition(), AlibiPosition()], ids=["no position", "rotary", "alibi"])
def test_with_and_without_weights_agree_in_values_and_gradients(mask, position):
    module = randomise(MultiHeadAttention(20, 2, position=position)).double()  # rotary needs an even width a head
    mask = torch.zeros(5, 7, dtype=torch.bool) if mask == "nothing allowed" else MASKS[mask]()
    x, grad = (leaf(3, 5, 20), leaf(3, 7, 20), leaf(3, 7, 20)), torch.randn(3, 5, 20, dtype=torch.float64)
    results = []
    for need_weights in (True, False):
        module.zero_grad()
        output, _ = module(*x, mask, need_weights=need_weights)
        of_inputs = torch.autograd.grad(output, x, grad, retain_graph=True)
        output.backward(grad, inputs=list(module.parameters()))
        results.append((output.detach(), of_inputs, gradients(module)))
    assert_close(results[0], results[1], **CLOSE)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("position", [None, RotaryPosition(), AlibiPosition()], ids=["no position", "rotary", "alibi"])
def test_a_fully_masked_query_brings_home_the_output_bias_only(dtype, need_weights, position):
    module = randomise(MultiHeadAttention(20, 2, position=position)).to(dtype)
    x = leaf(3, 5, 20, dtype=dtype), leaf(3, 7, 20, dtype=dtype), leaf(3, 7, 20, dtype=dtype)
    mask = torch.rand(5, 7) < 0.6
    mask[2], mask[3] = False, True
    output, weights = module(*x, mask, need_weights=need_weights)
    assert output.dtype == dtype
    assert_close(output[:, 2], module.out_proj.bias.expand(3, 20), rtol=0, atol=0)
    assert weights is None or (weights[:, :, 2] == 0.0).all()
    output.sum().backward()
    assert all(tensor.grad.isfinite().all() for tensor in (*x, *module.parameters()))


# --- properties -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("position", [RotaryPosition(), AlibiPosition()])
def test_self_attention_with_positions_is_not_permutation_equivariant(position):
    module = randomise(MultiHeadAttention(20, 2, position=position)).double()
    x = torch.randn(3, 7, 20, dtype=torch.float64)
    turned = x.flip(1)[:, [*range(1, 7), 0]]  # no mirror image: distances change
    order = torch.arange(7).flip(0)[[*range(1, 7), 0]]
    assert not torch.allclose(module(turned, turned, turned)[0], module(x, x, x)[0][:, order], atol=1e-3)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("position", [None, RotaryPosition(), AlibiPosition()], ids=["no position", "rotary", "alibi"])
def test_future_tokens_do_not_change_the_past(need_weights, position):
    module = randomise(MultiHeadAttention(20, 2, position=position)).double()
    x = torch.randn(3, 7, 20, dtype=torch.float64)
    other = torch.cat((x[:, :4], torch.randn(3, 3, 20, dtype=torch.float64)), 1)
    before, after = (module(y, y, y, causal_mask(7), need_weights=need_weights)[0] for y in (x, other))
    assert_close(before[:, :4], after[:, :4], **CLOSE)
    assert (before[:, 4:] - after[:, 4:]).abs().amax(-1).min() > 1e-3


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("position", [None, RotaryPosition(), AlibiPosition()], ids=["no position", "rotary", "alibi"])
def test_the_last_queries_alone_get_what_they_get_among_all(need_weights, position):
    # Decoding with a cache: fewer queries than keys, and the last of both stand at the same place.
    module = randomise(MultiHeadAttention(20, 2, position=position)).double()
    x = torch.randn(3, 7, 20, dtype=torch.float64)
    together, _ = module(x, x, x, causal_mask(7), need_weights=need_weights)
    for last in (1, 2, 5):
        alone, _ = module(x[:, -last:], x, x, causal_mask(7)[-last:], need_weights=need_weights)
        assert_close(alone, together[:, -last:], **CLOSE)


@pytest.mark.parametrize("need_weights", [True, False])
def test_arguments_and_random_state_stay_as_they_are(need_weights):
    module, x, mask = attention(dropout=0.5).eval(), inputs(), torch.rand(3, 1, 5, 7) < 0.5
    with no_side_effects(*x, mask, *module.parameters()):
        module(*x, mask, need_weights=need_weights)


@pytest.mark.parametrize("need_weights", [True, False])
def test_dropout_acts_in_training_only(need_weights):
    module, x = attention(dropout=0.5), inputs()
    whole, _ = attention_without_dropout(module)(*x, need_weights=need_weights)
    assert_close(module.eval()(*x, need_weights=need_weights)[0], whole, **CLOSE)
    assert not torch.allclose(module.train()(*x, need_weights=need_weights)[0], whole)


def attention_without_dropout(module):
    twin = MultiHeadAttention(D_MODEL, HEADS).double()
    twin.load_state_dict(module.state_dict())
    return twin


def test_dropout_really_drops_weights():
    module, x = attention(dropout=0.5), inputs()
    _, weights = module(*x)
    kept = weights != 0.0
    assert 0.3 < kept.double().mean() < 0.7  # 210 draws: one standard deviation is 0.035
    assert_close(weights[kept], 2.0 * module.eval()(*x)[1][kept], **CLOSE)


def test_matrices_start_xavier_uniform_and_biases_at_zero():
    module = MultiHeadAttention(106, 2)
    for projection in (module.q_proj, module.k_proj, module.v_proj, module.out_proj):
        bound = math.sqrt(6.0 / (106 + 106))
        assert 0.95 * bound < projection.weight.abs().max() <= bound
        assert (projection.bias == 0.0).all()


def test_the_repr_shows_heads_dropout_and_position():
    text = repr(MultiHeadAttention(8, 2, dropout=0.25, position=RotaryPosition(base=500.0)))
    assert "num_heads=2, dropout=0.25, position=RotaryPosition(base=500.0)" in text


def test_anything_with_rotate_and_bias_is_a_position_code():
    class Favourite:
        """Every query likes the first key."""

        def rotate(self, query, key):
            return query, key

        def bias(self, query, key):
            return torch.tensor([1e3] + [0.0] * (key.shape[-2] - 1), dtype=query.dtype).expand(query.shape[-2], -1)

    assert isinstance(Favourite(), AttentionPosition)
    _, weights = attention(position=Favourite())(*inputs())
    assert_close(weights[..., 0], torch.ones(3, HEADS, 5).double(), **CLOSE)


# --- recording --------------------------------------------------------------------------------------------------------


class TwoAttentions(nn.Module):
    """Like a layer: attends twice on the fused path and keeps no weights."""

    def __init__(self):
        super().__init__()
        self.first = attention()
        self.inner = nn.ModuleList([attention()])

    def forward(self, query, key):
        query = self.first(query, key, key, need_weights=False)[0]
        return self.inner[0](query, key, key, need_weights=False)[0]


def test_every_map_of_a_model_on_the_fused_path_is_recorded():
    model, (query, key, _) = TwoAttentions(), inputs()
    expected, first = model(query, key), model.first(query, key, key)
    with record_attention(model) as maps:
        output = model(query, key)
    assert_close(output, expected, **CLOSE)
    assert list(maps) == ["first", "inner.0"]
    assert_close(maps["first"], first[1].detach(), **CLOSE)
    assert_close(maps["inner.0"], model.inner[0](first[0], key, key)[1].detach(), **CLOSE)
    assert not any(weights.requires_grad for weights in maps.values())


def test_the_latest_map_is_kept():
    module = attention()
    first, second = inputs(), inputs()
    with record_attention(module) as maps:
        module(*first), module(*second)
    assert_close(maps[""], module(*second)[1].detach(), **CLOSE)


def test_after_the_block_nothing_is_recorded():
    model, (query, key, _) = TwoAttentions(), inputs()
    with record_attention(model) as maps:
        model(query, key)
    before = dict(maps)
    model(key, query)
    assert all(maps[name] is before[name] for name in before)
    assert model.first(query, key, key, need_weights=False)[1] is None
    assert not model.first._forward_hooks
    assert not model.first._forward_pre_hooks


def test_hooks_go_even_when_the_block_fails():
    model = TwoAttentions()
    with pytest.raises(ZeroDivisionError), record_attention(model):
        1 / 0  # noqa: B018 -- an error in the block is what is tested
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_a_model_without_attention_has_nothing_to_record():
    with (
        pytest.raises(ValueError, match=r"at least one .*MultiHeadAttention, got Linear with none; .*from_torch"),
        record_attention(nn.Linear(2, 3)),
    ):
        pass


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dropout", [-0.1, 1.0, 1.5, math.nan])
def test_a_dropout_that_is_no_probability_is_refused(dropout):
    with pytest.raises(ValueError, match=r"dropout must be in \[0, 1\), got .*; pass a number"):
        MultiHeadAttention(D_MODEL, HEADS, dropout=dropout)


@pytest.mark.parametrize("shape", [(3, 5, 7), (3, 1, 5), (5, 6), (2, 3, 2, 5, 7)])
def test_a_mask_that_does_not_fit_the_scores_is_refused_on_the_fused_path(shape, unchecked):
    with pytest.raises(ValueError, match=r"mask must broadcast to \(.*\) = \(3, 2, 5, .*\), got .*\(B, 1, 1, L_k\)"):
        attention()(*inputs(), torch.ones(shape, dtype=torch.bool), need_weights=False)


@pytest.mark.parametrize("position", [RotaryPosition(), AlibiPosition()])
def test_positions_inside_attention_need_a_key_for_every_query(position):
    query, key = torch.randn(3, 7, 20), torch.randn(3, 5, 20)
    with pytest.raises(ValueError, match=r"a key for every query, got 7 queries and 5 keys; .*self-attention only"):
        MultiHeadAttention(20, 2, position=position)(query, key, key)


@pytest.mark.parametrize(
    "options", [{"kdim": 5}, {"vdim": 5}, {"add_bias_kv": True}, {"add_zero_attn": True}], ids=lambda o: next(iter(o))
)
def test_options_of_torch_without_a_counterpart_are_refused(options):
    with pytest.raises(ValueError, match=r"only an nn.MultiheadAttention with kdim = vdim = embed_dim, without add_"):
        MultiHeadAttention.from_torch(nn.MultiheadAttention(D_MODEL, HEADS, **options))


def test_a_position_code_has_no_place_in_torch():
    with pytest.raises(ValueError, match=r"no position code, got position=RotaryPosition"):
        MultiHeadAttention(20, 2, position=RotaryPosition()).to_torch()
