"""course_kit.nn.models: the encoder–decoder, the encoder alone and the decoder alone, from tokens to logits."""

from __future__ import annotations

import copy
import dataclasses
import math

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


def inputs_of(model):
    return (SOURCE, TARGET) if isinstance(model, Transformer) else (SOURCE,)


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
    with torch.device("meta"):
        ours, plain = Transformer(TransformerConfig()), cl.Transformer(37_000)
    assert count(ours) == 63_082_496
    shapes = ({name: p.shape for name, p in m.items()} for m in (plain_names(ours.state_dict()), plain.state_dict()))
    assert next(shapes) == next(shapes)
    paper = ours.config
    assert (paper.num_heads, paper.dropout, paper.norm, paper.positions) == (8, 0.1, "post", "sinusoidal")


def test_the_formula_counts_the_code_and_what_is_not_shared_is_counted_again():
    tied = transformer_parameter_count(17, d_model=20, num_layers=2, d_ff=13)
    for changes, more in (
        ({}, 0),
        ({"tie_embeddings": False}, 17 * 20),
        ({"target_vocab_size": 19}, 19 * 20),
        ({"target_vocab_size": 19, "tie_embeddings": False}, 2 * 19 * 20),
        ({"norm": "pre"}, 2 * (2 * 20)),  # two last norms
        ({"positions": "learned"}, 2 * (11 * 20)),  # source and target positions
    ):
        assert count(Transformer(config(**changes))) == tied + more, changes


# --- embeddings -------------------------------------------------------------------------------------------------------


def test_the_output_is_the_target_embedding_if_tied_and_has_no_bias():
    for kind, changes in (
        (Transformer, {}),
        (Transformer, {"target_vocab_size": 19}),
        (Transformer, {"tie_embeddings": False}),
        (LanguageModel, {}),
        (LanguageModel, {"tie_embeddings": False}),
    ):
        model = kind(config(**changes))
        embedding = model.embedding if kind is LanguageModel else model.target_embedding
        assert (model.output.weight is embedding.embedding.weight) == model.config.tie_embeddings
        assert model.output.weight.shape == (changes.get("target_vocab_size", 17), 20)
        assert model.output.bias is None


@POSITIONS
def test_token_embedding_and_its_gradient_are_those_of_functional_embedding(positions):
    embedding = nn.Embedding(17, 20).double()
    module, added = TokenEmbedding(embedding, config(positions=positions)).double(), torch.zeros(7, 20).double()
    if positions == "sinusoidal":
        added = sinusoidal_encoding(7, 20).double()
    elif positions == "learned":
        added = module.positions.embedding.weight[:7].detach()
    assert_same(module(SOURCE), F.embedding(SOURCE, embedding.weight) * math.sqrt(20) + added, embedding.weight)


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


def plain_twin(ours):
    plain = cl.Transformer(17, d_model=20, num_heads=2, d_ff=13, num_layers=2, pad_id=PAD).double()
    plain.load_state_dict(plain_names(ours.state_dict()))
    return plain


@pytest.mark.parametrize("training", [True, False])
def test_without_further_options_it_is_the_plain_transformer(training):
    ours = build(Transformer).train(training)
    plain = plain_twin(ours)
    expected, output = plain(SOURCE, TARGET), ours(SOURCE, TARGET)
    assert_close(output, expected, **CLOSE)
    assert_close(ours.encode(SOURCE), plain.encode(SOURCE), **CLOSE)
    grad = torch.randn_like(expected)
    output.backward(grad), expected.backward(grad)
    assert_close(plain_names(gradients(ours)), gradients(plain), **CLOSE)


def test_step_by_step_with_a_cache_the_logits_are_those_of_the_plain_transformer():
    ours, target = build(Transformer), torch.randint(2, 17, (3, 5))
    with torch.no_grad():
        cache = ours.begin(SOURCE)
        steps = [ours.step(token[:, None], cache) for token in target.T]
        assert_close(torch.cat(steps, 1), plain_twin(ours)(SOURCE, target), **CLOSE)


# --- against PyTorch --------------------------------------------------------------------------------------------------


def torch_stacks(norm):
    """PyTorch's stacks, with last norms in pre-norm only, in train mode: in eval mode they have no gradients."""
    options = {"dropout": 0.0, "batch_first": True, "norm_first": norm == "pre"}
    last = [nn.LayerNorm(20) if norm == "pre" else None for _ in range(2)]
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(20, 2, 13, **options), 2, norm=last[0], enable_nested_tensor=False
    )
    return encoder, nn.TransformerDecoder(nn.TransformerDecoderLayer(20, 2, 13, **options), 2, norm=last[1])


THEIR_MASKS = {
    "tgt_mask": ~causal_mask(5),
    "src_key_padding_mask": SOURCE == PAD,
    "tgt_key_padding_mask": TARGET == PAD,
    "memory_key_padding_mask": SOURCE == PAD,
}


def torch_transformer(norm, stacks):
    encoder, decoder = torch_stacks(norm)
    theirs = nn.Transformer(20, 2, batch_first=True, custom_encoder=encoder, custom_decoder=decoder).double()
    theirs.load_state_dict(torch_names(stacks))
    return theirs


@NORMS
def test_encoder_and_decoder_stacks_are_those_of_nn_transformer(norm):
    ours = nn.ModuleDict({"encoder": build(Encoder, norm=norm), "decoder": build(Decoder, norm=norm)})
    theirs = torch_transformer(norm, ours.state_dict())
    source, target, padding = leaf(3, 7, 20), leaf(3, 5, 20), (SOURCE != PAD)[:, None, None, :]
    memory = ours["encoder"](source, padding)
    output = ours["decoder"](target, memory, (TARGET != PAD)[:, None, None, :] & causal_mask(5), padding)
    assert_same_function(output, theirs(source, target, **THEIR_MASKS), ours, theirs, (source, target), torch_names)


@NORMS
def test_from_tokens_to_logits_the_model_is_nn_transformer_between_embeddings(norm):
    ours = build(Transformer, norm=norm, target_vocab_size=19)
    stacks = {name: p for name, p in ours.state_dict().items() if name.startswith(("encoder.", "decoder."))}
    of_source, of_target = ours.source_embedding.embedding.weight, ours.target_embedding.embedding.weight
    x = torch_transformer(norm, stacks)(
        F.embedding(SOURCE, of_source) * math.sqrt(20) + sinusoidal_encoding(7, 20).double(),
        F.embedding(TARGET, of_target) * math.sqrt(20) + sinusoidal_encoding(5, 20).double(),
        **THEIR_MASKS,
    )
    assert_same(ours(SOURCE, TARGET), x @ of_target.T, (of_source, of_target))


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
    """What a prefix gets alone it gets in the whole."""
    transformer, language_model = (build(kind, positions=positions, norm=norm) for kind in (Transformer, LanguageModel))
    target = torch.randint(2, 17, (3, 7))
    memory = transformer.encode(SOURCE)
    together, alone = transformer(SOURCE, target), language_model(target)
    for length in (0, 1, 2, 6, 7):
        assert_close(transformer.decode(target[:, :length], memory, SOURCE), together[:, :length], **CLOSE)
        assert_close(language_model(target[:, :length]), alone[:, :length], **CLOSE)


@POSITIONS
@NORMS
def test_a_sentence_gets_in_a_batch_what_it_gets_alone_without_its_padding(positions, norm):
    for kind in (Transformer, TransformerEncoder, LanguageModel):
        model = build(kind, positions=positions, norm=norm)
        together = model(*inputs_of(model))
        for i in range(3):
            alone = model(*(tokens[i, tokens[i] != PAD][None] for tokens in inputs_of(model)))[0]
            assert_close(alone, together[i, : len(alone)], **CLOSE)


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


@pytest.mark.parametrize("kind", [Transformer, TransformerEncoder, LanguageModel])
@POSITIONS
def test_dropout_is_the_only_thing_random_and_acts_in_training_only(kind, positions):
    model = kind(config(dropout=0.5, positions=positions))
    inputs = inputs_of(model)
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
    model, loaded = build(kind, positions=positions), kind(config(positions=positions)).double()
    loaded.load_state_dict(model.state_dict())
    for twin in (loaded, copy.deepcopy(model)):
        assert_close(twin(*inputs_of(model)), model(*inputs_of(model)), rtol=0, atol=0)
        assert len(list(twin.parameters())) == len(list(model.parameters()))  # still tied


@POSITIONS
def test_masks_and_tables_are_made_where_the_tokens_are(positions):
    with torch.device("meta"):
        model = Transformer(config(positions=positions))
    logits = model(SOURCE.to("meta"), TARGET.to("meta"))
    assert logits.device.type == "meta"
    assert logits.shape == (3, 5, 17)


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


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        *(({name: 0}, f"{name} must be at least 1, got 0") for name in ("target_vocab_size", "d_model", "max_length")),
        ({"num_heads": 3}, r"num_heads must divide d_model, got num_heads = 3 for d_model = 20"),
        ({"dropout": 1.0}, r"dropout must be a probability in \[0, 1\), got 1.0"),
        ({"norm": "middle"}, r"norm must be one of post, pre, got 'middle'"),
        ({"positions": "binary"}, r"positions must be one of sinusoidal, learned, none, rotary, alibi, got 'binary'"),
        ({"d_model": 6, "num_heads": 2, "positions": "rotary"}, r"in pairs, so d_model / num_heads .* got 6 / 2"),
        ({"d_model": 6, "num_heads": 3, "positions": "alibi"}, r"power of two of heads, got num_heads = 3"),
        ({"pad_id": 17, "target_vocab_size": 23}, "pad_id must be a token of the vocabulary, 0 … 16, got 17"),
        ({"pad_id": 5, "target_vocab_size": 5}, "pad_id must be a token of the vocabulary, 0 … 4, got 5"),
        ({"pad_id": -1}, "pad_id must be a token of the vocabulary, 0 … 16, got -1"),
    ],
)
def test_choices_that_do_not_exist_are_refused(changes, words, unchecked):
    with pytest.raises(ValueError, match=words):
        config(**changes)


def test_tokens_and_memory_that_do_not_fit_are_refused(unchecked):
    embedding, model = TokenEmbedding(nn.Embedding(17, 20), SMALL), Transformer(config(target_vocab_size=19))
    last = torch.tensor([[18]] * 3)  # of the target's vocabulary
    assert model(SOURCE, last).shape == (3, 1, 19)
    assert LanguageModel(SMALL)(torch.tensor([[0, 16]])).isfinite().all()
    for call, words in (
        (lambda: embedding(torch.tensor([[-1, 17]])), r"ids in 0 … 16 .*got -1 … 17; tokenise"),
        (lambda: embedding(torch.tensor([2, 3])), r"integer ids \(batch, length\), got torch.int64 \(2,\); .*\[None\]"),
        (lambda: embedding(torch.tensor([[2.0, 3.0]])), r"integer ids \(batch, length\), got torch.float32 \(1, 2\)"),
        (lambda: model(last, TARGET), r"ids in 0 … 16 .*got 18 … 18"),
        (lambda: model.decode(TARGET, torch.randn(3, 5, 20), SOURCE), r"memory must be encode.*, \(3, 7, 20\), got"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


@POSITIONS
def test_only_learned_positions_have_a_longest_sequence(positions):
    for kind in (TransformerEncoder, LanguageModel):
        model = kind(config(positions=positions))
        if positions != "learned":
            assert model(torch.full((2, 12), 3)).isfinite().all()
            continue
        with pytest.raises(ValueError, match=r"at most max_length = 11 positions long, got 12"):
            model(torch.full((2, 12), 3))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_lower_precision_is_near_the_float64_result(dtype):
    model = Transformer(SMALL).to(dtype)
    exact = copy.deepcopy(model).double()(SOURCE, TARGET)
    # Four layers of about twenty roundings in a row, each eps / 2 of numbers up to about 4, of random sign:
    # √80 · 2 eps, with room for the largest of 255 logits (three standard deviations).
    tolerance = 3 * math.sqrt(80) * 2 * torch.finfo(dtype).eps
    assert_close(model(SOURCE, TARGET).double(), exact, rtol=0, atol=tolerance)
