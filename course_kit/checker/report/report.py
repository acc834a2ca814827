"""What a learner reads: one line per property, one diagnosis, and a failing case as evidence."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from course_kit.checker.observing import Observation, Sequence
from course_kit.checker.verdict.compare import Finding
from course_kit.checker.verdict.diagnose import diagnose
from course_kit.checker.verdict.evidence import PENCIL, Diagnosis, Evidence
from course_kit.checker.verdict.explaining import axis_names, shape_in_words
from course_kit.checker.verdict.judge import CONDUCT, Line, Verdict, judge
from course_kit.checker.verdict.sheet import Sheet
from course_kit.checker.verdict.style_notes import remarks_on
from course_kit.checker.verdict.trials import Trial
from course_kit.exercises import STEMS, Case, Exercise
from course_kit.exercises._headings import TITLES
from course_kit.exercises._language_model import NextLogProbs

__all__ = ["Example", "Report", "report_on"]

SHOWN_NUMBERS = 24  # an argument with more is shown by its shape
SHOWN_CHARACTERS = 240  # of a list
SHOWN_SIDE = 8  # a matrix with more rows or columns is cut to the part around its worst entry


@dataclass(frozen=True)
class Example:
    """A failing case as it is shown.

    Args:
        heading: whether it is the smallest one, and its special features.
        call: the arguments and weights, one line each.
        text: what was expected and what was returned.
        where: which returned value or gradient.
        expected: part of the expected tensor, two axes.
        actual: the same part of the actual tensor.
        marked: places of wrong entries in that part: all of them for bools and integers, the worst for other numbers.
        mark: what the marks mean.
        code: the learner's line in which an exception was raised.
        weights: a class's parameters: name with shape, and numbers, "" if there are many.
    """

    heading: str
    call: tuple[str, ...]
    text: str
    where: str = ""
    expected: Tensor | None = None
    actual: Tensor | None = None
    marked: frozenset[tuple[int, int]] = frozenset()
    mark: str = ""
    code: str = ""
    weights: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Report:
    """Everything that is said about one solution.

    Args:
        exercise: what was solved.
        verdict: what holds and what does not.
        diagnosis: the mistake, if it was recognised.
        example: the failing case that is shown.
        printed: what the solution wrote to standard output.
        remarks: useful remarks on a solution that passes.
    """

    exercise: Exercise
    verdict: Verdict
    diagnosis: Diagnosis | None
    example: Example | None
    printed: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def next_step(self) -> str:
        """What to read next: a chapter or another page, and its heading."""
        page, _, heading = self.read_next.partition(": ")
        if page in TITLES:
            return f"page “{TITLES[page]}”" + (f", section “{heading}”" if heading else "")
        kind = "chapter" if page in STEMS else "page"
        return f"{kind} `{page}`, “{heading}”" if heading else f"{kind} `{page}`"

    @property
    def read_next(self) -> str:
        """Page and heading."""
        return self.diagnosis.read_next if self.diagnosis and self.diagnosis.read_next else self.exercise.read_next

    @cached_property
    def cause(self) -> Line | None:
        """The line to begin with, if one mistake explains every failing line; otherwise None.

        Code to repair may have several faults, and one message names all of them, so its lines are not connected.
        """
        failing = [line for line in self.verdict.lines if line.holds is False]
        if self.exercise.repair or self.diagnosis is None or len(self.diagnosis.keys) > 1 or len(failing) < 2:
            return None
        shown, explained = self.diagnosis.trial.number, self.diagnosis.explains
        if not all(trial.number in explained for line in failing for trial, _ in line.findings):
            return None
        # Without the right parameters nothing can be called, whatever a line is about.
        unnamed = [line for line in failing if any(finding.facet == "parameters" for _, finding in line.findings)]
        shows_it = [line for line in failing if any(trial.number == shown for trial, _ in line.findings)]
        return (unnamed or shows_it)[0]


def report_on(
    sheet: Sheet,
    observations: list[Observation],
    *,
    allow_twins: bool = False,
    printed: str = "",
    sources: Iterable[str] = (),
) -> Report:
    """Judge, diagnose, and choose what to show.

    Args:
        sheet: what was asked.
        observations: one for each of its trials.
        allow_twins: count a solution that calls PyTorch's own function for the whole exercise.
        printed: what the solution wrote to standard output.
        sources: the solution's code, for remarks.
    """
    verdict = judge(sheet.exercise, sheet.trials, observations, allow_twins=allow_twins)
    sources = tuple(sources)
    diagnosis = diagnose(sheet, verdict, observations, sources=sources)
    example = _example(sheet, verdict, observations, diagnosis)
    remarks = remarks_on(sheet.exercise, sources) if verdict.status == "passed" else ()
    return Report(sheet.exercise, verdict, diagnosis, example, printed, remarks)


def _example(
    sheet: Sheet, verdict: Verdict, observations: list[Observation], diagnosis: Diagnosis | None
) -> Example | None:
    """The diagnosis and the case belong together: the trial shown is the one that the diagnosis is based on."""
    if verdict.status == "not attempted" or not verdict.findings:
        return None
    failing = Evidence(sheet, verdict, observations).failing
    trial = diagnosis.trial if diagnosis is not None else failing[0]
    findings = sorted(verdict.findings[trial.number], key=lambda f: f.facet in CONDUCT)
    is_smallest = trial.case.size <= min(t.case.size for t in failing)
    shown = _shown(sheet.exercise, trial, findings[0], observations[trial.number], is_smallest=is_smallest)
    return dataclasses.replace(shown, weights=tuple(_weights(trial.case)))


def _shown(exercise: Exercise, trial: Trial, finding: Finding, seen: Observation, *, is_smallest: bool) -> Example:
    case = trial.case
    call = tuple(_call(exercise, case))
    dtype = str(case.dtype).removeprefix("torch.")
    special = "; ".join(filter(None, (case.note, f"in {dtype}" if dtype not in {"float32", "None"} else "")))
    heading = ("Smallest failing case" if is_smallest else "Failing case") + (f": {special}" if special else "")
    if seen.problem is not None and finding.facet in {"problem", "gradient"}:
        line = f"line {seen.problem.line}: {seen.problem.code}" if seen.problem.code else ""
        if line and ", cell " in seen.problem.file:
            line = f"{seen.problem.file}, {line}"
        return Example(heading, call, finding.text, finding.where, code=line)
    expected, actual = _pick(trial.expected.value, finding, exercise), _pick(seen.value, finding, exercise)
    if finding.facet == "gradient":
        name = finding.where.removeprefix("gradient of ")
        expected, actual = trial.expected.gradients.get(name), seen.gradients.get(name)
    text = finding.text
    if finding.facet == "shape" and expected is not None:
        named = shape_in_words(tuple(expected.shape), axis_names(exercise, case))
        text = f"{finding.text}; axes: {named}" if named else text
    both = isinstance(expected, Tensor) and isinstance(actual, Tensor)
    if finding.facet not in {"value", "gradient"} or finding.index is None or not both:
        return Example(heading, call, text, finding.where)
    part, actual_part, worst, place = _part(expected, actual, finding.index)
    marked, mark = frozenset({worst}), "furthest from the expected value"
    if not part.is_floating_point():
        marked, mark = frozenset(map(tuple, (part != actual_part).nonzero().tolist())), "wrong"
    return Example(heading, call, text, finding.where + place, part, actual_part, marked, mark)


def _call(exercise: Exercise, case: Case) -> Iterator[str]:
    """A class's constructor arguments and the arguments of the call, one line each."""
    yield from (f"{n} = {v!r}" for n, v in zip(exercise.init_arguments, case.init, strict=False))
    for name, value in zip(exercise.arguments, case.args, strict=False):
        yield f"{name} = {_argument(value, exercise.shapes.get(name, ''))}"


def _weights(case: Case) -> Iterator[tuple[str, str]]:
    """Name and shape of each parameter, and its numbers if they can be followed by hand."""
    few = sum(parameter.numel() for parameter in case.state.values()) <= PENCIL
    for name, parameter in case.state.items():
        yield f"{name} {tuple(parameter.shape)}", _numbers(parameter) if few else ""


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
        return _long_list(value)
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


def _long_list(items: list) -> str:
    """As many complete items as fit."""
    shown = ""
    for item in items:
        longer = f"{shown}{item!r}, "
        if len(longer) > SHOWN_CHARACTERS:
            break
        shown = longer
    return f"[{shown}…   ({len(items)} items)"


def _numbers(value: Tensor) -> str:
    if value.dim() == 0:
        return cell(value)
    return "[" + ", ".join(_numbers(row) if row.dim() else cell(row) for row in value) + "]"


def cell(value: Tensor) -> str:
    """A number as it is shown in a small table."""
    x = value.item()
    if isinstance(x, bool):
        return "T" if x else "F"
    if isinstance(x, int):
        return str(x)
    if x != x:
        return "nan"
    return f"{x:.3f}" if abs(x) < 100 else f"{x:.1f}" if abs(x) < 1e6 else f"{x:.1e}"


def _part(expected: Tensor, actual: Tensor, index: tuple[int, ...]):
    """The last two axes around the worst entry, and their position."""
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
