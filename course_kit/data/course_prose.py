"""The prose of the course's own pages, as a text that a small language model can learn from."""

from __future__ import annotations

from pathlib import Path

from course_kit._files import read_whole

__all__ = ["course_prose"]

PATH = Path(__file__).parent / "course_prose.txt"
SEPARATOR = "\n\n"


def course_prose() -> tuple[list[str], list[str]]:
    """Pages of this book without code, formulas and tables: those to train on, and every tenth for validation.

    A page is a document of many paragraphs, one per line. All characters are ASCII. The file is frozen: it does not
    change when a page does.

    Returns:
        The documents for training, and those for validation.

    Source: the pages of this book as of November 2026, CC BY 4.0.
    """
    documents = read_whole(PATH).decode("ascii").strip().split(SEPARATOR)
    held_out = documents[4::10]
    return [each for number, each in enumerate(documents) if number % 10 != 4], held_out
