"""The trials of a solution: an exercise's cases drawn from a seed, with the reference results.

Expected values come from the reference in float64, so that they are more exact than any solution in the case's dtype.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from course_kit.checker.observing import Observation, leaves, observe
from course_kit.exercises import Case, Draw, Exercise

__all__ = ["Trial", "trials_of"]

GRADIENT_CASES = 2  # of each property; gradients cost as much as everything else together


@dataclass(frozen=True)
class Trial:
    """A case with everything that the grader knows about it and a solution does not.

    Args:
        number: position among the exercise's trials.
        line: index of the property that it belongs to.
        case: what goes in.
        expected: observation of the reference in float64.
        cotangents: for gradients; empty if they are not tested.
        train_too: whether a class is called in train mode as well.
    """

    number: int
    line: int
    case: Case
    expected: Observation
    cotangents: tuple[Tensor | None, ...] = ()
    train_too: bool = False


def trials_of(exercise: Exercise, seed: int) -> list[Trial]:
    """The exercise's cases drawn from a seed, with the reference results; see `_drawn_for` for secrecy."""
    trials = []
    for line, prop in enumerate(exercise.properties):
        draw = Draw(_drawn_for(seed, exercise.name, line))
        graded = 0
        for position, case in enumerate(prop.cases(draw)):
            exact = case.to(torch.float64)
            train_too = exercise.is_class and position == 0 and case.raises is None
            expected = observe(exercise.reference, exercise, exact, watch=False)
            if (expected.problem is None) == (case.raises is not None):
                raise AssertionError(f"{exercise.name}: the reference and the case {case} disagree: {expected.problem}")
            cotangents: tuple[Tensor | None, ...] = ()
            if exercise.differentiable and case.gradients and case.raises is None and graded < GRADIENT_CASES:
                cotangents = tuple(_cotangent(draw, value, case.dtype) for value in leaves(expected.value))
                expected = observe(exercise.reference, exercise, exact, cotangents, watch=False)
                graded += 1
            trials.append(Trial(len(trials), line, case, expected, cotangents, train_too))
    return trials


def _drawn_for(seed: int, name: str, line: int) -> int:
    """The seed of one line's generator: HMAC-SHA256 of exercise and line, with the assignment's seed as the key.

    A submission sees the draws of every line. PyTorch's generator uses only 32 bits of its seed, so these 32 bits can
    be found by trying them all, and the rest of *this* line predicted. They say nothing about the seed, nor about any
    other line or exercise, as long as the seed cannot be guessed: `draw_seed` draws 128 bits. A short seed that an
    instructor chose, such as 4711, can be found by trying seeds until the draws agree.
    """
    key = str(seed).encode()
    return int.from_bytes(hmac.digest(key, f"{name}\0{line}".encode(), "sha256"), "big")


def _cotangent(draw: Draw, value: Any, dtype: torch.dtype | None) -> Tensor | None:
    if isinstance(value, Tensor) and value.is_floating_point():
        return draw.normal(*value.shape, dtype=dtype or torch.float64)
    return None
