"""The sentences with words of two senses."""

import re

import pytest

from course_kit.data.senses import SENSES

SENTENCES = [
    (word, sense, text) for word, senses in SENSES.items() for sense, texts in senses.items() for text in texts
]


def test_each_word_has_two_senses_with_six_sentences_each():
    assert len(SENSES) == 11
    for senses in SENSES.values():
        assert [len(texts) for texts in senses.values()] == [6, 6]


@pytest.mark.parametrize(("word", "sense", "text"), SENTENCES)
def test_the_word_stands_once_in_each_sentence(word, sense, text):
    assert re.findall(r"[a-z]+", text.lower()).count(word) == 1, sense


def test_no_sentence_stands_twice():
    assert len({text for _, _, text in SENTENCES}) == len(SENTENCES)
