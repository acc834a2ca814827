"""Which of an exercise's named mistakes was made: a solution has made a mistake if it computes the same as the mistake
wherever that differs from the right result."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from course_kit.checker.observing import Observation
from course_kit.checker.verdict.evidence import Diagnosis, Evidence, rank_of
from course_kit.checker.verdict.same_result import alike, essence, same_fault
from course_kit.checker.verdict.trials import Trial
from course_kit.exercises import Misconception

__all__ = ["named_mistake"]

ENOUGH = 0.5  # share of the failing cases that a mistake has to explain, with or without a second one beside it
FIRST_LOOK = 3  # the smallest failing cases, of which it has to explain one
VAGUE = re.compile("must match the size|cannot be multiplied|is invalid for input|to unpack")  # any wrong shape does it
COMPOSED = "There are two mistakes"  # a message that names two of them already
AT_ONCE = 2  # cases that each of two mistakes has to explain alone


@dataclass
class Fit:
    """How far one mistake explains what was observed.

    Args:
        mistake: the mistake.
        explained: failing trials in which the solution does what the mistake does.
        raising: failing trials in which the solution raises something and the mistake fails in another way.
        silent: failing trials in which the mistake would have passed.
        other: failing trials in which the mistake fails, too, in another way.
        values: how many failing trials ended in a value or another result, rather than in an exception.
        by_value: how many of them are explained.
        by_name: how many are explained by the same wrong parameters, or by an exception that few mistakes end in.
        to_the_letter: how many are explained by an exception with the very same message, its lengths included.
    """

    mistake: Misconception
    explained: list[Trial] = field(default_factory=list)
    raising: list[Trial] = field(default_factory=list)
    silent: list[Trial] = field(default_factory=list)
    other: list[Trial] = field(default_factory=list)
    values: int = 0
    by_value: int = 0
    by_name: int = 0
    to_the_letter: int = 0

    @property
    def is_enough(self) -> bool:
        """Whether the mistake explains the whole."""
        explained, unexplained = len(self.explained), len(self.silent) + len(self.other)
        if explained < max(1, len(self.raising), ENOUGH * (explained + unexplained)):
            return False
        if unexplained and explained < 2:
            return False
        # A wrong shape ends in the same exception wherever it was made: that it was inside a part, it does not say.
        if self.mistake.inherited_from and not self.by_value and not self.by_name:
            return False
        # Many mistakes end in the same exception; where there are numbers, they have to fit.
        return not self.values or self.by_value > 0

    @property
    def rank(self) -> tuple[int, int, int, int, int]:
        """Smaller is better; equal wrong numbers are better evidence than equal exceptions, and where two mistakes
        explain the same, the exercise's own is the nearer one."""
        unexplained = len(self.silent) + len(self.other) + len(self.raising)
        return unexplained, -self.by_value, -len(self.explained), -self.to_the_letter, len(self.mistake.inherited_from)


def named_mistake(evidence: Evidence) -> Diagnosis | None:
    """The mistake that explains best what was observed, two where it takes two, or None."""
    # First those that explain everything: most mistakes are then tried on a single case, which keeps a check fast.
    fits = _up_to_the_best(_fits(evidence, evidence.failing, exactly=True))
    best = _best(fits)
    if best is None:
        fits = list(_fits(evidence, evidence.failing))
        best = _best(fits)
    if best is not None and not best.silent:
        return _diagnosis(evidence, best)
    both = _two_at_once(evidence, fits if best is None else [best])
    if both is not None:
        return _diagnosis(evidence, *both)
    return None if best is None else _diagnosis(evidence, best)


def _best(fits: list[Fit]) -> Fit | None:
    return min((fit for fit in fits if fit.is_enough), key=lambda fit: fit.rank, default=None)


def _up_to_the_best(exact: Iterable[Fit]) -> list[Fit]:
    """Of mistakes that explain everything, those up to the first that none behind it can outrank: one of the
    exercise's own, whose exceptions have the very same messages."""
    fits = []
    for fit in exact:
        fits.append(fit)
        if fit.to_the_letter == len(fit.explained) - fit.by_value and not fit.mistake.inherited_from:
            break
    return fits


def _diagnosis(evidence: Evidence, first: Fit, second: Fit | None = None) -> Diagnosis:
    mistake = first.mistake
    trials = [*first.explained, *first.raising]
    read_next = mistake.read_next or evidence.exercise.read_next
    found = evidence.diagnosis(mistake.key, mistake.message, first.explained, read_next)
    message, keys = mistake.message, (mistake.key,)
    if second is not None:
        trials += [*second.explained, *second.raising, *first.other]
        message = f"{COMPOSED} at once. The first: {mistake.message} The second: {second.mistake.message}"
        keys = (mistake.key, second.mistake.key)
    elif any(rank_of(evidence.facets(trial)) == 2 for trial in first.silent):
        message = f"{mistake.message} This does not explain every failing case, so check again after correcting it."
    return Diagnosis(mistake.key, message, found.trial, frozenset(t.number for t in trials), read_next, keys)


def _two_at_once(evidence: Evidence, fits: Iterable[Fit]) -> tuple[Fit, Fit] | None:
    """Two mistakes that each explain, alone and exactly, the cases in which the other one does not show."""
    fits = [f for f in fits if f.by_value >= AT_ONCE and f.silent and COMPOSED not in f.mistake.message]
    fits.sort(key=lambda f: (-f.by_value, f.rank))
    for first in fits[:FIRST_LOOK]:
        for second in sorted(_fits(evidence, first.silent), key=lambda fit: fit.rank):
            rest = [*second.silent, *second.other, *second.raising]
            explained = len(first.explained) + len(second.explained)
            if rest or second.by_value < AT_ONCE or COMPOSED in second.mistake.message:
                continue
            if explained < ENOUGH * len(evidence.failing):
                continue
            if all(_shows(evidence, second.mistake, trial) for trial in first.other) and not any(
                _shows(evidence, second.mistake, trial) for trial in first.explained
            ):
                return first, second
    return None


def _shows(evidence: Evidence, mistake: Misconception, trial: Trial) -> bool:
    return bool(evidence.sheet.misconception_facets(mistake.key, trial))


def _fits(evidence: Evidence, failing: list[Trial], *, exactly: bool = False) -> Iterable[Fit]:
    """The mistakes that explain some of these failing trials, or exactly all of them, and contradict no passing one."""
    failing = sorted(failing, key=lambda trial: (trial.case.size, trial.number))
    for mistake in evidence.exercise.misconceptions:
        if _worth_a_try(evidence, mistake, failing[: 1 if exactly else FIRST_LOOK]):
            fit = _fit(evidence, mistake, [*failing, *evidence.passing], exactly=exactly)
            if fit is not None and fit.explained:
                yield fit


def _worth_a_try(evidence: Evidence, mistake: Misconception, first: list[Trial]) -> bool:
    """Whether it explains one of the first cases; most mistakes are dropped here, which keeps a check fast."""
    return any(_explains(evidence, mistake, trial, quick=True) for trial in first)


def _explains(evidence: Evidence, mistake: Misconception, trial: Trial, *, quick: bool = False) -> bool:
    mine, my_facets = evidence.seen(trial), evidence.facets(trial)
    # For a wrong result, the gradients of a mistake are not needed.
    values_only = quick and rank_of(my_facets) == 2
    its = evidence.sheet.misconception_at(mistake.key, trial, values_only=values_only)
    its_facets = evidence.sheet.misconception_facets(mistake.key, trial, values_only=values_only)
    mine, its = essence(evidence.exercise, mine), essence(evidence.exercise, its)
    if _ended(evidence, trial):
        return its.problem is not None and alike(mine, its)
    return same_fault(my_facets, its_facets, mine, its)


def _ended(evidence: Evidence, trial: Trial) -> bool:
    """Whether an exception ended the call, where none was asked for."""
    seen = evidence.seen(trial)
    return seen.problem is not None and seen.stage != "gradients" and trial.case.raises is None


def _fit(evidence: Evidence, mistake: Misconception, trials: list[Trial], *, exactly: bool = False) -> Fit | None:
    """How far a mistake explains these trials; None where the solution is right and the mistake would not be, and, if
    all of them are to be explained, where one is not."""
    fit = Fit(mistake)
    for trial in trials:
        mine = evidence.facets(trial)
        its = evidence.sheet.misconception_facets(mistake.key, trial)
        if not mine and not its:
            continue
        ended = _ended(evidence, trial)
        fit.values += bool(mine) and not ended
        if _explains(evidence, mistake, trial):
            fit.explained.append(trial)
            fit.by_value += not ended
            its_own = evidence.sheet.misconception_at(mistake.key, trial)
            fit.to_the_letter += ended and _message(its_own) == _message(evidence.seen(trial))
            fit.by_name += ended and not VAGUE.search(evidence.seen(trial).problem.message)
        elif not ended and its and rank_of(mine) < rank_of(its):
            return None  # it would fail here, or worse: it is not this one
        elif exactly:
            return None
        elif ended and its:
            fit.raising.append(trial)
        else:
            (fit.other if its else fit.silent).append(trial)
    return fit


def _message(seen: Observation) -> str:
    return seen.problem.message if seen.problem is not None else ""
