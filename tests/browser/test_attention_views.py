"""The views of the chapter `attention`, in a browser without a network: by mouse, keyboard and touch."""

import re

import pytest
import torch
from driving import clean, drag_by_touch, everywhere, said
from shown import as_shown, number_in

from course_kit.viz import alignment, query_plane

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

KEY = torch.tensor([[2.0, 0.5], [-1.0, 1.5], [1.0, -2.0]])
VALUE = torch.tensor([1.0, 3.0, -2.0])
NAMES = ["sun", "rain", "wind"]
WEIGHTS = torch.tensor([[0.1, 0.2, 0.7, 0.0], [0.125, 0.375, 0.25, 0.25]])


# query_plane ----------------------------------------------------------------------------------------------------------


def plane(show, **settings):
    view = query_plane(KEY, VALUE, torch.tensor([0.5, 0.25]), labels=NAMES)
    return show(view, **settings), view.data["scale"]


def shown(page):
    return [
        number_in(page.locator(f'[data-k="{name}"]').text_content())
        for name in ("weight0", "weight1", "weight2", "output")
    ]


def attention_at(page, scale):
    """What torch computes where the disc stands."""
    disc = page.locator('[data-k="query"] .query')
    x, y = (float(disc.get_attribute(name)) for name in ("cx", "cy"))
    query = torch.tensor([(x - 160) / scale, (160 - y) / scale], dtype=torch.float64)
    weights = torch.softmax(KEY.double() @ query, 0)
    return [*weights.tolist(), (weights @ VALUE.double()).item()]


def test_a_query_is_dragged_with_a_finger_and_the_page_stays(show):
    seen, scale = plane(show, width=390, height=420, touch=True)
    page = seen.page
    assert page.evaluate("document.documentElement.scrollHeight - innerHeight") > 60  # there is room to pan
    page.locator('[data-k="query"]').scroll_into_view_if_needed()
    top, before = page.evaluate("scrollY"), shown(page)
    box = page.locator('[data-k="query"]').bounding_box()
    drag_by_touch(page, (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2), (-30, -60))
    moved = page.locator('[data-k="query"]').bounding_box()
    assert page.evaluate("scrollY") == top
    assert (moved["x"] - box["x"], moved["y"] - box["y"]) == pytest.approx((-30, -60), abs=1.5)
    assert shown(page) == pytest.approx(attention_at(page, scale), abs=5.1e-4)
    assert shown(page) != before
    clean(seen)


@everywhere
def test_a_query_is_dragged_with_the_mouse(show, width, scheme):
    seen, scale = plane(show, width=width, scheme=scheme)
    page = seen.page
    box = page.locator('[data-k="query"]').bounding_box()
    assert min(box["width"], box["height"]) >= 24
    before = shown(page)
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 40, y - 55, steps=4)
    page.mouse.up()
    after = box["x"] - page.locator('[data-k="query"]').bounding_box()["x"]
    assert after == pytest.approx(40, abs=1)  # it stays under the pointer
    assert shown(page) == pytest.approx(attention_at(page, scale), abs=5.1e-4)
    assert shown(page) != before
    page.mouse.move(x, y)  # released: it does not follow
    assert shown(page) == pytest.approx(attention_at(page, scale), abs=5.1e-4)
    clean(seen)


def test_a_finger_that_misses_the_disc_by_a_little_drags_it(show):
    seen, scale = plane(show, width=390, height=420, touch=True)
    page = seen.page
    page.locator('[data-k="query"]').scroll_into_view_if_needed()
    top, before = page.evaluate("scrollY"), page.locator('[data-k="query"] .query').bounding_box()
    middle = before["x"] + before["width"] / 2 + 18, before["y"] + before["height"] / 2
    drag_by_touch(page, middle, (-40, -50))
    after = page.locator('[data-k="query"] .query').bounding_box()
    assert (after["x"] - before["x"], after["y"] - before["y"]) == pytest.approx((-40, -50), abs=1.5)
    assert page.evaluate("scrollY") == top
    assert shown(page) == pytest.approx(attention_at(page, scale), abs=5.1e-4)
    clean(seen)


def test_a_query_walks_with_the_arrow_keys_and_says_where_it_is(show):
    seen, scale = plane(show)
    page = seen.page
    page.keyboard.press("Tab")  # the button
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.k") == "query"
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowUp")
    x, y = 0.5 - 12 / scale, 0.25 + 4 / scale
    at = f"{as_shown(x, 2)}, {as_shown(y, 2)}"
    assert page.locator('[data-k="query"]').get_attribute("aria-valuetext") == f"query at {at}"
    numbers = attention_at(page, scale)
    assert shown(page) == pytest.approx(numbers, abs=5.1e-4)
    best = max(range(3), key=lambda i: numbers[i])
    output = as_shown(numbers[3])
    wanted = f"With the query at {at}, “{NAMES[best]}” gets {numbers[best]:.3f}, and the output is {output}."
    assert said(page, at) == wanted
    clean(seen)


def test_it_does_not_leave_the_plane(show):
    seen, _ = plane(show)
    seen.page.locator('[data-k="query"]').focus()
    for _ in range(60):
        seen.page.keyboard.press("ArrowRight")
    assert seen.page.locator('[data-k="query"] .query').get_attribute("cx") == "310"


def test_hard_gives_all_to_the_best_key(show):
    seen, scale = plane(show, width=390, touch=True)
    page = seen.page
    assert page.locator('[data-k="hard"]').get_attribute("aria-pressed") == "false"
    page.locator('[data-k="hard"]').tap()
    assert page.locator('[data-k="hard"]').get_attribute("aria-pressed") == "true"
    assert shown(page) == [1, 0, 0, 1]
    assert float(page.locator('[data-k="bar0"]').get_attribute("width")) == 100
    page.locator('[data-k="hard"]').tap()
    assert shown(page) == pytest.approx(attention_at(page, scale), abs=5.1e-4)
    clean(seen)


def test_a_finger_drags_the_query_and_not_the_page(show):
    seen, scale = plane(show, width=390, touch=True)
    page = seen.page
    box = page.locator('[data-k="query"]').bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    finger = page.context.new_cdp_session(page)
    before = shown(page)

    def touch(kind, *points):
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": a, "y": b} for a, b in points]})

    touch("touchStart", (x, y))
    for step in (15, 30, 45):
        touch("touchMove", (x - step, y + step))
    touch("touchEnd")
    assert page.evaluate("scrollY") == 0
    assert shown(page) != before
    assert shown(page) == pytest.approx(attention_at(page, scale), abs=5.1e-4)
    clean(seen)


# alignment ------------------------------------------------------------------------------------------------------------


def joined(show, **settings):
    return show(alignment(WEIGHTS, ["fliegt", "gern"], ["time", "flies", "like", "an"]), **settings)


def joined_from(show, start):
    return show(alignment(WEIGHTS, ["fliegt", "gern"], ["time", "flies", "like", "an"], start=start))


def lit(page):
    """Which queries' lines are drawn in full."""
    return [i for i in range(2) if page.locator(f'[data-k="l{i}"]').get_attribute("opacity") == "1"]


def frame(page):
    return page.locator('[data-k="frame"]').bounding_box()


def same_place(a, b):
    return all(abs(a[side] - b[side]) < 2.5 for side in ("x", "y", "width", "height"))


@everywhere
def test_pointing_at_a_word_shows_its_lines_its_row_and_the_three_strongest(show, width, scheme):
    seen = joined(show, width=width, scheme=scheme)
    page = seen.page
    assert lit(page) == [0]  # the view starts with a word chosen, and says where it looks
    assert same_place(frame(page), page.locator('[data-k="r0"]').bounding_box())
    assert (
        page.locator(".say").text_content() == "“fliegt” looks most at “like” (0.700), “flies” (0.200), “time” (0.100)."
    )
    page.locator('[data-k="q1"]').hover()
    said(page, "“gern” looks")
    page.locator('[data-k="q0"]').hover()
    assert said(page, "“fliegt”") == "“fliegt” looks most at “like” (0.700), “flies” (0.200), “time” (0.100)."
    assert lit(page) == [0]
    row = page.locator('[data-k="r0"]').bounding_box()
    assert same_place(frame(page), row)
    page.locator('[data-k="q1"]').hover()
    assert said(page, "“gern”") == "“gern” looks most at “flies” (0.375), “like” (0.250), “an” (0.250)."
    assert lit(page) == [1]
    assert page.locator('[data-k="q1"]').bounding_box()["height"] >= 24
    clean(seen)


@everywhere
def test_pointing_at_a_cell_says_its_weight_too(show, width, scheme):
    seen = joined(show, width=width, scheme=scheme)
    page = seen.page
    cell = page.locator('[data-k="r1"] rect').nth(0)
    cell.hover()
    assert (
        said(page, "“gern” to")
        == "“gern” to “time” (0.125). “gern” looks most at “flies” (0.375), “like” (0.250), “an” (0.250)."
    )
    assert lit(page) == [1]
    assert same_place(frame(page), cell.bounding_box())
    assert cell.get_attribute("aria-label") == "“gern” to “time” (0.125)"
    clean(seen)


def test_it_starts_where_it_is_told_to_and_tab_goes_there(show):
    page = joined_from(show, 1).page
    assert lit(page) == [1]
    assert page.locator(".say").text_content().startswith("“gern” looks most at “flies”")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "query gern"


def test_the_keyboard_walks_from_word_to_word_and_into_the_row(show):
    seen = joined(show)
    page = seen.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "query fliegt"
    said(page, "“fliegt” looks most at “like” (0.700)")
    page.keyboard.press("ArrowDown")
    said(page, "“gern” looks most")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    said(page, "“gern” to “flies” (0.375).")
    page.keyboard.press("ArrowUp")
    said(page, "“fliegt” to “flies” (0.200).")
    assert lit(page) == [0]
    for _ in range(9):  # the end of the row is the end
        page.keyboard.press("ArrowRight")
    said(page, "“fliegt” to “an” (0.000).")
    page.keyboard.press("Tab")  # one stop for the queries with their rows
    assert not page.evaluate("document.activeElement.closest('attention-view')")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Shift+Tab")  # and one for the keys
    said(page, "“time” gets most from “gern” (0.125), “fliegt” (0.100).")
    page.keyboard.press("ArrowDown")
    said(page, "“flies” gets most from “gern” (0.375), “fliegt” (0.200).")
    clean(seen)


@pytest.mark.parametrize("width", [390, 1000])
def test_a_tap_shows_a_word_and_a_cell(show, width):
    seen = joined(show, width=width, touch=True)
    page = seen.page
    page.locator('[data-k="q1"]').tap()
    said(page, "“gern” looks most")
    assert lit(page) == [1]
    page.locator('[data-k="r0"] rect').nth(2).tap()
    assert said(page, "“fliegt” to “like” (0.700).").endswith(
        "“fliegt” looks most at “like” (0.700), “flies” (0.200), “time” (0.100)."
    )
    assert lit(page) == [0]
    clean(seen)


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1000, "dark")])
def test_a_key_shows_which_queries_look_at_it(show, width, scheme):
    seen = joined(show, width=width, scheme=scheme, touch=True)
    page = seen.page
    box = page.locator('[data-k="k2"]').bounding_box()
    assert min(box["width"], box["height"]) >= 24
    page.locator('[data-k="k2"]').tap()
    assert said(page, "“like” gets") == "“like” gets most from “fliegt” (0.700), “gern” (0.250)."
    bright = page.locator('[data-k^="l"] path[opacity="1"]').evaluate_all("list => list.map(n => n.getAttribute('d'))")
    assert [re.search(r" ([\d.]+)$", line)[1] for line in bright] == ["90", "90"]  # the middle of the third key
    assert lit(page) == [0, 1]
    cells = [page.locator(f'[data-k="r{i}"] rect').nth(2).bounding_box() for i in (0, 1)]
    both = {**cells[0], "height": cells[0]["height"] + cells[1]["height"]}
    assert same_place(frame(page), both)
    marked = '[role=button] > rect[fill-opacity="0.4"]'
    assert page.locator(marked).evaluate_all("list => list.map(n => n.parentNode.dataset.k)") == ["k2"]
    page.locator('[data-k="q1"]').tap()
    said(page, "“gern” looks most")
    assert lit(page) == [1]
    assert page.locator('[data-k="l1"] path[opacity="0.08"]').count() == 0
    assert page.locator(marked).evaluate_all("list => list.map(n => n.parentNode.dataset.k)") == ["q1"]
    clean(seen)


def test_what_it_says_of_forty_words_is_what_torch_finds(show):
    weights = torch.softmax(3 * torch.randn(40, 40, generator=torch.Generator().manual_seed(0)), -1)
    seen = show(alignment(weights), width=390)
    page = seen.page
    for i in (0, 17, 39):
        page.locator(f'[data-k="q{i}"]').hover()
        top = weights[i].topk(3)
        expected = ", ".join(
            f"“k{j}” ({w:.3f})" for j, w in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        )
        assert said(page, f"“q{i}” looks") == f"“q{i}” looks most at {expected}."
    clean(seen)


def test_one_token_has_one_line(show):
    seen = show(alignment(torch.ones(1, 1), ["je"], ["I"]), width=390, touch=True)
    seen.page.locator('[data-k="q0"]').tap()
    assert re.fullmatch(r"“je” looks most at “I” \(1\.000\)\.", said(seen.page, "“je”"))
    clean(seen)
