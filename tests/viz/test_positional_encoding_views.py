"""The table of positions and the rotary pair: what is drawn and said before anybody touches them."""

import math
import re

import pytest
import torch
from shown import as_shown

from course_kit.viz import rotary_pair, sinusoid_probe
from course_lib import apply_rotary, sinusoidal_encoding
from tests.viz.drawn import drawings, parts

QUERY, KEY = torch.tensor([1.0, 0.4]), torch.tensor([0.6, -0.9])


def turned(node):
    """The angle of its rotation, in degrees."""
    return float(re.match(r"rotate\(([\d.e-]+)", node.get("transform"))[1])


@pytest.mark.parametrize(("length", "d_model"), [(1, 2), (7, 5), (32, 16), (64, 32)])
def test_a_table_of_any_size_is_drawn_whole(length, d_model):
    view = sinusoid_probe(sinusoidal_encoding(length, d_model), position=0)
    assert sum(path.get("d").count("M") for path in parts(view)["cells"]) == length * d_model
    assert len(view.data["table"]) == length
    assert len(view.html()) < 100_000


def test_a_row_is_told_in_words_and_similarity_and_the_hands_show_another_that_is_not_given_away():
    table = sinusoidal_encoding(9, 6)
    view = sinusoid_probe(table, position=8, column=3)
    drawn = parts(view)
    assert f"Position 0, column 3 is {table[0, 3]:.3f}: cos(0 / 10000^(2/6))" in view.description
    curve = [tuple(map(float, p.split())) for p in re.split("[ML]", drawn["curve"].get("d"))[1:]]
    similarity = torch.cosine_similarity(table[0], table, dim=-1)
    assert [60 - y for _, y in curve] == pytest.approx((50 * similarity).tolist(), abs=1e-3)
    assert curve[0] == (160, 10)  # itself, in the middle
    assert view.data["position"] == 8
    assert 'data-k="position" min="0" max="8" step="1" value="0"' in view.body
    assert "osition 8" not in repr(view)
    angles = [math.degrees(8 * 10000 ** (-2 * i / 6)) for i in range(3)]
    assert [turned(drawn[f"hand{i}"]) for i in range(3)] == pytest.approx(angles, rel=1e-4)
    assert "they have turned by " + ", ".join(f"{angle % 360:.0f}°" for angle in angles) + "." in view.description
    assert all(drawn[f"guess{i}"].get("style") == "display:none" for i in range(3))


def test_a_cell_of_the_table_is_shaded_at_its_position_and_column():
    """Positions go downwards, columns to the right, from −1 (nothing) to 1; only one entry is dark."""
    table = torch.full((4, 3), -1.0)
    table[2, 1] = 1.0
    drawn = parts(sinusoid_probe(table, position=3, column=2))
    light, dark = sorted(drawn["cells"], key=lambda path: float(path.get("fill-opacity")))
    assert (light.get("fill-opacity"), dark.get("fill-opacity")) == ("0", "1")
    assert light.get("d").count("M") == 11
    x, y, width, height = map(float, re.fullmatch(r"M(\S+) (\S+)h(\S+)v(\S+)h-\S+z", dark.get("d")).groups())
    assert (x, y, width) == pytest.approx((296 / 3, 2 * height, 296 / 3), rel=1e-3)
    assert [float(drawn["mark"].get(side)) for side in "xy"] == pytest.approx([2 * width, 0], rel=1e-3)
    assert float(drawn["row"].get("y")) == 0


def test_rows_and_columns_of_the_table_are_numbered_at_their_places():
    (svg,) = [s for s in drawings(sinusoid_probe(sinusoidal_encoding(32, 10))) if s.get("viewBox")[-3:] == "358"]
    numbers = [node for node in svg.iter("text") if node.text.isdigit()]
    rows = {int(node.text): float(node.get("y")) for node in numbers if "end" in node.get("class")}
    columns = {int(node.text): float(node.get("x")) for node in numbers if "end" not in node.get("class")}
    assert rows == pytest.approx({row: 10 * (row + 0.5) for row in range(0, 32, 2)})
    assert columns == pytest.approx({column: 24 + 29.6 * (column + 0.5) for column in range(10)}, rel=1e-4)


@pytest.mark.parametrize(("pairs", "rows"), [(1, [1]), (5, [5]), (7, [4, 3]), (16, [6, 6, 4])])
def test_clocks_are_in_rows_of_nearly_the_same_length(pairs, rows):
    drawn = parts(sinusoid_probe(sinusoidal_encoding(9, 2 * pairs)))
    heights = [drawn[f"clock{i}"].get("cy") for i in range(pairs)]
    assert [heights.count(y) for y in dict.fromkeys(heights)] == rows
    assert all(float(drawn[f"clock{i}"].get("r")) > 20 for i in range(pairs))


def test_a_rotary_pair_is_turned_as_the_library_turns_it():
    """Second feature upwards, from the first to the second: (1, 0) by a right angle becomes (0, 1)."""
    view = rotary_pair(QUERY, KEY, angle=1.0, positions=(5, 2))
    scale = 140 / max(QUERY.norm(), KEY.norm()).item()
    expected, drawn = apply_rotary(torch.stack([QUERY, KEY]), torch.tensor([5, 2])), parts(view)
    for name, before, after in (("query", QUERY, expected[0]), ("key", KEY, expected[1])):
        node = drawn[name]
        x, y = map(float, re.fullmatch(r"M160 160L(\S+) (\S+)", node.get("d")).groups())
        assert (x, y) == pytest.approx((160 + scale * before[0].item(), 160 - scale * before[1].item()), abs=1e-2)
        assert node.get("transform").endswith(" 160 160)")
        # On the screen y points downwards, and a positive angle turns clockwise.
        cos, sin = math.cos(math.radians(turned(node))), math.sin(math.radians(turned(node)))
        shown = (cos * (x - 160) - sin * (y - 160), -(sin * (x - 160) + cos * (y - 160)))
        assert shown == pytest.approx((scale * after).tolist(), abs=1e-2)
    assert drawn["score"].text == as_shown((expected[0] @ expected[1]).item())
    assert (drawn["offset"].text, drawn["query-turn"].text) == ("3", "5 · 1 = 5.000")


def test_a_score_depends_on_the_distance_alone():
    query, key = torch.randn(2), torch.randn(2)
    views = [rotary_pair(query, key, angle=0.7, positions=(n + 3, n)) for n in (0, 1, 5, 17)]
    assert len({parts(view)["score"].text for view in views}) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: sinusoid_probe(torch.zeros(65, 4)),
            r"at most 64 positions and 2 to 32 columns, got \(65, 4\); show a",
        ),
        (lambda: sinusoid_probe(torch.zeros(0, 4)), r"got \(0, 4\)"),
        (lambda: sinusoid_probe(torch.zeros(4, 4), position=4), "position must be at most 3, got 4"),
        (lambda: sinusoid_probe(torch.zeros(4, 4), column=4), "column must be at most 3, got 4"),
        (lambda: sinusoid_probe(torch.zeros(4, 4), base=0), "base must be above 0, got 0"),
        (lambda: rotary_pair(torch.ones(3), torch.ones(2)), r"query must be \(2,\).*got \(3,\)"),
        (lambda: rotary_pair(torch.zeros(2), torch.zeros(2)), "nothing to turn"),
        (lambda: rotary_pair(QUERY, KEY, positions=(25, 0)), "must be at most 24, got 25, as longest is 24"),
    ],
)
def test_what_cannot_be_shown_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
