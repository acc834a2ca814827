"""Views of the chapter `scaled_dot_product`, without a browser: the picture as it stands, its data and its errors."""

import math
import re

import pytest
import torch
import torch.nn.functional as F
from shown import number_in

from course_kit.viz import attention_calculator, scale_explorer

QUERY = torch.tensor([[2.0, 0, 0, 2], [0, 1, 1, 0], [1, 1, -1, 1]])
KEY = torch.tensor([[1.0, 0, 0, 1], [0, 2, 2, 0], [1, -1, 1, 1]])
VALUE = torch.tensor([[3.0, 0], [0, 3], [3, 3]])


def cells(view, row):
    """The numbers of a query's row, step after step."""
    return [
        number_in(text)
        for text in re.findall(rf'data-k="c{row}"[^>]*><rect[^>]*></rect><text[^>]*>([^<]+)<', view.body)
    ]


def drawn(n, d, num_keys, seed=0, shared=False):
    generator = torch.Generator().manual_seed(seed)
    query = torch.randn(n, d, generator=generator, dtype=torch.float64)
    shape = (num_keys, d) if shared else (n, num_keys, d)
    return query, torch.randn(shape, generator=generator, dtype=torch.float64)


# attention_calculator -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("len_q", "len_k", "d_k", "d_v"), [(3, 2, 4, 1), (1, 1, 1, 1), (4, 4, 4, 4), (2, 3, 1, 4)])
def test_every_step_is_that_of_torch(len_q, len_k, d_k, d_v):
    generator = torch.Generator().manual_seed(3)
    query, key, value = (
        torch.randn(shape, generator=generator, dtype=torch.float64)
        for shape in ((len_q, d_k), (len_k, d_k), (len_k, d_v))
    )
    view = attention_calculator(query, key, value)
    scores = query @ key.T
    output = F.scaled_dot_product_attention(query, key, value)
    for i in range(len_q):
        scaled = scores[i] / math.sqrt(d_k)
        expected = torch.cat([scores[i], scaled, scaled.softmax(-1), output[i]])
        assert cells(view, i) == pytest.approx(expected.tolist(), abs=5.01e-4)
    assert view.data == {"query": query.tolist(), "key": key.tolist(), "value": value.T.tolist()}


def test_the_worked_example_is_that_of_the_page():
    view = attention_calculator(QUERY, KEY, VALUE)
    assert cells(view, 1) == [0, 4, 0, 0, 2, 0, 0.107, 0.787, 0.107, 0.639, 2.68]
    assert "3 queries of 4 features, 3 keys. score q·k: 4.00 0.00 4.00;" in view.description
    assert view.body.count("<input") == 30
    assert 'aria-label="query 3, feature 3" value="-1"' in view.body
    assert 'data-k="value 1 0" aria-label="value 1, feature 2" value="0"' in view.body


@pytest.mark.parametrize(("d_k", "d_v"), [(4, 1), (1, 4), (3, 2)])
def test_the_divisor_is_the_root_of_the_keys_features_and_columns_are_keys_or_features(d_k, d_v):
    view = attention_calculator(torch.ones(2, d_k), torch.ones(3, d_k), torch.ones(3, d_v))
    assert f"÷ √{d_k}: " in view.description
    pictures = re.findall(r"<svg.*?</svg>", view.body, re.DOTALL)
    titles = [re.search(r">([^<]+)</text>", picture)[1] for picture in pictures]
    assert titles == ["score q·k", f"÷ √{d_k}", "weight (softmax)", "output Σ weight·v"]
    for number, picture in enumerate(pictures):
        columns = re.findall(r'class="small(?: key)?">(k?\d)</text>', picture)[-(d_v if number == 3 else 3) :]
        assert columns == ([str(j + 1) for j in range(d_v)] if number == 3 else ["k1", "k2", "k3"])
        assert re.findall(r'class="small query">(q\d)<', picture) == ["q1", "q2"]


def test_a_weights_cell_is_as_dark_as_the_weight_is_large():
    view = attention_calculator(QUERY, KEY, VALUE)
    picture = re.findall(r"<svg.*?</svg>", view.body, re.DOTALL)[2]
    cells = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)"[^>]*fill-opacity="([\d.e-]+)"', picture)
    weights = (QUERY @ KEY.T / 2).softmax(-1)
    assert [float(shade) for *_, shade in cells] == pytest.approx(weights.flatten().tolist(), abs=1e-5)
    places = [(float(x), float(y)) for x, y, _ in cells]
    assert places == sorted(places, key=lambda place: place[::-1])  # row by row, from left to right


def test_a_single_number_is_one_of_its_kind():
    view = attention_calculator(torch.ones(1, 1), torch.ones(1, 1), torch.ones(1, 1))
    assert view.description.startswith("1 query of 1 feature, 1 key.")


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": torch.ones(5, 4)}, r"query must be a tensor.*1 to 4 of each.*got \(5, 4\).*query\[:4, :4\]"),
        ({"key": torch.ones(3, 0)}, r"key must be a tensor.*got \(3, 0\)"),
        ({"value": torch.ones(3)}, r"value must be a tensor.*got \(3,\)"),
        ({"value": None}, "value must be a tensor.*got NoneType"),
        ({"query": torch.ones(3, 2)}, r"as many features as a query, got key \(3, 4\) and query \(3, 2\)"),
        ({"value": torch.ones(2, 2)}, r"as many rows as there are values, got key \(3, 4\) and value \(2, 2\)"),
        ({"query": QUERY * float("nan")}, "must be finite"),
        ({"value": VALUE * 5}, "value must lie between -10 and 10, got a number of size 15; scale it down"),
    ],
)
def test_what_cannot_be_calculated_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        attention_calculator(**{"query": QUERY, "key": KEY, "value": VALUE, **change})


# scale_explorer -------------------------------------------------------------------------------------------------------


def size_of_derivative(weights):
    """By the matrix itself."""
    matrix = torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]
    return matrix.flatten(-2).norm(dim=-1)


@pytest.mark.parametrize("shared", [False, True])
def test_its_numbers_are_those_of_torch(shared):
    query, key = drawn(31, 64, 7, shared=shared)
    view = scale_explorer(query, key)
    assert view.data["widths"] == [4, 8, 16, 32, 64]
    for d, pair in zip(view.data["widths"], view.data["states"], strict=True):
        for state, divisor in zip(pair, (1, math.sqrt(d)), strict=True):
            keys = key if not shared else key.expand(31, 7, 64)
            scores = (keys[..., :d] @ query[:, :d, None]).squeeze(-1) / divisor
            weights = scores.softmax(-1)
            entropy = torch.distributions.Categorical(weights).entropy()
            assert float(state[1]) == pytest.approx(scores.std(correction=0).item(), abs=5.01e-4)
            assert float(state[2]) == pytest.approx(entropy.exp().mean().item(), abs=5.01e-4)
            assert float(state[3]) == pytest.approx(size_of_derivative(weights).median().item(), abs=5.01e-6)


def test_the_panels_show_the_width_in_the_middle_first_without_then_with_division():
    query, key = drawn(31, 64, 7)
    view = scale_explorer(query, key)
    assert ">16</output>" in view.body
    scores = torch.einsum("nd,nkd->nk", query[:, :16], key[..., :16])
    shown = dict(re.findall(r'data-k="text(\d0)"[^>]*>([^<]+)<', view.body))
    assert shown == {"00": f"{scores.std(correction=0):.3f}", "10": f"{scores.std(correction=0) / 4:.3f}"}
    titles = re.findall(r">(with(?:out)?: score q·k[^<]*)<", view.body)
    assert titles == ["without: score q·k", "with: score q·k ÷ √d"]


def test_a_histogram_has_the_shape_of_its_counts():
    query, key = drawn(50, 4, 8)
    path = scale_explorer(query, key).data["states"][0][0][0]
    steps = [(int(v), int(h)) for v, h in re.findall(r"V(\d+)h(\d+)", path)]
    assert sum(h for _, h in steps) == 320  # from one end of the ruler to the other
    assert min(v for v, _ in steps) == 0  # the highest bar fills the height
    assert path.endswith("V110")


@pytest.mark.parametrize(("sign", "place"), [(1.0, -1), (-1.0, 0)])
def test_a_score_beyond_the_ruler_is_counted_in_its_last_bar(sign, place):
    """Twenty scores of 0 and one of 100, whose spread is 21.3: the ruler ends at 80, and a bar is one unit wide."""
    key = torch.zeros(21, 4)
    key[-1, 0] = 100 * sign
    view = scale_explorer(torch.tensor([[1.0, 0.0, 0.0, 0.0]]), key)
    assert re.findall(r">(?:≤ )?−([\d.]+)</text>", view.body) == ["80", "80"]
    path = view.data["states"][0][0][0]
    bars = [int(v) for v, h in re.findall(r"V(\d+)h(\d+)", path) for _ in range(int(h) // 2)]
    assert len(bars) == 160
    assert bars[place] == 110 - 6  # a twentieth of the highest bar
    assert sum(bar < 110 for bar in bars) == 2


def test_the_ruler_is_one_for_all_and_ends_at_a_plain_number():
    body = scale_explorer(*drawn(200, 1024, 4)).body
    assert re.findall(r">(?:≤ )?−([\d.]+)</text>", body) == ["100", "100"]


def test_outermost_bars_that_hold_a_tail_say_so():
    key = torch.zeros(21, 4)
    key[-1, 0] = 100.0  # beyond the ruler's 80 without the division, and within it with
    view = scale_explorer(torch.tensor([[1.0, 0.0, 0.0, 0.0]]), key)
    assert re.findall(r">(≤ −80|−80|≥ 80|80)</text>", view.body) == ["≤ −80", "≥ 80", "−80", "80"]
    assert "The outermost bars, marked ≤ and ≥, hold all the scores beyond the ruler." in view.note
    even = scale_explorer(torch.ones(2, 4), torch.tensor([[1.0, 1.0, 1.0, 1.0], [-1.0, -1.0, -1.0, -1.0]]))
    assert "≥" not in even.body
    assert "≥" not in even.note


def test_equal_scores_are_no_fault():
    view = scale_explorer(torch.zeros(2, 4), torch.zeros(3, 4))
    assert [state[1:3] for state in view.data["states"][0]] == [["0.000", "3.000"]] * 2


def test_its_words_name_both_ends():
    text = scale_explorer(*drawn(40, 128, 5)).description
    assert "4 features: without division spread" in text
    assert "128 features: without division spread" in text
    assert len(text) < 600


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("query", "key", "message"),
    [
        (None, torch.ones(2, 4), "query must be a tensor of finite numbers.*got NoneType"),
        (torch.ones(2, 4).long(), torch.ones(2, 4), "got torch.int64"),
        (torch.ones(2, 4), torch.full((2, 4), float("nan")), "key must be a tensor of finite"),
        (torch.ones(4), torch.ones(2, 4), r"got query \(4,\) and key \(2, 4\)"),
        (torch.ones(2, 4), torch.ones(4), "key must be|query must be"),
        (torch.ones(2, 4), torch.ones(2, 3, 5), "query must be"),
        (torch.ones(2, 4), torch.ones(3, 3, 4), r"\(3, 3, 4\)"),
        (torch.ones(0, 4), torch.ones(2, 4), r"\(0, 4\)"),
        (torch.ones(2, 4), torch.ones(1, 4), "two keys or more"),
        (torch.ones(2, 3), torch.ones(2, 3), "4 features or more, got 3"),
    ],
)
def test_what_has_no_scores_is_refused(query, key, message):
    with pytest.raises(ValueError, match=message):
        scale_explorer(query, key)
