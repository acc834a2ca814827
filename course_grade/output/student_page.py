"""The feedback page of one student."""

from __future__ import annotations

import html
from pathlib import Path

from course_grade.grading.assignment import Assignment
from course_grade.grading.results import NOT_GRADED, Result, TaskResult
from course_grade.output.result_files import late_text, ungraded_text
from course_kit._files import write_whole
from course_kit.checker.points import plain_number
from course_lib._version import __version__

__all__ = ["feedback_page", "write_feedback"]

PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 52em; margin: 2em auto; padding: 0 1em; }}
table.points {{ border-collapse: collapse; }}
table.points td, table.points th {{ padding: .2em .8em; text-align: left; border-bottom: 1px solid #8886; }}
table.points td {{ overflow-wrap: anywhere; }}
table.points td.number {{ text-align: right; overflow-wrap: normal; }}
section {{ margin: 2em 0; }}
pre {{ overflow-x: auto; }}
footer {{ margin-top: 3em; font-size: .85em; opacity: .8; }}
</style>
</head>
<body>
<h1>{title}</h1>
{body}
<footer>{footer}</footer>
</body>
</html>
"""


def feedback_page(result: Result, assignment: Assignment) -> str:
    """A student's page: points, then the report of each exercise."""
    title = html.escape(" · ".join(filter(None, (assignment.title, result.student))))
    total = f"<p><b>{plain_number(result.points)} of {plain_number(result.of)} points</b></p>"
    late = f"<p>{html.escape(late_text(result))}</p>" if result.late_days else ""
    late += f"<p>Lateness: {html.escape(result.lateness)}.</p>" if result.lateness else ""
    ungraded = f"<p><b>{html.escape(ungraded_text(result))}</b></p>" if result.ungraded else ""
    problems = "".join(f"<p>{html.escape(problem)}</p>" for problem in result.problems)
    rows = "".join(
        f'<tr><td><a href="#{task.name}">{task.name}</a></td><td>{task.status}</td>'
        f'<td class="number">{"–" if task.status == NOT_GRADED else plain_number(task.points)} of '
        f"{plain_number(task.of)}</td></tr>"
        for task in result.tasks
    )
    head = '<tr><th scope="col">exercise</th><th scope="col">result</th><th scope="col">points</th></tr>'
    table = f'<table class="points">{head}{rows}</table>'
    body = total + ungraded + late + problems + table + "".join(_section(task) for task in result.tasks)
    footer = (
        f"course-lib {html.escape(__version__)}. The code ran separately from the grader; sandbox: "
        f"{html.escape(result.walls)}."
    )
    return PAGE.format(title=title, body=body, footer=footer)


def _section(task: TaskResult) -> str:
    note = f"<p>{html.escape(task.note)}</p>" if task.note else ""
    inside = task.html or f"<p>{html.escape(task.text)}</p>"
    return f'<section id="{task.name}"><h2>{task.name}</h2>{note}{inside}</section>'


def write_feedback(folder: Path, name: str, result: Result, assignment: Assignment) -> None:
    """Write a student's page."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / f"{name}.html", feedback_page(result, assignment))
