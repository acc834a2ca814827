"""Long text and long lists, cut where a reader can see it: between words, with a count of what is left out."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["listed", "shortened"]


def shortened(text: str, most: int) -> str:
    """The text, or its beginning up to the end of a word and how much is left out.

    Args:
        text: one line or several.
        most: characters that may be kept.
    """
    if len(text) <= most:
        return text
    ends = [match.end() for match in re.finditer(r"\S+", text[: most + 1]) if match.end() <= most]
    kept = text[: ends[-1] if ends else 0]
    left = len(text) - len(kept)
    return f"{kept} … ({left:,} more characters)".lstrip()


def listed(items: Sequence[str], most: int = 6) -> str:
    """Items separated by commas, and how many more there are; one more takes as little room as saying so."""
    rest = len(items) - most
    return ", ".join(items) if rest <= 1 else f"{', '.join(items[:most])} … and {rest} more"
