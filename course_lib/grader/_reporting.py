"""What a learner reads: a line a property, one diagnosis, the smallest failing case. As text and as HTML."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass

from torch import Tensor

from course_lib.exercises import Exercise
from course_lib.exercises._language_model import NextLogProbs
from course_lib.grader._diagnosing import Diagnosis, diagnose
from course_lib.grader._explaining import axis_names, explain_problem, shape_in_words
from course_lib.grader._judging import CONDUCT, Finding, Sheet, Trial, Verdict, findings_of, judge
from course_lib.grader._observing import Observation, Sequence

__all__ = ["Example", "Report", "report_on"]

SHOWN_NUMBERS = 24  # an argument with more is shown by its shape
SHOWN_CHARACTERS = 240  # of a list
SHOWN_SIDE = 8  # a matrix with more rows or columns is cut to the part around its worst entry


@dataclass(frozen=True)
class Example:
    """A failing case as it is shown.

    Args:
        title: what is special about the case.
        call: the arguments, a line each.
        text: what was expected and what came.
        where: which returned value or gradient.
        expected: part of the expected tensor, two axes.
        actual: the same part of what came.
        worst: place of the worst entry in that part.
        code: the learner's line, where an exception ended the call.
    """

    title: str
    call: tuple[str, ...]
    text: str
    where: str = ""
    expected: Tensor | None = None
    actual: Tensor | None = None
    worst: tuple[int, int] | None = None
    code: str = ""


@dataclass(frozen=True)
class Report:
    """Everything that is said about one solution."""

    exercise: Exercise
    verdict: Verdict
    diagnosis: Diagnosis | None
    example: Example | None
    printed: str = ""

    @property
    def next_step(self) -> str:
        """What to look at now."""
        page, _, heading = self.look.partition(": ")
        return f"chapter `{page}`, “{heading}”" if heading else f"chapter `{page}`"

    @property
    def look(self) -> str:
        """Page and heading."""
        return self.diagnosis.look if self.diagnosis and self.diagnosis.look else self.exercise.look


def report_on(sheet: Sheet, observations: list[Observation], *, allow_twins: bool = False, printed: str = "") -> Report:
    """Judge, diagnose, and choose what to show.

    Args:
        sheet: what was asked.
        observations: one for each of its trials.
        allow_twins: count a solution that calls PyTorch's own function for the whole exercise.
        printed: what the solution wrote to standard output.
    """
    verdict = judge(sheet.exercise, sheet.trials, observations, allow_twins=allow_twins)
    diagnosis = diagnose(sheet, verdict, observations)
    return Report(sheet.exercise, verdict, diagnosis, _example(sheet, verdict, observations, diagnosis), printed)


def _example(
    sheet: Sheet, verdict: Verdict, observations: list[Observation], diagnosis: Diagnosis | None
) -> Example | None:
    if verdict.status == "not attempted" or not verdict.findings:
        return None

    def order(trial: Trial):
        facets = {finding.facet for finding in verdict.findings[trial.number]}
        return trial.case.raises is not None, facets <= CONDUCT.keys(), trial.case.size, trial.number

    failing = [trial for trial in sheet.trials if trial.number in verdict.findings]
    if diagnosis is not None and any(m.key == diagnosis.key for m in sheet.exercise.misconceptions):
        # The case has to show the mistake that is named, not another one that was made beside it.
        showing = [t for t in failing if findings_of(sheet.exercise, t, sheet.misconception_at(diagnosis.key, t))]
        failing = showing or failing
    trial = min(failing, key=order)
    findings = sorted(verdict.findings[trial.number], key=lambda f: f.facet in CONDUCT)
    example = _shown(sheet.exercise, trial, findings[0], observations[trial.number])
    if diagnosis is not None:  # the same explanation is not said twice
        text = "\n".join(line for line in example.text.split("\n") if line != diagnosis.says)
        example = dataclasses.replace(example, text=text)
    return example


def _shown(exercise: Exercise, trial: Trial, finding: Finding, seen: Observation) -> Example:
    case = trial.case
    axes = axis_names(exercise, case)
    call = [f"{n} = {v!r}" for n, v in zip(exercise.init_arguments, case.init, strict=False)]
    call += [
        f"{name} = {_argument(value, exercise.shapes.get(name, ''))}"
        for name, value in zip(exercise.arguments, case.args, strict=False)
    ]
    dtype = str(case.dtype).removeprefix("torch.")
    title = "; ".join(filter(None, (case.note, f"in {dtype}" if dtype not in {"float32", "None"} else "")))
    if seen.problem is not None and finding.facet in {"problem", "gradient"}:
        line = f"line {seen.problem.line}: {seen.problem.code}" if seen.problem.code else ""
        if line and ", cell " in seen.problem.file:
            line = f"{seen.problem.file}, {line}"
        explained = explain_problem(exercise, case, seen) if case.raises is None else ""
        text = finding.text + (f"\n{explained}" if explained else "")
        return Example(title, tuple(call), text, finding.where, code=line)
    expected, actual = _pick(trial.expected.value, finding, exercise), _pick(seen.value, finding, exercise)
    if finding.facet == "gradient":
        name = finding.where.removeprefix("gradient of ")
        expected, actual = trial.expected.gradients.get(name), seen.gradients.get(name)
    text = finding.text
    if finding.facet == "shape":
        text = f"{finding.text}; axes: {shape_in_words(tuple(expected.shape), axes)}" if expected is not None else text
    if finding.facet not in {"value", "gradient"} or finding.index is None:
        return Example(title, tuple(call), text, finding.where)
    if not isinstance(expected, Tensor) or not isinstance(actual, Tensor):
        return Example(title, tuple(call), text, finding.where)
    part, actual_part, worst, place = _part(expected, actual, finding.index)
    where = finding.where + place
    return Example(title, tuple(call), text, where, part, actual_part, worst)


def _pick(value, finding: Finding, exercise: Exercise):
    if isinstance(value, Sequence):
        names = dict(zip(exercise.returns, value.items, strict=False))
        name, *place = re.split(r"[\[\]]", finding.where)  # "cache[0]" is an item of the result named cache
        found = names.get(name)
        return found.items[int(place[0])] if place and isinstance(found, Sequence) else found
    return value


def _argument(value, axes: str) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, NextLogProbs):
        return "\n  ".join(value.shown())
    if isinstance(value, tuple):
        return "(" + ", ".join(_argument(item, axes) for item in value) + ")"
    if isinstance(value, list) and len(repr(value)) > SHOWN_CHARACTERS:
        return f"{repr(value)[:SHOWN_CHARACTERS]} …   ({len(value)} items)"
    if not isinstance(value, Tensor):
        return repr(value)
    named = [axis for axis in axes.split() if axis not in {"...", "#"}]
    batch = [""] * (value.dim() - len(named))
    shape = ", ".join(
        f"{axis} = {n}" if axis and not axis.isdigit() else str(n)
        for axis, n in zip([*batch, *named], value.shape, strict=False)
    )
    if value.numel() <= SHOWN_NUMBERS and value.dim() <= 4:
        return f"{_numbers(value)}   ({shape})"
    return f"tensor ({shape}), {str(value.dtype).removeprefix('torch.')}"


def _numbers(value: Tensor) -> str:
    if value.dim() == 0:
        return cell(value)
    return "[" + ", ".join(_numbers(row) if row.dim() else cell(row) for row in value) + "]"


def cell(value: Tensor) -> str:
    """A number as it stands in a small table."""
    x = value.item()
    if isinstance(x, bool):
        return "T" if x else "F"
    if isinstance(x, int):
        return str(x)
    if x != x:
        return "nan"
    return f"{x:.3f}" if abs(x) < 100 else f"{x:.1f}" if abs(x) < 1e6 else f"{x:.1e}"


def _part(expected: Tensor, actual: Tensor, index: tuple[int, ...]):
    """The last two axes around the worst entry, and where they lie."""
    lead, inner = index[:-2], index[-2:]
    a, b = expected.detach()[lead], actual.detach()[lead]
    if a.dim() == 1:
        a, b, inner = a[None], b[None], (0, index[-1])
    if a.dim() == 0:
        a, b, inner = a[None, None], b[None, None], (0, 0)
    starts = [max(0, min(i - SHOWN_SIDE // 2, n - SHOWN_SIDE)) for i, n in zip(inner, a.shape, strict=True)]
    rows, columns = (slice(s, s + SHOWN_SIDE) for s in starts)
    cut = any(n > SHOWN_SIDE for n in a.shape)
    place = f"[{', '.join(map(str, lead))}]" if lead else ""
    if cut:
        place += f" rows {starts[0]}–{min(a.shape[0], starts[0] + SHOWN_SIDE) - 1}"
        place += f", columns {starts[1]}–{min(a.shape[1], starts[1] + SHOWN_SIDE) - 1}"
    worst = (inner[0] - starts[0], inner[1] - starts[1])
    return a[rows, columns], b[rows, columns], worst, place
