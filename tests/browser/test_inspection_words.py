"""The view of a word in its contexts, in a browser without a network: by mouse, keyboard and touch."""

import pytest
import torch
from driving import choose, clean, drag_by_touch, large_enough, said
from hands import layouts

from course_kit.viz import contextual_words

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

SENTENCES = [f"sentence {letter}" for letter in "abcde"]


@pytest.fixture
def view():
    return contextual_words(torch.randn(4, 5, 7), SENTENCES, list("xyxyx"), word="it")


def is_layer(page, data, number):
    """Every point is where the view's data have it, and the layer's figures are said."""
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


def point_is_told(page, data, layer, i):
    j, cosine = data["near"][layer][i]
    said(
        page,
        f"{i + 1}: {SENTENCES[i]} ({'xyxyx'[i]}). "
        f"Nearest in layer {layer}: {j + 1}, {SENTENCES[j]} ({'xyxyx'[j]}), cosine {cosine}.",
    )
    assert page.locator(".point.chosen").get_attribute("aria-label") == f"{i + 1}: {SENTENCES[i]}"


@layouts
def test_layers_and_points_are_chosen_by_mouse_and_finger(show, view, width, scheme, touch):
    seen = show(view, width=width, scheme=scheme, touch=touch)
    page = seen.page
    points = page.locator('[data-k="points"] > g')
    choose(points.nth(0), touch)
    point_is_told(page, view.data, 0, 0)
    if touch:
        box = page.locator('[data-k="layer"]').bounding_box()
        drag_by_touch(page, (box["x"] + 8, box["y"] + box["height"] / 2), (box["width"] - 4, 0))
    else:
        page.locator('[data-k="layer"]').fill("3")
    is_layer(page, view.data, 3)
    choose(points.nth(3), touch)
    point_is_told(page, view.data, 3, 3)
    clean(seen)


def test_every_point_is_seen_and_tapped_where_several_coincide(show):
    vectors = torch.randn(2, 12, 7)
    vectors[0, :8] = vectors[0, 0]
    seen = show(contextual_words(vectors, word="it"), width=390, touch=True)
    page = seen.page
    for layer in "01":
        page.locator('[data-k="layer"]').fill(layer)
        page.wait_for_timeout(450)
        for i, point in enumerate(page.locator('[data-k="points"] > g').all()):
            assert large_enough(point)
            point.tap()
            said(page, f"{i + 1}: sentence {i}")
    sizes = page.locator(".point text").evaluate_all("nodes => nodes.map(n => 12 * n.ownerSVGElement.getScreenCTM().a)")
    assert min(sizes) >= 10
    clean(seen)
