"""Results for other programs: JSON, CSV, JUnit XML, Gradescope."""

from __future__ import annotations

import csv
import html
import io
import json
from typing import Any
from xml.etree import ElementTree

from course_lib import __version__
from course_lib.grader._assignment import Assignment
from course_lib.grader._results import NOT_GRADED, Result, as_dict

__all__ = ["csv_text", "gradescope", "json_text", "junit", "late_text", "plain", "ungraded_text"]


def json_text(results: list[Result], assignment: Assignment) -> str:
    """Everything, for programs. The same results give the same bytes."""
    students = [{"points": r.points, "of": r.of, "ungraded": r.ungraded, **_without_html(r)} for r in results]
    content = {"course_lib": __version__, "assignment": assignment.as_dict(), "submissions": students}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _without_html(result: Result) -> dict[str, Any]:
    content = as_dict(result)
    for task in content["tasks"]:
        del task["html"]
    return content


def csv_text(results: list[Result], assignment: Assignment) -> str:
    """One row per student: points, what can be earned, points of each exercise, days late, notes, sandbox.

    Where an exercise was not graded, its points and the student's stay empty: they are not zero, and nothing that reads
    the file can mistake them for a grade.
    """
    names = [task.name for task in assignment.tasks]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["student", "points", "of", *names, "days late", "notes", "sandbox"])
    for result in results:
        by_name = {task.name: task for task in result.tasks}
        row = [result.student, "" if result.ungraded else plain(result.points), plain(result.of)]
        row += ["" if by_name[name].status == NOT_GRADED else plain(by_name[name].points) for name in names]
        notes = _harmless("; ".join(_notes(result)))
        writer.writerow([*map(_harmless, row), result.late_days, notes, _harmless(result.walls)])
    return buffer.getvalue()


def _harmless(text: Any) -> Any:
    """A spreadsheet would run what begins like a formula."""
    return f"'{text}" if isinstance(text, str) and text.startswith(tuple("=+-@\t\r")) else text


def plain(number: float) -> float | int:
    """A number of points as it is shown."""
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
                if task.status == NOT_GRADED:
                    ElementTree.SubElement(case, "error", message=_xml(task.note)).text = _xml(task.text)
                    counts["errors"] += 1
                    continue
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
    """`results.json` of Gradescope's autograder, for one submission.

    The format asks for a score of the whole or of every test. An exercise that was not graded has neither score nor
    status, and the first lines of the output say why the total lacks it.
    """
    scale = 1 - result.penalty
    tests = []
    for task in result.tasks:
        test = {
            "name": task.name,
            "output": task.html or f"<p>{html.escape(task.text)}</p>",
            "output_format": "html",
            "visibility": "visible",
        }
        if task.status == NOT_GRADED:
            test["name"] += " (not graded)"
        else:
            test["score"], test["max_score"] = round(task.points * scale, 2), task.of
            test["status"] = "passed" if task.status == "passed" else "failed"
        tests.append(test)
    notes = [*result.problems]
    if result.ungraded:
        notes.insert(0, ungraded_text(result) + " Instructors: rerun the autograder for this submission.")
    if result.late_days:
        notes.append(late_text(result))
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


def ungraded_text(result: Result) -> str:
    """What a student is told where the grader has failed."""
    exercises = f"{result.ungraded} exercise{'s were' if result.ungraded != 1 else ' was'}"
    names = ", ".join(task.name for task in result.tasks if task.status == NOT_GRADED)
    return (
        f"{exercises} not graded, because the grader failed: {names}. This is not a fault of the submission. "
        f"The points shown are those of the other exercises and will be completed when the grader has run again."
    )


def late_text(result: Result) -> str:
    """How late, and what that costs."""
    days = f"{result.late_days} day{'s' if result.late_days != 1 else ''} late"
    return f"{days}: {result.penalty:.0%} of the points are taken off" if result.penalty else f"{days}, no penalty"
