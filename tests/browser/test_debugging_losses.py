"""The view of loss curves, driven as readers drive it: mouse, keyboard, touch."""

import pytest
from driving import clean, everywhere, said

from course_kit.viz import loss_curves

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

CURVES = {"healthy": [4.0, 3.0, 2.0, 1.0], "leaking": [4.0, 2.0, 0.5, 0.125], "dead": [4.0, 4.0, 4.0, 4.0]}
TESTS = {"change by a later token": {"healthy": 0.0, "leaking": 5.25, "dead": 0.0}}


def texts(page, key):
    return page.locator(f"[data-k^={key}]:is(text)").all_text_contents()


@everywhere
def test_the_slider_shows_the_loss_so_far(show, width, scheme):
    seen = show(loss_curves(CURVES, TESTS, baseline=3.5), width=width, scheme=scheme)
    seen.page.locator("[data-k=step]").fill("1")
    assert said(seen.page, "step 1") == "Loss at step 1: A 3.000, B 2.000, C 4.000; log V is 3.500."
    assert texts(seen.page, "loss") == ["3.000", "2.000", "4.000"]
    points = seen.page.locator("[data-k^=curve]").evaluate_all("list => list.map(n => n.getAttribute('points'))")
    assert [len(corners.split()) for corners in points] == [2, 2, 2]
    clean(seen)


def test_the_script_draws_what_python_draws(show):
    page = show(loss_curves(CURVES, TESTS, baseline=3.5)).page
    drawn = "[...document.querySelectorAll('polyline')].map(n => n.getAttribute('points'))"
    before = page.evaluate(drawn)
    page.locator("[data-k=step]").fill("0")
    assert page.evaluate(drawn) != before
    page.locator("[data-k=step]").fill("3")
    assert page.evaluate(drawn) == before


@pytest.mark.parametrize("touch", [False, True])
def test_a_measurement_then_the_names(show, touch):
    seen = show(loss_curves(CURVES, TESTS, baseline=3.5), width=390, touch=touch)
    page = seen.page
    assert texts(page, "test") == ["", "", ""]
    page.locator("[data-k=test]").first.select_option("change by a later token")
    said(page, "Change by a later token: A 0.000, B 5.250, C 0.000.")
    assert texts(page, "test") == ["measured 0.000", "measured 5.250", "measured 0.000"]
    names = page.locator("button[data-k=names]")
    names.tap() if touch else names.click()
    said(page, "A (healthy) 0.000, B (leaking) 5.250, C (dead) 0.000.")
    assert texts(page, "name") == ["A: healthy", "B: leaking", "C: dead"]
    clean(seen)


def test_the_keyboard_does_all_of_it(show):
    page = show(loss_curves(CURVES, TESTS, baseline=3.5)).page
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowLeft")
    said(page, "Loss at step 2: A 2.000, B 0.500, C 4.000")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    said(page, "Change by a later token: A 0.000")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    said(page, "A (healthy)")
