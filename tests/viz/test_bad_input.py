"""Views refuse what they cannot draw in a sentence that says what was expected."""

from __future__ import annotations

import itertools
import math
import re

import pytest
import torch

from course_kit import viz
from course_kit.viz.view_numbers import numbers

pytestmark = pytest.mark.usefixtures("unchecked")

T = torch.ones
EVEN = torch.full((2, 3, 3), 1 / 3)
VIEWS = {
    "alignment": (viz.alignment, [EVEN[0]]),
    "attention_calculator": (viz.attention_calculator, [T(2, 2), T(3, 2), T(3, 2)]),
    "block_stepper": (lambda state: viz.block_stepper({"one": state}), [T(2, 3)]),
    "contextual_words": (viz.contextual_words, [torch.arange(24.0).view(2, 4, 3).sin()]),
    "head_split": (viz.head_split, [T(3, 4), T(2, 3, 2), T(4, 4)]),
    "head_view": (lambda weights: viz.head_view(weights, list("abc")), [EVEN[None]]),
    "leak_detector": (viz.leak_detector, [T(3, 3)]),
    "logit_lens_view": (viz.logit_lens_view, [torch.arange(24.0).view(2, 3, 4).sin()]),
    "mask_painter": (viz.mask_painter, [T(3, 3)]),
    "model_view": (lambda weights: viz.model_view(weights, list("abc")), [EVEN[None]]),
    "neuron_view": (viz.neuron_view, [T(3), T(4, 3)]),
    "next_token_bars": (viz.next_token_bars, [T(5)]),
    "norm_switch": (lambda layers, loss: viz.norm_switch(*[{3: (layers, loss)}] * 2), [T(1, 3), T(1)]),
    "pair_view": (lambda weights: viz.pair_view(weights, list("abc"), second=1), [EVEN[None]]),
    "patching_view": (lambda patched: viz.patching_view(patched, 0.0, 2.0), [torch.arange(6.0).view(2, 3).sin()]),
    "query_plane": (viz.query_plane, [T(3, 2), T(3)]),
    "rotary_pair": (viz.rotary_pair, [T(2), T(2)]),
    "scale_explorer": (viz.scale_explorer, [torch.arange(16.0).view(2, 8).sin(), torch.arange(24.0).view(3, 8).cos()]),
    "sinusoid_probe": (viz.sinusoid_probe, [T(5, 4)]),
    "three_attentions": (lambda e, d, c: viz.three_attentions(e, d, c, list("abc"), list("xyz")), [EVEN, EVEN, EVEN]),
}
SPOILT = {
    "1e30": lambda x: x * 1e30,
    "NaN": lambda x: x * math.nan,
    "infinity": lambda x: x * math.inf,
    "an axis more": lambda x: x[None].expand(7, *x.shape),
    "an axis less": lambda x: x[0],
    "empty": lambda x: x[:0],
    "None": lambda x: None,
    "a list": lambda x: x.tolist(),
    "text": lambda x: "text",
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_spoilt_tensor_is_drawn_or_refused_in_words(view):
    """Whatever cannot be drawn is named by the view itself: no error of decimal, JSON or PyTorch from inside."""
    function, tensors = VIEWS[view]
    assert "<svg" in function(*tensors).html()
    for spoilt, place in itertools.product(SPOILT, range(len(tensors))):
        given = [SPOILT[spoilt](x) if i == place else x for i, x in enumerate(tensors)]
        try:
            html, refused = function(*given).html(), ""
        except (ValueError, TypeError) as error:
            html, refused = "", str(error)
        assert re.search("<svg|must|expected|a view shows|legible|ask for", html or refused), (spoilt, place)
        assert refused or spoilt not in ("NaN", "infinity"), f"{place} drawn all the same"
        assert not re.search(r"\b(nan|inf|infinity)\b", html.split("<script>")[0].lower()), (spoilt, place)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: viz.rotary_pair(T(2), T(2), angle=math.nan), "angle must be a finite number between .*, got nan"),
        (lambda: viz.rotary_pair(T(2), T(2), angle=1e30), "angle must be a finite number between .*, got 1e[+]30"),
        (lambda: viz.attention_map(EVEN[0].to(torch.complex64)), "weights must be real numbers, got torch.complex64"),
        (lambda: numbers(T(2) * 1j), "must be a tensor of real numbers, got torch.complex64"),
        (lambda: numbers(T(2) * math.nan), r"numbers must be finite, got NaN.*fully masked row"),
        (lambda: viz.alignment(EVEN[0], title=5), "title must be of type str, got 5"),
    ],
)
def test_a_number_that_cannot_be_drawn_is_refused(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
