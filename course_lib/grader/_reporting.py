"""What a learner reads: a line a property, one diagnosis, the smallest failing case. As text and as HTML."""

from __future__ import annotations

import dataclasses
import html
import re
from dataclasses import dataclass

import torch
from torch import Tensor

from course_lib.exercises import Exercise
from course_lib.exercises._language_model import NextLogProbs
from course_lib.grader._diagnosing import Diagnosis, diagnose
from course_lib.grader._explaining import axis_names, explain_problem, shape_in_words
from course_lib.grader._judging import CONDUCT, Finding, Line, Sheet, Trial, Verdict, findings_of, judge
from course_lib.grader._observing import Observation, Sequence

__all__ = ["Example", "Report", "report_on"]

MARKS = {True: "✓", False: "✗", None: "–"}
SHOWN_NUMBERS = 24  # an argument with more is shown by its shape
SHOWN_CHARACTERS = 240  # of a list
PRINTED_LINES = 8
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


# Text


def text_of(report: Report, heading: str, *, graded: bool = False) -> str:
    """The report as plain text.

    Args:
        heading: first line, after the name of the exercise.
        graded: for a feedback page: no invitation to try again.
    """
    name, verdict = report.exercise.name, report.verdict
    if verdict.status == "not attempted":
        return f"{name}: {heading}\n" + ("Not attempted." if graded else not_attempted(report.exercise))
    lines = [f"{name}: {heading}"]
    lines += [f"  | {line}" for line in _printed(report)]
    lines += [f"  {MARKS[line.holds]} {plain_words(line.says)}{_because(line)}" for line in verdict.lines]
    if verdict.status == "passed":
        return "\n".join([*lines, "All of it holds."])
    if verdict.status == "not counted":
        lines.append(not_counted(verdict))
    if report.diagnosis is not None:
        lines += ["", f"Diagnosis: {plain_words(report.diagnosis.says)}"]
    elif report.example is not None:
        lines += ["", "Diagnosis: unknown. Here is the smallest case that fails."]
    if report.example is not None:
        lines += ["", *_example_text(report.example)]
    if report.example is not None or report.diagnosis is not None:
        lines += ["", f"Look next: {report.next_step}"]
    return "\n".join(lines)


def _because(line: Line) -> str:
    """What is wrong, behind a line about conduct; the others have the case to show it."""
    return f" ({line.findings[0][1].text[:120]})" if line.conduct and line.findings else ""


def plain_words(text: str) -> str:
    """Text with `code` and *stress* in it, as plain text."""
    return re.sub(r"(?<![\w*])\*([^*\s][^*]*?)\*(?![\w*])", r"\1", text)


def _printed(report: Report) -> list[str]:
    """The beginning of what the solution printed, which is about the first case."""
    lines = report.printed.rstrip().split("\n") if report.printed.strip() else []
    rest = len(lines) - PRINTED_LINES
    shown = [line[:100] for line in lines[:PRINTED_LINES]]
    return [*shown, f"… {rest} more line{'s' if rest != 1 else ''} printed"] if rest > 0 else shown


def not_attempted(exercise: Exercise) -> str:
    """What is said, kindly, where nothing is written yet."""
    return (
        f"Not attempted yet. Write your code in place of `raise NotImplementedError`, run the cell, then this one. "
        f'`hint("{exercise.name}")` helps you to start.'
    )


def not_counted(verdict: Verdict) -> str:
    """What is said where a forbidden function does the work."""
    used = " and ".join(verdict.used)
    return f"Not counted as your own: {used} is called, which is the whole exercise. Write it out, and check again."


def _example_text(example: Example) -> list[str]:
    lines = [f"Smallest failing case{': ' + example.title if example.title else ''}"]
    lines += [f"  {line}" for line in example.call]
    if example.code:
        lines.append(f"  your {example.code}")
    where = f"{example.where}: " if example.where else ""
    lines += [f"  {where if i == 0 else ''}{line}" for i, line in enumerate(example.text.split("\n"))]
    if example.expected is not None:
        for name, part in (("expected", example.expected), ("got", example.actual)):
            lines.append(
                f"  {name}" + ("   (* furthest from what was expected)" if name == "got" and part.numel() > 1 else "")
            )
            rows = [[cell(x) for x in row] for row in part]
            width = max(len(x) for row in rows for x in row)
            for i, row in enumerate(rows):
                marked = [
                    f"{x:>{width}}" + ("*" if name == "got" and (i, j) == example.worst else " ")
                    for j, x in enumerate(row)
                ]
                lines.append("    " + " ".join(marked).rstrip())
    return lines


# HTML. Inline styles only: a notebook has no style sheet of ours. Text takes the page's own colour, so that it reads in
# light and dark; cells of the heat map have both colours set.


def html_of(report: Report, heading: str, *, graded: bool = False) -> str:
    """The report as a fragment of HTML; the arguments are those of `text_of`."""
    name, verdict = html.escape(report.exercise.name), report.verdict
    parts = [f'<p style="margin:.2em 0"><b><code>{name}</code></b>: {html.escape(heading)}</p>']
    if verdict.status == "not attempted":
        parts.append(f"<p>{'Not attempted.' if graded else words(not_attempted(report.exercise))}</p>")
        return box(parts)
    if printed := _printed(report):
        parts.append(f'<pre style="margin:.2em 0;overflow-x:auto">{html.escape(chr(10).join(printed))}</pre>')
    rows = "".join(
        f'<li style="margin:.1em 0;padding-left:1.3em;text-indent:-1.3em">'
        f'<span style="{_mark_style(line.holds)}" role="img" '
        f'aria-label="{_spoken(line.holds)}">{MARKS[line.holds]}</span> {words(line.says + _because(line))}</li>'
        for line in verdict.lines
    )
    parts.append(f'<ul style="list-style:none;margin:.2em 0;padding-left:.5em">{rows}</ul>')
    if verdict.status == "passed":
        return box([*parts, "<p>All of it holds.</p>"])
    if verdict.status == "not counted":
        parts.append(f"<p>{words(not_counted(verdict))}</p>")
    if report.diagnosis is not None:
        parts.append(f'<p style="margin:.6em 0"><b>Diagnosis.</b> {words(report.diagnosis.says)}</p>')
    elif report.example is not None:
        parts.append("<p><b>Diagnosis:</b> unknown. Here is the smallest case that fails.</p>")
    if report.example is not None:
        parts.append(_example_html(report.example))
    if report.example is not None or report.diagnosis is not None:
        parts.append(f'<p style="margin:.8em 0 .2em"><b>Look next:</b> {words(report.next_step)}</p>')
    return box(parts)


def box(parts: list[str]) -> str:
    """A frame that takes the page's colours."""
    return (
        '<div class="course-lib-report" style="border-left:3px solid #888;padding-left:.8em;max-width:46em">'
        + "".join(parts)
        + "</div>"
    )


def words(text: str) -> str:
    """Text with `code` in it as HTML."""
    pieces = html.escape(text).split("`")
    if len(pieces) % 2 == 0:
        return html.escape(text)
    parts = [f"<code>{p}</code>" if i % 2 else _stressed(p) for i, p in enumerate(pieces)]
    return "".join(parts).replace("\n", "<br>")


def _stressed(text: str) -> str:
    return re.sub(r"(?<![\w*])\*([^*\s][^*]*?)\*(?![\w*])", r"<em>\1</em>", text)


def _mark_style(holds: bool | None) -> str:
    colour = {True: "#1f8f5f", False: "#d64545", None: "#888"}[holds]
    return f"display:inline-block;width:1.2em;font-weight:bold;color:{colour}"


def _spoken(holds: bool | None) -> str:
    return {True: "holds", False: "does not hold", None: "not observed"}[holds]


def _example_html(example: Example) -> str:
    title = f": {words(example.title)}" if example.title else ""
    parts = [f'<p style="margin-bottom:.2em"><b>Smallest failing case</b>{title}</p>']
    call = "\n".join(html.escape(line) for line in example.call)
    if example.code:
        call += f"\nyour {html.escape(example.code)}"
    parts.append(f'<pre style="margin:.2em 0;overflow-x:auto">{call}</pre>')
    where = f"<code>{html.escape(example.where)}</code>: " if example.where else ""
    parts.append(f"<p>{where}{words(example.text)}</p>")
    if example.expected is not None:
        maps = (_heat_map("expected", example.expected, example), _heat_map("got", example.actual, example))
        style = "display:flex;flex-wrap:wrap;gap:1.5em;overflow-x:auto"
        parts.append(
            f'<div tabindex="0" role="group" aria-label="expected and got" style="{style}">{"".join(maps)}</div>'
        )
    return "".join(parts)


def _heat_map(name: str, part: Tensor, example: Example) -> str:
    both = torch.cat([example.expected.double().flatten(), example.actual.double().flatten()])
    finite = both[both.isfinite()].abs()
    top = float(finite.max()) if finite.numel() and float(finite.max()) > 0 else 1.0
    rows = []
    for i, row in enumerate(part):
        cells = []
        for j, x in enumerate(row):
            outline = ";outline:2px solid #c0392b" if (i, j) == example.worst else ""
            cells.append(
                f'<td style="padding:.15em .45em;text-align:right;{_colours(float(x), top)}{outline}">{cell(x)}</td>'
            )
        rows.append(f"<tr>{''.join(cells)}</tr>")
    caption = f'<caption style="text-align:left">{name}</caption>'
    return f'<table style="border-collapse:collapse;font-size:.9em;margin:0">{caption}{"".join(rows)}</table>'


def _colours(x: float, top: float) -> str:
    if x != x or abs(x) == float("inf"):
        return "background:#333;color:#fff"
    strength = min(1.0, abs(x) / top)
    # Blue for positive, orange for negative numbers, white for zero; dark text reads on all of them.
    r, g, b = (86, 156, 214) if x >= 0 else (230, 140, 60)
    mixed = [round(255 + (c - 255) * 0.85 * strength) for c in (r, g, b)]
    return f"background:rgb({mixed[0]},{mixed[1]},{mixed[2]});color:#111"
