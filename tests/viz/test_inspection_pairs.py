"""The view of two sentences, without a browser: its map, shares and words are those of the tensor."""

import re

import torch

from course_kit.viz import pair_view
from course_kit.viz.view_numbers import fixed
from tests.viz.test_inspection_inputs import weights
from tests.viz.test_view import unpacked

TOKENS = ["[CLS]", "a", "b", "[SEP]", "c", "d", "[SEP]"]


def test_shares_computed_by_hand():
    given = torch.eye(7)
    given[1] = torch.tensor([0.1, 0.2, 0.1, 0.1, 0.3, 0.1, 0.1])
    given[2] = torch.tensor([0.0, 0.0, 0.0, 0.2, 0.0, 0.8, 0.0])
    given[4] = torch.tensor([0.5, 0.0, 0.25, 0.0, 0.25, 0.0, 0.0])
    view = pair_view(given[None, None], TOKENS)
    shown = re.findall(r'data-k="share\d" class="end small">([\d.]+)<', view.body)
    assert shown == ["0.150", "0.600", "0.250", "0.125", "0.625", "0.250"]
    assert view.data["shares"] == [[150, 600, 250, 125, 625, 250]] * 2  # the average of one head, and the head
    assert re.findall(r"<li>(.*?)</li>", view.body)[:3] == [
        "“b” (A) → “d” (B) 0.800",
        "“a” (A) → “c” (B) 0.300",
        "“c” (B) → “b” (A) 0.250",
    ]
    assert "words of A put 0.150 of their weight on words of A, 0.600 on words of B and 0.250 on d" in view.description
    assert "sentence B from token 4" in view.description


def test_the_map_shows_the_head_with_most_weight_across():
    given = 0.02 + torch.eye(7).expand(2, 3, 7, 7) * 0.86
    given[1, 0, :, 4:6] = 0.45
    given[1, 0, :, [0, 1, 2, 3, 6]] = 0.02
    view = pair_view(given, TOKENS)
    assert re.search(r'<option value="(\d+)" selected>([^<]+)<', view.body).groups() == ("4", "layer 2, head 1 (0.470)")
    rows = re.findall(r'<g transform="translate\(0 \d\)">(.*?)</g>', re.search(r'class="pair".*?</svg>', view.body)[0])
    shades = torch.tensor([[float(x) for x in re.findall(r'fill-opacity="([\d.e-]+)"', row)] for row in rows])
    torch.testing.assert_close(shades**2, given[1, 0], atol=0.002, rtol=0)
    within = [[i for i, cell in enumerate(row.split("<rect")[1:]) if "within" in cell] for row in rows]
    assert within == [[0, 1, 2, 3]] * 4 + [[4, 5, 6]] * 3
    assert re.search(r'class="band" d="([^"]+)"', view.body)[1].count("M") == 6


def test_all_maps_and_their_average_are_handed_over_in_three_decimals():
    given = weights(2, 3, 7, 7)
    data = pair_view(given, TOKENS).data
    heads = given.double().flatten(0, 1)
    expected = torch.cat([heads.mean(0)[None], heads])
    assert [fixed(x) for x in unpacked(data["packed"])] == [fixed(x) for x in expected.flatten().tolist()]
    assert data["names"][:2] == ["average over all heads", "layer 1, head 1"]
    assert (data["second"], data["marks"]) == (4, [0, 3, 6])


def test_a_head_can_be_given_and_sentence_b_too():
    view = pair_view(weights(2, 3, 5, 5), list("abcde"), second=2, layer=1, head=2)
    assert 'data-k="name" class="start">layer 2, head 3<' in view.body
    assert view.data["marks"] == []
    assert 'value="3" selected' in pair_view(weights(2, 3, 7, 7), TOKENS, head=2).body
