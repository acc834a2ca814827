"""The built book, read in a browser that has no network."""

import re
from pathlib import Path
from urllib.parse import urljoin

import nbformat
import pytest

from course_lib.exercises import STEMS
from tools.pages import all_pages, notebook_pages

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PAGES = [f"{page.name}.html" for page in all_pages()] + ["search.html", "genindex.html"]
CHAPTERS = [f"{page.name}.html" for page in notebook_pages() if Path(page.name).name in set(STEMS)]

# Errors of a page that are known, with the reason. None so far.
KNOWN_ERRORS: tuple[str, ...] = ()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("address", PAGES)
def test_a_page_needs_nothing_from_outside(visit, address, scheme):
    seen = visit(address, scheme=scheme)
    assert seen.outside == []
    assert seen.failed == []
    assert [e for e in seen.errors if not any(known in e for known in KNOWN_ERRORS)] == []
    assert seen.page.locator("#main-content h1:visible").count() == 1


@pytest.mark.parametrize("address", CHAPTERS)
def test_mathematics_is_typeset(visit, address):
    page = visit(address).page
    page.wait_for_selector("mjx-container svg, mjx-container mjx-math")
    formulas = page.locator(".math").count()
    assert formulas > 10
    assert page.locator("mjx-container").count() >= formulas
    assert page.locator("mjx-merror, .MathJax_Error").count() == 0
    assert "\\frac" not in page.inner_text("article")
    # set in MathJax's own fonts, which lie beside the book
    assert page.evaluate("document.fonts.ready.then(() => [...document.fonts].some("
                         "f => f.family.startsWith('MJXTEX') && f.status === 'loaded'))")  # fmt: skip


@pytest.mark.parametrize("address", PAGES)
def test_no_sideways_scroll_on_a_phone(visit, address):
    page = visit(address, width=390, height=844).page
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("address", CHAPTERS)
def test_every_figure_is_shown_with_its_text(visit, address):
    page = visit(address).page
    images = page.locator("article img").evaluate_all(
        "list => list.map(i => ({alt: i.alt, width: i.naturalWidth, src: i.src}))"
    )
    assert len(images) >= 4
    for image in images:
        assert image["width"] > 0, f"broken: {image['src']}"
        assert len(image["alt"]) > 40, f"no alt text: {image['src']}"


def test_a_tap_on_a_figure_opens_it_in_full_size(visit, site):
    page = visit(CHAPTERS[0], width=390, height=844).page
    figure = page.locator("article .cell_output img").first
    shown, full = figure.evaluate("i => [i.getBoundingClientRect().width, i.naturalWidth]")
    assert shown < full
    figure.click()
    page.wait_for_url(f"{site.address}/_images/*.png")


def test_figures_turn_dark_and_the_switch_works(visit):
    page = visit(CHAPTERS[0], scheme="dark").page
    filter_of_figure = "getComputedStyle(document.querySelector('article .cell_output img')).filter"
    assert "invert" in page.evaluate(filter_of_figure)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(map(int, re.findall(r"\d+", background)[:3])) < 150
    page.locator(".theme-switch-button:visible").first.click()  # auto → light or dark, depending on the theme
    modes = {page.evaluate("document.documentElement.dataset.theme")}
    page.locator(".theme-switch-button:visible").first.click()
    modes.add(page.evaluate("document.documentElement.dataset.theme"))
    assert "light" in modes


def test_no_figure_is_inverted_in_the_light(visit):
    page = visit(CHAPTERS[0]).page
    assert page.evaluate("getComputedStyle(document.querySelector('article .cell_output img')).filter") == "none"


def test_search_finds_a_chapter(visit):
    page = visit("search.html?q=softmax").page
    page.wait_for_selector("#search-results li a")
    found = page.locator("#search-results li a").evaluate_all("list => list.map(a => a.getAttribute('href'))")
    assert any("scaled_dot_product" in href for href in found)


def test_the_menu_opens_on_a_phone(visit):
    page = visit(CHAPTERS[0], width=390, height=844).page
    link = page.locator(".bd-sidebar-primary a", has_text="Scaled dot-product").first
    assert not link.is_visible()
    page.locator("button.primary-toggle:visible").first.click()
    link.wait_for(state="visible")


def test_a_page_works_from_the_file_system(visit, site):
    """`make book` says: open index.html. That is a file, with no server."""
    seen = visit((site.html / "book/attention.html").as_uri())
    seen.page.wait_for_selector("mjx-container")
    assert seen.outside == []
    assert seen.failed == []
    assert seen.errors == []


@pytest.mark.parametrize("address", CHAPTERS)
def test_a_colab_button_only_where_somebody_publishes(visit, site, address):
    links = visit(address).page.locator("a[href*='colab.research.google.com']")
    if site.publisher is None:
        assert links.count() == 0
    else:
        assert links.first.get_attribute("href") == site.publisher.colab_url(address.removesuffix(".html"))


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (390, 844)])
@pytest.mark.parametrize("address", CHAPTERS)
def test_every_button_of_the_header_is_in_the_header(visit, address, width, height):
    page = visit(address, width=width, height=height).page
    buttons = page.locator(".bd-header-article :is(button, a):visible").evaluate_all(
        "list => list.map(b => [b.title || b.ariaLabel || b.className, b.getBoundingClientRect().toJSON()])"
    )
    assert len(buttons) >= 4
    for name, box in buttons:
        assert box["left"] >= 0, name
        assert box["right"] <= width, name
        assert box["top"] >= 0, name
        assert box["bottom"] <= 80, name
        assert box["height"] <= 60, name
        assert box["width"] <= 120, name


@pytest.mark.parametrize("address", CHAPTERS)
def test_the_notebook_can_be_downloaded(visit, site, address):
    page = visit(address).page
    link = page.locator("a[href*='_sources/'][href$='.ipynb']").first
    response = page.request.get(urljoin(f"{site.address}/{address}", link.get_attribute("href")))
    notebook = nbformat.reads(response.text(), as_version=4)
    assert any(cell.get("outputs") for cell in notebook.cells)


def test_links_inside_the_book_lead_somewhere(site):
    """Every link from a page to another, with its anchor."""
    html = site.html
    broken = []
    for address in PAGES:
        text = (html / address).read_text(encoding="utf-8")
        for href in re.findall(r'<a [^>]*href="([^"]+)"', text):
            if re.match(r"[a-z]+:|//", href):
                continue
            target, _, anchor = href.partition("#")
            file = (html / address).parent / target if target else html / address
            if not file.exists() or (
                anchor
                and file.suffix == ".html"
                and not re.search(rf"\sid=[\"']{re.escape(anchor)}[\"']", file.read_text(encoding="utf-8"))
            ):
                broken.append((address, href))
    assert broken == []
