"""The table of positions and the rotary pair, driven as readers drive them: mouse, keyboard, touch."""

import math
import re

import pytest
import torch
from driving import choose, drag_by_touch, middle, part, press, said
from shown import as_shown, number_in

from course_kit.viz import rotary_pair, sinusoid_probe
from course_lib import apply_rotary, sinusoidal_encoding

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

TABLE = sinusoidal_encoding(24, 10)
layouts = pytest.mark.parametrize(("width", "scheme", "touch"), [(1000, "light", False), (390, "dark", True)])


# sinusoid_probe -------------------------------------------------------------------------------------------------------


def probe(page_of, position=3, table=TABLE, **settings):
    return page_of(sinusoid_probe(table, position=position), **settings)


def place(page, position, column):
    """The middle of a cell of the table, on the screen."""
    box = part(page, "cells").bounding_box()
    return box["x"] + box["width"] * (column + 0.5) / 10, box["y"] + box["height"] * (position + 0.5) / 24


def test_every_shown_number_is_the_tensors_and_one_that_is_not_the_formulas_is_told(page_of):
    wrong = TABLE.clone()
    wrong[5, 1] = 0.25
    page = probe(page_of, table=wrong)
    for position in (0, 5, 23):
        part(page, "position").fill(str(position))
        for column in (0, 1, 8, 9):
            part(page, "column").fill(str(column))
            x = position / 10000 ** (column // 2 * 2 / 10)
            name = "cos" if column % 2 else "sin"
            told = "The table has 0.250 there. " if (position, column) == (5, 1) else ""
            assert said(page, f"Position {position}, column {column}:") == (
                f"Position {position}, column {column}: {name}({position} / 10000^({column // 2 * 2}/10)) = "
                f"{name}({x:.3f}) = {as_shown(TABLE[position, column])}. {told}Do the hands show it? Compare."
            )


def test_a_cell_is_probed_by_keyboard(page_of):
    page = probe(page_of)
    press(page, "Tab", *["ArrowRight"] * 7, *["Tab"] * 4, "ArrowRight")  # three buttons, the column
    said(page, "Position 7, column 1")


@pytest.mark.parametrize("touch", [False, True])
def test_a_cell_is_probed_by_mouse_and_touch(page_of, touch):
    page = probe(page_of, width=390, touch=touch)
    page.mouse.move(*place(page, 8, 6))
    assert part(page, "position-value").text_content() == "0"  # no button is down
    if touch:
        page.touchscreen.tap(*place(page, 20, 6))
    else:
        page.mouse.down()
        said(page, "Position")
        page.mouse.move(*place(page, 20, 6))
    assert as_shown(TABLE[20, 6]) + "." in said(page, "Position 20, column 6")
    assert part(page, "position-value").text_content() == "20"


def test_a_swipe_over_the_table_scrolls_the_page(page_of):
    page = probe(page_of, width=390, height=420, touch=True)
    assert page.evaluate("document.documentElement.scrollHeight - innerHeight") > 60  # there is room to pan
    part(page, "cells").evaluate("n => n.scrollIntoView({block: 'start'})")  # clear of the status line
    top, box = page.evaluate("scrollY"), part(page, "cells").bounding_box()
    drag_by_touch(page, (box["x"] + 100, box["y"] + 200), (0, -80))
    assert page.evaluate("scrollY") - top > 80 - 25  # scrolling may continue after the touch
    assert [part(page, f"{name}-value").text_content() for name in ("position", "column")] == ["0", "0"]


def turns(page, name):
    """How far the hands of this name are turned, in degrees, or "" where they are not seen."""
    seen = page.locator(f"[data-k^={name}]").evaluate_all(
        "list => list.map(n => n.style.display != 'none' && n.getAttribute('transform') || '')"
    )
    return [float(re.search(r"\((-?[\d.e-]+)", text)[1]) if text else "" for text in seen]


def hands(position):
    return pytest.approx([position * 10000 ** (-2 * i / 10) * 180 / math.pi for i in range(5)], rel=1e-4)


@layouts
def test_a_position_is_guessed_from_its_hands(page_of, width, scheme, touch):
    page = probe(page_of, 6, width=width, scheme=scheme, touch=touch)
    slider, compare = part(page, "position"), part(page, "compare")
    # 6 radians are 16 degrees less than a turn; the second hand has turned by 54
    for guess, verdict in (
        (0, "Not position 0: hand 2 is 54° off, the most of all; hand 1 is 16° off."),
        (5, "Not position 5: hand 1 is 57° off, the most of all."),
        (6, "Yes, the hands show position 6."),
    ):
        slider.fill(str(guess))
        assert said(page, f"Position {guess}").endswith("Do the hands show it? Compare.")
        assert turns(page, "hand") == hands(6)  # they stay
        assert turns(page, "guess") == [""] * 5  # another question
        assert page.locator("[data-k^=off]").all_text_contents() == [""] * 5
        choose(compare, touch)
        assert said(page, verdict) == verdict
        assert turns(page, "hand") == hands(6)
        assert turns(page, "guess") == hands(guess)
        if guess == 0:
            assert page.locator("[data-k^=off]").all_text_contents() == ["16°", "54°", "9°", "1°", "0°"]
    part(page, "next").click()
    said(page, "Do the hands show it?")
    assert turns(page, "hand") == hands((6 * 5 + 7) % 24)


def test_on_a_phone_the_hands_are_in_sight_with_their_button_and_the_verdict(page_of):
    page = probe(page_of, 6, sinusoidal_encoding(32, 10), width=390, height=700, touch=True)
    page.locator(".hint").scroll_into_view_if_needed()
    part(page, "compare").tap()
    said(page, "Not position 0")
    for which in ("[data-k=compare]", "[data-k=clock4]", "[data-k=off1]", ".say"):
        box = page.locator(which).bounding_box()
        assert 0 < box["y"] < box["y"] + box["height"] <= 700
    assert page.evaluate("scrollY") == 0


def test_hands_and_curve_follow_the_position_once_that_is_chosen(page_of):
    page = probe(page_of, 6)
    follow = part(page, "follow")
    follow.focus()
    page.keyboard.press("Enter")
    part(page, "position").fill("9")
    assert turns(page, "hand") == hands(9)
    heights = [60 - float(p.split(",")[1]) for p in part(page, "curve").get_attribute("d")[1:].split("L")]
    wanted = 50 * torch.cosine_similarity(TABLE[9], TABLE, dim=-1)
    assert heights == pytest.approx(wanted.tolist(), abs=1e-3)
    assert follow.get_attribute("aria-pressed") == "true"
    assert "Compare" not in said(page, "Position 9, column 0")
    part(page, "compare").click()  # nothing is to be found
    assert turns(page, "guess") == [""] * 5
    part(page, "next").click()
    assert follow.get_attribute("aria-pressed") == "false"
    assert turns(page, "hand") == hands((9 * 5 + 7) % 24)


# rotary_pair ----------------------------------------------------------------------------------------------------------

PAIR = {"query": torch.tensor([1.0, 0.4]), "key": torch.tensor([0.6, -0.9])}


def rotary(page_of, positions=(6, 2), **settings):
    return page_of(rotary_pair(*PAIR.values(), angle=1.0, positions=positions), **settings)


def score(positions, name="query", by=(0, 0)):
    """By PyTorch, after the turned arrow of this name was moved by so many units of the picture."""
    scale = 140 / max(pair.norm().item() for pair in PAIR.values())
    turned = apply_rotary(torch.stack([*PAIR.values()]), torch.tensor(positions), base=1.0)
    turned[int(name == "key")] += torch.tensor([by[0], -by[1]]) / scale
    return (turned[0] @ turned[1]).item()


def shown_score(page):
    return number_in(part(page, "score").text_content())


def tip(page, name):
    return part(page, f"{name}-tip").locator("circle")


@layouts
def test_query_and_key_move_and_their_score_follows_their_distance(page_of, width, scheme, touch):
    page = rotary(page_of, width=width, scheme=scheme, touch=touch)
    assert shown_score(page) == pytest.approx(score([6, 2]), abs=5.1e-4)
    choose(part(page, "both"), touch)
    assert "difference 4" in said(page, "Query at position 7, key at 3")
    assert shown_score(page) == pytest.approx(score([6, 2]), abs=5.1e-4)
    part(page, "m").focus()
    page.keyboard.press("ArrowRight")
    said(page, "Query at position 8, key at 3")
    assert shown_score(page) == pytest.approx(score([8, 3]), abs=5.1e-4)


@pytest.mark.parametrize("name", ["query", "key"])
@pytest.mark.parametrize("touch", [False, True])
def test_an_arrow_is_dragged_and_the_page_stays(page_of, name, touch):
    page = rotary(page_of, width=390, height=500 if touch else 900, touch=touch)
    page.evaluate("document.querySelector('.panels').scrollIntoView()")
    top, (x, y) = page.evaluate("scrollY"), middle(tip(page, name))
    unit = page.locator(".panels svg").first.evaluate("n => 320 / n.getBoundingClientRect().width")
    if touch:
        drag_by_touch(page, (x, y), (-20, 10))
    else:
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x - 20, y + 10, steps=4)
        page.mouse.up()
    said(page, "Query at position 6, key at 2, difference 4: the score is")
    assert page.evaluate("scrollY") == top
    assert middle(tip(page, name)) == pytest.approx(
        (x - 20, y + 10), abs=1.5 if touch else 0.6
    )  # touches: whole pixels
    assert shown_score(page) == pytest.approx(score([6, 2], name, (-20 * unit, 10 * unit)), abs=2e-2 if touch else 2e-3)


def test_an_arrow_is_moved_with_the_keyboard_and_stays_in_the_picture(page_of):
    page = rotary(page_of)
    query, before = part(page, "query-tip"), middle(tip(page, "query"))[1]
    query.focus()
    page.keyboard.press("ArrowLeft")
    assert shown_score(page) == pytest.approx(score([6, 2], "query", (-4, 0)), abs=2e-3)
    press(page, *["ArrowUp"] * 80)
    assert page.locator(".panels svg").first.bounding_box()["y"] <= middle(tip(page, "query"))[1] < before - 20
    assert re.fullmatch(r"query −?\d+\.\d\d, −?\d+\.\d\d before the turn", query.get_attribute("aria-valuetext"))


def test_at_the_last_position_the_distance_is_kept(page_of):
    page = rotary(page_of, positions=(23, 3))
    part(page, "both").focus()
    for words in ("Query at position 24, key at 4", "The last position is reached."):
        page.keyboard.press("Enter")
        said(page, words)
    assert part(page, "n").input_value() == "4"
