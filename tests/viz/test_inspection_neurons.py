"""The view of one score, without a browser: its numbers are those of torch."""

import math
import re

import pytest
import torch

from course_kit.viz import neuron_view
from course_kit.viz.view_numbers import fixed
from course_lib import causal_mask
from tests.viz.drawn import parts

KEYS = ["the", "cat", "sat", "on", "it"]


def scores_and_weights(view):
    drawn, places = parts(view), range(len(view.data["keys"]))
    return [drawn[f"s{j}"].text for j in places], [drawn[f"w{j}"][1].text for j in places]


def test_a_score_computed_by_hand():
    query, keys = torch.tensor([1.0, -2.0, 0.5, 3.0]), torch.tensor([[2.0, 1.0, 4.0, 0.0], [0.0, 1.0, 0.0, 2.0]])
    view = neuron_view(query, keys, ["a", "b"], queries=["x"])
    # (2 − 2 + 2) / 2 and (−2 + 6) / 2
    assert scores_and_weights(view) == (["1.000", "2.000"], [fixed(1 / (1 + math.e)), fixed(math.e / (1 + math.e))])
    assert "The features that change the score of “b” most: 3 (+3.000), 1 (−1.000), 0 (+0.000)" in view.body
    assert "; the other 1 together +0.000." in view.body
    assert view.description.startswith(
        "Query “x” and 2 keys of 4 features. Largest weights: “b” 0.731 (score 2.000), “a” "
    )
    assert (view.data["query"], view.data["key"]) == (0, 1)


def test_scores_and_weights_are_those_of_torch():
    query, keys = torch.randn(2, 5, 7)
    for chosen, mask, scale in ((0, None, None), (3, None, None), (2, causal_mask(5), 0.25)):
        view = neuron_view(query, keys, KEYS, chosen=chosen, mask=mask, scale=scale)
        scores = (1 / math.sqrt(7) if scale is None else scale) * query[chosen].double() @ keys.double().T
        open_ = 5 if mask is None else chosen + 1
        weights = scores[:open_].softmax(-1)
        assert scores_and_weights(view) == (
            [fixed(x) for x in scores.tolist()],
            [fixed(x) for x in weights.tolist()] + ["masked"] * (5 - open_),
        )
        assert view.data["open"][chosen] == [1] * open_ + [0] * (5 - open_)
        assert torch.equal(torch.tensor(view.data["q"]), query)
        assert torch.equal(torch.tensor(view.data["k"]), keys)
        assert view.data["queries"] == view.data["keys"] == KEYS
    one = neuron_view(query[2], keys, mask=torch.tensor([True, True, True, False, False]))
    assert one.data["open"] == [[1, 1, 1, 0, 0]]


def test_strips_and_bars_are_as_strong_as_the_products():
    query, keys = torch.tensor([1.0, -2.0, 0.0]), torch.tensor([[4.0, 1.0, 9.0], [-1.0, 0.1, 1.0]])
    drawn = {key: node.get("d") for key, node in parts(neuron_view(query, keys, scale=1.0)).items() if node.get("d")}
    strips = {key: d for key, d in drawn.items() if re.match("plus|minus", key)}
    assert strips == {"plus8": "M0 0.5h1", "minus4": "M1 0.5h1", "minus2": "M0 1.5h1"}  # of 4: 4, −2, −1, −0.2
    heights = {key[5:]: re.findall(r"v(-?[\d.]+)", d) for key, d in drawn.items() if key.startswith("bars-")}
    assert {key: list(map(float, bars)) for key, bars in heights.items()} == {
        "query-0": [-11.0, 22.0],
        "key-0": pytest.approx([-9.78, -2.44, -22.0]),
        "product-0": [-22.0],
        "product-1": [11.0],
    }


def test_names_are_text_not_markup():
    body = neuron_view(torch.ones(2), torch.ones(1, 2), ["<b>"], queries=["<i>"], name="<u>").body
    assert not re.search("<[biu]>", body)
