"""Our encoder and `transformers` compute the same numbers from the same weights."""

import pytest
import torch
import torch.nn.functional as F
from oracles import CLOSE
from transformers import AutoTokenizer

from course_kit.bert import find_encoder, load_encoder
from course_kit.bert.checkpoint import parameter_names

from .conftest import MODELS, save_model

FLOAT = {"rtol": 0.0, "atol": 1e-5}
SINGLES = ["Time flies like an arrow.", "Unbelievable!", "The animal did not cross because it was too tired."]
SECONDS = ["Fruit flies like a banana.", "Is it? Yes, it is, I am quite sure of it.", "Naïve café, 東京 — ok."]
CASES = {"a single sentence": (SINGLES[:1], None), "a padded batch of pairs": (SINGLES, SECONDS)}


def reference(theirs, batch):
    """What `transformers` computes, with all hidden states and attention weights; segments where the model has them."""
    options = {} if theirs.config.model_type == "distilbert" else {"token_type_ids": segments(theirs, batch)}
    return theirs(
        input_ids=batch.token_ids,
        attention_mask=batch.mask.long(),
        output_hidden_states=True,
        output_attentions=True,
        **options,
    )


def segments(theirs, batch):
    """RoBERTa has one segment only, whatever the tokenizer says."""
    return batch.segment_ids if theirs.config.type_vocab_size > 1 else torch.zeros_like(batch.segment_ids)


def their_mean(theirs, sentences):
    """The sentence vectors of the model's card: tokenised, pooled and normalised as it says, cut at 256 tokens."""
    tokenizer = AutoTokenizer.from_pretrained(find_encoder("all-MiniLM-L6-v2", download=False))
    inputs = tokenizer(sentences, padding=True, truncation=True, max_length=256, return_tensors="pt")
    with torch.no_grad():
        tokens = theirs(**inputs)[0]
    mask = inputs["attention_mask"].unsqueeze(-1).expand(tokens.size()).float()
    return F.normalize((tokens * mask).sum(1) / torch.clamp(mask.sum(1), min=1e-9), p=2, dim=1)


# all-MiniLM-L6-v2: trained weights


@pytest.mark.parametrize(("sentences", "second"), CASES.values(), ids=CASES)
def test_hidden_states_of_every_layer_and_all_72_heads(minilm, their_minilm, sentences, second):
    batch = minilm.tokenize(sentences, second)
    with torch.no_grad():
        ours, theirs = minilm(batch), reference(their_minilm, batch)
    hidden, attentions = torch.stack(theirs.hidden_states), torch.stack(theirs.attentions)
    # Of the tokens: padding is unlike anything that the model was trained on, and rounding grows there to 1e-4 in both
    # libraries. The small models below are compared in float64, with their padding.
    torch.testing.assert_close(ours.hidden[:, batch.mask], hidden[:, batch.mask], **FLOAT)
    torch.testing.assert_close(ours.pooled, theirs.pooler_output, **FLOAT)
    weights = minilm.attention(batch)
    length = batch.token_ids.shape[1]
    assert weights.shape == (6, len(sentences), 12, length, length)
    rows = batch.mask[None, :, None, :].expand(weights.shape[:-1])
    torch.testing.assert_close(weights[rows], attentions[rows], **FLOAT)


def test_sentence_vectors_are_those_of_the_models_card(minilm, their_minilm):
    long = "a very long sentence about nothing " * 60
    sentences = ["A man is eating food.", long, *SINGLES, "", *SECONDS]
    vectors = minilm.embed(sentences, batch_size=3)
    assert vectors.shape == (len(sentences), 384)
    torch.testing.assert_close(vectors, their_mean(their_minilm, sentences), **FLOAT)
    assert not vectors.requires_grad


# Small random models of every family, in float64


@pytest.mark.parametrize("second", [None, ["dog", "abcd q"]], ids=["singles", "pairs"])
def test_values_and_gradients(pair, family, second):
    ours, theirs = pair
    batch = ours.tokenize(["a b c dog abba e f", "g h"], second)
    assert not batch.mask.all()
    if family == "roberta":
        batch.segment_ids.zero_()  # this tokenizer is BERT's
    mine, expected = ours(batch), reference(theirs, batch)
    hidden, attentions = torch.stack(expected.hidden_states), torch.stack(expected.attentions)
    torch.testing.assert_close(mine.hidden, hidden, **CLOSE)
    torch.testing.assert_close(mine.last, expected.last_hidden_state, **CLOSE)
    torch.testing.assert_close(ours.attention(batch), attentions, **CLOSE)

    weighting = torch.randn_like(hidden)
    losses = [(mine.hidden * weighting).sum(), (hidden * weighting).sum()]
    if family != "distilbert":
        torch.testing.assert_close(mine.pooled, expected.pooler_output, **CLOSE)
        losses = [losses[0] + mine.pooled.cos().sum(), losses[1] + expected.pooler_output.cos().sum()]
    for loss in losses:
        loss.backward()
    their_gradients = {name: p.grad for name, p in theirs.named_parameters()}
    compared = 0
    for name, parameter in ours.named_parameters():
        torch.testing.assert_close(parameter.grad, their_gradients[parameter_names(ours.config)[name]], **CLOSE)
        compared += 1
    assert compared == len(their_gradients)


@pytest.mark.parametrize("dropped", ["hidden", "attention"])
def test_dropout_acts_where_theirs_does(family, dropped, tmp_path):
    """With probability 0 nothing changes in train mode; each of the two probabilities reaches its own place."""
    theirs = MODELS[family]()
    names = {"distilbert": ("dropout", "attention_dropout")}.get(
        family, ("hidden_dropout_prob", "attention_probs_dropout_prob")
    )
    setattr(theirs.config, names[dropped == "hidden"], 0.0)
    setattr(theirs.config, names[dropped != "hidden"], 0.25)
    ours = load_encoder(save_model(theirs, tmp_path))
    probabilities = {name: m.p for name, m in ours.named_modules() if isinstance(m, torch.nn.Dropout)}
    inside = {name: p for name, p in probabilities.items() if "feed_forward" in name}
    assert len(inside) == len(ours.layers)
    assert set(inside.values()) == {0.0}  # none of the family drops hidden features
    outside = {p for name, p in probabilities.items() if name not in inside}
    assert outside == {0.25 if dropped == "hidden" else 0.0}
    assert {layer.self_attention.dropout for layer in ours.layers} == {0.25 if dropped == "attention" else 0.0}


@pytest.mark.parametrize("activation", ["relu", "gelu_new", "gelu_pytorch_tanh", "silu"])
def test_other_activations(activation, tmp_path):
    theirs = MODELS["bert"]()
    theirs.config.hidden_act = activation
    theirs = type(theirs)(theirs.config)
    ours = load_encoder(save_model(theirs, tmp_path)).double()
    theirs.set_attn_implementation("eager")
    batch = ours.tokenize(["a dog"])
    expected = reference(theirs.double(), batch)
    torch.testing.assert_close(ours(batch).hidden, torch.stack(expected.hidden_states), **CLOSE)
