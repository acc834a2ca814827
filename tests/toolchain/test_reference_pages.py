"""The pages for looking something up: their tables are proven, and their links lead to what they name."""

import re

import nbformat
import pytest

from course_kit.exercises import STEMS, all_exercises
from tools.api_reference import anchor
from tools.myst import blocks
from tools.pages import Page, all_pages

SHAPES, PITFALLS, SUMMARIES = (Page(f"book/reference/{name}") for name in ("shapes", "pitfalls", "summaries"))


def tables(page):
    """Rows of each section's table, as lists of cells without backticks, by the section's heading."""
    found = {}
    for section in re.split(r"^## ", page.source.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        rows = [row.strip("| ").split(" | ") for row in re.findall(r"^\|.+\|$", body, re.MULTILINE)]
        found[heading] = [[cell.replace("`", "") for cell in row] for row in rows[2:]]
    return found


def printed():
    """Object and shape of each line that the page's cells have printed, one list per cell."""
    cells = [cell for cell in nbformat.read(SHAPES.notebook, as_version=4).cells if cell.cell_type == "code"]
    texts = ["".join(output.get("text", "") for output in cell.outputs) for cell in cells]
    return [[[line[:43].strip(), line[43:70].strip()] for line in text.splitlines()] for text in texts if text]


def test_every_shape_in_a_table_is_proven_by_the_cell_below_it():
    shown, proven = tables(SHAPES), printed()
    assert len(shown) == len(proven) >= 7
    for (heading, rows), lines in zip(shown.items(), proven, strict=True):
        assert [row[:2] for row in rows] == lines, heading


def test_the_cells_assert_what_they_print():
    code = "\n".join(block.body for block in blocks(SHAPES.source.read_text(encoding="utf-8"))
                     if block.is_directive("code-cell"))  # fmt: skip
    assert "assert actual == expected" in code
    assert "assert torch.allclose(F.cross_entropy(turned, targets), loss)" in code


def test_no_two_axes_of_the_shapes_have_the_same_size_unless_they_mean_the_same():
    sizes = {}
    written = "\n".join(re.findall(r"^sizes .+$", SHAPES.source.read_text(encoding="utf-8"), re.MULTILINE))
    for name, size in re.findall(r"\b(\w+)=(\d+)(?=[,)])", written):
        sizes.setdefault(int(size), set()).add(name)
    same = [names for names in sizes.values() if len(names) > 1]
    assert sorted(map(sorted, same)) == [["L_k", "L_source"], ["L_q", "L_target"]]


def sections(text, level):
    """The text below each heading of this level, by the heading."""
    parts = re.split(rf"^{'#' * level} (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def labelled():
    """The page and the text of the section below each label of the book, up to the next heading of a section."""
    found = {}
    for page in all_pages():
        text = page.text
        for match in re.finditer(r"^\(([\w-]+)\)=\n+#+ .+$", text, re.MULTILINE):
            found[match[1]] = (page, re.split(r"^## ", text[match.end() :], maxsplit=1, flags=re.MULTILINE)[0])
    return found


@pytest.fixture(scope="module")
def places():
    return labelled()


PITFALL_SECTIONS = sections(PITFALLS.source.read_text(encoding="utf-8"), 3)


@pytest.mark.parametrize("pitfall", PITFALL_SECTIONS)
def test_a_pitfall_has_symptom_remedy_and_a_section_with_a_cell_that_proves_it(pitfall, places):
    text = PITFALL_SECTIONS[pitfall]
    assert re.search(r"^- \*\*Symptom:\*\* .+\n- \*\*Remedy:\*\* .+\n- \*\*Proof:\*\* \{ref\}`", text, re.M)
    statement = text.split("- **Symptom")[0].strip()
    assert 1 <= len(re.findall(r"[.:?](?: |$)", statement)) <= 3, statement  # two lines
    proofs = re.findall(r"\{ref\}`([\w-]+)`", text.split("**Proof:**")[1])
    assert proofs
    cells = 0
    for label in proofs:
        page, section = places[label]
        assert page.is_lesson, label
        cells += section.count("```{code-cell}")
    assert cells


def test_there_is_a_summary_of_each_chapter_in_order():
    summaries = sections(SUMMARIES.source.read_text(encoding="utf-8"), 2)
    chapters = [re.search(r"\*\*Chapter:\*\* \{doc\}`\.\./(\w+)`", text)[1] for text in summaries.values()]
    assert chapters == list(STEMS)


@pytest.mark.parametrize("stem", STEMS)
def test_a_summary_has_its_five_lines_its_exercises_and_links_in_every_line(stem, places):
    summaries = sections(SUMMARIES.source.read_text(encoding="utf-8"), 2)
    text = next(text for text in summaries.values() if f"{{doc}}`../{stem}`" in text)
    assert "$$\n" in text
    assert len(re.findall(r"^\d\. ", text, re.M)) == 5
    lines = re.findall(r"^(?:\d\.|-) .+$", text, re.M)
    assert len(lines) == 9
    for line in lines:
        assert re.search(r"\{(ref|doc)\}`", line), line
    for line in lines[:5]:  # what to remember comes from the chapter itself
        for label in re.findall(r"\{ref\}`(?:[^`<]*<)?([\w-]+)>?`", line):
            assert places[label][0].name == f"book/{stem}", label
    exercises = [name for name, exercise in all_exercises().items() if exercise.stem == stem]
    written = next(line for line in lines if line.startswith("- **Exercises:**"))
    assert re.findall(r"\{ref\}`(\w+) <exercise-[\w-]+>`", written) == sorted(exercises, key=written.index)
    assert re.findall(r"<(exercise-[\w-]+)>", written) == [
        f"exercise-{anchor(name)}" for name in sorted(exercises, key=written.index)
    ]


@pytest.mark.parametrize("page", [PITFALLS, SUMMARIES, SHAPES], ids=lambda page: page.name)
def test_every_label_that_a_page_links_to_exists(page, places):
    for label in re.findall(r"\{ref\}`(?:[^`<]*<)?([\w-]+)>?`", page.source.read_text(encoding="utf-8")):
        assert label in places, label


def test_the_shapes_in_a_summary_are_those_of_the_table_that_it_links_to():
    labels = re.findall(r"^\((shapes-\w+)\)=$", SHAPES.source.read_text(encoding="utf-8"), re.MULTILINE)
    known = {label: {row[1] for row in rows} for label, rows in zip(labels, tables(SHAPES).values(), strict=True)}
    # Tables write these for any number of axes in front, or flattened.
    known["shapes-heads"] |= {"(B, H, L, d_head)", "(B, L, d_model)"}
    known["shapes-training"] |= {"(B, L - 1, V)"}
    lines = re.findall(r"^- \*\*Shapes:\*\* (.+)$", SUMMARIES.source.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) == len(STEMS)
    for line in lines:
        (label,) = re.findall(r"\{ref\}`(shapes-\w+)`", line)
        for shape in re.findall(r"`(\(.*?\))`", line):
            assert shape in known[label], (label, shape)
