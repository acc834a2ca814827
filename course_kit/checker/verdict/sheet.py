"""An exercise's trials, and the result of each of its mistakes on them, computed once and used for all solutions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from threading import RLock

import torch

from course_kit.checker.observing import Observation, observe
from course_kit.checker.protocol import pack_problem, unpack_problem
from course_kit.checker.verdict.judge import findings_of
from course_kit.checker.verdict.trials import Trial, trials_of
from course_kit.exercises import Exercise

__all__ = ["Sheet", "sheet_of"]


@dataclass(frozen=True)
class Sheet:
    """An exercise's trials for one seed, and the result of each misconception on them; computed once, used for all
    solutions."""

    exercise: Exercise
    seed: int
    trials: list[Trial]
    _observed: dict[tuple[str, int, bool], Observation] = field(default_factory=dict, repr=False)
    _facets: dict[tuple[str, int, bool], frozenset[str]] = field(default_factory=dict, repr=False)

    def run(self, solution: Callable) -> list[Observation]:
        """Observations of a solution in this process."""
        return [self._observe(solution, trial, trial.cotangents, trial.train_too) for trial in self.trials]

    def misconception(self, key: str) -> list[Observation]:
        """Observations of a misconception of the exercise."""
        return [self.misconception_at(key, trial) for trial in self.trials]

    def misconception_at(self, key: str, trial: Trial, *, values_only: bool = False) -> Observation:
        """The result of a misconception on one trial; computed when first needed.

        Args:
            key: of the misconception.
            trial: one of this sheet's.
            values_only: leave out gradients and train mode, which take longer than the call itself.
        """
        cheaper = values_only and bool(trial.cotangents or trial.train_too)
        with _ONE_AT_A_TIME:
            if (key, trial.number, False) in self._observed:
                cheaper = False
            place = (key, trial.number, cheaper)
            if place not in self._observed:
                solution = self.exercise.mistake(key).solution
                cotangents, train_too = ((), False) if cheaper else (trial.cotangents, trial.train_too)
                self._observed[place] = self._observe(solution, trial, cotangents, train_too, watch=False)
        return self._observed[place]

    def misconception_facets(self, key: str, trial: Trial, *, values_only: bool = False) -> frozenset[str]:
        """The facets in which a misconception fails one trial: judged once, as it is the same for every solution.

        Args:
            key: of the misconception.
            trial: one of this sheet's.
            values_only: see `misconception_at`.
        """
        seen = self.misconception_at(key, trial, values_only=values_only)
        place = (key, trial.number, seen is not self._observed.get((key, trial.number, False)))
        if place not in self._facets:
            self._facets[place] = frozenset(finding.facet for finding in findings_of(self.exercise, trial, seen))
        return self._facets[place]

    def _observe(
        self, solution: Callable, trial: Trial, cotangents: tuple, train_too: bool, *, watch: bool = True
    ) -> Observation:
        # What draws numbers (a dropout, say) draws the same ones every time, or its diagnosis would be left to chance.
        with torch.random.fork_rng(devices=[]):
            _seed(trial.number)
            seen = observe(solution, self.exercise, trial.case, cotangents, train_too=train_too, watch=watch)
        # As it arrives from a submission's process, so that a check and a grade compare the same texts.
        seen.problem = seen.problem and unpack_problem(pack_problem(seen.problem))
        return seen


def _seed(number: int) -> None:
    """Seed the CPU's generator, and the GPUs' where they are in use.

    `torch.manual_seed` also queues a seed for GPUs that may be used later, each time with a stack trace. For a small
    case, that takes as long as the case itself.
    """
    torch.default_generator.manual_seed(number)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(number)


# An observation looks at state that all threads share: the random generator, the filters of warnings.
_ONE_AT_A_TIME = RLock()


def sheet_of(exercise: Exercise, seed: int) -> Sheet:
    """The exercise's sheet for this seed."""
    with _ONE_AT_A_TIME:
        return _sheet_of(exercise, seed)


@lru_cache(maxsize=64)
def _sheet_of(exercise: Exercise, seed: int) -> Sheet:
    return Sheet(exercise, seed, trials_of(exercise, seed))
