"""How long a page takes: prose, visible code, figures and views that are read, and exercises that are written.

    python -m tools.reading [PAGE …]     words and minutes of pages (book/attention.md), of all pages if none is named

Prose is what a reader reads from top to bottom, without code, exercises, questions and folded text.
"""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

import yaml
from markdown_it.token import Token

from tools.exercise_sections import exercises_of
from tools.myst import blocks, in_line, titled

__all__ = ["CORE_MINUTES", "CORE_WORDS", "exercise_minutes", "prose_words", "reading_minutes", "with_times"]

# A chapter's page is read and worked through in one sitting; what goes further has a page under book/deeper.
CORE_WORDS = 3000
CORE_MINUTES = 75
# Fitted to the times of two readers of all chapters; 9 of 11 chapters come within 15 %.
WORDS_PER_MINUTE = 130  # slower than a novel, since formulas stand between the words
CODE_LINES_PER_MINUTE = 10
MINUTES_PER_FIGURE = 1.5
MINUTES_PER_VIEW = 3  # with the guess before it is touched

# Blocks that are looked at, done or opened, but not read from top to bottom.
_NOT_READ = ("code-cell", "exercise", "question", "dropdown", "literalinclude", "raw", "math", "bibliography")
_FOLDED = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
_WORD = re.compile(r"[^\W_]+(?:['’\-.,/][^\W_]+)*")


def prose_words(source: str) -> int:
    """Words of a page's source that are read; a formula in a sentence counts as one word."""
    count = 0
    for block in blocks(source):
        if block.kind == "text":
            count += len(_WORD.findall(" ".join(map(_as_read, in_line(block.source)))))
        elif block.kind == "directive" and not (
            block.name in _NOT_READ or "dropdown" in block.options.get("class", "")
        ):
            count += prose_words(f"{block.argument}\n\n{block.body}")
    return count


def _as_read(token: Token) -> str:
    if token.type == "math_inline":
        return "formula"
    if token.type == "myst_role":
        title, target = titled(token.content)
        return title or target
    return token.content if token.type in {"text", "code_inline"} else ""


def code_lines(source: str) -> int:
    """Lines of code that a reader of the page sees: those of folded cells and empty ones do not count."""
    count = 0
    for block in blocks(source):
        if block.is_directive("code-cell"):
            tags = block.options.get("tags", [])
            if not _FOLDED & set(yaml.safe_load(tags) if isinstance(tags, str) else tags):
                count += sum(bool(line.strip()) for line in block.body.split("\n"))
    return count


def figures_and_views(source: str) -> tuple[int, int]:
    """How many figures a page's source draws, and how many views it asks a question about."""
    cells = [block.body for block in blocks(source) if block.is_directive("code-cell")]
    return sum("plt.show()" in cell for cell in cells), source.count("*Before you touch the view")


def reading_minutes(source: str) -> int:
    """Minutes for the prose, the visible code, the figures and the views of a page's source, rounded up."""
    figures, views = figures_and_views(source)
    looking = figures * MINUTES_PER_FIGURE + views * MINUTES_PER_VIEW
    return math.ceil(prose_words(source) / WORDS_PER_MINUTE + code_lines(source) / CODE_LINES_PER_MINUTE + looking)


def exercise_minutes(source: str) -> int:
    """Minutes for the exercises of a page's source, as the exercises state them."""
    return sum(exercise.minutes for exercise in exercises_of(source))


def with_times(source: str, standing: str) -> str:
    """The source with a line below its title: where the page stands in the course, and its minutes."""
    exercises = exercise_minutes(source)
    more = f", {_plural(exercises)} of exercises" if exercises else ""
    line = f"*{standing}: {_plural(reading_minutes(source))} to read{more}*"
    title = re.search(r"^# .+\n", source, re.MULTILINE)
    return f"{source[: title.end()]}\n{line}\n{source[title.end() :]}" if title else source


def _plural(minutes: int) -> str:
    return f"{minutes} minute{'s' * (minutes != 1)}"


def main() -> None:
    """Command line; see the module's docstring."""
    from tools.pages import notebook_pages

    paths = [Path(name).with_suffix(".md") for name in sys.argv[1:]] or [page.source for page in notebook_pages()]
    for path in paths:
        source = path.read_text(encoding="utf-8")
        reading, exercises = reading_minutes(source), exercise_minutes(source)
        print(
            f"{path.stem:26} {prose_words(source):5,} words, {code_lines(source):3} lines of code: "
            f"{reading:3} min to read + {exercises:3} min of exercises = {reading + exercises:3} min"
        )


if __name__ == "__main__":
    main()
