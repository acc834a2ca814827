"""A report as a fragment of HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

import torch
from torch import Tensor

from course_kit.checker.report.plain_report import MARKS, because, connected, not_attempted, not_counted, printed_lines
from course_kit.checker.report.report import Example, Report, cell
from course_kit.checker.verdict.judge import Line

__all__ = ["box", "html_of", "marked_up"]

# HTML. Inline styles only: a notebook has no style sheet of ours. Text takes the page's own colour, so that it reads in
# light and dark; cells of the heat map have both colours set.


def html_of(report: Report, heading: str, *, graded: bool = False) -> str:
    """The report as a fragment of HTML; the arguments are those of `text_of`."""
    name, verdict = html.escape(report.exercise.name), report.verdict
    parts = [f'<p style="margin:.2em 0"><b><code>{name}</code></b>: {html.escape(heading)}</p>']
    if verdict.status == "not attempted":
        parts.append(f"<p>{'Not attempted.' if graded else marked_up(not_attempted(report.exercise))}</p>")
        return box(parts)
    if printed := printed_lines(report):
        parts.append(_preformatted(printed))
    rows = "".join(_row(report, line) for line in verdict.lines)
    parts.append(f'<ul style="list-style:none;margin:.2em 0;padding-left:.5em">{rows}</ul>')
    if verdict.status == "passed":
        remarks = [f"<p><b>Remark.</b> {marked_up(message)}</p>" for message in report.remarks]
        return box([*parts, "<p>All of it holds.</p>", *remarks])
    if verdict.status == "not counted":
        parts.append(f"<p>{marked_up(not_counted(verdict))}</p>")
    if report.diagnosis is not None:
        parts.append(f'<p style="margin:.6em 0"><b>Diagnosis.</b> {marked_up(report.diagnosis.message)}</p>')
    elif report.example is not None:
        parts.append("<p><b>Diagnosis:</b> unknown. Here is a case that fails.</p>")
    if report.example is not None:
        parts.append(_example_html(report.example))
    if report.example is not None or report.diagnosis is not None:
        parts.append(f'<p style="margin:.8em 0 .2em"><b>Look next:</b> {marked_up(report.next_step)}</p>')
    return box(parts)


def _row(report: Report, line: Line) -> str:
    message = marked_up(line.message + because(line))
    note = html.escape(connected(report, line).removeprefix(" "))
    if note:
        message = f"<b>{message}</b> {note}" if line is report.cause else f"{message} <em>{note}</em>"
    return (
        f'<li style="margin:.1em 0;padding-left:1.3em;text-indent:-1.3em">'
        f'<span style="{_mark_style(line.holds)}" role="img" '
        f'aria-label="{_spoken(line.holds)}">{MARKS[line.holds]}</span> {message}</li>'
    )


def box(parts: list[str]) -> str:
    """A frame that takes the page's colours."""
    return (
        '<div class="course-lib-report" style="border-left:3px solid #888;padding-left:.8em;max-width:46em">'
        + "".join(parts)
        + "</div>"
    )


def marked_up(text: str) -> str:
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
    title, colon, special = example.heading.partition(": ")
    parts = [f'<p style="margin-bottom:.2em"><b>{title}</b>{colon}{marked_up(special)}</p>']
    where = f"<code>{html.escape(example.where)}</code>: " if example.where else ""
    outcome, call = f"<p>{where}{marked_up(example.text)}</p>", _preformatted(example.call)
    parts += [_preformatted([f"your {example.code}"]), outcome, call] if example.code else [call, outcome]
    if example.expected is not None:
        maps = (_heat_map("expected", example.expected, example), _heat_map("got", example.actual, example))
        style = "display:flex;flex-wrap:wrap;gap:1.5em;overflow-x:auto"
        parts.append(
            f'<div tabindex="0" role="group" aria-label="expected and got" style="{style}">{"".join(maps)}</div>'
        )
    if example.weights:
        weights = _preformatted(f"{name} = {numbers}" if numbers else name for name, numbers in example.weights)
        parts.append(f"<details><summary>weights</summary>{weights}</details>")
    return "".join(parts)


def _preformatted(lines: Iterable[str]) -> str:
    return f'<pre style="margin:.2em 0;overflow-x:auto">{html.escape(chr(10).join(lines))}</pre>'


def _heat_map(name: str, part: Tensor, example: Example) -> str:
    both = torch.cat([example.expected.double().flatten(), example.actual.double().flatten()])
    finite = both[both.isfinite()].abs()
    top = float(finite.max()) if finite.numel() and float(finite.max()) > 0 else 1.0
    rows = []
    for i, row in enumerate(part):
        cells = []
        for j, x in enumerate(row):
            outline = ";outline:2px solid #c0392b" if (i, j) in example.marked else ""
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
