"""The text that the chapter on language models learns from."""

import hashlib

from course_kit.data.course_prose import PATH, course_prose


def test_every_tenth_page_is_held_out():
    train, val = course_prose()
    assert (len(train), len(val)) == (67, 8)
    assert not set(train) & set(val)
    assert sum(map(len, train)) > 8 * sum(map(len, val))


def test_documents_are_paragraphs_of_plain_letters():
    for documents in course_prose():
        assert "".join(documents).isascii()
        assert all(line.count(" ") >= 3 for document in documents for line in document.split("\n"))


def test_the_text_is_frozen():
    """The results on the page belong to this text."""
    assert hashlib.sha256(PATH.read_bytes()).hexdigest()[:16] == "a8140a68a20b35b7"
