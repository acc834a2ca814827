"""The views of the chapter `scaled_dot_product`, in a browser without a network: by mouse, keyboard and touch."""

import math

import pytest
import torch
import torch.nn.functional as F
from driving import clean, everywhere, said
from shown import number_in

from course_kit.viz import attention_calculator, scale_explorer

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

QUERY = torch.tensor([[2.0, 0, 0, 2], [0, 1, 1, 0], [1, 1, -1, 1]])
KEY = torch.tensor([[1.0, 0, 0, 1], [0, 2, 2, 0], [1, -1, 1, 1]])
VALUE = torch.tensor([[3.0, 0], [0, 3], [3, 3]])


# attention_calculator -------------------------------------------------------------------------------------------------


def calculator(show, **settings):
    return show(attention_calculator(QUERY, KEY, VALUE), **settings)


def numbers(page):
    """All numbers below the fields, a list for each query."""
    rows = [page.locator(f'[data-k="c{i}"]').all_text_contents() for i in range(3)]
    return [[number_in(text) for text in row] for row in rows]


def by_torch(query, key, value):
    query, key, value = query.double(), key.double(), value.double()
    scores = query @ key.T
    scaled = scores / math.sqrt(key.shape[1])
    output = F.scaled_dot_product_attention(query, key, value)
    return torch.cat([scores, scaled, scaled.softmax(-1), output], dim=-1).tolist()


def agree(page, query=QUERY, key=KEY, value=VALUE):
    for shown, exact in zip(numbers(page), by_torch(query, key, value), strict=True):
        assert shown == pytest.approx(exact, abs=5.01e-4)


def changed(tensor, i, j, number):
    tensor = tensor.clone()
    tensor[i, j] = number
    return tensor


def field(page, name, i, j):
    return page.get_by_label(f"{name} {i + 1}, feature {j + 1}", exact=True)


def cell(page, name):
    return page.get_by_role("button", name=name, exact=True)


@everywhere
def test_every_number_follows_a_changed_field(show, width, scheme):
    seen = calculator(show, width=width, scheme=scheme)
    page = seen.page
    agree(page)
    field(page, "query", 1, 0).fill("1.5")
    agree(page, query=changed(QUERY, 1, 0, 1.5))
    field(page, "key", 2, 1).fill("-0.25")
    key = changed(KEY, 2, 1, -0.25)
    agree(page, query=changed(QUERY, 1, 0, 1.5), key=key)
    field(page, "value", 0, 1).fill("-7")
    agree(page, query=changed(QUERY, 1, 0, 1.5), key=key, value=changed(VALUE, 0, 1, -7))
    shades = [float(x) for x in page.locator('[data-k="c1"] rect').evaluate_all(
        "list => list.map(rect => rect.getAttribute('fill-opacity'))")]  # fmt: skip
    assert shades[:6] + shades[9:] == [0] * 8  # only weights have a shade
    assert shades[6:9] == pytest.approx(numbers(page)[1][6:9], abs=5.01e-4)
    clean(seen)


FORMULAS = [
    ("Score q2,k1", "Score q2,k1 = 0·1 + 1·0 + 1·0 + 0·1 = 0.000"),
    ("Score q3,k3", "Score q3,k3 = 1·1 + 1·(−1) + (−1)·1 + 1·1 = 0.000"),
    ("Scaled score q2,k2", "Scaled score q2,k2 = 4 / √4 = 2.000"),
    ("Weight q2,k2", "Weight q2,k2 = e^2 / (e^0 + e^2 + e^0) = 0.787"),
    ("Output q2,1", "Output q2,1 = 0.107·3 + 0.787·0 + 0.107·3 = 0.639"),
    ("Output q2,2", "Output q2,2 = 0.107·0 + 0.787·3 + 0.107·3 = 2.680"),
]


@everywhere
def test_pointing_at_a_number_shows_its_formula(show, width, scheme):
    seen = calculator(show, width=width, scheme=scheme)
    for name, formula in FORMULAS:
        cell(seen.page, name).hover()
        assert said(seen.page, name) == formula
    clean(seen)


@pytest.mark.parametrize("width", [390, 1000])
def test_a_tap_shows_the_formula_and_its_target_is_large_enough(show, width):
    seen = calculator(show, width=width, touch=True)
    for name, formula in FORMULAS:
        cell(seen.page, name).tap()
        assert said(seen.page, name) == formula
    box = cell(seen.page, "Output q2,1").bounding_box()
    assert min(box["width"], box["height"]) >= 24
    box = field(seen.page, "value", 0, 0).bounding_box()
    assert min(box["width"], box["height"]) >= 24
    clean(seen)


def test_the_keyboard_fills_fields_and_walks_along_the_steps(show):
    seen = calculator(show)
    page = seen.page
    page.keyboard.press("Tab")
    page.keyboard.type("3")  # the field's number is selected
    query = changed(QUERY, 0, 0, 3)
    agree(page, query=query)
    page.keyboard.press("ArrowDown")
    agree(page, query=changed(QUERY, 0, 0, 2.5))
    for _ in range(30):
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Score q1,k1"
    assert said(page, "Score q1,k1") == "Score q1,k1 = 2.5·1 + 0·0 + 0·0 + 2·1 = 4.500"
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert said(page, "Scaled score") == "Scaled score q1,k1 = 4.5 / √4 = 2.250"
    page.keyboard.press("ArrowDown")
    said(page, "Scaled score q2,k1")
    clean(seen)


def test_the_formula_looked_at_follows_a_change(show):
    seen = calculator(show)
    page = seen.page
    cell(page, "Score q2,k2").click()
    said(page, "Score q2,k2 = 0·0 + 1·2 + 1·2 + 0·0 = 4.000")
    field(page, "key", 1, 1).fill("-3")
    said(page, "Score q2,k2 = 0·0 + 1·(−3) + 1·2 + 0·0 = −1.000")
    framed = page.locator(".changed").evaluate_all("nodes => nodes.map(n => n.ariaLabel)")
    assert "Score q2,k2" in framed
    assert "Score q1,k2" not in framed  # 0 before and after
    assert not [label for label in framed if label.startswith("Score") and not label.endswith("k2")]
    clean(seen)


@pytest.mark.parametrize(
    ("name", "i", "j", "words"),
    [
        ("query", 1, 0, "Score q2,k3 = 7·1 + 1·(−1) + 1·1 + 0·1 = 7.000"),  # the same cell of the changed query
        ("key", 0, 1, "Score q1,k1 = 2·1 + 0·7 + 0·0 + 2·1 = 4.000"),  # the changed key for the same query
        ("value", 1, 0, "Output q1,1 = "),
    ],
)
def test_a_change_says_a_number_that_depends_on_it(show, name, i, j, words):
    seen = calculator(show)
    page = seen.page
    cell(page, "Score q1,k3").click()
    said(page, "Score q1,k3")
    field(page, name, i, j).fill("7")
    said(page, words)
    clean(seen)


@pytest.mark.parametrize("typed", ["999", "-11", "1e9"])
def test_a_number_out_of_range_is_refused_at_once(show, typed):
    seen = calculator(show)
    page = seen.page
    first = field(page, "query", 0, 0)
    first.fill(typed)
    spoken = said(page, "must lie between −10 and 10")
    shown = typed.replace("-", "−")
    assert spoken == f"The number must lie between −10 and 10: {shown} is not used, and query 1, feature 1 stays 2."
    assert first.get_attribute("aria-invalid") == "true"
    agree(page)
    page.keyboard.press("Tab")
    assert first.input_value() == "2"
    assert first.get_attribute("aria-invalid") == "false"
    agree(page)
    clean(seen)


def test_an_empty_or_unfinished_field_counts_as_zero(show):
    seen = calculator(show)
    page = seen.page
    first = field(page, "query", 0, 0)
    for typed, counts in (("", 0), ("-", 0), ("1e", 0), (".", 0), ("10", 10), ("-10", -10), ("0.1", 0.1)):
        first.click()
        page.keyboard.press("Control+A")
        page.keyboard.press("Delete")
        page.keyboard.type(typed)
        agree(page, query=changed(QUERY, 0, 0, counts))
        page.keyboard.press("Tab")
        assert float(first.input_value()) == counts
        agree(page, query=changed(QUERY, 0, 0, counts))
    clean(seen)


def test_four_tokens_of_four_features_and_many_decimals(show):
    tensors = torch.randn(3, 4, 4, generator=torch.Generator().manual_seed(0))
    seen = show(attention_calculator(*tensors), width=390)
    page = seen.page
    field(page, "key", 3, 3).fill("0.123")
    query, key, value = tensors
    expected = by_torch(query, changed(key, 3, 3, 0.123), value)
    for i in range(4):
        shown = [number_in(text) for text in page.locator(f'[data-k="c{i}"]').all_text_contents()]
        assert shown == pytest.approx(expected[i], abs=5.01e-4)
    clean(seen)


# scale_explorer -------------------------------------------------------------------------------------------------------


def drawn():
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(60, 1024, generator=generator, dtype=torch.float64)
    return query, torch.randn(60, 16, 1024, generator=generator, dtype=torch.float64)


def measured(d):
    query, key = drawn()
    for divisor in (1, math.sqrt(d)):
        scores = (key[..., :d] @ query[:, :d, None]).squeeze(-1) / divisor
        weights = scores.softmax(-1)
        matrix = torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]
        yield from (
            scores.std(correction=0).item(),
            torch.special.entr(weights).sum(-1).exp().mean().item(),
            matrix.flatten(-2).norm(dim=-1).median().item(),
        )


def shown(page):
    return [float(page.locator(f'[data-k="text{k}{j}"]').text_content()) for k in range(2) for j in range(3)]


@everywhere
def test_the_slider_shows_what_torch_measures(show, width, scheme):
    seen = show(scale_explorer(*drawn()), width=width, scheme=scheme)
    page = seen.page
    slider = page.get_by_label("features d")
    assert page.locator('[data-k="d-value"]').inner_text() == "64"
    assert shown(page) == pytest.approx(list(measured(64)), abs=5.01e-4)
    paths = set()
    for place, d in ((0, 4), (8, 1024), (3, 32)):
        slider.fill(str(place))
        assert page.locator('[data-k="d-value"]').inner_text() == str(d)
        assert slider.get_attribute("aria-valuetext") == f"{d} features"
        assert shown(page) == pytest.approx(list(measured(d)), abs=5.01e-4)
        paths.add(page.locator('[data-k="path0"]').get_attribute("d"))
        in_use = shown(page)[1]
        bar = float(page.locator('[data-k="bar01"]').get_attribute("width"))
        assert bar == pytest.approx(110 * in_use / 16)
    assert len(paths) == 3
    clean(seen)


def test_the_slider_moves_by_mouse_and_keyboard_and_says_what_it_shows(show):
    seen = show(scale_explorer(*drawn()))
    page = seen.page
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    numbers = [f"{x:.3f}" for x in shown(page)]
    text = said(page, "128 features")
    assert text == f"With 128 features, the spread is {numbers[0]} without the division and {numbers[3]} with it."
    box = page.get_by_label("features d").bounding_box()
    page.mouse.click(box["x"] + box["width"] - 3, box["y"] + box["height"] / 2)
    said(page, "1024 features")
    clean(seen)


def test_the_slider_moves_by_touch(show):
    seen = show(scale_explorer(*drawn()), width=390, touch=True)
    page = seen.page
    box = page.get_by_label("features d").bounding_box()
    assert box["height"] >= 24
    page.touchscreen.tap(box["x"] + 4, box["y"] + box["height"] / 2)
    said(page, "4 features")
    assert shown(page) == pytest.approx(list(measured(4)), abs=5.01e-4)
    clean(seen)
