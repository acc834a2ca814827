"""The views of what layers cost and of attention tile by tile: what is drawn and said before anybody touches them."""

import math
import re

import pytest
import torch

from course_kit.costs import formulas
from course_kit.costs.layers import KINDS
from course_kit.viz import layer_costs, tile_walk
from course_kit.viz.efficiency_layers import LENGTHS, QUANTITIES, WIDTHS, _costs
from course_kit.viz.view_numbers import fixed
from tests.viz.drawn import parts

# What layers cost -----------------------------------------------------------------------------------------------------


def marks(view):
    """Lengths written at the circles that are seen."""
    drawn = parts(view)
    return [drawn[key][1].text for key in ("mark0", "mark1") if drawn[key].get("visibility") == "visible"]


def test_every_cost_is_within_the_axes():
    for quantity, (low, high) in QUANTITIES.items():
        for d_model in (WIDTHS[0], WIDTHS[-1]):
            for projections in (False, True):
                costs = _costs(quantity, d_model, 64, projections=projections)
                assert all(10**low <= x <= 10**high for length in (LENGTHS[0], LENGTHS[-1]) for x in costs(length))


def test_numbers_and_marks_of_the_beginning():
    view = layer_costs(1024, 128, window=32)
    drawn = parts(view)
    costs = [formulas.operations(kind, 1024, 128, window=32, projections=False) for kind in KINDS]
    assert [drawn[f"cost{i}"].text for i in range(5)] == [f"{cost:,}" for cost in costs]
    assert [drawn[f"times{i}"].text for i in range(5)] == [f"× {cost / costs[0]:.3f}" for cost in costs]
    assert marks(view) == ["32", "256"]  # the window, and twice the width
    points = [[tuple(map(float, p.split(","))) for p in drawn[f"curve{i}"].get("points").split()] for i in (0, 2)]
    mark, here = (tuple(map(float, re.findall(r"[\d.]+", drawn[key].get("transform")))) for key in ("mark1", "here"))
    assert mark in points[0]
    assert mark in points[1]
    assert here[0] == points[0][LENGTHS.index(1024)][0]
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


# Attention tile by tile -----------------------------------------------------------------------------------------------

SCORES = torch.tensor([[0.5, 1.0, -2.0, 2.0, 0.0], [3.0, -1.0, 0.0, 1.0, 4.0], [0.0, 0.1, 0.2, 0.3, -9.9]])
VALUE = torch.tensor([1.0, -2.0, 3.0, 0.5, 2.0])


def states(**options):
    return tile_walk(SCORES, VALUE, **options).data["states"]


def test_two_tiles_by_hand():
    """Scores 0 and ln 2 with the values 4 and 8: the sums of the first tile are halved, and the result is 20 / 3."""
    ln2 = math.log(2)
    start, first, second = tile_walk(torch.tensor([[0.0, ln2]]), torch.tensor([4.0, 8.0]), 1).data["states"]
    assert start["texts"] == [["−∞", "", "0.000", "0.000", ""]]
    assert first["texts"] == [["0.000", "0.000", "1.000", "4.000", "4.000"]]
    assert second["texts"] == [[fixed(ln2), "0.500", "1.500", "10.000", "6.667"]]
    assert second["said"] == (
        "Tile 2 of 2: a larger maximum of q0, so the earlier total and output are multiplied by 0.500. "
        "For q0, output ÷ total is now softmax attention over all keys."
    )


def test_each_state_is_the_softmax_of_the_keys_so_far():
    for block_size, rows in ((1, 1), (2, 1), (2, 2), (3, 2), (3, 3), (5, 3)):
        start, *found = states(block_size=block_size, queries_per_tile=rows)
        tiles = [(i, j) for i in range(0, 3, rows) for j in range(0, 5, block_size)]
        wanted = start["texts"]
        for state, (top, left) in zip(found, tiles, strict=True):
            for i in range(top, min(top + rows, 3)):
                row = SCORES[i, : left + block_size].double()
                output = row.softmax(0) @ VALUE[: left + block_size].double()
                before = SCORES[i, :left].double().max() if left else -torch.inf
                total = (row - row.max()).exp().sum()
                numbers = (row.max(), math.exp(before - row.max()), total, total * output, output)
                wanted[i] = [fixed(float(x)) for x in numbers]
            assert state["texts"] == wanted


def test_the_cells_of_a_tile_are_shaded_by_their_weight_and_the_earlier_ones_are_past():
    first, second, third, *_ = states(block_size=2, queries_per_tile=2)[1:]
    assert first["cells"] == {n: pytest.approx(math.exp(x)) for n, x in ((0, -0.5), (1, 0.0), (5, 0.0), (6, -4.0))}
    assert (first["past"], first["best"]) == ([], [1, 5])
    assert set(second["cells"]) == {2, 3, 7, 8}
    assert second["cells"][8] == pytest.approx(math.exp(-2.0))
    assert second["past"] == [0, 1, 5, 6]
    assert second["best"] == [3, 5]  # the first query has a larger score, the second keeps its own
    assert set(third["cells"]) == {4, 9}  # the last tile is smaller
    assert third["best"] == [3, 9]
    cell = parts(tile_walk(SCORES, VALUE))["c4"][0]
    x, y, width, height = (float(cell.get(name)) for name in ("x", "y", "width", "height"))
    assert third["tile"] == [x, y, width, 2 * height]


def test_what_is_said_names_the_queries_whose_maximum_grows():
    said = [state["said"] for state in states(block_size=2)]
    assert said[0] == "Before the first tile: each maximum is −∞, and total and output are 0."
    assert said[1] == "Tile 1 of 3: the first maximum of q0, q1 and q2."
    assert said[2].endswith(f"of q0 and q2, so the earlier total and output are multiplied by {fixed(math.exp(-1))} "
                            f"and {fixed(math.exp(-0.2))}.")  # fmt: skip
    flat = tile_walk(torch.zeros(1, 4), torch.ones(4), 2).data["states"]
    assert "Tile 2 of 2: no larger maximum, so the earlier sums stay as they are. For q0" in flat[2]["said"]


def test_in_the_example_each_maximum_changes_last_in_another_block():
    found = [[row[0] for row in state["texts"]] for state in tile_walk().data["states"]]
    assert len(found) == 5
    assert [max(t for t in range(1, 5) if found[t][i] != found[t - 1][i]) for i in range(4)] == [1, 2, 3, 4]


def test_the_picture_before_the_first_tile():
    view = tile_walk(SCORES, VALUE)
    found = parts(view)
    assert [found[f"c{i}"][1].text for i in range(15)] == [fixed(x, 1) for x in SCORES.flatten().tolist()]
    assert {found[f"c{i}"][0].get("fill-opacity") for i in range(15)} == {"0"}
    assert (found["t00"].text, found["tile"].get("width")) == ("−∞", "0")
    whole = [fixed(x) for x in (SCORES.double().softmax(-1) @ VALUE.double()).tolist()]
    assert all(f">{x}</text>" in view.body for x in whole)
    assert f"q0 {whole[0]}, q1 {whole[1]}, q2 {whole[2]}." in view.description
    assert view.status == view.data["states"][0]["said"]
