"""The files of an exercise: beside `causal_mask.py` lie `causal_mask.md` and `causal_mask_mistakes.md`.

The page of an exercise is Markdown that a person edits:

    # Hiding the future with a causal mask

    A model that predicts the next token must not see it. …

    ## Hint

    Draw it for three tokens: which keys may the first query attend to, and which the last?

    ## Hint

    The allowed pairs form a triangle, diagonal included. …

The heading is the title, what follows it the statement, and each hint has a heading of its own.
"""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["text_of", "texts_next_to"]

_HINT = re.compile(r"^## Hint *$", re.MULTILINE)


def texts_next_to(file: str) -> dict:
    """What the place of an exercise's file says of it: title, statement, hints, chapter, files of mistakes and clauses.

    Args:
        file: `__file__` of the exercise.

    Raises:
        FileNotFoundError: the exercise has no page.
        ValueError: the page has no title, no statement or an empty hint.
    """
    path = Path(file)
    page = path.with_suffix(".md")
    if not page.exists():
        raise FileNotFoundError(f"expected title, statement and hints of {path.name} in {page.name} beside it")
    return {
        **text_of(page.read_text(encoding="utf-8"), page.name),
        "chapter": path.parent.name,
        "mistakes": path.with_name(f"{path.stem}_mistakes.md"),
        "clauses": path.with_name(f"{path.stem}_clauses.md"),
    }


def text_of(text: str, name: str) -> dict:
    """Title, statement and hints from the text of an exercise's page.

    Lines of a hint's paragraph are joined, since hints are shown in cells and terminals, which wrap by themselves.

    Args:
        text: of the page.
        name: of the file, for messages.

    Raises:
        ValueError: there is no title, no statement, or an empty hint, or a heading that is none of these.
    """
    first, _, rest = text.partition("\n")
    if not re.match(r"# \S", first):
        raise ValueError(f"{name}: expected the title as first line, '# Title', got {first[:60]!r}")
    statement, *hints = (part.strip("\n") for part in _HINT.split(rest))
    if not statement.strip():
        raise ValueError(f"{name}: expected the statement below the title")
    for number, part in enumerate((statement, *hints)):
        where = f"hint {number}" if number else "the statement"
        if not part.strip():
            raise ValueError(f"{name}: {where} is empty")
        heading = re.search(r"^#+ .*", part, re.MULTILINE)
        if heading:
            raise ValueError(f"{name}: expected '## Hint' as the only heading below the title, got {heading[0]!r}")
    return {"title": first[2:].strip(), "statement": statement, "hints": tuple(map(_joined, hints))}


def _joined(hint: str) -> str:
    return re.sub(r"(?<!\n)\n(?!\n)", " ", hint)
