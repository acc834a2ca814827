"""Tokens are drawn from the stated distribution."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from oracles import CLOSE, no_side_effects
from searching import BOS, EOS, IDS, PAD, SOURCE, alone, assert_same, build
from torch.testing import assert_close

from course_kit.translator.search import greedy, next_token_distribution, sample


def test_the_distribution_by_hand():
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05], dtype=torch.float64).log()
    for options, expected in (
        ({}, [0.5, 0.3, 0.15, 0.05]),
        ({"top_k": 2}, [0.625, 0.375, 0, 0]),
        ({"top_p": 0.5}, [1, 0, 0, 0]),  # the first alone reaches it
        ({"top_p": 0.51}, [0.625, 0.375, 0, 0]),
        ({"top_k": 3, "top_p": 0.85}, [10 / 19, 6 / 19, 3 / 19, 0]),  # of the three, two have 0.842
        ({"top_k": 3, "top_p": 0.8}, [0.625, 0.375, 0, 0]),  # of all, two would have 0.8 just so
        ({"temperature": 0.5}, [0.25 / 0.365, 0.09 / 0.365, 0.0225 / 0.365, 0.0025 / 0.365]),
    ):
        ours = next_token_distribution(logits, **options)
        assert_close(ours, torch.tensor(expected, dtype=torch.float64), **CLOSE)


@pytest.mark.parametrize("cut", [{"top_k": 3}, {"top_p": 2.5 / 50}], ids=["top_k", "top_p"])
def test_of_equally_probable_tokens_those_with_the_smallest_ids_are_kept(cut):
    assert next_token_distribution(torch.zeros(50), **cut).nonzero().flatten().tolist() == [0, 1, 2]


def test_the_distribution_is_that_of_transformers():
    from transformers import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    logits = 3 * torch.randn(29, 17, dtype=torch.float64)
    tops = itertools.product((None, 1, 5, 17, 40), (None, 0.01, 0.6, 0.95, 1.0))
    for temperature, (top_k, top_p) in itertools.product((0.3, 1.0, 2.5), tops):
        theirs = TemperatureLogitsWarper(temperature)(None, logits)
        if top_k is not None:
            theirs = TopKLogitsWarper(top_k)(None, theirs)
        if top_p is not None:
            theirs = TopPLogitsWarper(top_p)(None, theirs)
        with no_side_effects(logits):
            ours = next_token_distribution(logits, temperature=temperature, top_k=top_k, top_p=top_p)
        assert_close(ours, theirs.softmax(-1), **CLOSE)


def test_the_distribution_has_any_leading_axes_and_a_useful_dtype():
    logits = torch.randn(2, 3, 5, 7)
    each = torch.stack([next_token_distribution(row, top_k=3, top_p=0.9) for row in logits.flatten(0, 2)])
    assert_close(next_token_distribution(logits, top_k=3, top_p=0.9).flatten(0, 2), each)
    assert next_token_distribution(logits.bfloat16(), top_p=0.9).dtype == torch.float32


def test_a_low_temperature_is_greedy_and_a_high_one_even():
    logits = 100 * torch.randn(5, 17)  # a hundred divided by the temperature below is out of range
    logits[:, 3] = -math.inf
    for cut in ({}, {"top_k": 4}, {"top_p": 0.9}):
        cold = next_token_distribution(logits, temperature=2e-38, **cut)
        assert_close(cold, torch.nn.functional.one_hot(logits.argmax(-1), 17).float())
    hot = next_token_distribution(logits, temperature=1e30)
    assert_close(hot, (logits > -math.inf) / 16.0)


@pytest.mark.parametrize("bad", [-math.inf, math.nan, math.inf])
def test_a_row_that_leaves_nothing_to_draw_is_refused(bad):
    with pytest.raises(ValueError, match=f"each row of logits must have a finite largest entry, got {bad}"):
        next_token_distribution(torch.tensor([[0.0, 1.0], [bad, bad]]))


@pytest.mark.parametrize("cut", [{}, {"temperature": 1.7, "top_k": 5}, {"temperature": 0.6, "top_p": 0.9}])
@pytest.mark.parametrize("use_cache", [True, False], ids=["cached", "uncached"])
def test_tokens_are_drawn_from_the_stated_distribution(cut, use_cache):
    model, draws = build(4), 4000
    with torch.no_grad():
        model.output.weight *= 0.3  # so that more than one token has a chance
    result = sample(
        model, SOURCE[:2], **IDS, max_length=2, num_samples=draws, use_cache=use_cache,
        generator=torch.Generator().manual_seed(7), **cut,
    )  # fmt: skip
    for row, texts, ends in zip(SOURCE[:2], result.tokens, result.finished, strict=True):
        whole = [text + [EOS] * end for text, end in zip(texts, ends, strict=True)]
        for first in (None, max(range(3, 11), key=lambda t: sum(text[0] == t for text in whole))):
            prefix = [BOS] if first is None else [BOS, first]
            logits = model(alone(row), torch.tensor([prefix]))[0, -1].detach()
            logits[[PAD, BOS]] = -math.inf
            stated = next_token_distribution(logits, **cut)
            drawn = [text[len(prefix) - 1] for text in whole if first is None or text[0] == first]
            counts = torch.bincount(torch.tensor(drawn), minlength=11)
            assert not counts[stated == 0].any()
            expected = stated * len(drawn)
            often = expected >= 5  # the rest goes into one cell, as is usual
            cells = [*zip(counts[often], expected[often], strict=True), (counts[~often].sum(), expected[~often].sum())]
            chi_square = sum(float((c - e) ** 2 / e) for c, e in cells if e > 0)
            freedom = sum(e > 0 for _, e in cells) - 1
            assert freedom >= 1
            assert chi_square < freedom + 4 * math.sqrt(2 * freedom)  # mean and four standard deviations


def test_the_generator_decides():
    model = build()

    def draw(seed):
        options = dict(IDS, max_length=9, num_samples=5)
        return sample(model, SOURCE, **options, generator=torch.Generator().manual_seed(seed))

    state = torch.get_rng_state()
    assert draw(1) == draw(1)
    assert draw(1) != draw(2)
    assert torch.equal(torch.get_rng_state(), state)
    sample(model, SOURCE, **IDS, max_length=2)  # PyTorch's own generator, if none is given
    assert not torch.equal(torch.get_rng_state(), state)


def test_drawing_cold_or_from_one_token_is_greedy():
    model = build()
    expected = greedy(model, SOURCE, **IDS, max_length=9)
    for cut in ({"temperature": 1e-30}, {"top_k": 1}, {"top_p": 1e-9}):
        assert_same(sample(model, SOURCE, **IDS, max_length=9, **cut), expected)
