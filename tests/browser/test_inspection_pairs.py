"""The view of two sentences, in a browser without a network: by mouse, keyboard and touch."""

import re

import pytest
import torch
from driving import clean, everywhere, said

from course_kit.viz import pair_view

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

TOKENS = ["[CLS]", "the", "cat", "[SEP]", "it", "ran", "[SEP]"]


def given():
    torch.manual_seed(17)
    return (2 * torch.randn(2, 3, 7, 7)).softmax(-1)


def is_map(page, weights):
    """Every cell says and shows the weight of torch, and the shares are its sums."""
    cells = page.locator('[data-k="map"] rect').evaluate_all(
        "nodes => nodes.map(n => [n.getAttribute('aria-label'), +n.getAttribute('fill-opacity')])"
    )
    exact = weights.flatten().double()
    assert [label.split()[-1] for label, _ in cells] == [f"{x:.3f}" for x in exact.tolist()]
    assert [shade**2 for _, shade in cells] == pytest.approx(exact.tolist(), abs=3e-4)
    shown = [float(x) for x in page.locator('[data-k^="share"]').all_text_contents()]
    parts = [[1, 2], [4, 5], [0, 3, 6]]
    expected = [weights[queries][:, keys].sum(-1).mean() for queries in parts[:2] for keys in parts]
    assert shown == pytest.approx([x.item() for x in expected], abs=5.01e-4)
    bars = page.locator('[data-k^="bar"]').evaluate_all("nodes => nodes.map(n => n.getAttribute('width') / 180)")
    assert bars == pytest.approx(shown, abs=6e-4)
    best = max((weights[i, j].item(), i, j) for a, b in ((0, 1), (1, 0)) for i in parts[a] for j in parts[b])
    link = page.locator('[data-k="links"] li').first.text_content()
    assert re.findall(r"“(\w+)”", link) == [TOKENS[best[1]], TOKENS[best[2]]]
    assert link.endswith(f"{best[0]:.3f}")


def cell(page, i, j):
    return page.locator('[data-k="map"] rect').nth(7 * i + j)


@everywhere
def test_heads_are_chosen_with_the_mouse(show, width, scheme):
    weights = given()
    seen = show(pair_view(weights, TOKENS), width=width, scheme=scheme)
    page = seen.page
    for value, expected in (("5", weights[1, 1]), ("0", weights.flatten(0, 1).mean(0)), ("1", weights[0, 0])):
        page.locator('[data-k="head"]').select_option(value)
        is_map(page, expected)
    said(page, "In layer 1, head 1, words of A put")
    cell(page, 2, 4).hover()
    assert said(page, "“cat” (A) → “it” (B)").endswith(f"{weights[0, 0, 2, 4]:.3f}.")
    assert float(cell(page, 2, 1).evaluate("n => getComputedStyle(n).opacity")) == 1
    page.locator('[data-k="across"]').click()
    assert float(cell(page, 2, 1).evaluate("n => getComputedStyle(n).opacity")) < 0.2
    assert float(cell(page, 2, 4).evaluate("n => getComputedStyle(n).opacity")) == 1
    page.locator('[data-k="across"]').click()
    assert float(cell(page, 2, 1).evaluate("n => getComputedStyle(n).opacity")) == 1
    clean(seen)


def test_the_map_is_walked_with_the_keyboard(show):
    weights = given()
    seen = show(pair_view(weights, TOKENS, layer=1, head=2))
    page = seen.page
    is_map(page, weights[1, 2])
    for _ in range(3):  # head, across, map
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert said(page, "“the” (A) → “cat” (A)").endswith(f"{weights[1, 2, 1, 2]:.3f}.")
    assert page.evaluate("getComputedStyle(document.activeElement).strokeWidth") == "4px"
    clean(seen)


def test_cells_are_tapped(show):
    weights = given()
    seen = show(pair_view(weights, TOKENS, layer=0, head=1), width=390, touch=True)
    page = seen.page
    box = cell(page, 5, 2).bounding_box()
    assert min(box["width"], box["height"]) >= 24
    cell(page, 5, 2).tap()
    assert said(page, "“ran” (B) → “cat” (A)").endswith(f"{weights[0, 1, 5, 2]:.3f}.")
    page.locator('[data-k="across"]').tap()
    assert page.locator('[data-k="across"]').get_attribute("aria-pressed") == "true"
    clean(seen)


def test_the_strongest_links_wait_until_a_cell_is_chosen(show):
    page = show(pair_view(given(), TOKENS)).page
    links = page.locator('[data-k="links"]')
    assert not links.is_visible()
    page.locator('[data-k="head"]').select_option("1")
    assert not links.is_visible()
    cell(page, 2, 4).hover()
    said(page, "“cat” (A) → “it” (B)")
    assert links.is_visible()
    page.locator("[data-k=reset]").click()
    assert not links.is_visible()


def test_a_long_pair_has_cells_for_fingers_and_is_moved_sideways_on_a_phone(show):
    tokens = ["[CLS]", *"abcdef", "[SEP]", *"ghijkl", "[SEP]"]
    torch.manual_seed(5)
    weights = torch.randn(1, 1, 15, 15).softmax(-1)
    seen = show(pair_view(weights, tokens), width=390, touch=True)
    box = seen.page.locator('[data-k="map"] rect').nth(20).bounding_box()
    assert min(box["width"], box["height"]) >= 24
    assert seen.page.locator(".wide").evaluate("n => n.scrollWidth > n.clientWidth")
    clean(seen)
    seen = show(pair_view(weights, tokens), width=1000)
    assert seen.page.locator(".wide").evaluate("n => n.scrollWidth == n.clientWidth")
