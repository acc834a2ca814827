"""The view that walks through the tiles of attention, driven as readers drive it: mouse, keyboard, touch."""

import pytest
import torch
from driving import clean, said

from course_kit.viz import tile_walk

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]


def assert_shows(page, state):
    """Every number, the shades of the tile's cells, the marks and the frame are those of this state."""
    for i, row in enumerate(state["texts"]):
        assert [page.locator(f"[data-k=t{i}{j}]").text_content() for j in range(5)] == row
    cells = page.locator(".cell").evaluate_all(
        "list => list.map(n => [+n.firstChild.getAttribute('fill-opacity'), "
        "n.classList.contains('past'), n.classList.contains('best')])"
    )
    wanted = [[state.get("cells", {}).get(i, 0), *(i in state.get(k, []) for k in ("past", "best"))] for i in range(20)]
    assert cells == [pytest.approx(cell) for cell in wanted]
    frame = page.locator("[data-k=tile]").evaluate(
        "n => ['x', 'y', 'width', 'height'].map(k => +n.getAttribute(k))"
    )  # fmt: skip
    assert frame == state.get("tile", [0, 0, 0, 0])


@pytest.mark.parametrize(("width", "scheme", "touch"), [(1000, "light", False), (390, "dark", True)])
def test_every_tile_is_reached_by_button_and_by_slider(show, width, scheme, touch):
    view = tile_walk(torch.randn(4, 5), torch.randn(5), 2, queries_per_tile=2)
    states = view.data["states"]
    seen = show(view, width=width, scheme=scheme, touch=touch)
    page = seen.page
    button = page.locator("[data-k=next]")
    for state in states[1:]:
        button.tap() if touch else button.click()
        assert said(page, state["said"]) == state["said"]
        assert_shows(page, state)
    button.tap() if touch else button.click()  # there is none after the last
    assert_shows(page, states[-1])
    page.locator("[data-k=step]").focus()
    for state in states[-2::-1]:
        page.keyboard.press("ArrowLeft")
        assert said(page, state["said"]) == state["said"]
        assert_shows(page, state)
    clean(seen)


def test_the_last_ratio_is_the_softmax_beside_it(show):
    page = show(tile_walk(torch.randn(3, 12), torch.randn(12), 3)).page
    page.locator("[data-k=step]").fill("4")
    said(page, "Tile 4 of 4")
    ratios = [page.locator(f"[data-k=t{i}4]").text_content() for i in range(3)]
    assert page.locator("svg text.output").all_text_contents() == ratios
