"""Tokens as pictures show them."""

import pytest
import torch

from course_kit import viz
from course_kit.viz import alignment, attention_map, describe, readable
from course_kit.viz.labels import readable_labels


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        *{"▁dogs": "dogs", "▁": "(space)", "▁,": ",", "s": "+s", "ß2": "+ß2"}.items(),
        *((as_it_is, as_it_is) for as_it_is in (",", "...", "<eos>", "[SEP]")),
    ],
)
def test_a_token_is_shown_without_its_sign(token, shown):
    assert readable(token) == shown


def test_labels_without_the_sign_are_left_alone_but_for_the_plus_of_punctuation():
    assert readable_labels(["dogs", "s", 3, "+s", "+,", "+"]) == ["dogs", "s", "3", "+s", ",", "+"]
    assert readable_labels(["▁dogs", "s", ","]) == ["dogs", "+s", ","]


TOKENS = ["▁Zwei", "▁Hund", "e", ",", "<eos>"]
W = torch.eye(5)
PICTURES = {
    "alignment": lambda: alignment(W, TOKENS, TOKENS).html(),
    "head_view": lambda: viz.head_view(W[None, None], TOKENS).html(),
    "mask_painter": lambda: viz.mask_painter(W, tokens=TOKENS).html(),
    "three_attentions": lambda: viz.three_attentions(W[None], W[None], W[None], TOKENS, TOKENS).html(),
    "next_token": lambda: viz.next_token_bars(torch.arange(5.0), TOKENS).html(),
    "beam_tree": lambda: viz.beam_tree([["▁Zwei", ","]], [[-1, -1]], [[-0.5, -1.0]], 2).html(),
    "description": lambda: describe(W, TOKENS, TOKENS),
    "map": lambda: " ".join(text.get_text() for text in attention_map(W, TOKENS, TOKENS).get_yticklabels()),
}


@pytest.mark.parametrize("name", PICTURES)
def test_no_picture_shows_the_sign_or_a_plus_before_punctuation(name):
    shown = PICTURES[name]()
    assert "Zwei" in shown
    assert "▁" not in shown
    assert "+," not in shown
