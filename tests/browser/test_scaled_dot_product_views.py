"""The views of the chapter `scaled_dot_product`, in a browser without a network: by mouse, keyboard and touch."""

import math

import pytest
import torch
import torch.nn.functional as F
from driving import everywhere, large_enough, part, press, said
from shown import number_in

from course_kit.viz import attention_calculator, scale_explorer

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

QUERY = torch.tensor([[2.0, 0, 0, 2], [0, 1, 1, 0], [1, 1, -1, 1]])
KEY = torch.tensor([[1.0, 0, 0, 1], [0, 2, 2, 0], [1, -1, 1, 1]])
VALUE = torch.tensor([[3.0, 0], [0, 3], [3, 3]])


# attention_calculator -------------------------------------------------------------------------------------------------


def calculator(page_of, **settings):
    return page_of(attention_calculator(QUERY, KEY, VALUE), **settings)


def agree(page, query=QUERY, key=KEY, value=VALUE):
    """All numbers below the fields are torch's."""
    query, key, value = query.double(), key.double(), value.double()
    scaled = query @ key.T / math.sqrt(key.shape[1])
    output = F.scaled_dot_product_attention(query, key, value)
    expected = torch.cat([query @ key.T, scaled, scaled.softmax(-1), output], dim=-1).tolist()
    for i, row in enumerate(expected):
        texts = part(page, f"c{i}").all_text_contents()
        assert [number_in(text) for text in texts] == pytest.approx(row, abs=5.01e-4)
    return expected


def changed(tensor, i, j, number):
    tensor = tensor.clone()
    tensor[i, j] = number
    return tensor


def field(page, name, i, j):
    return page.get_by_label(f"{name} {i + 1}, feature {j + 1}", exact=True)


def cell(page, name):
    return page.locator(f"[role=button][aria-label^='{name}: ']")  # and what it shows


@everywhere
def test_every_number_follows_a_changed_field(page_of, width, scheme):
    page = calculator(page_of, width=width, scheme=scheme)
    agree(page)
    for name, i, j, number in (("query", 1, 0, 1.5), ("key", 2, 1, -0.25), ("value", 0, 1, -7)):
        field(page, name, i, j).fill(str(number))
    rows = agree(page, changed(QUERY, 1, 0, 1.5), changed(KEY, 2, 1, -0.25), changed(VALUE, 0, 1, -7))
    shades = page.locator('[data-k="c1"] rect').evaluate_all("list => list.map(n => +n.getAttribute('fill-opacity'))")
    assert shades == pytest.approx([0] * 6 + rows[1][6:9] + [0] * 2, abs=1e-6)  # only weights have a shade


FORMULAS = [
    ("Score q2,k1", "Score q2,k1 = 0·1 + 1·0 + 1·0 + 0·1 = 0.000"),
    ("Score q3,k3", "Score q3,k3 = 1·1 + 1·(−1) + (−1)·1 + 1·1 = 0.000"),
    ("Scaled score q2,k2", "Scaled score q2,k2 = 4 / √4 = 2.000"),
    ("Weight q2,k2", "Weight q2,k2 = e^2 / (e^0 + e^2 + e^0) = 0.787"),
    ("Output q2,1", "Output q2,1 = 0.107·3 + 0.787·0 + 0.107·3 = 0.639"),
    ("Output q2,2", "Output q2,2 = 0.107·0 + 0.787·3 + 0.107·3 = 2.680"),
]


@pytest.mark.parametrize(
    ("width", "scheme", "touch"),
    [(1000, "light", False), (390, "dark", False), (390, "light", True), (1000, "dark", True)],
)
def test_a_number_that_is_pointed_at_or_tapped_shows_its_formula(page_of, width, scheme, touch):
    page = calculator(page_of, width=width, scheme=scheme, touch=touch)
    for name, formula in FORMULAS:
        cell(page, name).tap() if touch else cell(page, name).hover()
        assert said(page, name) == formula
    assert large_enough(cell(page, "Output q2,1"))
    assert large_enough(field(page, "value", 0, 0))


def test_the_keyboard_fills_fields_and_walks_along_the_steps(page_of):
    page = calculator(page_of)
    page.keyboard.press("Tab")
    page.keyboard.type("3")  # the field's number is selected
    agree(page, query=changed(QUERY, 0, 0, 3))
    page.keyboard.press("ArrowDown")
    agree(page, query=changed(QUERY, 0, 0, 2.5))
    for keys, words in (
        (["Tab"] * 30, "Score q1,k1 = 2.5·1 + 0·0 + 0·0 + 2·1 = 4.500"),
        (["ArrowRight"] * 3, "Scaled score q1,k1 = 4.5 / √4 = 2.250"),
        (["ArrowDown"], "Scaled score q2,k1 = "),
    ):
        press(page, *keys)
        said(page, words)


@pytest.mark.parametrize(
    ("looked_at", "name", "i", "j", "words"),
    [
        ("Score q2,k2", "key", 1, 1, "Score q2,k2 = 0·0 + 1·7 + 1·2 + 0·0 = 9.000"),  # follows
        ("Score q1,k3", "query", 1, 0, "Score q2,k3 = 7·1 + 1·(−1) + 1·1 + 0·1 = 7.000"),  # of the changed query
        ("Score q1,k3", "key", 0, 1, "Score q1,k1 = 2·1 + 0·7 + 0·0 + 2·1 = 4.000"),  # of the changed key
        ("Score q1,k3", "value", 1, 0, "Output q1,1 = "),
    ],
)
def test_a_change_says_a_number_that_depends_on_it_and_frames_those_that_changed(page_of, looked_at, name, i, j, words):
    page = calculator(page_of)
    cell(page, looked_at).click()
    said(page, looked_at)
    field(page, name, i, j).fill("7")
    said(page, words)
    framed = page.locator(".changed").evaluate_all("nodes => nodes.map(n => n.ariaLabel.split(':')[0])")
    if looked_at == "Score q2,k2":  # that of the first query is 0 before and after
        assert [label for label in framed if label.startswith("Score")] == ["Score q2,k2", "Score q3,k2"]


def test_a_number_out_of_range_is_refused_at_once(page_of):
    page = calculator(page_of)
    first = field(page, "query", 0, 0)
    for typed in ("999", "-11", "1e9"):
        first.fill(typed)
        text = typed.replace("-", "−")
        assert said(page, text) == (
            f"The number must lie between −10 and 10: {text} is not used, and query 1, feature 1 stays 2."
        )
        assert first.get_attribute("aria-invalid") == "true"
        agree(page)
    page.keyboard.press("Tab")
    assert first.input_value() == "2"
    assert first.get_attribute("aria-invalid") == "false"
    agree(page)


def test_an_empty_or_unfinished_field_counts_as_zero(page_of):
    page = calculator(page_of)
    first = field(page, "query", 0, 0)
    for typed, counts in (("", 0), ("-", 0), ("1e", 0), (".", 0), ("10", 10), ("-10", -10), ("0.1", 0.1)):
        first.click()
        press(page, "Control+A", "Delete")
        page.keyboard.type(typed)
        agree(page, query=changed(QUERY, 0, 0, counts))
        page.keyboard.press("Tab")
        assert float(first.input_value()) == counts


def test_four_tokens_of_four_features_and_many_decimals(page_of):
    query, key, value = torch.randn(3, 4, 4)
    page = page_of(attention_calculator(query, key, value), width=390)
    field(page, "key", 3, 3).fill("0.123")
    agree(page, query, changed(key, 3, 3, 0.123), value)


# scale_explorer -------------------------------------------------------------------------------------------------------


def explorer(page_of, **settings):
    """The view in a browser, and what torch measures at a width."""
    query, key = torch.randn(60, 1024, dtype=torch.float64), torch.randn(60, 16, 1024, dtype=torch.float64)

    def measured(d):
        found = []
        for divisor in (1, math.sqrt(d)):
            scores = (key[..., :d] @ query[:, :d, None]).squeeze(-1) / divisor
            weights = scores.softmax(-1)
            derivative = torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]
            in_use = torch.special.entr(weights).sum(-1).exp().mean()
            found += [scores.std(correction=0), in_use, derivative.flatten(-2).norm(dim=-1).median()]
        return [number.item() for number in found]

    return page_of(scale_explorer(query, key), **settings), measured


def shown(page):
    return [float(part(page, f"text{k}{j}").text_content()) for k in range(2) for j in range(3)]


@everywhere
def test_the_slider_shows_what_torch_measures(page_of, width, scheme):
    page, measured = explorer(page_of, width=width, scheme=scheme)
    slider, paths = page.get_by_label("features d"), set()
    for place, d in ((None, 64), (0, 4), (8, 1024), (3, 32)):
        if place is not None:
            slider.fill(str(place))
            assert slider.get_attribute("aria-valuetext") == f"{d} features"
        assert part(page, "d-value").inner_text() == str(d)
        assert shown(page) == pytest.approx(measured(d), abs=5.01e-4)
        paths.add(part(page, "path0").get_attribute("d"))
        bar = float(part(page, "bar01").get_attribute("width"))
        assert bar == pytest.approx(110 * shown(page)[1] / 16, rel=1e-5)
    assert len(paths) == 4


@pytest.mark.parametrize("touch", [False, True])
def test_the_slider_moves_by_keyboard_mouse_and_touch_and_says_what_it_shows(page_of, touch):
    page, _ = explorer(page_of, width=390, touch=touch)
    box = page.get_by_label("features d").bounding_box()
    assert box["height"] >= 24
    middle = box["y"] + box["height"] / 2
    if touch:
        page.touchscreen.tap(box["x"] + 4, middle)
        said(page, "4 features")
    else:
        press(page, "Tab", "ArrowRight")
        numbers = shown(page)
        assert said(page, "128 features") == (
            f"With 128 features, the spread is {numbers[0]:.3f} without the division and {numbers[3]:.3f} with it."
        )
        page.mouse.click(box["x"] + box["width"] - 3, middle)
        said(page, "1024 features")
