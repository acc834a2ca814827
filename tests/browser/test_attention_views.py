"""The views of the chapter `attention`, in a browser without a network: by mouse, keyboard and touch."""

import re

import pytest
import torch
from driving import drag_by_touch, everywhere, large_enough, middle, part, press, said
from shown import as_shown, number_in

from course_kit.viz import alignment, query_plane

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

KEY = torch.tensor([[2.0, 0.5], [-1.0, 1.5], [1.0, -2.0]])
VALUE = torch.tensor([1.0, 3.0, -2.0])
NAMES = ["sun", "rain", "wind"]
WEIGHTS = torch.tensor([[0.1, 0.2, 0.7, 0.0], [0.125, 0.375, 0.25, 0.25]])


# query_plane ----------------------------------------------------------------------------------------------------------


def plane(page_of, **settings):
    view = query_plane(KEY, VALUE, torch.tensor([0.5, 0.25]), labels=NAMES)
    page = page_of(view, **settings)
    return page, part(page, "query"), view.data["scale"]


def shown(page):
    names = ("weight0", "weight1", "weight2", "output")
    return [number_in(part(page, name).text_content()) for name in names]


def agrees(page, scale):
    """What is shown is what torch computes where the disc stands."""
    disc = page.locator('[data-k="query"] .query')
    x, y = (float(disc.get_attribute(name)) for name in ("cx", "cy"))
    query = torch.tensor([(x - 160) / scale, (160 - y) / scale], dtype=torch.float64)
    weights = torch.softmax(KEY.double() @ query, 0)
    numbers = [*weights.tolist(), (weights @ VALUE.double()).item()]
    assert shown(page) == pytest.approx(numbers, abs=5.1e-4)
    return numbers


@everywhere
def test_a_query_is_dragged_with_the_mouse(page_of, width, scheme):
    page, query, scale = plane(page_of, width=width, scheme=scheme)
    before, (x, y) = shown(page), middle(query)
    assert large_enough(query)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 40, y - 55, steps=4)
    page.mouse.up()
    assert middle(query) == pytest.approx((x - 40, y - 55), abs=1)  # it stays under the pointer
    assert shown(page) != before
    agrees(page, scale)
    page.mouse.move(x, y)  # released: it does not follow
    assert middle(query) == pytest.approx((x - 40, y - 55), abs=1)


def test_a_finger_that_misses_the_disc_by_a_little_drags_the_query_and_not_the_page(page_of):
    page, query, scale = plane(page_of, width=320, height=420, touch=True)  # the picture is scaled down
    assert page.evaluate("document.documentElement.scrollHeight - innerHeight") > 60  # there is room to pan
    query.scroll_into_view_if_needed()
    top, (x, y) = page.evaluate("scrollY"), middle(query)
    drag_by_touch(page, (x + 18, y), (-40, -50))
    assert middle(query) == pytest.approx((x - 40, y - 50), abs=1.5)
    assert page.evaluate("scrollY") == top
    agrees(page, scale)


def test_a_query_walks_with_the_arrow_keys_says_where_it_is_and_stays_in_the_plane(page_of):
    page, query, scale = plane(page_of)
    press(page, "Tab", "Tab", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowUp")  # the button, the query
    at = f"{as_shown(0.5 - 12 / scale, 2)}, {as_shown(0.25 + 4 / scale, 2)}"
    assert query.get_attribute("aria-valuetext") == f"query at {at}"
    *weights, output = agrees(page, scale)
    best = NAMES[weights.index(max(weights))]
    assert said(page, at) == (
        f"With the query at {at}, “{best}” gets {max(weights):.3f}, and the output is {as_shown(output)}."
    )
    press(page, *["ArrowRight"] * 60)
    assert page.locator('[data-k="query"] .query').get_attribute("cx") == "310"


def test_hard_gives_all_to_the_best_key(page_of):
    page, _, scale = plane(page_of, width=390, touch=True)
    hard = part(page, "hard")
    hard.tap()
    assert hard.get_attribute("aria-pressed") == "true"
    assert shown(page) == [1, 0, 0, 1]
    assert float(part(page, "bar0").get_attribute("width")) == 100
    hard.tap()
    assert hard.get_attribute("aria-pressed") == "false"
    agrees(page, scale)


# alignment ------------------------------------------------------------------------------------------------------------

FLIEGT = "“fliegt” looks most at “like” (0.700), “flies” (0.200), “time” (0.100)."
GERN = "“gern” looks most at “flies” (0.375), “like” (0.250), “an” (0.250)."


def joined(page_of, start=None, **settings):
    return page_of(alignment(WEIGHTS, ["fliegt", "gern"], ["time", "flies", "like", "an"], start=start), **settings)


def cell(page, i, j):
    return page.locator(f'[data-k="r{i}"] rect').nth(j)


def lit(page):
    """Which queries' lines are drawn in full."""
    return [i for i in range(2) if part(page, f"l{i}").get_attribute("opacity") == "1"]


def framed(page, *nodes):
    """Whether the frame is around these nodes, one below the other."""
    frame, boxes = part(page, "frame").bounding_box(), [node.bounding_box() for node in nodes]
    wanted = {**boxes[0], "height": sum(box["height"] for box in boxes)}
    return all(abs(frame[side] - wanted[side]) < 2.5 for side in wanted)


@everywhere
def test_pointing_at_a_word_shows_its_lines_and_its_row_and_at_a_cell_its_weight_too(page_of, width, scheme):
    page = joined(page_of, width=width, scheme=scheme)
    for i, words in ((0, FLIEGT), (1, GERN), (0, FLIEGT)):
        if page.locator(".say").text_content() != words:  # the view starts with the first word chosen
            part(page, f"q{i}").hover()
        assert said(page, words) == words
        assert lit(page) == [i]
        assert framed(page, part(page, f"r{i}"))
    assert part(page, "q1").bounding_box()["height"] >= 24
    cell(page, 1, 0).hover()
    assert said(page, "“gern” to") == f"“gern” to “time” (0.125). {GERN}"
    assert lit(page) == [1]
    assert framed(page, cell(page, 1, 0))
    assert cell(page, 1, 0).get_attribute("aria-label") == "“gern” to “time” (0.125)"


@pytest.mark.parametrize("start", [0, 1])
def test_tab_goes_to_the_word_that_is_chosen_first(page_of, start):
    page = joined(page_of, start=start)
    assert lit(page) == [start]
    assert page.locator(".say").text_content() == [FLIEGT, GERN][start]
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.ariaLabel") == ["query fliegt", "query gern"][start]


def test_the_keyboard_walks_from_word_to_word_and_into_the_row(page_of):
    page = joined(page_of)
    for keys, words in (
        (["Tab"], "“fliegt” looks most at “like” (0.700)"),
        (["ArrowDown"], "“gern” looks most"),
        (["ArrowRight"] * 2, "“gern” to “flies” (0.375)."),
        (["ArrowUp"], "“fliegt” to “flies” (0.200)."),
        (["ArrowRight"] * 9, "“fliegt” to “an” (0.000)."),  # the end of the row is the end
        (["Tab", "Shift+Tab", "Shift+Tab"], "“time” gets most from “gern” (0.125), “fliegt” (0.100)."),  # one stop each
        (["ArrowDown"], "“flies” gets most from “gern” (0.375), “fliegt” (0.200)."),
    ):
        press(page, *keys)
        said(page, words)


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1000, "dark")])
def test_a_tap_shows_a_word_or_a_cell_and_a_key_shows_which_queries_look_at_it(page_of, width, scheme):
    page = joined(page_of, width=width, scheme=scheme, touch=True)
    cell(page, 0, 2).tap()
    assert said(page, "“fliegt” to “like” (0.700).").endswith(FLIEGT)
    assert large_enough(part(page, "k2"))
    part(page, "k2").tap()
    assert said(page, "“like” gets") == "“like” gets most from “fliegt” (0.700), “gern” (0.250)."
    bright = page.locator('[data-k^="l"] path[opacity="1"]').evaluate_all("list => list.map(n => n.getAttribute('d'))")
    assert [re.search(r" ([\d.]+)$", line)[1] for line in bright] == ["90", "90"]  # the middle of the third key
    assert lit(page) == [0, 1]
    assert framed(page, cell(page, 0, 2), cell(page, 1, 2))
    chosen = page.locator('[role=button] > rect[fill-opacity="0.4"] >> xpath=..')
    assert chosen.evaluate_all("list => list.map(n => n.dataset.k)") == ["k2"]
    part(page, "q1").tap()
    assert said(page, "“gern” looks most") == GERN
    assert lit(page) == [1]
    assert page.locator('[data-k="l1"] path[opacity="0.08"]').count() == 0
    assert chosen.evaluate_all("list => list.map(n => n.dataset.k)") == ["q1"]


def test_what_it_says_of_forty_words_is_what_torch_finds(page_of):
    weights = torch.softmax(3 * torch.randn(40, 40), -1)
    page = page_of(alignment(weights), width=390)
    for i in (0, 17, 39):
        part(page, f"q{i}").hover()
        top = zip(weights[i].topk(3).indices.tolist(), weights[i].topk(3).values.tolist(), strict=True)
        expected = ", ".join(f"“k{j}” ({w:.3f})" for j, w in top)
        assert said(page, f"“q{i}” looks") == f"“q{i}” looks most at {expected}."
