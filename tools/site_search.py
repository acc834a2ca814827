"""The book's search: every section with its text in one file, which a page loads when a reader begins to search.

Sphinx's own search shows no excerpts where the book is read from files, opens a page at its top, loads its index on
every page and forgives no typing error. `book/_static/search.js` does the searching.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from lxml import html as lxml_html
from sphinx.application import Sphinx

DATA = "_static/search-data.js"
NO_TEXT = {"pre", "script", "style", "svg", "button", "attention-view", "noscript"}
_EXERCISE = re.compile(r"\w+: difficulty \d of 5")  # how an exercise begins, see tools/exercise_sections.py
LONG = 40  # rows of a table that is data rather than something to look up


def _rows(table: lxml_html.HtmlElement) -> int:
    return sum(1 for _ in table.iter("tr"))


def _tells_nothing(element: lxml_html.HtmlElement) -> bool:
    """The words of a button, the report of a check that has not been run, or where a function is used."""
    words = element.find("strong")
    return (
        (element.tag == "summary" and bool(element.find_class("collapsed")))
        or "course-lib-report" in element.get("class", "")
        or (element.tag == "p" and words is not None and not element.text and words.text == "Chapter")
    )


def _in_a_line(formula: lxml_html.HtmlElement) -> str:
    """A formula in MathML as text: √d_k, x^2, a/b."""
    if formula.tag == "annotation":
        return ""
    inner = [_in_a_line(child) for child in formula]
    if not inner:
        return (formula.text or "").strip()
    signs = {"msub": "_", "msup": "^", "mfrac": "/"}
    joined = signs.get(formula.tag, "").join(inner)
    return f"√{joined}" if formula.tag == "msqrt" else joined


def _own_text(element: lxml_html.HtmlElement) -> Iterator[str]:
    """The text of a section without its heading, its subsections, its code, its pictures and its long tables."""
    for child in element:
        if not isinstance(child.tag, str) or _tells_nothing(child):  # or a comment
            yield child.tail or ""
            continue
        apart = child.tag in {"section", "h1", "h2", "h3", "h4"} or (child.tag == "table" and _rows(child) > LONG)
        if child.tag == "math":
            yield _in_a_line(child)
        elif child.tag not in NO_TEXT and not apart:
            yield child.text or ""
            yield from _own_text(child)
            if child.tag in {"p", "li", "td", "th", "dt", "dd", "div"}:
                yield " "
        yield child.tail or ""


def sections(page: Path) -> Iterator[tuple[str, str, str]]:
    """Anchor, heading and text of each section of a built page, from top to bottom."""
    article = lxml_html.parse(str(page)).find(".//article")
    for section in article.iter("section") if article is not None else ():
        heading = next((child for child in section if child.tag in {"h1", "h2", "h3", "h4"}), None)
        if heading is None:
            continue
        for link in heading.find_class("headerlink"):
            link.drop_tree()
        title, text = " ".join(heading.text_content().split()), " ".join("".join(_own_text(section)).split())
        if _EXERCISE.match(text):
            title += " (exercise)"
        yield section.get("id"), title, text


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.name != "html":
        return
    folder = Path(app.outdir)
    pages = []
    for name in sorted(app.env.found_docs):
        found = list(sections(folder / f"{name}.html"))
        if found:
            pages.append({"title": found[0][1], "address": f"{name}.html", "sections": found})
    data = json.dumps(pages, ensure_ascii=False, separators=(",", ":"))
    (folder / DATA).write_text(f"bookSearch({data})\n", encoding="utf-8")


def _instead_of_sphinx(app: Sphinx) -> None:
    app.builder.search = False


def setup(app: Sphinx) -> None:
    """Called by the book's Sphinx extension."""
    app.connect("builder-inited", _instead_of_sphinx)
    app.connect("build-finished", _write)
