"""The views of attention heads, without a browser: pictures, data, words, sizes and errors."""

import base64
import io
import json
import re

import numpy as np
import pytest
import torch
from PIL import Image

from course_kit.viz import head_view, model_view
from course_kit.viz.view_numbers import fixed
from tests.viz.test_inspection_inputs import decoded, weights

TOKENS = ["[CLS]", "the", "cat", "sat", "[SEP]", "it", "ran", "[SEP]"]


def previous(length):
    """A head that looks at the token before; the first looks at itself."""
    head = torch.eye(length).roll(-1, 1)
    head[0] = torch.eye(length)[0]
    return head


@pytest.mark.parametrize(("num_layers", "limit"), [(6, 100_000), (12, 180_000)])
def test_all_heads_of_a_model_are_small(num_layers, limit):
    for sharpness in (0.5, 2.0, 6.0):
        given = (sharpness * torch.randn(num_layers, 12, 20, 20)).softmax(-1)
        assert len(model_view(given, [f"token{i}" for i in range(20)]).html().encode()) <= limit


def test_all_weights_and_scores_are_handed_over_in_three_decimals():
    given = weights(2, 3, 8, 8)
    data = model_view(given, TOKENS).data
    assert [fixed(t / 1000) for t in decoded(data["w"])] == [fixed(x) for x in given.flatten().tolist()]
    scores = torch.tensor(decoded(data["scores"])).view(6, 5) / 1000
    by_hand = given.flatten(0, 1).diagonal(-1, 1, 2)[:, [0, 1, 2, 4, 5]].mean(-1)  # of words, not of delimiters
    torch.testing.assert_close(scores[:, data["names"].index("previous token")], by_hand, atol=0.000501, rtol=0)
    assert (data["H"], data["second"], data["marks"]) == (3, 5, [0, 4, 7])
    json.dumps(data)
    assert head_view(given, TOKENS).data.items() <= data.items()


def test_the_small_maps_are_one_picture_of_all_weights():
    given = weights(2, 3, 5, 7)
    body = model_view(given, list("abcde"), keys=list("tuvwxyz")).body
    (url,) = re.findall(r"url\(data:image/png;base64,([^)]+)\)", body)
    alpha = np.array(Image.open(io.BytesIO(base64.b64decode(url))).convert("RGBA"))[..., 3] / 255
    expected = given.permute(0, 2, 1, 3).reshape(10, 21).sqrt().numpy()
    assert abs(alpha - expected).max() <= 0.5 / 15 + 0.002
    places = re.findall(r'aria-label="layer (\d), head (\d),[^>]*><i style="mask-position:([\d.]+)%? ([\d.]+)%?"', body)
    assert [tuple(map(float, place)) for place in places] == [
        (n + 1, h + 1, 50 * h, 100 * n) for n in range(2) for h in range(3)
    ]


def test_the_picture_begins_with_the_head_that_follows_a_pattern_most():
    given = weights(3, 2, 8, 8)
    given[1, 1] = previous(8)
    for view in (model_view(given, TOKENS), head_view(given, TOKENS)):
        assert (view.data["layer"], view.data["on"]) == (1, [1])
        assert re.findall(r'data-h="(\d)" aria-pressed="true"', view.body) == ["1"]
        lines = re.search(r'<g data-k="lines">(.*?)</g>', view.body)[1]
        assert re.findall(r'stroke-opacity="([\d.]+)"', lines) == ["1"]
        drawn = re.findall(r"M118 (\d+)L222 (\d+)", lines)
        assert [((int(a) - 58) / 24, (int(b) - 58) / 24) for a, b in drawn] == [(i, max(i - 1, 0)) for i in range(8)]
        assert re.search(r'data-k="score0" class="end small">([\d.]+)<', view.body)[1] == "1.000"
    assert re.findall(r'data-t="([^"]*)"', model_view(given, TOKENS).body)[3] == "2·2\n←"


def test_lines_are_as_strong_as_weights():
    given = torch.tensor([[[[0.024, 0.025, 0.451, 0.5], [1.0, 0.0, 0.0, 0.0]]]])
    body = head_view(given, ["<b>", '"&'], keys=list("wxyz")).body
    assert re.findall(r'd="(M118[^"]*)"[^>]*stroke-opacity="([\d.]+)"', body) == [
        ("M118 58L222 82", "0.05"),
        ("M118 58L222 106", "0.45"),
        ("M118 58L222 130", "0.5"),
        ("M118 82L222 58", "1"),
    ]
    assert "<b>" not in body  # tokens are text, not markup
    assert "&lt;b&gt;" in body


def test_the_strongest_links_leave_out_delimiters_and_the_token_itself():
    given = torch.eye(8)[None, None] * 0.4 + 0.1 * torch.eye(8)[0] + 0.5 * previous(8)
    given[0, 0, 5] = torch.tensor([0.0, 0.0, 0.663, 0.0, 0.3, 0.0, 0.037, 0.0])
    links = re.findall(r"<li>(.*?)</li>", head_view(given, TOKENS).body)
    assert links[:3] == ["“it” → “cat” 0.663", "“cat” → “the” 0.500", "“sat” → “cat” 0.500"]
    assert not [link for link in links if link.split("→")[1].startswith(" “[")]


def test_the_description_names_the_heads():
    given = torch.full((2, 3, 8, 8), 1 / 8)
    given[1, 2] = previous(8)
    given[0, 1] = 0.7 * torch.eye(8)[0] + 0.3 * torch.eye(8)[3]
    words = model_view(given, TOKENS).description
    assert "6 heads (2 layers of 3), 8 queries over 8 keys." in words
    assert "1 head puts at least half of the weight on the previous token: layer 2, head 3 (1.000)." in words
    assert "No head puts half of its weight on the next token; most: layer 1, head 1 (0.125)." in words
    assert "1 head puts at least half of the weight on the delimiter: layer 1, head 2 (0.700)." in words
    assert "Entropy is largest in layer 1, head 1 (1.000 of ln L_k) and smallest in layer 2, head 3 (0.000)." in words
    assert head_view(given, TOKENS).description.startswith("layer 2, head 3: Attention weights of 8 queries")
    many = torch.eye(8)[0].expand(4, 3, 8, 8)
    named = "heads put at least half of the weight on the delimiter: " + ", ".join(
        f"layer 1, head {head} (1.000)" for head in (1, 2, 3)
    )
    assert f"12 {named} and others." in model_view(many, TOKENS).description
    assert f"3 {named}." in model_view(many[:1], TOKENS).description  # three are named, and there is no other
    assert len(model_view(weights(12, 12, 8, 8), TOKENS).description) < 800


def test_small_maps_are_in_rows_that_fit_a_phone():
    for num_heads, columns in {1: 1, 4: 4, 7: 7, 12: 12, 13: 12, 16: 8, 32: 8}.items():
        assert f'data-c="{columns}"' in model_view(torch.full((1, num_heads, 3, 3), 1 / 3)).body


def test_the_second_sentence_is_chosen_named_and_begins_with_a_dashed_line():
    """Rows are 24 units high and begin at 46; the second sentence begins after [SEP], with token 5."""
    body = head_view(weights(1, 1, 8, 8), TOKENS).body
    assert "A → B" in body
    assert 'aria-label="key it, sentence B"' in body
    assert re.findall(r'd="M(\d+) (\d+)h\d+"[^>]*stroke-dasharray', body) == [("38", "166"), ("224", "166")]
    assert "A → B" not in head_view(weights(1, 1, 7, 7), list("abcdefg")).body


def test_layer_and_heads_can_be_given():
    view = head_view(weights(3, 5, 2, 2), layer=2, heads=[4, 1])
    assert (view.data["layer"], view.data["on"]) == (2, [4, 1])
    assert 'data-k="name" class="start">layer 3, head 5<' in view.body
    assert view.status == "Layer 3 shows heads 2, 5, and the bars of head 5."
    assert head_view(weights(3, 5, 2, 2), heads=[2]).data["layer"] == 0
    assert head_view(weights(3, 5, 2, 2), layer=1).data["on"] == [0]
