"""The view of two sentences, without a browser: its map, shares and words are those of the tensor."""

import re

import pytest
import torch

from course_kit.viz import pair_view
from course_kit.viz.view_numbers import fixed
from tests.viz.test_view import unpacked

TOKENS = ["[CLS]", "a", "b", "[SEP]", "c", "d", "[SEP]"]


def weights(*shape):
    return (2 * torch.randn(shape)).softmax(-1)


def test_shares_computed_by_hand():
    given = torch.zeros(7, 7)
    given[0, 0] = given[3, 3] = given[6, 6] = 1.0
    given[1] = torch.tensor([0.1, 0.2, 0.1, 0.1, 0.3, 0.1, 0.1])
    given[2] = torch.tensor([0.0, 0.0, 0.0, 0.2, 0.0, 0.8, 0.0])
    given[4] = torch.tensor([0.5, 0.0, 0.25, 0.0, 0.25, 0.0, 0.0])
    given[5] = torch.tensor([0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0])
    view = pair_view(given[None, None], TOKENS)
    shown = re.findall(r'data-k="share\d" class="end small">([\d.]+)<', view.body)
    assert shown == ["0.150", "0.600", "0.250", "0.125", "0.625", "0.250"]
    assert view.data["shares"] == [[150, 600, 250, 125, 625, 250]] * 2  # the average of one head, and the head
    assert re.findall(r"<li>(.*?)</li>", view.body)[:3] == [
        "“b” (A) → “d” (B) 0.800",
        "“a” (A) → “c” (B) 0.300",
        "“c” (B) → “b” (A) 0.250",
    ]
    assert (
        "words of A put 0.150 of their weight on words of A, 0.600 on words of B and 0.250 on delimiters"
        in view.description
    )
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
    expected = torch.cat([given.double().flatten(0, 1).mean(0)[None], given.flatten(0, 1).double()])
    assert [fixed(x) for x in unpacked(data["packed"])] == [fixed(x) for x in expected.flatten().tolist()]
    assert data["names"][:2] == ["average over all heads", "layer 1, head 1"]
    assert (data["second"], data["marks"]) == (4, [0, 3, 6])


def test_a_head_can_be_given_and_sentence_b_too():
    view = pair_view(weights(2, 3, 5, 5), list("abcde"), second=2, layer=1, head=2)
    assert 'data-k="name" class="start">layer 2, head 3<' in view.body
    assert view.data["marks"] == []
    assert 'value="3" selected' in pair_view(weights(2, 3, 7, 7), TOKENS, head=2).body


@pytest.mark.parametrize(
    ("shape", "tokens", "settings", "message"),
    [
        ((1, 1, 3, 3), list("abc"), {}, r"two sentences .*\[SEP\] or </s> after each; pass second="),
        ((1, 1, 2, 2), ["a", "[SEP]"], {"second": 1}, "words in both sentences, got 1 in A and 0 in B"),
        ((1, 1, 7, 7), TOKENS, {"layer": 1}, "layer must be at most 0, got 1"),
        ((1, 1, 7, 7), TOKENS, {"head": -1}, "head must be at least 0, got -1"),
        ((1, 1, 65, 65), ["a"] * 65, {"second": 3}, "at most 64 tokens"),
    ],
)
def test_what_is_refused(shape, tokens, settings, message):
    with pytest.raises(ValueError, match=message):
        pair_view(weights(*shape), tokens, **settings)
