"""course_kit.nn.models: the encoder–decoder, the encoder alone and the decoder alone, from tokens to logits."""

from __future__ import annotations

import copy
import dataclasses
import math

import pytest
import torch
import torch.nn.functional as F
from oracles import CLOSE, DTYPES, assert_same_function, gradients, leaf, no_side_effects, randomise, torch_names
from torch import nn
from torch.testing import assert_close

import course_lib as cl
from course_kit.nn import (
    Decoder,
    Encoder,
    FeedForward,
    LanguageModel,
    TokenEmbedding,
    Transformer,
    TransformerConfig,
    TransformerEncoder,
    record_attention,
)
from course_lib.masking import causal_mask
from course_lib.positional_encoding import sinusoidal_encoding
from course_lib.transformer import transformer_parameter_count

PAD = 1
SMALL = TransformerConfig(
    vocab_size=17, d_model=20, num_heads=2, num_layers=2, d_ff=13, dropout=0.0, max_length=11, pad_id=PAD
)
POSITIONS = pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "none"])
NORMS = pytest.mark.parametrize("norm", ["post", "pre"])

SOURCE = torch.tensor([[2, 3, 4, 5, 6, 7, 8], [9, 8, 7, 6, 5, PAD, PAD], [10, 11, PAD, PAD, PAD, PAD, PAD]])
TARGET = torch.tensor([[0, 12, 13, 14, 15], [0, 16, 15, PAD, PAD], [0, 2, 3, 4, PAD]])


def config(**changes):
    return dataclasses.replace(SMALL, **changes)


def build(kind, **changes):
    return randomise(kind(config(**changes))).double()


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_token_embedding_by_hand():
    # d_model = 4: the factor is √4 = 2. Token 1 is (1, 2, 3, 4), at position 0 the encoding is (0, 1, 0, 1).
    embedding = nn.Embedding(2, 4, _weight=torch.tensor([[0.0, 0.0, 0.0, 0.0], [1.0, 2.0, 3.0, 4.0]]))
    module = TokenEmbedding(embedding, TransformerConfig(d_model=4, num_heads=1, dropout=0.0))
    assert_close(module(torch.tensor([[1]])), torch.tensor([[[2.0, 5.0, 6.0, 9.0]]]))


def test_tied_logits_by_hand():
    # Sub-layers that add nothing leave embedding · √2, normed by the last norm: (1, 3) becomes (-1, 1). The logits are
    # its products with the embedding: (0, 0) -> 0, (1, 3) -> 2, (5, 1) -> -4.
    model = LanguageModel(
        TransformerConfig(
            vocab_size=3, d_model=2, num_heads=1, num_layers=1, d_ff=5, dropout=0.0, norm="pre", positions="none"
        )
    )
    for name, parameter in model.named_parameters():
        if "norm" not in name:
            parameter.data.zero_()
    model.embedding.embedding.weight.data = torch.tensor([[0.0, 0.0], [1.0, 3.0], [5.0, 1.0]])
    assert_close(model(torch.tensor([[1]])), torch.tensor([[[0.0, 2.0, -4.0]]]), rtol=0, atol=2e-5)  # eps in the norm


# --- sizes ------------------------------------------------------------------------------------------------------------


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def test_the_default_is_the_base_model_of_the_paper():
    paper = TransformerConfig()
    assert (paper.d_model, paper.num_heads, paper.num_layers, paper.d_ff, paper.dropout) == (512, 8, 6, 2048, 0.1)
    assert (paper.norm, paper.positions, paper.vocab_size, paper.tie_embeddings) == ("post", "sinusoidal", 37_000, True)
    assert (paper.target_vocab_size, paper.pad_id) == (None, 0)
    with torch.device("meta"):
        assert count(Transformer(paper)) == 63_082_496


def test_the_formula_counts_the_code():
    model = Transformer(config(num_layers=3))
    assert count(model) == transformer_parameter_count(17, d_model=20, num_layers=3, d_ff=13)


def test_what_is_not_shared_is_counted_again():
    tied = count(Transformer(SMALL))
    assert count(Transformer(config(tie_embeddings=False))) == tied + 17 * 20
    assert count(Transformer(config(target_vocab_size=19))) == tied + 19 * 20
    assert count(Transformer(config(target_vocab_size=19, tie_embeddings=False))) == tied + 2 * 19 * 20
    assert count(Transformer(config(norm="pre"))) == tied + 2 * (2 * 20)  # two last norms
    assert count(Transformer(config(positions="learned"))) == tied + 2 * (11 * 20)  # source and target positions


@POSITIONS
@NORMS
def test_shapes_from_tokens_to_logits(positions, norm):
    changes = {"positions": positions, "norm": norm}
    assert Transformer(config(target_vocab_size=19, **changes))(SOURCE, TARGET).shape == (3, 5, 19)
    assert TransformerEncoder(config(**changes))(SOURCE).shape == (3, 7, 20)
    assert LanguageModel(config(**changes))(SOURCE).shape == (3, 7, 17)


# --- embeddings -------------------------------------------------------------------------------------------------------


def test_tied_weights_are_one_tensor():
    model = Transformer(SMALL)
    assert model.output.weight is model.source_embedding.embedding.weight
    assert model.output.weight is model.target_embedding.embedding.weight
    model = LanguageModel(SMALL)
    assert model.output.weight is model.embedding.embedding.weight


def test_two_vocabularies_have_two_embeddings_and_the_output_is_tied_to_the_target():
    model = Transformer(config(target_vocab_size=19))
    assert model.source_embedding.embedding.weight.shape == (17, 20)
    assert model.target_embedding.embedding.weight.shape == (19, 20)
    assert model.output.weight is model.target_embedding.embedding.weight


@pytest.mark.parametrize("kind", [Transformer, LanguageModel])
def test_untied_weights_are_separate(kind):
    model = kind(config(tie_embeddings=False))
    embedding = model.embedding if kind is LanguageModel else model.target_embedding
    assert model.output.weight is not embedding.embedding.weight
    assert not torch.equal(model.output.weight, embedding.embedding.weight)


@pytest.mark.parametrize("kind", [Transformer, LanguageModel])
def test_the_output_projection_has_no_bias(kind):
    assert kind(SMALL).output.bias is None


@POSITIONS
def test_token_embedding_and_its_gradient_are_those_of_functional_embedding(positions):
    weight = leaf(17, 20)
    module = TokenEmbedding(nn.Embedding(17, 20, _weight=weight.detach().clone()), config(positions=positions)).double()
    added = torch.zeros(7, 20, dtype=torch.float64)
    if positions == "sinusoidal":
        added = sinusoidal_encoding(7, 20).double()
    elif positions == "learned":
        added = module.positions.embedding.weight[:7].detach()
    expected = F.embedding(SOURCE, weight) * math.sqrt(20) + added
    output, grad = module(SOURCE), torch.randn_like(expected)
    assert_close(output, expected, **CLOSE)
    output.backward(grad), expected.backward(grad)
    assert_close(module.embedding.weight.grad, weight.grad, **CLOSE)


@POSITIONS
def test_sums_of_embedding_and_position_are_dropped_while_training(positions):
    module = TokenEmbedding(nn.Embedding(17, 20), config(dropout=0.75, positions=positions))
    whole = module.eval()(SOURCE)
    dropped = module.train()(SOURCE)
    assert (dropped == 0.0).float().mean() == pytest.approx(0.75, abs=0.1)  # 420 draws: one deviation is 0.021
    assert_close(dropped[dropped != 0.0], 4.0 * whole[dropped != 0.0])


def test_parameters_start_at_the_documented_sizes():
    model = Transformer(
        TransformerConfig(vocab_size=1009, d_model=106, num_heads=2, num_layers=1, d_ff=211, tie_embeddings=False)
    )
    embedding = model.source_embedding.embedding.weight
    assert embedding.std().item() == pytest.approx(106**-0.5, rel=0.02)  # 107,000 draws: known to 0.2 %
    bound = math.sqrt(6.0 / (106 + 211))
    for module in (m for m in model.modules() if isinstance(m, FeedForward)):
        for linear in (module.linear1, module.linear2):
            assert 0.95 * bound < linear.weight.abs().max() <= bound
            assert (linear.bias == 0.0).all()
    assert model.output.weight.abs().max().item() == pytest.approx(math.sqrt(6.0 / (106 + 1009)), rel=0.05)


# --- against the plain model ------------------------------------------------------------------------------------------


def plain_names(tensors):
    """Tensors of a full model under the names that the plain model has for them; one embedding stands for all."""
    renamed = {name.replace("coder.layers.", "coder."): tensor for name, tensor in tensors.items() if "coder." in name}
    return {**renamed, "embedding.weight": tensors["source_embedding.embedding.weight"]}


@pytest.mark.parametrize("training", [True, False])
def test_without_further_options_it_is_the_plain_transformer(training):
    ours = build(Transformer).train(training)
    plain = cl.Transformer(17, d_model=20, num_heads=2, d_ff=13, num_layers=2, pad_id=PAD).double()
    plain.load_state_dict(plain_names(ours.state_dict()))
    expected, output = plain(SOURCE, TARGET), ours(SOURCE, TARGET)
    assert_close(output, expected, **CLOSE)
    assert_close(ours.encode(SOURCE), plain.encode(SOURCE), **CLOSE)
    grad = torch.randn_like(expected)
    output.backward(grad), expected.backward(grad)
    assert_close(plain_names(gradients(ours)), gradients(plain), **CLOSE)


def test_step_by_step_with_a_cache_the_logits_are_those_of_the_plain_transformer():
    ours = build(Transformer)
    plain = cl.Transformer(17, d_model=20, num_heads=2, d_ff=13, num_layers=2, pad_id=PAD).double()
    plain.load_state_dict(plain_names(ours.state_dict()))
    target = torch.randint(2, 17, (3, 5))
    with torch.no_grad():
        cache = ours.begin(SOURCE)
        steps = [ours.step(token[:, None], cache) for token in target.T]
        assert_close(torch.cat(steps, 1), plain(SOURCE, target), **CLOSE)


def test_both_base_models_have_the_same_parameters():
    with torch.device("meta"):
        ours, plain = Transformer(TransformerConfig()), cl.Transformer(37_000)
    shapes = [
        {name: tuple(parameter.shape) for name, parameter in tensors.items()}
        for tensors in (plain_names(ours.state_dict()), plain.state_dict())
    ]
    assert shapes[0] == shapes[1]


# --- against PyTorch --------------------------------------------------------------------------------------------------


def torch_stacks(norm):
    """PyTorch's stacks, with last norms in pre-norm only, in train mode: in eval mode they have no gradients."""
    options = {"dropout": 0.0, "batch_first": True, "norm_first": norm == "pre"}
    last = [nn.LayerNorm(20) if norm == "pre" else None for _ in range(2)]
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(20, 2, 13, **options), 2, norm=last[0], enable_nested_tensor=False
    )
    return encoder, nn.TransformerDecoder(nn.TransformerDecoderLayer(20, 2, 13, **options), 2, norm=last[1])


@NORMS
def test_a_stack_of_encoder_layers_is_that_of_torch(norm):
    ours, x = build(Encoder, norm=norm), leaf(3, 7, 20)
    theirs = torch_stacks(norm)[0].double()
    theirs.load_state_dict(torch_names(ours.state_dict()))
    output = ours(x, (SOURCE != PAD)[:, None, None, :])
    assert_same_function(output, theirs(x, src_key_padding_mask=SOURCE == PAD), ours, theirs, (x,), torch_names)


@NORMS
def test_encoder_and_decoder_stacks_are_those_of_nn_transformer(norm):
    ours = nn.ModuleDict({"encoder": build(Encoder, norm=norm), "decoder": build(Decoder, norm=norm)})
    encoder, decoder = torch_stacks(norm)
    theirs = nn.Transformer(20, 2, batch_first=True, custom_encoder=encoder, custom_decoder=decoder).double()
    theirs.load_state_dict(torch_names(ours.state_dict()))
    source, target = leaf(3, 7, 20), leaf(3, 5, 20)
    padding = (SOURCE != PAD)[:, None, None, :]
    memory = ours["encoder"](source, padding)
    output = ours["decoder"](target, memory, (TARGET != PAD)[:, None, None, :] & causal_mask(5), padding)
    expected = theirs(
        source,
        target,
        tgt_mask=~causal_mask(5),
        src_key_padding_mask=SOURCE == PAD,
        tgt_key_padding_mask=TARGET == PAD,
        memory_key_padding_mask=SOURCE == PAD,
    )
    assert_same_function(output, expected, ours, theirs, (source, target), torch_names)


@NORMS
def test_from_tokens_to_logits_the_model_is_nn_transformer_between_embeddings(norm):
    ours = build(Transformer, norm=norm, target_vocab_size=19)
    encoder, decoder = torch_stacks(norm)
    theirs = nn.Transformer(20, 2, batch_first=True, custom_encoder=encoder, custom_decoder=decoder).double()
    stacks = {name: p for name, p in ours.state_dict().items() if name.startswith(("encoder.", "decoder."))}
    theirs.load_state_dict(torch_names(stacks))
    of_source, of_target = ours.source_embedding.embedding.weight, ours.target_embedding.embedding.weight
    x = theirs(
        F.embedding(SOURCE, of_source) * math.sqrt(20) + sinusoidal_encoding(7, 20).double(),
        F.embedding(TARGET, of_target) * math.sqrt(20) + sinusoidal_encoding(5, 20).double(),
        tgt_mask=~causal_mask(5),
        src_key_padding_mask=SOURCE == PAD,
        tgt_key_padding_mask=TARGET == PAD,
        memory_key_padding_mask=SOURCE == PAD,
    )
    expected, logits = x @ of_target.T, ours(SOURCE, TARGET)
    assert_close(logits, expected, **CLOSE)
    grad = torch.randn_like(logits)
    of_both = [torch.autograd.grad(result, (of_source, of_target), grad) for result in (logits, expected)]
    assert_close(*of_both, **CLOSE)


@NORMS
def test_a_language_model_is_torchs_encoder_under_a_causal_mask(norm):
    ours = build(LanguageModel, norm=norm)
    theirs = torch_stacks(norm)[0].double()
    stack = {name.removeprefix("layers."): p for name, p in ours.state_dict().items() if name.startswith("layers.")}
    theirs.load_state_dict(torch_names(stack))
    weight = ours.embedding.embedding.weight
    x = F.embedding(SOURCE, weight) * math.sqrt(20) + sinusoidal_encoding(7, 20).double()
    expected = theirs(x, mask=~causal_mask(7), src_key_padding_mask=SOURCE == PAD) @ weight.T
    assert_close(ours(SOURCE), expected, **CLOSE)


# --- properties -------------------------------------------------------------------------------------------------------


@POSITIONS
@NORMS
def test_future_tokens_do_not_change_the_past(positions, norm):
    transformer, language_model = (build(kind, positions=positions, norm=norm) for kind in (Transformer, LanguageModel))
    target = torch.randint(2, 17, (3, 7))
    other = torch.cat((target[:, :4], (target[:, 4:] - 1) % 15 + 2), 1)
    for before, after in (
        (transformer(SOURCE, target), transformer(SOURCE, other)),
        (language_model(target), language_model(other)),
    ):
        assert_close(before[:, :4], after[:, :4], **CLOSE)
        assert (before[:, 4:] - after[:, 4:]).abs().amax(-1).min() > 1e-6


@POSITIONS
@NORMS
def test_what_a_prefix_gets_alone_it_gets_in_the_whole(positions, norm):
    transformer, language_model = (build(kind, positions=positions, norm=norm) for kind in (Transformer, LanguageModel))
    target = torch.randint(2, 17, (3, 7))
    memory = transformer.encode(SOURCE)
    together, alone = transformer(SOURCE, target), language_model(target)
    for length in range(1, 8):
        assert_close(transformer.decode(target[:, :length], memory, SOURCE), together[:, :length], **CLOSE)
        assert_close(language_model(target[:, :length]), alone[:, :length], **CLOSE)


@POSITIONS
@NORMS
def test_more_padding_on_the_right_changes_nothing_real(positions, norm):
    source, target = (F.pad(tokens, (0, 3), value=PAD) for tokens in (SOURCE, TARGET))
    transformer = build(Transformer, positions=positions, norm=norm)
    assert_close(transformer(source, target)[:, :5], transformer(SOURCE, TARGET), **CLOSE)
    encoder = build(TransformerEncoder, positions=positions, norm=norm)
    assert_close(encoder(source)[:, :7], encoder(SOURCE), **CLOSE)
    language_model = build(LanguageModel, positions=positions, norm=norm)
    assert_close(language_model(source)[:, :7], language_model(SOURCE), **CLOSE)


@POSITIONS
def test_a_sentence_gets_in_a_batch_what_it_gets_alone_without_its_padding(positions):
    transformer, encoder = build(Transformer, positions=positions), build(TransformerEncoder, positions=positions)
    together, vectors = transformer(SOURCE, TARGET), encoder(SOURCE)
    for i in range(3):
        source, target = (tokens[i, tokens[i] != PAD][None] for tokens in (SOURCE, TARGET))
        assert_close(transformer(source, target)[0], together[i, : target.shape[1]], **CLOSE)
        assert_close(encoder(source)[0], vectors[i, : source.shape[1]], **CLOSE)


@pytest.mark.parametrize("positions", ["rotary", "alibi", "none"])
def test_padding_on_the_left_changes_nothing_where_positions_are_relative(positions):
    model, tokens = build(LanguageModel, positions=positions), torch.randint(2, 17, (3, 5))
    padded = F.pad(tokens, (2, 0), value=PAD)
    assert_close(model(padded)[:, 2:], model(tokens), **CLOSE)


@POSITIONS
@pytest.mark.parametrize("dtype", DTYPES)
def test_padding_on_the_left_and_sentences_of_padding_only_stay_finite(positions, dtype):
    model = LanguageModel(config(positions=positions)).to(dtype)
    tokens = torch.tensor([[PAD, PAD, 2, 3, 4], [PAD, PAD, PAD, PAD, PAD], [2, 3, 4, 5, 6]])
    logits = model(tokens)
    assert logits.dtype == dtype
    assert logits.isfinite().all()
    logits.square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize("kind", [TransformerEncoder, LanguageModel])
def test_order_matters_with_every_position_code(kind):
    # The last token stays in its place, those before it change theirs.
    tokens, turned = torch.tensor([[2, 3, 4, 5, 6]]), torch.tensor([[4, 2, 5, 3, 6]])
    for positions in ("sinusoidal", "learned", "rotary", "alibi"):
        model = build(kind, positions=positions)
        assert (model(tokens)[0, -1] - model(turned)[0, -1]).abs().max() > 1e-6, positions


def test_an_encoder_without_positions_is_permutation_equivariant():
    model, order = build(TransformerEncoder, positions="none"), torch.randperm(7)
    assert_close(model(SOURCE[:, order]), model(SOURCE)[:, order], **CLOSE)


@POSITIONS
def test_decode_after_encode_is_forward(positions):
    model = build(Transformer, positions=positions)
    memory = model.encode(SOURCE)
    assert memory.shape == (3, 7, 20)
    assert_close(model.decode(TARGET, memory, SOURCE), model(SOURCE, TARGET), rtol=0, atol=0)


def test_the_source_reaches_every_logit():
    model, other = build(Transformer), SOURCE.clone()
    other[:, 0] = 16
    assert (model(SOURCE, TARGET) - model(other, TARGET)).abs().amax(-1).min() > 1e-6


def test_sentences_of_a_batch_do_not_see_each_other():
    model, source, target = build(Transformer), SOURCE.clone(), TARGET.clone()
    source[1:], target[1:] = 5, 6
    assert_close(model(source, target)[0], model(SOURCE, TARGET)[0], **CLOSE)


@pytest.mark.parametrize("kind", [Transformer, TransformerEncoder, LanguageModel])
@POSITIONS
def test_dropout_is_the_only_thing_random_and_acts_in_training_only(kind, positions):
    model = kind(config(dropout=0.5, positions=positions))
    inputs = (SOURCE, TARGET) if kind is Transformer else (SOURCE,)
    assert not torch.equal(model(*inputs), model(*inputs))
    with no_side_effects(*inputs, *model.parameters()):
        assert torch.equal(model.eval()(*inputs), model(*inputs))


def test_dropout_and_choices_reach_every_layer():
    model = Transformer(config(dropout=0.25, norm="pre", positions="rotary"))
    for layer in (*model.encoder.layers, *model.decoder.layers):
        assert layer.residual.norm_first
        assert layer.residual.dropout.p == layer.feed_forward.dropout.p == layer.self_attention.dropout == 0.25
        assert layer.self_attention.position is not None
    assert all(layer.cross_attention.dropout == 0.25 for layer in model.decoder.layers)
    assert model.source_embedding.dropout.p == model.target_embedding.dropout.p == 0.25


@pytest.mark.parametrize("changes", [{}, {"target_vocab_size": 19, "tie_embeddings": False}, {"positions": "learned"}])
@NORMS
def test_every_parameter_learns(changes, norm):
    model = build(Transformer, norm=norm, **changes)
    model(SOURCE, TARGET).square().sum().backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in model.parameters())


@pytest.mark.parametrize("kind", [Transformer, TransformerEncoder, LanguageModel])
@POSITIONS
def test_state_dict_and_deepcopy_carry_a_model_over(kind, positions):
    model = build(kind, positions=positions)
    inputs = (SOURCE, TARGET) if kind is Transformer else (SOURCE,)
    expected = model(*inputs)
    loaded = kind(config(positions=positions)).double()
    loaded.load_state_dict(model.state_dict())
    for twin in (loaded, copy.deepcopy(model)):
        assert_close(twin(*inputs), expected, rtol=0, atol=0)
        if kind is not TransformerEncoder:
            embedding = twin.embedding if kind is LanguageModel else twin.source_embedding
            assert twin.output.weight is embedding.embedding.weight  # still tied


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_lower_precision_is_near_the_float64_result(dtype):
    model = Transformer(SMALL).to(dtype)
    exact = copy.deepcopy(model).double()(SOURCE, TARGET)
    # Four layers of about twenty roundings in a row, each eps / 2 of numbers up to about 4, of random sign:
    # √80 · 2 eps, with room for the largest of 255 logits (three standard deviations).
    tolerance = 3 * math.sqrt(80) * 2 * torch.finfo(dtype).eps
    assert_close(model(SOURCE, TARGET).double(), exact, rtol=0, atol=tolerance)


@POSITIONS
def test_masks_and_tables_are_made_where_the_tokens_are(positions):
    with torch.device("meta"):
        model = Transformer(config(positions=positions))
    logits = model(SOURCE.to("meta"), TARGET.to("meta"))
    assert logits.device.type == "meta"
    assert logits.shape == (3, 5, 17)


@POSITIONS
def test_no_tokens_give_no_logits(positions):
    assert build(LanguageModel, positions=positions)(torch.zeros(3, 0, dtype=torch.long)).shape == (3, 0, 17)


# --- recording --------------------------------------------------------------------------------------------------------


def test_all_maps_of_all_layers_are_recorded():
    model = build(Transformer)
    expected = model(SOURCE, TARGET)
    with record_attention(model) as maps:
        output = model(SOURCE, TARGET)
    assert_close(output, expected, **CLOSE)
    shapes = {name: tuple(weights.shape) for name, weights in maps.items()}
    assert shapes == {
        **{f"encoder.layers.{i}.self_attention": (3, 2, 7, 7) for i in range(2)},
        **{f"decoder.layers.{i}.self_attention": (3, 2, 5, 5) for i in range(2)},
        **{f"decoder.layers.{i}.cross_attention": (3, 2, 5, 7) for i in range(2)},
    }
    real_source, real_target = (SOURCE != PAD)[:, None, None, :], (TARGET != PAD)[:, None, None, :]
    for name, weights in maps.items():
        assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]), **CLOSE)
        allowed = real_target & causal_mask(5) if name.startswith("decoder") else real_source
        allowed = real_source if "cross" in name else allowed
        assert torch.equal(weights > 0, allowed.expand_as(weights))


def test_a_language_model_looks_at_neither_future_nor_padding():
    model = build(LanguageModel)
    with record_attention(model) as maps:
        model(SOURCE)
    allowed = (SOURCE != PAD)[:, None, None, :] & causal_mask(7)
    assert list(maps) == ["layers.layers.0.self_attention", "layers.layers.1.self_attention"]
    assert all(torch.equal(weights > 0, allowed.expand_as(weights)) for weights in maps.values())


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["vocab_size", "target_vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "max_length"]
)
def test_a_size_below_one_is_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        config(**{name: 0})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_heads": 3}, r"num_heads must divide d_model, got num_heads = 3 for d_model = 20"),
        ({"dropout": 1.0}, r"dropout must be a probability in \[0, 1\), got 1.0"),
        ({"dropout": -0.1}, r"dropout must be a probability in \[0, 1\), got -0.1"),
        ({"norm": "middle"}, r"norm must be one of post, pre, got 'middle'"),
        ({"positions": "binary"}, r"positions must be one of sinusoidal, learned, none, rotary, alibi, got 'binary'"),
        ({"d_model": 6, "num_heads": 2, "positions": "rotary"}, r"in pairs, so d_model / num_heads .* got 6 / 2"),
        ({"d_model": 6, "num_heads": 3, "positions": "alibi"}, r"power of two of heads, got num_heads = 3"),
        ({"pad_id": 10_000}, r"pad_id must be a token of the vocabulary, 0 … \d+, got 10000"),
        ({"pad_id": 17}, "pad_id must be a token of the vocabulary, 0 … 16, got 17"),
        ({"pad_id": 5, "target_vocab_size": 5}, "pad_id must be a token of the vocabulary, 0 … 4, got 5"),
        ({"pad_id": 17, "target_vocab_size": 23}, "pad_id must be a token of the vocabulary, 0 … 16, got 17"),
        ({"pad_id": -1}, r"pad_id must be a token of the vocabulary, 0 … \d+, got -1"),
    ],
)
def test_choices_that_do_not_exist_are_refused(changes, words, unchecked):
    with pytest.raises(ValueError, match=words):
        config(**changes)


def test_a_config_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SMALL.d_model = 11


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (torch.tensor([[2, 17]]), r"ids in 0 … 16 .*got 2 … 17; tokenise"),
        (torch.tensor([[-1, 3]]), r"ids in 0 … 16 .*got -1 … 3; tokenise"),
        (torch.tensor([2, 3]), r"integer ids \(batch, length\), got torch.int64 \(2,\); .*tokens\[None\]"),
        (torch.tensor([[2.0, 3.0]]), r"integer ids \(batch, length\), got torch.float32 \(1, 2\)"),
    ],
)
def test_tokens_that_are_no_ids_of_the_vocabulary_are_refused(tokens, words, unchecked):
    with pytest.raises(ValueError, match=words):
        TokenEmbedding(nn.Embedding(17, 20), SMALL)(tokens)


def test_the_target_has_a_vocabulary_of_its_own():
    model = Transformer(config(target_vocab_size=19))
    assert model(SOURCE, torch.tensor([[18]] * 3)).shape == (3, 1, 19)
    with pytest.raises(ValueError, match=r"ids in 0 … 16 .*got 18 … 18"):
        model(torch.tensor([[18]] * 3), TARGET)


def test_the_last_id_of_the_vocabulary_is_one():
    assert LanguageModel(SMALL)(torch.tensor([[0, 16]])).isfinite().all()


@pytest.mark.parametrize("kind", [TransformerEncoder, LanguageModel])
def test_more_tokens_than_learned_positions_are_refused(kind):
    tokens = torch.full((2, 12), 3)
    with pytest.raises(ValueError, match=r"at most max_length = 11 positions long, got 12"):
        kind(config(positions="learned"))(tokens)
    for positions in ("sinusoidal", "rotary", "alibi", "none"):
        kind(config(positions=positions))(tokens)


@pytest.mark.parametrize("memory_shape", [(3, 5, 20), (2, 7, 20)])
def test_a_memory_of_another_source_is_refused(memory_shape, unchecked):
    with pytest.raises(ValueError, match=r"memory must be encode\(source\), \(3, 7, 20\), got"):
        Transformer(SMALL).decode(TARGET, torch.randn(memory_shape), SOURCE)
