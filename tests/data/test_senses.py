"""The sentences with words of two senses."""

import re

from course_kit.data.senses import SENSES


def test_each_word_has_two_senses_with_six_sentences_each_in_which_it_stands_once():
    assert len(SENSES) == 11
    for word, senses in SENSES.items():
        assert [len(texts) for texts in senses.values()] == [6, 6]
        for text in (text for texts in senses.values() for text in texts):
            assert re.findall(r"[a-z]+", text.lower()).count(word) == 1, text
    assert len({text for senses in SENSES.values() for texts in senses.values() for text in texts}) == 11 * 12
