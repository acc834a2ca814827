"""The feedback page of a student, and that all formats agree on the points."""

import dataclasses
import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from handed_back import ASSIGNMENT, NASTY, SCRIPT, WALLS, half, result

from course_grade.grading.grade import Grader
from course_grade.grading.results import TaskResult
from course_grade.output.result_files import csv_text, gradescope, json_text, junit
from course_grade.output.student_page import feedback_page
from course_grade.submission.submissions import read_submission
from course_kit.checker.report.html_report import marked_up

pytestmark = pytest.mark.usefixtures("lent_fork_servers")

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


def test_a_page_is_well_formed_runs_nothing_of_the_submission_and_needs_no_network(markup):
    page = Page(markup)
    assert markup.startswith("<!doctype html>")
    assert '<meta charset="utf-8">' in markup
    assert page.tags["html"] == page.tags["head"] == page.tags["body"] == page.tags["title"] == page.tags["h1"] == 1
    assert len(page.ids) == len(set(page.ids))
    assert not {"script", "img", "iframe", "object", "link", "form", "svg"} & set(page.tags)
    assert not [name for name in page.attributes if name.startswith("on")]
    assert page.loads == []
    assert page.links
    assert all(link.startswith("#") for link in page.links)
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert not re.search(r"@import|url\(|https?://", markup)
    assert page.meta["content-security-policy"].startswith("default-src 'none'")


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


def test_a_graded_page_shows_error_and_heat_map_as_text(graded):
    page = Page(feedback_page(graded, ASSIGNMENT))
    assert f"ValueError: {SCRIPT}" in page.text
    assert "expected" in page.text
    assert page.tags["table"] == 3  # points, and one failing case: expected and got
    assert "a&b<i>" in page.text


# All of them together


def test_a_hang_or_crash_has_its_note_in_every_format():
    text = "could not be graded: it ended the grader's fork server"
    bad = result(TaskResult("softmax", "failed", 0.0, 2.0, note=text, text=f"softmax: {text}"), problems=[text])
    assignment = dataclasses.replace(ASSIGNMENT, tasks=ASSIGNMENT.tasks[:1])
    outputs = [json_text([bad], assignment), csv_text([bad], assignment), junit([bad]), gradescope(bad)]
    outputs.append(Page(feedback_page(bad, assignment)).text)
    for output in outputs:
        assert text in output


def test_text_from_a_submission_is_never_markup():
    for text in ("<b>bold</b>", "`<b>`", "an open ` before <b>bold</b>"):
        assert "<b>" not in marked_up(text)
