"""Tokens as pictures show them: without the sign of the space before a word."""

from __future__ import annotations

from collections.abc import Iterable

from course_kit._checks import check_instance

__all__ = ["readable"]

_SPACE = "▁"


def readable(token: str) -> str:
    """A token of `Vocabulary.tokens` without its sign for a space.

    "▁dogs" becomes "dogs". A piece that continues a word gets a +, such as "+s". Punctuation and special tokens
    (`<eos>`, `[SEP]`) stay as they are.

    Raises:
        TypeError: token is not a text.
    """
    check_instance(str, token=token)
    if token.startswith(_SPACE):
        return token[1:] or "(space)"
    if token[:1] in "<[" or not any(map(str.isalnum, token)):
        return token
    return "+" + token


def readable_labels(labels: Iterable[object]) -> list[str]:
    """Labels as pictures show them: where one of them has the sign for a space, all are tokens of a vocabulary."""
    texts = [str(label) for label in labels]
    if any(text.startswith(_SPACE) for text in texts):
        return [readable(text) for text in texts]
    # the + of a continued word is of no use before punctuation
    return [text[1:] if text[:1] == "+" and text[1:] and readable(text[1:]) == text[1:] else text for text in texts]
