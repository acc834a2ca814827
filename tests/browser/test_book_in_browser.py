"""What a reader does with the book: looks closer, switches to dark, searches, opens the menu."""

import re

import pytest

from course_kit.chapters import STEMS
from tools.pages import notebook_pages

pytestmark = [pytest.mark.browser, pytest.mark.site]

CHAPTER = f"{notebook_pages()[0].name}.html"


def test_a_tap_on_a_figure_opens_it_in_full_size(visit, site):
    page = visit(CHAPTER, width=390, height=844).page
    figure = page.locator("article .cell_output img").first
    shown, full = figure.evaluate("i => [i.getBoundingClientRect().width, i.naturalWidth]")
    assert shown < full
    figure.click()
    large = page.locator("dialog.enlarged img")
    large.wait_for()
    assert large.evaluate("i => i.getBoundingClientRect().width") >= 2 * shown
    page.locator("dialog.enlarged button").click()
    assert page.locator("dialog").filter(visible=True).count() == 0


WIDE = "book/transformer.html"  # its first figure is a diagram, which cannot be stacked


def test_a_wide_figure_scrolls_with_the_arrow_keys_and_says_so(visit):
    page = visit(WIDE, width=390, height=844).page
    frame = page.locator("article a.full-size").first
    assert "scrolls" in frame.evaluate("a => getComputedStyle(a, '::before').content")
    frame.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('article a.full-size').scrollLeft > 0")
    assert page.evaluate("scrollX") == 0


def test_on_a_desk_figures_are_whole_and_copying_is_no_stop_of_the_tab_key(visit):
    page = visit(CHAPTER).page
    sources = page.locator("article a.full-size img").evaluate_all("list => list.map(i => i.currentSrc || i.src)")
    assert sources
    assert not any("-stacked" in source for source in sources)
    assert page.locator("article a.full-size.scrolls").count() == 0
    assert page.locator("button.copybtn").count() > 10
    assert page.locator("button.copybtn:not([tabindex='-1'])").count() == 0


def test_on_paper_the_page_is_light_answers_are_open_and_figures_are_whole(visit):
    """Even a small sheet gets the pictures for the desk."""
    page = visit(CHAPTER, width=390, height=844, scheme="dark").page
    stacked = "[...document.querySelectorAll('article img')].filter(i => i.currentSrc.includes('-stacked')).length"
    closed_ones = "document.querySelectorAll('article details.sd-dropdown:not([open])').length"
    seen = f"[document.documentElement.dataset.theme, {closed_ones}]"
    theme, closed = page.evaluate(seen)
    assert theme == "dark"
    assert closed > 5
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(seen) == ["light", 0]
    page.wait_for_function(f"{stacked} >= 2")
    page.emulate_media(media="print")
    page.wait_for_function(f"{stacked} === 0")
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(seen) == [theme, closed]


# Uses each control of a view, and gives the heights that the view has had.
_HEIGHTS = """async view => {
  const heights = new Set(), controls = "input, select, .controls button, .chips button, [role=button]";
  for (let n = 0; n < Math.min(view.querySelectorAll(controls).length, 30); n++) {
    const node = view.querySelectorAll(controls)[n];
    for (const end of node.tagName === "INPUT" ? [node.max, node.min] : [0]) {
      if (node.tagName === "INPUT") node.value = end;
      else if (node.options) node.selectedIndex = node.options.length - 1;
      else { node.focus({preventScroll: true}); node.dispatchEvent(new MouseEvent("click", {bubbles: true})); }
      node.dispatchEvent(new Event("input", {bubbles: true}));
      await new Promise(done => setTimeout(done, 130));
      heights.add(Math.round(view.getBoundingClientRect().height));
    }
  }
  return [...heights];
}"""


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("page", ["decoding", "efficiency", "multi_head", "inspection"])
def test_views_keep_their_height_while_they_are_used(visit, page, width):
    for view in visit(f"book/{page}.html", width=width).page.locator("attention-view").all():
        heights = view.evaluate(_HEIGHTS)
        assert max(heights) - min(heights) <= 8, view.get_attribute("kind")


def test_a_wide_formula_shrinks_on_a_phone(visit):
    page = visit("book/transformer.html", width=390, height=844).page
    sizes = page.locator("article div.math math").evaluate_all("list => list.map(m => m.style.fontSize)")
    assert any(sizes)
    assert all(not size or float(size.removesuffix("em")) >= 0.75 for size in sizes)


def test_figures_turn_dark_and_the_switch_works(visit):
    filter_of_figure = "getComputedStyle(document.querySelector('article .cell_output img')).filter"
    assert visit(CHAPTER).page.evaluate(filter_of_figure) == "none"
    page = visit(CHAPTER, scheme="dark").page
    assert "invert" in page.evaluate(filter_of_figure)
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(map(int, re.findall(r"\d+", background)[:3])) < 150
    page.locator(".theme-switch-button:visible").first.click()  # auto → light or dark, depending on the theme
    modes = {page.evaluate("document.documentElement.dataset.theme")}
    page.locator(".theme-switch-button:visible").first.click()
    modes.add(page.evaluate("document.documentElement.dataset.theme"))
    assert "light" in modes


def test_search_forgives_a_typing_error_and_opens_the_section(visit, site):
    """From files as well, where a page may not read others; and by the keyboard alone."""
    seen = visit((site.html / "book/multi_head.html").as_uri())
    page = seen.page
    page.keyboard.press("Control+k")
    page.keyboard.type("rotery")
    first = page.locator("#pst-search-dialog .search-results a").first
    first.wait_for()
    assert "rotary" in first.locator(".search-excerpt mark").first.inner_text().lower()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/*rotary*")
    page.wait_for_selector("article mark")
    elsewhere = "list => list.filter(mark => mark.closest('section').id !== location.hash.slice(1)).length"
    assert page.locator("mark:not(.search-results mark)").evaluate_all(elsewhere) == 0
    assert seen.errors == []


def found(visit, query):
    """The addresses that a search finds, best first."""
    page = visit(f"search.html?q={query}").page
    page.wait_for_selector("#main-content .search-results a")
    links = "list => list.map(a => a.getAttribute('href').replace(/\\?.*#/, '#'))"
    return page.locator("#main-content .search-results a").evaluate_all(links)


@pytest.mark.parametrize(
    ("query", "address"),
    [
        ("softmax", "attention.html"),
        ("batch first", "pitfalls.html#batch-first"),
        ("rotary exersise", "rotary_positions.html#rotary-positions"),
        ("warmup formula", "training.html"),
        ("need weights", "pitfalls.html#need-weights"),
        ("padding mask shpae", "shapes.html"),
        ("causal mask polrity", "mask_conventions.html#what-true-means"),
    ],
)
def test_search_leads_there(visit, query, address):
    addresses = found(visit, query)
    most = 6 if query == "softmax" else 5
    assert any(address in href for href in addresses[:most]), addresses
    if query == "softmax":
        assert not re.search("/(deeper|reference)/", addresses[0]), "chapters come first"


def test_a_word_that_the_book_does_not_use_is_named(visit):
    page = visit("search.html?q=softmax zzqqxxzz").page
    page.locator("#main-content .search-results p", has_text="without “zzqqxxzz”").wait_for()
    assert page.locator("#main-content .search-results a").count() > 3
    page = visit("search.html?q=zzqqxxzz").page
    page.locator("#main-content .search-results p", has_text="Nothing found").wait_for()


def test_a_page_can_be_read_without_scripts(browser, site):
    """Text, formulas, figures and links; and code has its colours on a light ground, also for those who prefer dark."""
    context = browser.new_context(java_script_enabled=False, color_scheme="dark")
    page = context.new_page()
    page.goto(f"{site.address}/{CHAPTER}")
    assert page.locator("html").get_attribute("data-theme") == "light"
    assert page.locator(".math > math").count() > 10
    assert page.locator("article img").count() >= 4
    assert page.locator(".prev-next-area a.right-next").count() == 1
    title = page.locator("attention-view .title").first  # what cannot be used says so
    assert "JavaScript" in title.evaluate("n => getComputedStyle(n, '::after').content")
    assert page.locator("attention-view .hint:visible, .do-it input:visible, .search-button-field:visible").count() == 0
    page.set_viewport_size({"width": 390, "height": 844})  # where a button that needs scripts would open the contents
    assert page.locator(".header-article-items button:visible").count() == 0
    page.get_by_role("link", name="All chapters", exact=True).click()
    page.locator("a.page-card").last.wait_for()
    assert page.locator("a.page-card:visible").count() == len(STEMS) + 1  # and the sentence that goes through all
    context.close()


def test_the_menu_opens_on_a_phone(visit):
    page = visit(CHAPTER, width=390, height=844).page
    link = page.locator(".bd-sidebar-primary a", has_text="Scaled dot-product").first
    assert not link.is_visible()
    page.locator("button.primary-toggle:visible").first.click()
    link.wait_for(state="visible")


def test_a_page_works_from_the_file_system(visit, site):
    """`make book` says: open index.html. That is a file, with no server."""
    seen = visit((site.html / "book/attention.html").as_uri())
    seen.page.wait_for_selector(".math > math")
    assert seen.outside == []
    assert seen.failed == []
    assert seen.errors == []
