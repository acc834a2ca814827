"""The views of what layers cost and of attention tile by tile, driven as readers drive them: mouse, keyboard, touch."""

import pytest
import torch
from driving import choose, clean, said
from hands import layouts

from course_kit.costs import formulas
from course_kit.costs.layers import KINDS
from course_kit.viz import layer_costs, tile_walk

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

FORMULAS = {
    "operations": lambda kind, n, d, counted: formulas.operations(kind, n, d, window=64, projections=counted),
    "sequential steps": lambda kind, n, d, counted: formulas.sequential_steps(kind, n),
    "longest path": lambda kind, n, d, counted: formulas.longest_path(kind, n, window=64),
    "numbers kept": lambda kind, n, d, counted: formulas.kept_numbers(kind, n, d, window=64),
}


def set_to(page, length, width, projections):
    """Move the controls to these powers of two."""
    if (page.locator("[data-k=projections]").get_attribute("aria-pressed") == "true") != projections:
        page.locator("[data-k=projections]").click()
    page.locator("[data-k=length]").fill(str(length.bit_length() - 5))
    page.locator("[data-k=width]").fill(str(width.bit_length() - 6))


@pytest.mark.parametrize("quantity", FORMULAS)
def test_the_script_computes_what_the_formulas_say(show, quantity):
    page = show(layer_costs()).page
    page.locator("[data-k=quantity]").select_option(quantity)
    for counted in (False, True):
        for length in (2**n for n in range(4, 15)):
            for width in (32, 256, 2048):
                set_to(page, length, width, counted)
                costs = [f"{FORMULAS[quantity](kind, length, width, counted):,}" for kind in KINDS]
                assert page.locator("[data-k^=cost]").all_text_contents() == costs


@pytest.mark.parametrize("state", [(16, 32, False), (2048, 256, True), (16384, 2048, False)])
def test_the_script_draws_what_python_draws(show, state):
    """The same state, reached by the controls and drawn at the beginning."""
    seen = (
        "[...document.querySelectorAll('svg [data-k],output,.say')]"
        ".filter(n => !n.closest('[visibility=hidden]')).map(n => n.outerHTML)"
    )
    page = show(layer_costs()).page
    set_to(page, *state)
    page.wait_for_timeout(300)
    moved = page.evaluate(seen)
    length, width, projections = state
    assert moved == show(layer_costs(length, width, projections=projections)).page.evaluate(seen)


@layouts
def test_the_crossing_moves_with_the_width_and_goes_with_the_projections(show, width, scheme, touch):
    def marks():
        """Lengths written at the circles that are seen."""
        return page.locator("[data-k^=mark]").evaluate_all(
            "list => list.filter(n => getComputedStyle(n).visibility == 'visible').map(n => n.textContent)"
        )

    seen = show(layer_costs(), width=width, scheme=scheme, touch=touch)
    page = seen.page
    assert marks() == ["64", "1,024"]
    page.locator("[data-k=width]").focus()
    page.keyboard.press("ArrowRight")
    assert said(page, "width 1,024, operations: ").endswith("at length 2,048.")
    assert marks() == ["64", "2,048"]
    assert page.locator("[data-k=width]").get_attribute("aria-valuetext") == "1,024"
    button = page.locator("[data-k=projections]")
    choose(button, touch)
    said(page, "the two curves do not cross.")
    assert marks() == ["64"]
    page.locator("[data-k=quantity]").select_option("longest path")
    said(page, "Length 512, width 1,024, longest path: self-attention 1, recurrent 511; the two curves do not cross.")
    assert marks() == []
    page.locator("[data-k=reset]").click()
    said(page, "at length 1,024.")
    assert button.get_attribute("aria-pressed") == "false"
    clean(seen)


def assert_shows(page, state):
    """Every number, the shades of the tile's cells, the marks and the frame are those of this state."""
    assert said(page, state["said"]) == state["said"]
    for i, row in enumerate(state["texts"]):
        assert [page.locator(f"[data-k=t{i}{j}]").text_content() for j in range(5)] == row
    cells = page.locator(".cell").evaluate_all(
        "list => list.map(n => [+n.firstChild.getAttribute('fill-opacity'), "
        "n.classList.contains('past'), n.classList.contains('best')])"
    )
    wanted = [[state.get("cells", {}).get(i, 0), *(i in state.get(k, []) for k in ("past", "best"))] for i in range(20)]
    assert cells == [pytest.approx(cell) for cell in wanted]
    frame = page.locator("[data-k=tile]").evaluate("n => ['x', 'y', 'width', 'height'].map(k => +n.getAttribute(k))")
    assert frame == state.get("tile", [0, 0, 0, 0])


@layouts
def test_every_tile_is_reached_by_button_and_by_slider(show, width, scheme, touch):
    view = tile_walk(torch.randn(4, 5), torch.randn(5), 2, queries_per_tile=2)
    states = view.data["states"]
    seen = show(view, width=width, scheme=scheme, touch=touch)
    page = seen.page
    for state in [*states[1:], states[-1]]:  # there is none after the last
        choose(page.locator("[data-k=next]"), touch)
        assert_shows(page, state)
    ratios = [page.locator(f"[data-k=t{i}4]").text_content() for i in range(4)]
    assert page.locator("svg text.output").all_text_contents() == ratios  # the last one is the softmax
    page.locator("[data-k=step]").focus()
    for state in states[-2::-1]:
        page.keyboard.press("ArrowLeft")
        assert_shows(page, state)
    clean(seen)
