"""Views of the chapter `scaled_dot_product`, without a browser: the picture as it stands, its data and its errors."""

import math
import re

import pytest
import torch
import torch.nn.functional as F
from shown import number_in

from course_kit.viz import attention_calculator, scale_explorer
from tests.viz.drawn import classed, drawings, parts

QUERY = torch.tensor([[2.0, 0, 0, 2], [0, 1, 1, 0], [1, 1, -1, 1]])
KEY = torch.tensor([[1.0, 0, 0, 1], [0, 2, 2, 0], [1, -1, 1, 1]])
VALUE = torch.tensor([[3.0, 0], [0, 3], [3, 3]])


def cells(view, row):
    """The cells of a query's row, step after step: a frame and a number each."""
    return [node for svg in drawings(view) for node in svg.iter() if node.get("data-k") == f"c{row}"]


def drawn(n, d, num_keys, shared=False):
    query = torch.randn(n, d, dtype=torch.float64)
    return query, torch.randn((num_keys, d) if shared else (n, num_keys, d), dtype=torch.float64)


# attention_calculator -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("len_q", "len_k", "d_k", "d_v"), [(3, 2, 4, 1), (1, 1, 1, 1), (4, 4, 4, 4), (2, 3, 1, 4)])
def test_every_step_is_that_of_torch(len_q, len_k, d_k, d_v):
    query, key, value = (torch.randn(s, dtype=torch.float64) for s in ((len_q, d_k), (len_k, d_k), (len_k, d_v)))
    view = attention_calculator(query, key, value)
    scores, output = query @ key.T, F.scaled_dot_product_attention(query, key, value)
    for i in range(len_q):
        scaled = scores[i] / math.sqrt(d_k)
        expected = torch.cat([scores[i], scaled, scaled.softmax(-1), output[i]])
        assert [number_in(cell[1].text) for cell in cells(view, i)] == pytest.approx(expected.tolist(), abs=5.01e-4)
    assert view.data == {"query": query.tolist(), "key": key.tolist(), "value": value.T.tolist()}


def test_the_worked_example_is_that_of_the_page():
    view = attention_calculator(QUERY, KEY, VALUE)
    assert [number_in(cell[1].text) for cell in cells(view, 1)] == [0, 4, 0, 0, 2, 0, 0.107, 0.787, 0.107, 0.639, 2.68]
    assert "3 queries of 4 features, 3 keys. score q·k: 4.00 0.00 4.00;" in view.description
    assert view.body.count("<input") == 30
    assert 'aria-label="query 3, feature 3" value="-1"' in view.body
    assert 'data-k="value 1 0" aria-label="value 1, feature 2" value="0"' in view.body
    single = attention_calculator(*[torch.ones(1, 1)] * 3)
    assert single.description.startswith("1 query of 1 feature, 1 key.")


def test_steps_are_tables_with_the_root_of_the_features_and_the_shades_of_the_weights():
    view = attention_calculator(QUERY, KEY, VALUE)
    weights = (QUERY @ KEY.T / 2).softmax(-1)
    titles = ["score q·k", "÷ √4", "weight (softmax)", "output Σ weight·v"]
    for number, (picture, title) in enumerate(zip(drawings(view), titles, strict=True)):
        texts = list(picture.iter("text"))
        assert texts[0].text == title
        assert [node.text for node in texts if node.get("class") == "small query"] == ["q1", "q2", "q3"]
        columns = ["1", "2"] if number == 3 else ["k1", "k2", "k3"]
        assert [node.text for node in texts[-len(columns) :]] == columns
        frames = list(picture.iter("rect"))
        places = [(float(frame.get("x")), float(frame.get("y"))) for frame in frames]
        assert places == sorted(places, key=lambda place: place[::-1])  # row by row, from left to right
        shades = weights.flatten().tolist() if number == 2 else [0.0] * len(frames)
        assert [float(frame.get("fill-opacity")) for frame in frames] == pytest.approx(shades, abs=1e-5)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": torch.ones(5, 4)}, r"query must be a tensor.*1 to 4 of each.*got \(5, 4\).*query\[:4, :4\]"),
        ({"key": torch.ones(3, 0)}, r"key must be a tensor.*got \(3, 0\)"),
        ({"query": torch.ones(3, 2)}, r"as many features as a query, got key \(3, 4\) and query \(3, 2\)"),
        ({"value": torch.ones(2, 2)}, r"as many rows as there are values, got key \(3, 4\) and value \(2, 2\)"),
        ({"value": VALUE * 5}, "value must lie between -10 and 10, got a number of size 15; scale it down"),
    ],
)
def test_what_cannot_be_calculated_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        attention_calculator(**{"query": QUERY, "key": KEY, "value": VALUE, **change})


# scale_explorer -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True])
def test_its_numbers_are_those_of_torch(shared):
    query, key = drawn(31, 64, 7, shared=shared)
    view = scale_explorer(query, key)
    assert view.data["widths"] == [4, 8, 16, 32, 64]
    for d, pair in zip(view.data["widths"], view.data["states"], strict=True):
        for (_, spread, in_use, derivative), divisor in zip(pair, (1, math.sqrt(d)), strict=True):
            scores = (key.expand(31, 7, 64)[..., :d] @ query[:, :d, None]).squeeze(-1) / divisor
            weights = scores.softmax(-1)
            matrix = torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]
            entropy = torch.distributions.Categorical(weights).entropy()
            assert float(spread) == pytest.approx(scores.std(correction=0).item(), abs=5.01e-4)
            assert float(in_use) == pytest.approx(entropy.exp().mean().item(), abs=5.01e-4)
            assert float(derivative) == pytest.approx(matrix.flatten(-2).norm(dim=-1).median().item(), abs=5.01e-6)


def test_the_panels_show_the_width_in_the_middle_first_without_then_with_division():
    view = scale_explorer(*drawn(31, 64, 7))
    assert ">16</output>" in view.body
    for which, (picture, title) in enumerate(
        zip(drawings(view), ("without: score q·k", "with: score q·k ÷ √d"), strict=True)
    ):
        assert picture[0].text == title
        names = [node.text for node in picture if node.get("class") == "small start"]
        assert names[1:] == ["spread of scores", "keys in use, of 7", "derivative, median"]
        shown = [parts(view)[f"text{which}{row}"].text for row in range(3)]
        assert shown == view.data["states"][2][which][1:]
    assert re.search("4 features: without division spread .* 64 features: without division spread", view.description)
    assert len(view.description) < 600


def test_a_histogram_has_the_shape_of_its_counts():
    path = scale_explorer(*drawn(50, 4, 8)).data["states"][0][0][0]
    steps = [(int(v), int(h)) for v, h in re.findall(r"V(\d+)h(\d+)", path)]
    assert sum(h for _, h in steps) == 320  # from one end of the ruler to the other
    assert min(v for v, _ in steps) == 0  # the highest bar fills the height
    assert path.endswith("V110")


def ends(view):
    return [
        node.text
        for node in classed(view, "small")
        if re.fullmatch(r"([≤≥] )?−?[\d.]+", node.text) and node.text != "0"
    ]


@pytest.mark.parametrize(("sign", "place"), [(1.0, -1), (-1.0, 0)])
def test_a_score_beyond_the_ruler_is_counted_in_its_last_bar_which_says_so(sign, place):
    """Twenty scores of 0 and one of 100, whose spread is 21.3: the ruler ends at 80, and a bar is one unit wide."""
    key = torch.zeros(21, 4)
    key[-1, 0] = 100 * sign
    view = scale_explorer(torch.tensor([[1.0, 0.0, 0.0, 0.0]]), key)
    path = view.data["states"][0][0][0]
    bars = [int(v) for v, h in re.findall(r"V(\d+)h(\d+)", path) for _ in range(int(h) // 2)]
    assert len(bars) == 160
    assert bars[place] == 110 - 6  # a twentieth of the highest bar
    assert sum(bar < 110 for bar in bars) == 2
    assert ends(view) == ["≤ −80", "≥ 80", "−80", "80"]  # within the ruler where it is divided
    assert "The outermost bars, marked ≤ and ≥, hold all the scores beyond the ruler." in view.note


def test_the_ruler_is_one_for_all_and_ends_at_a_plain_number():
    view = scale_explorer(*drawn(200, 1024, 4))
    assert [text.split(" ")[-1] for text in ends(view)] == ["−100", "100"] * 2
    even = scale_explorer(torch.ones(2, 4), torch.tensor([[1.0] * 4, [-1.0] * 4]))
    assert ends(even) == ["−15", "15"] * 2
    assert even.note == ""


def test_equal_scores_are_no_fault():
    view = scale_explorer(torch.zeros(2, 4), torch.zeros(3, 4))
    assert [state[1:3] for state in view.data["states"][0]] == [["0.000", "3.000"]] * 2


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("query", "key", "message"),
    [
        (torch.ones(2, 4).long(), torch.ones(2, 4), "query must be a tensor of finite numbers.*got torch.int64"),
        (torch.ones(4), torch.ones(2, 4), r"got query \(4,\) and key \(2, 4\)"),
        (torch.ones(2, 4), torch.ones(2, 3, 5), r"query must be .* key \(2, 3, 5\)"),
        (torch.ones(2, 4), torch.ones(3, 3, 4), r"\(3, 3, 4\)"),
        (torch.ones(0, 4), torch.ones(2, 4), r"\(0, 4\)"),
        (torch.ones(2, 4), torch.ones(1, 4), "two keys or more"),
        (torch.ones(2, 3), torch.ones(2, 3), "4 features or more, got 3"),
    ],
)
def test_what_has_no_scores_is_refused(query, key, message):
    with pytest.raises(ValueError, match=message):
        scale_explorer(query, key)
