"""How long a page takes: the prose that is read, the code that is shown, and the exercises that are written.

    python -m tools.reading [PAGE …]     words and minutes of pages (book/attention.md), of all pages if none is named

Prose is what a reader reads from top to bottom, without code, exercises, questions and folded text.
"""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

from course_lib.exercises import find

__all__ = ["CORE_MINUTES", "CORE_WORDS", "exercise_minutes", "prose_words", "reading_minutes", "with_times"]

# A chapter's page is read and worked through in one sitting; what goes further has a page under book/deeper.
CORE_WORDS = 3000
CORE_MINUTES = 75
# Slower than a novel (about 240 words a minute), since formulas and figures stand between the words.
WORDS_PER_MINUTE = 150
CODE_LINES_PER_MINUTE = 10

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
_CODE = re.compile(r"^```\{code-cell\}[^\n]*\n(?P<cell>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
_CELL_HEADER = re.compile(r"\A(?:---\n.*?^---\n|(?::[\w-]+:[^\n]*\n)+)", re.MULTILINE | re.DOTALL)
_HIDDEN = re.compile(r"hide-input|hide-cell|remove-input|remove-cell")
_EXERCISE = re.compile(r"^```\{exercise\} *(\w+) *$", re.MULTILINE)
_TITLE = re.compile(r"^# .+\n", re.MULTILINE)


def prose_words(source: str) -> int:
    """Words of a page's source that are read; a formula in a sentence counts as one word."""
    text = _NOT_READ.sub("", _HEADER.sub("", source))
    text = _MATHS.sub(lambda match: "" if match[0].startswith("$$") else "formula", text)
    return len(re.findall(r"[^\W_]+(?:['’\-.,/][^\W_]+)*", _MARKS.sub("", text)))


def code_lines(source: str) -> int:
    """Lines of code that a reader of the page sees: those of folded cells and empty ones do not count."""
    count = 0
    for match in _CODE.finditer(source):
        header = _CELL_HEADER.match(match["cell"])
        if not (header and _HIDDEN.search(header[0])):
            code = match["cell"][header.end() if header else 0 :]
            count += sum(bool(line.strip()) for line in code.split("\n"))
    return count


def reading_minutes(source: str) -> int:
    """Minutes for the prose and the visible code of a page's source, rounded up."""
    return math.ceil(prose_words(source) / WORDS_PER_MINUTE + code_lines(source) / CODE_LINES_PER_MINUTE)


def exercise_minutes(source: str) -> int:
    """Minutes for the exercises of a page's source, as the exercises state them."""
    return sum(find(name).minutes for name in _EXERCISE.findall(source))


def with_times(source: str) -> str:
    """The source with the line on minutes below its title."""
    exercises = exercise_minutes(source)
    line = f"*{_plural(reading_minutes(source))} to read{f', {_plural(exercises)} of exercises' if exercises else ''}*"
    return _TITLE.sub(lambda match: f"{match[0]}\n{line}\n", source, count=1)


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
