"""Building the book: from committed outputs without running a page, but never with outputs that are not the code's."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tools.build_book import prime_cache
from tools.pages import Page, all_pages, notebook_pages
from tools.publisher import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture
def checkout(tmp_path):
    """A copy of all that the book is built from, as a fresh clone has it."""
    for name in ("book", "tools", "course_lib"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("_config.yml", "_toc.yml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def build(checkout, **variables):
    command = [sys.executable, "-m", "tools.build_book"]
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False, env=environment)


def edit(page, old, new):
    assert old in page.text
    page.source.write_text(page.text.replace(old, new, 1), encoding="utf-8")


def test_what_tools_leave_behind_is_no_page(checkout):
    for name in (".pytest_cache/README.md", "notes.md", ".venv/lib/package/README.md"):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("# Left behind\n")
    done = build(checkout)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_fresh_clone_builds_without_running_a_page(checkout):
    done = build(checkout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "executed now" not in done.stdout
    assert len(re.findall("Using cached notebook", done.stdout + done.stderr)) == len(notebook_pages())
    for page in all_pages():
        assert (checkout / f"_build/html/{page.name}.html").exists()
    html = (checkout / "_build/html/book/scaled_dot_product.html").read_text()
    assert "weights by hand [0.107, 0.787, 0.107]" in html


def test_a_fork_that_publishes_gets_its_own_links(checkout):
    done = build(checkout, GITHUB_REPOSITORY="ada/course", GITHUB_SHA="abc123")
    assert done.returncode == 0, done.stdout + done.stderr
    html = (checkout / "_build/html/book/attention.html").read_text()
    assert 'href="https://colab.research.google.com/github/ada/course/blob/notebooks/book/attention.ipynb"' in html
    notebook = (checkout / "_build/html/_sources/book/attention.ipynb").read_text()
    assert "course_lib @ git+https://github.com/ada/course@abc123" in notebook
    assert "https://ada.github.io/course/book/scaled_dot_product.html" in notebook


def test_a_changed_style_sheet_reaches_the_book(checkout):
    assert build(checkout).returncode == 0
    sheet = checkout / "book/_static/book.css"
    sheet.write_text(sheet.read_text() + "\n/* changed */\n")
    again = build(checkout)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "/* changed */" in (checkout / "_build/html/_static/book.css").read_text()


def test_a_page_whose_code_has_changed_is_executed(checkout):
    page = Page("book/scaled_dot_product", checkout)
    # a short page, so that the test is: the first cells only
    text = page.text[: page.text.index("## The code")].replace("weights by hand", "pencil says")
    page.source.write_text(text.replace("{cite:p}`vaswani2017`", ""), encoding="utf-8")
    done = build(checkout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "book/scaled_dot_product: its code differs from its notebook's, so it is executed now" in done.stdout
    assert "pencil says [0.107, 0.787, 0.107]" in (checkout / "_build/html/book/scaled_dot_product.html").read_text()


def test_outputs_of_other_code_are_never_shown(checkout, tmp_path):
    page = Page("book/scaled_dot_product", checkout)
    assert prime_cache([page], tmp_path / "cache") == []
    edit(page, "math.sqrt(4)", "math.sqrt(9)")
    assert prime_cache([Page(page.name, checkout)], tmp_path / "cache") == [page.name]


@pytest.mark.parametrize(
    ("old", "new"),
    [("{doc}`last chapter <attention>`", "{doc}`last chapter <nowhere>`"), ("`vaswani2017`", "`nobody2017`")],
)
def test_a_warning_is_an_error(checkout, old, new):
    edit(Page("book/scaled_dot_product", checkout), old, new)
    done = build(checkout)
    assert done.returncode != 0
    assert "the warnings above are errors" in done.stderr
