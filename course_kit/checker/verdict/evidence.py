"""What is known about a solution when its mistake is diagnosed, and the resulting diagnosis."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from course_kit.checker.observing import Observation
from course_kit.checker.verdict.compare import Finding
from course_kit.checker.verdict.judge import CONDUCT, Verdict
from course_kit.checker.verdict.sheet import Sheet
from course_kit.checker.verdict.trials import Trial
from course_kit.exercises import Exercise

__all__ = ["PENCIL", "Diagnosis", "Evidence", "facets_of", "rank_of"]

PENCIL = 150  # numbers in a case, weights included, that can still be followed by hand


@dataclass(frozen=True)
class Diagnosis:
    """A mistake with a name, and the case that shows it.

    Args:
        key: of the misconception, or `"any/…"` for a tip that every exercise can give.
        message: what to tell the learner; any quoted case is that of `trial`.
        trial: the case that is shown with it.
        explains: numbers of the trials that fail because of it.
        read_next: what to read next.
        keys: of both mistakes, if two were made at once.
    """

    key: str
    message: str
    trial: Trial
    explains: frozenset[int] = frozenset()
    read_next: str = ""
    keys: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """A solution's verdict with everything that was observed.

    Args:
        sheet: what was asked.
        verdict: what does not hold.
        observations: one for each trial.
        sources: the solution's code, as far as it is known.
    """

    sheet: Sheet
    verdict: Verdict
    observations: list[Observation]
    sources: tuple[str, ...] = ()

    @property
    def exercise(self) -> Exercise:
        """The exercise that was answered."""
        return self.sheet.exercise

    @cached_property
    def failing(self) -> list[Trial]:
        """Trials with a finding, the simplest first."""
        return sorted((t for t in self.sheet.trials if t.number in self.verdict.findings), key=self.simplicity)

    @cached_property
    def passing(self) -> list[Trial]:
        """Trials without a finding."""
        return [t for t in self.sheet.trials if t.number not in self.verdict.findings]

    @cached_property
    def findings(self) -> list[Finding]:
        """All findings, those of the simplest trial first."""
        return [finding for trial in self.failing for finding in self.verdict.findings[trial.number]]

    def seen(self, trial: Trial) -> Observation:
        """What the solution did in a trial."""
        return self.observations[trial.number]

    def facets(self, trial: Trial) -> frozenset[str]:
        """What is wrong in a trial."""
        return facets_of(self.verdict.findings.get(trial.number, ()))

    def simplicity(self, trial: Trial) -> tuple:
        """Orders trials by how well they show a mistake. Wrong results come before wrong conduct, and cases that can be
        computed by hand before all others; extreme numbers come last. Of the rest, plain cases come first, then the
        earlier property, because exercises proceed from the main idea to special cases.
        """
        size = trial.case.size
        kind = trial.case.raises is not None, rank_of(self.facets(trial)) < 2, trial.case.tolerance > 1, size > PENCIL
        return (*kind, self.is_special(trial), trial.line if size <= PENCIL else 0, size, trial.number)

    def is_special(self, trial: Trial) -> bool:
        """Whether there is something unusual about a case. The first one of an exercise is plain, and so is the first
        one of a property if it is made by hand (it has an `edge`)."""
        first = trial.number == 0 or self.sheet.trials[trial.number - 1].line != trial.line
        return bool(trial.case.note or trial.case.degenerate_because) and not (
            first and (trial.number == 0 or trial.case.degenerate_because)
        )

    def diagnosis(self, key: str, message: str, trials: Iterable[Trial], read_next: str = "") -> Diagnosis:
        """A diagnosis that explains these trials, shown by the simplest of them."""
        trials = list(trials)
        shown = min(trials, key=self.simplicity)
        return Diagnosis(key, message, shown, frozenset(t.number for t in trials), read_next)


def facets_of(findings: Iterable[Finding]) -> frozenset[str]:
    """The facets of some findings."""
    return frozenset(finding.facet for finding in findings)


def rank_of(facets: frozenset[str]) -> int:
    """0 for a pass, 1 where only the conduct is at fault, 2 where the result is."""
    if not facets:
        return 0
    return 1 if facets <= CONDUCT.keys() else 2
