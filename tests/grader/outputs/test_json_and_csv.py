"""Results as JSON and CSV: what instructors read by machine and in a spreadsheet."""

import csv
import dataclasses
import io
import json
import re

import pytest
from handed_back import ASSIGNMENT, NASTY, half, passed, result, rows, untouched

from course_grade.grading.results import TaskResult
from course_grade.output.result_files import csv_text, gradescope, json_text
from course_lib._version import __version__

pytestmark = pytest.mark.usefixtures("lent_fork_servers")

# JSON


def test_json_holds_the_assignment_and_every_result():
    content = json.loads(json_text([result(), result(student=NASTY)], ASSIGNMENT))
    assert content["course_lib"] == __version__
    assert content["assignment"]["seed"] == 7
    assert [task["points"] for task in content["assignment"]["exercises"]] == [2, 3, 1]
    ada, other = content["submissions"]
    assert (ada["student"], ada["points"], ada["of"]) == ("ada", 3.5, 6)
    assert other["student"] == NASTY
    assert [task["status"] for task in ada["tasks"]] == ["passed", "failed", "not attempted"]
    assert ada["tasks"][1]["lines"][1] == {"says": "The weights", "holds": False, "weight": 1.0}
    assert ada["tasks"][1]["diagnosis"]["key"] == "k"


def test_json_is_the_same_bytes_for_the_same_results_and_strict():
    one, two = (json_text([result(problems=["late"])], ASSIGNMENT) for _ in range(2))
    assert one == two

    def no(constant):
        raise AssertionError(f"{constant} is no JSON")

    json.loads(one, parse_constant=no)


def test_json_leaves_the_results_as_they_are():
    given = result(dataclasses.replace(passed(), html="<p>kept</p>"))
    assert "kept" not in json_text([given], ASSIGNMENT)
    assert given.tasks[0].html == "<p>kept</p>"


def test_the_penalty_is_taken_off_the_points_of_a_student():
    late = result(late_days=2, penalty=0.2)
    assert json.loads(json_text([late], ASSIGNMENT))["submissions"][0]["points"] == pytest.approx(2.8)
    assert rows([late])[0]["points"] == "2.8"
    assert json.loads(gradescope(late))["score"] == pytest.approx(2.8)


# CSV


def test_csv_has_a_row_a_student_with_points_of_each_exercise():
    text = csv_text([result(), result(student="bob", late_days=3)], ASSIGNMENT)
    assert text.splitlines()[0] == (
        '\ufeff"student","points","of","softmax","attend","causal_mask",'
        '"points before penalty","days late","penalty","ungraded","notes","sandbox"'
    )
    ada, bob = rows([result(), result(student="bob", late_days=3)])
    assert (ada["student"], ada["points"], ada["of"]) == ("ada", "3.5", "6")
    assert (ada["softmax"], ada["attend"], ada["causal_mask"], ada["days late"]) == ("2", "1.5", "0", "0")
    assert bob["days late"] == "3"
    assert ada["sandbox"] == result().walls


def test_csv_columns_follow_the_assignment_whatever_the_order_of_the_results():
    shuffled = result(untouched(), half(), passed())
    assert rows([shuffled])[0]["softmax"] == "2"


@pytest.mark.parametrize("name", [NASTY, 'a,"b"', "two\nlines", "semi;colon", " spaces "])
def test_csv_names_survive_the_round_trip(name):
    assert rows([result(student=name)])[0]["student"] == name


@pytest.mark.parametrize(
    "text",
    [
        "ada;=1+1",
        "ada\t=1+1",
        "ada,  @SUM(A1)",
        'ada;"=1+1"',
        "ada; “=1+1”",
        "ada\n-1",
        "ada\r=1+1",
        "ada,＋1",
        "ada,－1",
        "ada,＠SUM(A1)",
        "ada|+1",
        "ada;\u00a0=1",
        "ada;＝1",
    ],
)
def test_csv_runs_no_formula_where_another_sign_separates_cells(text):
    """A spreadsheet of another locale splits the fields further; what it finds there begins with an apostrophe."""
    (row,) = rows([result(student=text)])
    cells = re.split("[;,|\t\r\n]", row["student"])
    assert cells[0] == "ada"
    assert cells[1].startswith("'")
    assert row["student"].replace("'", "", 1) == text


DROPPED = [" ", "\u00a0", "\ufeff", "\u200b", "\u200e", "\u200f", *"\"'`“”„‘’‚«»‹›"]


@pytest.mark.parametrize("name", ['"=1+1"', "  =1", "＝1", *(f"{sign}=1" for sign in DROPPED), "\r=1", "\n@A1"])
def test_csv_runs_no_formula_behind_what_a_spreadsheet_drops(name):
    (row,) = rows([result(student=name)])
    assert row["student"] == f"'{name}"


def test_csv_is_known_as_utf_8_and_quotes_every_field():
    text = csv_text([result(student="Zoë Müller")], ASSIGNMENT)
    assert text.encode().startswith(b"\xef\xbb\xbf")
    for row in csv.reader(io.StringIO(text.removeprefix("\ufeff")), quoting=csv.QUOTE_NONE):
        assert row[0][0] == row[0][-1] == '"'


def test_csv_shows_what_being_late_costs():
    (row,) = rows([result(late_days=2, penalty="1/8")])
    assert (row["points before penalty"], row["days late"], row["penalty"], row["points"]) == (
        "3.5",
        "2",
        "12.5%",
        "3.06",
    )


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", '=HYPERLINK("http://x","y")'])
def test_csv_runs_no_formula(name):
    (row,) = rows([result(student=name, problems=[name])])
    assert row["student"] == f"'{name}"
    assert row["notes"].startswith("'")


def test_csv_notes_say_what_happened():
    stopped = dataclasses.replace(half(), note="took longer than 5 s")
    (row,) = rows([result(stopped, passed(), untouched(), problems=["b.py cannot be read"])])
    assert row["notes"] == "b.py cannot be read; attend: took longer than 5 s"


def test_csv_thirds_are_rounded_and_whole_points_stay_whole():
    third = TaskResult("softmax", "failed", 2 / 3, 2.0)
    (row,) = rows([result(third, passed("attend", 3.0), untouched())])
    assert row["softmax"] == "0.67"
    assert row["attend"] == "3"
