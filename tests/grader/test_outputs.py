"""Results for people and other programs: each format is read back by its own rules, with names that do their worst."""

import csv
import dataclasses
import io
import json
import os
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from course_lib._version import __version__
from course_lib.grader.grading.assignment import AssignedExercise, Assignment
from course_lib.grader.grading.grade import Grader
from course_lib.grader.grading.results import Result, TaskResult
from course_lib.grader.output.student_page import feedback_page, write_feedback
from course_lib.grader.output.tables import csv_text, gradescope, json_text, junit
from course_lib.grader.submission.submissions import read_submission

pytestmark = pytest.mark.usefixtures("lent_fork_servers")

NASTY = "Zoë “<b>&amp;</b>” {title} %s ; ‘x’, 名前"
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>"
WALLS = "partial (limits, seccomp; not available: landlock: <kernel> too old)"
ASSIGNMENT = Assignment(
    tasks=(AssignedExercise("softmax", 2.0), AssignedExercise("attend", 3.0), AssignedExercise("causal_mask")),
    seed=7,
    title="Week <3>",
)


def line(says, holds=True, weight=1.0):
    return {"says": says, "holds": holds, "weight": weight}


def passed(name="softmax", of=2.0):
    return TaskResult(
        name, "passed", of, of, [line("Rows sum to one"), line("Large scores")], text=f"{name}: all holds"
    )


def half(name="attend", of=3.0):
    lines = [line("The <output>"), line("The weights", False)]
    says = "It looks like `a < b` & no more"
    return TaskResult(name, "failed", of / 2, of, lines, {"key": "k", "says": says}, text=f"{name}: <no>")


def untouched(name="causal_mask", of=1.0):
    return TaskResult(name, "not attempted", 0.0, of, text=f"{name}: not attempted")


def result(*tasks, student="ada", **more):
    return Result(student, list(tasks or (passed(), half(), untouched())), walls=WALLS, **more)


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


def rows(results, assignment=ASSIGNMENT):
    return list(csv.DictReader(io.StringIO(csv_text(results, assignment).removeprefix("\ufeff"))))


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


# JUnit, against junit-10.xsd of Jenkins' xUnit plugin: attributes and children that an element may have.

SCHEMA = {
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
    assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped")) == 1


def test_junit_fails_exactly_the_properties_that_do_not_hold():
    (suite,) = suites(result())
    failed = [case.get("name") for case in suite.findall("testcase") if case.find("failure") is not None]
    assert failed == ["The weights"]
    failure = suite.find("testcase/failure")
    assert failure.get("message") == "It looks like `a < b` & no more"
    assert failure.text == "attend: <no>"


def test_junit_does_not_pass_what_is_not_counted():
    task = TaskResult("softmax", "not counted", 0.0, 2.0, [line("Rows sum to one")], note="uses torch's softmax")
    (suite,) = suites(result(task))
    assert suite.find("testcase/failure").get("message") == "uses torch's softmax"


def test_junit_shows_what_could_not_be_run():
    (suite,) = suites(
        result(TaskResult("softmax", "failed", 0.0, 2.0, note="a.py could not be read", text="softmax: x"))
    )
    (case,) = suite.findall("testcase")
    assert case.find("failure").get("message") == "a.py could not be read"


@pytest.mark.parametrize("name", ["a\x00b", "\x1b[31m", "\ud800", "\ufffe", "\x0b", NASTY, SCRIPT, "]]>"])
def test_junit_is_xml_whatever_the_names(name):
    task = dataclasses.replace(half(), text=name, lines=[line(name, False)], diagnosis={"key": "k", "says": name})
    (suite,) = suites(result(task, student=name))
    assert len(suite.get("name")) == len(name)
    assert suite.find("testcase/failure") is not None


def test_junit_counts_errors_names_the_sandbox_and_keeps_every_letter():
    suite = ElementTree.fromstring(junit([result(student="ada 🎓 \ufffe")]))[0]
    assert suite.attrib["errors"] == "0"
    assert suite.attrib["name"] == "ada 🎓 �"
    assert suite.find("properties/property").attrib == {"name": "sandbox", "value": result().walls}


# Gradescope: https://gradescope-autograders.readthedocs.io/en/latest/specs/

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


# The feedback page

VOID = {"meta", "br", "img", "hr", "link", "input"}


class Page(HTMLParser):
    """Reads a page strictly: every element is closed where it was opened."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.stack, self.ids, self.links, self.loads, self.text = [], [], [], [], ""
        self.tags, self.attributes, self.meta = Counter(), set(), {}
        self.feed(text)
        self.close()
        assert not self.stack, f"never closed: {self.stack}"

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        given = dict(attrs)
        assert len(given) == len(attrs), f"an attribute twice in {tag}"
        self.attributes |= set(given)
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        self.loads += [value for name, value in attrs if name in {"src", "srcset", "data", "action", "poster"}]
        if "http-equiv" in given:
            self.meta[given["http-equiv"].lower()] = given["content"]
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack, f"</{tag}> closes nothing"
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if self.stack[-1:] != ["style"]:
            self.text += data


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """What grading really writes: one passed, one with a heat map, one whose error carries markup."""
    if not hasattr(os, "fork"):
        pytest.skip("grading needs fork")
    path = tmp_path_factory.mktemp("in") / "a&b<i>.py"
    path.write_text(
        "import torch\n"
        "def causal_mask(length):\n"
        "    return torch.ones(length, length, dtype=torch.bool).tril()\n"
        "def softmax(scores, dim=-1):\n"
        "    return scores / scores.sum(dim, keepdim=True)\n"
        "def attend(scores, value):\n"
        f"    raise ValueError('{SCRIPT}')\n"
    )
    with Grader(ASSIGNMENT) as grader:
        return grader.grade(read_submission(path.stem, [path]))


PAGES = {
    "by hand": lambda graded: result(),
    "by the grader": lambda graded: graded,
    "hostile": lambda graded: result(
        dataclasses.replace(half(), text=SCRIPT, note=SCRIPT), student=SCRIPT + NASTY, problems=[SCRIPT], late_days=1
    ),
}


@pytest.fixture(params=PAGES)
def markup(request, graded):
    return feedback_page(PAGES[request.param](graded), dataclasses.replace(ASSIGNMENT, title=f"Week {SCRIPT}"))


def test_a_page_is_well_formed(markup):
    page = Page(markup)
    assert markup.startswith("<!doctype html>")
    assert '<meta charset="utf-8">' in markup
    assert page.tags["html"] == page.tags["head"] == page.tags["body"] == page.tags["title"] == page.tags["h1"] == 1
    assert [identity for identity, count in Counter(page.ids).items() if count > 1] == []


def test_a_page_runs_nothing_of_the_submission(markup):
    page = Page(markup)
    assert not {"script", "img", "iframe", "object", "link", "form", "svg"} & set(page.tags)
    assert not [name for name in page.attributes if name.startswith("on")]


def test_a_page_needs_no_network(markup):
    page = Page(markup)
    assert page.loads == []
    assert all(link.startswith("#") for link in page.links)
    assert not re.search(r"@import|url\(|https?://", markup)
    assert page.meta["content-security-policy"].startswith("default-src 'none'")


def test_every_exercise_of_a_page_is_linked_and_has_a_section(markup):
    page = Page(markup)
    assert page.links
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)


def test_a_page_shows_points_reports_and_the_walls():
    text = Page(feedback_page(result(problems=["b.py: damaged"], late_days=1, penalty=0.1), ASSIGNMENT)).text
    assert "Week <3> · ada" in text
    assert "3.15 of 6 points" in text
    assert "1 day late: 10% of the points are taken off" in text
    assert "b.py: damaged" in text
    for task in result().tasks:
        assert task.text in text
    assert "1.5 of 3" in text
    assert WALLS in text


def test_a_page_says_what_happened_to_the_process():
    stopped = dataclasses.replace(half(), note="took longer than 5 s for a call, and was stopped")
    assert stopped.note in Page(feedback_page(result(stopped), ASSIGNMENT)).text


def test_a_graded_page_shows_error_and_heat_map_as_text(graded):
    page = Page(feedback_page(graded, ASSIGNMENT))
    assert f"ValueError: {SCRIPT}" in page.text
    assert "expected" in page.text
    assert page.tags["table"] == 3  # points, and one failing case: expected and got
    assert "a&b<i>" in page.text


def test_a_page_is_written_where_it_is_said(tmp_path):
    write_feedback(tmp_path / "new" / "folder", "ada-12345678", result(), ASSIGNMENT)
    (page,) = (tmp_path / "new" / "folder").iterdir()
    assert page.name == "ada-12345678.html"
    assert Page(Path(page).read_text(encoding="utf-8")).tags["section"] == 3


# All of them together


def test_a_graded_submission_has_the_same_points_in_every_format(graded):
    points = json.loads(json_text([graded], ASSIGNMENT))["submissions"][0]["points"]
    assert 1 <= points < 6
    assert float(rows([graded])[0]["points"]) == points
    assert json.loads(gradescope(graded))["score"] == points
    assert f"{points:g} of 6 points" in Page(feedback_page(graded, ASSIGNMENT)).text


def test_a_hang_or_crash_has_its_note_in_every_format():
    text = "could not be graded: it ended the grader's fork server"
    bad = result(TaskResult("softmax", "failed", 0.0, 2.0, note=text, text=f"softmax: {text}"), problems=[text])
    assignment = dataclasses.replace(ASSIGNMENT, tasks=ASSIGNMENT.tasks[:1])
    outputs = [json_text([bad], assignment), csv_text([bad], assignment), junit([bad]), gradescope(bad)]
    outputs.append(Page(feedback_page(bad, assignment)).text)
    for output in outputs:
        assert text in output
