"""The view of what layers cost, driven as readers drive it: mouse, keyboard, touch."""

import re

import pytest
from driving import clean, said

from course_kit.costs import formulas
from course_kit.costs.layers import KINDS
from course_kit.viz import layer_costs

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

layouts = pytest.mark.parametrize(("width", "scheme", "touch"), [(1000, "light", False), (390, "dark", True)])


def written(page):
    """The five exact costs."""
    return [int(text.replace(",", "")) for text in page.locator("[data-k^=cost]").all_text_contents()]


def marks(page):
    """Lengths written at the circles that are seen."""
    return page.locator("[data-k^=mark]").evaluate_all(
        "list => list.filter(n => getComputedStyle(n).visibility == 'visible').map(n => n.textContent)"
    )


def by_formula(quantity, length, width, projections):
    functions = {
        "operations": lambda kind: formulas.operations(kind, length, width, window=64, projections=projections),
        "sequential steps": lambda kind: formulas.sequential_steps(kind, length),
        "longest path": lambda kind: formulas.longest_path(kind, length, window=64),
        "numbers kept": lambda kind: formulas.kept_numbers(kind, length, width, window=64),
    }
    return [functions[quantity](kind) for kind in KINDS]


@pytest.mark.parametrize("quantity", ["operations", "sequential steps", "longest path", "numbers kept"])
def test_the_script_computes_what_the_formulas_say(show, quantity):
    page = show(layer_costs()).page
    page.locator("[data-k=quantity]").select_option(quantity)
    for projections in (False, True):
        if projections:
            page.locator("[data-k=projections]").click()
        for place in range(11):
            for number in (0, 3, 6):
                page.locator("[data-k=length]").fill(str(place))
                page.locator("[data-k=width]").fill(str(number))
                length, width = 2 ** (4 + place), 2 ** (5 + number)
                assert written(page) == by_formula(quantity, length, width, projections)


@pytest.mark.parametrize(("place", "width", "projections"), [(0, 32, False), (7, 256, True), (10, 2048, False)])
def test_the_script_draws_what_python_draws(show, place, width, projections):
    """The same state, reached by the controls and drawn at the beginning."""
    page = show(layer_costs()).page
    if projections:
        page.locator("[data-k=projections]").click()
    page.locator("[data-k=length]").fill(str(place))
    page.locator("[data-k=width]").fill(str(width.bit_length() - 6))
    page.wait_for_timeout(300)
    seen = (
        "[...document.querySelectorAll('svg [data-k],.say')]"
        ".filter(n => !n.closest('[visibility=hidden]')).map(n => n.outerHTML)"
    )
    moved = page.evaluate(seen)
    assert moved == show(layer_costs(2 ** (4 + place), width, projections=projections)).page.evaluate(seen)


@layouts
def test_the_crossing_moves_with_the_width_and_goes_with_the_projections(show, width, scheme, touch):
    seen = show(layer_costs(), width=width, scheme=scheme, touch=touch)
    page = seen.page
    assert marks(page) == ["64", "1,024"]
    page.locator("[data-k=width]").focus()
    page.keyboard.press("ArrowRight")
    said(page, "width 1,024, operations: ")
    assert said(page, "at length 2,048.")
    assert marks(page) == ["64", "2,048"]
    assert page.locator("[data-k=width]").get_attribute("aria-valuetext") == "1,024"
    button = page.locator("[data-k=projections]")
    button.tap() if touch else button.click()
    said(page, "the two curves do not cross.")
    assert marks(page) == ["64"]
    page.locator("[data-k=quantity]").select_option("longest path")
    said(page, "Length 512, width 1,024, longest path: self-attention 1, recurrent 511; the two curves do not cross.")
    assert marks(page) == []
    page.locator("[data-k=reset]").click()
    said(page, "at length 1,024.")
    assert button.get_attribute("aria-pressed") == "false"
    clean(seen)


def test_the_line_of_the_length_follows_the_slider(show):
    page = show(layer_costs()).page
    page.locator("[data-k=length]").fill("0")
    start = re.findall(r"[\d.]+", page.locator("[data-k=here]").get_attribute("transform"))
    points = page.locator("[data-k=curve0]").get_attribute("points")
    assert points.startswith(start[0] + ",")
    assert page.locator("[data-k=length-value]").text_content() == "16"
