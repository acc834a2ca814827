"""The exercises of the course: one folder per chapter, four files per exercise. `find` gives one by its name."""

from __future__ import annotations

import importlib
from difflib import get_close_matches
from functools import cache

from course_kit.chapters import STEMS
from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise, Misconception, Property

__all__ = ["STEMS", "Case", "Draw", "Exercise", "Misconception", "Property", "all_exercises", "find"]


@cache
def all_exercises() -> dict[str, Exercise]:
    """Every exercise by its name, in reading order: those that a chapter's package lists in `EXERCISES`."""
    found: dict[str, Exercise] = {}
    for stem in STEMS:
        for exercise in _of_chapter(stem):
            if exercise.name in found:
                raise ValueError(f"two exercises are called {exercise.name!r}")
            found[exercise.name] = exercise
    return found


def _of_chapter(stem: str) -> list[Exercise]:
    names = importlib.import_module(f"course_kit.exercises.{stem}").EXERCISES
    return [importlib.import_module(f"course_kit.exercises.{stem}.{name}").exercise for name in names]


def find(name: str) -> Exercise:
    """The exercise of that name.

    Raises:
        KeyError: there is none; the message names similar ones.
    """
    exercises = all_exercises()
    if name not in exercises:
        similar = get_close_matches(name, exercises, n=3, cutoff=0.5)
        meant = f" Did you mean {' or '.join(similar)}?" if similar else ""
        raise KeyError(
            f"expected the name of an exercise, got {name!r}.{meant} `progress()` or `course-lib list` shows all names."
        )
    return exercises[name]
