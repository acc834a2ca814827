"""The view that walks through the tiles of attention: what is drawn, and the numbers of every step."""

import math
import re
from xml.etree import ElementTree

import pytest
import torch

from course_kit.viz import tile_walk
from course_kit.viz.view_numbers import fixed

SCORES = torch.tensor([[0.5, 1.0, -2.0, 2.0, 0.0], [3.0, -1.0, 0.0, 1.0, 4.0], [0.0, 0.1, 0.2, 0.3, -9.9]])
VALUE = torch.tensor([1.0, -2.0, 3.0, 0.5, 2.0])


def parts(view):
    drawings = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", view.body, re.DOTALL)]
    return {node.get("data-k"): node for svg in drawings for node in svg.iter() if node.get("data-k")}


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


@pytest.mark.parametrize("block_size", [1, 2, 3, 5])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_each_state_is_the_softmax_of_the_keys_so_far(block_size, rows):
    found = states(block_size=block_size, queries_per_tile=rows)
    tiles = [(i, j) for i in range(0, 3, rows) for j in range(0, 5, block_size)]
    assert len(found) == len(tiles) + 1
    for state, (top, left) in zip(found[1:], tiles, strict=True):
        seen = slice(0, min(left + block_size, 5))
        for i in range(top, min(top + rows, 3)):
            row = SCORES[i, seen].double()
            output = row.softmax(0) @ VALUE[seen].double()
            before = SCORES[i, :left].double().max() if left else -torch.inf
            total = (row - row.max()).exp().sum()
            numbers = (row.max(), math.exp(before - row.max()), total, total * output, output)
            assert state["texts"][i] == [fixed(float(x)) for x in numbers]
        for i in range(min(top + rows, 3), 3):
            assert state["texts"][i][0] == "−∞"


def test_the_cells_of_a_tile_are_shaded_by_their_weight_and_the_earlier_ones_are_past():
    first, second, third, *_ = states(block_size=2, queries_per_tile=2)[1:]
    assert set(first["cells"]) == {0, 1, 5, 6}
    assert first["past"] == []
    assert first["cells"][1] == pytest.approx(1.0)
    assert first["cells"][0] == pytest.approx(math.exp(-0.5))
    assert first["best"] == [1, 5]
    assert set(second["cells"]) == {2, 3, 7, 8}
    assert second["past"] == [0, 1, 5, 6]
    assert second["best"] == [3, 5]  # the first query has a larger score, the second keeps its own
    assert second["cells"][8] == pytest.approx(math.exp(-2.0))
    assert set(third["cells"]) == {4, 9}  # the last tile is smaller
    assert third["best"] == [3, 9]
    x, y, width, height = (
        float(parts(tile_walk(SCORES, VALUE))["c4"][0].get(n)) for n in ("x", "y", "width", "height")
    )
    assert third["tile"] == [x, y, width, 2 * height]


def test_what_is_said_names_the_queries_whose_maximum_grows():
    said = [state["said"] for state in states(block_size=2)]
    assert said[0] == "Before the first tile: each maximum is −∞, and total and output are 0."
    assert said[1] == "Tile 1 of 3: the first maximum of q0, q1 and q2."
    assert said[2].endswith("a larger maximum of q0 and q2, so the earlier total and output are multiplied by "
                            f"{fixed(math.exp(-1))} and {fixed(math.exp(-0.2))}.")  # fmt: skip
    flat = tile_walk(torch.zeros(1, 4), torch.ones(4), 2).data["states"]
    assert "Tile 2 of 2: no larger maximum, so the earlier sums stay as they are. For q0" in flat[2]["said"]


def test_in_the_example_each_maximum_changes_last_in_another_block():
    found = [[row[0] for row in state["texts"]] for state in tile_walk().data["states"]]
    assert len(found) == 5
    last = [max(t for t in range(1, 5) if found[t][i] != found[t - 1][i]) for i in range(4)]
    assert last == [1, 2, 3, 4]


def test_the_picture_before_the_first_tile():
    view = tile_walk(SCORES, VALUE)
    found = parts(view)
    assert [found[f"c{i}"][1].text for i in range(5)] == [fixed(x, 1) for x in SCORES[0].tolist()]
    assert {found[f"c{i}"][0].get("fill-opacity") for i in range(15)} == {"0"}
    assert found["t00"].text == "−∞"
    assert found["tile"].get("width") == "0"
    whole = (SCORES.double().softmax(-1) @ VALUE.double()).tolist()
    for x in whole:
        assert f">{fixed(x)}</text>" in view.body
    assert f"q0 {fixed(whole[0])}, q1 {fixed(whole[1])}, q2 {fixed(whole[2])}." in view.description
    assert view.status == view.data["states"][0]["said"]


REFUSED = {
    "integers": (lambda: tile_walk(SCORES.long(), VALUE), TypeError, "scores must be a floating-point tensor"),
    "a vector": (lambda: tile_walk(SCORES[0], VALUE), ValueError, r"scores must be \(L_q, L_k\).*got \(5,\)"),
    "many keys": (lambda: tile_walk(torch.zeros(2, 13), torch.zeros(13)), ValueError, r"12 keys, got \(2, 13\)"),
    "many queries": (lambda: tile_walk(torch.zeros(7, 2), torch.zeros(2)), ValueError, r"6 queries .*got \(7, 2\)"),
    "values": (lambda: tile_walk(SCORES, VALUE[:4]), ValueError, r"value must be \(5,\).*got \(4,\)"),
    "large scores": (lambda: tile_walk(2 * SCORES, VALUE), ValueError, "scores must be at most 9.9 in size, got 19.8"),
    "large values": (lambda: tile_walk(SCORES, 9 * VALUE), ValueError, "value must be at most 9.9 in size, got 27"),
    "NaN": (lambda: tile_walk(SCORES / 0, VALUE), ValueError, "scores must be finite"),
    "block": (lambda: tile_walk(SCORES, VALUE, 6), ValueError, "block_size must be at most 5, got 6"),
    "rows": (
        lambda: tile_walk(SCORES, VALUE, queries_per_tile=4), ValueError, "queries_per_tile must be at most 3, got 4",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_drawn_is_refused(name):
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call()
