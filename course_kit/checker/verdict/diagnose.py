"""Which mistake is it? The best explanation of the observations, or none, but never a guess.

First the exercise's misconceptions, then what exceptions say, then patterns that mean the same in every exercise.
"""

from __future__ import annotations

from course_kit.checker.observing import Observation
from course_kit.checker.verdict.evidence import Diagnosis, Evidence
from course_kit.checker.verdict.explaining import explain_problem
from course_kit.checker.verdict.generic_tips import PATTERNS
from course_kit.checker.verdict.judge import Verdict
from course_kit.checker.verdict.named_mistake import named_mistake
from course_kit.checker.verdict.other_dtype import mistake_in_another_dtype
from course_kit.checker.verdict.sheet import Sheet

__all__ = ["Diagnosis", "diagnose"]


def diagnose(
    sheet: Sheet,
    verdict: Verdict,
    observations: list[Observation],
    *,
    named: bool = True,
    sources: tuple[str, ...] = (),
) -> Diagnosis | None:
    """The explanation that fits best, or None if none fits.

    Args:
        sheet: what was asked.
        verdict: what does not hold.
        observations: one for each trial.
        named: whether to try the exercise's own mistakes; without them, only exceptions and patterns are used.
        sources: the solution's code, as far as it is known.
    """
    if verdict.status in {"passed", "not attempted"} or not verdict.findings:
        return None
    evidence = Evidence(sheet, verdict, observations, sources)
    mistake = (named_mistake(evidence) or mistake_in_another_dtype(evidence)) if named else None
    if mistake is not None:
        return mistake
    in_call = _explained_exception(evidence, in_gradients=False)
    if in_call is not None:
        return in_call
    for pattern in PATTERNS:
        found = pattern(evidence)
        if found is not None:
            return found
    return _explained_exception(evidence, in_gradients=True)


def _explained_exception(evidence: Evidence, *, in_gradients: bool) -> Diagnosis | None:
    """The explanation of the exception in the simplest case, or in a later one in which the axes of all lengths are
    known."""
    raising = [
        trial
        for trial in evidence.failing
        if evidence.seen(trial).problem is not None
        and trial.case.raises is None
        and (evidence.seen(trial).stage == "gradients") == in_gradients
    ]
    for first in raising:
        same = [trial for trial in raising if _same_line(evidence.seen(trial), evidence.seen(first))]
        found = [(t, explain_problem(evidence.exercise, t.case, evidence.seen(t))) for t in same]
        found = [(trial, explained) for trial, explained in found if explained is not None]
        if found:
            special = evidence.is_special(found[0][0])
            plain = [pair for pair in found if special or not evidence.is_special(pair[0])]
            trial, explained = next((pair for pair in plain if pair[1].all_named), found[0])
            key, numbers = f"any/{evidence.seen(trial).problem.type}", frozenset(t.number for t in same)
            return Diagnosis(key, explained.message, trial, numbers, evidence.exercise.read_next)
    return None


def _same_line(a: Observation, b: Observation) -> bool:
    """Whether both calls ended in the same exception at the same line."""
    if a.problem is None or b.problem is None:
        return False
    return (a.problem.type, a.problem.line, a.problem.file) == (b.problem.type, b.problem.line, b.problem.file)
