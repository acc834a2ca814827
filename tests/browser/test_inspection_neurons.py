"""The view of one score, in a browser without a network: by mouse, keyboard and touch."""

import math
import re

import pytest
import torch
from driving import clean, everywhere, said
from shown import number_in

from course_kit.viz import neuron_view
from course_lib import causal_mask

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

KEYS = ["the", "cat", "sat", "on", "it"]


def given():
    torch.manual_seed(13)
    query, keys = 2 * torch.randn(2, 5, 7)
    return query, keys


def numbers_in(text):
    return [number_in(n) for n in re.findall(r"−?\d+\.\d{3}", text)]


def is_score_of(page, i, j, mask=None):
    """Scores, weights, bars and words are those of torch for query i and key j."""
    query, keys = given()
    products = query[i].double() * keys.double() / math.sqrt(7)
    scores = products.sum(-1)
    open_keys = [True] * 5 if mask is None else mask[i].tolist()
    weights = scores.masked_fill(~torch.tensor(open_keys), -math.inf).softmax(-1)
    for n in range(5):
        assert numbers_in(page.locator(f'[data-k="s{n}"]').text_content()) == [
            pytest.approx(scores[n].item(), abs=5.01e-4)
        ]
        assert page.locator(f'[data-k="w{n}"]').text_content() == (f"{weights[n]:.3f}" if open_keys[n] else "masked")
    order = products[j].abs().argsort(descending=True)
    told = page.locator('[data-k="told"]').text_content()
    expected = [
        *products[j, order[:3]],
        products[j, order[3:]].sum(),
    ]
    assert numbers_in(told) == pytest.approx([x.item() for x in expected], abs=5.01e-4)
    assert told.startswith(f"The features that change the score of “{KEYS[j]}” most: ")
    assert page.locator(".row.chosen").get_attribute("aria-label") == f"key {KEYS[j]}"
    return products[j]


def bars(page, what):
    """Height of the bars of a row from left to right, in parts of the highest."""
    found = {}
    for d in page.locator(f'[data-k^="bars-{what}-"]').evaluate_all("nodes => nodes.map(n => n.getAttribute('d'))"):
        found |= {float(x): -float(h) / 22 for x, h in re.findall(r"M([\d.]+) \d+v(-?[\d.]+)", d)}
    return [found[x] for x in sorted(found)]


@everywhere
def test_keys_queries_and_features_are_chosen_with_the_mouse(show, width, scheme):
    query, keys = given()
    seen = show(neuron_view(query, keys, KEYS), width=width, scheme=scheme)
    page = seen.page
    page.locator("[data-k=rows] > g").nth(3).click()
    products = is_score_of(page, 0, 3)
    assert bars(page, "query") == pytest.approx((query[0] / query[0].abs().max()).tolist(), abs=0.001)
    assert bars(page, "key") == pytest.approx((keys[3] / keys[3].abs().max()).tolist(), abs=0.001)
    assert bars(page, "product") == pytest.approx((products / products.abs().max()).tolist(), abs=0.001)
    page.locator("[data-k=rows] > g").nth(1).hover()
    is_score_of(page, 0, 3)  # passing over a row chooses nothing
    page.locator('[data-k="query"]').select_option(label="on")
    products = is_score_of(page, 3, 3)
    page.locator('[data-k="sort"]').click()
    ordered = products.sort(descending=True)
    assert bars(page, "product") == pytest.approx((ordered.values / products.abs().max()).tolist(), abs=0.001)
    by_product = query[3][ordered.indices]
    assert bars(page, "query") == pytest.approx((by_product / by_product.abs().max()).tolist(), abs=0.001)
    page.locator('[data-k="feature"]').fill("2")
    spoken = said(page, "Feature 2: ")
    assert numbers_in(spoken)[:4] == pytest.approx(
        [query[3, 2].item(), keys[3, 2].item(), 1 / math.sqrt(7), products[2].item()], abs=5.01e-4
    )
    clean(seen)


def test_keys_are_walked_with_the_keyboard(show):
    query, keys = given()
    mask = causal_mask(5)
    seen = show(neuron_view(query, keys, KEYS, chosen=2, mask=mask))
    page = seen.page
    for _ in range(3):  # query, sort, keys
        page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    is_score_of(page, 2, 1, mask)
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    is_score_of(page, 2, 4, mask)
    said(page, "“sat” and “it”: score")
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    said(page, "Feature 6: ")
    clean(seen)


def test_keys_are_tapped(show):
    query, keys = given()
    seen = show(neuron_view(query, keys, KEYS), width=390, touch=True)
    page = seen.page
    box = page.locator("[data-k=rows] > g").nth(4).bounding_box()
    assert min(box["width"], box["height"]) >= 24
    page.locator("[data-k=rows] > g").nth(4).tap()
    is_score_of(page, 0, 4)
    page.locator('[data-k="sort"]').tap()
    assert bars(page, "product") == sorted(bars(page, "product"), reverse=True)
    clean(seen)


def test_one_query_has_no_list(show):
    query, keys = given()
    seen = show(neuron_view(query[1], keys, KEYS, queries=["cat"]))
    assert seen.page.locator('[data-k="query"]').count() == 0
    seen.page.locator("[data-k=rows] > g").nth(0).click()
    is_score_of(seen.page, 1, 0)
    clean(seen)
