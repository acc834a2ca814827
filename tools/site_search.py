"""The book's search: every section with its text in one file, which a page loads when a reader begins to search.

Sphinx's own search shows no excerpts where the book is read from files, opens a page at its top, loads its index on
every page and forgives no typing error. `book/_static/search.js` does the searching.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from lxml import html as lxml_html
from sphinx.application import Sphinx

DATA = "_static/search-data.js"
NO_TEXT = {"pre", "script", "style", "math", "svg", "button", "attention-view", "noscript"}
_EXERCISE = re.compile(r"\w+: difficulty \d of 5")  # how an exercise begins, see tools/exercise_sections.py
_CODES = [chr(number) for number in range(0x400, 0x800)]  # two bytes each, and in no text of the book
_WORD = re.compile(r" ?[A-Za-z]{2,}")
LONG = 40  # rows of a table that is data rather than something to look up


def _rows(table: lxml_html.HtmlElement) -> int:
    return sum(1 for _ in table.iter("tr"))


def _tells_nothing(element: lxml_html.HtmlElement) -> bool:
    """The words of a button, the report of a check that has not been run, or where a function is used."""
    words = element.find("strong")
    return (
        element.get("aria-label") == "Toggle hidden content"
        or "course-lib-report" in element.get("class", "")
        or (element.tag == "p" and words is not None and not element.text and words.text == "Chapter")
    )


def _own_text(element: lxml_html.HtmlElement) -> Iterator[str]:
    """The text of a section without its heading, its subsections, its code, its pictures and its long tables."""
    for child in element:
        if not isinstance(child.tag, str) or _tells_nothing(child):  # or a comment
            yield child.tail or ""
            continue
        apart = child.tag in {"section", "h1", "h2", "h3", "h4"} or (child.tag == "table" and _rows(child) > LONG)
        if child.tag not in NO_TEXT and not apart:
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
    (folder / DATA).write_text(f"bookSearch({packed(pages)})\n", encoding="utf-8")


def packed(pages: list[dict]) -> str:
    """The pages as JSON in which a single character stands for each of the 1,024 words that save the most bytes.

    `search.js` puts the words back. They are a second argument, in the order of their characters from U+0400 on.

    Raises:
        ValueError: a page contains one of these characters.
    """
    texts = [text for page in pages for text in (page["title"], page["address"], *chain(*page["sections"]))]
    if used := set(_CODES) & set("".join(texts)):
        raise ValueError(f"expected no page with {', '.join(sorted(used))}: they stand for words in the search data")
    counts = Counter(word for text in texts for word in _WORD.findall(text))
    saved = {word: (len(word) - 2) * count - len(word) - 3 for word, count in counts.items()}  # less its place below
    words = sorted((word for word in saved if saved[word] > 0), key=lambda word: (-saved[word], word))[: len(_CODES)]
    code = dict(zip(words, _CODES, strict=False))

    def short(text: str) -> str:
        return _WORD.sub(lambda found: code.get(found[0], found[0]), text)

    data = [
        {
            "title": short(page["title"]),
            "address": short(page["address"]),
            "sections": [[short(text) for text in section] for section in page["sections"]],
        }
        for page in pages
    ]
    return ",".join(json.dumps(part, ensure_ascii=False, separators=(",", ":")) for part in (data, words))


def _instead_of_sphinx(app: Sphinx) -> None:
    app.builder.search = False


def setup(app: Sphinx) -> None:
    """Called by the book's Sphinx extension."""
    app.connect("builder-inited", _instead_of_sphinx)
    app.connect("build-finished", _write)
