"""The logit lens and activation patching, two views with a map of cells, in a browser: by mouse, keyboard and touch."""

import pytest
import torch
from driving import assert_scrolls, choose, clean, drag_by_touch
from hands import assert_drawn_as, layouts

from course_kit.viz import logit_lens_view, patching_view

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

READ = ["the", "animal", "did", "not", "cross", "the", "street", "because", "it", "was"]
OTHER = ["the", "dog", "did", "not", "cross", "the", "road", "because", "he", "was"]
ROWS = ["input", "layer 1", "layer 2", "layer 3"]


@pytest.fixture
def lens():
    logits = 3 * torch.randn(4, 10, 13)

    def view(row=2, column=1, **settings):
        return logit_lens_view(logits, READ, [f"w{i}" for i in range(13)], layer=row, position=column, **settings)

    return view


@pytest.fixture(params=["lens", "patching"])
def view(request, lens):
    """A function that draws one of the views with this cell chosen."""
    patched, runs = 3 * torch.randn(4, 10), ("dog", "animal")

    def patching(row=2, column=1):
        settings = {"other_tokens": OTHER, "runs": runs, "measure": "d", "chosen": (row, column)}
        return patching_view(patched, 3.25, -1.5, ROWS, READ, **settings)

    return lens if request.param == "lens" else patching


def cell(page, row, column):
    return page.locator("[role=row]:has([role=gridcell])").nth(3 - row).locator("[role=gridcell]").nth(column)


@layouts
def test_a_cell_is_chosen_by_mouse_and_finger(show, view, width, scheme, touch):
    seen = show(view(), width=width, scheme=scheme, touch=touch)
    page = seen.page
    choose(cell(page, 1, 1), touch)
    assert_drawn_as(page, view(1, 1))
    if touch:  # the map scrolls beside the names of its rows, and passing over it chooses nothing
        box = page.locator(".scroll").bounding_box()
        drag_by_touch(page, (box["x"] + box["width"] - 20, box["y"] + 60), (-200, 0))
        assert page.locator(".scroll").evaluate("node => node.scrollLeft") > 100
    else:
        cell(page, 0, 8).hover()
        page.wait_for_timeout(200)
    assert_drawn_as(page, view(1, 1))
    choose(cell(page, 0, 9), touch)
    assert_drawn_as(page, view(0, 9))
    clean(seen)


def test_cells_are_chosen_with_the_keyboard(show, view):
    seen = show(view(2, 1), width=390)
    page = seen.page
    page.keyboard.press("Tab")  # leads to the chosen cell, not to the first
    for keys, row, column in (
        (["ArrowUp"] * 2, 3, 1),
        (["ArrowDown"] * 3, 0, 1),
        (["ArrowRight"] * 8, 0, 9),
        (["ArrowLeft"], 0, 8),
    ):
        for key in keys:
            page.keyboard.press(key)
        assert_drawn_as(page, view(row, column))
    box = cell(page, 0, 8).bounding_box()
    assert 0 <= box["x"] <= box["x"] + box["width"] <= 390  # the map has scrolled there
    clean(seen)


def test_a_map_wider_than_the_phone_says_that_it_scrolls(show, lens):
    for view in (lens(), patching_view(torch.linspace(-2, 3, 24).view(3, 8), 0, 1)):
        for width, wide in ((1000, False), (390, True)):
            assert_scrolls(show(view, width=width).page, wide)


def test_the_names_of_the_rows_stand_beside_their_cells(show, lens):
    page = show(lens(targets=[1] * 10), width=390).page
    assert page.locator(".places > div").all_text_contents() == ["target", *ROWS[::-1], "read"]
    page.evaluate("document.fonts.ready")
    names, rows = (  # each list in one moment, when nothing moves any more
        page.locator(which).evaluate_all("xs => xs.map(x => x.getBoundingClientRect()).map(b => [b.y, b.height])")
        for which in (".places > div", "[role=row]")
    )
    assert torch.tensor(names) == pytest.approx(torch.tensor(rows), abs=0.6)


def test_purple_goes_to_the_other_run_and_green_away_from_it(show):
    page = show(patching_view(torch.tensor([[0.0, 1.0, -1.0]]), 0, 1)).page
    none, toward, away = page.locator("[role=gridcell]").evaluate_all(
        "list => list.map(n => { const x = new OffscreenCanvas(1, 1).getContext('2d'); "
        "x.fillStyle = getComputedStyle(n).backgroundColor; x.fillRect(0, 0, 1, 1); "
        "return [...x.getImageData(0, 0, 1, 1).data] })"
    )
    assert none[3] == 0
    assert toward[3] == away[3] == pytest.approx(255 * 0.74, abs=1)
    assert toward[2] > toward[0] > toward[1]
    assert away[1] > away[2] > away[0]
