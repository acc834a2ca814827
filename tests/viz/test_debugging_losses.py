"""The view of loss curves: what is drawn and said before the reader touches it, and what is refused."""

import re

import pytest

from course_kit.viz import loss_curves
from tests.viz.drawn import parts

CURVES = {"healthy": [4.0, 3.0, 2.0, 1.0], "leaking": [4.0, 2.0, 0.5, 0.125], "dead": [4.0, 4.0, 4.0, 4.0]}
TESTS = {
    "change by a later token": {"dead": 0.0, "leaking": 5.25, "healthy": 0.125},
    "largest gradient": {"healthy": 0.5, "leaking": 0.25, "dead": 0.0},
}
LOW, HIGH = 124, 34  # a loss of 0 and the largest one are drawn here; the axis ends 5 % above the largest


def levels(view, dashes):
    """Heights of the lines with these dashes."""
    return [float(y) for y in re.findall(rf'd="M18 ([\d.]+)H190"[^>]*dasharray="{dashes}"', view.body)]


def test_all_curves_share_their_axes_and_names_are_hidden():
    view = loss_curves(CURVES, TESTS, baseline=3.5)
    drawn = parts(view)
    assert [drawn[f"name{i}"].text for i in range(3)] == ["A", "B", "C"]
    assert [drawn[f"loss{i}"].text for i in range(3)] == ["1.000", "0.125", "4.000"]
    for i, curve in enumerate(CURVES.values()):
        x, y = zip(*(map(float, corner.split(",")) for corner in drawn[f"curve{i}"].get("points").split()), strict=True)
        assert x == pytest.approx([18, 75.3, 132.7, 190])
        assert y == pytest.approx([LOW - (LOW - HIGH) * loss / 4.2 for loss in curve], abs=0.06)
    assert view.data["tests"]["change by a later token"] == ["0.125", "5.250", "0.000"]  # in the order of the curves
    assert view.data["names"] == ["healthy", "leaking", "dead"]


def test_the_description_gives_all_of_it_in_words():
    view = loss_curves(CURVES, TESTS, baseline=3.5)
    assert view.status == "Loss at step 3: A 1.000, B 0.125, C 4.000; log V is 3.500."
    assert "B is the leaking model, with a last loss of 0.125, change by a later token: 5.250" in view.description
    assert "over 3 steps; log V is 3.500." in view.description
    assert "floor" not in view.status + view.description + view.body
    assert "dotted" not in view.note


def test_the_dashed_line_is_the_baseline_and_the_dotted_one_the_floor():
    view = loss_curves(CURVES, TESTS, baseline=2.1, floor=1.05)
    assert levels(view, "4 4") == [LOW - (LOW - HIGH) * 2.1 / 4.2] * 3
    assert levels(view, "1.5 3") == [LOW - (LOW - HIGH) * 1.05 / 4.2] * 3
    assert view.status.endswith("; log V is 2.100; floor is 1.050.")
    assert "dotted" in view.note
    above_all_losses = loss_curves(CURVES, TESTS, baseline=8.0)
    assert levels(above_all_losses, "4 4") == pytest.approx([LOW - (LOW - HIGH) / 1.05] * 3, abs=0.06)
