"""What is said about a right solution that passes by luck; it costs nothing."""

import os

import pytest
import torch

from course_grade.grading.assignment import AssignedExercise, Assignment
from course_grade.grading.grade import Grader
from course_grade.submission.submissions import read_submission
from course_kit import check
from course_kit.checker import notebook
from course_kit.checker.report.html_report import html_of
from course_kit.checker.verdict.style_notes import remarks_on, source_of
from course_kit.exercises import find

pytestmark = pytest.mark.usefixtures("lent_fork_servers")

LUCK = "The gradient is finite by luck"


def by_luck(scores, mask):
    return scores.masked_fill(~mask, float("-inf")).softmax(-1).nan_to_num(0.0)


def by_luck_with_where(scores, mask):
    weights = torch.softmax(torch.where(mask, scores, float("-inf")), dim=-1)
    return torch.where(torch.isnan(weights), torch.zeros_like(weights), weights)


@pytest.mark.parametrize("solution", [by_luck, by_luck_with_where])
def test_filling_and_mending_passes_with_a_remark(solution, capsys):
    check(solution, "masked_softmax")
    text = capsys.readouterr().out
    assert "All of it holds.\nRemark: It passes, but" in text
    assert LUCK in text
    report = notebook.self_check(find("masked_softmax"), solution)
    assert report.verdict.score == 1
    assert f"<b>Remark.</b> {report.remarks[0][:20]}" in html_of(report, "")


def test_rows_that_are_opened_before_the_softmax_get_none(capsys):
    def masked_softmax(scores, mask):
        opened = mask | ~mask.any(-1, keepdim=True)
        weights = scores.masked_fill(~opened, float("-inf")).softmax(-1).nan_to_num(0.0)
        return weights.masked_fill(~mask, 0.0)

    check(masked_softmax)
    assert "Remark" not in capsys.readouterr().out


def test_a_solution_that_fails_gets_a_diagnosis_and_no_remark():
    def masked_softmax(scores, mask):
        return scores.masked_fill(mask, float("-inf")).softmax(-1).nan_to_num(0.0)

    report = notebook.self_check(find("masked_softmax"), masked_softmax)
    assert report.diagnosis
    assert report.remarks == ()


def test_without_source_nothing_is_said():
    exercise = find("masked_softmax")
    assert source_of(torch.softmax) == []
    assert remarks_on(exercise, []) == ()
    assert remarks_on(exercise, ["def broken(:", "\x00"]) == ()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="grading needs fork")
def test_in_grading_the_remark_is_in_the_feedback_and_all_points_are_given(tmp_path):
    path = tmp_path / "student.py"
    path.write_text(
        "def masked_softmax(scores, mask):\n"
        "    return mended(scores.masked_fill(~mask, -float('inf')).softmax(-1))\n\n"
        "def mended(weights):\n"
        "    return weights.nan_to_num(0.0)\n"
    )
    with Grader(Assignment(tasks=(AssignedExercise("masked_softmax", 3),), seed=5)) as grader:
        (task,) = grader.grade(read_submission("student", [path])).tasks
    assert (task.status, task.points) == ("passed", 3)
    assert LUCK in task.text
    assert LUCK in task.html
