"""The view of loss curves, driven as readers drive it: mouse, keyboard, touch."""

import pytest
from driving import choose, clean, said
from hands import layouts

from course_kit.viz import loss_curves

pytestmark = [pytest.mark.browser, pytest.mark.site, pytest.mark.thorough]

CURVES = {"healthy": [4.0, 3.0, 2.0, 1.0], "leaking": [4.0, 2.0, 0.5, 0.125], "dead": [4.0, 4.0, 4.0, 4.0]}
VIEW = loss_curves(
    CURVES, {"change by a later token": {"healthy": 0.0, "leaking": 5.25, "dead": 0.0}}, baseline=3.5
)  # fmt: skip


def texts(page, key):
    return page.locator(f"[data-k^={key}]:is(text)").all_text_contents()


@layouts
def test_the_slider_shows_the_loss_so_far_then_a_measurement_and_the_names(show, width, scheme, touch):
    seen = show(VIEW, width=width, scheme=scheme, touch=touch)
    page = seen.page
    step, curves = page.locator("[data-k=step]"), "l => l.map(n => n.getAttribute('points'))"
    before = page.locator("polyline").evaluate_all(curves)
    step.fill("1")
    assert said(page, "step 1") == "Loss at step 1: A 3.000, B 2.000, C 4.000; log V is 3.500."
    assert texts(page, "loss") == ["3.000", "2.000", "4.000"]
    assert [len(corners.split()) for corners in page.locator("polyline").evaluate_all(curves)] == [2, 2, 2]
    step.fill("3")
    assert page.locator("polyline").evaluate_all(curves) == before  # the script draws what Python draws
    assert texts(page, "test") == ["", "", ""]
    page.locator("[data-k=test]").first.select_option("change by a later token")
    said(page, "Change by a later token: A 0.000, B 5.250, C 0.000.")
    assert texts(page, "test") == ["measured 0.000", "measured 5.250", "measured 0.000"]
    choose(page.locator("button[data-k=names]"), touch)
    said(page, "A (healthy) 0.000, B (leaking) 5.250, C (dead) 0.000.")
    assert texts(page, "name") == ["A: healthy", "B: leaking", "C: dead"]
    clean(seen)
