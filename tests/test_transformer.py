"""course_lib.transformer: layer norm, feed-forward, both layers, the whole model; layers of course_kit do the same."""

from __future__ import annotations

import copy
import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from oracles import (
    CLOSE,
    DTYPES,
    assert_same,
    assert_same_function,
    gradients,
    leaf,
    no_side_effects,
    randomise,
    torch_names,
)
from torch import nn
from torch.testing import assert_close

import course_lib as cl
from course_kit import nn as full
from course_lib.debugging import start_loss
from course_lib.masking import causal_mask
from course_lib.positional_encoding import sinusoidal_encoding
from course_lib.transformer import layer_norm, transformer_parameter_count

LEADING = [(), (3,), (3, 2)]
SIZES = {"d_model": 22, "num_heads": 2, "d_ff": 13}  # two heads of 11 features
NETWORKS = pytest.mark.parametrize("kind", [cl.FeedForward, full.FeedForward], ids=["plain", "full"])
ENCODERS = pytest.mark.parametrize(
    "kind",
    [cl.EncoderLayer, full.EncoderLayer, partial(full.EncoderLayer, norm_first=True)],
    ids=["plain", "full", "pre"],
)
DECODERS = pytest.mark.parametrize(
    "kind",
    [cl.DecoderLayer, full.DecoderLayer, partial(full.DecoderLayer, norm_first=True)],
    ids=["plain", "full", "pre"],
)
LAYERS = pytest.mark.parametrize("kind", ENCODERS.args[1] + DECODERS.args[1])

# Three sentences of five tokens (7 in the memory), True = real.
IS_TOKEN = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]]).bool()
IS_MEMORY = torch.tensor([[1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0]]).bool()

PAD = 1
SOURCE = torch.tensor([[2, 3, 4, 5, 6, 7, 8], [9, 8, 7, 6, 5, PAD, PAD], [10, 11, PAD, PAD, PAD, PAD, PAD]])
TARGET = torch.tensor([[0, 12, 13, 14, 15], [0, 16, 15, PAD, PAD], [0, 2, 3, 4, PAD]])


def layer(kind, **options):
    return randomise(kind(**SIZES, **options)).double()


def inputs_of(module, x, memory=None):
    """What a layer of this kind takes."""
    return (x, x if memory is None else memory) if isinstance(module, cl.DecoderLayer) else (x,)


def is_pre_norm(module):
    return isinstance(module, full.EncoderLayer | full.DecoderLayer) and module.residual.norm_first


def model(dtype=torch.float64):
    return randomise(cl.Transformer(17, d_model=20, num_heads=2, d_ff=13, num_layers=2, pad_id=PAD)).to(dtype)


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_layer_norm_by_hand():
    # (1, 3): mean 2, variance ((-1)² + 1²) / 2 = 1. With eps = 3 inside the root: √(1 + 3) = 2, so (-1/2, 1/2).
    # Gain (2, 3) and bias (10, 20): 2 · -0.5 + 10 = 9 and 3 · 0.5 + 20 = 21.5.
    normed = layer_norm(torch.tensor([1.0, 3.0]), torch.tensor([2.0, 3.0]), torch.tensor([10.0, 20.0]), eps=3.0)
    assert normed.tolist() == [9.0, 21.5]


@NETWORKS
def test_feed_forward_by_hand(kind):
    # x = (1, 2): hidden (1 - 2, 1 + 2, 0 + 5) = (-1, 3, 5), after ReLU (0, 3, 5).
    # Output (3 + 5, 2 · 5) + (1, -1) = (9, 9); what ReLU cut away would have counted seven times.
    module = kind(2, 3)
    module.linear1.weight.data = torch.tensor([[1.0, -1.0], [1.0, 1.0], [0.0, 0.0]])
    module.linear1.bias.data = torch.tensor([0.0, 0.0, 5.0])
    module.linear2.weight.data = torch.tensor([[7.0, 1.0, 1.0], [7.0, 0.0, 2.0]])
    module.linear2.bias.data = torch.tensor([1.0, -1.0])
    assert module(torch.tensor([1.0, 2.0])).tolist() == [9.0, 9.0]


def constant_sublayers(module, *attention_biases, feed_forward_bias):
    """Make each sub-layer answer with its bias alone, whatever it is asked."""
    for parameter in (p for name, p in module.named_parameters() if "norm" not in name):
        parameter.data.zero_()
    for name, bias in zip(("self_attention", "cross_attention"), attention_biases, strict=False):
        getattr(module, name).out_proj.bias.data = torch.tensor(bias)
    module.feed_forward.linear2.bias.data = torch.tensor(feed_forward_bias)
    return module


@ENCODERS
def test_encoder_layer_by_hand(kind):
    # norm((0, 0) + (0, 2)) = (-1, 1), norm((-1, 1) + (0, -4)) = norm((-1, -3)) = (1, -1).
    # Pre-norm leaves the sums alone: (0, 0) + (0, 2) + (0, -4).
    module = constant_sublayers(kind(2, 1, 3), [0.0, 2.0], feed_forward_bias=[0.0, -4.0])
    expected = [0.0, -2.0] if is_pre_norm(module) else [1.0, -1.0]
    assert_close(module(torch.zeros(1, 1, 2)), torch.tensor([[expected]]), rtol=0, atol=1e-5)  # eps = 1e-5


@DECODERS
def test_decoder_layer_by_hand(kind):
    # norm((0, 2)) = (-1, 1); norm((-1, 1) + (5, 0)) = norm((4, 1)) = (1, -1);
    # norm((1, -1) + (0, 6)) = norm((1, 5)) = (-1, 1). Pre-norm: (0, 2) + (5, 0) + (0, 6).
    module = constant_sublayers(kind(2, 1, 3), [0.0, 2.0], [5.0, 0.0], feed_forward_bias=[0.0, 6.0])
    expected = [5.0, 8.0] if is_pre_norm(module) else [-1.0, 1.0]
    output = module(torch.zeros(1, 1, 2), torch.zeros(1, 1, 2))
    assert_close(output, torch.tensor([[expected]]), rtol=0, atol=1.1e-5)  # eps = 1e-5 in the norm


def test_embedding_by_hand():
    # d_model = 4: the factor is √4 = 2. Token 1 is (1, 2, 3, 4), at position 0 the encoding is (0, 1, 0, 1).
    module = cl.Transformer(2, d_model=4, num_heads=1, d_ff=3, num_layers=1)
    module.embedding.weight.data = torch.tensor([[0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 3.0, 4.0]])
    assert_close(module.embed(torch.tensor([[1]])), torch.tensor([[[2.0, 5.0, 6.0, 9.0]]]))


def test_parameter_count_by_hand_and_of_the_papers_base_model():
    # d = 2, d_ff = 3, vocabulary 5, one layer. Attention 4·4 + 4·2 = 24, feed-forward 6 + 3 + 6 + 2 = 17, norm 4.
    # Encoder 24 + 17 + 8 = 49, decoder 48 + 17 + 12 = 77, embedding 10.
    assert transformer_parameter_count(vocab_size=5, d_model=2, num_layers=1, d_ff=3) == 49 + 77 + 10
    assert transformer_parameter_count(vocab_size=37_000, d_model=512, num_layers=6, d_ff=2048) == 63_082_496


# --- layer norm and feed-forward --------------------------------------------------------------------------------------


@pytest.mark.parametrize("leading", LEADING)
@pytest.mark.parametrize("options", [{}, {"eps": 0.5}])
def test_layer_norm_and_its_gradients_are_those_of_torch(leading, options):
    inputs = leaf(*leading, 5, 11), leaf(11), leaf(11)
    for size in (1.0, 1e-3):  # a variance of 1e-6 is a tenth of the default eps
        x = size * inputs[0]
        assert_same(layer_norm(x, *inputs[1:], **options), F.layer_norm(x, (11,), *inputs[1:], **options), inputs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_layer_norm_keeps_dtype_arguments_and_random_state(dtype):
    x, gain, bias = (torch.randn(shape).to(dtype) for shape in ((5, 11), 11, 11))
    with no_side_effects(x, gain, bias):
        normed = layer_norm(x, gain, bias)
    assert normed.dtype == dtype
    # Mean, difference, square, mean, root, two products, sum: eight roundings of numbers up to about 4.
    exact = F.layer_norm(x.double(), (11,), gain.double(), bias.double())
    assert_close(normed.double(), exact, rtol=0, atol=16 * torch.finfo(dtype).eps)


@NETWORKS
@pytest.mark.parametrize("leading", LEADING)
def test_feed_forward_is_the_same_network_at_every_position(leading, kind):
    module, x = randomise(kind(11, 13)), torch.randn(*leading, 5, 11)
    with no_side_effects(x):
        output = module(x)
    assert_close(output, torch.stack([module(x[..., i, :]) for i in range(5)], -2))


# --- layers against PyTorch -------------------------------------------------------------------------------------------


def torch_layer(kind, ours):
    # In train mode: in eval mode PyTorch takes a fast path without gradients.
    theirs = kind(22, 2, 13, dropout=0.0, batch_first=True, norm_first=is_pre_norm(ours)).double()
    theirs.load_state_dict(torch_names(ours.state_dict()))
    return theirs


@ENCODERS
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_encoder_layer_is_that_of_torch(kind, causal, padded):
    ours, x = layer(kind), leaf(3, 5, 22)
    theirs = torch_layer(nn.TransformerEncoderLayer, ours)
    mask = IS_TOKEN[:, None, None, :] if padded else torch.ones(1, 1, 1, 5).bool()
    mask = mask & causal_mask(5) if causal else mask
    expected = theirs(
        x, src_mask=~causal_mask(5) if causal else None, src_key_padding_mask=~IS_TOKEN if padded else None
    )
    assert_same_function(ours(x, mask), expected, ours, theirs, (x,), torch_names)


@DECODERS
@pytest.mark.parametrize("masked", [False, True])
def test_decoder_layer_is_that_of_torch(kind, masked):
    ours, x, memory = layer(kind), leaf(3, 5, 22), leaf(3, 7, 22)
    masks = (IS_TOKEN[:, None, None, :] & causal_mask(5), IS_MEMORY[:, None, None, :]) if masked else ()
    their_masks = {
        "tgt_mask": ~causal_mask(5), "tgt_key_padding_mask": ~IS_TOKEN, "memory_key_padding_mask": ~IS_MEMORY
    }  # fmt: skip
    theirs = torch_layer(nn.TransformerDecoderLayer, ours)
    expected = theirs(x, memory, **(their_masks if masked else {}))
    assert_same_function(ours(x, memory, *masks), expected, ours, theirs, (x, memory), torch_names)


# --- properties of the layers -----------------------------------------------------------------------------------------


@LAYERS
def test_padded_positions_of_source_and_memory_change_nothing_real(kind):
    module, x, memory = layer(kind), leaf(3, 5, 22), leaf(3, 7, 22)
    other = torch.where(IS_TOKEN[..., None], x, torch.randn_like(x))
    other_memory = torch.where(IS_MEMORY[..., None], memory, torch.randn_like(memory))
    masks = inputs_of(module, IS_TOKEN[:, None, None, :], IS_MEMORY[:, None, None, :])
    outputs = (module(*inputs_of(module, *each), *masks) for each in ((x, memory), (other, other_memory)))
    assert_close(*(output[IS_TOKEN] for output in outputs), **CLOSE)


@LAYERS
@pytest.mark.parametrize("dtype", DTYPES)
def test_layers_keep_the_dtype_and_have_finite_gradients_where_nothing_is_allowed(kind, dtype):
    module, nothing = kind(**SIZES).to(dtype), torch.zeros(3, 1, 1, 1, dtype=torch.bool)
    inputs = inputs_of(module, leaf(3, 5, 22, dtype=dtype), leaf(3, 7, 22, dtype=dtype))
    output = module(*inputs, *inputs_of(module, nothing))
    assert output.dtype == dtype
    output.square().sum().backward()
    assert output.isfinite().all()
    assert all(tensor.grad.isfinite().all() for tensor in (*inputs, *module.parameters()))


@DECODERS
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_lower_precision_is_near_the_float64_result(kind, dtype):
    module = kind(**SIZES).to(dtype)
    x, memory = torch.randn(3, 5, 22).to(dtype), torch.randn(3, 7, 22).to(dtype)
    exact = copy.deepcopy(module).double()(x.double(), memory.double(), causal_mask(5))
    # About twenty roundings in a row, each eps / 2 of numbers up to about 4, of random sign: √20 · 2 eps, with room
    # for the largest of 330 entries (three standard deviations).
    tolerance = 3 * math.sqrt(20) * 2 * torch.finfo(dtype).eps
    assert_close(module(x, memory, causal_mask(5)).double(), exact, rtol=0, atol=tolerance)


@LAYERS
def test_a_call_has_no_side_effects_and_a_copy_computes_the_same(kind):
    module, x, loaded = layer(kind), leaf(3, 5, 22), kind(**SIZES).double()
    inputs = *inputs_of(module, x, x.clone()), *inputs_of(module, causal_mask(5))
    loaded.load_state_dict(module.state_dict())
    with no_side_effects(*inputs, *module.parameters()):
        expected = module(*inputs)
    for twin in (loaded, copy.deepcopy(module)):
        assert_close(twin(*inputs), expected, rtol=0, atol=0)


@pytest.mark.parametrize("library", [cl, full], ids=["plain", "full"])
def test_every_parameter_counted_is_there_and_learns(library):
    encoder, decoder = layer(library.EncoderLayer), layer(library.DecoderLayer)
    assert isinstance(encoder, cl.EncoderLayer)
    parameters = [*encoder.parameters(), *decoder.parameters()]
    assert transformer_parameter_count(17, 22, 1, 13) == 17 * 22 + sum(p.numel() for p in parameters)
    decoder(leaf(3, 5, 22), encoder(leaf(3, 7, 22))).square().sum().backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in parameters)


# --- the whole model --------------------------------------------------------------------------------------------------


def test_the_default_is_the_base_model_of_the_paper():
    with torch.device("meta"):
        base = cl.Transformer(37_000)
    assert sum(parameter.numel() for parameter in base.parameters()) == 63_082_496
    assert base.encoder[0].self_attention.num_heads == 8
    assert base.pad_id == 0


def test_every_parameter_of_the_model_is_counted_and_learns():
    module = model()
    assert sum(p.numel() for p in module.parameters()) == transformer_parameter_count(17, 20, 2, 13)
    logits = module(SOURCE, TARGET)
    assert_close(module.decode(TARGET, module.encode(SOURCE), SOURCE), logits, rtol=0, atol=0)
    logits.square().sum().backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in module.parameters())


def test_from_tokens_to_logits_the_model_is_nn_transformer_between_embeddings():
    ours, options = model(), {"dropout": 0.0, "batch_first": True}
    stacks = (
        nn.TransformerEncoder(nn.TransformerEncoderLayer(20, 2, 13, **options), 2, enable_nested_tensor=False),
        nn.TransformerDecoder(nn.TransformerDecoderLayer(20, 2, 13, **options), 2),
    )  # without the last norms that nn.Transformer has of its own, and the paper has not
    theirs = nn.Transformer(20, 2, batch_first=True, custom_encoder=stacks[0], custom_decoder=stacks[1]).double()
    theirs.load_state_dict(torch_names(_in_stacks(ours.state_dict())))
    weight = ours.embedding.weight.detach().clone().requires_grad_()
    x = theirs(
        F.embedding(SOURCE, weight) * math.sqrt(20) + sinusoidal_encoding(7, 20).double(),
        F.embedding(TARGET, weight) * math.sqrt(20) + sinusoidal_encoding(5, 20).double(),
        tgt_mask=~causal_mask(5),
        src_key_padding_mask=SOURCE == PAD,
        tgt_key_padding_mask=TARGET == PAD,
        memory_key_padding_mask=SOURCE == PAD,
    )
    expected, output = x @ weight.T, ours(SOURCE, TARGET)
    grad = torch.randn_like(expected)
    assert_close(output, expected, **CLOSE)
    output.backward(grad), expected.backward(grad)
    assert_close(ours.embedding.weight.grad, weight.grad, **CLOSE)
    assert_close(torch_names(_in_stacks(gradients(ours))), gradients(theirs), **CLOSE)


def _in_stacks(tensors):
    """The layers' tensors, under the names that they have in stacks."""
    return {name.replace("coder.", "coder.layers.", 1): t for name, t in tensors.items() if "coder." in name}


def test_future_target_tokens_do_not_change_earlier_logits():
    module, target = model(), torch.randint(2, 17, (3, 7))
    other = torch.cat((target[:, :4], (target[:, 4:] - 1) % 15 + 2), 1)
    before, after = module(SOURCE, target), module(SOURCE, other)
    assert_close(before[:, :4], after[:, :4], **CLOSE)
    assert (before[:, 4:] - after[:, 4:]).abs().amax(-1).min() > 1e-6


def test_padding_changes_nothing_real():
    module = model()
    together = module(SOURCE, TARGET)
    source, target = (F.pad(tokens, (0, 3), value=PAD) for tokens in (SOURCE, TARGET))
    assert_close(module(source, target)[:, :5], together, **CLOSE)
    for i in range(3):
        source, target = (tokens[i, tokens[i] != PAD][None] for tokens in (SOURCE, TARGET))
        assert_close(module(source, target)[0], together[i, : target.shape[1]], **CLOSE)


@pytest.mark.parametrize(("d_model", "num_layers"), [(512, 2), (256, 4)])
def test_the_loss_of_an_untrained_model_starts_near_log_v(d_model, num_layers):
    """With the weights of nn.Linear it is 17 for the first sizes: an output is hardly more than its own embedding."""
    # Measured with these and other seeds: 0.4 to 0.9 above log V.
    torch.manual_seed(0)
    tokens = torch.randint(1, 1000, (7, 23))
    untrained = cl.Transformer(1000, d_model, num_layers=num_layers)
    with torch.no_grad():
        loss, log_vocabulary = start_loss(untrained(tokens, tokens[:, :-1]), tokens[:, 1:])
    assert loss == pytest.approx(log_vocabulary, abs=1.2)


def test_the_embedding_starts_at_the_size_of_an_output_matrix():
    weight = cl.Transformer(1009, d_model=106, num_heads=2, d_ff=7, num_layers=1).embedding.weight
    assert weight.std().item() == pytest.approx(106**-0.5, rel=0.02)  # 107,000 draws: known to 0.2 %


@pytest.mark.parametrize("dtype", DTYPES)
def test_sentences_of_padding_only_stay_finite(dtype):
    module = cl.Transformer(17, d_model=20, num_heads=2, d_ff=13, num_layers=2, pad_id=PAD).to(dtype)
    logits = module(torch.full((3, 7), PAD), TARGET)
    assert logits.dtype == dtype
    assert logits.isfinite().all()
    logits.square().mean().backward()
    assert all(parameter.grad.isfinite().all() for parameter in module.parameters())


# --- errors -----------------------------------------------------------------------------------------------------------


@DECODERS
def test_an_error_of_a_layer_says_what_to_do(kind, unchecked):
    module, x, memory = kind(**SIZES), torch.randn(3, 5, 22), torch.randn(3, 7, 22)
    for inputs, error, words in (
        (
            (x, memory, torch.ones(5, 5)),
            TypeError,
            r"self_mask must be a bool tensor, .* \(5, 5\); True where .*mask.bool",
        ),
        ((x, x, causal_mask(5), torch.ones(5, 5)), TypeError, "memory_mask must be a bool tensor"),
        (
            (x, memory, None, causal_mask(5)),
            ValueError,
            r"memory_mask must broad.* \(3, 2, 5, 7\), got \(5, 5\); a padding",
        ),
        ((x, memory[:2]), ValueError, r"x and memory must agree in batch, .*output for this batch"),
        ((x[..., :11], memory), ValueError, r"x must be .* with d_model = 22, got \(3, 5, 11\); build the module with"),
    ):
        with pytest.raises(error, match=words):
            module(*inputs)
    with pytest.raises(ValueError, match="num_heads must divide d_model, got 3 for d_model = 22"):
        kind(22, 3, 13)


def test_an_error_of_the_model_says_what_to_do(unchecked):
    module, one = model(), torch.tensor([[2]])
    assert module(torch.tensor([[0, 16]]), torch.tensor([[16]])).isfinite().all()
    for call, error, words in (
        (lambda: module(torch.tensor([[2, 17]]), one), ValueError, r"ids in 0 … 16 .*got 2 … 17; tokenise"),
        (lambda: module(torch.tensor([[-1, 3]]), one), ValueError, r"ids in 0 … 16 .*got -1 … 3; tokenise"),
        (lambda: module(one.short(), one), TypeError, r"must be int64 or int32, got torch.int16; pass tokens.long"),
        (
            lambda: module.decode(TARGET, torch.randn(3, 5, 20).double(), SOURCE), ValueError,
            r"memory and source must agree in len_source, .*memory is encode\(source\)",
        ),
        (lambda: cl.Transformer(11, 4, num_heads=2, pad_id=11), ValueError, r"pad_id .* 0 … 10, got 11; take one"),
        (lambda: cl.Transformer(full.TransformerConfig()), TypeError, r"got TransformerConfig.*course_kit.nn"),
        (
            lambda: full.record_attention(module).__enter__(), ValueError,
            r"one course_kit\.nn\.MultiHeadAttention, got Transformer with none; build it",
        ),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            call()
