"""The table of positions and the rotary pair, driven as readers drive them: mouse, keyboard, touch."""

import re

import pytest
import torch
from driving import clean, drag_by_touch, said

from course_lib import apply_rotary, sinusoidal_encoding
from course_lib.viz import rotary_pair, sinusoid_probe

pytestmark = [pytest.mark.browser, pytest.mark.slow]

TABLE = sinusoidal_encoding(24, 10)
QUERY, KEY = torch.tensor([1.0, 0.4]), torch.tensor([0.6, -0.9])


@pytest.mark.parametrize(("width", "scheme"), [(1000, "light"), (390, "dark")])
def test_a_cell_is_probed_by_keyboard(show, width, scheme):
    seen = show(sinusoid_probe(TABLE, position=2, column=3), width=width, scheme=scheme)
    page = seen.page
    page.keyboard.press("Tab")
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    text = said(page, "Position 7, column 4")
    assert f"sin(7 / 10000^(4/10)) = sin({7 / 10000**0.4:.3f}) = {TABLE[7, 4]:.3f}." in text
    assert "The table has" not in text
    clean(seen)


def test_every_shown_number_is_the_tensors(show):
    page = show(sinusoid_probe(TABLE)).page
    for position in (0, 5, 23):
        page.locator("[data-k=position]").fill(str(position))
        for column in (0, 1, 8, 9):
            page.locator("[data-k=column]").fill(str(column))
            text = said(page, f"Position {position}, column {column}:")
            assert text.split(" = ")[-1].strip() == f"{TABLE[position, column]:.3f}."


@pytest.mark.parametrize("touch", [False, True])
def test_a_cell_is_probed_by_mouse_and_touch(show, touch):
    seen = show(sinusoid_probe(TABLE), width=390, touch=touch)
    box = seen.page.locator("[data-k=cells]").bounding_box()
    x, y = box["x"] + box["width"] * 6.5 / 10, box["y"] + box["height"] * 20.5 / 24
    seen.page.touchscreen.tap(x, y) if touch else seen.page.mouse.click(x, y)
    assert f"{TABLE[20, 6]:.3f}." in said(seen.page, "Position 20, column 6")
    assert seen.page.locator("[data-k=position-value]").text_content() == "20"
    clean(seen)


def test_a_finger_goes_over_the_table_and_the_page_stays(show):
    seen = show(sinusoid_probe(TABLE), width=390, height=420, touch=True)
    page = seen.page
    assert page.evaluate("document.documentElement.scrollHeight - innerHeight") > 60  # there is room to pan
    box = page.locator("[data-k=cells]").bounding_box()
    at = [
        (box["x"] + box["width"] * (c + 0.5) / 10, box["y"] + box["height"] * (p + 0.5) / 24)
        for p, c in ((20, 6), (6, 2))
    ]
    drag_by_touch(page, at[0], (at[1][0] - at[0][0], at[1][1] - at[0][1]))
    assert page.evaluate("scrollY") == 0
    assert f"{TABLE[6, 2]:.3f}." in said(page, "Position 6, column 2")
    clean(seen)


def test_clock_hands_and_curve_follow_the_position(show):
    page = show(sinusoid_probe(TABLE, position=0)).page
    before = page.locator("[data-k=curve]").get_attribute("d")
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


def score(positions):
    turned = apply_rotary(torch.stack([QUERY, KEY]), torch.tensor(positions), base=1.0)
    return f"{(turned[0] @ turned[1]).item():.3f}"


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


def test_at_the_last_position_the_distance_is_kept(show):
    page = show(rotary_pair(QUERY, KEY, positions=(23, 3))).page
    page.locator("[data-k=both]").focus()
    page.keyboard.press("Enter")
    said(page, "Query at position 24, key at 4")
    page.keyboard.press("Enter")
    said(page, "The last position is reached.")
    assert page.locator("[data-k=n]").input_value() == "4"
