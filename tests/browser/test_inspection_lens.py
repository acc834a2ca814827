"""The view of the logit lens, in a browser without a network: by mouse, keyboard and touch."""

import pytest
import torch
from driving import assert_scrolls, clean, drag_by_touch, everywhere, said

from course_kit.viz import logit_lens_view
from course_kit.viz.view_elements import sentence

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

READ = ["the", "animal", "did", "not", "cross", "the", "street", "because", "it", "was"]
WORDS = [f"w{i}" for i in range(13)]
ROWS = ["input", "layer 1", "layer 2", "layer 3"]


def given():
    torch.manual_seed(23)
    return 3 * torch.randn(4, len(READ), len(WORDS))


def cell(page, layer, position):
    return page.locator("[role=row]:has([role=gridcell])").nth(3 - layer).locator("[role=gridcell]").nth(position)


def is_chosen(page, layer, position):
    """Bars, ranks and words are those of torch for this cell, and it alone is marked."""
    chances = given()[:, position].double().softmax(-1)
    values, ids = chances[layer].topk(5)
    best = ", ".join(f"“{WORDS[i]}” {x:.3f}" for i, x in zip(ids.tolist(), values.tolist(), strict=True))
    goal = chances[-1].argmax().item()
    rank = [1 + int((row > row[goal]).sum()) for row in chances]
    words = said(page, f"{sentence(ROWS[layer])} at “{READ[position]}”: {best}.")
    assert words.endswith(
        f"“{WORDS[goal]}”, the top token of layer 3, has rank {rank[layer]} and probability "
        f"{chances[layer, goal]:.3f} here."
    )
    text = page.locator("[data-k^=name]").all_text_contents()
    assert text == [WORDS[i] for i in ids.tolist()]
    assert page.locator("[data-k^=best][data-k$=value]").all_text_contents() == [f"{x:.3f}" for x in values.tolist()]
    assert page.locator("[data-k^=own][data-k$=value]").all_text_contents() == [f"{row[goal]:.3f}" for row in chances]
    assert page.locator("[data-k^=rank]").all_text_contents() == [f"rank {r}" for r in rank]
    width = page.locator("[data-k^=own]:not([data-k$=value])").evaluate_all("l => l.map(n => +n.getAttribute('width'))")
    assert width == pytest.approx((128 * chances[:, goal]).tolist(), abs=0.07)
    assert page.locator("[data-k=at]").text_content() == f"{ROWS[layer]} at “{READ[position]}”"
    assert page.locator("[data-k=goal]").text_content() == f"“{WORDS[goal]}”, the top token of layer 3"
    marked = page.locator("[aria-selected=true]").evaluate_all("l => l.map(n => n.getAttribute('aria-label'))")
    assert marked == [f"{ROWS[layer]} at {READ[position]}: “{WORDS[ids[0]]}” {values[0]:.3f}"]
    # the frame is around the row of the chosen layer
    row = page.locator(f"[data-k=rank{layer}]").bounding_box()
    frame = page.locator("[data-k=frame]").bounding_box()
    assert frame["y"] < row["y"] < row["y"] + row["height"] < frame["y"] + frame["height"]


@everywhere
def test_a_cell_is_chosen_with_the_mouse(show, width, scheme):
    seen = show(logit_lens_view(given(), READ, WORDS), width=width, scheme=scheme)
    page = seen.page
    cell(page, 1, 2).click()
    is_chosen(page, 1, 2)
    cell(page, 2, 9).click()  # on a phone the map scrolls beside the names of its rows
    is_chosen(page, 2, 9)
    cell(page, 0, 8).hover()  # passing over a cell chooses nothing
    page.wait_for_timeout(200)
    is_chosen(page, 2, 9)
    clean(seen)


def test_cells_are_chosen_with_the_keyboard(show):
    seen = show(logit_lens_view(given(), READ, WORDS, layer=2, position=1), width=390)
    page = seen.page
    page.keyboard.press("Tab")
    is_chosen(page, 2, 1)  # Tab leads to the chosen cell, not to the first
    page.keyboard.press("ArrowUp")
    is_chosen(page, 3, 1)
    page.keyboard.press("ArrowUp")
    is_chosen(page, 3, 1)
    for _ in range(3):
        page.keyboard.press("ArrowDown")
    is_chosen(page, 0, 1)
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    is_chosen(page, 0, 9)
    box = cell(page, 0, 9).bounding_box()
    assert 0 <= box["x"] <= box["x"] + box["width"] <= 390  # the map has scrolled there
    clean(seen)


def test_a_map_is_scrolled_and_a_cell_tapped_by_a_finger(show):
    seen = show(logit_lens_view(given(), READ, WORDS), width=390, touch=True)
    page = seen.page
    cell(page, 2, 1).tap()
    is_chosen(page, 2, 1)
    box = page.locator(".scroll").bounding_box()
    drag_by_touch(page, (box["x"] + box["width"] - 20, box["y"] + 60), (-200, 0))
    assert page.locator(".scroll").evaluate("node => node.scrollLeft") > 100
    is_chosen(page, 2, 1)
    cell(page, 1, 8).tap()
    is_chosen(page, 1, 8)
    clean(seen)


def test_the_names_of_the_rows_stand_beside_their_cells(show):
    page = show(logit_lens_view(given(), READ, WORDS, targets=[1] * 10), width=390).page
    names = page.locator(".places > div")
    assert names.all_text_contents() == ["target", *ROWS[::-1], "read"]
    page.evaluate("document.fonts.ready")
    boxes = [  # each list in one moment, when nothing moves any more
        page.locator(which).evaluate_all("xs => xs.map(x => x.getBoundingClientRect()).map(b => [b.y, b.height])")
        for which in (".places > div", "[role=row]")
    ]
    for name, row in zip(*boxes, strict=True):
        assert name == pytest.approx(row, abs=0.6)


def test_a_map_wider_than_the_phone_says_that_it_scrolls(show):
    for width, wide in ((1000, False), (390, True)):
        assert_scrolls(show(logit_lens_view(given(), READ, WORDS), width=width).page, wide)
