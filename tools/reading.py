"""How much of a page is prose: what a reader reads, without code, exercises, questions and folded text."""

from __future__ import annotations

import re

__all__ = ["CORE_WORDS", "prose_words"]

CORE_WORDS = 3000  # a chapter's page is read in one sitting; what goes further has a page under book/deeper

_HEADER = re.compile(r"\A---\n.*?^---$", re.MULTILINE | re.DOTALL)
# Blocks that are looked at, done or opened, but not read from top to bottom.
_NOT_READ = re.compile(
    r"^(?P<fence>`{3,}|:{3,})"
    r"(?:\{(?:code-cell|exercise|question|dropdown|literalinclude|raw|math|bibliography)\}|\{admonition\}[^\n]*\n:class:[^\n]*dropdown|python|text)"
    r".*?^(?P=fence)[ ]*$",
    re.MULTILINE | re.DOTALL,
)
_MATHS = re.compile(r"^\$\$.*?^\$\$[^\n]*$|\$[^$\n]+\$", re.MULTILINE | re.DOTALL)
_MARKS = re.compile(r"^\([\w-]+\)=$|^:[\w-]+:.*$|^[`:]{3,}(?:\{[\w:-]+\})?|<[^<>]*>|\{[\w:]+\}", re.MULTILINE)


def prose_words(source: str) -> int:
    """Words of a page's source that are read; a formula in a sentence counts as one word."""
    text = _NOT_READ.sub("", _HEADER.sub("", source))
    text = _MATHS.sub(lambda match: "" if match[0].startswith("$$") else "formula", text)
    return len(re.findall(r"[^\W_]+(?:['’\-.,/][^\W_]+)*", _MARKS.sub("", text)))
