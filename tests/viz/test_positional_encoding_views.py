"""The table of positions and the rotary pair: what is drawn and said before anybody touches them."""

import math
import re
from xml.etree import ElementTree

import pytest
import torch
from shown import as_shown

from course_kit.viz import rotary_pair, sinusoid_probe
from course_lib import apply_rotary, sinusoidal_encoding


def drawings(view):
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", view.body, re.DOTALL)]


def part(view, key):
    (found,) = [node for svg in drawings(view) for node in svg.iter() if node.get("data-k") == key]
    return found


@pytest.mark.parametrize(("length", "d_model"), [(1, 2), (7, 5), (32, 16), (64, 32)])
def test_a_table_of_any_size_is_drawn_whole(length, d_model):
    view = sinusoid_probe(sinusoidal_encoding(length, d_model), position=0)
    cells = sum(path.get("d").count("M") for path in part(view, "cells"))
    assert cells == length * d_model
    assert len(view.data["table"]) == length
    assert len(view.html()) < 100_000


def test_a_row_is_told_in_words_clock_hands_and_similarity():
    table = sinusoidal_encoding(9, 6)
    view = sinusoid_probe(table, position=4, column=3)
    value = f"{table[0, 3].item():.3f}"
    assert f"Position 0, column 3 is {value}: cos(0 / 10000^(2/6))" in view.description
    turned = [float(re.search(r"rotate\(([\d.e-]+)\)", part(view, f"hand{i}").get("transform"))[1]) for i in range(3)]
    assert turned == pytest.approx([math.degrees(4 * 10000 ** (-2 * i / 6)) for i in range(3)], rel=1e-4)
    curve = [tuple(map(float, p.split())) for p in re.split("[ML]", part(view, "curve").get("d"))[1:]]
    similarity = torch.cosine_similarity(table[0], table, dim=-1)
    assert [60 - y for _, y in curve] == pytest.approx((50 * similarity).tolist(), abs=1e-3)
    assert curve[0] == (160, 10)  # itself, in the middle


def test_the_hands_show_a_position_that_is_not_the_chosen_one():
    view = sinusoid_probe(sinusoidal_encoding(9, 6), position=8, column=3)
    assert view.data["position"] == 8
    assert 'data-k="position" min="0" max="8" step="1" value="0"' in view.body
    assert "osition 8" not in repr(view)
    turned = [8 * 180 / math.pi * 10000 ** (-2 * i / 6) for i in range(3)]
    assert "they have turned by " + ", ".join(f"{angle % 360:.0f}°" for angle in turned) + "." in view.description
    for i in range(3):
        assert part(view, f"guess{i}").get("style") == "display:none"
        assert part(view, f"guess{i}").get("stroke-dasharray")


def test_shades_go_from_minus_one_to_one():
    view = sinusoid_probe(torch.tensor([[-1.0, 1.0], [0.0, 1.0]]), position=0)
    shades = {float(path.get("fill-opacity")): path.get("d").count("M") for path in part(view, "cells")}
    assert shades[0.0] == 1
    assert shades[1.0] == 2


def test_a_cell_of_the_table_is_shaded_at_its_position_and_column():
    """Positions go downwards, columns to the right: only the entry of position 2, column 1 is dark."""
    table = torch.full((4, 3), -1.0)
    table[2, 1] = 1.0
    view = sinusoid_probe(table, position=3, column=2)
    (dark,) = [path for path in part(view, "cells") if float(path.get("fill-opacity")) == 1]
    x, y, width, height = map(float, re.fullmatch(r"M(\S+) (\S+)h(\S+)v(\S+)h-\S+z", dark.get("d")).groups())
    assert (x, y) == pytest.approx((1 * 296 / 3, 2 * height), rel=1e-3)
    assert width == pytest.approx(296 / 3, rel=1e-3)
    mark, row = part(view, "mark"), part(view, "row")
    assert (float(mark.get("x")), float(mark.get("y"))) == pytest.approx((2 * width, 0), rel=1e-3)
    assert float(row.get("y")) == 0


def test_rows_and_columns_of_the_table_are_numbered_at_their_places():
    (svg,) = [svg for svg in drawings(sinusoid_probe(sinusoidal_encoding(32, 10))) if svg.get("viewBox")[-3:] == "358"]
    numbers = [node for node in svg.iter("text") if node.text.isdigit()]
    rows = {int(node.text): float(node.get("y")) for node in numbers if "end" in node.get("class")}
    columns = {int(node.text): float(node.get("x")) for node in numbers if "end" not in node.get("class")}
    assert rows == pytest.approx({row: 10 * (row + 0.5) for row in range(0, 32, 2)})
    assert columns == pytest.approx({column: 24 + 29.6 * (column + 0.5) for column in range(10)}, rel=1e-4)


@pytest.mark.parametrize(("pairs", "rows"), [(1, [1]), (5, [5]), (7, [4, 3]), (16, [6, 6, 4])])
def test_clocks_are_in_rows_of_nearly_the_same_length(pairs, rows):
    view = sinusoid_probe(sinusoidal_encoding(9, 2 * pairs))
    heights = [part(view, f"clock{i}").get("cy") for i in range(pairs)]
    assert [heights.count(y) for y in dict.fromkeys(heights)] == rows
    assert all(float(part(view, f"clock{i}").get("r")) > 20 for i in range(pairs))


def test_the_pair_is_drawn_with_its_second_feature_upwards_and_turns_from_the_first_to_the_second():
    """As the library turns it: (1, 0) by a right angle becomes (0, 1)."""
    query, key = torch.tensor([1.0, 0.4]), torch.tensor([0.6, -0.9])
    view = rotary_pair(query, key, angle=1.0, positions=(5, 2))
    scale = 140 / max(query.norm(), key.norm()).item()
    turned = apply_rotary(torch.stack([query, key]), torch.tensor([5, 2]))
    for name, before, after in (("query", query, turned[0]), ("key", key, turned[1])):
        node = part(view, name)
        x, y = map(float, re.fullmatch(r"M160 160L(\S+) (\S+)", node.get("d")).groups())
        assert (x, y) == pytest.approx((160 + scale * before[0].item(), 160 - scale * before[1].item()), abs=1e-2)
        degrees, *centre = map(float, re.fullmatch(r"rotate\((\S+) (\S+) (\S+)\)", node.get("transform")).groups())
        assert centre == [160, 160]
        # On the screen y points downwards, and a positive angle turns clockwise.
        cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        drawn = (cos * (x - 160) - sin * (y - 160), -(sin * (x - 160) + cos * (y - 160)))
        assert drawn == pytest.approx((scale * after).tolist(), abs=1e-2)


def test_a_rotary_pair_is_turned_as_the_library_turns_it():
    query, key = torch.tensor([1.0, 0.4]), torch.tensor([0.6, -0.9])
    view = rotary_pair(query, key, angle=1.0, positions=(5, 2))
    turned = apply_rotary(torch.stack([query, key]), torch.tensor([5, 2]))
    assert part(view, "score").text == as_shown((turned[0] @ turned[1]).item())
    assert part(view, "offset").text == "3"
    assert part(view, "query-turn").text == "5 · 1 = 5.000"
    assert float(re.search(r"rotate\((\S+)", part(view, "query").get("transform"))[1]) == pytest.approx(
        -math.degrees(5.0), rel=1e-4
    )


def test_a_score_depends_on_the_distance_alone():
    query, key = torch.randn(2), torch.randn(2)
    scores = {
        part(rotary_pair(query, key, angle=0.7, positions=(n + 3, n)), "score").text for n in (0, 1, 5, 17)
    }  # fmt: skip
    assert len(scores) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sinusoid_probe(torch.zeros(5)), r"at most 64 positions and 2 to 32 columns, got \(5,\)"),
        (lambda: sinusoid_probe(torch.zeros(65, 4)), r"got \(65, 4\); show a part of it"),
        (lambda: sinusoid_probe(torch.zeros(0, 4)), r"got \(0, 4\)"),
        (lambda: sinusoid_probe(torch.zeros(4, 4), position=4), "position must be at most 3, got 4"),
        (lambda: sinusoid_probe(torch.zeros(4, 4), column=-1), "column must be at least 0, got -1"),
        (lambda: sinusoid_probe(torch.zeros(4, 4), base=0), "base must be above 0, got 0"),
        (lambda: sinusoid_probe(torch.full((4, 4), math.nan)), "must be finite"),
        (lambda: rotary_pair(torch.ones(3), torch.ones(2)), r"query must be \(2,\).*got \(3,\)"),
        (lambda: rotary_pair(torch.ones(2), torch.ones(1, 2)), r"key must be \(2,\).*got \(1, 2\)"),
        (lambda: rotary_pair(torch.zeros(2), torch.zeros(2)), "nothing to turn"),
        (
            lambda: rotary_pair(torch.ones(2), torch.ones(2), positions=(25, 0)),
            "positions must be at most 24, got 25, as longest is 24",
        ),
        (lambda: rotary_pair(torch.tensor([math.inf, 0]), torch.ones(2)), "must be finite"),
    ],
)
def test_what_cannot_be_shown_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
