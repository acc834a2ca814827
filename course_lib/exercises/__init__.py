"""The exercises of the course, a module a chapter. `find` gives one by its name."""

from __future__ import annotations

import importlib
from difflib import get_close_matches
from functools import cache

from course_lib.exercises._draw import Draw
from course_lib.exercises._exercise import Case, Exercise, Misconception, Property

__all__ = ["STEMS", "Case", "Draw", "Exercise", "Misconception", "Property", "all_exercises", "find"]

# Reading order.
STEMS = (
    "attention",
    "scaled_dot_product",
    "multi_head",
    "masking",
    "positional_encoding",
    "transformer",
    "training",
    "decoding",
    "inspection",
)


@cache
def all_exercises() -> dict[str, Exercise]:
    """Every exercise by its name, in reading order: whatever a stem's module defines at its top level."""
    found: dict[str, Exercise] = {}
    for stem in STEMS:
        module = importlib.import_module(f"course_lib.exercises.{stem}")
        for exercise in list(vars(module).values()):
            if isinstance(exercise, Exercise):
                if exercise.name in found:
                    raise ValueError(f"two exercises are called {exercise.name!r}")
                found[exercise.name] = exercise
    return found


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
