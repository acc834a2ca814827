"""The clauses of the exercise contract, each with wrong solutions that break just this one.

`clauses/<stem>.py` holds them: every function or class under `@breaks(exercise, clause)` is a complete solution that
is right in everything but the clause. `tools/clause_table.py` makes the table of the page for instructors from them,
and a test checks that each is refused.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from course_lib.exercises import STEMS

__all__ = ["Breach", "breaches", "breaks"]


@dataclass(frozen=True)
class Breach:
    """A solution that breaks one clause.

    Args:
        exercise: name of the exercise.
        clause: the clause, in the words of the contract ("a fully masked row is all zeros").
        solution: the function or class.
    """

    exercise: str
    clause: str
    solution: Callable


_BREACHES: list[Breach] = []


def breaks(exercise: str, clause: str) -> Callable[[Callable], Callable]:
    """Decorator of a solution that breaks this clause of this exercise, and nothing else."""

    def add(solution: Callable) -> Callable:
        _BREACHES.append(Breach(exercise, clause, solution))
        return solution

    return add


def breaches() -> list[Breach]:
    """All of them, by chapter, in the order in which they are written."""
    for stem in STEMS:
        importlib.import_module(f"clauses.{stem}")
    return list(_BREACHES)
