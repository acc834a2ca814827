"""The view of one score, without a browser: its numbers are those of torch."""

import math
import re

import pytest
import torch
from shown import as_shown, number_in

from course_kit.viz import neuron_view
from course_kit.viz.view_numbers import fixed
from course_lib import causal_mask
from course_lib.scaled_dot_product import scaled_dot_product_attention

KEYS = ["the", "cat", "sat", "on", "it"]


def shown(body, kind):
    found = re.findall(rf'data-k="{kind}\d+"[^>]*>(?:<rect[^>]*></rect>|<rect[^>]*/>)?(?:<text[^>]*>)?([^<]+)<', body)
    return [number_in(x) for x in found]


def test_a_score_computed_by_hand():
    query, keys = torch.tensor([1.0, -2.0, 0.5, 3.0]), torch.tensor([[2.0, 1.0, 4.0, 0.0], [0.0, 1.0, 0.0, 2.0]])
    view = neuron_view(query, keys, ["a", "b"], queries=["x"])
    assert shown(view.body, "s") == [1.0, 2.0]  # (2 − 2 + 2) / 2 and (−2 + 6) / 2
    assert shown(view.body, "w") == pytest.approx([1 / (1 + math.e), math.e / (1 + math.e)], abs=0.00051)
    assert "The features that change the score of “b” most: 3 (+3.000), 1 (−1.000), 0 (+0.000)" in view.body
    assert "; the other 1 together +0.000." in view.body
    assert view.description.startswith(
        "Query “x” and 2 keys of 4 features. Largest weights: “b” 0.731 (score 2.000), “a” "
    )
    assert (view.data["query"], view.data["key"]) == (0, 1)


@pytest.mark.parametrize("chosen", [0, 3])
def test_scores_and_weights_are_those_of_torch(chosen):
    query, keys = torch.randn(2, 5, 7)
    view = neuron_view(query, keys, KEYS, chosen=chosen)
    _, weights = scaled_dot_product_attention(query, keys, keys)
    scores = query.double() @ keys.double().T / math.sqrt(7)
    assert [as_shown(x) for x in shown(view.body, "s")] == [fixed(x) for x in scores[chosen].tolist()]
    assert shown(view.body, "w") == pytest.approx(weights[chosen].tolist(), abs=0.000501)
    assert torch.equal(torch.tensor(view.data["q"]), query)
    assert torch.equal(torch.tensor(view.data["k"]), keys)
    assert view.data["queries"] == view.data["keys"] == KEYS


def test_a_mask_takes_keys_out_of_the_softmax_and_a_scale_is_used():
    query, keys = torch.randn(2, 5, 3)
    view = neuron_view(query, keys, KEYS, chosen=2, mask=causal_mask(5), scale=0.25)
    scores = 0.25 * query[2] @ keys.T
    assert shown(view.body, "s") == pytest.approx(scores.tolist(), abs=0.000501)
    weights = scores[:3].softmax(-1).tolist()
    assert re.findall(r'class="small">(0\.\d{3}|masked)<', view.body) == [
        *(fixed(w) for w in weights),
        "masked",
        "masked",
    ]
    assert view.data["open"][2] == [1, 1, 1, 0, 0]
    one = neuron_view(query[2], keys, mask=torch.tensor([True, True, True, False, False]))
    assert one.data["open"] == [[1, 1, 1, 0, 0]]


def test_strips_and_bars_are_as_strong_as_the_products():
    query, keys = torch.tensor([1.0, -2.0, 0.0]), torch.tensor([[4.0, 1.0, 9.0], [-1.0, 0.1, 1.0]])
    body = neuron_view(query, keys, scale=1.0).body
    strips = {key: d for key, d in re.findall(r'data-k="((?:plus|minus)\d)"[^>]*d="([^"]*)"', body) if d}
    assert strips == {"plus8": "M0 0.5h1", "minus4": "M1 0.5h1", "minus2": "M0 1.5h1"}  # of 4: 4, −2, −1, −0.2
    bars = dict(re.findall(r'data-k="bars-([^"]+)"[^>]*d="([^"]*)"', body))
    heights = {key: [float(h) for h in re.findall(r"v(-?[\d.]+)", d)] for key, d in bars.items()}
    assert heights == {
        "query-0": [-11.0, 22.0],
        "key-0": pytest.approx([-9.78, -2.44, -22.0]),
        "product-0": [-22.0],
        "product-1": [11.0],
    }


def test_names_are_text_not_markup():
    body = neuron_view(torch.ones(2), torch.ones(1, 2), ["<b>"], queries=["<i>"], name="<u>").body
    assert not re.search("<[biu]>", body)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"query": None}, TypeError, r"query must be a tensor \(d_k,\) or \(L_q, d_k\), got NoneType"),
        ({"keys": [1.0]}, TypeError, r"keys must be a tensor \(L_k, d_k\), got list"),
        ({"query": torch.ones(4)}, ValueError, r"got \(1, 4\) and \(5, 3\); split the heads"),
        ({"keys": torch.ones(2, 5, 3)}, ValueError, r"of one head, got \(1, 3\) and \(2, 5, 3\)"),
        ({"keys": torch.ones(0, 3)}, ValueError, r"got \(1, 3\) and \(0, 3\)"),
        ({"keys": torch.ones(129, 3)}, ValueError, "at most 128 tokens, .* 1 queries and 129 keys of 3"),
        ({"query": torch.ones(257), "keys": torch.ones(5, 257)}, ValueError, "256 features"),
        ({"tokens": ["a"]}, ValueError, "tokens must have a label for each of the 5, got 1"),
        ({"queries": ["a", "b"]}, ValueError, "queries must have a label for each of the 1, got 2"),
        ({"chosen": 1}, ValueError, "chosen must be at most 0, got 1"),
        ({"mask": torch.ones(5)}, TypeError, "mask must be bool .* got torch.float32"),
        ({"mask": True}, TypeError, "mask must be bool .* got bool"),
        ({"mask": torch.ones(4, dtype=torch.bool)}, ValueError, r"mask must be \(1, 5\) or \(5,\), got \(4,\)"),
        ({"mask": torch.zeros(5, dtype=torch.bool)}, ValueError, "query 0 may attend to no key"),
        ({"scale": math.inf}, ValueError, "scale must be a finite number between .*, got inf"),
        ({"query": torch.full((3,), torch.nan)}, ValueError, "query must be finite, got NaN"),
    ],
)
def test_what_is_refused(unchecked, change, error, message):
    with pytest.raises(error, match=message):
        neuron_view(**{"query": torch.ones(3), "keys": torch.ones(5, 3), **change})
