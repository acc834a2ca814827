"""Text from outside, made fit to be shown: bounded, in one piece, without control characters."""

from __future__ import annotations

import os
import re
import unicodedata
from functools import lru_cache

__all__ = ["clean", "clipped", "readable"]

LONGEST_NAME = 200  # characters of a file's name
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{4,}")


def clean(text: str, longest: int, *, lines: bool = False) -> str:
    """A text of bounded length, without control characters and memory addresses.

    Args:
        text: what came.
        longest: characters that are kept.
        lines: whether it may have several lines.
    """
    text = _ADDRESS.sub("0x…", text[: 4 * longest])
    text = "".join(c if c.isprintable() or (c == "\n" and lines) else "\N{REPLACEMENT CHARACTER}" for c in text)
    return clipped(text, longest)


def clipped(text: str, longest: int) -> str:
    """The beginning of a text: it ends after a whole word, unless one word is as long as half of what is kept."""
    if len(text) <= longest:
        return text
    kept = text[: longest - 1]
    if not text[longest - 1].isspace():
        before = re.match(r"(.*)\s", kept, re.DOTALL)
        if before and len(before[1]) >= longest // 2:
            kept = before[1]
    return kept.rstrip() + "…"


@lru_cache(maxsize=1024)  # the folders of a class are the same for all of its files
def readable(name: str) -> str:
    """The name of a file as text: names may hold bytes that are not text, and may be composed in two ways."""
    text = os.fsencode(name).decode("utf-8", "replace")
    return clean(unicodedata.normalize("NFC", text), LONGEST_NAME)
