"""The report of `diagnose`, as text and as HTML."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from healthy_models import tokens
from sick_models import Decoder

from course_kit.diagnosing import CHECKS, Finding, Report, diagnose
from course_kit.diagnosing.report import shown

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


def test_the_text_has_problems_first():
    report = diagnose(Decoder("no mask"), tokens(), causal=True)
    lines = str(report).splitlines()
    assert lines[0].startswith("Decoder with ")
    assert lines[1] == "17 fine, 1 wrong, 1 not checked"
    assert lines[3].startswith("✗ causality: wrong (largest change of earlier logits")
    assert all(len(line) <= 140 for line in lines)
    assert report.problems == [report["causality"]]
    with pytest.raises(KeyError, match=r"expected one of logits, determinism.*got 'colour'"):
        report["colour"]


def test_problems_are_in_the_order_of_their_weight():
    findings = [Finding(s, s, "", 0) for s in ("suspicious", "not checked", "fine", "wrong")]
    report = Report("all kinds", findings)
    assert [each.name for each in report.problems] == ["wrong", "suspicious"]
    assert report.verdict == "1 fine, 1 suspicious, 1 wrong, 1 not checked"
    assert Report("none", findings[2:3]).verdict == "1 fine, 0 wrong"
    marks = [line[0] for line in str(report).splitlines()[3:] if not line.startswith(" ") and line]
    assert marks == ["✗", "?", "✓", "–"]
    assert "✗ wrong: wrong (: 0)" in str(report)


class _Tags(HTMLParser):
    """The tags of a page, each of which is closed, and its text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.text = [], [], ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_html_is_escaped_except_that_names_between_backticks_are_code():
    hostile = "<script>alert('x')</script> & \"quoted\""
    statuses = ("fine", "suspicious", "wrong", "not checked")
    html = Report(hostile, [Finding(f"{hostile} {s}", s, hostile, 1.5, hostile) for s in statuses])._repr_html_()
    page = _Tags(html)
    assert "script" not in page.seen
    assert page.text.count(hostile) == 1 + 3 * 4
    assert 'aria-label="wrong"' in html
    assert '<div class="course-lib-report ' in html  # the book's style sheet knows this class
    code = Report("", [Finding("", "wrong", "`a.b` and `<i>` and ` alone")])._repr_html_()
    assert "<br><code>a.b</code> and <code>&lt;i&gt;</code> and ` alone</li>" in code


def test_html_of_an_empty_report_and_of_a_real_one():
    assert _Tags(Report("nothing", [])._repr_html_()).seen.count("li") == 0
    assert _Tags(diagnose(Decoder(), tokens(), causal=True)._repr_html_()).seen.count("li") == len(CHECKS)


def test_numbers_are_short():
    numbers = [0, 18784, 0.5, 2e-16, 2e-5, 123456.7, float("inf")]
    texts = ["0", "18,784", "0.500", "below 1e-9", "below 1e-4", "1.2e+05", "inf"]
    assert list(map(shown, numbers)) == texts
