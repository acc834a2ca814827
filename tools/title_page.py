"""The directives of the title page: a view from another page, counted numbers, a card for each chapter, the PDF.

    ```{view-of} one_sentence alignment
    ```

shows the view of that kind from the notebook of that page. `counted` and `chapter-cards` take lines of text; what is
counted is described beside `COUNTS`.
"""

from __future__ import annotations

import html
import json
import os
import re

import nbformat
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from course_kit.exercises import all_exercises
from tools.pages import Page
from tools.publisher import ROOT
from tools.reading import exercise_minutes, reading_minutes

TITLE_PAGE = "book/index"
CARDS = ROOT / "book/_cards"
PDFS = {"attention-proven.pdf": "The chapters as a PDF", "attention-proven-deeper-pages.pdf": "the deeper pages"}
MAKING_PDF = "COURSE_BOOK_PDF"  # set while `make pdf` builds: only then is there a PDF to link to
_SCORES = ROOT / "course_kit/pretrained/multi30k-de-en/scores.json"


def view_of(page: str, kind: str) -> str:
    """The HTML of the first view of this kind in a page's notebook.

    Raises:
        ValueError: the notebook has no such view.
    """
    notebook = nbformat.read(Page(f"book/{page}").notebook, as_version=4)
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            source = output.get("data", {}).get("text/html", "")
            if re.search(rf'<attention-view\b[^>]*kind="{re.escape(kind)}-', source):
                return source
    raise ValueError(f"expected a view of kind {kind} in the notebook of book/{page}, found none; run `make notebooks`")


# What the title page may count, and how.
COUNTS = {
    "exercises": lambda: len(all_exercises()),
    "mistakes": lambda: sum(not m.inherited_from for e in all_exercises().values() for m in e.misconceptions),
    # The runs with other seeds come after the first.
    "training-minutes": lambda: f"{json.loads(_SCORES.read_text(encoding='utf-8'))[0]['minutes']:.0f}",
}


def counted(text: str) -> str:
    """The text with each `<name>` of `COUNTS` replaced by its number.

    Raises:
        ValueError: a name that is not counted.
    """

    def number(match: re.Match) -> str:
        if match[1] not in COUNTS:
            raise ValueError(f"expected one of {', '.join(COUNTS)} in angle brackets, got <{match[1]}>")
        value = COUNTS[match[1]]()
        return value if isinstance(value, str) else f"{value:,}"

    return re.sub(r"<([\w-]+)>", number, text)


def minutes_of(page: Page) -> tuple[int, int]:
    """Minutes to read a page, and minutes for its exercises."""
    source = page.source.read_text(encoding="utf-8")
    return reading_minutes(source), exercise_minutes(source)


def card(number: int, stem: str, line: str) -> str:
    """The card of a chapter: its picture, number, title, what it is about, and its minutes."""
    page = Page(f"book/{stem}")
    reading, exercises = minutes_of(page)
    practice = f"{exercises} min of exercises" if exercises else "no exercises"
    return (
        f'<li><a class="page-card" href="{stem}.html">{(CARDS / f"{stem}.svg").read_text(encoding="utf-8")}'
        f'<span class="card-title"><span class="card-number">{number}</span> {html.escape(page.title)}</span> '
        f'<span class="card-line">{html.escape(line)}</span> '
        f'<span class="card-time">{reading} min to read, {practice}</span></a></li>'
    )


class ViewOf(Directive):
    """A view from the notebook of another page."""

    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        page, kind = self.arguments
        self.state.document.settings.env.note_dependency(str(Page(f"book/{page}").notebook))
        return [_raw(f'<div class="cell_output"><div class="output text_html">{view_of(page, kind)}</div></div>')]


class Counted(Directive):
    """Numbers with what they count: lines of `number | text | address`."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        items = []
        for line in filter(None, self.content):
            number, text, address = (part.strip() for part in line.split("|"))
            items.append(f'<li><a href="{address}"><b>{counted(number)}</b> {html.escape(counted(text))}</a></li>')
        return [_raw(f'<ul class="counted">{"".join(items)}</ul>')]


class ChapterCards(Directive):
    """A card for each chapter: lines of `stem: what it is about`."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        pairs = (line.split(":", 1) for line in self.content if line)
        cards = (card(number, stem.strip(), line.strip()) for number, (stem, line) in enumerate(pairs, 1))
        return [_raw(f'<ol class="page-cards">{"".join(cards)}</ol>')]


class WholeBook(Directive):
    """Links to the PDFs, in a build that makes them."""

    def run(self) -> list[nodes.Node]:
        links = [f'<a href="../{name}">{text}</a>' for name, text in PDFS.items()]
        return [_raw(f'<p class="whole-book">{", ".join(links)}</p>')] if os.environ.get(MAKING_PDF) else []


def _raw(source: str) -> nodes.raw:
    return nodes.raw("", source, format="html")


def _always(app: Sphinx, env, added, changed, removed) -> list[str]:
    """The title page counts what other files hold, so it is written anew in each build."""
    return [TITLE_PAGE] if TITLE_PAGE in env.found_docs else []


def setup(app: Sphinx) -> None:
    """Called by the book's Sphinx extension."""
    directives = {"view-of": ViewOf, "counted": Counted, "chapter-cards": ChapterCards, "whole-book": WholeBook}
    for name, directive in directives.items():
        app.add_directive(name, directive)
    app.connect("env-get-outdated", _always)
