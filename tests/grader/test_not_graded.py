"""A fault of the grader is a status of its own: shown in every format, counted, not kept, and never a zero."""

import csv
import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from handed_in import CAUSAL, IMPORT, SOFTMAX

from course_grade.cli._console import Console
from course_grade.command import main
from course_grade.grading import grade as grading
from course_grade.grading.assignment import AssignedExercise, Assignment
from course_grade.grading.grade import Grader, grade_all
from course_grade.grading.one_submission import Run
from course_grade.grading.results import Result, TaskResult, ungraded_task
from course_grade.output.result_files import csv_text, gradescope, json_text, junit
from course_grade.output.student_page import feedback_page
from course_grade.sandbox.session import NotGraded, ServerGone
from course_grade.submission.submissions import read_submissions

pytestmark = pytest.mark.usefixtures("lent_fork_servers")

ASSIGNMENT = Assignment(tasks=(AssignedExercise("softmax", 2), AssignedExercise("causal_mask", 3)), seed=3)
REASON = "the walls refused what the solution may do"


def half_graded() -> Result:
    passed = TaskResult("softmax", "passed", 2, 2, [{"says": "Rows sum to one", "holds": True, "weight": 1.0}])
    return Result("ada", [passed, ungraded_task("causal_mask", 3, REASON)], walls="full")


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "250")


@pytest.fixture
def folder(tmp_path) -> Path:
    folder = tmp_path / "class"
    folder.mkdir()
    for name in ("ada", "bob", "cy"):
        (folder / f"{name}.py").write_text(IMPORT + SOFTMAX + CAUSAL + f"# {name}\n")
    return folder


@pytest.fixture
def faulty(monkeypatch):
    """Makes the grader fail where a student and an exercise are the ones named."""

    def fail(student, exercise, error):
        observe = Run.observe

        def failing(self, sheet):
            if (self.submission.student, sheet.exercise.name) == (student, exercise):
                raise error
            return observe(self, sheet)

        monkeypatch.setattr(Run, "observe", failing)

    return fail


ERRORS = {
    "the walls": (NotGraded(REASON), REASON),
    "an error of ours": (ZeroDivisionError("by zero"), "the grader failed: ZeroDivisionError: by zero"),
}


@pytest.mark.parametrize("kind", ERRORS)
def test_a_fault_of_the_grader_costs_nothing_but_its_exercise(folder, faulty, kind):
    error, message = ERRORS[kind]
    faulty("bob", "causal_mask", error)
    results = grade_all(list(read_submissions([folder])), ASSIGNMENT, None)
    statuses = [task.status for result in results for task in result.tasks]
    assert statuses == ["passed"] * 3 + ["not graded"] + ["passed"] * 2
    assert message in results[1].tasks[1].note
    assert [result.ungraded for result in results] == [0, 1, 0]


def test_a_server_that_dies_every_time_leaves_not_graded_and_no_zero(folder, faulty):
    faulty("bob", "softmax", ServerGone("gone"))
    results = grade_all(list(read_submissions([folder])), ASSIGNMENT, None)
    assert [result.ungraded for result in results] == [0, 2, 0]
    assert "even alone" in results[1].tasks[0].note


def test_a_server_that_cannot_start_again_ends_nothing(folder, monkeypatch):
    def no_server(*arguments):
        raise OSError("no more processes")

    with Grader(ASSIGNMENT) as grader, monkeypatch.context() as patch:
        patch.setattr(grading, "ForkServer", no_server)
        patch.setattr(grader.server, "gone", True)
        _, bob, _ = read_submissions([folder])
        assert "no more processes" in grader.grade(bob).tasks[0].note
    assert "the grading was stopped" in grader.grade(bob).tasks[0].note


def test_the_same_command_grades_just_what_was_not_graded(folder, faulty, capsys, monkeypatch):
    faulty("bob", "softmax", NotGraded(REASON))
    assert main(["grade", str(folder), "-e", "softmax", "--out", "out"]) == 3
    printed = " ".join(capsys.readouterr().out.split())
    assert "1 submission(s) could not be graded in full, because of the grader: bob." in printed
    assert re.search(r"bob 0 of 1 0 0 0 1", printed)
    assert len(list(Path("out/submissions").glob("*.json"))) == 2
    monkeypatch.undo()
    monkeypatch.chdir(folder.parent)
    assert main(["grade", str(folder), "-e", "softmax", "--out", "out"]) == 0
    assert "2 of 3 were graded by an earlier run" in " ".join(capsys.readouterr().out.split())
    assert len(list(Path("out/submissions").glob("*.json"))) == 3


def test_it_is_neither_a_zero_nor_a_failure_in_csv_json_and_junit():
    (row,) = csv.DictReader(io.StringIO(csv_text([half_graded()], ASSIGNMENT).removeprefix("\ufeff")))
    assert (row["points"], row["softmax"], row["causal_mask"], row["points before penalty"]) == ("", "2", "", "")
    assert REASON in row["notes"]
    (student,) = json.loads(json_text([half_graded()], ASSIGNMENT))["submissions"]
    assert student["ungraded"] == 1
    assert student["tasks"][1]["status"] == "not graded"
    assert REASON in student["tasks"][1]["note"]
    (suite,) = ElementTree.fromstring(junit([half_graded()]))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "0", "1")
    assert REASON in suite.find("testcase/error").get("message")


def test_the_mean_of_an_exercise_is_over_those_that_were_graded(capsys):
    tasks = [TaskResult(task.name, "passed", task.points, task.points) for task in ASSIGNMENT.tasks]
    Console(quiet=False).results([half_graded(), Result("bob", tasks)], ASSIGNMENT)
    assert "causal_mask 3.00 of 3 1 0 0 1" in " ".join(capsys.readouterr().out.split())


def test_gradescope_has_no_score_for_it_and_says_why_and_so_does_the_page_above_its_table():
    content = json.loads(gradescope(half_graded()))
    graded, other = content["tests"]
    assert (graded["score"], graded["status"], content["score"]) == (2, "passed", 2)
    assert other["name"] == "causal_mask (not graded)"
    assert not {"score", "max_score", "status"} & set(other)
    assert content["output"].startswith("1 exercise was not graded, because the grader failed: causal_mask.")
    assert "rerun the autograder" in content["output"]
    page = feedback_page(half_graded(), ASSIGNMENT)
    assert page.index("was not graded, because the grader failed") < page.index("<table")
    assert 'not graded</td><td class="number">– of 3</td>' in page
    assert REASON in page
