"""Pages and notebooks stay in step."""

import shutil

import nbformat
import pytest

from tools.notebooks import code_cells, execute_notebook, in_step, regenerate, render, write_notebook
from tools.page_to_notebook import to_notebook
from tools.pages import Page, notebook_pages
from tools.publisher import ROOT, Publisher


@pytest.mark.parametrize("page", notebook_pages(), ids=lambda page: page.name)
def test_every_notebook_belongs_to_its_page(page):
    assert in_step(page) == "", "run `make notebooks`"


@pytest.fixture
def page(tmp_path):
    """A copy of a real page and its notebook, to be changed."""
    shutil.copytree(ROOT / "book", tmp_path / "book")
    shutil.copytree(ROOT / "course_lib", tmp_path / "course_lib")
    shutil.copy(ROOT / "_toc.yml", tmp_path)
    return Page("book/scaled_dot_product", tmp_path)


def edit(page, old, new):
    assert old in page.text
    page.source.write_text(page.text.replace(old, new, 1), encoding="utf-8")
    return Page(page.name, page.root)  # reads the text again


def test_a_changed_text_is_noticed_and_keeps_the_outputs(page):
    page = edit(page, "Take a pencil", "Take a pen")
    assert in_step(page) == "text"
    before = [cell.outputs for cell in code_cells(nbformat.read(page.notebook, as_version=4))]
    regenerate(page, execute=False)
    assert in_step(page) == ""
    assert [cell.outputs for cell in code_cells(nbformat.read(page.notebook, as_version=4))] == before


def test_changed_code_is_noticed(page):
    assert in_step(edit(page, "scores = query @ key.T", "scores = key @ query.T")) == "code"


def test_changed_cell_options_are_noticed(page):
    assert in_step(edit(page, "tags: [hide-input]", "tags: [hide-cell]")) == "code"


def test_changed_included_code_is_noticed(page):
    module = page.root / "course_lib/scaled_dot_product.py"
    module.write_text(module.read_text().replace("return weights @ value, weights", "return weights@value, weights"))
    assert in_step(page) == "text"


def test_a_missing_notebook_is_noticed(page):
    page.notebook.unlink()
    assert in_step(page) == "missing"


def small_notebook(*sources):
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])


@pytest.mark.site
def test_a_failing_cell_fails_the_page():
    with pytest.raises(RuntimeError, match=r"(?s)page: a cell failed.*ZeroDivisionError"):
        execute_notebook(small_notebook("1 / 0"), "page")


@pytest.mark.site
def test_a_warning_fails_the_page():
    with pytest.raises(RuntimeError, match=r"(?s)standard error.*careful"):
        execute_notebook(small_notebook("import warnings\nwarnings.warn('careful')"), "page")


def test_a_notebook_is_written_whole_or_not_at_all(tmp_path):
    target = tmp_path / "n.ipynb"
    write_notebook(small_notebook("1"), target)
    good = target.read_bytes()
    broken = small_notebook("2")
    broken.cells[0].cell_type = "nonsense"
    with pytest.raises(nbformat.ValidationError):
        write_notebook(broken, target)
    assert target.read_bytes() == good
    assert list(tmp_path.iterdir()) == [target]


def test_the_title_comes_first_and_the_installing_cell_second():
    for page in notebook_pages():
        cells = to_notebook(page, None).cells
        assert cells[0].source.startswith("# ")
        assert "find_spec" in cells[1].source


def test_a_published_notebook_has_anchors_for_colab_and_the_outputs_of_the_committed_one():
    page = notebook_pages()[0]
    published = render(page, Publisher("ada", "course", "abc123", "https://ada.github.io/course/"))
    assert all(cell.metadata["id"] == cell.id for cell in published.cells)
    committed = nbformat.read(page.notebook, as_version=4)
    assert [cell.outputs for cell in code_cells(published)] == [cell.outputs for cell in code_cells(committed)]
    assert not any("id" in cell.metadata for cell in render(page, None).cells)
