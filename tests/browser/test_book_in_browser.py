"""What a reader does with the book: looks closer, switches to dark, searches, opens the menu."""

import re

import pytest

from tools.pages import notebook_pages

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CHAPTER = f"{notebook_pages()[0].name}.html"


def test_a_tap_on_a_figure_opens_it_in_full_size(visit, site):
    page = visit(CHAPTER, width=390, height=844).page
    figure = page.locator("article .cell_output img").first
    shown, full = figure.evaluate("i => [i.getBoundingClientRect().width, i.naturalWidth]")
    assert shown < full
    figure.click()
    page.wait_for_url(f"{site.address}/_images/*.png")


def test_figures_turn_dark_and_the_switch_works(visit):
    page = visit(CHAPTER, scheme="dark").page
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
    page = visit(CHAPTER).page
    assert page.evaluate("getComputedStyle(document.querySelector('article .cell_output img')).filter") == "none"


def test_search_finds_a_chapter(visit):
    page = visit("search.html?q=softmax").page
    page.wait_for_selector("#search-results li a")
    found = page.locator("#search-results li a").evaluate_all("list => list.map(a => a.getAttribute('href'))")
    assert any("scaled_dot_product" in href for href in found)


def test_the_menu_opens_on_a_phone(visit):
    page = visit(CHAPTER, width=390, height=844).page
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
