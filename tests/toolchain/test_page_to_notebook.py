"""What MyST writes becomes plain Markdown; what is not known is refused."""

import re
from importlib.metadata import packages_distributions

import pytest
import tomllib
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.page_to_notebook import IMPORTED_BY, RAW_MYST, extra_of, install_cell, to_notebook
from tools.pages import Page, all_pages, notebook_pages
from tools.publisher import ROOT, Publisher

HEADER = "---\nkernelspec:\n  display_name: Python 3\n  language: python\n  name: python3\n---\n\n"
PUBLISHER = Publisher("ada", "course", "abc123", "https://ada.github.io/course/")


@pytest.fixture
def book(tmp_path):
    """A root with a page called `page` and one called `other`; returns a function that converts `page`'s text."""
    (tmp_path / "book").mkdir()
    (tmp_path / "_toc.yml").write_text("root: book/other\nchapters:\n- file: book/page\n")
    (tmp_path / "book/other.md").write_text(HEADER + "# Other page\n\n(far)=\n## Far away\n\n```{code-cell}\n1\n```\n")
    (tmp_path / "book/references.bib").write_text(
        "@article{one, author={Lovelace, Ada}, year={1843}, title={Notes}, url={https://example.org/notes}}\n"
        "@article{three, author={von Neumann, John and B, C and D, E}, year={1945}, title={T}, doi={10.1/x}}\n"
    )
    (tmp_path / "code.py").write_text("import os\n\n\n@cache\ndef f(x):\n    return x\n\n\ndef g():\n    pass\n")

    def convert(text, publisher=None):
        (tmp_path / "book/page.md").write_text(HEADER + "# A page\n\n" + text + "\n\n```{code-cell}\n1\n```\n")
        return to_notebook(Page("book/page", tmp_path), publisher).cells[0].source.removeprefix("# A page\n\n")

    return convert


def test_admonitions_become_quotes(book):
    assert book("```{note}\nMind *this*.\n```") == "> **Note**\n>\n> Mind *this*."
    assert book("```{admonition} Look\n:class: takeaway\n- a\n- b\n```") == "> **Look**\n>\n> - a\n> - b"
    assert book(":::{warning}\nHot.\n:::") == "> **Warning**\n>\n> Hot."


def test_dropdowns_become_details(book):
    assert (
        book("```{dropdown} Why\nBecause.\n```") == "<details><summary><b>Why</b></summary>\n\nBecause.\n\n</details>"
    )
    assert "<details>" in book("```{admonition} Why\n:class: dropdown\nBecause.\n```")


def test_equations_are_numbered_in_order(book):
    text = book("$$\na\n$$ (eq-a)\n\n$$\nb\n$$\n\n$$\nc\n$$ (eq-c)\n\nSee {eq}`eq-c` after {eq}`eq-a`.")
    assert text == "$$\na\n\\tag{1}\n$$\n\n$$\nb\n$$\n\n$$\nc\n\\tag{2}\n$$\n\nSee (2) after (1)."


def test_citations_are_links_to_the_work(book):
    assert book("{cite:t}`one` and {cite:p}`one,three`") == (
        "[Lovelace (1843)](https://example.org/notes) and "
        "([Lovelace, 1843](https://example.org/notes); [von Neumann et al., 1945](https://doi.org/10.1/x))"
    )


def test_references_lead_into_the_published_book(book):
    link = "https://ada.github.io/course/book/other.html"
    assert book("{doc}`other`", PUBLISHER) == f"[Other page]({link})"
    assert book("{doc}`the other <other>`", PUBLISHER) == f"[the other]({link})"
    assert book("{ref}`far`", PUBLISHER) == f"[Far away]({link}#far)"


def test_references_lead_to_the_neighbouring_notebook_where_nothing_is_published(book):
    assert book("{doc}`other`") == "[Other page](other.ipynb)"


def test_included_code_is_shown(book):
    text = book("```{literalinclude} ../code.py\n:language: python\n:pyobject: f\n```")
    assert text == "```python\n# code.py\n@cache\ndef f(x):\n    return x\n```"


def test_labels_and_comments_vanish_and_code_stays(book):
    source = "(here)=\n## Here\n\n% for authors\n\n```python\n% {ref}`x`\n$$\n```"
    assert book(source) == "## Here\n\n\n```python\n% {ref}`x`\n$$\n```"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```{tab-set}\n```", "directive {tab-set} has no plain form"),
        ("{term}`x`", "role {term} has no plain form"),
        ("{ref}`nowhere`", "unknown label 'nowhere'"),
        ("{doc}`nowhere`", "unknown page 'nowhere'"),
        ("{eq}`nowhere`", "unknown equation 'nowhere'"),
        ("{cite:p}`nobody`", "'nobody' is cited, but is not in references.bib"),
        ("```{note}\nnever closed", "is never closed"),
        ("```{literalinclude} ../code.py\n:pyobject: h\n```", "no function or class 'h'"),
    ],
)
def test_what_is_not_known_is_refused(book, text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        book(text)


def test_a_caption_follows_its_figure(tmp_path, book):
    book("text")
    cell = "```{code-cell}\n---\nmystnb:\n  figure:\n    caption: Seen {eq}`eq-a`.\n---\n1\n```\n\n$$\na\n$$ (eq-a)\n"
    (tmp_path / "book/page.md").write_text(HEADER + "# A page\n\n" + cell)
    cells = to_notebook(Page("book/page", tmp_path), None).cells
    assert [c.cell_type for c in cells] == ["markdown", "code", "code", "markdown", "markdown"]
    assert cells[3].source == "*Seen (1).*"


def test_the_first_cell_installs_from_the_publisher_only():
    assert '%pip install --quiet "course_lib @ git+https://github.com/ada/course@abc123"' in install_cell(PUBLISHER)
    unknown = install_cell(None)
    assert "pip install ." in unknown
    assert "http" not in unknown
    assert "git+" not in unknown


def test_a_chapter_that_trains_asks_for_more():
    assert extra_of("from course_lib import MultiHeadAttention\n") == ""
    assert extra_of("from course_kit import check  # on my data\n") == ""
    for line in (
        "from course_kit.data import multi30k",
        "    from course_kit.data import multi30k",
        "import math, course_kit.translator.trainer",
        "from course_kit import check, translator",
        "from course_kit import (\n    check,\n    data,\n)",
    ):
        assert extra_of(f"text\n{line}\n") == "training", line
    published = install_cell(PUBLISHER, "training")
    assert '%pip install --quiet "course_lib[training] @ git+https://github.com/ada/course@abc123"' in published
    unknown = install_cell(None, "training")
    compile(unknown, "cell", "exec")
    assert "[training]" in unknown
    assert all(len(line) <= 110 for line in unknown.splitlines())
    assert "git+" not in unknown


def test_the_first_cell_looks_for_all_that_the_extra_brings():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    known = {"": [], **extras}
    imported_as = packages_distributions()
    for extra, names in IMPORTED_BY.items():
        wanted = {canonicalize_name(Requirement(line).name) for line in known[extra]}
        assert {canonicalize_name(imported_as[name][0]) for name in names} == wanted


def test_a_page_with_trained_encoders_asks_for_their_libraries():
    assert extra_of("from course_kit.bert import load_encoder\n") == "models"
    assert (
        extra_of("from course_kit.bert import load_encoder\nfrom course_kit import translator\n") == "models,training"
    )
    cell = install_cell(None, "models,training")
    compile(cell, "cell", "exec")
    assert all(len(line) <= 110 for line in cell.splitlines())
    for name in IMPORTED_BY["models"] + IMPORTED_BY["training"]:
        assert cell.count(f'"{name}"') == 1
    assert "course_lib[models,training] @ git+" in install_cell(PUBLISHER, "models,training")


def test_links_between_a_chapter_and_its_deeper_pages_are_relative(tmp_path):
    (tmp_path / "book/deeper").mkdir(parents=True)
    (tmp_path / "_toc.yml").write_text(
        "root: book/index\nparts:\n- chapters:\n  - file: book/page\n    sections:\n    - file: book/deeper/more\n"
    )
    cell = "\n\n```{code-cell}\n1\n```\n"
    (tmp_path / "book/page.md").write_text(HEADER + "# A page\n\n{doc}`deeper/more`" + cell)
    (tmp_path / "book/deeper/more.md").write_text(HEADER + "# More\n\nBack to {doc}`the page <../page>`" + cell)
    assert [page.name for page in all_pages(tmp_path)] == ["book/index", "book/page", "book/deeper/more"]
    page, more = Page("book/page", tmp_path), Page("book/deeper/more", tmp_path)
    assert "[More](deeper/more.ipynb)" in to_notebook(page, None).cells[0].source
    assert "[the page](../page.ipynb)" in to_notebook(more, None).cells[0].source
    assert "[More](https://ada.github.io/course/book/deeper/more.html)" in to_notebook(page, PUBLISHER).cells[0].source


def test_a_link_to_a_source_is_refused(book):
    with pytest.raises(ValueError, match=r"\{doc\} and \{ref\} have"):
        book("[the other page](other.md)")


@pytest.mark.parametrize("publisher", [None, PUBLISHER], ids=["unpublished", "published"])
@pytest.mark.parametrize("page", notebook_pages(), ids=lambda page: page.name)
def test_no_raw_syntax_is_visible(page, publisher):
    for cell in to_notebook(page, publisher).cells:
        if cell.cell_type == "markdown":
            prose = re.sub(r"^```.*?^```", "", cell.source, flags=re.MULTILINE | re.DOTALL)
            assert not RAW_MYST.search(prose), RAW_MYST.search(prose)
