"""What every page of the book has, and what no page may do."""

import ast
import re
from pathlib import Path

import nbformat
import pytest
import yaml

from course_kit.exercises import STEMS, all_exercises, find
from course_kit.viz.view import script
from tools import title_page
from tools.exercise_sections import fold
from tools.myst import blocks
from tools.notebooks import code_cells
from tools.pages import Page, all_pages, notebook_pages
from tools.publisher import ROOT
from tools.questions import questions
from tools.reading import CORE_MINUTES, CORE_WORDS, exercise_minutes, prose_words, reading_minutes

CHAPTER_PAGES = [page for page in notebook_pages() if Path(page.name).name in set(STEMS)]
DEEPER_PAGES = [page for page in notebook_pages() if page.is_deeper]
each_chapter = pytest.mark.parametrize("page", CHAPTER_PAGES, ids=lambda page: page.name)
each_lesson = pytest.mark.parametrize("page", CHAPTER_PAGES + DEEPER_PAGES, ids=lambda page: page.name)
EXERCISE = re.compile(r"^```\{exercise\} *(\w+) *$", re.M)


def cells_of(page):
    return code_cells(nbformat.read(page.notebook, as_version=4))


def pictures(cell):
    return [o for o in cell.outputs if "image/png" in o.get("data", {})]


def test_there_are_chapters():
    assert len(CHAPTER_PAGES) >= 2


@pytest.mark.parametrize("stem", list(STEMS))
def test_every_stem_has_its_module_its_test_and_its_exercises(stem):
    assert (ROOT / f"course_lib/{stem}.py").exists()
    assert (ROOT / f"tests/test_{stem}.py").exists()
    assert (ROOT / f"course_kit/exercises/{stem}").is_dir()


def test_the_table_of_contents_has_the_chapters_in_their_order():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    files = [Path(entry["file"]).name for part in toc["parts"] for entry in part["chapters"]]
    assert [name for name in files if name in STEMS] == list(STEMS)


@each_chapter
def test_a_chapter_goes_the_way_that_all_go(page):
    headings = re.findall(r"^## (.+)$", page.text, re.MULTILINE)
    assert "{admonition} What you will be able to do" in page.text
    wanted = ["The idea in a picture", "What to take away", "Further reading"]
    found = [next((i for i, heading in enumerate(headings) if heading.startswith(name)), None) for name in wanted]
    assert None not in found, dict(zip(wanted, found, strict=True))
    assert found == sorted(found)
    assert headings[0].startswith("The idea in a picture")
    assert headings[-1] == "Further reading"


@each_chapter
def test_a_chapter_is_read_in_one_sitting(page):
    source = page.source.read_text(encoding="utf-8")
    assert prose_words(source) <= CORE_WORDS
    assert reading_minutes(source) + exercise_minutes(source) <= CORE_MINUTES


@each_lesson
def test_a_page_says_below_its_title_how_long_it_takes(page):
    """The minutes of exercises are those that the exercises of the page state, one by one."""
    title = nbformat.read(page.notebook, as_version=4).cells[0].source
    line = r"^# .+\n+\*(?:Chapter \d+ of 13|Optional): (\d+) minutes to read(?:, (\d+) minutes of exercises)?\*$"
    reading, exercises = re.search(line, title, re.MULTILINE).groups()
    assert int(reading) == reading_minutes(page.source.read_text(encoding="utf-8"))
    stated = re.findall(r"^\*`\w+`: difficulty \d of 5, about (\d+) minutes\*$", page.text, re.M)
    assert int(exercises or 0) == sum(map(int, stated))


@each_lesson
def test_an_exercise_follows_the_section_that_teaches_it(page):
    """No section holds two exercises, and none is a list of exercises."""
    sections = re.split(r"^## ", page.source.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for section in sections:
        assert section.count("```{exercise} ") <= 1, section.split("\n")[0]
    assert not any(section.startswith("Exercises") for section in sections)


@pytest.mark.parametrize("page", DEEPER_PAGES, ids=lambda page: page.name)
def test_a_deeper_page_is_linked_from_its_chapter_and_back(page):
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    entries = [entry for part in toc["parts"] for entry in part["chapters"]]
    chapter = next(e["file"] for e in entries if page.name in [s["file"] for s in e.get("sections", [])])
    stem, name = Path(chapter).name, Path(page.name).name
    linked = re.findall(r"\{doc\}`(?:[^`<]*<)?([^`>]+)>?`", (ROOT / f"{chapter}.md").read_text(encoding="utf-8"))
    assert f"deeper/{name}" in linked
    back = re.findall(r"\{doc\}`(?:[^`<]*<)?([^`>]+)>?`", page.source.read_text(encoding="utf-8"))
    assert f"../{stem}" in back


@each_chapter
def test_a_chapter_has_at_least_three_figures(page):
    assert sum(len(pictures(cell)) for cell in cells_of(page)) >= 3


@each_lesson
def test_every_figure_has_a_text(page):
    for cell in cells_of(page):
        if pictures(cell):
            for output in pictures(cell):
                alt = output.metadata.get("image/png", {}).get("alt", "")
                assert len(alt) > 40, f"no alt text (cell metadata mystnb: image: alt): {cell.source[:80]}"


@each_chapter
def test_a_chapter_has_three_self_check_questions(page):
    assert len(questions(page.source.read_text(encoding="utf-8"))) >= 3


@each_chapter
def test_a_chapter_has_a_view_and_each_stands_behind_a_question_to_answer_first(page):
    cells = nbformat.read(page.notebook, as_version=4).cells
    views = [n for n, cell in enumerate(cells) if any("<attention-view" in str(o) for o in cell.get("outputs", ()))]
    assert views
    for n in views:
        before = next(cell.source for cell in reversed(cells[:n]) if cell.cell_type == "markdown")
        assert "Before you touch the view" in before, cells[n].source
        kind = cells[n].source
        script_of_it = next(o["data"]["text/html"] for o in cells[n].outputs if "<attention-view" in str(o))
        name = re.search(r'<attention-view kind="(\w+)-', script_of_it)[1]
        assert script_of_it.endswith(f"<script>{script(name)}</script>"), (
            f"an older script, run `make notebooks`: {kind}"
        )


@each_lesson
def test_text_outputs_have_three_decimals_at_most(page):
    """More digits differ from one processor to the next."""
    for cell in cells_of(page):
        for output in cell.outputs:
            text = output.get("text", "") or output.get("data", {}).get("text/plain", "")
            assert not re.search(r"\d\.\d{4,}", text), text
            assert not re.search(r"0x[0-9a-f]{6,}", text), f"an address: {text}"


EQUAL = {"equal", "allclose", "same_weights"}


@each_lesson
def test_a_cell_that_states_an_equality_asserts_it(page):
    """Printed, a False would be compared with the False that was committed, and nothing would notice."""
    for cell in cells_of(page):
        if cell.source.lstrip().startswith("%"):
            continue
        calls = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Call)]
        printed = [arg for call in calls if _name(call) == "print" for arg in call.args]
        if any(isinstance(arg, ast.Name) and arg.id == "same" for arg in printed):
            assert "assert same" in cell.source, f"{page.name}: prints `same` without asserting it:\n{cell.source}"
        if "False" not in "".join(o.get("text", "") for o in cell.outputs):  # else it compares right with wrong
            stated = [arg for arg in printed if isinstance(arg, ast.Call) and _name(arg) in EQUAL]
            assert not stated, f"{page.name}: print({ast.unparse(stated[0])}) is not asserted"


def _name(call: ast.Call) -> str:
    return getattr(call.func, "attr", "") or getattr(call.func, "id", "")


@each_lesson
def test_code_fits_the_page(page):
    for cell in cells_of(page)[1:]:
        for line in cell.source.split("\n"):
            assert len(line) <= 88, line


@each_lesson
def test_numbers_with_decimals_in_the_text_come_from_a_cell(page):
    """A decimal number in prose stands in the code or in an output of the page, or it is a version or a section."""
    cells = cells_of(page)
    computed = " ".join(cell.source for cell in cells)
    for cell in cells:
        for output in cell.outputs:
            computed += " " + (output.get("text", "") or output.get("data", {}).get("text/plain", ""))
    # Code blocks, the header, and the questions of a section Experiment, which the reader computes, do not count.
    left_out = r"^(```|~~~).*?^\1\s*$|^---$.*?^---$|^## Experiment$.*?(?=^## )"
    prose = re.sub(left_out, "", page.text, flags=re.MULTILINE | re.DOTALL)
    prose = re.sub(r"section \d+(\.\d+)+", "", prose)
    for number in re.findall(r"(?<![\w.])\d+\.\d+(?![\w.]*\d)", prose):
        assert number in computed, f"{number} is in the text of {page.name}, and in no cell or output"


def family(chapter):
    """A chapter's page and the deeper pages that stand under it."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    entry = next(e for part in toc["parts"] for e in part["chapters"] if e["file"] == chapter.name)
    names = [entry["file"], *(below["file"] for below in entry.get("sections", []))]
    return [page for page in CHAPTER_PAGES + DEEPER_PAGES if page.name in names]


@each_chapter
def test_every_exercise_of_a_stem_stands_on_its_chapter_or_on_a_deeper_page_of_it(page):
    exercises = [name for name, exercise in all_exercises().items() if exercise.stem == Path(page.name).name]
    assert exercises
    places = [name for one in family(page) for name in EXERCISE.findall(one.source.read_text(encoding="utf-8"))]
    assert sorted(places) == sorted(exercises)


@each_lesson
def test_a_page_has_its_exercises_in_full(page):
    """Statement, stub and check of each; the solution is folded in the book and not in the notebook at all."""
    notebook = nbformat.read(page.notebook, as_version=4)
    code = [cell.source for cell in code_cells(notebook)]
    everything = "\n".join(cell.source for cell in notebook.cells)
    for exercise in map(find, EXERCISE.findall(page.source.read_text(encoding="utf-8"))):
        assert exercise.stub.rstrip() in code
        assert code.index(f"check({exercise.name})") == code.index(exercise.stub.rstrip()) + 1
        assert exercise.statement.strip().split("\n")[0] in everything
        assert f'`solution("{exercise.name}")` a solution' in everything
        assert exercise.hints[-1] not in everything
        assert "A solution" in fold(page.text)
        assert exercise.solution.rstrip() in fold(page.text)


@each_chapter
def test_exercises_point_to_sections_that_exist(page):
    stem = Path(page.name).name
    pages = {Path(p.name).name: re.findall(r"^#+ (.+)$", p.text, re.MULTILINE) for p in all_pages()}
    for exercise in all_exercises().values():
        if exercise.stem == stem:
            for read_next in (exercise.read_next, *(m.read_next for m in exercise.misconceptions if m.read_next)):
                name, _, heading = read_next.partition(": ")
                if name in pages:  # the others are chapters still to be written
                    assert not heading or any(h.startswith(heading) for h in pages[name]), read_next


def test_the_title_page_has_a_card_for_every_chapter_in_order():
    text = (ROOT / "book/index.md").read_text(encoding="utf-8")
    (cards,) = (block.body for block in blocks(text) if block.is_directive("chapter-cards"))
    chapters = [Path(page.name).name for page in all_pages() if page.standing.startswith("Chapter")]
    assert [line.partition(":")[0] for line in cards.splitlines()] == chapters
    assert {path.stem for path in title_page.CARDS.glob("*.svg")} == set(chapters)


def test_a_card_has_the_minutes_of_its_page():
    source = title_page.card(1, "attention", "a < b")
    reading, exercises = title_page.minutes_of(Page("book/attention"))
    assert f"{reading} min to read, {exercises} min of exercises" in source
    assert 'href="attention.html"' in source
    assert "a &lt; b" in source


def test_numbers_on_the_title_page_are_counted():
    own = [m for exercise in all_exercises().values() for m in exercise.misconceptions if not m.inherited_from]
    assert title_page.counted("all <exercises> of <mistakes>") == f"all {len(all_exercises())} of {len(own):,}"
    with pytest.raises(ValueError, match=r"expected one of exercises, .* got <wishes>"):
        title_page.counted("<wishes>")


def test_the_title_page_shows_the_view_of_a_notebook():
    assert ">spielen<" in title_page.view_of("one_sentence", "alignment")
    assert 'kind="query_plane-' in title_page.view_of("attention", "query_plane")
    with pytest.raises(ValueError, match="expected a view of kind piano in the notebook of book/one_sentence"):
        title_page.view_of("one_sentence", "piano")


def test_the_title_page_says_how_long_the_chapters_take():
    """To half an hour."""
    minutes = 0
    chapters = [page for page in all_pages() if page.standing.startswith("Chapter")]
    for page in chapters:
        source = page.source.read_text(encoding="utf-8")
        minutes += reading_minutes(source) + exercise_minutes(source)
    text = (ROOT / "book/index.md").read_text(encoding="utf-8")
    assert "The thirteen chapters take about fourteen hours, exercises included" in text
    assert len(chapters) == 13
    assert abs(minutes / 60 - 14) < 0.5


def test_every_page_of_the_toc_exists():
    for page in all_pages():
        assert page.source.exists()
        assert page.title
