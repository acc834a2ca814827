"""The view of the logit lens, without a browser: ranks, probabilities, words and errors."""

import re

import pytest
import torch

from course_kit.interpret.readouts import logit_lens
from course_kit.nn import LanguageModel, Transformer, TransformerConfig
from course_kit.viz import logit_lens_view
from course_kit.viz.view_numbers import fixed
from tests.viz.drawn import parts

READ = ["the", "cat", "sat"]


def shown(view):
    """Row by row from the top: layer, position, token and probability in a cell's name, its text, and how it looks."""
    found = re.findall(
        r'<div role="gridcell"(?: class="(\w+)")? style="--p:([\d.]+)" tabindex="(-?\d)" '
        r'aria-label="(.+?) at (.+?): “(.+?)” (\d\.\d{3})" aria-selected="(\w+)"><span>([^<]+)<',
        view.body,
    )
    return [(*named, text, bold, shade, tab, chosen) for bold, shade, tab, *named, chosen, text in found]


# probabilities of 0.2, 0.7, 0.1 and of 0.25, 0.25, 0.5
BY_HAND = torch.tensor([[[0.2, 0.7, 0.1]], [[0.25, 0.25, 0.5]]]).log()


def test_a_lens_computed_by_hand():
    view = logit_lens_view(BY_HAND, ["it"], ["a", "b", "c"])
    assert shown(view) == [
        ("layer 1", "it", "c", "0.500", "c", "strong", "0.5", "0", "true"),
        ("input", "it", "b", "0.700", "b", "", "0.7", "-1", "false"),
    ]
    names = view.data["names"]
    assert [[(names[n], c) for n, c in cell[0]] for cell in view.data["best"]] == [
        [("b", 700), ("a", 200), ("c", 100)],
        [("c", 500), ("a", 250), ("b", 250)],  # of equals, the first in the vocabulary
    ]
    assert [view.data[key] for key in ("rank", "own", "goals")] == [[[3], [1]], [[100], [500]], ["c"]]
    assert view.description == (
        "2 layers and 1 position. Positions at which the top token of layer 1 comes first: input: 0, layer 1: 1. "
        "Most probable token at “it”: input: “b” 0.700, layer 1: “c” 0.500. "
        "Rank and probability of “c” there: input: 3 (0.100), layer 1: 1 (0.500)."
    )
    assert "name3" not in parts(view)  # a vocabulary of three has three bars


def test_targets_are_followed_in_place_of_the_top_token():
    view = logit_lens_view(BY_HAND, ["it"], ["a", "b", "c"], targets=torch.tensor([1]))
    assert view.data["rank"] == [[1], [3]]  # of equals, the first in the vocabulary comes first
    assert view.data["own"] == [[700], [250]]
    assert [(cell[0], cell[5]) for cell in shown(view)] == [("layer 1", ""), ("input", "strong")]
    assert re.findall(r'role="columnheader" class="ends"><span>(\w+)<', view.body) == ["b", "it"]
    assert parts(view)["goal"].text == "“b”, the target"


@pytest.mark.parametrize("scale", [1, 7])
def test_all_numbers_are_those_of_torch(scale):
    logits = scale * torch.randn(4, 3, 11)
    view = logit_lens_view(logits, READ, layer=1, position=2)
    chances = logits.double().softmax(-1)
    values, ids = chances.topk(5)
    text = [[[fixed(x) for x in cell] for cell in row] for row in values.tolist()]
    own = chances.gather(-1, ids[-1, :, 0].expand(4, 3)[..., None])[..., 0]
    data, drawn = view.data, parts(view)
    assert [[[(int(data["names"][n]), fixed(c / 1e3)) for n, c in cell] for cell in row] for row in data["best"]] == [
        [list(zip(*cell, strict=True)) for cell in zip(*row, strict=True)]
        for row in zip(ids.tolist(), text, strict=True)
    ]
    assert [[fixed(c / 1e3) for c in row] for row in data["own"]] == [[fixed(c) for c in row] for row in own.tolist()]
    assert torch.equal(torch.tensor(data["rank"]), (chances > own[..., None]).sum(-1) + 1)
    rows = ["input", "layer 1", "layer 2", "layer 3"]
    assert [cell[:4] for cell in shown(view)] == [
        (rows[n], READ[i], str(ids[n, i, 0].item()), text[n][i][0]) for n in (3, 2, 1, 0) for i in range(3)
    ]
    # the bars begin with the chosen cell
    assert [cell[:2] for cell in shown(view) if cell[-1] == "true"] == [("layer 1", "sat")]
    assert drawn["at"].text == "layer 1 at “sat”"
    assert [drawn[f"best{n}-value"].text for n in range(5)] == text[1][2]
    assert [drawn[f"name{n}"].text for n in range(5)] == [str(i) for i in ids[1, 2].tolist()]
    assert [drawn[f"own{n}-value"].text for n in range(4)] == [fixed(x) for x in own[:, 2].tolist()]
    widths = [float(drawn[f"own{n}"].get("width")) for n in range(4)]
    assert widths == pytest.approx((128 * own[:, 2]).tolist(), rel=1e-3)
    assert (drawn["frame"].get("x"), drawn["frame"].get("y")) == ("0", "85")


def test_probabilities_are_taken_as_they_are():
    logits = 3 * torch.randn(4, 3, 11)
    scores = logits.softmax(-1)
    assert logit_lens_view(scores).data == logit_lens_view(logits).data
    scores[1, 2] *= 2  # one row that does not sum to 1 makes logits of all
    assert logit_lens_view(scores).data["own"] != logit_lens_view(logits).data["own"]


@pytest.mark.parametrize("kind", [LanguageModel, Transformer])
def test_what_the_lens_returns_is_drawn_as_it_comes(kind):
    sizes = {"vocab_size": 17, "d_model": 22, "num_heads": 2, "num_layers": 3, "d_ff": 13, "dropout": 0.0}
    model, ids = kind(TransformerConfig(**sizes)).eval(), torch.tensor([[3, 1, 5]])
    lens = logit_lens(model, *([ids] if kind is LanguageModel else [torch.tensor([[4, 2]]), ids]))
    assert lens.requires_grad
    view = logit_lens_view(lens, READ)
    assert len(view.data["best"]) == 4
    assert view.data["goals"] == [str(i) for i in lens[-1, 0].argmax(-1).tolist()]


def test_words_are_text_and_long_ones_are_cut_beside_their_bars():
    view = logit_lens_view(torch.randn(2, 1, 2), ["<b>"], ["<i>", "a token of twenty-four c"], layers=["<u>", "last"])
    assert not re.search("<[biu]>", view.body)
    assert "a token of twen…</text>" in view.body
