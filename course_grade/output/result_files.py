"""Results for other programs: JSON, CSV, JUnit XML, Gradescope."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from typing import Any
from xml.etree import ElementTree

from course_grade.grading.assignment import Assignment
from course_grade.grading.results import NOT_GRADED, Result
from course_kit.checker.points import allotted, percent, plain_number, shown
from course_lib._version import __version__

__all__ = ["csv_text", "gradescope", "harmless", "json_text", "junit", "late_text", "ungraded_text"]


def json_text(results: list[Result], assignment: Assignment) -> str:
    """Everything, in machine-readable form. The same results give the same bytes."""
    students = [_student(result) for result in results]
    content = {"course_lib": __version__, "assignment": assignment.as_dict(), "submissions": students}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _student(result: Result) -> dict[str, Any]:
    totals = {name: plain_number(getattr(result, name)) for name in ("points", "of", "before_penalty")}
    tasks = [{**vars(task), "points": plain_number(task.points), "of": plain_number(task.of)} for task in result.tasks]
    for task in tasks:
        del task["html"]
    more = {"tasks": tasks, "penalty": float(result.penalty)}
    return {**totals, "ungraded": result.ungraded, **vars(result), **more}


def csv_text(results: list[Result], assignment: Assignment) -> str:
    """One row per student: points (after the penalty), what can be earned, points of each exercise, and the rest.

    The file begins with a byte-order mark, by which Excel recognises UTF-8. If an exercise was not graded, its points
    and the student's total stay empty, so they cannot be mistaken for a grade of zero.
    """
    names = [task.name for task in assignment.tasks]
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n", quoting=csv.QUOTE_ALL)
    rest = ("points before penalty", "days late", "penalty", "ungraded", "notes", "sandbox")
    writer.writerow(["student", "points", "of", *names, *rest])
    for result in results:
        earned = {task.name: "" if task.status == NOT_GRADED else plain_number(task.points) for task in result.tasks}
        before, after = ("", "") if result.ungraded else map(plain_number, (result.before_penalty, result.points))
        row = [result.student, after, plain_number(result.of), *(earned[name] for name in names)]
        row += [before, result.late_days, percent(result.penalty)]
        row += [result.ungraded, "; ".join(result.remarks), result.walls]
        writer.writerow(map(harmless, row))
    return "\ufeff" + buffer.getvalue()


# A spreadsheet takes for a formula what begins with one of these signs. Where another sign than the comma separates
# cells (a semicolon, a tab), a cell may begin in the middle of a field, and quotes and spaces before the sign are
# dropped.
_FORMULA = re.compile(r"(^|[,;|\t\r\n])([\s\ufeff\u200b\u200e\u200f\"'`“”„‘’‚«»‹›]*)(?=[=+\-@＝＋－＠])")


def harmless(text: Any) -> Any:
    """A field without anything that a spreadsheet would run: an apostrophe makes it text."""
    return _FORMULA.sub(r"\1'\2", text) if isinstance(text, str) else text


def junit(results: list[Result]) -> str:
    """JUnit XML: one test suite per student, one test case per property."""
    root = ElementTree.Element("testsuites", name="course-lib grade")
    for result in results:
        suite = ElementTree.SubElement(root, "testsuite", name=_xml(result.student))
        properties = ElementTree.SubElement(suite, "properties")
        ElementTree.SubElement(properties, "property", name="sandbox", value=_xml(result.walls))
        for task in result.tasks:
            for line in task.lines or [{"says": task.note or task.status, "holds": None}]:
                case = ElementTree.SubElement(suite, "testcase", classname=task.name, name=_xml(line["says"]))
                if task.status == NOT_GRADED:
                    ElementTree.SubElement(case, "error", message=_xml(task.note)).text = _xml(task.text)
                elif task.status == "not attempted":
                    ElementTree.SubElement(case, "skipped", message="not attempted")
                elif not line["holds"] or task.status == "not counted":
                    message = task.diagnosis["says"] if task.diagnosis else task.note or line["says"]
                    ElementTree.SubElement(case, "failure", message=_xml(message)).text = _xml(task.text)
        for count, kind in {"tests": "", "failures": "/failure", "errors": "/error", "skipped": "/skipped"}.items():
            suite.set(count, str(len(suite.findall(f"testcase{kind}"))))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    return "".join(
        c if c in "\n\t" or (ord(c) >= 32 and not 0xD800 <= ord(c) < 0xE000 and ord(c) not in (0xFFFE, 0xFFFF)) else "�"
        for c in text
    )


def gradescope(result: Result) -> str:
    """`results.json` of Gradescope's autograder, for one submission.

    The format needs a score for the whole or for every test. An exercise that was not graded has neither score nor
    status, and the first lines of the output explain why it is missing from the total. Gradescope shows the sum of the
    tests beside the total, so the scores of the tests are allotted to sum to it (see `allotted`).
    """
    tests = []
    scores = allotted([task.points * (1 - result.penalty) for task in result.tasks])
    for task, score in zip(result.tasks, scores, strict=True):
        test = {
            "name": task.name,
            "output": task.html or f"<p>{html.escape(task.text)}</p>",
            "output_format": "html",
            "visibility": "visible",
        }
        if task.status == NOT_GRADED:
            test["name"] += " (not graded)"
        else:
            test["score"], test["max_score"] = plain_number(score), plain_number(max(shown(task.of), score))
            test["status"] = "passed" if task.status == "passed" else "failed"
        tests.append(test)
    notes = [result.lateness] * result.undecided + result.problems
    if result.ungraded:
        notes.insert(0, ungraded_text(result) + " Instructors: rerun the autograder for this submission.")
    if result.late_days:
        notes.append(late_text(result))
    content = {
        "score": plain_number(result.points),
        "output": "\n".join(notes) or "Graded by course-lib. Each exercise has its own report.",
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
        "extra_data": {"sandbox": result.walls, "course_lib": __version__},
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def ungraded_text(result: Result) -> str:
    """The message for a student if the grader has failed."""
    exercises = f"{result.ungraded} exercise{'s were' if result.ungraded != 1 else ' was'}"
    names = ", ".join(task.name for task in result.tasks if task.status == NOT_GRADED)
    return (
        f"{exercises} not graded, because the grader failed: {names}. This is not a fault of the submission. "
        f"The points shown are those of the other exercises and will be completed after the grader has been run again."
    )


def late_text(result: Result) -> str:
    """How late the submission was, and the penalty."""
    days = f"{result.late_days} day{'s' if result.late_days != 1 else ''} late"
    return f"{days}: {percent(result.penalty)} of the points are taken off" if result.penalty else f"{days}, no penalty"
