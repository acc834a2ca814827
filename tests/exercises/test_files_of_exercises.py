"""Files of an exercise: the page, the exercise, its mistakes, and the clauses of its statement."""

import ast
import re
from collections import defaultdict

import pytest

from course_kit.exercises import STEMS, all_exercises
from course_kit.exercises._files import text_of, texts_next_to
from course_kit.exercises._headings import TITLES
from tools.publisher import ROOT

FOLDER = ROOT / "course_kit/exercises"
MODULES = sorted(FOLDER.glob("*/**/*.py"))
OF_EVERY_EXERCISE = {"__all__", "exercise", "EXERCISES"}  # what the loader looks for

PAGE = """\
# A title

What to write, with $d_\\text{head}$.

- a list

## Hint

A nudge, in
two lines.

Another paragraph.

## Hint

Nearly the answer.
"""


def test_a_page_gives_title_statement_and_hints():
    assert text_of(PAGE, "x.md") == {
        "title": "A title",
        "statement": "What to write, with $d_\\text{head}$.\n\n- a list",
        "hints": ("A nudge, in two lines.\n\nAnother paragraph.", "Nearly the answer."),
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# A title", "A title", "x.md: expected the title as first line, '# Title', got 'A title'"),
        ("What to write, with $d_\\text{head}$.\n\n- a list", "", "x.md: expected the statement below the title"),
        ("Nearly the answer.", "", "x.md: hint 2 is empty"),
        ("- a list", "## Details", "x.md: expected '## Hint' as the only heading below the title, got '## Details'"),
        ("## Hint\n\nNearly", "## Hints\n\nNearly", "got '## Hints'"),
    ],
)
def test_a_page_that_is_not_as_expected_is_an_error_that_names_it(old, new, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        text_of(PAGE.replace(old, new), "x.md")


def test_an_exercise_without_a_page_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"hints of new\.py in new\.md"):
        texts_next_to(str(tmp_path / "new.py"))


@pytest.mark.parametrize("stem", STEMS)
def test_every_file_of_a_chapter_belongs_to_an_exercise(stem):
    names = {e.mistakes.stem.removesuffix("_mistakes") for e in all_exercises().values() if e.stem == stem}
    pages = {path.stem for path in (FOLDER / stem).glob("*.md")}
    assert pages >= {*names, *(f"{name}_mistakes" for name in names)}
    assert {page.removesuffix("_mistakes").removesuffix("_clauses") for page in pages} == names


def test_a_head_can_hold_a_file():
    assert [path for path in MODULES if len(path.read_text().splitlines()) > 400] == []


def _constants_and_helpers(source):
    """Names that a file gives to its constants and private helpers."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.startswith("_") and node.name != "_":
            yield node.name
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))


def test_two_exercises_share_no_name_of_a_constant_or_helper():
    owners = defaultdict(set)
    for path in MODULES:
        for constant in set(_constants_and_helpers(path.read_text())) - OF_EVERY_EXERCISE:
            owners[constant].add(path.relative_to(FOLDER))
    assert len(owners) > 80
    shared = {constant: sorted(files) for constant, files in owners.items() if len(files) > 1}
    assert not shared, "move what is the same to one place, and name the others for what they are"


def test_reports_call_a_page_by_its_title():
    """A learner finds a page by its title, not by the name of its file."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "book").rglob("*.md")}
    for stem, title in TITLES.items():
        heading = re.search(r"^# (.+)$", texts[stem], re.MULTILINE)[1]
        assert heading == title or heading.startswith((f"{title}:", f"{title} ")), stem
    exercises = all_exercises().values()
    looks = {e.read_next for e in exercises} | {m.read_next for e in exercises for m in e.misconceptions if m.read_next}
    pages = {read_next.partition(": ")[0] for read_next in looks}
    assert pages - set(STEMS) == set(TITLES)
