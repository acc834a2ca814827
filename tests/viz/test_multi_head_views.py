"""The view of the chapter `multi_head`, without a browser: the pictures as they stand, their data, words and errors."""

import re
from itertools import pairwise

import pytest
import torch
from shown import number_in

from course_kit.nn import MultiHeadAttention
from course_kit.viz import head_split
from course_kit.viz.view_numbers import fixed
from course_lib.multi_head import split_heads
from course_lib.scaled_dot_product import scaled_dot_product_attention
from tests.viz.drawn import drawings, parts

TOKENS = ["the", "cat", "sat"]


def split_of(num_heads=2, d_model=6, bias=True, **settings):
    """A view, what each head adds `(H, L, d_model)`, the output `(L, d_model)`, and the layer."""
    torch.manual_seed(7)
    layer = MultiHeadAttention(d_model, num_heads, bias=bias).requires_grad_(False)
    if bias:
        torch.nn.init.normal_(layer.out_proj.bias)
    x = torch.randn(1, 3, d_model)
    q, k, v = (split_heads(p(x), num_heads) for p in (layer.q_proj, layer.k_proj, layer.v_proj))
    heads, _ = scaled_dot_product_attention(q, k, v)
    view = head_split(layer.v_proj(x)[0], heads[0], layer.out_proj.weight, layer.out_proj.bias, **settings)
    return view, heads[0] @ layer.out_proj.weight.T.unflatten(0, (num_heads, -1)), layer(x, x, x)[0][0], layer


def table(picture):
    """The numbers of a picture's cells."""
    return [n.text for n in picture.iter("text") if n.get("class") == "small" and re.fullmatch(r"−?\d+\.\d\d", n.text)]


def blocks(picture):
    return [node for node in picture.iter("rect") if node.get("data-h")]


@pytest.mark.parametrize(("num_heads", "bias"), [(2, True), (3, False), (6, True), (1, True)])
def test_the_additions_are_those_of_torch(num_heads, bias):
    view, added, output, layer = split_of(num_heads, bias=bias)
    constant = layer.out_proj.bias if bias else torch.zeros(6)
    expected = torch.cat([added.movedim(0, -1), constant.expand(3, 6)[..., None], output[..., None]], -1)  # (3, 6, H+2)
    drawn, slack = parts(view), 0.51 * (0.001 if num_heads <= 3 else 0.01)
    for (t, f, c), number in zip(
        torch.cartesian_prod(*map(torch.arange, expected.shape)), expected.flatten(), strict=True
    ):
        assert number_in(drawn[f"n{t}.{f}.{c}"].text) == pytest.approx(number.item(), abs=slack)


def test_a_head_at_zero_leaves_the_output_of_torch_without_it():
    torch.manual_seed(0)
    heads, rows, bias = torch.randn(3, 3, 2), torch.randn(6, 6), torch.randn(6)
    rows[4, 2:4] = 0  # head 2 adds nothing to output feature 4
    added = heads @ rows.T.unflatten(0, (3, -1))
    data = head_split(torch.randn(3, 6), heads, rows, bias, tokens=TOKENS).data
    for t in range(3):
        for h in range(3):
            left = added.sum(0)[t] + bias - added[h, t]
            assert [number_in(n) for n in data["without"][t][h]] == pytest.approx(left.tolist(), abs=0.00051)
    assert data["zeroed"][2][1] == (
        "Head 2 at zero changes 2 of 6 cells of each token in 2, and 5 of 6 output features of “sat”."
    )


def test_one_number_is_told_as_the_sum_of_products_that_stand_in_the_tables():
    view, added, _, _ = split_of(tokens=TOKENS)
    _, merged, matrix, _ = drawings(view)
    for t, token in enumerate(TOKENS):
        for h in range(2):
            number = added[h, t, 0].item()
            assert view.data["said"][t][h] == (
                f"Head {h + 1} owns features {3 * h} to {3 * h + 2}, and adds {fixed(number)} to output feature 0 of "
                f"“{token}”."
            )
            told = view.data["how"][t][h]
            assert f"feature 0 of “{token}” head {h + 1} adds" in told
            shown = re.findall(r"−?\d+\.\d+", told)
            assert shown[:-1:2] == table(merged)[6 * t + 3 * h : 6 * t + 3 * h + 3]
            assert shown[1:-1:2] == table(matrix)[18 * h : 18 * h + 18 : 6]  # rows of the head, first column
            assert number_in(shown[-1]) == pytest.approx(number, abs=0.00051)
    assert re.search(r'<p data-k="how">([^<]+)</p>', view.body).group(1) == view.data["how"][0][0]
    assert re.search(r"· \(−\d", "".join(view.data["how"][0]))  # a negative factor in parentheses
    long = split_of(1)[0].data["how"][0][0]  # cut short
    assert long.count(" · ") == 4
    assert " + … + " in long


def test_blocks_of_a_head_lie_on_its_features_and_the_first_lights_up_in_all_four_pictures():
    view, _, _, layer = split_of(3)
    features, merged, matrix, additions = drawings(view)
    for picture, axis, size in (
        (features, "x", "width"), (merged, "x", "width"), (matrix, "y", "height"), (additions, "x", "width"),
    ):  # fmt: skip
        assert [block.get("data-h") for block in blocks(picture)] == ["0", "1", "2"]
        assert [block.get("fill-opacity") for block in blocks(picture)] == ["0.4", "0.07", "0.07"]
        places = [(float(block.get(axis)), float(block.get(size))) for block in blocks(picture)]
        for (start, length), (following, _) in pairwise(places):
            assert start + length == pytest.approx(following, abs=2e-3)
    assert table(matrix) == [fixed(w, 2) for w in layer.out_proj.weight.T.flatten().tolist()]  # rows are what comes in


def test_the_additions_say_what_their_rows_are():
    texts = list(drawings(split_of(2)[0])[3].iter("text"))
    (title,) = (float(node.get("y")) for node in texts if node.text == "↓ feature of the output")
    (columns,) = {float(n.get("y")) for n in texts if n.text in ("head 1", "head 2", "bias", "output")}
    assert 20 < title < columns - 14  # between the picture's title and the columns'
    assert [node.text for node in texts if node.get("class") == "end small"] == list("012345")


@pytest.mark.parametrize("num_heads", [2, 6, 8])
def test_split_heads_count_from_one(num_heads):
    wide = torch.randn(2, 24)
    view = head_split(wide, wide.unflatten(1, (num_heads, -1)).transpose(0, 1), torch.randn(24, 24))
    assert re.findall(r'<button [^>]*data-h="(\d)"[^>]*>(head \d)<', view.body) == [
        (str(h), f"head {h + 1}") for h in range(num_heads)
    ]
    for picture in drawings(view):
        found = [re.fullmatch(r"(?:head |h)?(\d+)", node.text) for node in picture.iter("text")]
        numbers = [int(match[1]) for match in found if match]
        assert numbers[:num_heads] == list(range(1, num_heads + 1))


def test_wide_layers_are_drawn_without_the_numbers_of_the_tables():
    view, _, output, _ = split_of(4, 24)
    assert parts(view)["n0.23.5"].text == fixed(output[0, 23].item(), 2)
    assert not any(table(picture) for picture in drawings(view)[:3])
    assert len(view.description) <= 600


def test_one_token_one_feature():
    view = head_split(torch.ones(1, 1), torch.full((1, 1, 1), 0.5), torch.full((1, 1), 2.0), tokens=["a<b"])
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
        (
            {"features": torch.ones(7, 6), "heads": torch.ones(2, 7, 3)},
            ValueError,
            "at most 8 heads, 6 tokens and 32 features .* got 2, 7 and 6; take fewer",
        ),
    ],
)
def test_what_a_split_refuses(unchecked, change, error, message):
    good = {"features": torch.ones(3, 6), "heads": torch.ones(2, 3, 3), "w_o": torch.ones(6, 6)}
    with pytest.raises(error, match=message):
        head_split(**{**good, **change})
