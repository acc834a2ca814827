"""Results for other programs: JSON and CSV for instructors, Gradescope's results.json, JUnit XML for CI.

The formats: https://gradescope-autograders.readthedocs.io/en/latest/specs/, and junit-10.xsd of Jenkins' xUnit plugin.
"""

import csv
import dataclasses
import io
import json
import re
from xml.etree import ElementTree

import pytest
from handed_back import ASSIGNMENT, NASTY, SCRIPT, WALLS, half, line, passed, result, rows, untouched

from course_grade.grading.results import TaskResult
from course_grade.output.result_files import csv_text, gradescope, json_text, junit
from course_lib._version import __version__

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
    assert ada["walls"] == result().walls


def test_json_leaves_out_the_page_and_the_results_as_they_are():
    given = result(dataclasses.replace(passed(), html="<p>kept</p>"))
    assert "kept" not in json_text([given], ASSIGNMENT)
    assert given.tasks[0].html == "<p>kept</p>"


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


def test_csv_names_survive_the_round_trip():
    names = [NASTY, 'a,"b"', "two\nlines", "semi;colon", " spaces "]
    assert [row["student"] for row in rows([result(student=name) for name in names])] == names


BEHIND = [";=", "\t=", ",\xa0@", ';"=', ";“=", "\n-", "\r=", ",＋", ",－", ",＠", "|+", ";\xa0=", ";＝", ";\ufeff="]
DROPPED = [" ", "\u00a0", "\ufeff", "\u200b", "\u200e", "\u200f", *"\"'`“”„‘’‚«»‹›"]
AT_ONCE = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", '=HYPERLINK("http://x","y")', "＝1", "\r=1", "\n@A1"]


def test_csv_runs_no_formula_even_where_a_sign_is_dropped_or_another_one_separates_cells():
    """A spreadsheet of another locale splits the fields further; what it finds there begins with an apostrophe."""
    for name in [*AT_ONCE, *(f"{sign}=1" for sign in DROPPED)]:
        (row,) = rows([result(student=name, problems=[name])])
        assert row["student"] == f"'{name}"
        assert row["notes"].startswith("'")
    for sign in BEHIND:
        (row,) = rows([result(student=f"ada{sign}1+1")])
        assert re.split("[;,|\t\r\n]", row["student"]) == ["ada", f"'{sign[1:]}1+1"]


def test_csv_is_known_as_utf_8_and_quotes_every_field():
    text = csv_text([result(student="Zoë Müller")], ASSIGNMENT)
    assert text.encode().startswith(b"\xef\xbb\xbf")
    for row in csv.reader(io.StringIO(text.removeprefix("\ufeff")), quoting=csv.QUOTE_NONE):
        assert row[0][0] == row[0][-1] == '"'


def test_csv_shows_what_being_late_costs():
    (row,) = rows([result(late_days=2, penalty="1/8")])
    columns = ("points before penalty", "days late", "penalty", "points")
    assert [row[column] for column in columns] == ["3.5", "2", "12.5%", "3.06"]


def test_csv_thirds_are_rounded_and_whole_points_stay_whole():
    third = TaskResult("softmax", "failed", 2 / 3, 2.0)
    (row,) = rows([result(third, passed("attend", 3.0), untouched())])
    assert row["softmax"] == "0.67"
    assert row["attend"] == "3"


# Gradescope

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


def test_gradescope_passes_what_is_passed_only_and_scores_add_up():
    tasks = passed(), half(), dataclasses.replace(passed("causal_mask"), status="not counted")
    tests = json.loads(gradescope(result(*tasks)))["tests"]
    assert [(test["status"], test["max_score"]) for test in tests] == [("passed", 2), ("failed", 3), ("failed", 2)]
    late = json.loads(gradescope(result(late_days=1, penalty=0.3)))
    assert sum(test["score"] for test in late["tests"]) == pytest.approx(late["score"]) == pytest.approx(2.45)


def test_gradescope_shows_no_markup_says_what_could_not_be_read_and_states_lateness_and_walls():
    task = dataclasses.replace(half(), text=SCRIPT)
    content = json.loads(gradescope(result(task, problems=["b.ipynb: it is damaged"], late_days=2, penalty=0.2)))
    assert "<script" not in content["tests"][0]["output"]
    assert "b.ipynb: it is damaged" in content["output"]
    assert "2 days late: 20% of the points are taken off" in content["output"]
    assert content["extra_data"]["sandbox"] == WALLS
    assert "1 day late, no penalty" in json.loads(gradescope(result(late_days=1)))["output"]


# JUnit

SCHEMA = {  # attributes and children that an element may have
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "time", "skipped", "timestamp", "hostname", "id", "package"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "testcase": ({"name", "classname", "time", "group"}, {"skipped", "error", "failure", "system-out", "system-err"}),
    "skipped": ({"message", "type"}, set()),
    "error": ({"message", "type"}, set()),
    "failure": ({"message", "type"}, set()),
    "system-out": (set(), set()),
    "system-err": (set(), set()),
}


def suites(*results):
    root = ElementTree.fromstring(junit(list(results)).encode())
    assert root.tag == "testsuites"
    return root.findall("testsuite")


def test_junit_has_only_elements_and_attributes_of_its_schema():
    text = junit([result(), result(student=NASTY, problems=["x"], late_days=1, penalty=0.1)])
    for element in ElementTree.fromstring(text.encode()).iter():
        attributes, children = SCHEMA[element.tag]
        assert set(element.attrib) <= attributes, element.tag
        assert {child.tag for child in element} <= children, element.tag
        assert element.tag not in {"testsuite", "testcase"} or element.get("name")


def test_junit_has_a_suite_a_student_and_a_case_a_property():
    ada, bob = suites(result(), result(student="bob"))
    assert (ada.get("name"), bob.get("name")) == ("ada", "bob")
    cases = [(case.get("classname"), case.get("name")) for case in ada.findall("testcase")]
    assert cases == [
        ("softmax", "Rows sum to one"),
        ("softmax", "Large scores"),
        ("attend", "The <output>"),
        ("attend", "The weights"),
        ("causal_mask", "not attempted"),
    ]


def test_junit_counts_are_those_of_its_cases():
    (suite,) = suites(result(passed(), half(), untouched(), dataclasses.replace(half("layer_norm"), lines=[])))
    assert int(suite.get("tests")) == len(suite.findall("testcase")) == 6
    assert int(suite.get("failures")) == len(suite.findall("testcase/failure")) == 2
    assert suite.get("errors") == "0"
    assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped")) == 1


def test_junit_fails_exactly_the_properties_that_do_not_hold():
    (suite,) = suites(result())
    failed = [case.get("name") for case in suite.findall("testcase") if case.find("failure") is not None]
    assert failed == ["The weights"]
    failure = suite.find("testcase/failure")
    assert failure.get("message") == "It looks like `a < b` & no more"
    assert failure.text == "attend: <no>"


def test_junit_does_not_pass_what_is_not_counted_or_could_not_be_read():
    used = TaskResult("softmax", "not counted", 0.0, 2.0, [line("Rows sum to one")], note="uses torch's softmax")
    unread = TaskResult("softmax", "failed", 0.0, 2.0, note="a.py could not be read", text="softmax: x")
    for task in (used, unread):
        (suite,) = suites(result(task))
        (case,) = suite.findall("testcase")
        assert case.find("failure").get("message") == task.note


def test_junit_is_xml_whatever_the_names():
    for name in ("a\x00b", "\x1b[31m", "\ud800", "\ufffe", "\x0b", NASTY, SCRIPT, "]]>"):
        task = dataclasses.replace(half(), text=name, lines=[line(name, False)], diagnosis={"key": "k", "says": name})
        (suite,) = suites(result(task, student=name))
        assert len(suite.get("name")) == len(name)
        assert suite.find("testcase/failure") is not None


def test_junit_names_the_sandbox_and_keeps_every_letter():
    suite = ElementTree.fromstring(junit([result(student="ada 🎓 \ufffe")]))[0]
    assert suite.attrib["name"] == "ada 🎓 �"
    assert suite.find("properties/property").attrib == {"name": "sandbox", "value": result().walls}
