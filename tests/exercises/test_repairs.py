"""Exercises in which code is given to be repaired: the code runs, and its fault is known by name."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.exercises import all_exercises
from course_lib.grader.verdict.diagnose import diagnose
from course_lib.grader.verdict.judge import judge
from course_lib.grader.verdict.sheet import sheet_of

pytestmark = pytest.mark.judging

REPAIRS = [exercise for exercise in all_exercises().values() if exercise.repair]
SOUND = {"fix_softmax"}  # nothing in it needs repair


def given(exercise):
    """The function or class of the code as it is given, without the line that stops it."""
    names = {"math": math, "torch": torch, "nn": nn, "F": F, "__name__": "given"}
    exec(exercise.code_to_repair, names)
    return names[exercise.name]


@pytest.mark.parametrize("exercise", REPAIRS, ids=lambda e: e.name)
def test_the_code_as_given_is_named_as_such_or_passes_where_nothing_is_wrong(exercise):
    sheet = sheet_of(exercise, 0)
    seen = sheet.run(given(exercise))
    verdict = judge(exercise, sheet.trials, seen, allow_twins=False)
    if exercise.name in SOUND:
        assert verdict.status == "passed"
    else:
        assert verdict.status == "failed"
        assert diagnose(sheet, verdict, seen).key == "as_given"


@pytest.mark.parametrize("exercise", REPAIRS, ids=lambda e: e.name)
def test_one_line_stops_the_code(exercise):
    assert exercise.stub.count("NotImplementedError") == 1
    assert "NotImplementedError" not in exercise.code_to_repair
    assert "raise NotImplementedError" in exercise.statement
