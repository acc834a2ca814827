"""Three files per exercise: the page, the exercise, and its mistakes."""

import ast
import inspect
import re
from collections import defaultdict

import pytest

from course_lib.exercises import STEMS, all_exercises, find
from course_lib.exercises._files import beside, text_of
from course_lib.exercises._headings import TITLES
from course_lib.exercises._mistakes import Mistakes
from tools.publisher import ROOT

OF_EVERY_EXERCISE = {"__all__", "exercise", "mistake", "EXERCISES"}  # what the loader looks for

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
    ("change", "says"),
    [
        (("# A title", "A title"), "x.md: expected the title as first line, '# Title', got 'A title'"),
        (("What to write, with $d_\\text{head}$.\n\n- a list", ""), "x.md: expected the statement below the title"),
        (("Nearly the answer.", ""), "x.md: hint 2 is empty"),
        (("- a list", "## Details"), "x.md: expected '## Hint' as the only heading below the title, got '## Details'"),
        (("## Hint\n\nNearly", "## Hints\n\nNearly"), "got '## Hints'"),
    ],
)
def test_a_page_that_is_not_as_expected_is_an_error_that_names_it(change, says):
    with pytest.raises(ValueError, match=r"x\.md") as caught:
        text_of(PAGE.replace(*change), "x.md")
    assert says in str(caught.value)


def test_an_exercise_without_a_page_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"hints of new\.py in new\.md"):
        beside(str(tmp_path / "new.py"))


@pytest.mark.parametrize("stem", STEMS)
def test_every_file_of_a_chapter_belongs_to_something(stem):
    folder = ROOT / "course_lib/exercises" / stem
    files = {name: exercise for name, exercise in _files().items() if exercise.stem == stem}
    assert {path.stem for path in folder.glob("*.md")} == set(files)
    for name in files:
        assert (folder / f"{name}.py").exists()
        assert (folder / f"{name}_mistakes.py").exists() != (folder / f"{name}_mistakes").is_dir()


def _files():
    return {
        inspect.getfile(exercise.properties[0].cases).rpartition("/")[2].removesuffix(".py"): exercise
        for exercise in all_exercises().values()
        if exercise.mistakes_in
    }


@pytest.mark.parametrize("path", sorted((ROOT / "course_lib/exercises").glob("*/**/*.py")), ids=lambda path: path.stem)
def test_a_head_can_hold_a_file(path):
    assert len(path.read_text().splitlines()) <= 400


def test_a_mistake_is_named_by_its_function_and_says_its_docstring():
    mistake = Mistakes()

    @mistake(look="masking: Padding")
    def upper_triangle(length):
        """Every query sees the future,
        and not the past."""

    @mistake
    class ParamsSwapped:
        """Two parameters are exchanged."""

    @mistake.built
    def built():
        """Made by a factory."""
        return len

    @mistake(by=lambda forward: {"forward": forward}, key="list")
    def list_(self):
        """Made from a method."""

    mistake.named("table_1", "From a\ntable.")(min)
    found = list(mistake)
    assert [m.key for m in found] == ["upper_triangle", "params_swapped", "built", "list", "table_1"]
    assert (found[0].says, found[0].look) == ("Every query sees the future, and not the past.", "masking: Padding")
    assert [m.solution for m in found] == [upper_triangle, ParamsSwapped, len, {"forward": list_}, min]
    assert [m.says for m in found[-2:]] == ["Made from a method.", "From a table."]


def test_a_mistake_without_a_message_or_with_a_name_that_is_taken_is_an_error():
    mistake = Mistakes()
    with pytest.raises(ValueError, match="expected a docstring in the mistake 'silent'"):

        @mistake
        def silent(length): ...

    mistake.named("one", "One.")(min)
    with pytest.raises(ValueError, match="two mistakes are called 'one'"):
        mistake.named("one", "Another one.")(max)


def test_an_exercise_inherits_in_the_file_of_its_mistakes():
    mistake = Mistakes()
    mistake.contains(find("causal_mask"), lambda wrong: wrong, called="mask", without=("numpy_array",))
    keys = [m.key for m in mistake]
    assert "causal_mask/upper_triangle" in keys
    assert "causal_mask/numpy_array" not in keys
    assert next(iter(mistake)).says.startswith("In your mask: ")


def _constants_and_helpers(source):
    """Names that a file gives to its constants and private helpers; mistakes are named for their keys instead."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.startswith("_") and node.name != "_":
            yield node.name
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))


def test_two_exercises_share_no_name_of_a_constant_or_helper():
    # A file's owner: the exercise, with all files of its mistakes, or a module that a chapter's exercises share.
    owners = defaultdict(set)
    for path in sorted((ROOT / "course_lib/exercises").glob("*/**/*.py")):
        chapter, name, *_ = path.relative_to(ROOT / "course_lib/exercises").parts
        for constant in set(_constants_and_helpers(path.read_text())) - OF_EVERY_EXERCISE:
            owners[constant].add(f"{chapter}/{name.removesuffix('.py').removesuffix('_mistakes')}")
    assert len(owners) > 100
    shared = {constant: sorted(files) for constant, files in owners.items() if len(files) > 1}
    assert not shared, "move what is the same to one place, and name the others for what they are"


def test_reports_call_a_page_by_its_title():
    """A learner finds a page by its title, not by the name of its file."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "book").rglob("*.md")}
    for stem, title in TITLES.items():
        heading = re.search(r"^# (.+)$", texts[stem], re.MULTILINE)[1]
        assert heading == title or heading.startswith((f"{title}:", f"{title} ")), stem
    exercises = all_exercises().values()
    looks = {e.look for e in exercises} | {m.look for e in exercises for m in e.misconceptions if m.look}
    pages = {look.partition(": ")[0] for look in looks}
    assert pages - set(STEMS) == set(TITLES)
