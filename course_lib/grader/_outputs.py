"""Results for people and for other programs: JSON, CSV, JUnit XML, Gradescope, a feedback page a student."""

from __future__ import annotations

import csv
import html
import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from course_lib import __version__
from course_lib._files import write_whole
from course_lib.grader._assignment import Assignment
from course_lib.grader._results import Result, TaskResult, as_dict

__all__ = ["csv_text", "feedback_page", "gradescope", "json_text", "junit", "write_feedback"]


def json_text(results: list[Result], assignment: Assignment) -> str:
    """Everything, for programs. The same results give the same bytes."""
    students = [{"points": r.points, "of": r.of, **_without_html(r)} for r in results]
    content = {"course_lib": __version__, "assignment": assignment.as_dict(), "submissions": students}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _without_html(result: Result) -> dict[str, Any]:
    content = as_dict(result)
    for task in content["tasks"]:
        del task["html"]
    return content


def csv_text(results: list[Result], assignment: Assignment) -> str:
    """A row a student: points, what can be had, points of each exercise, days late, notes, sandbox."""
    names = [task.name for task in assignment.tasks]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["student", "points", "of", *names, "days late", "notes", "sandbox"])
    for result in results:
        by_name = {task.name: task for task in result.tasks}
        row = [result.student, _plain(result.points), _plain(result.of)]
        row += [_plain(by_name[name].points) for name in names]
        notes = _harmless("; ".join(_notes(result)))
        writer.writerow([*map(_harmless, row), result.late_days, notes, _harmless(result.walls)])
    return buffer.getvalue()


def _harmless(text: Any) -> Any:
    """A spreadsheet would run what begins like a formula."""
    return f"'{text}" if isinstance(text, str) and text.startswith(tuple("=+-@\t\r")) else text


def _plain(number: float) -> float | int:
    return int(number) if float(number).is_integer() else round(number, 4)


def _notes(result: Result) -> list[str]:
    return [*result.problems, *(f"{task.name}: {task.note}" for task in result.tasks if task.note)]


def junit(results: list[Result]) -> str:
    """JUnit XML: a test suite a student, a test case a property."""
    root = ElementTree.Element("testsuites", name="course-lib grade")
    for result in results:
        suite = ElementTree.SubElement(root, "testsuite", name=_xml(result.student))
        properties = ElementTree.SubElement(suite, "properties")
        ElementTree.SubElement(properties, "property", name="sandbox", value=_xml(result.walls))
        counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
        for task in result.tasks:
            for line in task.lines or [{"says": task.note or task.status, "holds": None}]:
                case = ElementTree.SubElement(suite, "testcase", classname=task.name, name=_xml(line["says"]))
                counts["tests"] += 1
                if task.status == "not attempted":
                    ElementTree.SubElement(case, "skipped", message="not attempted")
                    counts["skipped"] += 1
                elif not line["holds"] or task.status == "not counted":
                    says = task.diagnosis["says"] if task.diagnosis else task.note or line["says"]
                    ElementTree.SubElement(case, "failure", message=_xml(says)).text = _xml(task.text)
                    counts["failures"] += 1
        for name, count in counts.items():
            suite.set(name, str(count))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    return "".join(
        c if c in "\n\t" or (ord(c) >= 32 and not 0xD800 <= ord(c) < 0xE000 and ord(c) not in (0xFFFE, 0xFFFF)) else "�"
        for c in text
    )


def gradescope(result: Result) -> str:
    """`results.json` of Gradescope's autograder, for one submission."""
    scale = 1 - result.penalty
    tests = [
        {
            "name": task.name,
            "score": round(task.points * scale, 2),
            "max_score": task.of,
            "status": "passed" if task.status == "passed" else "failed",
            "output": task.html or f"<p>{html.escape(task.text)}</p>",
            "output_format": "html",
            "visibility": "visible",
        }
        for task in result.tasks
    ]
    notes = [*result.problems]
    if result.late_days:
        notes.append(_late(result))
    content = {
        "score": result.points,
        "output": "\n".join(notes) or "Graded by course-lib. Each exercise has its own report.",
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
        "extra_data": {"sandbox": result.walls, "course_lib": __version__},
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _late(result: Result) -> str:
    days = f"{result.late_days} day{'s' if result.late_days != 1 else ''} late"
    return f"{days}: {result.penalty:.0%} of the points are taken off" if result.penalty else f"{days}, no penalty"


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
    total = f"<p><b>{_plain(result.points)} of {_plain(result.of)} points</b></p>"
    late = f"<p>{html.escape(_late(result))}</p>" if result.late_days else ""
    problems = "".join(f"<p>{html.escape(problem)}</p>" for problem in result.problems)
    rows = "".join(
        f'<tr><td><a href="#{task.name}">{task.name}</a></td><td>{task.status}</td>'
        f'<td class="number">{_plain(task.points)} of {_plain(task.of)}</td></tr>'
        for task in result.tasks
    )
    head = '<tr><th scope="col">exercise</th><th scope="col">result</th><th scope="col">points</th></tr>'
    table = f'<table class="points">{head}{rows}</table>'
    body = total + late + problems + table + "".join(_section(task) for task in result.tasks)
    footer = (
        f"course-lib {html.escape(__version__)}. The code ran apart from the grader; sandbox: "
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
