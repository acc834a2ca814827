"""Points are exact from the weights of properties to the totals, and rounded once, where they are shown."""

import csv
import io
import json
import random
from fractions import Fraction

import pytest
import yaml

from course_grade.grading.assignment import AssignedExercise, Assignment, assignment_from
from course_grade.grading.results import Result, TaskResult
from course_grade.output.export_assignment import assignment_yaml
from course_grade.output.result_files import csv_text, gradescope, json_text
from course_grade.output.student_page import feedback_page
from course_kit.checker.observing import Observation, Problem
from course_kit.checker.points import allotted, exact, percent, plain_number, shown
from course_kit.checker.verdict.judge import judge
from course_kit.checker.verdict.sheet import sheet_of
from course_kit.exercises import all_exercises

THIRDS = ("softmax", "attend", "causal_mask")


def thirds(*earned, **more) -> Result:
    tasks = [
        TaskResult(name, "passed", Fraction(10, 3) * part, "10/3") for name, part in zip(THIRDS, earned, strict=True)
    ]
    return Result("ada", tasks, **more)


ASSIGNMENT = Assignment(tasks=tuple(AssignedExercise(name, "10/3") for name in THIRDS), seed=1)


def test_a_perfect_submission_shows_ten_of_ten_everywhere():
    perfect = thirds(1, 1, 1)
    assert (perfect.points, perfect.of) == (10, 10)
    (row,) = csv.DictReader(io.StringIO(csv_text([perfect], ASSIGNMENT).removeprefix("\ufeff")))
    assert (row["points"], row["of"], row["softmax"]) == ("10", "10", "3.33")
    (student,) = json.loads(json_text([perfect], ASSIGNMENT))["submissions"]
    assert (student["points"], student["of"]) == (10, 10)
    assert "10 of 10 points" in feedback_page(perfect, ASSIGNMENT)
    content = json.loads(gradescope(perfect))
    assert content["score"] == 10
    assert [test["score"] for test in content["tests"]] == [3.34, 3.33, 3.33]


def test_gradescopes_tests_sum_to_its_total_and_none_is_above_its_own():
    chance = random.Random(1)
    for _ in range(200):
        earned = [Fraction(chance.randint(0, 60), 60) for _ in THIRDS]
        penalty = Fraction(chance.randint(0, 40), 40)
        content = json.loads(gradescope(thirds(*earned, late_days=1, penalty=penalty)))
        hundredths = [round(100 * test["score"]) for test in content["tests"]]
        assert sum(hundredths) == round(100 * content["score"])
        assert all(0 <= test["score"] <= test["max_score"] <= 3.34 for test in content["tests"])


def test_what_is_allotted_is_within_a_hundredth_and_sums_to_the_total():
    chance = random.Random(1)
    for _ in range(200):
        parts = [Fraction(chance.randint(0, 40000), chance.randint(1, 900)) for _ in range(chance.randint(0, 8))]
        given_out = allotted(parts)
        assert sum(given_out) == shown(sum(parts, Fraction()))
        assert all(abs(part - given) < Fraction(1, 100) for part, given in zip(parts, given_out, strict=True))


def test_points_are_what_is_written():
    for written, is_ in {0.1: "1/10", "1/3": "1/3", 2: "2", "2.50": "5/2", 1e-05: "1/100000"}.items():
        assert exact(written) == Fraction(is_)
        assert assignment_from({"exercises": {"softmax": written}}).points == Fraction(is_)
    assert assignment_from({"exercises": {"softmax": 0.1, "attend": 0.2}}).points == Fraction(3, 10)


def test_what_is_no_number_is_refused():
    for written in ("1/0", "nan", "inf", "1e999999999", "a", "", "1/3/3", "-1", "0x1", "9" * 40):
        with pytest.raises(ValueError, match="expected a number"):
            exact(written)
        with pytest.raises(ValueError, match="points must be a number of at least 0"):
            assignment_from({"exercises": {"softmax": written}})


def test_halves_of_a_hundredth_are_rounded_away_from_zero():
    assert [float(shown(Fraction(n, 1000))) for n in (5, 15, 25, 994, 995)] == [0.01, 0.02, 0.03, 0.99, 1.0]
    assert [plain_number(Fraction(n, 8)) for n in (8, 1, 20)] == [1, 0.13, 2.5]
    assert percent(Fraction(1, 8)) == "12.5%"


def test_a_penalty_takes_no_more_than_there_is_and_adds_nothing():
    for penalty, left in {3: 0, 0.7: 3, "1/8": Fraction(35, 4), 40: 0, -2: 10}.items():
        assert thirds(1, 1, 1, late_days=4, penalty=penalty).points == left


def test_a_third_survives_the_export():
    text = assignment_yaml(ASSIGNMENT)
    assert "points: 10/3" in text
    assert assignment_from(yaml.safe_load(text)).points == 10


@pytest.mark.parametrize("error", ["ValueError", "TypeError", "NotImplementedError", "RuntimeError"])
def test_always_raising_an_error_earns_nothing(error):
    for exercise in all_exercises().values():
        trials = sheet_of(exercise, 1).trials
        problem = Problem(error, "no", bases=(error, "Exception"))
        stage = "build" if exercise.is_class else "call"
        seen = [Observation(problem=problem, stage=stage) for _ in trials]
        assert judge(exercise, trials, seen, allow_twins=False).score == 0, exercise.name
