"""The table of positions and the rotary pair, driven as readers drive them: mouse, keyboard, touch."""

import math
import re

import pytest
import torch
from driving import clean, drag_by_touch, said
from shown import as_shown, number_in

from course_kit.viz import rotary_pair, sinusoid_probe
from course_lib import apply_rotary, sinusoidal_encoding

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

TABLE = sinusoidal_encoding(24, 10)
QUERY, KEY = torch.tensor([1.0, 0.4]), torch.tensor([0.6, -0.9])


@pytest.mark.parametrize(("width", "scheme"), [(1000, "light"), (390, "dark")])
def test_a_cell_is_probed_by_keyboard(show, width, scheme):
    seen = show(sinusoid_probe(TABLE, position=2, column=3), width=width, scheme=scheme)
    page = seen.page
    page.keyboard.press("Tab")
    for _ in range(7):
        page.keyboard.press("ArrowRight")
    for _ in range(4):  # three buttons, the column
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    text = said(page, "Position 7, column 4")
    assert f"sin(7 / 10000^(4/10)) = sin({7 / 10000**0.4:.3f}) = {as_shown(TABLE[7, 4])}." in text
    assert "The table has" not in text
    clean(seen)


def test_every_shown_number_is_the_tensors(show):
    page = show(sinusoid_probe(TABLE)).page
    for position in (0, 5, 23):
        page.locator("[data-k=position]").fill(str(position))
        for column in (0, 1, 8, 9):
            page.locator("[data-k=column]").fill(str(column))
            text = said(page, f"Position {position}, column {column}:")
            shown = text.removesuffix("Do the hands show it? Compare.").split(" = ")[-1]
            assert shown.strip() == as_shown(TABLE[position, column]) + "."


@pytest.mark.parametrize("touch", [False, True])
def test_a_cell_is_probed_by_mouse_and_touch(show, touch):
    seen = show(sinusoid_probe(TABLE), width=390, touch=touch)
    box = seen.page.locator("[data-k=cells]").bounding_box()
    x, y = box["x"] + box["width"] * 6.5 / 10, box["y"] + box["height"] * 20.5 / 24
    seen.page.touchscreen.tap(x, y) if touch else seen.page.mouse.click(x, y)
    assert as_shown(TABLE[20, 6]) + "." in said(seen.page, "Position 20, column 6")
    assert seen.page.locator("[data-k=position-value]").text_content() == "20"
    clean(seen)


def test_a_mouse_is_dragged_over_the_table(show):
    seen = show(sinusoid_probe(TABLE))
    page = seen.page
    box = page.locator("[data-k=cells]").bounding_box()
    places = [
        (box["x"] + box["width"] * (c + 0.5) / 10, box["y"] + box["height"] * (p + 0.5) / 24)
        for p, c in ((8, 6), (2, 2))
    ]
    page.mouse.move(*places[0])
    assert page.locator("[data-k=position-value]").text_content() == "0"  # no button is down
    page.mouse.down()
    page.mouse.move(*places[1])
    assert f"{TABLE[2, 2]:.3f}." in said(page, "Position 2, column 2")
    page.mouse.up()
    clean(seen)


def test_a_swipe_over_the_table_scrolls_the_page(show):
    seen = show(sinusoid_probe(TABLE), width=390, height=420, touch=True)
    page = seen.page
    assert page.evaluate("document.documentElement.scrollHeight - innerHeight") > 60  # there is room to pan
    page.locator("[data-k=cells]").evaluate("n => n.scrollIntoView({block: 'start'})")  # clear of the status line
    top = page.evaluate("scrollY")
    box = page.locator("[data-k=cells]").bounding_box()
    drag_by_touch(page, (box["x"] + 100, box["y"] + 200), (0, -80))
    assert page.evaluate("scrollY") - top > 80 - 25  # scrolling may continue after the touch
    assert page.locator("[data-k=position-value]").text_content() == "0"
    assert page.locator("[data-k=column-value]").text_content() == "0"
    clean(seen)


def test_clock_hands_and_curve_follow_the_position(show):
    page = show(sinusoid_probe(TABLE, position=5)).page
    before = page.locator("[data-k=curve]").get_attribute("d")
    page.locator("[data-k=follow]").click()
    page.locator("[data-k=position]").fill("9")
    said(page, "Position 9")
    turned = page.locator("[data-k=hand0]").get_attribute("transform")
    assert float(re.search(r"[\d.]+", turned)[0]) == pytest.approx(9 * 180 / torch.pi, rel=1e-4)
    points = page.locator("[data-k=curve]").get_attribute("d")
    assert points != before
    heights = [60 - float(p.split(",")[1]) for p in points[1:].split("L")]
    wanted = 50 * torch.cosine_similarity(TABLE[9], TABLE, dim=-1)
    assert heights == pytest.approx(wanted.tolist(), abs=1e-3)


def test_a_table_that_is_not_the_formulas_is_told(show):
    wrong = TABLE.clone()
    wrong[3, 1] = 0.25
    page = show(sinusoid_probe(wrong, position=2, column=1)).page
    page.locator("[data-k=position]").fill("3")
    assert "The table has 0.250 there." in said(page, "Position 3, column 1")


def turns(page, name):
    """How far the hands of this name are turned, in degrees, or "" where they are not seen."""
    nodes = page.locator(f"[data-k^={name}]")
    seen = nodes.evaluate_all("list => list.map(n => n.style.display != 'none' && n.getAttribute('transform') || '')")
    return [float(re.search(r"\((-?[\d.e-]+)", text)[1]) if text else "" for text in seen]


def hands(position):
    return pytest.approx([position * 10000 ** (-2 * i / 10) * 180 / math.pi for i in range(5)], rel=1e-4)


@pytest.mark.parametrize(("width", "scheme", "touch"), [(1000, "light", False), (390, "dark", True)])
def test_a_position_is_guessed_from_its_hands(show, width, scheme, touch):
    seen = show(sinusoid_probe(TABLE, position=6), width=width, scheme=scheme, touch=touch)
    page = seen.page
    slider, compare = page.locator("[data-k=position]"), page.locator("[data-k=compare]")
    slider.fill("2")
    assert said(page, "Position 2").endswith("Do the hands show it? Compare.")
    assert turns(page, "hand") == hands(6)  # they stay
    assert turns(page, "guess") == [""] * 5
    slider.fill("0")
    compare.tap() if touch else compare.click()
    # 6 radians are 16 degrees less than a turn; the second hand has turned by 54
    assert said(page, "Not position 0") == "Not position 0: hand 2 is 54° off, the most of all; hand 1 is 16° off."
    assert turns(page, "hand") == hands(6)
    assert turns(page, "guess") == hands(0)
    assert page.locator("[data-k^=off]").all_text_contents() == ["16°", "54°", "9°", "1°", "0°"]
    slider.fill("5")
    assert turns(page, "guess") == [""] * 5  # another question
    assert page.locator("[data-k^=off]").all_text_contents() == [""] * 5
    compare.tap() if touch else compare.click()
    assert said(page, "Not position 5") == "Not position 5: hand 1 is 57° off, the most of all."
    slider.fill("6")
    compare.tap() if touch else compare.click()
    assert said(page, "Yes") == "Yes, the hands show position 6."
    page.locator("[data-k=next]").click()
    said(page, "Do the hands show it?")
    assert turns(page, "hand") == hands((6 * 5 + 7) % 24)
    clean(seen)


def test_on_a_phone_the_hands_are_in_sight_with_their_button_and_the_verdict(show):
    page = show(sinusoid_probe(sinusoidal_encoding(32, 10), position=6), width=390, height=700, touch=True).page
    page.locator(".hint").scroll_into_view_if_needed()
    page.locator("[data-k=compare]").tap()
    said(page, "Not position 0")
    for part in ("[data-k=compare]", "[data-k=clock4]", "[data-k=off1]", ".say"):
        box = page.locator(part).bounding_box()
        assert 0 < box["y"] < box["y"] + box["height"] <= 700
    assert page.evaluate("scrollY") == 0


def test_the_hands_follow_once_that_is_chosen(show):
    seen = show(sinusoid_probe(TABLE, position=6))
    page = seen.page
    follow = page.locator("[data-k=follow]")
    follow.focus()
    page.keyboard.press("Enter")
    page.locator("[data-k=position]").fill("9")
    assert turns(page, "hand") == hands(9)
    assert follow.get_attribute("aria-pressed") == "true"
    assert "Compare" not in said(page, "Position 9, column 0")
    page.locator("[data-k=compare]").click()  # nothing is to be found
    assert turns(page, "guess") == [""] * 5
    page.locator("[data-k=next]").click()
    assert follow.get_attribute("aria-pressed") == "false"
    assert turns(page, "hand") == hands((9 * 5 + 7) % 24)
    clean(seen)


def score(positions):
    turned = apply_rotary(torch.stack([QUERY, KEY]), torch.tensor(positions), base=1.0)
    return as_shown((turned[0] @ turned[1]).item())


@pytest.mark.parametrize(("width", "scheme", "touch"), [(1000, "dark", False), (390, "light", True)])
def test_query_and_key_move_and_their_score_follows(show, width, scheme, touch):
    seen = show(rotary_pair(QUERY, KEY, angle=1.0, positions=(6, 2)), width=width, scheme=scheme, touch=touch)
    page = seen.page
    before = page.locator("[data-k=score]").text_content()
    assert before == score([6, 2])
    both = page.locator("[data-k=both]")
    both.tap() if touch else both.click()
    assert "difference 4" in said(page, "Query at position 7, key at 3")
    assert page.locator("[data-k=score]").text_content() == before
    page.locator("[data-k=m]").focus()
    page.keyboard.press("ArrowRight")
    said(page, "Query at position 8, key at 3")
    assert page.locator("[data-k=score]").text_content() == score([8, 3]) != before
    clean(seen)


def rotary(show, **settings):
    return show(rotary_pair(QUERY, KEY, angle=1.0, positions=(6, 2)), **settings)


def middle(page, name):
    box = page.locator(f"[data-k={name}-tip] circle").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def dragged(page, name, by):
    """The score after the turned arrow was moved by so many units of the picture, by PyTorch."""
    scale = 140 / max(QUERY.norm().item(), KEY.norm().item())
    at = {"query": 6, "key": 2}
    pair = {"query": QUERY, "key": KEY}
    turned = {n: apply_rotary(pair[n][None], torch.tensor([at[n]]), base=1.0)[0] for n in pair}
    turned[name] = turned[name] + torch.tensor([by[0], -by[1]]) / scale
    return (turned["query"] @ turned["key"]).item()


@pytest.mark.parametrize("name", ["query", "key"])
def test_an_arrow_is_dragged_with_the_mouse(show, name):
    seen = rotary(show)
    page = seen.page
    x, y = middle(page, name)
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 20, y + 10, steps=4)
    page.mouse.up()
    said(page, "Query at position 6, key at 2, difference 4: the score is")
    assert number_in(page.locator("[data-k=score]").text_content()) == pytest.approx(
        dragged(page, name, (-20, 10)), abs=2e-3
    )
    assert middle(page, name) == pytest.approx((x - 20, y + 10), abs=0.6)
    clean(seen)


def test_an_arrow_is_dragged_with_a_finger_and_the_page_stays(show):
    seen = rotary(show, width=390, height=500, touch=True)
    page = seen.page
    before = page.locator("[data-k=score]").text_content()
    page.evaluate("document.querySelector('.panels').scrollIntoView()")
    top = page.evaluate("scrollY")
    start = middle(page, "key")
    drag_by_touch(page, start, (0, 60))
    assert page.evaluate("scrollY") == top
    assert page.locator("[data-k=score]").text_content() != before
    assert middle(page, "key") == pytest.approx((start[0], start[1] + 60), abs=3)
    clean(seen)


def test_an_arrow_is_moved_with_the_keyboard_and_stays_in_the_picture(show):
    seen = rotary(show)
    page = seen.page
    tip = page.locator("[data-k=query-tip]")
    before = middle(page, "query")[1]
    tip.focus()
    page.keyboard.press("ArrowLeft")
    assert number_in(page.locator("[data-k=score]").text_content()) == pytest.approx(
        dragged(page, "query", (-4, 0)), abs=2e-3
    )
    for _ in range(80):
        page.keyboard.press("ArrowUp")
    box = page.locator(".panels svg").first.bounding_box()
    assert middle(page, "query")[1] >= box["y"]
    assert middle(page, "query")[1] < before - 20
    assert re.fullmatch(r"query −?\d+\.\d\d, −?\d+\.\d\d before the turn", tip.get_attribute("aria-valuetext"))
    clean(seen)


def test_at_the_last_position_the_distance_is_kept(show):
    page = show(rotary_pair(QUERY, KEY, positions=(23, 3))).page
    page.locator("[data-k=both]").focus()
    page.keyboard.press("Enter")
    said(page, "Query at position 24, key at 4")
    page.keyboard.press("Enter")
    said(page, "The last position is reached.")
    assert page.locator("[data-k=n]").input_value() == "4"
