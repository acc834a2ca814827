"""Whether two solutions did the same in a case."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import torch
from torch import Tensor

from course_kit.checker.observing import Observation, Problem, Sequence, leaves, unwrapped
from course_kit.checker.verdict.compare import differs
from course_kit.checker.verdict.evidence import rank_of
from course_kit.exercises import Exercise

__all__ = ["alike", "essence", "same_fault", "same_values"]


def essence(exercise: Exercise, seen: Observation) -> Observation:
    """The observation without anything that the exercise leaves open."""
    form = exercise.canonical_form(unwrapped(seen.value)) if exercise.canonical_form is not None else None
    return seen if form is None else dataclasses.replace(seen, value=form)


def same_fault(mine: frozenset[str], its: frozenset[str], a: Observation, b: Observation) -> bool:
    """Whether two solutions that fail in these facets fail alike."""
    if not mine or rank_of(mine) != rank_of(its):
        return False
    if rank_of(mine) == 2:
        return (a.problem is None) == (b.problem is None) and alike(a, b)
    if mine != its:
        return False
    if "gradient" in mine:
        names = a.gradients.keys() | b.gradients.keys()
        if not all(same_values(a.gradients.get(n), b.gradients.get(n)) for n in names):
            return False
    if "dtype" in mine and _dtypes(a.value) != _dtypes(b.value):
        return False
    if a.stage == "gradients" or b.stage == "gradients":
        return a.stage == b.stage and set(a.changed) == set(b.changed) and _alike_problems(a.problem, b.problem)
    return set(a.changed) == set(b.changed)


def _dtypes(value: Any) -> list[torch.dtype]:
    return [t.dtype for t in leaves(value) if isinstance(t, Tensor)]


def alike(a: Observation, b: Observation) -> bool:
    """Whether two calls ended in the same values or the same exception."""
    if a.problem is not None or b.problem is not None:
        if a.problem is None or b.problem is None:
            return False
        if a.stage == b.stage == "load" and a.parameters != b.parameters:
            return False
        return _alike_problems(a.problem, b.problem)
    return same_values(a.value, b.value)


def _alike_problems(a: Problem | None, b: Problem | None) -> bool:
    if a is None or b is None or a.type != b.type:
        return a is b
    # The text of a learner's own `raise` is never the text of a misconception.
    return a.code.startswith(("raise ", "assert ")) or _words(a.message) == _words(b.message)


def _words(message: str) -> str:
    if message.startswith("next_log_probs("):  # what the model was asked is a value, and no detail of a case
        return message
    return re.sub(r"\d+(\.\d+)?|0x[0-9a-f]+", "#", message)


def same_values(a: Any, b: Any) -> bool:
    """Whether two results are the same up to rounding."""
    if isinstance(a, Sequence) and isinstance(b, Sequence):
        return len(a.items) == len(b.items) and all(map(same_values, a.items, b.items))
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if a.shape != b.shape or a.is_floating_point() != b.is_floating_point():
            return False
        if not a.is_floating_point():
            return torch.equal(a, b)
        wrong = differs(a, b, 10.0, a.dtype)
        return not (wrong & ~(a.isnan() & b.isnan())).any()
    if type(a) is type(b) is float:  # the same formula, written in another way
        return a == b or abs(a - b) <= 1e-5 * abs(b) + 1e-12 or (a != a and b != b)
    return (type(a) is type(b) or {type(a), type(b)} == {int, float}) and a == b
