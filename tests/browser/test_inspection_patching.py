"""The view of activation patching, in a browser without a network: by mouse, keyboard and touch."""

import pytest
import torch
from driving import assert_scrolls, clean, everywhere, said
from shown import as_shown

from course_kit.viz import patching_view
from course_kit.viz.view_elements import sentence

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

HUND = ["Ein", "Hund", "läuft", "am", "Strand", ".", "<eos>"]
KATZE = ["Eine", "Katze", "läuft", "am", "Strand", ".", "<eos>"]
PLACES = ["embedding", "layer 1", "layer 2"]
CLEAN, OTHER = 3.25, -1.5


def given():
    torch.manual_seed(29)
    return 3 * torch.randn(3, 7)


def view(**settings):
    return patching_view(
        given(),
        CLEAN,
        OTHER,
        PLACES,
        HUND,
        other_tokens=KATZE,
        runs=("Ein Hund", "Eine Katze"),
        measure="d",
        **settings,
    )


def cell(page, place, position):
    return page.locator("[role=row]:has([role=gridcell])").nth(2 - place).locator("[role=gridcell]").nth(position)


def minus(x):
    return as_shown(x)


def is_chosen(page, place, position):
    """Numbers, sentence and marker are those of this patch, and its cell alone is marked."""
    patched = given().double()
    shares = (patched - CLEAN) / (OTHER - CLEAN)
    value, share = patched[place, position].item(), shares[place, position].item()
    assert said(page, f"{sentence(PLACES[place])} at “{HUND[position]}”: ").endswith(
        f"d is 3.250 without the patch, {minus(value)} with it, and −1.500 in the other run: share {minus(share)}."
    )
    where = "there" if HUND[position] == KATZE[position] else f"at “{KATZE[position]}”"
    assert page.locator("[data-k=told]").text_content() == (
        f"In the run on “Ein Hund”, the output of {PLACES[place]} at “{HUND[position]}” is replaced by what the run on "
        f"“Eine Katze” computes {where}."
    )
    assert page.locator("[data-k=now]").text_content() == minus(value)
    marked = page.locator("[aria-selected=true]")
    assert marked.count() == 1
    assert marked.text_content() == minus(share)
    # the marker divides the way between the two ends as the share does
    clean_end, other_end = (page.get_by_text(text, exact=True).bounding_box() for text in ("3.250", "−1.500"))
    start, end = (box["x"] + box["width"] / 2 for box in (clean_end, other_end))
    circle = page.locator("[data-k=marker] circle").bounding_box()
    assert circle["x"] + circle["width"] / 2 == pytest.approx(start + share * (end - start), abs=0.7)


@everywhere
def test_a_cell_is_chosen_with_the_mouse(show, width, scheme):
    seen = show(view(), width=width, scheme=scheme)
    page = seen.page
    cell(page, 1, 1).click()
    is_chosen(page, 1, 1)
    cell(page, 0, 6).click()
    is_chosen(page, 0, 6)
    cell(page, 2, 5).hover()  # passing over a cell chooses nothing
    page.wait_for_timeout(200)
    is_chosen(page, 0, 6)
    clean(seen)


def test_cells_are_chosen_with_the_keyboard(show):
    seen = show(view(chosen=(1, 2)), width=390)
    page = seen.page
    page.keyboard.press("Tab")
    is_chosen(page, 1, 2)  # Tab leads to the chosen cell, not to the first
    page.keyboard.press("ArrowLeft")
    is_chosen(page, 1, 1)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    is_chosen(page, 2, 1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    is_chosen(page, 0, 6)
    box = cell(page, 0, 6).bounding_box()
    assert 0 <= box["x"] <= box["x"] + box["width"] <= 390  # the map has scrolled there
    clean(seen)


def test_a_cell_is_tapped(show):
    seen = show(view(), width=390, touch=True)
    page = seen.page
    cell(page, 2, 0).tap()
    is_chosen(page, 2, 0)
    cell(page, 0, 5).tap()
    is_chosen(page, 0, 5)
    clean(seen)


def test_purple_goes_to_the_other_run_and_green_away_from_it(show):
    page = show(patching_view(torch.tensor([[0.0, 1.0, -1.0]]), 0, 1)).page
    colours = page.locator("[role=gridcell]").evaluate_all("l => l.map(n => getComputedStyle(n).backgroundColor)")
    canvas = (
        "c => { const x = new OffscreenCanvas(1, 1).getContext('2d'); x.fillStyle = c; x.fillRect(0, 0, 1, 1); "
        "return [...x.getImageData(0, 0, 1, 1).data] }"
    )
    none, toward, away = (page.evaluate(canvas, colour) for colour in colours)
    assert none[3] == 0
    assert toward[3] == away[3] == pytest.approx(255 * 0.74, abs=1)
    assert toward[2] > toward[0] > toward[1]
    assert away[1] > away[2] > away[0]


def test_a_map_wider_than_the_phone_says_that_it_scrolls(show):
    for width, wide in ((1000, False), (390, True)):
        assert_scrolls(show(patching_view(torch.linspace(-2, 3, 24).view(3, 8), 0, 1), width=width).page, wide)
