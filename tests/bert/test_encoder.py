"""The encoder by itself: a case by hand, what padding and segments do, and what is refused."""

import pytest
import torch
from oracles import CLOSE

from course_kit.bert import BertConfig, BertEncoder
from course_kit.bert.config import Pooling
from course_kit.bert.model import BertEmbedding

SIZES = {
    "vocab_size": 37, "d_model": 21, "num_heads": 3, "num_layers": 2, "d_ff": 29, "max_positions": 23, "num_segments": 2
}  # fmt: skip


@pytest.fixture
def encoder():
    """A random BERT without a tokenizer, in float64."""
    return BertEncoder(BertConfig(family="bert", **SIZES)).double().eval()


def test_robertas_positions_follow_its_padding():
    """Row 1 is padding's; the first token has row 2, wherever padding lies."""
    embedding = BertEmbedding(BertConfig(family="roberta", **SIZES, pad_id=1))
    ids = torch.tensor([[7, 8, 9, 1, 1], [1, 1, 7, 8, 9]])
    assert embedding._positions(ids).tolist() == [[2, 3, 4, 1, 1], [1, 1, 2, 3, 4]]
    assert embedding.config.max_length == 21


def test_padding_changes_nothing(encoder):
    ids, padding = torch.randint(1, 37, (3, 7)), torch.randint(0, 37, (3, 5))
    mask = torch.tensor([[True] * 7 + [False] * 5] * 3)
    padded = encoder(torch.cat((ids, padding), dim=1), mask).hidden[:, :, :7]
    torch.testing.assert_close(padded, encoder(ids).hidden, **CLOSE)


def test_segments_are_the_first_where_they_are_not_given_and_what_comes_out(encoder):
    ids = torch.randint(1, 37, (3, 7))
    output = encoder(ids)
    torch.testing.assert_close(output.hidden, encoder(ids, None, torch.zeros_like(ids)).hidden, **CLOSE)
    assert not torch.allclose(output.hidden, encoder(ids, None, torch.ones_like(ids)).hidden)
    assert output.hidden.shape == (3, 3, 7, 21)
    assert output.last is output.states[-1]
    torch.testing.assert_close(output.pooled, encoder.pooler(output.last[:, 0]).tanh(), **CLOSE)


IDS = torch.zeros(3, 7, dtype=torch.int64)


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ([IDS.float()], TypeError, "token_ids must be integers, got torch.float32"),
        ([IDS[0]], ValueError, r"token_ids must be \(batch, length\), .*, got \(7,\)"),
        ([IDS[:, :0]], ValueError, r"neither of them 0, got \(3, 0\)"),
        ([IDS + 37], ValueError, "token_ids must lie in 0 … 36, got 37 … 37"),
        ([IDS - 1], ValueError, "token_ids must lie in 0 … 36, got -1 … -1"),
        ([IDS.repeat(1, 4)[:, :24]], ValueError, "at most 23 tokens, got 24"),
        ([IDS, IDS + 1], TypeError, r"mask must be bool, .*; write mask.bool\(\)"),
        ([IDS, IDS[:, :5].bool()], ValueError, r"mask must .*\(3, 7\), got \(3, 5\)"),
        ([IDS, None, IDS + 2], ValueError, "segment_ids must lie in 0 … 1, got 2"),
        ([IDS, None, IDS.float()], TypeError, "segment_ids must be integers"),
    ],
)
def test_what_is_refused(encoder, unchecked, arguments, kind, message):
    with pytest.raises(kind, match=message):
        encoder(*arguments)


def test_embed_refuses_what_it_would_get_wrong(encoder, minilm, unchecked):
    encoder.pooling = Pooling("cls_token")
    with pytest.raises(ValueError, match="takes the mean over tokens, but this model is pooled by cls_token"):
        encoder.embed(["a"])
    with pytest.raises(ValueError, match="made without a tokenizer; load_encoder gives it one"):
        encoder.tokenize(["a"])
    for sentences, batch_size, kind, message in (
        (["a"], 0, ValueError, "batch_size must be at least 1, got 0"),
        ([], 32, ValueError, "at least one text, got none"),
        ("a text", 32, TypeError, "must be a list of texts"),
    ):
        with pytest.raises(kind, match=message):
            minilm.embed(sentences, batch_size=batch_size)


def test_without_normalising_a_vector_is_the_mean_whatever_padding_is_beside_it(minilm):
    sentences = ["A dog runs.", "Two children build a large castle of sand at the beach."]
    for sentence, vector in zip(sentences, minilm.embed(sentences, normalise=False), strict=True):
        mean = minilm(minilm.tokenize([sentence])).last[0].mean(0)
        torch.testing.assert_close(vector, mean, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_layers": 1001}, "num_layers must be an integer of at most 1000, got 1001"),
        ({"d_model": True}, "d_model must be an integer of at least 1, got True"),
        ({"num_heads": 4}, "num_heads must divide d_model, got 4 for d_model = 21"),
        ({"pad_id": 37}, "pad_id must be a token of the vocabulary, 0 … 36, got 37"),
        ({"activation": []}, r"activation must be one of gelu, .*, got \[\]"),
        ({"norm_eps": 0}, "norm_eps must be positive and finite, got 0"),
        ({"dropout": 1.0}, r"dropout must be a probability in \[0, 1\), got 1.0"),
        ({"family": "roberta", "pad_id": 22}, "max_positions must leave room for a token, got 23"),
    ],
)
def test_a_configuration_that_cannot_be(change, message, unchecked):
    with pytest.raises(ValueError, match=message):
        BertConfig(**{"family": "bert"} | SIZES | change)
