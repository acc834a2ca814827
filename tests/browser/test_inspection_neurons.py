"""The view of one score, in a browser without a network: by mouse, keyboard and touch."""

import math
import re

import pytest
import torch
from driving import choose, clean, large_enough, said
from hands import assert_drawn_as, layouts
from shown import as_shown, number_in

from course_kit.viz import neuron_view
from course_lib import causal_mask

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

KEYS = ["the", "cat", "sat", "on", "it"]


@pytest.fixture
def given():
    return 2 * torch.randn(2, 5, 7)


def bars(page, what):
    """Height of the bars of a row from left to right, in parts of the highest."""
    found = {}
    for d in page.locator(f'[data-k^="bars-{what}-"]').evaluate_all("nodes => nodes.map(n => n.getAttribute('d'))"):
        found |= {float(x): -float(h) / 22 for x, h in re.findall(r"M([\d.]+) \d+v(-?[\d.]+)", d)}
    return [found[x] for x in sorted(found)]


@layouts
def test_keys_queries_and_features_are_chosen_by_mouse_and_finger(show, given, width, scheme, touch):
    seen = show(neuron_view(*given, KEYS), width=width, scheme=scheme, touch=touch)
    page = seen.page
    rows = page.locator("[data-k=rows] > g")
    for chosen in (3, 1):  # at first, its best key is drawn
        view = neuron_view(*given, KEYS, chosen=chosen)
        page.locator('[data-k="query"]').select_option(str(chosen))
        assert not touch or large_enough(rows.nth(view.data["key"]))
        choose(rows.nth(view.data["key"]), touch)
        assert_drawn_as(page, view)
    if not touch:
        rows.nth(1 - min(1, view.data["key"])).hover()
        assert_drawn_as(page, view)  # passing over a row chooses nothing
    query, key = given[0][1], given[1][view.data["key"]]
    choose(page.locator('[data-k="sort"]'), touch)
    order = (query * key).argsort(descending=True)
    for what, values in (("query", query), ("key", key), ("product", query * key)):
        assert bars(page, what) == pytest.approx((values[order] / values.abs().max()).tolist(), abs=0.001)
    page.locator('[data-k="feature"]').fill("2")
    spoken = [number_in(n) for n in re.findall(r"−?\d+\.\d{3}", said(page, "Feature 2: "))]
    factors = [query[2].item(), key[2].item(), 1 / math.sqrt(7)]
    assert spoken[:4] == pytest.approx([*factors, math.prod(factors)], abs=5.01e-4)
    clean(seen)


def test_keys_are_walked_with_the_keyboard(show, given):
    seen = show(neuron_view(*given, KEYS, chosen=2, mask=causal_mask(5)))
    page = seen.page
    scores = given[0][2] @ given[1].T / math.sqrt(7)
    weights = [f"weight {x:.3f}" for x in scores[:3].softmax(-1)] + ["masked"] * 2
    for _ in range(3):  # query, sort, keys
        page.keyboard.press("Tab")
    for j in range(1, 5):
        page.keyboard.press("ArrowDown")
        said(page, f"“sat” and “{KEYS[j]}”: score {as_shown(scores[j])}, {weights[j]}.")
        assert page.locator(".row.chosen .key").text_content() == KEYS[j]
        told = page.locator("[data-k=told]").text_content()
        assert told.startswith(f"The features that change the score of “{KEYS[j]}” most: ")
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    said(page, "Feature 6: ")
    clean(seen)


def test_one_query_has_no_list(show, given):
    view = neuron_view(given[0][1], given[1], KEYS, queries=["cat"])
    seen = show(view)
    assert seen.page.locator('[data-k="query"]').count() == 0
    for row in (0, view.data["key"]):
        seen.page.locator("[data-k=rows] > g").nth(row).click()
    assert_drawn_as(seen.page, view)
    clean(seen)
