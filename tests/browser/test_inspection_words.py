"""The view of a word in its contexts, in a browser without a network: by mouse, keyboard and touch."""

import pytest
import torch
from driving import clean, drag_by_touch, everywhere, said

from course_kit.viz import contextual_words

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

SENTENCES = [f"sentence {letter}" for letter in "abcde"]


def view():
    torch.manual_seed(19)
    return contextual_words(torch.randn(4, 5, 7), SENTENCES, list("xyxyx"), word="it")


def is_layer(page, number):
    """Every point is where the view's data have it, and the layer's figures are said."""
    data = view().data
    said(page, data["told"][number])
    page.wait_for_timeout(450)  # points move for a moment
    shown = page.locator('[data-k="points"] > g').evaluate_all(
        "nodes => nodes.map(n => new DOMMatrix(getComputedStyle(n).transform)).map(m => [m.e, m.f])"
    )
    assert torch.tensor(shown) == pytest.approx(torch.tensor(data["drawn"][number]), abs=0.06)
    leaders = page.locator(".leader").evaluate_all(
        "nodes => nodes.map(n => n.getAttribute('d').match(/[\\d.]+/g).map(Number))"
    )
    assert torch.tensor(leaders)[:, 2:] == pytest.approx(torch.tensor(data["places"][number]), abs=0.06)
    assert page.locator('[data-k="layer-value"]').text_content() == str(number)


def nearest(page, layer, i):
    data = view().data
    j, cosine = data["near"][layer][i]
    return f"Nearest in layer {layer}: {j + 1}, {SENTENCES[j]} ({'xyxyx'[j]}), cosine {cosine}."


@everywhere
def test_layers_and_points_are_chosen_with_the_mouse(show, width, scheme):
    seen = show(view(), width=width, scheme=scheme)
    page = seen.page
    page.locator('[data-k="layer"]').fill("1")
    is_layer(page, 1)
    page.locator('[data-k="points"] > g').nth(3).click(force=True)
    assert nearest(page, 1, 3) in said(page, "4: sentence d (y). ")
    assert page.locator(".point.chosen").get_attribute("aria-label") == "4: sentence d"
    clean(seen)


def test_layers_and_points_are_chosen_with_the_keyboard(show):
    seen = show(view())
    page = seen.page
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    is_layer(page, 1)
    page.keyboard.press("End")
    is_layer(page, 3)
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert nearest(page, 3, 2) in said(page, "3: sentence c (x). ")
    clean(seen)


def test_a_point_is_tapped_and_the_slider_moved_by_a_finger(show):
    seen = show(view(), width=390, touch=True)
    page = seen.page
    page.locator('[data-k="points"] > g').nth(0).tap(force=True)
    assert nearest(page, 0, 0) in said(page, "1: sentence a (x). ")
    box = page.locator('[data-k="layer"]').bounding_box()
    drag_by_touch(page, (box["x"] + 8, box["y"] + box["height"] / 2), (box["width"] - 4, 0))
    is_layer(page, 3)
    clean(seen)


@pytest.mark.parametrize("layer", ["0", "1"])
def test_every_point_is_seen_and_tapped_where_several_coincide(show, layer):
    vectors = torch.randn(2, 12, 7)
    vectors[0, :8] = vectors[0, 0]
    seen = show(contextual_words(vectors, word="it"), width=390, touch=True)
    page = seen.page
    page.locator('[data-k="layer"]').fill(layer)
    page.wait_for_timeout(450)
    for i, point in enumerate(page.locator('[data-k="points"] > g').all()):
        box = point.bounding_box()
        assert min(box["width"], box["height"]) >= 24
        page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        said(page, f"{i + 1}: sentence {i}")
    numbers = page.locator(".point text").evaluate_all(
        "nodes => nodes.map(n => 12 * n.ownerSVGElement.getScreenCTM().a)"
    )
    assert min(numbers) >= 10
    clean(seen)
