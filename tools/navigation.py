"""The way through the book: chapters lead to chapters, a deeper page leads back to its chapter, and a link that is
sent to somebody shows what it leads to.

Deeper pages have no section numbers, because they are optional; their figures continue the chapter's numbering.
"""

from __future__ import annotations

import html
import re
from itertools import pairwise

from docutils import nodes
from lxml import html as lxml_html
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.environment.collectors.toctree import TocTreeCollector

from tools.pages import Page, all_pages
from tools.publisher import the_publisher

COVER = "_static/cover.png"  # of a page without a picture
LONG = 200  # characters of a description, after which previews cut it


def chapter_of(page: Page) -> Page | None:
    """The chapter that a deeper page belongs to; None for other pages."""
    pages = all_pages(page.root)
    before = pages[: pages.index(page)] if page.is_deeper else []
    return next((one for one in reversed(before) if not one.is_deeper), None)


def neighbours(page: Page) -> tuple[Page | None, Page | None]:
    """The pages that "previous" and "next" lead to: of a deeper page, only its chapter."""
    if page.is_deeper:
        return chapter_of(page), None
    line = [one for one in all_pages(page.root) if not one.is_deeper]
    pairs = list(pairwise([None, *line, None]))
    place = line.index(page) if page in line else None
    return (None, None) if place is None else (pairs[place][0], pairs[place + 1][1])


def description(body: str) -> str:
    """The first sentences of a page's article that fit a preview."""
    words = ""
    for paragraph in lxml_html.fromstring(f"<div>{body}</div>").xpath(
        ".//section/p[not(em and not(text()[normalize-space()]))]"
    ):
        words = " ".join(paragraph.text_content().split())
        if len(words) > 40:
            break
    if len(words) <= LONG:
        return words
    whole = re.match(rf"(.{{60,{LONG}}}[.?!])\s", words)
    return whole[1] if whole else words[: words.rindex(" ", 0, LONG)] + " …"


def preview(title: str, body: str, address: str, root: str) -> str:
    """Meta elements from which mail programs, chats and search engines make a preview.

    Args:
        title: of the page.
        body: its article.
        address: of the published page; empty if the publisher is unknown. Pictures need a complete address.
        root: of the published book.
    """
    properties = {
        "og:type": "article",
        "og:site_name": "Attention, Proven",
        "og:title": title,
        "og:description": description(body),
    }
    if address:
        image = re.search(r'<img[^>]*src="(?:\.\./)*(_images/[^"]+\.png)"', body)
        properties |= {"og:url": address, "og:image": root + (image[1] if image else COVER)}
    rows = [f'<meta name="description" content="{html.escape(properties["og:description"])}">']
    rows += [f'<meta property="{name}" content="{html.escape(content)}">' for name, content in properties.items()]
    rows.append(f'<meta name="twitter:card" content="{"summary_large_image" if address else "summary"}">')
    return "\n".join(rows)


def _number_apart(number):
    """Sphinx's numbering of sections, after which deeper pages have none."""

    def assign_section_numbers(self: TocTreeCollector, env: BuildEnvironment) -> list[str]:
        before = env.toc_secnumbers
        number(self, env)
        for name in [name for name in env.toc_secnumbers if Page(name).is_deeper]:
            del env.toc_secnumbers[name]
            for node in (env.titles[name], *env.tocs[name].findall(nodes.reference)):
                node.attributes.pop("secnumber", None)
        return [name for name in {*before, *env.toc_secnumbers} if env.toc_secnumbers.get(name) != before.get(name)]

    return assign_section_numbers


def _lead(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    page = Page(pagename)
    if doctree is None or page not in all_pages():
        return
    for key, other in zip(("prev", "next"), neighbours(page), strict=True):
        title = app.builder.render_partial(app.env.titles[other.name])["title"] if other else ""
        context[key] = other and {"link": app.builder.get_relative_uri(pagename, other.name), "title": title}
    context["prev_subtitle"] = "back to the chapter" if page.is_deeper else "previous"
    publisher = the_publisher()
    root = publisher.book_url if publisher else ""
    address = f"{root}{pagename}.html" if root else ""
    # Without docutils' own element for the size of the window: Sphinx writes the same.
    others = re.sub(r'<meta[^>]*name="viewport"[^>]*>\s*', "", context.get("metatags", ""))
    title = app.env.titles[pagename].astext()
    context["metatags"] = f"{others}\n{preview(title, context.get('body', ''), address, root)}\n"


def setup(app: Sphinx) -> None:
    """Called by the book's Sphinx extension."""
    TocTreeCollector.assign_section_numbers = _number_apart(TocTreeCollector.assign_section_numbers)
    app.connect("html-page-context", _lead)
