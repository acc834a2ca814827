"""A report as plain text."""

from __future__ import annotations

import re

from course_kit.checker.report.report import Example, Report, cell
from course_kit.checker.shortening import listed, shortened
from course_kit.checker.verdict.judge import Line, Verdict
from course_kit.exercises import Exercise

__all__ = ["because", "connected", "not_attempted", "not_counted", "plain_words", "printed_lines", "text_of"]

MARKS = {True: "✓", False: "✗", None: "–"}
PRINTED_LINES = 8


def text_of(report: Report, heading: str, *, graded: bool = False) -> str:
    """The report as plain text.

    Args:
        heading: first line, after the name of the exercise.
        graded: for a feedback page, without an invitation to try again.
    """
    name, verdict = report.exercise.name, report.verdict
    if verdict.status == "not attempted":
        return f"{name}: {heading}\n" + ("Not attempted." if graded else not_attempted(report.exercise))
    lines = [f"{name}: {heading}"]
    lines += [f"  | {line}" for line in printed_lines(report)]
    for line in verdict.lines:
        lines.append(f"  {MARKS[line.holds]} {plain_words(line.message)}{because(line)}{connected(report, line)}")
    if verdict.status == "passed":
        return "\n".join(
            [*lines, "All of it holds.", *(f"Remark: {plain_words(message)}" for message in report.remarks)]
        )
    if verdict.status == "not counted":
        lines.append(not_counted(verdict))
    if report.diagnosis is not None:
        lines += ["", f"Diagnosis: {plain_words(report.diagnosis.message)}"]
    elif report.example is not None:
        lines += ["", "Diagnosis: unknown. Here is a case that fails."]
    if report.example is not None:
        lines += ["", *_example_text(report.example)]
    if report.example is not None or report.diagnosis is not None:
        lines += ["", f"Look next: {report.next_step}"]
    return "\n".join(lines)


def because(line: Line) -> str:
    """What is wrong, after a line about conduct; for the other lines, the case shows it."""
    return f" ({shortened(line.findings[0][1].text, 160)})" if line.conduct and line.findings else ""


def connected(report: Report, line: Line) -> str:
    """If one mistake breaks several lines: which one to begin with, and which ones fail with it."""
    if report.cause is None or line.holds is not False:
        return ""
    return " ← begin here" if line is report.cause else " (fails for the same reason)"


def plain_words(text: str) -> str:
    """Text with `code` and *stress* in it, as plain text."""
    return re.sub(r"(?<![\w*])\*([^*\s][^*]*?)\*(?![\w*])", r"\1", text)


def printed_lines(report: Report) -> list[str]:
    """The beginning of the solution's printed output, which belongs to the first case."""
    lines = report.printed.rstrip().split("\n") if report.printed.strip() else []
    rest = len(lines) - PRINTED_LINES
    shown = [shortened(line, 100) for line in lines[:PRINTED_LINES]]
    return [*shown, f"… {rest} more line{'s' if rest != 1 else ''} printed"] if rest > 0 else shown


def not_attempted(exercise: Exercise) -> str:
    """The message for an exercise that has not been attempted."""
    if exercise.repair:
        return (
            f"Not attempted yet. Delete the line with `raise NotImplementedError` once you have repaired the code, or "
            f"once you are sure that nothing in it needs repair; run that cell, then this one. "
            f'`hint("{exercise.name}")` helps you to start.'
        )
    return (
        f"Not attempted yet. Write your code in place of `raise NotImplementedError`, run that cell, then this one. "
        f'`hint("{exercise.name}")` helps you to start.'
    )


def not_counted(verdict: Verdict) -> str:
    """The message if a forbidden function does the work."""
    used = " and ".join(verdict.used)
    return (
        f"Not counted as your own work: the solution calls {used}, which does the whole exercise. Write it "
        f"yourself, and check again."
    )


def _example_text(example: Example) -> list[str]:
    lines = [example.heading]
    where = f"{example.where}: " if example.where else ""
    outcome = [f"  {where if i == 0 else ''}{line}" for i, line in enumerate(example.text.split("\n"))]
    call = [f"  {line}" for line in example.call]
    lines += [f"  your {example.code}", *outcome, *call] if example.code else [*call, *outcome]
    if example.expected is not None:
        for name, part in (("expected", example.expected), ("got", example.actual)):
            marks = example.marked if name == "got" and part.numel() > 1 else frozenset()
            lines.append(f"  {name}" + (f"   (* {example.mark})" if marks else ""))
            rows = [[cell(x) for x in row] for row in part]
            width = max(len(x) for row in rows for x in row)
            for i, row in enumerate(rows):
                cells = [f"{x:>{width}}" + ("*" if (i, j) in marks else " ") for j, x in enumerate(row)]
                lines.append("    " + " ".join(cells).rstrip())
    if example.weights:
        lines.append(f"  weights: {listed([name for name, _ in example.weights], 8)}")
    return lines
