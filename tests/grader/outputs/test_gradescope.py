"""Results as Gradescope reads them: https://gradescope-autograders.readthedocs.io/en/latest/specs/"""

import dataclasses
import json

import pytest
from handed_back import ASSIGNMENT, SCRIPT, WALLS, half, passed, result

from course_grade.output.result_files import gradescope, json_text

pytestmark = pytest.mark.usefixtures("lent_fork_servers")


TOP = {
    "score", "execution_time", "output", "output_format", "test_output_format", "test_name_format", "visibility",
    "stdout_visibility", "extra_data", "tests", "leaderboard",
}  # fmt: skip
CASE = {
    "score", "max_score", "status", "name", "name_format", "number", "output", "output_format", "tags", "visibility",
    "extra_data",
}  # fmt: skip
FORMATS = {"text", "html", "simple_format", "md", "ansi"}
VISIBILITIES = {"hidden", "after_due_date", "after_published", "visible"}


@pytest.mark.parametrize("given", [result(), result(problems=["x"]), result(late_days=1, penalty=0.3)])
def test_gradescope_has_documented_fields_only(given):
    content = json.loads(gradescope(given))
    assert set(content) <= TOP
    assert isinstance(content["score"], int | float)
    assert isinstance(content["output"], str)
    assert content["visibility"] in VISIBILITIES
    assert content["stdout_visibility"] in VISIBILITIES
    assert content["output_format"] in FORMATS
    assert len(content["tests"]) == 3
    for test in content["tests"]:
        assert set(test) <= CASE
        assert 0 <= test["score"] <= test["max_score"]
        assert test["status"] in {"passed", "failed"}
        assert test["output_format"] in FORMATS
        assert test["visibility"] in VISIBILITIES


def test_gradescope_tests_add_up_to_the_score():
    content = json.loads(gradescope(result(late_days=1, penalty=0.3)))
    assert [test["max_score"] for test in content["tests"]] == [2, 3, 1]
    assert sum(test["score"] for test in content["tests"]) == pytest.approx(content["score"]) == pytest.approx(2.45)


def test_gradescope_passes_what_is_passed_only():
    content = json.loads(
        gradescope(result(passed(), half(), dataclasses.replace(passed("attend"), status="not counted")))
    )
    assert [test["status"] for test in content["tests"]] == ["passed", "failed", "failed"]


def test_gradescope_shows_no_markup_of_the_submission():
    task = dataclasses.replace(half(), text=SCRIPT)
    assert "<script" not in json.loads(gradescope(result(task)))["tests"][0]["output"]


def test_gradescope_says_what_could_not_be_read_and_what_late_costs():
    content = json.loads(gradescope(result(problems=["b.ipynb: it is damaged"], late_days=2, penalty=0.2)))
    assert "b.ipynb: it is damaged" in content["output"]
    assert "2 days late: 20% of the points are taken off" in content["output"]
    assert "1 day late, no penalty" in json.loads(gradescope(result(late_days=1)))["output"]


def test_gradescope_and_json_state_the_walls():
    assert json.loads(gradescope(result()))["extra_data"]["sandbox"] == WALLS
    assert json.loads(json_text([result()], ASSIGNMENT))["submissions"][0]["walls"] == WALLS
