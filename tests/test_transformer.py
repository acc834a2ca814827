"""course_lib.transformer: layer norm, feed-forward, both layers, the whole model; layers of course_kit do the same."""

from __future__ import annotations

import copy
import math

import pytest
import torch
import torch.nn.functional as F
from oracles import CLOSE, DTYPES, assert_same_function, gradients, leaf, no_side_effects, randomise, torch_names
from torch import nn
from torch.testing import assert_close

import course_lib as cl
from course_kit import nn as full
from course_lib.masking import causal_mask
from course_lib.positional_encoding import sinusoidal_encoding
from course_lib.transformer import layer_norm, transformer_parameter_count

LEADING = [(), (3,), (3, 2)]
SIZES = {"d_model": 22, "num_heads": 2, "d_ff": 13}  # two heads of 11 features
NETWORKS = pytest.mark.parametrize("kind", [cl.FeedForward, full.FeedForward], ids=["plain", "full"])
ENCODERS = pytest.mark.parametrize("kind", [cl.EncoderLayer, full.EncoderLayer], ids=["plain", "full"])
DECODERS = pytest.mark.parametrize("kind", [cl.DecoderLayer, full.DecoderLayer], ids=["plain", "full"])
LAYERS = pytest.mark.parametrize(
    "kind",
    [cl.EncoderLayer, cl.DecoderLayer, full.EncoderLayer, full.DecoderLayer],
    ids=["plain encoder", "plain decoder", "full encoder", "full decoder"],
)

# Three sentences of five tokens (7 in the memory), True = real.
IS_TOKEN = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]]).bool()
IS_MEMORY = torch.tensor([[1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0]]).bool()

PAD = 1
SOURCE = torch.tensor([[2, 3, 4, 5, 6, 7, 8], [9, 8, 7, 6, 5, PAD, PAD], [10, 11, PAD, PAD, PAD, PAD, PAD]])
TARGET = torch.tensor([[0, 12, 13, 14, 15], [0, 16, 15, PAD, PAD], [0, 2, 3, 4, PAD]])


def layer(kind, **options):
    return randomise(kind(**SIZES, **options)).double()


def inputs_of(kind, x, memory=None):
    """What a layer of this kind takes."""
    return (x, x if memory is None else memory) if issubclass(kind, cl.DecoderLayer) else (x,)


def model():
    return randomise(cl.Transformer(17, d_model=20, num_heads=2, d_ff=13, num_layers=2, pad_id=PAD)).double()


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
    attentions = [module.self_attention, *([module.cross_attention] if isinstance(module, cl.DecoderLayer) else [])]
    for attention, bias in zip(attentions, attention_biases, strict=True):
        attention.out_proj.bias.data = torch.tensor(bias)
    module.feed_forward.linear2.bias.data = torch.tensor(feed_forward_bias)
    return module


@ENCODERS
def test_encoder_layer_by_hand(kind):
    # norm((0, 0) + (0, 2)) = (-1, 1), norm((-1, 1) + (0, -4)) = norm((-1, -3)) = (1, -1).
    module = constant_sublayers(kind(2, 1, 3), [0.0, 2.0], feed_forward_bias=[0.0, -4.0])
    assert_close(module(torch.zeros(1, 1, 2)), torch.tensor([[[1.0, -1.0]]]), rtol=0, atol=1e-5)  # eps = 1e-5


@DECODERS
def test_decoder_layer_by_hand(kind):
    # norm((0, 2)) = (-1, 1); norm((-1, 1) + (5, 0)) = norm((4, 1)) = (1, -1);
    # norm((1, -1) + (0, 6)) = norm((1, 5)) = (-1, 1).
    module = constant_sublayers(kind(2, 1, 3), [0.0, 2.0], [5.0, 0.0], feed_forward_bias=[0.0, 6.0])
    output = module(torch.zeros(1, 1, 2), torch.zeros(1, 1, 2))
    assert_close(output, torch.tensor([[[-1.0, 1.0]]]), rtol=0, atol=1.1e-5)  # eps = 1e-5 in the norm


def test_embedding_by_hand():
    # d_model = 4: the factor is √4 = 2. Token 1 is (1, 2, 3, 4), at position 0 the encoding is (0, 1, 0, 1).
    module = cl.Transformer(2, d_model=4, num_heads=1, d_ff=3, num_layers=1)
    module.embedding.weight.data = torch.tensor([[0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 3.0, 4.0]])
    assert_close(module.embed(torch.tensor([[1]])), torch.tensor([[[2.0, 5.0, 6.0, 9.0]]]))


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


@NETWORKS
@pytest.mark.parametrize("leading", LEADING)
def test_feed_forward_is_two_convolutions_of_width_one(leading, kind):
    module, x = randomise(kind(11, 13)).double(), torch.randn(*leading, 5, 11, dtype=torch.float64)
    first, second = module.linear1, module.linear2
    hidden = F.conv1d(x.reshape(-1, 5, 11).transpose(1, 2), first.weight[:, :, None], first.bias).clamp(min=0.0)
    expected = F.conv1d(hidden, second.weight[:, :, None], second.bias).transpose(1, 2).reshape(*leading, 5, 11)
    with no_side_effects(x):
        assert_close(module(x), expected, **CLOSE)


@NETWORKS
def test_positions_do_not_see_each_other_in_feed_forward(kind):
    module, x = randomise(kind(11, 13)), torch.randn(3, 5, 11)
    assert_close(module(x)[:, 2], module(x[:, 2]))


# --- layers against PyTorch -------------------------------------------------------------------------------------------


def torch_layer(kind, ours):
    # In train mode: in eval mode PyTorch takes a fast path without gradients.
    theirs = kind(22, 2, 13, dropout=0.0, batch_first=True).double()
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


# --- properties of the layers -----------------------------------------------------------------------------------------


@ENCODERS
def test_an_encoder_layer_is_permutation_equivariant(kind):
    module, x, order = layer(kind), leaf(3, 5, 22), torch.randperm(5)
    assert_close(module(x[:, order]), module(x)[:, order], **CLOSE)


@DECODERS
def test_future_tokens_do_not_change_the_past(kind):
    module, memory = layer(kind), leaf(3, 7, 22)
    x = torch.randn(3, 5, 22, dtype=torch.float64)
    other = torch.cat((x[:, :3], torch.randn(3, 2, 22, dtype=torch.float64)), 1)
    before, after = module(x, memory, causal_mask(5)), module(other, memory, causal_mask(5))
    assert_close(before[:, :3], after[:, :3], **CLOSE)
    assert (before[:, 3:] - after[:, 3:]).abs().amax(-1).min() > 1e-3


@LAYERS
def test_padded_positions_of_source_and_memory_change_nothing_real(kind):
    x, memory = leaf(3, 5, 22), leaf(3, 7, 22)
    other = torch.where(IS_TOKEN[..., None], x, torch.randn_like(x))
    other_memory = torch.where(IS_MEMORY[..., None], memory, torch.randn_like(memory))
    masks = inputs_of(kind, IS_TOKEN[:, None, None, :], IS_MEMORY[:, None, None, :])
    module = layer(kind)
    outputs = (module(*inputs_of(kind, *each), *masks) for each in ((x, memory), (other, other_memory)))
    assert_close(*(output[IS_TOKEN] for output in outputs), **CLOSE)


@LAYERS
@pytest.mark.parametrize("dtype", DTYPES)
def test_layers_keep_the_dtype_and_have_finite_gradients_where_nothing_is_allowed(kind, dtype):
    x, memory = leaf(3, 5, 22, dtype=dtype), leaf(3, 7, 22, dtype=dtype)
    nothing = torch.zeros(3, 1, 1, 1, dtype=torch.bool)
    module, inputs = kind(**SIZES).to(dtype), inputs_of(kind, x, memory)
    output = module(*inputs, *inputs_of(kind, nothing))
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
def test_arguments_and_random_state_stay_as_they_are(kind):
    module, x = layer(kind), torch.randn(3, 5, 22, dtype=torch.float64)
    inputs = (*inputs_of(kind, x, x.clone()), *inputs_of(kind, causal_mask(5)))
    with no_side_effects(*inputs, *module.parameters()):
        module(*inputs)


@LAYERS
def test_state_dict_and_deepcopy_carry_a_layer_over(kind):
    module, inputs = layer(kind), inputs_of(kind, leaf(3, 5, 22))
    loaded = kind(**SIZES).double()
    loaded.load_state_dict(module.state_dict())
    for twin in (loaded, copy.deepcopy(module)):
        assert_close(twin(*inputs), module(*inputs), rtol=0, atol=0)


@pytest.mark.parametrize("library", [cl, full], ids=["plain", "full"])
def test_every_parameter_counted_is_there_and_learns(library):
    encoder, decoder = layer(library.EncoderLayer), layer(library.DecoderLayer)
    count = sum(parameter.numel() for module in (encoder, decoder) for parameter in module.parameters())
    assert transformer_parameter_count(17, 22, 1, 13) == 17 * 22 + count
    decoder(leaf(3, 5, 22), encoder(leaf(3, 7, 22))).square().sum().backward()
    assert all(p.grad.abs().max() > 0 for module in (encoder, decoder) for p in module.parameters())


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
    module(SOURCE, TARGET).square().sum().backward()
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


def test_more_padding_on_the_right_changes_nothing_real():
    source, target = (F.pad(tokens, (0, 3), value=PAD) for tokens in (SOURCE, TARGET))
    module = model()
    assert_close(module(source, target)[:, :5], module(SOURCE, TARGET), **CLOSE)


def test_a_sentence_gets_in_a_batch_what_it_gets_alone_without_its_padding():
    module = model()
    together = module(SOURCE, TARGET)
    for i in range(3):
        source, target = (tokens[i, tokens[i] != PAD][None] for tokens in (SOURCE, TARGET))
        assert_close(module(source, target)[0], together[i, : target.shape[1]], **CLOSE)


def test_decode_after_encode_is_forward():
    module = model()
    memory = module.encode(SOURCE)
    assert memory.shape == (3, 7, 20)
    assert_close(module.decode(TARGET, memory, SOURCE), module(SOURCE, TARGET), rtol=0, atol=0)


def test_the_source_reaches_every_logit():
    module, other = model(), SOURCE.clone()
    other[:, 0] = 16
    assert (module(SOURCE, TARGET) - module(other, TARGET)).abs().amax(-1).min() > 1e-6


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


@LAYERS
def test_heads_that_do_not_divide_are_refused(kind):
    with pytest.raises(ValueError, match=r"num_heads must divide d_model, got 3 for d_model = 22"):
        kind(22, 3, 13)


@NETWORKS
def test_a_width_that_the_network_does_not_have_is_refused(kind):
    with pytest.raises(ValueError, match=r"x must be .* with d_model = 11, got \(3, 5, 22\); build the module with"):
        kind(11, 13)(torch.randn(3, 5, 22))


@LAYERS
def test_a_float_mask_is_refused(kind):
    module, x = kind(**SIZES), torch.randn(3, 5, 22)
    words = r"mask must be a bool tensor, got torch.float32 \(5, 5\); True where a query may attend; .*mask.bool\(\)"
    with pytest.raises(TypeError, match=words):
        module(*inputs_of(kind, x), torch.ones(5, 5))
    if isinstance(module, cl.DecoderLayer):
        with pytest.raises(TypeError, match="memory_" + words):
            module(x, x, causal_mask(5), torch.ones(5, 5))


@DECODERS
def test_a_memory_mask_of_the_wrong_length_is_refused(kind):
    x, memory = torch.randn(3, 5, 22), torch.randn(3, 7, 22)
    with pytest.raises(ValueError, match=r"memory_mask must broadcast to .* = \(3, 2, 5, 7\), got \(5, 5\); a padding"):
        kind(**SIZES)(x, memory, None, causal_mask(5))


@DECODERS
def test_a_memory_of_another_batch_is_refused(kind):
    words = r"x and memory must agree in batch, got x \(3, 5, 22\) .* memory \(2, 7, 22\) .*output for this batch"
    with pytest.raises(ValueError, match=words):
        kind(**SIZES)(torch.randn(3, 5, 22), torch.randn(2, 7, 22))


@pytest.mark.parametrize(
    ("tokens", "error", "words"),
    [
        (torch.tensor([[2, 17]]), ValueError, r"ids in 0 … 16 .*got 2 … 17; tokenise"),
        (torch.tensor([[-1, 3]]), ValueError, r"ids in 0 … 16 .*got -1 … 3; tokenise"),
        (torch.tensor([2, 3]), ValueError, r"be \(batch, len_source\), got \(2,\); add .*source\[None\]"),
        (torch.tensor([[2.0, 3.0]]), TypeError, r"an integer tensor, got torch.float32 \(1, 2\); pass source.long"),
    ],
)
def test_tokens_that_are_no_ids_of_the_vocabulary_are_refused(tokens, error, words):
    with pytest.raises(error, match=words):
        model()(tokens, torch.tensor([[2]]))


def test_the_last_id_of_the_vocabulary_is_one():
    assert model()(torch.tensor([[0, 16]]), torch.tensor([[16]])).isfinite().all()


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (
            (3, 5, 20),
            r"memory and source must agree in len_source, got memory \(3, 5, 20\) .*memory is encode\(source\)",
        ),
        ((2, 7, 20), r"must agree in batch, got target \(3, 5\) .* memory \(2, 7, 20\)"),
        ((3, 7, 11), r"memory must be .* with d_model = 20, got \(3, 7, 11\)"),
    ],
)
def test_a_memory_of_another_source_is_refused(shape, words):
    with pytest.raises(ValueError, match=words):
        model().decode(TARGET, torch.randn(shape, dtype=torch.float64), SOURCE)


def test_a_configuration_goes_to_the_full_model(unchecked):
    with pytest.raises(TypeError, match=r"vocab_size must be a whole number, got TransformerConfig.*course_kit.nn"):
        cl.Transformer(full.TransformerConfig())


def test_ids_that_no_embedding_looks_up_are_refused(unchecked):
    model = cl.Transformer(11, d_model=4, num_heads=2, d_ff=8, num_layers=1)
    ids = torch.ones(2, 3, dtype=torch.int16)
    with pytest.raises(TypeError, match=r"tokens must be int64 or int32, got torch.int16; pass tokens.long\(\)"):
        model(ids, ids)


def test_a_padding_id_outside_the_vocabulary_is_refused():
    with pytest.raises(ValueError, match="pad_id must be a token of the vocabulary, 0 … 10, got 11"):
        cl.Transformer(11, d_model=4, num_heads=2, d_ff=8, num_layers=1, pad_id=11)


def test_only_the_fuller_model_can_be_recorded():
    model = cl.Transformer(11, d_model=4, num_heads=2, d_ff=8, num_layers=1)
    with pytest.raises(
        ValueError, match=r"one course_kit\.nn\.MultiHeadAttention, got Transformer with none; build it"
    ):
        cl.record_attention(model).__enter__()
