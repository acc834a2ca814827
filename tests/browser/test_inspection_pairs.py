"""The view of two sentences, in a browser without a network: by mouse, keyboard and touch."""

import re

import pytest
import torch
from driving import choose, clean, large_enough, said
from hands import assert_drawn_as, layouts

from course_kit.viz import pair_view

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

TOKENS = ["[CLS]", "the", "cat", "[SEP]", "it", "ran", "[SEP]"]


@pytest.fixture
def weights():
    return (2 * torch.randn(2, 3, 7, 7)).softmax(-1)


def weights_named(page):
    """The number in the name of every cell of the map."""
    labels = page.locator('[data-k="map"] rect').evaluate_all("list => list.map(n => n.getAttribute('aria-label'))")
    return [label.split()[-1] for label in labels]


def three(weights):
    return [f"{x:.3f}" for x in weights.flatten().tolist()]


def cell(page, i, j):
    return page.locator('[data-k="map"] rect').nth(7 * i + j)


def strength(page, i, j):
    return float(cell(page, i, j).evaluate("n => getComputedStyle(n).opacity"))


@layouts
def test_heads_and_cells_are_chosen_by_mouse_and_finger(show, weights, width, scheme, touch):
    seen = show(pair_view(weights, TOKENS), width=width, scheme=scheme, touch=touch)
    page = seen.page
    links = page.locator('[data-k="links"]')
    page.locator('[data-k="head"]').select_option("0")
    said(page, "On average over all heads, words of A put")
    assert weights_named(page) == three(weights.flatten(0, 1).mean(0))
    for layer, head in (1, 1), (0, 0):
        page.locator('[data-k="head"]').select_option(str(1 + 3 * layer + head))
        view = pair_view(weights, TOKENS, layer=layer, head=head)
        assert_drawn_as(page, view)
        assert weights_named(page) == three(weights[layer, head])
        assert page.locator('[data-k="links"] li').all_text_contents() == re.findall("<li>(.*?)</li>", view.body)
    assert not links.is_visible()  # they wait until a cell is chosen
    assert large_enough(cell(page, 2, 4))
    cell(page, 2, 4).tap() if touch else cell(page, 2, 4).hover()
    assert said(page, "“cat” (A) → “it” (B)").endswith(f"{weights[0, 0, 2, 4]:.3f}.")
    assert links.is_visible()
    for only_across in (True, False):
        choose(page.locator('[data-k="across"]'), touch)
        assert (strength(page, 2, 1) < 0.2) == only_across
        assert strength(page, 2, 4) == 1
    page.locator("[data-k=reset]").click()
    assert not links.is_visible()
    clean(seen)


def test_the_map_is_walked_with_the_keyboard(show, weights):
    seen = show(pair_view(weights, TOKENS, layer=1, head=2))
    page = seen.page
    for key in ["Tab"] * 3 + ["ArrowDown", "ArrowRight", "ArrowRight"]:  # head, across, map
        page.keyboard.press(key)
    assert said(page, "“the” (A) → “cat” (A)").endswith(f"{weights[1, 2, 1, 2]:.3f}.")
    assert page.evaluate("getComputedStyle(document.activeElement).strokeWidth") == "4px"
    clean(seen)


def test_a_long_pair_has_cells_for_fingers_and_is_moved_sideways_on_a_phone(show):
    tokens = ["[CLS]", *"abcdef", "[SEP]", *"ghijkl", "[SEP]"]
    for width in (390, 1000):
        seen = show(pair_view(torch.randn(1, 1, 15, 15).softmax(-1), tokens), width=width, touch=width == 390)
        assert large_enough(seen.page.locator('[data-k="map"] rect').nth(20))
        assert seen.page.locator(".wide").evaluate("n => n.scrollWidth > n.clientWidth") == (width == 390)
        clean(seen)
