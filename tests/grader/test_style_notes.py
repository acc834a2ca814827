"""What is said about a right solution that passes by luck; it costs nothing."""

import os

import pytest
import torch

from course_grade.grading.assignment import AssignedExercise, Assignment
from course_grade.grading.grade import Grader
from course_grade.submission.submissions import read_submission
from course_kit import check
from course_kit.checker.notebook import self_check
from course_kit.checker.report.html_report import html_of
from course_kit.checker.verdict.style_notes import remarks_on, source_of
from course_kit.exercises import find

pytestmark = pytest.mark.usefixtures("lent_fork_servers")

EXERCISE = find("masked_softmax")
LUCK = "The gradient is finite by luck"
FILLED = "def masked_softmax(scores, mask):\n    weights = scores.masked_fill({}).softmax(-1)\n    return {}\n"
COVERED = "torch.where(mask, weights, 0.0)"


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
    report = self_check(EXERCISE, solution)
    assert report.verdict.score == 1
    assert f"<b>Remark.</b> {report.remarks[0][:20]}" in html_of(report, "")


def test_the_remark_tells_a_nan_that_is_mended_from_a_row_that_gives_none():
    (remark,) = remarks_on(EXERCISE, [FILLED.format("~mask, float('-inf')", COVERED)])
    assert "overwritten afterwards" in remark
    opened, lowest = "~(mask | ~mask.any(-1, keepdim=True)), float('-inf')", "~mask, torch.finfo(scores.dtype).min"
    for filled, mended in ((opened, COVERED), (opened, "weights.nan_to_num(0.0)"), (lowest, COVERED)):
        assert remarks_on(EXERCISE, [FILLED.format(filled, mended)]) == ()


def test_a_solution_that_fails_gets_a_diagnosis_and_no_remark():
    report = self_check(EXERCISE, lambda scores, mask: by_luck(scores, ~mask))
    assert report.diagnosis
    assert report.remarks == ()


def test_without_source_nothing_is_said():
    assert source_of(torch.softmax) == []
    assert remarks_on(EXERCISE, ["def broken(:", "\x00"]) == ()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="grading needs fork")
def test_in_grading_the_remark_is_in_the_feedback_and_all_points_are_given(tmp_path):
    path = tmp_path / "student.py"
    path.write_text(
        FILLED.format("~mask, -float('inf')", "mended(weights)")
        + "def mended(weights):\n    return weights.nan_to_num(0.0)\n"
    )
    with Grader(Assignment(tasks=(AssignedExercise("masked_softmax", 3),), seed=5)) as grader:
        (task,) = grader.grade(read_submission("student", [path])).tasks
    assert (task.status, task.points) == ("passed", 3)
    assert LUCK in task.text
    assert LUCK in task.html
