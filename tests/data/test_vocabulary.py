"""Subwords: what is learned, that text comes back, and random spellings that come from a seed."""

import random
from collections import Counter

import pytest
from tokenizers import Tokenizer, models

from course_kit.data import Vocabulary, built_in_corpus

TEXT = ["low lower lowest", "new newer newest", "wide wider widest", "low new wide"] * 3


@pytest.fixture(scope="module")
def captions():
    corpus = built_in_corpus(num_train=600, num_held_out=50)
    return corpus, Vocabulary.learn(corpus.sentences("train"), 400)


def test_the_most_frequent_pair_is_merged_first():
    """By hand: in "▁xab ▁yab ▁zab" the pair a–b stands three times, each other pair once."""
    vocabulary = Vocabulary.learn(["xab yab zab"], 11)
    assert vocabulary.tokens(range(4)) == ["<pad>", "<bos>", "<eos>", "<unk>"]
    assert sorted(vocabulary.tokens(range(4, 10))) == sorted("abxyz▁")
    assert vocabulary.tokens([10]) == ["ab"]
    assert vocabulary.tokens(vocabulary.encode("xab b")) == ["▁", "x", "ab", "▁", "b"]


def test_text_comes_back(captions):
    corpus, vocabulary = captions
    for sentence in corpus.sentences("val"):
        assert vocabulary.decode(vocabulary.encode(sentence)) == sentence


def test_rare_words_fall_into_parts_and_frequent_ones_do_not(captions):
    corpus, vocabulary = captions
    words = Counter(word for sentence in corpus.sentences("train") for word in sentence.rstrip(".").split())
    often = [word for word, _ in words.most_common(10)]
    assert all(len(vocabulary.encode(word)) == 1 for word in often)
    assert len(vocabulary.encode("Quarkstrudel")) > 3


def test_unknown_characters_are_unknown_not_lost(captions):
    _, vocabulary = captions
    ids = vocabulary.encode("ein 犬")
    assert ids.count(vocabulary.unk_id) == 1
    assert vocabulary.decode(ids) == "ein <unk>"


def test_all_at_once_is_one_by_one_and_a_random_spelling_without_dropout_the_librarys(captions):
    """Our merging against that of `tokenizers`, on every sentence."""
    corpus, vocabulary = captions
    sentences = [*corpus.sentences("train"), "Ungesehene Wörter, 犬 und so weiter!"]
    expected = [vocabulary.encode(sentence) for sentence in sentences]
    assert vocabulary.encode_all(sentences) == expected
    assert vocabulary.encode_all_at_random(sentences, 0.0, random.Random(0)) == expected


def test_letters_written_as_two_characters_are_one_token_in_random_spellings_too(captions):
    """An ä may come as one character, or as an a and two dots; the vocabulary has it as one."""
    _, vocabulary = captions
    one, two = ["Ein Mädchen läuft."], ["Ein Ma\u0308dchen la\u0308uft."]
    assert vocabulary.encode_all(one) == vocabulary.encode_all(two)
    assert vocabulary.encode_all_at_random(two, 0.0, random.Random(0)) == vocabulary.encode_all(one)


def test_random_spellings_differ_and_say_the_same(captions):
    corpus, vocabulary = captions
    sentences = list(corpus.sentences("train"))
    spelled = vocabulary.encode_all_at_random(sentences, 0.2, random.Random(0))
    assert [vocabulary.decode(ids) for ids in spelled] == sentences
    assert sum(map(len, spelled)) > 1.1 * sum(map(len, vocabulary.encode_all(sentences)))
    assert spelled == vocabulary.encode_all_at_random(sentences, 0.2, random.Random(0))
    assert spelled != vocabulary.encode_all_at_random(sentences, 0.2, random.Random(1))


def test_a_word_has_up_to_eight_spellings_in_an_epoch_and_others_in_the_next(captions):
    _, vocabulary = captions
    rng = random.Random(0)
    epochs = [Counter(map(tuple, vocabulary.encode_all_at_random(["Fahrradfahrer"] * 400, 0.5, rng))) for _ in range(2)]
    for spellings in epochs:
        assert 4 <= len(spellings) <= 8
        assert max(spellings.values()) < 200
    assert set(epochs[0]) != set(epochs[1])


def test_a_merge_is_dropped_as_often_as_stated():
    """Two letters and one merge: the share of words in two parts is the probability."""
    vocabulary = Vocabulary.learn(["ab ab ab"], 8)
    (merged,) = vocabulary.tokens([7])  # the only one
    rng = random.Random(0)
    split = [len(vocabulary._merge_at_random(merged, 0.3, rng)) == 2 for _ in range(10_000)]
    assert abs(sum(split) / len(split) - 0.3) < 0.015


def test_special_tokens_in_a_text_are_text(captions):
    """Otherwise a sentence could end itself, or hide its words as padding."""
    _, vocabulary = captions
    for text in ("ein <eos> Hund", "<pad>", "<bos>ein"):
        ids = vocabulary.encode(text)
        assert not {0, 1, 2} & set(ids)
        assert [ids] == vocabulary.encode_all_at_random([text], 0.0, random.Random(0))


def test_it_is_saved_and_loaded(captions, tmp_path):
    corpus, vocabulary = captions
    vocabulary.save(tmp_path / "v.json")
    again = Vocabulary.load(tmp_path / "v.json")
    sentence = corpus["val"][0][0]
    assert again.encode(sentence) == vocabulary.encode(sentence)
    assert len(again) == len(vocabulary) == 400
    assert repr(again) == "Vocabulary(400 tokens)"


def test_errors(tmp_path):
    vocabulary = Vocabulary.learn(TEXT, 25)
    (tmp_path / "other.json").write_text('{"a": 1}')
    rng = random.Random(0)
    for call, message in (
        (
            lambda: Vocabulary.learn(TEXT, 500),
            r"size must not exceed .* got 500 with text for .* no more pairs .* ask for",
        ),
        (lambda: Vocabulary.learn(TEXT, 6), r"got 6 with text for 1. tokens: single characters alone are as many"),
        (lambda: vocabulary.tokens([5, 99]), "token ids must lie in 0 … 24, got 99"),
        (
            lambda: vocabulary.encode_all_at_random(TEXT, 1.0, rng),
            r"dropout must be a probability in \[0, 1\), got 1.0",
        ),
        (lambda: Vocabulary.load(tmp_path / "other.json"), r"text must be a vocabulary as Vocabulary\.save writes it"),
        (lambda: Vocabulary(Tokenizer(models.BPE())), "must begin with <pad>, <bos>, <eos>, <unk>, got their ids"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
