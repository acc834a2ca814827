"""course_kit.nn.multi_head: what the full attention has besides the plain one, and that it equals it without."""

from __future__ import annotations

import math

import pytest
import torch
from oracles import (
    CLOSE,
    DTYPES,
    MASKS,
    assert_same,
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
from course_kit.nn import AlibiPosition, AttentionPosition, MultiHeadAttention, RotaryPosition, record_attention
from course_lib.masking import causal_mask
from course_lib.multi_head import multi_head_parameter_count

D_MODEL, HEADS = 22, 2  # two heads of 11 features
POSITIONS = pytest.mark.parametrize(
    "position", [None, RotaryPosition(), AlibiPosition()], ids=["none", "rotary", "alibi"]
)


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
    output, weights = module(*x, mask, need_weights=need_weights)
    expected, expected_weights = plain(*x, mask)
    assert_same_function(output, expected, module, plain, x)
    assert_close(weights, expected_weights if need_weights else None, **CLOSE)
    assert isinstance(module, cl.MultiHeadAttention)


def test_self_attention_is_the_plain_one_with_stacked_weights():
    module, plain, x = attention(), cl.MultiHeadAttention(D_MODEL, HEADS).double(), leaf(3, 7, D_MODEL)
    plain.load_state_dict(module.state_dict())
    assert_same_function(module(x, x, x)[0], plain(x, x, x)[0], module, plain, (x,))
    with torch.no_grad():
        assert_close(module(x, x, x), plain(x, x, x), **CLOSE)


def test_the_count_of_parameters_is_that_of_the_module():
    for bias in (True, False):
        module = MultiHeadAttention(D_MODEL, HEADS, bias=bias)
        assert multi_head_parameter_count(D_MODEL, HEADS, bias) == sum(p.numel() for p in module.parameters())


# --- against PyTorch --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("need_weights", [True, False])
def test_without_biases_it_is_nn_multihead_attention_without(mask, need_weights):
    ours, mask, x = attention(bias=False), MASKS[mask](), inputs()
    theirs = nn.MultiheadAttention(D_MODEL, HEADS, batch_first=True, bias=False).double()
    theirs.load_state_dict(torch_names(ours.state_dict()))
    output, weights = ours(*x, mask, need_weights=need_weights)
    expected, expected_weights = theirs(*x, attn_mask=torch_mask(mask), average_attn_weights=False)
    assert_close(weights, expected_weights if need_weights else None, **CLOSE)
    assert_same_function(output, expected, ours, theirs, x, torch_names)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_from_torch_and_to_torch_copy_weights_dropout_dtype_and_mode(bias, training, dtype):
    theirs = randomise(nn.MultiheadAttention(D_MODEL, HEADS, dropout=0.25, bias=bias, batch_first=True)).to(dtype)
    ours = MultiHeadAttention.from_torch(theirs.train(training))
    back = ours.to_torch()
    assert_close(torch_names(ours.state_dict()), dict(theirs.state_dict()), rtol=0, atol=0)
    assert_close(dict(back.state_dict()), dict(theirs.state_dict()), rtol=0, atol=0)
    x = inputs(dtype)
    for module in (ours, back):
        assert (module.dropout, module.num_heads, module.training) == (0.25, HEADS, training)
        assert_close(module.eval()(*x)[0], theirs.eval()(*x)[0])
    ours.q_proj.weight.data.zero_()
    assert theirs.in_proj_weight.abs().min() > 0  # these are copies
    assert back.in_proj_weight.abs().min() > 0


# --- the two paths ----------------------------------------------------------------------------------------------------


@POSITIONS
@pytest.mark.parametrize("mask", [*MASKS, "nothing allowed"])
def test_with_and_without_weights_agree_in_values_and_gradients(mask, position):
    module = randomise(MultiHeadAttention(20, 2, position=position)).double()  # rotary needs an even width a head
    mask = torch.zeros(5, 7, dtype=torch.bool) if mask == "nothing allowed" else MASKS[mask]()
    x = leaf(3, 5, 20), leaf(3, 7, 20), leaf(3, 7, 20)
    explicit, fused = (module(*x, mask, need_weights=need_weights)[0] for need_weights in (True, False))
    assert_same(explicit, fused, (*x, *module.parameters()))


@POSITIONS
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("need_weights", [True, False])
def test_a_fully_masked_query_brings_home_the_output_bias_only(dtype, need_weights, position):
    module = randomise(MultiHeadAttention(20, 2, position=position)).to(dtype)
    x = leaf(3, 5, 20, dtype=dtype), leaf(3, 7, 20, dtype=dtype), leaf(3, 7, 20, dtype=dtype)
    mask = torch.rand(5, 7) < 0.6
    mask[2], mask[3] = False, True
    with no_side_effects(*x, mask, *module.parameters()):
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


@POSITIONS
@pytest.mark.parametrize("need_weights", [True, False])
def test_the_last_queries_alone_get_what_they_get_among_all(need_weights, position):
    # Decoding with a cache: fewer queries than keys, and the last of both stand at the same place.
    module = randomise(MultiHeadAttention(20, 2, position=position)).double()
    x = torch.randn(3, 7, 20, dtype=torch.float64)
    together, _ = module(x, x, x, causal_mask(7), need_weights=need_weights)
    for last in (1, 2, 5):
        alone, _ = module(x[:, -last:], x, x, causal_mask(7)[-last:], need_weights=need_weights)
        assert_close(alone, together[:, -last:], **CLOSE)


@pytest.mark.parametrize("need_weights", [True, False])
def test_dropout_acts_in_training_only(need_weights):
    module, without, x = attention(dropout=0.5), MultiHeadAttention(D_MODEL, HEADS).double(), inputs()
    without.load_state_dict(module.state_dict())
    whole, _ = without(*x, need_weights=need_weights)
    with no_side_effects():
        assert_close(module.eval()(*x, need_weights=need_weights)[0], whole, **CLOSE)
    assert not torch.allclose(module.train()(*x, need_weights=need_weights)[0], whole)


def test_dropout_really_drops_weights():
    module, x = attention(dropout=0.5), inputs()
    _, weights = module(*x)
    kept = weights != 0.0
    assert 0.3 < kept.double().mean() < 0.7  # 210 draws: one standard deviation is 0.035
    assert_close(weights[kept], 2.0 * module.eval()(*x)[1][kept], **CLOSE)


def test_matrices_start_xavier_uniform_and_biases_at_zero():
    for projection in list(MultiHeadAttention(106, 2).children())[:4]:
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


def test_every_latest_map_of_a_model_on_the_fused_path_is_recorded():
    model, (query, key, _) = TwoAttentions(), inputs()
    expected, first = model(query, key), model.first(query, key, key)
    with record_attention(model) as maps:
        model(query + 1, key)
        output = model(query, key)
    assert_close(output, expected, **CLOSE)
    assert list(maps) == ["first", "inner.0"]
    assert_close(maps["first"], first[1].detach(), **CLOSE)
    assert_close(maps["inner.0"], model.inner[0](first[0], key, key)[1].detach(), **CLOSE)
    assert not any(weights.requires_grad for weights in maps.values())


def test_after_the_block_nothing_is_recorded():
    model, (query, key, _) = TwoAttentions(), inputs()
    with record_attention(model) as maps:
        model(query, key)
    before = dict(maps)
    model(key, query)
    assert all(maps[name] is before[name] for name in before)
    assert model.first(query, key, key, need_weights=False)[1] is None
    with pytest.raises(ZeroDivisionError), record_attention(model):
        1 / 0  # noqa: B018 -- hooks go even when the block fails
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_a_model_without_attention_has_nothing_to_record():
    with pytest.raises(ValueError, match=r"at least one .*MultiHeadAttention, got Linear with none; .*from_torch"):
        record_attention(nn.Linear(2, 3)).__enter__()


# --- errors -----------------------------------------------------------------------------------------------------------


def test_what_has_no_counterpart_in_torch_is_refused():
    for option in ({"kdim": 5}, {"vdim": 5}, {"add_bias_kv": True}, {"add_zero_attn": True}):
        with pytest.raises(
            ValueError, match=r"only an nn.MultiheadAttention with kdim = vdim = embed_dim, without add_"
        ):
            MultiHeadAttention.from_torch(nn.MultiheadAttention(D_MODEL, HEADS, **option))
    with pytest.raises(ValueError, match=r"no position code, got position=RotaryPosition"):
        MultiHeadAttention(20, 2, position=RotaryPosition()).to_torch()
