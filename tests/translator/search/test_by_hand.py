"""Greedy decoding and beams of models whose answers are written down."""

from __future__ import annotations

import math

import pytest
import torch
from searching import (
    BOS,
    EOS,
    IDS,
    ONE,
    TABLE,
    A,
    B,
    Told,
)

from course_kit.translator.hypotheses import Hypothesis, can_win
from course_kit.translator.search import _top, beam, greedy


def test_greedy_by_hand():
    # a (0.6), then a again and again (0.35), never the end (0.30).
    result = greedy(Told(TABLE), ONE, **IDS, max_length=3, use_cache=False)
    assert result.tokens == [[[A, A, A]]]
    assert result.finished == [[False]]
    assert result.log_probs == result.scores == [[pytest.approx(math.log(0.6 * 0.35 * 0.35))]]


def test_a_beam_of_two_by_hand():
    # b (0.3) then the end (0.9) has 0.27; everything that begins with a has at most 0.6 · 0.35 = 0.21.
    result = beam(Told(TABLE), ONE, **IDS, beam_size=2, num_best=2, max_length=3, use_cache=False)
    # Step 1 keeps a and b, step 2 "b end" (0.27) and "a a" (0.21), step 3 "a a a" (0.0735) and "a a end" (0.063).
    assert result.tokens == [[[B], [A, A, A]]]
    assert result.finished == [[True, False]]
    assert result.log_probs[0] == [pytest.approx(math.log(0.27)), pytest.approx(math.log(0.0735))]
    assert result.scores == result.log_probs


def test_the_length_penalty_divides_by_the_tokens_with_the_end():
    options = dict(IDS, beam_size=2, num_best=2, max_length=3, use_cache=False)
    result = beam(Told(TABLE), ONE, **options, length_penalty=1.0)
    assert result.scores[0] == [pytest.approx(math.log(0.27) / 2), pytest.approx(math.log(0.0735) / 3)]
    # With a penalty of 3 the longer ones, divided by 27 and not by 8, come first: "a a end" has 0.063.
    assert beam(Told(TABLE), ONE, **options, length_penalty=3.0).tokens == [[[A, A, A], [A, A]]]


def test_a_beam_goes_on_while_a_longer_text_can_still_win():
    table = [row[:] for row in TABLE]
    table[BOS] = [0.0, 0.0, 0.2, 0.8, 0.0]
    table[A] = [0.1, 0.1, 0.45, 0.1, 0.25]
    table[B] = [0.0, 0.0, 0.0, 0.0, 1.0]
    # "a end" has ln 0.36 / 2 = -0.51, "a b" ln 0.2 / 2 = -0.80 and with one token more still -0.54, but with four more
    # ln 0.2 / 5 = -0.32.
    options = dict(IDS, beam_size=2, max_length=5, use_cache=False)
    result = beam(Told(table), ONE, **options, length_penalty=1.0)
    assert (result.tokens, result.scores) == ([[[A, B, B, B, B]]], [[pytest.approx(math.log(0.2) / 5)]])
    # A negative penalty makes long texts worse: "end" has ln 0.3 = -1.2, "a end" 2 · ln 0.6 = -1.02.
    table[BOS] = [0.0, 0.0, 0.3, 0.6, 0.1]
    table[A] = [0.0, 0.0, 1.0, 0.0, 0.0]
    result = beam(Told(table), ONE, **options, length_penalty=-1.0)
    assert (result.tokens, result.scores) == ([[[A]]], [[pytest.approx(2 * math.log(0.6))]])


def test_of_equal_candidates_the_smaller_id_and_the_better_hypothesis_come_first():
    table = [[1.0] * 7 for _ in range(7)]  # all equally probable, so that only the order of ties decides
    options = dict(IDS, use_cache=False)
    assert greedy(Told(table), ONE, **options, max_length=3).tokens == [[[]]]  # of 2 … 6 the smallest is the end
    result = beam(Told(table), ONE, **options, beam_size=3, num_best=3, max_length=2)
    assert result.tokens == [[[], [3], [3, 3]]]


def test_an_equal_score_that_comes_later_cannot_win():
    found = [Hypothesis([A, EOS], -2.0, -1.0), Hypothesis([B, EOS], -3.0, -1.5)]
    assert [can_win(found, 1, hope) for hope in (-0.9, -1.0, -1.1)] == [True, False, False]
    assert [can_win(found, 2, hope) for hope in (-1.4, -1.5, -1.6)] == [True, False, False]


def test_ties_are_broken_by_token_id_in_rows_that_have_one():
    values, places = _top(torch.tensor([[1.0, 5.0, 2.0, 4.0, 3.0], [0.0, 7.0, 7.0, 7.0, 7.0]]), 2)
    assert values.tolist() == [[5.0, 4.0], [7.0, 7.0]]
    assert places.tolist() == [[1, 3], [1, 2]]
