"""The view of the logit lens, without a browser: ranks, probabilities, words and errors."""

import re
from itertools import chain

import pytest
import torch

from course_kit.interpret.readouts import logit_lens
from course_kit.nn import LanguageModel, Transformer, TransformerConfig
from course_kit.viz import logit_lens_view
from course_kit.viz.view_numbers import fixed

READ = ["the", "cat", "sat"]
SIZES = {"vocab_size": 17, "d_model": 22, "num_heads": 2, "num_layers": 3, "d_ff": 13, "dropout": 0.0}


def shown(view):
    """Row by row from the top: layer, position, token in the cell, its name and probability, whether it is bold."""
    found = re.findall(
        r'<div role="gridcell"(?: class="(\w+)")? style="--p:([\d.]+)" tabindex="(-?\d)" aria-label="([^"]+)" '
        r'aria-selected="(\w+)"><span>([^<]+)<',
        view.body,
    )
    return [
        (*re.match(r"(.+) at (.+): “(.+)” (\d\.\d{3})$", label).groups(), text, bold, shade, tab, selected)
        for bold, shade, tab, label, selected, text in found
    ]


def test_a_lens_computed_by_hand():
    # probabilities of 0.2, 0.7, 0.1 and of 0.25, 0.25, 0.5
    logits = torch.tensor([[[0.2, 0.7, 0.1]], [[0.25, 0.25, 0.5]]]).log()
    view = logit_lens_view(logits, ["it"], ["a", "b", "c"])
    assert shown(view) == [
        ("layer 1", "it", "c", "0.500", "c", "strong", "0.5", "0", "true"),
        ("input", "it", "b", "0.700", "b", "", "0.7", "-1", "false"),
    ]
    names = view.data["names"]
    assert [[(names[n], c) for n, c in cell[0]] for cell in view.data["best"]] == [
        [("b", 700), ("a", 200), ("c", 100)],
        [("c", 500), ("a", 250), ("b", 250)],  # of equals, the first in the vocabulary
    ]
    assert view.data["rank"] == [[3], [1]]
    assert view.data["own"] == [[100], [500]]
    assert view.data["goals"] == ["c"]
    assert view.description == (
        "2 layers and 1 position. Positions at which the top token of layer 1 comes first: input: 0, layer 1: 1. "
        "Most probable token at “it”: input: “b” 0.700, layer 1: “c” 0.500. "
        "Rank and probability of “c” there: input: 3 (0.100), layer 1: 1 (0.500)."
    )


def test_targets_are_followed_in_place_of_the_top_token():
    logits = torch.tensor([[[0.2, 0.7, 0.1]], [[0.25, 0.25, 0.5]]]).log()
    view = logit_lens_view(logits, ["it"], ["a", "b", "c"], targets=torch.tensor([1]))
    assert view.data["rank"] == [[1], [3]]  # of equals, the first in the vocabulary comes first
    assert view.data["own"] == [[700], [250]]
    assert [(cell[0], cell[5]) for cell in shown(view)] == [("layer 1", ""), ("input", "strong")]
    assert view.data["what"] == "the target"
    assert re.findall(r'role="columnheader" class="ends"><span>(\w+)<', view.body) == ["b", "it"]
    assert 'data-k="goal"' in view.body
    assert "“b”, the target" in view.body


@pytest.mark.parametrize("scale", [1, 7])
def test_all_numbers_are_those_of_torch(scale):
    logits = scale * torch.randn(4, 3, 11)
    view = logit_lens_view(logits, READ)
    chances = logits.double().softmax(-1)
    values, ids = chances.topk(5)
    best = torch.tensor(view.data["best"])  # (4, 3, 5, 2)
    names = torch.tensor([int(name) for name in view.data["names"]])
    assert torch.equal(names[best[..., 0]], ids)
    assert [fixed(c / 1e3) for c in best[..., 1].flatten().tolist()] == [fixed(c) for c in values.flatten().tolist()]
    final = ids[-1, :, 0]
    own = chances.gather(-1, final.expand(4, 3)[..., None])[..., 0]
    assert [fixed(c / 1e3) for c in chain.from_iterable(view.data["own"])] == [fixed(c) for c in own.flatten().tolist()]
    assert torch.equal(torch.tensor(view.data["rank"]), (chances > own[..., None]).sum(-1) + 1)
    cells = [(cell[0], cell[1], int(cell[2]), cell[3]) for cell in shown(view)]
    rows = ["input", "layer 1", "layer 2", "layer 3"]
    assert cells == [
        (rows[n], READ[i], ids[n, i, 0].item(), fixed(values[n, i, 0].item())) for n in (3, 2, 1, 0) for i in range(3)
    ]


def test_the_bars_begin_with_the_chosen_cell():
    logits = torch.randn(3, 3, 11)
    view = logit_lens_view(logits, READ, layer=1, position=2)
    chances = logits.double().softmax(-1)
    values, ids = chances[1, 2].topk(5)
    bars = re.findall(r'data-k="best\d-value"[^>]*>([\d.]+)<', view.body)
    assert bars == [fixed(x) for x in values.tolist()]
    assert re.findall(r'data-k="name\d"[^>]*>(\d+)<', view.body) == [str(i) for i in ids.tolist()]
    followed = chances[:, 2, chances[-1, 2].argmax()]
    assert re.findall(r'data-k="own\d-value"[^>]*>([\d.]+)<', view.body) == [fixed(x) for x in followed.tolist()]
    widths = re.findall(r'data-k="own\d" x="150" y="[\d.]+" width="([\d.e-]+)"', view.body)
    assert [float(w) for w in widths] == pytest.approx((128 * followed).tolist(), rel=1e-3)
    assert "layer 1 at “sat”" in view.body
    assert [cell[:2] for cell in shown(view) if cell[-1] == "true"] == [("layer 1", "sat")]
    assert 'data-k="frame" x="0" y="61"' in view.body


def test_probabilities_are_taken_as_they_are():
    logits = 3 * torch.randn(4, 3, 11)
    assert logit_lens_view(logits.softmax(-1)).data == logit_lens_view(logits).data
    # one row that does not sum to 1 makes logits of all
    scores = logits.softmax(-1)
    scores[1, 2] *= 2
    assert logit_lens_view(scores).data["own"] != logit_lens_view(logits).data["own"]


@pytest.mark.parametrize("kind", [LanguageModel, Transformer])
def test_what_the_lens_returns_is_drawn_as_it_comes(kind):
    model, ids = kind(TransformerConfig(**SIZES)).eval(), torch.tensor([[3, 1, 5]])
    lens = logit_lens(model, *([ids] if kind is LanguageModel else [torch.tensor([[4, 2]]), ids]))
    assert lens.requires_grad
    view = logit_lens_view(lens, READ)
    assert len(view.data["best"]) == 4
    last = lens[-1, 0].argmax(-1).tolist()
    assert view.data["goals"] == [str(i) for i in last]


def test_words_are_text_and_long_ones_are_cut_beside_their_bars():
    view = logit_lens_view(torch.randn(2, 1, 2), ["<b>"], ["<i>", "a token of twenty-four c"], layers=["<u>", "last"])
    assert not re.search("<[biu]>", view.body)
    assert "a token of twen…</text>" in view.body


def test_a_vocabulary_smaller_than_five_has_fewer_bars():
    assert len(re.findall(r'data-k="name\d"', logit_lens_view(torch.randn(2, 1, 3)).body)) == 3


@pytest.mark.parametrize(
    ("logits", "settings", "error", "message"),
    [
        ([1.0], {}, TypeError, r"must be a tensor \(num_layers \+ 1, L, V\), got list"),
        (torch.ones(3, 4), {}, ValueError, r"got torch.float32 \(3, 4\); pass what logit_lens"),
        (torch.ones(3, 4, 0), {}, ValueError, r"\(3, 4, 0\)"),
        (torch.ones(3, 4, 5, dtype=torch.int64), {}, ValueError, "floating-point numbers"),
        (torch.ones(3, 2, 4, 5), {}, ValueError, r"of one sentence, .* got \(3, 2, 4, 5\); choose one, logits\[:, i\]"),
        (torch.ones(3, 4, 5) / 0, {}, ValueError, "finite, got NaN or infinity"),
        (torch.full((3, 4, 5), torch.nan), {}, ValueError, "finite, got NaN or infinity"),
        (torch.ones(3, 4, 5), {"tokens": ["a"]}, ValueError, "tokens must have a label for each of the 4, got 1"),
        (torch.ones(3, 4, 5), {"vocabulary": ["a"]}, ValueError, "vocabulary must have a label for each of the 5"),
        (torch.ones(3, 4, 5), {"layers": ["a"]}, ValueError, "layers must have a label for each of the 3, got 1"),
        (torch.ones(3, 4, 5), {"targets": [1]}, ValueError, r"one id per position, 4 of them, .*got \[1\]"),
        (torch.ones(3, 4, 5), {"targets": [1, 2, 3, 5]}, ValueError, "targets must be at most 4, got 5"),
        (
            torch.ones(3, 4, 5),
            {"targets": torch.tensor([1, 2, 3, -1])},
            ValueError,
            r"each from 0 to 4, got \[1, 2, 3, -1\]",
        ),
        (
            torch.ones(3, 4, 5),
            {"targets": torch.ones(4)},
            TypeError,
            "targets must be a tensor of integers, got torch.float32",
        ),
        (torch.ones(3, 4, 5), {"position": 4}, ValueError, "position must be at most 3, got 4"),
        (torch.ones(3, 4, 5), {"layer": -4}, ValueError, "layer must be at least -3, got -4"),
        (torch.ones(33, 32, 2), {}, ValueError, "at most 1024 cells, got 33 layers × 32 positions"),
        (torch.ones(2, 129, 2), {}, ValueError, "at most 1024 cells and 128 positions, got 2 × 129"),
    ],
)
def test_what_is_refused(unchecked, logits, settings, error, message):
    with pytest.raises(error, match=message):
        logit_lens_view(logits, **settings)
