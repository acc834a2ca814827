"""From an exercise to its section in a page.

A page says where an exercise stands:

    ```{exercise} softmax
    ```

and `{exercise-list}` becomes tables of all exercises with links. Everything else comes from
`course_kit.exercises`. The book gets hints and solution folded away; the notebook gets the calls that show them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

from course_kit.exercises import Exercise, all_exercises, find
from tools.myst import blocks, replaced

__all__ = ["exercises_of", "expand", "fold", "in_notebook", "sources_of"]


def expand(text: str) -> str:
    """The page with a section for each exercise that it names: heading, statement, stub, check, and a place for
    help."""
    text = replaced(text, "exercise", lambda block: section(find(block.argument)))
    return replaced(text, "exercise-list", lambda _block: exercise_list()) if "{exercise-list}" in text else text


def exercise_list() -> str:
    """A table per chapter with its exercises in reading order, each with a link to its section, as MyST."""
    tables = []
    for chapter, exercises in groupby(all_exercises().values(), key=lambda exercise: exercise.chapter):
        rows = [
            f"| {{ref}}`{exercise.title} <{_label(exercise)}>`: `{exercise.name}` "
            f"| {exercise.difficulty} of 5 | {exercise.minutes} |"
            for exercise in exercises
        ]
        tables.append(
            "\n".join([f"{{doc}}`{chapter}`\n", "| exercise | difficulty | minutes |", "|---|---|---|", *rows])
        )
    return "\n\n".join(tables)


def _label(exercise: Exercise) -> str:
    return f"exercise-{exercise.name.lower().replace('_', '-')}"


def section(exercise: Exercise) -> str:
    """The section of one exercise, as MyST."""
    return "\n".join(
        [
            f"({_label(exercise)})=",
            f"### {exercise.title}",
            "",
            f"*`{exercise.name}`: difficulty {exercise.difficulty} of 5, about {exercise.minutes} minutes*",
            "",
            exercise.statement.rstrip(),
            "",
            "```{code-cell} ipython3",
            exercise.stub.rstrip(),
            "```",
            "",
            "```{code-cell} ipython3",
            f"check({exercise.name})",
            "```",
            "",
            f"```{{exercise-help}} {exercise.name}",
            "```",
        ]
    )


def fold(text: str, where: Callable[[Exercise], str] = lambda _exercise: "") -> str:
    """For the book: where the exercise is done, and hints and solution as dropdowns.

    Args:
        text: a page with exercises in full.
        where: HTML that says where a reader does this exercise.
    """
    return replaced(text, "exercise-help", lambda block: _folded(find(block.argument), where))


def _folded(exercise: Exercise, where: Callable[[Exercise], str]) -> str:
    parts = [f"{where(exercise)}\n"]
    for number, hint in enumerate(exercise.hints, 1):
        parts.append(f"```{{dropdown}} Hint {number}\n:class-container: hint\n{hint}\n```\n")
    code = exercise.solution.rstrip()
    parts.append(f"````{{dropdown}} A solution\n```python\n{code}\n```\n````")
    return "\n".join(parts)


def in_notebook(name: str) -> str:
    """For the notebook: how to get hints and solution."""
    count = len(find(name).hints)
    return f'`hint("{name}")` gives one of {count} hints at a time, `solution("{name}")` a solution.'


def exercises_of(text: str) -> list[Exercise]:
    """The exercises that a page's source names, in order."""
    return [find(block.argument) for block in blocks(text) if block.is_directive("exercise")]


def sources_of(text: str) -> set[Path]:
    """The files that the sections of a page come from."""
    found = set()
    for exercise in exercises_of(text):
        written = Path(inspect.getfile(exercise.properties[0].cases))
        found |= {written, written.with_suffix(".md")}
        found.add(Path(inspect.getfile(inspect.unwrap(exercise.reference))))
    return found
