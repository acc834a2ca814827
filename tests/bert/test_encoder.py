"""The encoder by itself: a case by hand, what padding and segments do, and what is refused."""

import copy

import pytest
import torch
from oracles import CLOSE

from course_kit.bert import BertConfig, BertEncoder
from course_kit.bert.config import Pooling
from course_kit.bert.model import BertEmbedding

SIZES = {
    "vocab_size": 37,
    "d_model": 21,
    "num_heads": 3,
    "num_layers": 2,
    "d_ff": 29,
    "max_positions": 23,
    "num_segments": 2,
}


@pytest.fixture
def encoder():
    """A random BERT without a tokenizer, in float64."""
    return BertEncoder(BertConfig(family="bert", **SIZES)).double().eval()


def test_the_embedding_by_hand():
    embedding = BertEmbedding(
        BertConfig(family="bert", **SIZES | {"d_model": 2, "num_heads": 1}, norm_eps=1e-12)
    ).eval()
    with torch.no_grad():
        embedding.token.weight[5] = torch.tensor([1.0, 2.0])
        embedding.segment.weight[1] = torch.tensor([10.0, 0.0])
        embedding.position.weight[0] = torch.tensor([0.0, 3.0])
        embedding.norm.weight.copy_(torch.tensor([2.0, 3.0]))
        embedding.norm.bias.copy_(torch.tensor([0.5, 0.25]))
    # (1 + 10 + 0, 2 + 0 + 3) = (11, 5), normed (1, -1)
    output = embedding(torch.tensor([[5]]), torch.tensor([[1]]))
    torch.testing.assert_close(output, torch.tensor([[[2.5, -2.75]]]))


def test_robertas_positions_follow_its_padding():
    """Row 1 is padding's; the first token has row 2, wherever padding lies."""
    embedding = BertEmbedding(BertConfig(family="roberta", **SIZES, pad_id=1))
    ids = torch.tensor([[7, 8, 9, 1, 1], [1, 1, 7, 8, 9]])
    assert embedding._positions(ids).tolist() == [[2, 3, 4, 1, 1], [1, 1, 2, 3, 4]]
    assert embedding.config.max_length == 21


def test_padding_changes_nothing(encoder):
    ids = torch.randint(1, 37, (3, 7))
    padded = torch.cat((ids, torch.randint(0, 37, (3, 5))), dim=1)
    mask = torch.tensor([[True] * 7 + [False] * 5] * 3)
    torch.testing.assert_close(encoder(padded, mask).hidden[:, :, :7], encoder(ids).hidden, **CLOSE)
    weights = encoder.attention(padded, mask)
    assert weights.shape == (2, 3, 3, 12, 12)
    assert not weights[..., 7:].any()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 3, 12).double(), **CLOSE)


def test_segments_are_the_first_where_they_are_not_given(encoder):
    ids = torch.randint(1, 37, (3, 7))
    torch.testing.assert_close(encoder(ids).hidden, encoder(ids, None, torch.zeros_like(ids)).hidden, **CLOSE)
    assert not torch.allclose(encoder(ids).hidden, encoder(ids, None, torch.ones_like(ids)).hidden)


def test_what_comes_out(encoder):
    output = encoder(torch.randint(1, 37, (3, 7)), torch.ones(3, 7, dtype=torch.bool))
    assert output.hidden.shape == (3, 3, 7, 21)
    assert output.last is output.states[-1]
    assert output.pooled.shape == (3, 21)
    torch.testing.assert_close(output.pooled, encoder.pooler(output.last[:, 0]).tanh(), **CLOSE)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ((torch.zeros(3, 7),), TypeError, "token_ids must be integers, got torch.float32"),
        ((torch.zeros(7, dtype=torch.int64),), ValueError, r"token_ids must be \(batch, length\), .*, got \(7,\)"),
        ((torch.zeros(3, 0, dtype=torch.int64),), ValueError, r"neither of them 0, got \(3, 0\)"),
        ((torch.full((3, 7), 37),), ValueError, "token_ids must lie in 0 … 36, got 37 … 37"),
        ((torch.full((3, 7), -1),), ValueError, "token_ids must lie in 0 … 36, got -1 … -1"),
        ((torch.zeros(3, 24, dtype=torch.int64),), ValueError, "at most 23 tokens, got 24"),
        ((torch.zeros(3, 7).long(), torch.ones(3, 7).long()), TypeError, r"mask must be bool, .*; write mask.bool\(\)"),
        ((torch.zeros(3, 7).long(), torch.ones(3, 5).bool()), ValueError, r"mask must .*\(3, 7\), got \(3, 5\)"),
        ((torch.zeros(3, 7).long(), None, torch.full((3, 7), 2)), ValueError, "segment_ids must lie in 0 … 1, got 2"),
        ((torch.zeros(3, 7).long(), None, torch.zeros(3, 7)), TypeError, "segment_ids must be integers"),
    ],
)
def test_what_is_refused(encoder, unchecked, arguments, kind, message):
    with pytest.raises(kind, match=message):
        encoder(*arguments)


def test_without_a_tokenizer_sentences_are_refused(encoder):
    with pytest.raises(ValueError, match="made without a tokenizer; load_encoder gives it one"):
        encoder.tokenize(["a"])


def test_embed_refuses_what_it_would_get_wrong(encoder, minilm, unchecked):
    encoder.pooling = Pooling("cls_token")
    with pytest.raises(ValueError, match="takes the mean over tokens, but this model is pooled by cls_token"):
        encoder.embed(["a"])
    with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
        minilm.embed(["a"], batch_size=0)
    with pytest.raises(ValueError, match="at least one text, got none"):
        minilm.embed([])
    with pytest.raises(TypeError, match="must be a list of texts"):
        minilm.embed("a text")


def test_embed_gives_the_same_in_any_company(minilm):
    sentences = ["A dog runs.", "Two children build a large castle of sand at the beach.", "Snow."]
    together = minilm.embed(sentences, batch_size=2)
    for sentence, vector in zip(sentences, together, strict=True):
        torch.testing.assert_close(minilm.embed([sentence])[0], vector, rtol=0.0, atol=1e-6)
    torch.testing.assert_close(together.norm(dim=-1), torch.ones(3))
    longer = minilm.embed(sentences, normalise=False)
    for sentence, vector in zip(sentences, longer, strict=True):  # the mean, whatever padding stands beside it
        mean = minilm(minilm.tokenize([sentence])).last[0].mean(0)
        torch.testing.assert_close(vector, mean, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(longer / longer.norm(dim=-1, keepdim=True), together, rtol=0.0, atol=1e-6)


def test_a_copy_is_independent(minilm):
    copied = copy.deepcopy(minilm)
    with torch.no_grad():
        copied.embedding.token.weight.zero_()
    assert minilm.embedding.token.weight.any()
    assert copied.tokenize(["a dog"]).tokens == minilm.tokenize(["a dog"]).tokens


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"family": "gpt"}, "family must be one of bert, distilbert, roberta, got 'gpt'"),
        ({"num_segments": -1}, "num_segments must be an integer of at least 0, got -1"),
        ({"family": "roberta", "pad_id": 22}, "max_positions must leave room for a token, got 23"),
        ({"d_model": True}, "d_model must be an integer of at least 1, got True"),
    ],
)
def test_a_configuration_that_cannot_be(change, message, unchecked):
    with pytest.raises(ValueError, match=message):
        BertConfig(**{"family": "bert"} | SIZES | change)
