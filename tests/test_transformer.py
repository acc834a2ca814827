"""course_lib.transformer: layer norm, feed-forward, encoder layer and decoder layer."""

from __future__ import annotations

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from oracles import CLOSE, DTYPES, gradients, leaf, no_side_effects, randomise, torch_names
from torch import nn
from torch.testing import assert_close

from course_kit.nn import AlibiPosition, DecoderLayer, EncoderLayer, FeedForward, RotaryPosition, record_attention
from course_lib.masking import causal_mask
from course_lib.transformer import layer_norm, transformer_parameter_count

LEADING = [(), (3,), (3, 2)]
SIZES = {"d_model": 22, "num_heads": 2, "d_ff": 13}  # two heads of 11 features
NORM_FIRST = pytest.mark.parametrize("norm_first", [False, True], ids=["post-norm", "pre-norm"])

# Three sentences of five tokens (7 in the memory), True = real.
IS_TOKEN = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]]).bool()
IS_MEMORY = torch.tensor([[1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0]]).bool()


def layer(kind, **options):
    return randomise(kind(**SIZES, **options)).double()


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_layer_norm_by_hand():
    # (1, 3): mean 2, variance ((-1)² + 1²) / 2 = 1. With eps = 3 inside the root: √(1 + 3) = 2, so (-1/2, 1/2).
    # Gain (2, 3) and bias (10, 20): 2 · -0.5 + 10 = 9 and 3 · 0.5 + 20 = 21.5.
    normed = layer_norm(torch.tensor([1.0, 3.0]), torch.tensor([2.0, 3.0]), torch.tensor([10.0, 20.0]), eps=3.0)
    assert normed.tolist() == [9.0, 21.5]


def test_feed_forward_by_hand():
    # x = (1, 2): hidden (1 - 2, 1 + 2, 0 + 5) = (-1, 3, 5), after ReLU (0, 3, 5).
    # Output (3 + 5, 2 · 5) + (1, -1) = (9, 9); what ReLU cut away would have counted seven times.
    module = FeedForward(2, 3)
    module.linear1.weight.data = torch.tensor([[1.0, -1.0], [1.0, 1.0], [0.0, 0.0]])
    module.linear1.bias.data = torch.tensor([0.0, 0.0, 5.0])
    module.linear2.weight.data = torch.tensor([[7.0, 1.0, 1.0], [7.0, 0.0, 2.0]])
    module.linear2.bias.data = torch.tensor([1.0, -1.0])
    assert module(torch.tensor([1.0, 2.0])).tolist() == [9.0, 9.0]


def constant_sublayers(module, *attention_biases, feed_forward_bias):
    """Make each sub-layer answer with its bias alone, whatever it is asked."""
    for parameter in (p for name, p in module.named_parameters() if "norm" not in name):
        parameter.data.zero_()
    attentions = [module.self_attention, *([module.cross_attention] if isinstance(module, DecoderLayer) else [])]
    for attention, bias in zip(attentions, attention_biases, strict=True):
        attention.out_proj.bias.data = torch.tensor(bias)
    module.feed_forward.linear2.bias.data = torch.tensor(feed_forward_bias)
    return module


@pytest.mark.parametrize(
    ("norm_first", "expected"),
    [
        # Post-norm: norm((0, 0) + (0, 2)) = (-1, 1), norm((-1, 1) + (0, -4)) = norm((-1, -3)) = (1, -1).
        (False, [1.0, -1.0]),
        # Pre-norm: the sums are left alone, (0, 0) + (0, 2) + (0, -4).
        (True, [0.0, -2.0]),
    ],
)
def test_encoder_layer_by_hand(norm_first, expected):
    module = constant_sublayers(EncoderLayer(2, 1, 3, norm_first=norm_first), [0.0, 2.0], feed_forward_bias=[0.0, -4.0])
    assert_close(module(torch.zeros(1, 1, 2)), torch.tensor([[expected]]), rtol=0, atol=1e-5)  # eps = 1e-5 in the norm


@pytest.mark.parametrize(
    ("norm_first", "expected"),
    [
        # Post-norm: norm((0, 2)) = (-1, 1); norm((-1, 1) + (5, 0)) = norm((4, 1)) = (1, -1);
        # norm((1, -1) + (0, 6)) = norm((1, 5)) = (-1, 1).
        (False, [-1.0, 1.0]),
        # Pre-norm: (0, 2) + (5, 0) + (0, 6).
        (True, [5.0, 8.0]),
    ],
)
def test_decoder_layer_by_hand(norm_first, expected):
    module = DecoderLayer(2, 1, 3, norm_first=norm_first)
    constant_sublayers(module, [0.0, 2.0], [5.0, 0.0], feed_forward_bias=[0.0, 6.0])
    output = module(torch.zeros(1, 1, 2), torch.zeros(1, 1, 2))
    assert_close(output, torch.tensor([[expected]]), rtol=0, atol=1.1e-5)  # eps = 1e-5 in the norm


def test_parameter_count_by_hand():
    # d = 2, d_ff = 3, vocabulary 5, one layer. Attention 4·4 + 4·2 = 24, feed-forward 6 + 3 + 6 + 2 = 17, norm 4.
    # Encoder 24 + 17 + 8 = 49, decoder 48 + 17 + 12 = 77, embedding 10.
    assert transformer_parameter_count(vocab_size=5, d_model=2, num_layers=1, d_ff=3) == 49 + 77 + 10


def test_the_base_model_of_the_paper_has_63_million_parameters():
    assert transformer_parameter_count(vocab_size=37_000, d_model=512, num_layers=6, d_ff=2048) == 63_082_496


# --- layer norm and feed-forward --------------------------------------------------------------------------------------


@pytest.mark.parametrize("leading", LEADING)
@pytest.mark.parametrize("options", [{}, {"eps": 0.5}])
def test_layer_norm_and_its_gradients_are_those_of_torch(leading, options):
    inputs = leaf(*leading, 5, 11), leaf(11), leaf(11)
    ours, theirs = layer_norm(*inputs, **options), F.layer_norm(inputs[0], (11,), *inputs[1:], **options)
    grad = torch.randn_like(theirs)
    assert_close(ours, theirs, **CLOSE)
    assert_close(torch.autograd.grad(ours, inputs, grad), torch.autograd.grad(theirs, inputs, grad), **CLOSE)


def test_layer_norm_is_that_of_nn_layer_norm_even_where_eps_matters():
    x = 1e-3 * torch.randn(5, 11, dtype=torch.float64)  # variance 1e-6, a tenth of eps
    norm = randomise(nn.LayerNorm(11)).double()
    assert_close(layer_norm(x, norm.weight, norm.bias), norm(x), **CLOSE)


def test_a_constant_vector_has_no_variance_and_becomes_the_bias():
    bias = torch.randn(11)
    assert_close(layer_norm(torch.full((11,), 3.0), torch.ones(11), bias), bias)


@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_norm_keeps_dtype_arguments_and_random_state(dtype):
    x, gain, bias = (torch.randn(shape).to(dtype) for shape in ((5, 11), 11, 11))
    with no_side_effects(x, gain, bias):
        normed = layer_norm(x, gain, bias)
    assert normed.dtype == dtype
    # Mean, difference, square, mean, root, two products, sum: eight roundings of numbers up to about 4.
    exact = F.layer_norm(x.double(), (11,), gain.double(), bias.double())
    assert_close(normed.double(), exact, rtol=0, atol=16 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("leading", LEADING)
def test_feed_forward_is_two_convolutions_of_width_one(leading):
    module, x = randomise(FeedForward(11, 13)).double(), torch.randn(*leading, 5, 11, dtype=torch.float64)
    first, second = module.linear1, module.linear2
    hidden = F.conv1d(x.reshape(-1, 5, 11).transpose(1, 2), first.weight[:, :, None], first.bias).clamp(min=0.0)
    expected = F.conv1d(hidden, second.weight[:, :, None], second.bias).transpose(1, 2).reshape(*leading, 5, 11)
    with no_side_effects(x):
        assert_close(module(x), expected, **CLOSE)


def test_positions_do_not_see_each_other_in_feed_forward():
    module, x = randomise(FeedForward(11, 13)), torch.randn(3, 5, 11)
    assert_close(module(x)[:, 2], module(x[:, 2]))


# --- layers against PyTorch -------------------------------------------------------------------------------------------


def assert_same_layer(ours, theirs, output, expected, inputs):
    grad = torch.randn_like(expected)
    assert_close(output, expected, **CLOSE)
    of_inputs = [torch.autograd.grad(result, inputs, grad, retain_graph=True) for result in (output, expected)]
    assert_close(*of_inputs, **CLOSE)
    output.backward(grad, inputs=list(ours.parameters()))
    expected.backward(grad, inputs=list(theirs.parameters()))
    assert_close(torch_names(gradients(ours)), gradients(theirs), **CLOSE)


def torch_layer(kind, ours, norm_first):
    # In train mode: in eval mode PyTorch takes a fast path without gradients.
    theirs = kind(22, 2, 13, dropout=0.0, batch_first=True, norm_first=norm_first).double()
    theirs.load_state_dict(torch_names(ours.state_dict()))
    return theirs


@NORM_FIRST
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_encoder_layer_is_that_of_torch(norm_first, causal, padded):
    ours, x = layer(EncoderLayer, norm_first=norm_first), leaf(3, 5, 22)
    theirs = torch_layer(nn.TransformerEncoderLayer, ours, norm_first)
    mask = IS_TOKEN[:, None, None, :] if padded else torch.ones(1, 1, 1, 5).bool()
    mask = mask & causal_mask(5) if causal else mask
    expected = theirs(
        x, src_mask=~causal_mask(5) if causal else None, src_key_padding_mask=~IS_TOKEN if padded else None
    )
    assert_same_layer(ours, theirs, ours(x, mask), expected, (x,))


@NORM_FIRST
@pytest.mark.parametrize("masked", [False, True])
def test_decoder_layer_is_that_of_torch(norm_first, masked):
    ours, x, memory = layer(DecoderLayer, norm_first=norm_first), leaf(3, 5, 22), leaf(3, 7, 22)
    theirs = torch_layer(nn.TransformerDecoderLayer, ours, norm_first)
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
    assert_same_layer(ours, theirs, output, expected, (x, memory))


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_post_norm_is_the_default_as_in_the_paper(kind):
    torch.manual_seed(0)
    default = layer(kind)
    torch.manual_seed(0)
    post = layer(kind, norm_first=False)
    x = torch.randn(3, 5, 22, dtype=torch.float64)
    inputs = (x,) if kind is EncoderLayer else (x, x)
    assert_close(default(*inputs), post(*inputs), rtol=0, atol=0)


# --- properties -------------------------------------------------------------------------------------------------------


@NORM_FIRST
def test_an_encoder_layer_is_permutation_equivariant(norm_first):
    module, x, order = layer(EncoderLayer, norm_first=norm_first), leaf(3, 5, 22), torch.randperm(5)
    assert_close(module(x[:, order]), module(x)[:, order], **CLOSE)


@pytest.mark.parametrize("position", [RotaryPosition, AlibiPosition])
@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_a_position_code_reaches_self_attention_only(kind, position):
    module = kind(20, 2, 13, position=position())
    assert isinstance(module.self_attention.position, position)
    if kind is DecoderLayer:
        assert module.cross_attention.position is None
        module(torch.randn(3, 7, 20), torch.randn(3, 5, 20))  # more target positions than memory: no distances there


@NORM_FIRST
def test_future_tokens_do_not_change_the_past(norm_first):
    module, memory = layer(DecoderLayer, norm_first=norm_first), leaf(3, 7, 22)
    x = torch.randn(3, 5, 22, dtype=torch.float64)
    other = torch.cat((x[:, :3], torch.randn(3, 2, 22, dtype=torch.float64)), 1)
    before, after = module(x, memory, causal_mask(5)), module(other, memory, causal_mask(5))
    assert_close(before[:, :3], after[:, :3], **CLOSE)
    assert (before[:, 3:] - after[:, 3:]).abs().amax(-1).min() > 1e-3


@NORM_FIRST
def test_padded_positions_of_source_and_memory_change_nothing_real(norm_first):
    x, memory = leaf(3, 5, 22), leaf(3, 7, 22)
    other = torch.where(IS_TOKEN[..., None], x, torch.randn_like(x))
    other_memory = torch.where(IS_MEMORY[..., None], memory, torch.randn_like(memory))
    mask, memory_mask = IS_TOKEN[:, None, None, :], IS_MEMORY[:, None, None, :]
    encoder = layer(EncoderLayer, norm_first=norm_first)
    assert_close(encoder(x, mask)[IS_TOKEN], encoder(other, mask)[IS_TOKEN], **CLOSE)
    decoder = layer(DecoderLayer, norm_first=norm_first)
    outputs = decoder(x, memory, mask, memory_mask), decoder(other, other_memory, mask, memory_mask)
    assert_close(outputs[0][IS_TOKEN], outputs[1][IS_TOKEN], **CLOSE)


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


@NORM_FIRST
@pytest.mark.parametrize("dtype", DTYPES)
def test_layers_keep_the_dtype_and_have_finite_gradients_where_nothing_is_allowed(norm_first, dtype):
    x, memory = leaf(3, 5, 22, dtype=dtype), leaf(3, 7, 22, dtype=dtype)
    nothing = torch.zeros(3, 1, 1, 1, dtype=torch.bool)
    for module, inputs in (
        (EncoderLayer(**SIZES, norm_first=norm_first), (x, nothing)),
        (DecoderLayer(**SIZES, norm_first=norm_first), (x, memory, nothing, nothing)),
    ):
        output = module.to(dtype)(*inputs)
        assert output.dtype == dtype
        output.square().sum().backward()
        assert x.grad.isfinite().all()
        assert all(parameter.grad.isfinite().all() for parameter in module.parameters())


@NORM_FIRST
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_lower_precision_is_near_the_float64_result(norm_first, dtype):
    module = DecoderLayer(**SIZES, norm_first=norm_first).to(dtype)
    x, memory = torch.randn(3, 5, 22).to(dtype), torch.randn(3, 7, 22).to(dtype)
    exact = copy.deepcopy(module).double()(x.double(), memory.double(), causal_mask(5))
    # About twenty roundings in a row, each eps / 2 of numbers up to about 4, of random sign: √20 · 2 eps, with room
    # for the largest of 330 entries (three standard deviations).
    tolerance = 3 * math.sqrt(20) * 2 * torch.finfo(dtype).eps
    assert_close(module(x, memory, causal_mask(5)).double(), exact, rtol=0, atol=tolerance)


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_arguments_and_random_state_stay_as_they_are(kind):
    module, x = layer(kind, dropout=0.5).eval(), torch.randn(3, 5, 22, dtype=torch.float64)
    inputs = (x, causal_mask(5)) if kind is EncoderLayer else (x, x.clone(), causal_mask(5), causal_mask(5))
    with no_side_effects(*inputs, *module.parameters()):
        module(*inputs)


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_state_dict_and_deepcopy_carry_a_layer_over(kind):
    module, x = layer(kind), leaf(3, 5, 22)
    inputs = (x,) if kind is EncoderLayer else (x, x)
    loaded = kind(**SIZES).double()
    loaded.load_state_dict(module.state_dict())
    for twin in (loaded, copy.deepcopy(module)):
        assert_close(twin(*inputs), module(*inputs), rtol=0, atol=0)


def test_every_parameter_counted_is_there_and_learns():
    encoder, decoder = layer(EncoderLayer), layer(DecoderLayer)
    count = sum(parameter.numel() for module in (encoder, decoder) for parameter in module.parameters())
    assert transformer_parameter_count(17, 22, 1, 13) == 17 * 22 + count
    decoder(leaf(3, 5, 22), encoder(leaf(3, 7, 22))).square().sum().backward()
    assert all(p.grad.abs().max() > 0 for module in (encoder, decoder) for p in module.parameters())


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


@NORM_FIRST
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


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_heads_that_do_not_divide_are_refused(kind):
    with pytest.raises(ValueError, match=r"must divide d_model, got num_heads = 3 for d_model = 22; each head"):
        kind(22, 3, 13)


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer, FeedForward])
@pytest.mark.parametrize("dropout", [-0.1, 1.5])
def test_a_dropout_that_is_no_probability_is_refused(kind, dropout):
    sizes = (11, 13) if kind is FeedForward else (22, 2, 13)
    with pytest.raises(ValueError, match=r"dropout .*probability"):
        kind(*sizes, dropout=dropout)


def test_a_float_mask_is_refused(unchecked):
    x = torch.randn(3, 5, 22)
    with pytest.raises(TypeError, match="mask must be a bool tensor"):
        EncoderLayer(**SIZES)(x, torch.ones(5, 5))
    with pytest.raises(TypeError, match="mask must be a bool tensor"):
        DecoderLayer(**SIZES)(x, x, causal_mask(5), torch.ones(5, 5))


def test_a_memory_mask_of_the_wrong_length_is_refused():
    x, memory = torch.randn(3, 5, 22), torch.randn(3, 7, 22)
    with pytest.raises(ValueError, match=r"broadcast to the scores .*\(3, 2, 5, 7\), got \(5, 5\)"):
        DecoderLayer(**SIZES)(x, memory, None, causal_mask(5))
