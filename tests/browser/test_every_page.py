"""What holds for every page of the book, on a desk and on a phone, as `make book` builds it and as it is published.

Each page is opened once per screen and build, and one test asks there for everything that has to hold: opening takes
longer than looking. What holds is a list of functions; all that fail are reported together.
"""

import re
from pathlib import Path
from urllib.parse import urljoin

import nbformat
import pytest
from axe import faults
from playwright.sync_api import Error as PlaywrightError
from visiting import Visit, built

from course_kit.exercises import STEMS
from tools.figures import SMALL, said_of_pictures
from tools.pages import Page, all_pages, notebook_pages

pytestmark = [pytest.mark.browser, pytest.mark.site]

PAGES = [f"{page.name}.html" for page in all_pages()] + ["search.html"]
LESSONS = {f"{page.name}.html" for page in notebook_pages() if page.is_lesson}
CHAPTERS = {address for address in LESSONS if Path(address).stem in STEMS}
MOST_BYTES = 2_000_000
DESK, PHONE = (1280, 900, "light"), (390, 844, "dark")
# Errors of a page that are known, with the reason. None so far.
KNOWN_ERRORS: tuple[str, ...] = ()


# Of these, `make test` looks at the local build; `make test-all` looks at all pages and both builds.
SAMPLE = {
    "index.html",
    "book/attention.html",
    "book/masking.html",
    "book/reference/pitfalls.html",
    "book/teaching.html",
    "search.html",
}


def open_page(browser, site, address, width, height, scheme):
    """A page on a screen, looked at and not touched, and what closes it."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    seen = Visit(context.new_page(), site.address).open(address)
    seen.address, seen.width, seen.publisher = address, width, site.publisher
    return seen, context.close


def a_page_needs_nothing_from_outside(opened):
    assert opened.outside == []
    assert opened.failed == []
    assert [e for e in opened.errors if not any(known in e for known in KNOWN_ERRORS)] == []
    assert opened.page.locator("#main-content h1:visible").count() == 1


def no_sideways_scroll(opened):
    """Nor on the narrowest phone."""
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= opened.width
    if opened.width == PHONE[0]:
        opened.page.set_viewport_size({"width": 320, "height": PHONE[1]})
        wide = opened.page.evaluate("document.documentElement.scrollWidth")
        opened.page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
        assert wide <= 320


# Stops of the Tab key before the article, and the links of the sidebar after it.
_STOPS = """() => {
  const article = document.querySelector("article"), all = "a[href], button, input, select, summary, [tabindex]";
  const stops = [...document.querySelectorAll(all)].filter(n => n.tabIndex >= 0 && n.checkVisibility());
  const before = stops.filter(n => n.compareDocumentPosition(article) & Node.DOCUMENT_POSITION_FOLLOWING);
  return [before.length, stops.filter(n => n.closest("#pst-primary-sidebar") && !before.includes(n)).length];
}"""


def tab_reaches_the_article_soon_and_the_chapters_after_it(opened):
    before, chapters = opened.page.evaluate(_STOPS)
    assert before <= 15
    assert chapters >= 15 or opened.width < 768  # a phone's menu opens with a button


# Mean number of characters in the full lines of long paragraphs; left and right edges of paragraphs and views.
_LINES = """() => {
  const range = document.createRange(), found = [];
  for (const p of document.querySelectorAll("article section > p")) {
    if (p.textContent.length < 250 || p.querySelector("math, img")) continue;
    const walker = document.createTreeWalker(p, NodeFilter.SHOW_TEXT), rows = new Map();
    while (walker.nextNode()) for (let i = 0; i < walker.currentNode.length; i++) {
      range.setStart(walker.currentNode, i);
      range.setEnd(walker.currentNode, i + 1);
      const box = range.getBoundingClientRect(), y = Math.round(box.y / 20);
      if (box.width) rows.set(y, (rows.get(y) || 0) + 1);
    }
    found.push(...[...rows.values()].slice(0, -1).filter(n => n > 20));
  }
  return found.reduce((a, b) => a + b, 0) / found.length;
}"""
_EDGES = """() => [...document.querySelectorAll("section > p, section > .cell :is(figcaption, attention-view)")].filter(
  n => n.checkVisibility()).map(n => n.getBoundingClientRect()).map(box => `${box.left | 0} ${box.right | 0}`)"""


def lines_are_easy_to_read_and_edges_agree(opened):
    if opened.address in CHAPTERS and opened.width == DESK[0]:
        opened.page.set_viewport_size({"width": 1440, "height": DESK[1]})
        characters, edges = opened.page.evaluate(_LINES), set(opened.page.evaluate(_EDGES))
        opened.page.set_viewport_size({"width": DESK[0], "height": DESK[1]})
        assert 65 <= characters <= 75
        assert len(edges) == 1, edges


def mathematics_is_typeset(opened):
    page = opened.page
    formulas = page.locator(".math").count()
    if opened.address in CHAPTERS:
        assert formulas > 10
    assert page.locator(".math > math").count() == formulas
    assert page.locator("merror, .math code").count() == 0
    assert "\\frac" not in page.inner_text("#main-content")
    if formulas:  # set in the font that lies beside the book
        assert page.evaluate("document.fonts.ready.then(() => [...document.fonts].some("
                             "f => f.family.includes('Book Math') && f.status === 'loaded'))")  # fmt: skip


# Letters for private use, which only a font of signs would draw.
_SIGNS_OF_A_FONT = r"""() => [...document.querySelectorAll("body *")].filter(one => ["::before", "::after"].some(
  part => /[\ue000-\uf8ff]/.test(getComputedStyle(one, part).content))).map(one => one.className)"""


def every_sign_is_drawn(opened):
    """By icons.css, in place of the font of signs that the theme would load; a sign left out there is an empty box."""
    signs = opened.page.locator("i[class*='fa-']").evaluate_all(
        "list => list.map(i => [i.className, getComputedStyle(i, '::before').content, getComputedStyle(i).maskImage])"
    )
    assert signs
    assert [name for name, text, mask in signs if text != "none" or not mask.startswith("url(")] == []
    assert opened.page.evaluate(_SIGNS_OF_A_FONT) == []


# How far the end of each formula is from being seen when the formula is scrolled as far as it goes, in pixels.
_HIDDEN = """list => list.map(formula => {
  formula.scrollLeft = 1e4;
  const end = Math.max(...[...formula.querySelectorAll("*")].map(one => one.getBoundingClientRect().right));
  const hidden = end - formula.parentElement.getBoundingClientRect().right;
  formula.scrollLeft = 0;
  return Math.round(hidden);
})"""


def a_wide_formula_can_be_seen_to_its_end(opened):
    hidden = opened.page.locator("article div.math > math").evaluate_all(_HIDDEN)
    assert [pixels for pixels in hidden if pixels > 2] == []


def tables_of_shapes_fit_a_phone(opened):
    if opened.address == "book/reference/shapes.html":
        wider = "list => list.filter(table => table.scrollWidth > table.clientWidth + 1).length"
        tables = opened.page.locator(".pst-scrollable-table-container")
        assert tables.count() >= 8
        assert tables.evaluate_all(wider) == 0


def no_code_scrolls_sideways_on_a_desk(opened):
    if opened.width >= 1280:
        too_wide = "list => list.filter(b => b.checkVisibility() && b.scrollWidth > b.clientWidth + 1).length"
        assert opened.page.locator("article pre").evaluate_all(too_wide) == 0


def a_page_is_light(opened):
    """All that it loads, uncompressed; gzipped, it is 0.8 MB at most (inspection)."""
    assert sum(opened.sizes.values()) <= MOST_BYTES, sorted(opened.sizes.items(), key=lambda item: -item[1])[:8]


# Pictures come when a reader comes near them.
_PICTURES = """list => Promise.all(list.map(async image => {
  const kept = image.getBoundingClientRect().toJSON();
  image.loading = "eager";
  await image.decode().catch(() => 0);
  const {alt, src, naturalWidth: width} = image;
  return {alt, src, width, kept, shown: image.getBoundingClientRect().toJSON()};
}))"""


def every_figure_is_shown_with_its_text(opened):
    images = opened.page.locator("article img").evaluate_all(_PICTURES)
    if opened.address in CHAPTERS:
        assert len(images) >= 3
    for image in images:
        assert image["width"] > 0, f"broken: {image['src']}"
        assert len(image["alt"]) > 40, f"no alt text: {image['src']}"
        assert abs(image["kept"]["height"] - image["shown"]["height"]) <= 1, f"no room was kept: {image['src']}"


_WIDTHS = """links => links.map(link => {
  const image = link.querySelector("img"), chosen = link.querySelector("source");
  return {name: image.src.match(/(\\w+)[.]png$/)[1], stacked: image.currentSrc.includes("-stacked"),
          drawn: Number((chosen || image).getAttribute("width")), shown: image.getBoundingClientRect().width,
          room: link.clientWidth, moves: link.classList.contains("scrolls")};
})"""
LEGIBLE, DPI = 10, 110


def text_in_figures_is_legible_on_a_phone(opened):
    """At least ten pixels high. A figure that is too wide for that scrolls, and says so."""
    if opened.width > 600 or opened.address not in LESSONS:
        return
    said = said_of_pictures(nbformat.read(Page(opened.address.removesuffix(".html")).notebook, as_version=4))
    opened.page.locator("article .cell_output img").evaluate_all(_PICTURES)
    figures = opened.page.locator("article a.full-size").evaluate_all(_WIDTHS)
    assert {figure["name"] for figure in figures} == set(said)
    for figure in figures:
        text = said[figure["name"]].get("points", SMALL) / 72 * DPI * figure["shown"] / figure["drawn"]
        assert text >= LEGIBLE - 0.01, (figure, text)
        assert figure["moves"] == (figure["shown"] > figure["room"] + 1), figure


def every_button_of_the_header_is_in_the_header(opened):
    buttons = opened.page.locator(".bd-header-article :is(button, a):visible").evaluate_all(
        "list => list.map(b => [b.title || b.ariaLabel || b.className, b.getBoundingClientRect().toJSON()])"
    )
    if opened.address in LESSONS:
        assert len(buttons) >= 4
    for name, box in buttons:
        assert 0 <= box["left"] < box["right"] <= opened.width, name
        assert 0 <= box["top"] < box["bottom"] <= 80, name
        assert box["height"] <= 60, name
        assert box["width"] <= 120, name


def a_colab_button_only_where_somebody_publishes(opened):
    links = opened.page.locator("a[href*='colab.research.google.com']")
    if opened.publisher and opened.address in LESSONS:
        name = opened.address.removesuffix(".html")
        assert links.first.get_attribute("href") == opened.publisher.colab_url(name)
    elif opened.publisher is None:
        assert links.count() == 0


def the_notebook_of_a_lesson_can_be_downloaded(opened):
    if opened.address in LESSONS:
        link = opened.page.locator("a[href*='_sources/'][href$='.ipynb']").first
        response = opened.page.request.get(urljoin(opened.page.url, link.get_attribute("href")))
        notebook = nbformat.reads(response.text(), as_version=4)
        assert any(cell.get("outputs") for cell in notebook.cells)


def no_fault_of_accessibility(opened):
    """Of a published page, what is around the article: the article is the same, as a test below proves."""
    assert faults(opened.page, without=["article"] if opened.publisher else []) == []


# What depends on the build is asked of both; the article is the same in both.
OF_BOTH_BUILDS = (
    a_page_needs_nothing_from_outside,
    tab_reaches_the_article_soon_and_the_chapters_after_it,
    no_sideways_scroll,
    every_button_of_the_header_is_in_the_header,
    a_colab_button_only_where_somebody_publishes,
    the_notebook_of_a_lesson_can_be_downloaded,
    no_fault_of_accessibility,
)
OF_A_PAGE = (
    mathematics_is_typeset,
    every_sign_is_drawn,
    a_wide_formula_can_be_seen_to_its_end,
    tables_of_shapes_fit_a_phone,
    no_code_scrolls_sideways_on_a_desk,
    lines_are_easy_to_read_and_edges_agree,
    a_page_is_light,
    every_figure_is_shown_with_its_text,
    text_in_figures_is_legible_on_a_phone,
    *OF_BOTH_BUILDS,
)


def what_fails(opened, checks):
    """Each check that fails, with what it found."""
    found = []
    for check in checks:
        try:
            check(opened)
        except (AssertionError, PlaywrightError) as error:
            found.append(f"{check.__name__}: {error}")
    return found


@pytest.mark.parametrize("screen", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("address", [a if a in SAMPLE else pytest.param(a, marks=pytest.mark.thorough) for a in PAGES])
def test_a_page(browser, site, address, screen):
    seen, close = open_page(browser, site, address, *screen)
    found = what_fails(seen, OF_BOTH_BUILDS if site.publisher else OF_A_PAGE)
    close()
    assert not found, "\n".join([f"{address}: {len(found)} checks fail", *found])


def test_every_check_that_fails_is_reported(browser, site):
    seen, close = open_page(browser, site, "book/attention.html", *DESK)
    assert what_fails(seen, OF_A_PAGE) == []
    fault = '<img src="data:,"><i class="fa-new"></i><span class="math"><math><merror></merror></math></span>'
    seen.page.evaluate(f"document.querySelector('article').insertAdjacentHTML('beforeend', `{fault}`)")
    names = {line.split(":")[0] for line in what_fails(seen, OF_A_PAGE)}
    close()
    assert names >= {"mathematics_is_typeset", "every_figure_is_shown_with_its_text", "every_sign_is_drawn"}


@pytest.mark.thorough
def test_a_published_article_is_the_local_one():
    """To the letter, but for its links, and where exercises are done, which know the publisher."""
    for page in all_pages():
        local, published = (
            article_of((built(kind)[0] / f"{page.name}.html").read_text(encoding="utf-8"))
            for kind in ("local", "published")
        )
        assert local == published, page.name


def article_of(html: str) -> str:
    """The source of a page's article, without the addresses of its links and the lines that say where to do it."""
    article = html[html.index("<article") : html.rindex("</article>")]
    article = re.sub(r'<p class="do-it">.*?</p>', "", article)
    return re.sub(r'(<a\b[^>]*?) href="[^"]*"', r"\1", article)


def test_of_an_article_only_addresses_are_left_out():
    page = '<p>1</p><article class="a"><a class="b" href="x" title="t">2</a><img src="y"></article><p>3</p>'
    article = '<article class="a"><a class="b" title="t">2</a><img src="y">'
    assert article_of(page) == article_of(page.replace('"x"', '"z"')) == article
    for old, new in (("2", "4"), ('"t"', '"u"'), ('"y"', '"z"'), ("img", "em")):
        assert article_of(page.replace(old, new)) != article


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


def test_faults_of_accessibility_would_be_found(visit):
    """Also in the last of many blocks of code, which is looked at only if it has colours of its own."""
    page = visit("book/attention.html").page
    page.evaluate(
        "document.querySelector('article').insertAdjacentHTML('beforeend', '<img src=\"data:,\"><button></button>')"
    )
    words = "[...document.querySelectorAll('pre span')].filter(n => n.checkVisibility() && n.innerText.length > 3)"
    page.evaluate(f"{words}.at(-1).style.color = '#eee'")
    rules = {fault.split(" ")[0] for fault in faults(page)}
    assert rules >= {"button-name", "image-alt", "color-contrast"}
    assert page.locator("pre[data-repeats]").count() > 10
