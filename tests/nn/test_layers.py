"""course_kit.nn.layers: what full layers have besides plain ones; test_transformer.py compares both with PyTorch."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from oracles import assert_same_function, leaf, no_side_effects, randomise, torch_names
from torch import nn
from torch.testing import assert_close

from course_kit.nn import AlibiPosition, DecoderLayer, EncoderLayer, FeedForward, RotaryPosition, record_attention
from course_lib.masking import causal_mask

SIZES = {"d_model": 22, "num_heads": 2, "d_ff": 13}  # two heads of 11 features

# Three sentences of five tokens (7 in the memory), True = real.
IS_TOKEN = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]]).bool()
IS_MEMORY = torch.tensor([[1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0]]).bool()


def layer(kind, **options):
    return randomise(kind(**SIZES, **options)).double()


def inputs_of(kind, x):
    return (x,) if kind is EncoderLayer else (x, x)


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
    module, x = layer(DecoderLayer), leaf(3, 5, 22)
    for memory, real in ((leaf(3, 7, 22), IS_MEMORY), (leaf(3, 5, 22), IS_TOKEN)):  # of one length, swapped ones fit
        with record_attention(module) as maps:
            module(x, memory, causal_mask(5), real[:, None, None, :])
        assert torch.equal(maps["self_attention"] > 0, causal_mask(5).expand(3, 2, 5, 5))
        assert torch.equal(maps["cross_attention"] > 0, real[:, None, None, :].expand(3, 2, 5, memory.shape[1]))


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
    module = kind(**SIZES, dropout=0.5, norm_first=norm_first)
    for name, parameter in module.named_parameters():
        parameter.data.fill_(float(name.endswith(("out_proj.bias", "linear2.bias"))))
    for i in range(1, sublayers + 1):
        setattr(module, f"norm{i}", NoNorm(22))  # or the sums could not be read off
    inputs = inputs_of(kind, torch.zeros(3, 5, 22))
    assert set(module(*inputs).flatten().tolist()) == {2.0 * kept for kept in range(sublayers + 1)}
    assert set(module.eval()(*inputs).flatten().tolist()) == {float(sublayers)}


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_attention_weights_are_dropped_while_training(kind):
    module, inputs = layer(kind, dropout=0.5), inputs_of(kind, leaf(3, 5, 22))
    for mode, some_dropped in ((True, True), (False, False)):
        with record_attention(module.train(mode)) as maps:
            module(*inputs)
        assert len(maps) == len(inputs)
        assert all((weights == 0.0).any() == some_dropped for weights in maps.values())
    with no_side_effects(*inputs, *module.parameters()):
        module(*inputs)


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_the_default_is_no_dropout(kind):
    module, inputs = layer(kind).train(), inputs_of(kind, leaf(3, 5, 22))
    assert_close(module(*inputs), module.eval()(*inputs), rtol=0, atol=0)


# --- activation and eps -----------------------------------------------------------------------------------------------


def test_feed_forward_takes_any_activation():
    module, x = randomise(FeedForward(11, 13, activation=F.gelu)).double(), torch.randn(3, 11, dtype=torch.float64)
    assert_close(module(x), module.linear2(F.gelu(module.linear1(x))), rtol=0, atol=0)


def test_the_encoder_layer_hands_on_activation_and_eps():
    module, x = layer(EncoderLayer, activation=F.gelu, norm_eps=0.5), leaf(3, 5, 22)
    options = {"dropout": 0.0, "batch_first": True, "activation": F.gelu, "layer_norm_eps": 0.5}
    theirs = nn.TransformerEncoderLayer(22, 2, 13, **options).double()
    theirs.load_state_dict(torch_names(module.state_dict()))
    assert_same_function(module(x), theirs(x), module, theirs, (x,), torch_names)
