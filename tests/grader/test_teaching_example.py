"""The submission that the page for instructors walks through is graded as the page says."""

import re

import pytest

from course_grade.command import main
from tools.publisher import ROOT

PAGE = (ROOT / "book/teaching.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("(one-submission)=") : PAGE.index("(what-a-grade-rests-on)=")]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("week")
    (folder / "submissions").mkdir()
    (assignment,) = re.findall(r"```yaml\n(# week3\.yaml\n.*?)```", PAGE, re.DOTALL)
    assignment = re.sub(r"(?m)^(due|late_penalty):.*\n", "", assignment)  # the file of this test is new
    (folder / "week3.yaml").write_text(assignment, encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
    (folder / "submissions/amira.py").write_text(code, encoding="utf-8")
    main(["grade", str(folder / "submissions"), "-a", str(folder / "week3.yaml"), "--out", str(folder / "results")])
    (page,) = (folder / "results/feedback").glob("amira*.html")
    return re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8"))


def test_the_points_are_those_of_the_page(results):
    (points,) = re.findall(r"gives her (\S+ of \d+ points)", SECTION)
    assert points in results
    shares = re.findall(r"(\w+) (?:failed|passed), (\S+ of \d)", SECTION)
    assert len(shares) == 3
    for exercise, share in shares:
        assert re.search(rf"{exercise}\s*(failed|passed)\s*{re.escape(share)}", results), exercise


def test_what_the_page_quotes_stands_in_the_feedback(results):
    (question,) = re.findall(r'"(A constant added .*?)"', SECTION)
    assert question in results
    assert "expected 7.270, got 6.717" in results
    assert "expected 7.270, got 6.717" in SECTION
    assert results.count("fails for the same reason") == 3
    assert results.count("begin here") == 1
