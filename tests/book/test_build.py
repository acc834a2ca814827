"""Building the book: from committed outputs without running a page, but never with outputs that are not the code's."""

import os
import re
import shutil
import subprocess
import sys

import nbformat
import pytest

from tools.build_book import prime_cache
from tools.notebooks import code_cells
from tools.page_to_notebook import to_notebook
from tools.pages import Page, all_pages, notebook_pages
from tools.publisher import ROOT

pytestmark = pytest.mark.site


@pytest.fixture
def checkout(tmp_path):
    """A copy of all that the book is built from, as a fresh clone has it."""
    for name in ("book", "tools", "course_lib", "course_kit", "course_grade"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


INDEX = "# A small book\n\nRead {doc}`page`.\n\n```{bibliography}\n```\n"
PAGE = """---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---

# A page

After {cite:p}`vaswani2017`, as {doc}`index` says.

```{code-cell} ipython3
print("six times seven is", 6 * 7)
```
"""
OUTPUT = "six times seven is 42, from the notebook\n"  # not what the code prints: it shows where the book has it from


@pytest.fixture
def small(checkout):
    """Two pages in the place of the book's, with its settings, style sheets, references and tools: built in seconds."""
    for page in (*all_pages(checkout), *notebook_pages(checkout)):
        page.source.unlink(missing_ok=True)
        page.notebook.unlink(missing_ok=True)
    (checkout / "_toc.yml").write_text("format: jb-book\nroot: book/index\nchapters:\n  - file: book/page\n")
    (checkout / "book/index.md").write_text(INDEX)
    (checkout / "book/page.md").write_text(PAGE)
    page = Page("book/page", checkout)
    notebook = to_notebook(page, None)
    code_cells(notebook)[1].outputs = [nbformat.v4.new_output("stream", text=OUTPUT)]
    nbformat.write(notebook, page.notebook)
    return checkout


def build(checkout, **variables):
    command = [sys.executable, "-m", "tools.build_book"]
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False, env=environment)


def edit(page, old, new):
    assert old in page.text
    page.source.write_text(page.text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.thorough
def test_a_fresh_clone_builds_without_running_a_page(checkout):
    """Nor does what tools leave behind become a page."""
    for name in (".pytest_cache/README.md", "notes.md", ".venv/lib/package/README.md"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("# Left behind\n")
    done = build(checkout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "executed now" not in done.stdout
    assert len(re.findall("Using cached notebook", done.stdout + done.stderr)) == len(notebook_pages())
    for page in all_pages():
        assert (checkout / f"_build/html/{page.name}.html").exists()
    html = (checkout / "_build/html/book/scaled_dot_product.html").read_text()
    assert "weights by hand [0.107, 0.787, 0.107]" in html
    assert not [path for path in (checkout / "_build/html").rglob("*.html") if "Left behind" in path.read_text()]


@pytest.mark.thorough
def test_a_fork_that_publishes_gets_its_own_links(small):
    done = build(small, GITHUB_REPOSITORY="ada/course", GITHUB_SHA="abc123")
    assert done.returncode == 0, done.stdout + done.stderr
    html = (small / "_build/html/book/page.html").read_text()
    assert 'href="https://colab.research.google.com/github/ada/course/blob/notebooks/book/page.ipynb"' in html
    notebook = (small / "_build/html/_sources/book/page.ipynb").read_text()
    assert "course_lib @ git+https://github.com/ada/course@abc123" in notebook
    assert "https://ada.github.io/course/book/index.html" in notebook


@pytest.mark.thorough
def test_a_changed_style_sheet_reaches_the_book(small):
    assert build(small).returncode == 0
    sheet = small / "book/_static/book.css"
    sheet.write_text(sheet.read_text() + "\n:root { --changed: 1; }\n")
    again = build(small)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "--changed: 1" in (small / "_build/html/_static/book.css").read_text()


@pytest.mark.thorough
def test_a_page_shows_its_notebook_and_is_executed_where_its_code_has_changed(small):
    html = small / "_build/html/book/page.html"
    assert build(small).returncode == 0
    assert OUTPUT.strip() in html.read_text()
    edit(Page("book/page", small), "6 * 7", "7 * 6 + 1")
    done = build(small)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "book/page: its code differs from its notebook's, so it is executed now" in done.stdout
    assert "six times seven is 43" in html.read_text()


@pytest.mark.thorough
def test_outputs_of_other_code_are_never_shown(small, tmp_path):
    page = Page("book/page", small)
    assert prime_cache([page], tmp_path / "cache") == []
    edit(page, "6 * 7", "7 * 6 + 1")
    assert prime_cache([Page(page.name, small)], tmp_path / "cache") == [page.name]


@pytest.mark.parametrize(
    ("old", "new"), [("{doc}`index`", "{doc}`nowhere`"), ("`vaswani2017`", "`nobody2017`")], ids=["page", "reference"]
)
def test_a_warning_is_an_error(small, old, new):
    edit(Page("book/page", small), old, new)
    done = build(small)
    assert done.returncode != 0
    assert "the warnings above are errors" in done.stderr
