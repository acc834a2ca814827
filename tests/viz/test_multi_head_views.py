"""Views of the chapter `multi_head`, without a browser: the pictures as they stand, their data, words and errors."""

import re

import pytest
import torch
from shown import number_in

from course_kit.nn import MultiHeadAttention
from course_kit.viz import head_grid, head_split
from course_kit.viz.view_numbers import _DIGITS, fixed
from course_lib.multi_head import split_heads
from course_lib.scaled_dot_product import scaled_dot_product_attention

TOKENS = ["the", "cat", "sat"]


def layer_and_heads(num_heads=2, d_model=6, length=3, bias=True):
    """A layer, its input, its heads `(H, L, d_head)`, their weights `(H, L, L)`, and the output `(L, d_model)`."""
    torch.manual_seed(7)
    layer = MultiHeadAttention(d_model, num_heads, bias=bias).requires_grad_(False)
    if bias:
        torch.nn.init.normal_(layer.out_proj.bias)
    x = torch.randn(1, length, d_model)
    q, k, v = (split_heads(p(x), num_heads) for p in (layer.q_proj, layer.k_proj, layer.v_proj))
    heads, weights = scaled_dot_product_attention(q, k, v)
    return layer, layer.v_proj(x)[0], heads[0], weights[0], layer(x, x, x)[0][0]


def contributions_of(layer, heads):
    return heads @ layer.out_proj.weight.T.unflatten(0, (len(heads), -1))


# head_split -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("num_heads", "bias"), [(2, True), (3, False), (6, True), (1, True)])
def test_the_additions_are_those_of_torch(num_heads, bias):
    layer, values, heads, _, output = layer_and_heads(num_heads, bias=bias)
    view = head_split(values, heads, layer.out_proj.weight, layer.out_proj.bias, tokens=TOKENS)
    shown = {key: number_in(n) for key, n in re.findall(r'data-k="(n[\d.]+)"[^>]*>([^<]+)<', view.body)}
    digits = 3 if num_heads <= 3 else 2
    parts = contributions_of(layer, heads)
    assert len(shown) == 3 * 6 * (num_heads + 2)
    for t in range(3):
        for f in range(6):
            row = [shown[f"n{t}.{f}.{c}"] for c in range(num_heads + 2)]
            assert row[-1] == pytest.approx(output[t, f].item(), abs=0.51 * 10**-digits)
            for h in range(num_heads):
                assert row[h] == pytest.approx(parts[h, t, f].item(), abs=0.51 * 10**-digits)
            assert row[-2] == pytest.approx(layer.out_proj.bias[f].item() if bias else 0.0, abs=0.51 * 10**-digits)
            assert sum(row[:-1]) == pytest.approx(row[-1], abs=(num_heads + 2) * 0.51 * 10**-digits)


def test_what_is_said_of_a_head_has_the_numbers_of_torch():
    layer, values, heads, _, _ = layer_and_heads()
    view = head_split(values, heads, layer.out_proj.weight, layer.out_proj.bias, tokens=TOKENS)
    parts = contributions_of(layer, heads)
    (number,) = re.findall(r"−?\d+\.\d{3}", view.data["said"][2][1])
    assert number_in(number) == pytest.approx(parts[1, 2, 0].item(), abs=0.00051)
    assert view.data["said"][2][1] == (f"Head 2 owns features 3 to 5, and adds {number} to output feature 0 of “sat”.")


def test_a_head_at_zero_leaves_the_output_of_torch_without_it():
    layer, values, heads, _, _ = layer_and_heads(3)
    rows = layer.out_proj.weight.clone()
    rows[4, 2:4] = 0  # head 2 adds nothing to output feature 4
    parts = heads @ rows.T.unflatten(0, (3, -1))
    data = head_split(values, heads, rows, layer.out_proj.bias, tokens=TOKENS).data
    for t in range(3):
        for h in range(3):
            left = parts.sum(0)[t] + layer.out_proj.bias - parts[h, t]
            shown = [number_in(n) for n in data["without"][t][h]]
            assert shown == pytest.approx(left.tolist(), abs=0.00051)
    assert data["zeroed"][2][1] == (
        "Head 2 at zero changes 2 of 6 cells of each token in 2, and 5 of 6 output features of “sat”."
    )


def test_one_number_is_told_as_the_sum_of_products_that_stand_in_the_tables():
    layer, values, heads, _, _ = layer_and_heads()
    view = head_split(values, heads, layer.out_proj.weight, layer.out_proj.bias, tokens=TOKENS)
    parts = contributions_of(layer, heads)
    _, merged, matrix, _ = re.findall(r"<svg.*?</svg>", view.body)
    table = lambda picture: re.findall(r'class="small">(−?\d+\.\d\d)<', picture)  # noqa: E731
    for t, token in enumerate(TOKENS):
        for h in range(2):
            told = view.data["how"][t][h]
            assert f"feature 0 of “{token}” head {h + 1} adds" in told
            shown = re.findall(r"−?\d+\.\d+", told)
            assert shown[:-1:2] == table(merged)[6 * t + 3 * h : 6 * t + 3 * h + 3]
            assert shown[1:-1:2] == table(matrix)[18 * h : 18 * h + 18 : 6]  # rows of the head, first column
            assert number_in(shown[-1]) == pytest.approx(parts[h, t, 0].item(), abs=0.00051)
            sum_of_shown = sum(number_in(x) * number_in(w) for x, w in zip(shown[:-1:2], shown[1:-1:2], strict=True))
            assert sum_of_shown == pytest.approx(number_in(shown[-1]), abs=0.05)
    assert re.search(r'<p data-k="how">([^<]+)</p>', view.body).group(1) == view.data["how"][0][0]
    assert re.search(r"· \(−\d", view.data["how"][0][0] + view.data["how"][0][1])  # a negative factor in parentheses


def test_a_long_sum_of_products_is_cut_short():
    layer, values, heads, _, _ = layer_and_heads(1)
    told = head_split(values, heads, layer.out_proj.weight).data["how"][0][0]
    assert told.count(" · ") == 4
    assert " + … + " in told


def test_the_additions_say_what_their_rows_are():
    layer, values, heads, _, _ = layer_and_heads(2)
    table = re.findall(r"<svg.*?</svg>", head_split(values, heads, layer.out_proj.weight).body)[3]
    title = re.search(r'y="([\d.]+)"[^>]*>↓ feature of the output<', table)
    columns = {float(y) for y in re.findall(r'y="([\d.]+)"[^>]*>(?:head \d|bias|output)<', table)}
    assert len(columns) == 1
    assert 20 < float(title.group(1)) < min(columns) - 14  # between the picture's title and the columns'
    assert re.findall(r'class="end small">(\d)<', table) == list("012345")


@pytest.mark.parametrize("num_heads", [2, 6, 8])
def test_split_heads_count_from_one(num_heads):
    torch.manual_seed(0)
    wide = torch.randn(2, 24)
    body = head_split(wide, wide.unflatten(1, (num_heads, -1)).transpose(0, 1), torch.randn(24, 24)).body
    assert "head 0" not in body
    assert re.findall(r'<button [^>]*data-h="(\d)"[^>]*>(head \d)<', body) == [
        (str(h), f"head {h + 1}") for h in range(num_heads)
    ]
    first, second, matrix, table = re.findall(r"<svg.*?</svg>", body)
    for picture in (first, second, matrix, table):
        numbers = [int(n) for n in re.findall(r">(?:head |h)?(\d+)<", picture.split("bias")[0])]
        assert numbers[:num_heads] == list(range(1, num_heads + 1))


def test_the_first_head_lights_up_in_all_four_pictures_and_others_do_not():
    layer, values, heads, _, _ = layer_and_heads(3)
    body = head_split(values, heads, layer.out_proj.weight).body
    blocks = re.findall(r'<rect [^>]*data-h="(\d)"[^>]*fill-opacity="([\d.]+)"', body)
    assert sorted(blocks) == [("0", "0.4")] * 4 + [("1", "0.07")] * 4 + [("2", "0.07")] * 4
    assert body.count("<svg") == 4


def test_the_blocks_of_a_head_lie_on_its_features():
    layer, values, heads, _, _ = layer_and_heads(2)
    body = head_split(values, heads, layer.out_proj.weight).body
    features, merged, matrix = re.findall(r"<svg.*?</svg>", body)[:3]
    for picture in (features, merged):
        (x0, w0), (x1, _) = re.findall(r'<rect x="([\d.]+)"[^>]*?width="([\d.]+)"[^>]*data-h', picture)
        assert float(x0) + float(w0) == pytest.approx(float(x1), abs=1e-3)
    (y0, h0), (y1, _) = re.findall(r'<rect [^>]*?y="([\d.]+)"[^>]*?height="([\d.]+)"', matrix)
    assert float(y0) + float(h0) == pytest.approx(float(y1), abs=1e-3)
    shown = re.findall(r'class="small">(−?\d+\.\d\d)<', matrix)
    assert shown == [fixed(w, 2) for w in layer.out_proj.weight.T.flatten().tolist()]  # rows are what comes in


def test_wide_layers_are_drawn_without_the_numbers_of_the_tables():
    layer, values, heads, _, output = layer_and_heads(4, 24)
    view = head_split(values, heads, layer.out_proj.weight, layer.out_proj.bias)
    assert fixed(output[0, 23].item(), 2) in re.findall(r'data-k="n0.23.5"[^>]*>([^<]+)<', view.body)
    assert len(view.description) <= 600


def test_one_token_one_feature():
    view = head_split(torch.ones(1, 1), torch.full((1, 1, 1), 0.5), torch.full((1, 1), 2.0), tokens=["a<b"])
    assert "owns feature 0," in view.description
    assert "a&lt;b" in view.body
    assert view.data["said"] == [["Head 1 owns feature 0, and adds 1.000 to output feature 0 of “a<b”."]]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"features": None}, TypeError, r"features must be a tensor \(L, d_model\), got NoneType; call the module"),
        ({"heads": [1.0]}, TypeError, r"heads must be a tensor .* got list; torch.as_tensor"),
        ({"features": torch.ones(1, 3, 6)}, ValueError, r"of one sentence, got \(1, 3, 6\); choose one with \[0\]"),
        ({"heads": torch.ones(2, 4, 3)}, ValueError, r"heads must be \(H, L = 3, d_head\) .* got \(2, 4, 3\)"),
        ({"heads": torch.ones(2, 3, 2)}, ValueError, r"H · d_head = d_model = 6, got \(2, 3, 2\)"),
        ({"w_o": torch.ones(6, 5)}, ValueError, r"w_o must be \(6, 6\), as out_proj.weight is, got \(6, 5\)"),
        ({"bias": torch.ones(5)}, ValueError, r"bias must be \(6,\), as out_proj.bias is, got torch.float32 \(5,\)"),
        ({"bias": 1.0}, ValueError, r"bias must be \(6,\), as out_proj.bias is, got float"),
        ({"w_o": torch.full((6, 6), float("nan"))}, ValueError, "must be finite, got NaN"),
        ({"tokens": ["a"]}, ValueError, "tokens must have a label for each of the 3, got 1"),
    ],
)
def test_what_a_split_refuses(unchecked, change, error, message):
    good = {"features": torch.ones(3, 6), "heads": torch.ones(2, 3, 3), "w_o": torch.ones(6, 6)}
    with pytest.raises(error, match=message):
        head_split(**{**good, **change})


def test_a_split_that_would_be_illegible_is_refused():
    with pytest.raises(ValueError, match=r"at most 8 heads, 6 tokens and 32 features .* got 2, 7 and 4; take fewer"):
        head_split(torch.ones(7, 4), torch.ones(2, 7, 2), torch.ones(4, 4))


# head_grid ------------------------------------------------------------------------------------------------------------


def unpacked(text):
    of = [_DIGITS.index(c) for c in text]
    return [(a * 64 + b) / 4000 for a, b in zip(of[::2], of[1::2], strict=True)]


def test_few_weights_are_handed_over_exactly():
    weights = torch.randn(4, 5, 7).softmax(-1)
    data = head_grid(weights, list("abcde"), keys=list("tuvwxyz")).data
    assert torch.equal(torch.tensor(data["exact"]), weights.flatten())
    assert (data["queries"], data["keys"]) == (list("abcde"), list("tuvwxyz"))
    assert data["is"] == {"mean": 0, "keep": 0}


def test_all_weights_of_twelve_by_twelve_heads_fit_and_agree_in_the_third_decimal():
    torch.manual_seed(3)
    weights = (2 * torch.randn(12, 12, 16, 16)).softmax(-1)
    view = head_grid(weights, [f"token{i}" for i in range(16)])
    assert len(view.html().encode()) <= 104 * 1024
    got = unpacked(view.data["packed"])
    assert [fixed(w) for w in got] == [fixed(w) for w in weights.flatten().tolist()]


def test_dense_maps_fit_too():
    assert len(head_grid(torch.full((12, 12, 16, 16), 0.123)).html().encode()) <= 104 * 1024


def test_the_large_map_is_drawn_with_its_weights():
    weights = torch.tensor([[[0.25, 0.75, 0.0], [1.0, 0.0, 0.0]], [[0.5, 0.0, 0.5], [0.1, 0.2, 0.7]]])
    view = head_grid(weights)
    large = re.search(r'class="map".*?</svg>', view.body).group()
    rows = re.findall(r'<g transform="translate\(0 \d\)">(.*?)</g>', large)
    shades = [re.findall(r"<rect x=(\d) fill-opacity=([.\d]+) />", row) for row in rows]
    assert shades == [[("0", ".25"), ("1", ".75"), ("2", "0")], [("0", "1"), ("1", "0"), ("2", "0")]]
    assert "0: 1 0.750; 1: 0 1.000" in view.description


def test_few_maps_are_all_drawn_without_a_script():
    weights = torch.zeros(3, 2, 2)
    weights[0, 0, 1], weights[1, 1, 0], weights[2, 1, 1] = 1.0, 0.5, 0.024
    body = head_grid(weights).body
    groups = re.findall(r'<g class="shades"[^>]*>(.*?)</g>', body)
    assert [re.findall(r'd="([^"]+)" stroke-opacity="([\d.]+)"', g) for g in groups] == [
        [("M1 0.5h1", "1")],
        [("M0 1.5h1", "0.5")],
        [],
    ]
    assert re.findall(r'aria-label="(head \d)" />', body) == ["head 1", "head 2", "head 3"]


def test_layers_are_rows():
    body = head_grid(torch.full((2, 3, 4, 4), 0.25)).body
    assert re.findall(r'<rect x=(\d) aria-label="(layer \d, head \d)" />', body) == [
        (str(h), f"layer {n + 1}, head {h + 1}") for n in range(2) for h in range(3)
    ]
    assert 'd="M' in body
    small = re.search(r"<svg.*?</svg>", body).group()
    assert re.findall(r'class="small">(\d)<', small) == ["1", "2", "3"]
    assert re.findall(r'class="end small">(\d)<', small) == ["1", "2"]
    assert "Layer 1, head 1 is large" in head_grid(torch.full((2, 3, 4, 4), 0.25)).description


def test_many_heads_of_one_layer_count_on_over_the_rows():
    body = head_grid(torch.full((14, 20, 20), 0.05)).body
    small = re.search(r"<svg.*?</svg>", body).group()
    assert re.findall(r'class="small">([^<]+)<', small) == [f"+{c}" for c in range(12)]
    assert re.findall(r'class="end small">(\d+)<', small) == ["1", "13"]  # head 13 is 13 + 0
    assert re.findall(r'aria-label="(head \d+)" />', small)[12] == "head 13"
    small = re.search(r"<svg.*?</svg>", head_grid(torch.full((11, 20, 20), 0.05)).body).group()
    assert re.findall(r'class="small">([^<]+)<', small) == [str(n) for n in range(1, 12)]


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 1, 4), (20, 20, 20), (2, 200, 200), (2, 20, 10, 7), (13, 1, 30)])
def test_odd_shapes_give_a_picture(shape):
    view = head_grid(torch.rand(shape))  # rows need not sum to one
    assert view.body.count("aria-label") >= 3
    assert len(view.description) <= 600
    largest = max(float(x) for x in re.findall(r'viewBox="0 0 ([\d.]+)', view.body))
    assert largest == 340


def test_removing_a_head_moves_the_output_as_in_torch():
    layer, _, heads, weights, output = layer_and_heads(3)
    parts = contributions_of(layer, heads)
    view = head_grid(weights, TOKENS, contributions=parts, bias=layer.out_proj.bias)
    shown = {key: float(n) for key, n in re.findall(r'data-k="((?:length|moved)[\d.]+)"[^>]*>([^<]+)<', view.body)}
    assert len(shown) == (4 + 3) * 3
    assert not any(key.startswith("moved0") for key in shown)
    for t in range(3):
        assert shown[f"length0.{t}"] == pytest.approx(output[t].norm().item(), abs=0.00051)
        for h in range(3):
            kept = heads.clone()
            kept[h] = 0.0
            without = layer.out_proj(kept.transpose(0, 1).flatten(1))[t]
            assert shown[f"length{h + 1}.{t}"] == pytest.approx(without.norm().item(), abs=0.00051)
            assert shown[f"moved{h + 1}.{t}"] == pytest.approx((without - output[t]).norm().item(), abs=0.00051)
    assert view.data["is"]["remove"] == 0
    moved = sorted(shown[f"moved2.{t}"] for t in range(3))
    assert view.data["moved"][2] == f"Without head 2 the 3 outputs move by {moved[0]:.3f} to {moved[2]:.3f}."
    assert view.data["moved"][0] == ""


def test_outputs_that_move_by_the_same_are_told_as_one():
    parts = torch.ones(2, 3, 4)
    assert head_grid(torch.ones(2, 3, 3), contributions=parts).data["moved"][1] == (
        "Without head 1 the 3 outputs move by 2.000."
    )
    assert head_grid(torch.ones(2, 1, 3), contributions=parts[:, :1]).data["moved"][2] == (
        "Without head 2 the output moves by 2.000."
    )


def test_the_keys_of_each_query_are_outlined_in_its_row():
    view = head_grid(HALF, ["a", "b"], outlined=[[1], [0, 1]])
    cells, outlines = re.search(r'class="map" (transform="[^"]+").*?<path (.*?)>', view.body).groups()
    assert 'd="M1 0h1v1h-1zM0 1h1v1h-1zM1 1h1v1h-1z"' in outlines
    assert cells in outlines  # they lie on the cells
    assert view.hint.startswith("Which of the outlined keys")
    assert "outlined" not in head_grid(HALF).hint + head_grid(HALF).note
    assert 'class="outlined"' not in head_grid(HALF).body


def test_the_table_of_the_output_says_what_its_columns_are():
    layer, _, heads, weights, _ = layer_and_heads(3)
    view = head_grid(weights, TOKENS, contributions=contributions_of(layer, heads))
    tables = re.findall(r'class="part".*?</svg>', view.body)
    assert len(tables) == 4
    for number, table in enumerate(tables):
        said = re.findall(r'class="(?:start|end)[^"]*">([^<]+)<', table)
        assert said[0] == (f"output without head {number}" if number else "output of all heads")
        assert said[1].replace("&#x27;", "'") == (
            "length of each query's output" + ("; how far it has moved" if number else "")
        )
        assert said[2:4] == ["output of", "length"]
        assert ("moves by" in said) == bool(number)
    assert "average puts a removed head back" in view.note
    assert "removed" not in head_grid(weights).note


def test_without_contributions_there_is_nothing_to_remove():
    view = head_grid(torch.full((2, 3, 3), 1 / 3))
    assert 'data-k="remove"' not in view.body
    assert 'class="part"' not in view.body


HALF = torch.full((2, 2, 2), 0.5)


@pytest.mark.parametrize(
    ("weights", "settings", "error", "message"),
    [
        (None, {}, TypeError, "got None; the fused path computes no weights: .* need_weights=True"),
        ((1, HALF), {}, TypeError, r"got tuple; attention returns \(output, weights\)"),
        (
            HALF[0],
            {},
            ValueError,
            r"\(H, L_q, L_k\), or \(num_layers, H, L_q, L_k\), got \(2, 2\); choose one sentence",
        ),
        (torch.ones(0, 2, 2), {}, ValueError, "at least one entry"),
        (torch.ones(1, 2, 0, 2), {}, ValueError, r"at least one entry, got \(1, 2, 0, 2\)"),
        (HALF / 0 * 0, {}, ValueError, r"got NaN in row 0 \(query 0\) of head 1 \(index 0\).*fully masked row"),
        (torch.stack([HALF, HALF * 3]), {}, ValueError, r"layer 2 \(index 1\): weights must lie in \[0, 1\]"),
        (torch.zeros(1, 201, 3), {}, ValueError, "at most 200 tokens and 400,000 weights .* take a part"),
        (torch.zeros(11, 200, 200), {}, ValueError, "got 200 × 200 tokens and 440,000 weights"),
        (HALF, {"tokens": ["a"]}, ValueError, "tokens must have a label for each of the 2, got 1"),
        (HALF, {"keys": ["a"]}, ValueError, "keys must have a label for each of the 2, got 1"),
        (
            HALF,
            {"contributions": torch.ones(2, 3, 4)},
            ValueError,
            r"\(H = 2, L_q = 2, d_model\), .* got torch.float32 \(2, 3, 4\)",
        ),
        (HALF, {"outlined": [[0]]}, ValueError, "a list of keys for each of the 2 queries, got 1"),
        (HALF, {"outlined": [[0], [2]]}, ValueError, "outlined must be at most 1, got 2"),
        (HALF, {"outlined": [0, 1]}, TypeError, "outlined must be a list, got 0"),
        (HALF, {"contributions": 3}, ValueError, "contributions must be .* got int"),
        (HALF[None], {"contributions": torch.ones(2, 2, 4)}, ValueError, "contributions belong to one layer"),
        (HALF, {"contributions": torch.ones(2, 2, 4), "bias": torch.ones(3)}, ValueError, r"bias must be \(4,\)"),
        (HALF, {"contributions": torch.ones(2, 2, 4) / 0}, ValueError, "must be finite"),
        (torch.zeros(17, 2, 2), {"contributions": torch.ones(17, 2, 1)}, ValueError, "at most 16 heads and 16 tokens"),
    ],
)
def test_what_a_grid_refuses(unchecked, weights, settings, error, message):
    with pytest.raises(error, match=message):
        head_grid(weights, **settings)
