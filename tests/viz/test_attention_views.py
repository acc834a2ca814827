"""Views of the chapter `attention`, without a browser: the picture as it stands, its data, its words, its errors."""

import json
import re

import pytest
import torch
from shown import as_shown

from course_kit.viz import alignment, query_plane
from tests.viz.drawn import classed, drawings, parts, written

KEY = torch.tensor([[2.0, 0.5], [-1.0, 1.5], [1.0, -2.0]])
VALUE = torch.tensor([1.0, 3.0, -2.0])
QUERY = torch.tensor([0.5, -0.25])
NAMES = ["sun", "rain", "wind"]
WEIGHTS = torch.tensor([[0.7, 0.2, 0.1], [0.125, 0.375, 0.5]])


def number(node, *names):
    return [float(node.get(name)) for name in names]


# query_plane ----------------------------------------------------------------------------------------------------------


def test_the_plane_shows_the_numbers_of_torch():
    view = query_plane(KEY, VALUE, QUERY, labels=NAMES)
    weights, drawn = torch.softmax(KEY @ QUERY, 0).tolist(), parts(view)
    for i, (name, weight, value) in enumerate(zip(NAMES, weights, VALUE.tolist(), strict=True)):
        assert drawn[f"weight{i}"].text == f"{weight:.3f}"
        assert float(drawn[f"bar{i}"].get("width")) == pytest.approx(100 * weight, abs=1e-3)
        assert f"{name} {weight:.3f}" in view.description
        height = drawn[f"weight{i}"].get("y")
        row = [node.text for node in drawings(view)[1].iter("text") if node.get("y") == height]
        assert row == [name, f"{weight:.3f}", as_shown(value, 2)]
    assert drawn["output"].text == as_shown((torch.tensor(weights) @ VALUE).item())
    assert (view.data["key"], view.data["query"]) == (KEY.tolist(), QUERY.tolist())


def test_keys_and_query_are_drawn_where_their_features_are():
    """The first feature to the right, the second upwards, both in one scale from the middle; larger weights larger."""
    view = query_plane(KEY, VALUE, QUERY)
    discs = [number(node, "cx", "cy", "r") for node in classed(view, "key") if node.tag == "circle"]
    (at,) = classed(view, "query")
    scale = (discs[0][0] - 160) / KEY[0, 0].item()
    assert scale > 0

    def place(point):
        return [160 + scale * point[0].item(), 160 - scale * point[1].item()]

    assert len(discs) == 6  # of each key the weight, and its place
    for i, point in enumerate(KEY):
        (x, y, r), (*middle, _) = discs[2 * i : 2 * i + 2]
        assert [x, y] == middle == pytest.approx(place(point), abs=1e-3)
        assert 0 < min(x, y) < max(x, y) < 320
        assert number(parts(view)[f"name{i}"], "x", "y") == pytest.approx([x, y - r - 8], abs=1e-3)
    assert number(at, "cx", "cy") == pytest.approx(place(QUERY), abs=1e-3)
    arrow = re.fullmatch(r"M160(?:\.0)? 160(?:\.0)?L(\S+) (\S+)", parts(view)["arrow"].get("d")).groups()
    assert [float(x) for x in arrow] == pytest.approx(place(QUERY), abs=1e-3)
    radii = [r for _, _, r in discs[::2]]
    assert sorted(range(3), key=radii.__getitem__) == torch.softmax(KEY @ QUERY, 0).argsort().tolist()


def test_all_keys_with_the_largest_weight_are_named():
    status = query_plane(torch.tensor([[1.0, 1.0], [-1.0, 0.0], [1.0, 1.0]]), VALUE, torch.tensor([0.5, 0.25])).status
    assert status.startswith("With the query at 0.50, 0.25, “k0”, “k2” each get 0.")
    assert "“k0” gets 0." in query_plane(KEY, VALUE).status


@pytest.mark.parametrize(
    ("key", "start"),
    [
        (KEY.tolist(), [1.2, 0.3]),  # on the way to the first key
        ([[2.0, 0.5], [1.2, 0.3], [1.0, -2.0]], None),
        ([[1.0, 1.0], [0.6, 0.6], [0.5, 0.5], [0.2, 0.3]], None),
        ([[0.1, 0.0], [3.0, 3.0], [-3.0, 1.0]], [0.05, 0.0]),  # no room on the way to it
    ],
)
def test_the_disc_of_the_query_starts_beside_every_key(key, start):
    view = query_plane(torch.tensor(key), torch.ones(len(key)))
    distances = (torch.tensor(view.data["query"]) - torch.tensor(key)).norm(dim=-1) * view.data["scale"]
    assert view.data["query"] == pytest.approx(start) if start else distances.min() >= 26


def test_one_key_of_whole_numbers_with_a_long_name_takes_all():
    view = query_plane(torch.tensor([[1, 2]]), torch.tensor([3]), labels=["<incomprehensibilities>"])
    assert "&lt;incomprehensib…" in view.body
    assert json.loads(json.dumps(view.data))["value"] == [3]
    assert view.description.startswith("1 key in a plane")
    assert "<incomprehensib… 1.000" in view.description


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((torch.ones(3, 4), VALUE), r"key must be a tensor \(L_k, 2\).*got torch.float32 \(3, 4\); choose two"),
        ((torch.ones(13, 2), torch.ones(13)), r"1 to 12 keys.*got torch.float32 \(13, 2\)"),
        ((KEY, torch.ones(2)), r"value must be a tensor \(3,\).*got torch.float32 \(2,\)"),
        ((KEY, VALUE, torch.ones(3)), r"query must be a tensor \(2,\).*got torch.float32 \(3,\)"),
    ],
)
def test_what_fits_no_plane_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        query_plane(*arguments)


# alignment ------------------------------------------------------------------------------------------------------------


def test_lines_as_thick_as_the_weights_join_their_words_and_cells_are_as_dark():
    view = alignment(WEIGHTS, ["je", "sais"], ["I", "do", "know"])
    drawn = parts(view)
    heights = {node.text: node.get("y") for node in drawings(view)[0].iter("text")}
    assert len({heights[name] for name in ("I", "do", "know")}) == 3
    for i, (query, row) in enumerate(zip(("je", "sais"), WEIGHTS.tolist(), strict=True)):
        lines = drawn[f"l{i}"]
        assert [number(line, "stroke-width")[0] for line in lines] == pytest.approx([12 * w for w in row])
        ends = [re.fullmatch(r"M\S+ (\S+)L\S+ (\S+)", line.get("d")).groups() for line in lines]
        assert ends == [(heights[query], heights[key]) for key in ("I", "do", "know")]
        assert [number(cell, "fill-opacity")[0] for cell in drawn[f"r{i}"]] == pytest.approx(row)
    assert {"je", "sais", "I", "do", "know", "0.70"} <= set(written(view))
    assert "“je”: “I” (0.70)" in view.description
    assert len(parts(alignment(torch.tensor([[0.995, 0.005]])))["l0"]) == 1  # too thin a line is left out


def test_a_third_decimal_is_that_of_the_tensor():
    weights = torch.rand(7, 11, generator=torch.Generator().manual_seed(0))
    for shown, exact in zip(alignment(weights).data["weights"], weights.tolist(), strict=True):
        assert [f"{x:.3f}" for x in shown] == [f"{x:.3f}" for x in exact]


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (40, 1), (8, 8), (9, 3), (40, 40)])
def test_it_takes_one_token_to_forty(shape):
    weights = torch.softmax(torch.randn(shape), -1)
    view = alignment(weights)
    assert len(view.html()) < 225_000
    assert sum(len(parts(view)[f"r{i}"]) for i in range(shape[0])) == weights.numel()
    assert sum(bool(re.fullmatch(r"\d\.\d\d", text)) for text in written(view)) == (
        weights.numel() if max(shape) <= 8 else 0
    )
    if shape == (1, 40):  # where columns are narrow only some are named
        assert 10 <= len(re.findall(r"rotate\(-45\)", view.body)) < 40


def test_a_weight_is_written_in_the_light_colour_above_seven_tenths_only():
    groups = [
        g for g in classed(alignment(torch.tensor([[0.7, 0.3], [0.29, 0.71]])), "cell") if g.get("pointer-events")
    ]
    written = [(group.get("class"), [text.text for text in group]) for group in groups]
    assert written == [("cell", ["0.70", "0.30"]), ("cell high", []), ("cell", ["0.29"]), ("cell high", ["0.71"])]


@pytest.mark.parametrize(
    ("weights", "queries", "start"),
    [
        ([[1.0, 0, 0, 0], [0, 0, 0, 1.0], [0, 1.0, 0, 0], [0, 0, 1.0, 0]], None, 1),  # whose lines cross most
        ([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]], None, 0),
        ([[1.0, 0, 0], [0.4, 0.6, 0], [0, 0, 1.0]], None, 1),  # without crossings, the most spread one
        # one clear crossing counts for more than many faint ones
        ([[0.9, 0.1, 0, 0], [0, 0, 0.7, 0.3], [0, 0.9, 0.1, 0], [0.4, 0.2, 0.2, 0.2]], None, 2),
        ([[0, 1.0, 0], [0, 0.8, 0.2], [0, 1.0, 0], [1.0, 0, 0]], None, 3),
        ([[0, 1.0, 0], [0, 0.8, 0.2], [0, 1.0, 0], [1.0, 0, 0]], ["a", "b", ".", "<eos>"], 1),  # end tokens come last
        ([[0, 1.0, 0], [0, 0.8, 0.2], [0, 1.0, 0], [1.0, 0, 0]], [".", ".", ".", "<eos>"], 3),
    ],
)
def test_an_alignment_starts_with_a_telling_query(weights, queries, start):
    assert alignment(torch.tensor(weights), queries).data["start"] == start


def test_an_alignment_starts_where_it_is_told_to():
    view = alignment(WEIGHTS, ["a", "b"], ["x", "y", "z"], start=1)
    assert (view.data["start"], view.status) == (1, "“b” looks most at “z” (0.500), “y” (0.375), “x” (0.125).")
    words = [node for node in drawings(view)[0].iter("g") if node.get("role") == "button"]  # all can be chosen
    assert [(node.get("aria-label"), *number(node[0], "fill-opacity")) for node in words] == [
        ("query a", 0.1), ("query b", 0.4), ("key x", 0.1), ("key y", 0.1), ("key z", 0.1),
    ]  # fmt: skip


def test_weights_for_which_there_are_no_lines_are_refused():
    with pytest.raises(ValueError, match=r"at most 40 rows.*got \(41, 2\).*weights\[:40, :40\]"):
        alignment(torch.full((41, 2), 0.5))
    with pytest.raises(ValueError, match="start must be at most 2, got 3; it is the index of a query"):
        alignment(torch.eye(3), start=3)
