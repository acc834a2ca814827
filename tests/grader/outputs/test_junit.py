"""Results as JUnit XML, against junit-10.xsd of Jenkins' xUnit plugin."""

import dataclasses
from xml.etree import ElementTree

import pytest
from handed_back import NASTY, SCRIPT, half, line, passed, result, untouched

from course_grade.grading.results import TaskResult
from course_grade.output.result_files import junit

pytestmark = pytest.mark.usefixtures("lent_fork_servers")

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
