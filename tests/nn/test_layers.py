"""course_kit.nn.layers: what the full layers have besides the plain ones, and that they equal them without."""

from __future__ import annotations

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from oracles import CLOSE, DTYPES, assert_same_function, leaf, no_side_effects, randomise, torch_names
from torch import nn
from torch.testing import assert_close

import course_lib as cl
from course_kit.nn import AlibiPosition, DecoderLayer, EncoderLayer, FeedForward, RotaryPosition, record_attention
from course_lib.masking import causal_mask

SIZES = {"d_model": 22, "num_heads": 2, "d_ff": 13}  # two heads of 11 features

# Three sentences of five tokens (7 in the memory), True = real.
IS_TOKEN = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]]).bool()
IS_MEMORY = torch.tensor([[1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0]]).bool()


def layer(kind, **options):
    return randomise(kind(**SIZES, **options)).double()


def constant_sublayers(module, *attention_biases, feed_forward_bias):
    """Make each sub-layer answer with its bias alone, whatever it is asked."""
    for parameter in (p for name, p in module.named_parameters() if "norm" not in name):
        parameter.data.zero_()
    attentions = [module.self_attention, *([module.cross_attention] if isinstance(module, DecoderLayer) else [])]
    for attention, bias in zip(attentions, attention_biases, strict=True):
        attention.out_proj.bias.data = torch.tensor(bias)
    module.feed_forward.linear2.bias.data = torch.tensor(feed_forward_bias)
    return module


# --- against the plain ones -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leading", [(), (3,), (3, 2)])
def test_feed_forward_without_options_is_the_plain_one(leading):
    module, plain, x = randomise(FeedForward(11, 13)).double(), cl.FeedForward(11, 13).double(), leaf(*leading, 5, 11)
    plain.load_state_dict(module.state_dict())
    assert_same_function(module(x), plain(x), module, plain, (x,))


@pytest.mark.parametrize("masked", [False, True])
def test_an_encoder_layer_without_options_is_the_plain_one(masked):
    module, plain, x = layer(EncoderLayer), cl.EncoderLayer(**SIZES).double(), leaf(3, 5, 22)
    plain.load_state_dict(module.state_dict())
    mask = IS_TOKEN[:, None, None, :] if masked else None
    assert_same_function(module(x, mask), plain(x, mask), module, plain, (x,))
    assert isinstance(module, cl.EncoderLayer)


@pytest.mark.parametrize("masked", [False, True])
def test_a_decoder_layer_without_options_is_the_plain_one(masked):
    module, plain = layer(DecoderLayer), cl.DecoderLayer(**SIZES).double()
    plain.load_state_dict(module.state_dict())
    x = leaf(3, 5, 22), leaf(3, 7, 22)
    masks = (IS_TOKEN[:, None, None, :] & causal_mask(5), IS_MEMORY[:, None, None, :]) if masked else ()
    assert_same_function(module(*x, *masks), plain(*x, *masks), module, plain, x)
    assert isinstance(module, cl.DecoderLayer)


# --- pre-norm ---------------------------------------------------------------------------------------------------------


def test_pre_norm_encoder_layer_by_hand():
    # The sums are left alone, (0, 0) + (0, 2) + (0, -4).
    module = constant_sublayers(EncoderLayer(2, 1, 3, norm_first=True), [0.0, 2.0], feed_forward_bias=[0.0, -4.0])
    assert module(torch.zeros(1, 1, 2)).tolist() == [[[0.0, -2.0]]]


def test_pre_norm_decoder_layer_by_hand():
    # (0, 2) + (5, 0) + (0, 6).
    module = DecoderLayer(2, 1, 3, norm_first=True)
    constant_sublayers(module, [0.0, 2.0], [5.0, 0.0], feed_forward_bias=[0.0, 6.0])
    assert module(torch.zeros(1, 1, 2), torch.zeros(1, 1, 2)).tolist() == [[[5.0, 8.0]]]


def torch_layer(kind, ours):
    # In train mode: in eval mode PyTorch takes a fast path without gradients.
    theirs = kind(22, 2, 13, dropout=0.0, batch_first=True, norm_first=True).double()
    theirs.load_state_dict(torch_names(ours.state_dict()))
    return theirs


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_pre_norm_encoder_layer_is_that_of_torch(causal, padded):
    ours, x = layer(EncoderLayer, norm_first=True), leaf(3, 5, 22)
    theirs = torch_layer(nn.TransformerEncoderLayer, ours)
    mask = IS_TOKEN[:, None, None, :] if padded else torch.ones(1, 1, 1, 5).bool()
    mask = mask & causal_mask(5) if causal else mask
    expected = theirs(
        x, src_mask=~causal_mask(5) if causal else None, src_key_padding_mask=~IS_TOKEN if padded else None
    )
    assert_same_function(ours(x, mask), expected, ours, theirs, (x,), torch_names)


@pytest.mark.parametrize("masked", [False, True])
def test_pre_norm_decoder_layer_is_that_of_torch(masked):
    ours, x, memory = layer(DecoderLayer, norm_first=True), leaf(3, 5, 22), leaf(3, 7, 22)
    theirs = torch_layer(nn.TransformerDecoderLayer, ours)
    if masked:
        output = ours(x, memory, IS_TOKEN[:, None, None, :] & causal_mask(5), IS_MEMORY[:, None, None, :])
        expected = theirs(
            x,
            memory,
            tgt_mask=~causal_mask(5),
            tgt_key_padding_mask=~IS_TOKEN,
            memory_key_padding_mask=~IS_MEMORY,
        )
    else:
        output, expected = ours(x, memory), theirs(x, memory)
    assert_same_function(output, expected, ours, theirs, (x, memory), torch_names)


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_post_norm_is_the_default_as_in_the_paper(kind):
    torch.manual_seed(0)
    default = layer(kind)
    torch.manual_seed(0)
    post = layer(kind, norm_first=False)
    x = torch.randn(3, 5, 22, dtype=torch.float64)
    inputs = (x,) if kind is EncoderLayer else (x, x)
    assert_close(default(*inputs), post(*inputs), rtol=0, atol=0)


def test_a_pre_norm_encoder_layer_is_permutation_equivariant():
    module, x, order = layer(EncoderLayer, norm_first=True), leaf(3, 5, 22), torch.randperm(5)
    assert_close(module(x[:, order]), module(x)[:, order], **CLOSE)


def test_with_pre_norm_future_tokens_do_not_change_the_past():
    module, memory = layer(DecoderLayer, norm_first=True), leaf(3, 7, 22)
    x = torch.randn(3, 5, 22, dtype=torch.float64)
    other = torch.cat((x[:, :3], torch.randn(3, 2, 22, dtype=torch.float64)), 1)
    before, after = module(x, memory, causal_mask(5)), module(other, memory, causal_mask(5))
    assert_close(before[:, :3], after[:, :3], **CLOSE)
    assert (before[:, 3:] - after[:, 3:]).abs().amax(-1).min() > 1e-3


def test_with_pre_norm_padded_positions_of_source_and_memory_change_nothing_real():
    x, memory = leaf(3, 5, 22), leaf(3, 7, 22)
    other = torch.where(IS_TOKEN[..., None], x, torch.randn_like(x))
    other_memory = torch.where(IS_MEMORY[..., None], memory, torch.randn_like(memory))
    mask, memory_mask = IS_TOKEN[:, None, None, :], IS_MEMORY[:, None, None, :]
    encoder = layer(EncoderLayer, norm_first=True)
    assert_close(encoder(x, mask)[IS_TOKEN], encoder(other, mask)[IS_TOKEN], **CLOSE)
    decoder = layer(DecoderLayer, norm_first=True)
    outputs = decoder(x, memory, mask, memory_mask), decoder(other, other_memory, mask, memory_mask)
    assert_close(outputs[0][IS_TOKEN], outputs[1][IS_TOKEN], **CLOSE)


@pytest.mark.parametrize("dtype", DTYPES)
def test_pre_norm_layers_keep_the_dtype_and_have_finite_gradients_where_nothing_is_allowed(dtype):
    x, memory = leaf(3, 5, 22, dtype=dtype), leaf(3, 7, 22, dtype=dtype)
    nothing = torch.zeros(3, 1, 1, 1, dtype=torch.bool)
    for module, inputs in (
        (EncoderLayer(**SIZES, norm_first=True), (x, nothing)),
        (DecoderLayer(**SIZES, norm_first=True), (x, memory, nothing, nothing)),
    ):
        output = module.to(dtype)(*inputs)
        assert output.dtype == dtype
        output.square().sum().backward()
        assert x.grad.isfinite().all()
        assert all(parameter.grad.isfinite().all() for parameter in module.parameters())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_with_pre_norm_lower_precision_is_near_the_float64_result(dtype):
    module = DecoderLayer(**SIZES, norm_first=True).to(dtype)
    x, memory = torch.randn(3, 5, 22).to(dtype), torch.randn(3, 7, 22).to(dtype)
    exact = copy.deepcopy(module).double()(x.double(), memory.double(), causal_mask(5))
    # About twenty roundings in a row, each eps / 2 of numbers up to about 4, of random sign: √20 · 2 eps, with room
    # for the largest of 330 entries (three standard deviations).
    tolerance = 3 * math.sqrt(20) * 2 * torch.finfo(dtype).eps
    assert_close(module(x, memory, causal_mask(5)).double(), exact, rtol=0, atol=tolerance)


# --- position codes, masks and copies ---------------------------------------------------------------------------------


@pytest.mark.parametrize("position", [RotaryPosition, AlibiPosition])
@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_a_position_code_reaches_self_attention_only(kind, position):
    module = kind(20, 2, 13, position=position())
    assert isinstance(module.self_attention.position, position)
    if kind is DecoderLayer:
        assert module.cross_attention.position is None
        module(torch.randn(3, 7, 20), torch.randn(3, 5, 20))  # more target positions than memory: no distances there


def test_each_mask_of_the_decoder_goes_to_its_own_attention():
    module, x, memory = layer(DecoderLayer), leaf(3, 5, 22), leaf(3, 7, 22)
    with record_attention(module) as maps:
        module(x, memory, causal_mask(5), IS_MEMORY[:, None, None, :])
    assert maps["self_attention"].shape == (3, 2, 5, 5)
    assert maps["cross_attention"].shape == (3, 2, 5, 7)
    assert torch.equal(maps["self_attention"] > 0, causal_mask(5).expand(3, 2, 5, 5))
    assert torch.equal(maps["cross_attention"] > 0, IS_MEMORY[:, None, None, :].expand(3, 2, 5, 7))


def test_masks_of_one_shape_are_not_confused_either():
    # Source and target of one length: swapped masks would fit.
    module, x, memory = layer(DecoderLayer), leaf(3, 5, 22), leaf(3, 5, 22)
    with record_attention(module) as maps:
        module(x, memory, self_mask=causal_mask(5), memory_mask=IS_TOKEN[:, None, None, :])
    assert torch.equal(maps["self_attention"] > 0, causal_mask(5).expand(3, 2, 5, 5))
    assert torch.equal(maps["cross_attention"] > 0, IS_TOKEN[:, None, None, :].expand(3, 2, 5, 5))


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_arguments_and_random_state_stay_as_they_are(kind):
    module, x = layer(kind, dropout=0.5).eval(), torch.randn(3, 5, 22, dtype=torch.float64)
    inputs = (x, causal_mask(5)) if kind is EncoderLayer else (x, x.clone(), causal_mask(5), causal_mask(5))
    with no_side_effects(*inputs, *module.parameters()):
        module(*inputs)


# --- dropout ----------------------------------------------------------------------------------------------------------


def test_feed_forward_drops_hidden_features_while_training():
    # All hidden features are 1 and each is handed through: dropped it is 0, kept it is 1 / (1 - 0.75) = 4.
    module = FeedForward(31, 31, dropout=0.75)
    module.linear1.weight.data.zero_(), module.linear1.bias.data.fill_(1.0)
    module.linear2.weight.data = torch.eye(31)
    module.linear2.bias.data.zero_()
    x = torch.randn(37, 31)
    assert set(module(x).flatten().tolist()) == {0.0, 4.0}
    assert set(module.eval()(x).flatten().tolist()) == {1.0}


class NoNorm(nn.LayerNorm):
    """In the place of a norm, but does nothing."""

    def forward(self, x):
        return x


@pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])
@pytest.mark.parametrize(("kind", "sublayers"), [(EncoderLayer, 2), (DecoderLayer, 3)])
def test_the_output_of_every_sublayer_is_dropped_while_training(kind, sublayers, norm_first):
    # Every sub-layer answers 1, so each adds 0 or 2 to a residual of 0; all sums of them must occur, and no others.
    ones = [1.0] * 22
    module = kind(**SIZES, dropout=0.5, norm_first=norm_first)
    constant_sublayers(module, *[ones] * (sublayers - 1), feed_forward_bias=ones)
    for i in range(1, sublayers + 1):
        setattr(module, f"norm{i}", NoNorm(22))  # or the sums could not be read off
    x = torch.zeros(3, 5, 22)
    inputs = (x,) if kind is EncoderLayer else (x, x)
    assert set(module(*inputs).flatten().tolist()) == {2.0 * kept for kept in range(sublayers + 1)}
    assert set(module.eval()(*inputs).flatten().tolist()) == {float(sublayers)}


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_attention_weights_are_dropped_while_training(kind):
    module, x = layer(kind, dropout=0.5), leaf(3, 5, 22)
    inputs = (x,) if kind is EncoderLayer else (x, x)
    for mode, some_dropped in ((True, True), (False, False)):
        with record_attention(module.train(mode)) as maps:
            module(*inputs)
        assert len(maps) == (1 if kind is EncoderLayer else 2)
        assert all((weights == 0.0).any() == some_dropped for weights in maps.values())


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_the_default_is_no_dropout(kind):
    module, x = layer(kind).train(), leaf(3, 5, 22)
    inputs = (x,) if kind is EncoderLayer else (x, x)
    assert_close(module(*inputs), module.eval()(*inputs), rtol=0, atol=0)


# --- activation and eps -----------------------------------------------------------------------------------------------


def test_feed_forward_takes_any_activation():
    module, x = randomise(FeedForward(11, 13, activation=F.gelu)).double(), torch.randn(3, 11, dtype=torch.float64)
    assert_close(module(x), module.linear2(F.gelu(module.linear1(x))), rtol=0, atol=0)


def test_the_encoder_layer_hands_on_activation_and_eps():
    module, x = layer(EncoderLayer, activation=F.gelu, norm_eps=0.5), leaf(3, 5, 22)
    theirs = nn.TransformerEncoderLayer(
        **{"d_model": 22, "nhead": 2, "dim_feedforward": 13, "dropout": 0.0, "batch_first": True},
        activation=F.gelu,
        layer_norm_eps=0.5,
    ).double()
    theirs.load_state_dict(torch_names(module.state_dict()))
    assert_same_function(module(x), theirs(x), module, theirs, (x,), torch_names)


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer, FeedForward])
@pytest.mark.parametrize("dropout", [-0.1, 1.5])
def test_a_dropout_that_is_no_probability_is_refused(kind, dropout):
    sizes = (11, 13) if kind is FeedForward else (22, 2, 13)
    with pytest.raises(ValueError, match=r"dropout must be in \[0, 1\), got .*; pass a number in that range"):
        kind(*sizes, dropout=dropout)
