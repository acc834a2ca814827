"""Sentences to ids: what the library of the weights gives, and what is refused."""

import pytest
import torch
from transformers import AutoTokenizer

from course_kit.bert import find_encoder

TEXTS = [
    "Time flies like an arrow; fruit flies like a banana.",
    "UNBELIEVABLE tokenisation, isn't it?",
    "Naïve café, 東京 — ok… 🙂",
    "",
    "  tabs\tand\nlines  ",
    "[SEP] in a sentence",
    "[PAD] in a sentence is a token",
]


@pytest.fixture(scope="module")
def theirs():
    """The same tokenizer in `transformers`."""
    return AutoTokenizer.from_pretrained(find_encoder("all-MiniLM-L6-v2", download=False))


def test_one_pair_by_hand(minilm):
    batch = minilm.tokenize(["Fruit flies"], ["Unbelievable tokenisation!"])
    assert batch.tokens == [["[CLS]", "fruit", "flies", "[SEP]", "unbelievable", "token", "##isation", "!", "[SEP]"]]
    assert batch.token_ids[0, [0, 3, 8]].tolist() == [101, 102, 102]
    assert batch.segment_ids.tolist() == [[0, 0, 0, 0, 1, 1, 1, 1, 1]]
    assert batch.words == [[None, 0, 1, None, 0, 1, 1, 2, None]]
    assert batch.sentences == [[None, 0, 0, None, 1, 1, 1, 1, None]]
    assert batch.mask.all()
    assert len(batch) == 1


@pytest.mark.parametrize("second", [None, TEXTS[::-1]], ids=["singles", "pairs"])
def test_ids_masks_and_segments_are_those_of_transformers(minilm, theirs, second):
    batch = minilm.tokenize(TEXTS, second)
    expected = theirs(TEXTS, second, padding=True, return_tensors="pt")
    assert torch.equal(batch.token_ids, expected["input_ids"])
    assert torch.equal(batch.mask, expected["attention_mask"].bool())
    assert torch.equal(batch.segment_ids, expected["token_type_ids"])
    for row, tokens in enumerate(batch.tokens):
        assert tokens == theirs.convert_ids_to_tokens(batch.token_ids[row][batch.mask[row]])
        assert len(tokens) == len(batch.words[row]) == len(batch.sentences[row])


@pytest.mark.parametrize("second", [None, ["a b c d e"]], ids=["single", "pair"])
def test_what_is_too_long_is_refused_or_cut(minilm, theirs, second):
    texts = ["word " * 600]
    with pytest.raises(ValueError, match=r"sentence 1 must have at most 512 tokens, .*, got 60\d; .* truncate=True"):
        minilm.tokenize(texts, second)
    for limit in (11, 512):
        batch = minilm.tokenize(texts, second, truncate=True, max_length=limit)
        expected = theirs(texts, second, truncation=True, max_length=limit, return_tensors="pt")
        assert torch.equal(batch.token_ids, expected["input_ids"])
    assert minilm.tokenize(texts, truncate=True, max_length=1000).token_ids.shape == (1, 512)
    with pytest.raises(ValueError, match="max_length must be more than the 2 special tokens, got 2"):
        minilm.tokenize(texts, truncate=True, max_length=2)
    assert minilm.tokenize(["a b c"]).token_ids.shape == (1, 5)  # cutting once changes nothing after it


@pytest.mark.parametrize(
    ("sentences", "second", "kind", "message"),
    [
        ("one text", None, TypeError, r"sentences must be a list of texts, got one text; write \['one text'\]"),
        ([], None, ValueError, "sentences must be at least one text, got none"),
        (["a", 3], None, TypeError, "sentences must be texts, got int"),
        (["a"], "b", TypeError, "second must be a list of texts"),
        (["a"], ["b", "c"], ValueError, "each of the 1 sentences needs a second one, got 2"),
    ],
)
def test_what_is_no_list_of_texts(minilm, sentences, second, kind, message, unchecked):
    with pytest.raises(kind, match=message):
        minilm.tokenize(sentences, second)


def test_a_batch_moves(minilm):
    batch = minilm.tokenize(["a b"]).to("meta")
    assert {x.device.type for x in (batch.token_ids, batch.mask, batch.segment_ids)} == {"meta"}
    assert batch.tokens == [["[CLS]", "a", "b", "[SEP]"]]
