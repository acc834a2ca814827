"""Remarks on a right solution, based on its source. They cost no points."""

from __future__ import annotations

import ast
import contextlib
import inspect
from collections.abc import Callable, Iterable

from course_kit.checker.verdict.in_source import nodes_of
from course_kit.exercises import Exercise

__all__ = ["remarks_on", "source_of"]


def remarks_on(exercise: Exercise, sources: Iterable[str]) -> tuple[str, ...]:
    """The exercise's remarks that apply to a solution.

    Args:
        exercise: what was solved.
        sources: the code of the solution, in one text or several.
    """
    if not exercise.remarks:
        return ()
    called = frozenset(name for source in sources for name in _called(source))
    return tuple(remark.message for remark in exercise.remarks if remark.applies(called))


def source_of(solution: Callable) -> list[str]:
    """The source of a function or class in this process; nothing where Python has none."""
    with contextlib.suppress(OSError, TypeError):
        return [inspect.getsource(inspect.unwrap(solution))]
    return []


def _called(source: str) -> set[str]:
    """Names of called functions and methods, without anything before the last dot."""
    calls = [node.func for node in nodes_of([source]) if isinstance(node, ast.Call)]
    return {f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in calls}
