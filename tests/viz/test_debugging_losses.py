"""The view of loss curves: what is drawn and said before the reader touches it, and what is refused."""

import re
from xml.etree import ElementTree

import pytest

from course_kit.viz import loss_curves

CURVES = {"healthy": [4.0, 3.0, 2.0, 1.0], "leaking": [4.0, 2.0, 0.5, 0.125], "dead": [4.0, 4.0, 4.0, 4.0]}
TESTS = {
    "change by a later token": {"dead": 0.0, "leaking": 5.25, "healthy": 0.125},
    "largest gradient": {"healthy": 0.5, "leaking": 0.25, "dead": 0.0},
}


def parts(view):
    svgs = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", view.body, re.DOTALL)]
    return {node.get("data-k"): node for svg in svgs for node in svg.iter() if node.get("data-k")}


def corners(node):
    return [tuple(map(float, corner.split(","))) for corner in node.get("points").split()]


def test_all_curves_share_their_axes_and_names_are_hidden():
    drawn = parts(loss_curves(CURVES, TESTS, baseline=3.5))
    assert [drawn[f"name{i}"].text for i in range(3)] == ["A", "B", "C"]
    assert [drawn[f"loss{i}"].text for i in range(3)] == ["1.000", "0.125", "4.000"]
    healthy, leaking, dead = (corners(drawn[f"curve{i}"]) for i in range(3))
    assert [x for x, _ in healthy] == [x for x, _ in dead] == pytest.approx([18, 75.3, 132.7, 190])
    # 90 units for a loss of 4.2, from 124 upwards
    assert [y for _, y in dead] == pytest.approx([124 - 90 * 4 / 4.2] * 4, abs=0.06)
    assert [y for _, y in leaking] == pytest.approx([124 - 90 * loss / 4.2 for loss in CURVES["leaking"]], abs=0.06)


def test_numbers_of_a_measurement_are_in_the_order_of_the_curves():
    view = loss_curves(CURVES, TESTS, baseline=3.5)
    assert view.data["tests"]["change by a later token"] == ["0.125", "5.250", "0.000"]
    assert view.data["names"] == ["healthy", "leaking", "dead"]


def test_the_description_gives_all_of_it_in_words():
    view = loss_curves(CURVES, TESTS, baseline=3.5)
    assert view.status == "Loss at step 3: A 1.000, B 0.125, C 4.000; log V is 3.500."
    assert "B is the leaking model, with a last loss of 0.125, change by a later token: 5.250" in view.description
    assert "over 3 steps; log V is 3.500." in view.description


def test_the_dashed_line_is_the_baseline():
    body = loss_curves(CURVES, TESTS, baseline=2.1).body
    dashed = re.findall(r'd="M18 ([\d.]+)H190"[^>]*dasharray', body)
    assert [float(y) for y in dashed] == [124 - 90 * 2.1 / 4.2] * 3


def test_a_baseline_above_all_losses_fits_in():
    body = loss_curves(CURVES, TESTS, baseline=8.0).body
    dashed = re.findall(r'd="M18 ([\d.]+)H190"[^>]*dasharray', body)
    assert [float(y) for y in dashed] == pytest.approx([124 - 90 / 1.05] * 3, abs=0.06)


def test_a_floor_is_a_dotted_line_with_its_number():
    view = loss_curves(CURVES, TESTS, baseline=2.1, floor=1.05)
    dotted = re.findall(r'd="M18 ([\d.]+)H190"[^>]*dasharray="1.5 3"', view.body)
    assert [float(y) for y in dotted] == [124 - 90 * 1.05 / 4.2] * 3
    assert view.status.endswith("; log V is 2.100; floor is 1.050.")
    assert "dotted" in view.note
    without = loss_curves(CURVES, TESTS, baseline=2.1)
    assert "floor" not in without.status + without.description + without.body + without.note


@pytest.mark.parametrize(
    ("curves", "tests", "error", "message"),
    [
        ({"a": [1, 2]}, {}, ValueError, "two to four models, got 1"),
        ({"a": [1, 2], "b": [1]}, {}, ValueError, r"one length from 2 to 500, got \[1, 2\]"),
        ({"a": [1] * 501, "b": [1] * 501}, {}, ValueError, r"one length from 2 to 500, got \[501\]"),
        ({"a": [1, -1], "b": [1, 2]}, {}, ValueError, "finite number between 0"),
        ({"a": [1, float("nan")], "b": [1, 2]}, {}, ValueError, "finite number between 0"),
        ([[1, 2], [2, 3]], {}, TypeError, "curves must map names of models to losses"),
        ({"a": [1, 2], "b": [1, 2]}, {"leak": {"a": 1}}, ValueError, r"'leak'.* lacks \['b'\]"),
        ({"a": [1, 2], "b": [1, 2]}, {"leak": {"a": 1, "b": float("inf")}}, ValueError, "must be a finite number"),
        (
            {"a": [1, 2], "b": [1, 2]},
            {"leak": 3},
            TypeError,
            r"tests\['leak'\] must map names of models to numbers, got int",
        ),
        ({"a": [1, 2], "b": [1, 2]}, [3], TypeError, "tests must map names of measurements"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_cannot_be_shown_is_refused(curves, tests, error, message):
    with pytest.raises(error, match=message):
        loss_curves(curves, tests, baseline=1.0)


@pytest.mark.usefixtures("unchecked")
def test_a_baseline_below_zero_is_refused():
    with pytest.raises(ValueError, match="baseline must be a finite number between 0"):
        loss_curves({"a": [1, 2], "b": [1, 2]}, {}, baseline=-1.0)


@pytest.mark.usefixtures("unchecked")
def test_a_floor_above_the_baseline_is_refused():
    with pytest.raises(ValueError, match="floor must be a finite number between 0 and 1"):
        loss_curves({"a": [1, 2], "b": [1, 2]}, {}, baseline=1.0, floor=1.5)
