"""A report as a fragment of HTML for a notebook."""

from __future__ import annotations

import re
from html import escape

from course_kit.diagnosing.report import MARKS, Finding, Report, shown

__all__ = ["html_of"]

_COLOURS = {"fine": "#1f8f5f", "suspicious": "#b7791f", "wrong": "#d64545", "not checked": "#888"}


def html_of(report: Report) -> str:
    """The report as a fragment of HTML: problems first, everything else folded away below them.

    Inline styles only, since a notebook has no style sheet of ours; text takes the page's own colour, and the book's
    style sheet leaves out the background of what has the class `course-lib-report`.
    """
    fine = [each for each in report.findings if each.status == "fine"]
    unchecked = [each for each in report.findings if each.status == "not checked"]
    parts = [
        f'<p style="margin:.2em 0"><b>diagnose</b>: {escape(report.subject)}<br>{escape(report.verdict)}</p>',
        _list(report.problems),
        _folded("fine", fine),
        _folded("not checked", unchecked),
    ]
    return (
        '<div class="course-lib-report course-lib-diagnosis" '
        'style="border-left:3px solid #888;padding-left:.8em;max-width:46em">' + "".join(parts) + "</div>"
    )


def _folded(title: str, findings: list[Finding]) -> str:
    if not findings:
        return ""
    return f"<details><summary>{len(findings)} {escape(title)}</summary>{_list(findings)}</details>"


def _list(findings: list[Finding]) -> str:
    if not findings:
        return ""
    return f'<ul style="list-style:none;margin:.2em 0;padding-left:.5em">{"".join(map(_row, findings))}</ul>'


def _marked_up(text: str) -> str:
    """Escaped text, with names between backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _row(finding: Finding) -> str:
    colour = _COLOURS[finding.status]
    mark = (
        f'<span style="display:inline-block;width:1.3em;text-indent:0;font-weight:bold;color:{colour}" role="img" '
        f'aria-label="{escape(finding.status)}">{MARKS[finding.status]}</span>'
    )
    number = ""
    if finding.number is not None:
        number = f" <small>{escape(finding.measured)}: {escape(shown(finding.number))}</small>"
    return (
        f'<li style="margin:.3em 0;padding-left:1.3em;text-indent:-1.3em">{mark} <b>{escape(finding.name)}</b>'
        f"{number}<br>{_marked_up(finding.message)}</li>"
    )
