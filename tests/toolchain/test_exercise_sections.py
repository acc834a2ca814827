"""From one line in a page to an exercise's section, in the book and in the notebook."""

import re

import pytest

from course_kit.exercises import STEMS, all_exercises, find
from tools.exercise_sections import expand, fold, in_notebook, section, sources_of
from tools.page_to_notebook import to_notebook
from tools.pages import Page
from tools.publisher import ROOT

LINE = "before\n\n```{exercise} causal_mask\n```\n\nafter\n"


def test_a_section_has_statement_stub_and_check_in_this_order():
    exercise = find("causal_mask")
    text = expand(LINE)
    parts = ["before", f"### {exercise.title}", exercise.statement.strip(), exercise.stub.strip(), "check(causal_mask)"]
    places = [text.index(part) for part in [*parts, "after"]]
    assert places == sorted(places)
    assert f"difficulty {exercise.difficulty} of 5, about {exercise.minutes} minutes" in text


def test_the_book_folds_hints_and_solution():
    exercise = find("causal_mask")
    text = fold(expand(LINE), lambda exercise: f"<p>where to do {exercise.name}</p>")
    assert "<p>where to do causal_mask</p>\n\n```{dropdown} Hint 1" in text
    for number, hint in enumerate(exercise.hints, 1):
        assert f"```{{dropdown}} Hint {number}\n:class-container: hint\n{hint}\n```" in text
    assert f"````{{dropdown}} A solution\n```python\n{exercise.solution.rstrip()}\n```\n````" in text


def test_the_notebook_has_neither_hints_nor_solution(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "_toc.yml").write_text("root: book/page\n")
    header = "---\nkernelspec:\n  name: python3\n  display_name: Python 3\n---\n\n# Page\n\n"
    (tmp_path / "book/page.md").write_text(header + LINE)
    notebook = to_notebook(Page("book/page", tmp_path), None)
    everything = "\n".join(cell.source for cell in notebook.cells)
    exercise = find("causal_mask")
    assert exercise.stub.rstrip() in [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert "check(causal_mask)" in everything
    assert in_notebook("causal_mask") in everything
    assert exercise.solution.rstrip().split("\n")[-1].strip() not in everything
    assert not any(hint in everything for hint in exercise.hints)


def test_an_unknown_exercise_is_an_error_with_similar_names():
    with pytest.raises(KeyError, match="causal_mask"):
        expand(LINE.replace("causal", "casual"))


def test_a_page_depends_on_its_exercises():
    chapter = ROOT / "course_kit/exercises/masking"
    assert {chapter / "causal_mask.py", chapter / "causal_mask.md"} <= sources_of(LINE)
    assert sources_of("no exercise here") == set()


def test_the_list_links_to_every_exercise_and_names_each_chapter_once():
    listed = expand("```{exercise-list}\n```")
    assert re.findall(r"\{doc\}`(\w+)`", listed) == list(STEMS)
    labels = re.findall(r"<(exercise-[\w-]+)>`", listed)
    sections = "\n".join(section(exercise) for exercise in all_exercises().values())
    assert labels == re.findall(r"^\((exercise-[\w-]+)\)=$", sections, re.MULTILINE)
