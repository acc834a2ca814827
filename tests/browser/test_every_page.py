"""What holds for every page of the book, on a desk and on a phone, as `make book` builds it and as it is published.

Each page is opened once per screen and build, and every test looks at it there: opening takes longer than looking.
"""

import re
from pathlib import Path
from urllib.parse import urljoin

import nbformat
import pytest
from axe import faults
from bs4 import BeautifulSoup
from visiting import Visit, built

from course_lib.exercises import STEMS
from tools.pages import all_pages, notebook_pages

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAGES = [f"{page.name}.html" for page in all_pages()] + ["search.html", "genindex.html"]
LESSONS = {f"{page.name}.html" for page in notebook_pages() if page.is_lesson}
CHAPTERS = {address for address in LESSONS if Path(address).stem in STEMS}
DESK, PHONE = (1280, 900, "light"), (390, 844, "dark")
# Errors of a page that are known, with the reason. None so far.
KNOWN_ERRORS: tuple[str, ...] = ()


@pytest.fixture(
    scope="module",
    params=[(address, screen) for address in PAGES for screen in (DESK, PHONE)],
    ids=lambda param: f"{param[0]}-{'desk' if param[1] is DESK else 'phone'}",
)
def opened(request, browser, site):
    """A page on a screen, looked at and not touched."""
    address, (width, height, scheme) = request.param
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    seen = Visit(context.new_page(), site.address).open(address)
    seen.address, seen.width, seen.publisher = address, width, site.publisher
    yield seen
    context.close()


def test_a_page_needs_nothing_from_outside(opened):
    assert opened.outside == []
    assert opened.failed == []
    assert [e for e in opened.errors if not any(known in e for known in KNOWN_ERRORS)] == []
    assert opened.page.locator("#main-content h1:visible").count() == 1


def test_no_sideways_scroll(opened):
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= opened.width


def test_mathematics_is_typeset(opened):
    page = opened.page
    formulas = page.locator(".math").count()
    if opened.address in CHAPTERS:
        assert formulas > 10
    if formulas:
        page.wait_for_selector("mjx-container svg, mjx-container mjx-math")
    assert page.locator("mjx-container").count() >= formulas
    assert page.locator("mjx-merror, .MathJax_Error").count() == 0
    assert "\\frac" not in page.inner_text("#main-content")
    if formulas:  # set in MathJax's own fonts, which lie beside the book
        assert page.evaluate("document.fonts.ready.then(() => [...document.fonts].some("
                             "f => f.family.startsWith('MJXTEX') && f.status === 'loaded'))")  # fmt: skip


def test_every_figure_is_shown_with_its_text(opened):
    images = opened.page.locator("article img").evaluate_all(
        "list => list.map(i => ({alt: i.alt, width: i.naturalWidth, src: i.src}))"
    )
    if opened.address in CHAPTERS:
        assert len(images) >= 4
    for image in images:
        assert image["width"] > 0, f"broken: {image['src']}"
        assert len(image["alt"]) > 40, f"no alt text: {image['src']}"


def test_every_button_of_the_header_is_in_the_header(opened):
    buttons = opened.page.locator(".bd-header-article :is(button, a):visible").evaluate_all(
        "list => list.map(b => [b.title || b.ariaLabel || b.className, b.getBoundingClientRect().toJSON()])"
    )
    if opened.address in LESSONS:
        assert len(buttons) >= 4
    for name, box in buttons:
        assert box["left"] >= 0, name
        assert box["right"] <= opened.width, name
        assert box["top"] >= 0, name
        assert box["bottom"] <= 80, name
        assert box["height"] <= 60, name
        assert box["width"] <= 120, name


def test_a_colab_button_only_where_somebody_publishes(opened):
    links = opened.page.locator("a[href*='colab.research.google.com']")
    if opened.publisher and opened.address in LESSONS:
        name = opened.address.removesuffix(".html")
        assert links.first.get_attribute("href") == opened.publisher.colab_url(name)
    elif opened.publisher is None:
        assert links.count() == 0


def test_the_notebook_of_a_lesson_can_be_downloaded(opened):
    if opened.address in LESSONS:
        link = opened.page.locator("a[href*='_sources/'][href$='.ipynb']").first
        response = opened.page.request.get(urljoin(opened.page.url, link.get_attribute("href")))
        notebook = nbformat.reads(response.text(), as_version=4)
        assert any(cell.get("outputs") for cell in notebook.cells)


def test_no_serious_fault(opened):
    """Of a published page, what is around the article: the article is the same, as the next test proves."""
    assert faults(opened.page, without=["article"] if opened.publisher else []) == []


def test_a_published_article_is_the_local_one():
    """But for its links, which know the publisher."""
    for page in all_pages():
        local, published = (
            BeautifulSoup((built(kind)[0] / f"{page.name}.html").read_text(encoding="utf-8"), "html.parser").article
            for kind in ("local", "published")
        )
        for link in (*local.find_all("a"), *published.find_all("a")):
            del link["href"]
        assert local.get_text(" ") == published.get_text(" "), page.name
        assert _shape(local) == _shape(published), page.name


def _shape(tag):
    """Names and attributes of all elements, in order."""
    return [(t.name, sorted((k, str(v)) for k, v in t.attrs.items())) for t in tag.find_all(True)]


def test_links_inside_the_book_lead_somewhere(site):
    """Every link from a page to another, with its anchor."""
    broken, ids = [], {}
    for address in PAGES:
        text = (site.html / address).read_text(encoding="utf-8")
        for href in re.findall(r'<a [^>]*href="([^"]+)"', text):
            if re.match(r"[a-z]+:|//", href):
                continue
            target, _, anchor = href.partition("#")
            file = ((site.html / address).parent / target).resolve() if target else site.html / address
            if file not in ids:
                source = file.read_text(encoding="utf-8") if file.exists() and file.suffix == ".html" else ""
                ids[file] = set(re.findall(r"\sid=[\"']([^\"']+)[\"']", source))
            if not file.exists() or (anchor and file.suffix == ".html" and anchor not in ids[file]):
                broken.append((address, href))
    assert broken == []


def test_a_fault_would_be_found(visit):
    page = visit(PAGES[0]).page
    page.evaluate(
        "document.querySelector('article').insertAdjacentHTML('beforeend', '<img src=\"data:,\"><button></button>')"
    )
    found = faults(page)
    assert any(fault.startswith("button-name") for fault in found)
    assert any(fault.startswith("image-alt") for fault in found)


def test_pale_code_would_be_found(visit):
    """Also in the last of many blocks of code, which is looked at only if it has colours of its own."""
    page = visit("book/attention.html").page
    words = "[...document.querySelectorAll('pre span')].filter(n => n.checkVisibility() && n.innerText.length > 3)"
    page.evaluate(f"{words}.at(-1).style.color = '#eee'")
    assert any(fault.startswith("color-contrast") for fault in faults(page))
    assert page.locator("pre[data-repeats]").count() > 10
