"""The view of what layers cost: what is drawn and said before anybody touches it."""

import re
from xml.etree import ElementTree

import pytest

from course_kit.costs import formulas
from course_kit.costs.layers import KINDS
from course_kit.viz import layer_costs
from course_kit.viz.efficiency_layers import LENGTHS, QUANTITIES, WIDTHS, _costs


def parts(view):
    svgs = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", view.body, re.DOTALL)]
    return {node.get("data-k"): node for svg in svgs for node in svg.iter() if node.get("data-k")}


def marks(view):
    """Lengths written at the circles that are seen."""
    drawn = parts(view)
    return [drawn[key][1].text for key in ("mark0", "mark1") if drawn[key].get("visibility") == "visible"]


def test_every_cost_is_within_the_axes():
    for quantity, (low, high) in QUANTITIES.items():
        for d_model in (WIDTHS[0], WIDTHS[-1]):
            for length in (LENGTHS[0], LENGTHS[-1]):
                for projections in (False, True):
                    found = _costs(quantity, d_model, 64, projections=projections)(length)
                    assert all(10**low <= cost <= 10**high for cost in found)


def test_numbers_and_marks_of_the_beginning():
    view = layer_costs(1024, 128, window=32)
    drawn = parts(view)
    costs = [formulas.operations(kind, 1024, 128, window=32, projections=False) for kind in KINDS]
    assert [drawn[f"cost{i}"].text for i in range(5)] == [f"{cost:,}" for cost in costs]
    assert [drawn[f"times{i}"].text for i in range(5)] == [f"× {cost / costs[0]:.3f}" for cost in costs]
    assert marks(view) == ["32", "256"]  # the window, and twice the width
    assert view.status == (
        "Length 1,024, width 128, operations: self-attention 536,870,912, recurrent 134,217,728; the two curves cross "
        "at length 256."
    )
    assert view.status in view.description


def test_with_projections_self_attention_crosses_nothing_but_its_window():
    view = layer_costs(window=64, projections=True)
    assert marks(view) == ["64"]
    assert "the two curves do not cross" in view.status
    assert 'aria-pressed="true">count the projections' in view.body


def test_a_mark_lies_on_both_curves():
    drawn = parts(layer_costs(512, 512))
    points = [[tuple(map(float, p.split(","))) for p in drawn[f"curve{i}"].get("points").split()] for i in (0, 2)]
    x, y = map(float, re.findall(r"[\d.]+", drawn["mark1"].get("transform")))
    assert (x, y) in points[0]
    assert (x, y) in points[1]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: layer_costs(500), ValueError, "length must be a power of two from 16 to 16,384, got 500"),
        (lambda: layer_costs(512, 16), ValueError, "d_model must be a power of two from 32 to 2,048, got 16"),
        (lambda: layer_costs(512.0), TypeError, "length must be a whole number, got 512.0"),
        (lambda: layer_costs(window=1), ValueError, "window must be at least 2, got 1"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_cannot_be_shown_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
