"""Greedy decoding and beams: by hand, against plain lists, against all texts, and against each other."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from searching import BOS, ENDING, EOS, IDS, ONE, PAD, SOURCE, TABLE, A, B, Told, assert_same, build

from course_kit.translator.hypotheses import Hypothesis, can_win
from course_kit.translator.search import _top, beam, greedy

# Models whose answers are written down


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


# Against the definition


def by_lists(next_log_probs, beam_size, max_length, penalty):
    """Every hypothesis that ends, or is cut at the limit, as `(score, sum, tokens)`, the best first; no early stop."""
    opened, done = [(0.0, [])], []
    for n in range(1, max_length + 1):
        candidates = [
            (total + step, [*text, token])
            for total, text in opened
            for token, step in enumerate(next_log_probs(text))
            if step > -math.inf
        ]
        survivors = sorted(candidates, key=lambda c: -c[0])[:beam_size]
        done += [(total / n**penalty, total, text) for total, text in survivors if text[-1] == EOS]
        opened = [(total, text) for total, text in survivors if text[-1] != EOS]
    done += [(total / max_length**penalty, total, text) for total, text in opened]
    return sorted(done, key=lambda d: -d[0])


def next_log_probs_of(model, row):
    memory, source, known = model.encode(row[None]), row[None], {}

    def next_log_probs(text):
        if tuple(text) not in known:
            logits = model.decode(torch.tensor([[BOS, *text]]), memory, source)[0, -1]
            steps = logits.log_softmax(-1)
            steps[[PAD, BOS]] = -math.inf
            known[tuple(text)] = steps.tolist()
        return known[tuple(text)]

    return next_log_probs


@pytest.mark.parametrize(
    ("beam_size", "penalty"),
    [
        (3, 0.6),
        *(
            pytest.param(beam_size, penalty, marks=pytest.mark.thorough)
            for beam_size, penalty in itertools.product((1, 2, 3, 5), (0.0, 0.6, 1.0, 2.0, -0.7))
            if (beam_size, penalty) != (3, 0.6)
        ),
    ],
)
@torch.no_grad()
def test_a_beam_of_a_batch_is_the_beam_of_each_by_lists(beam_size, penalty):
    lengths = set()
    for seed in range(1, 5):
        model = build(seed, **ENDING)
        limits = [8, 5, 3]
        options = dict(IDS, beam_size=beam_size, num_best=beam_size, max_length=limits, length_penalty=penalty)
        result = beam(model, SOURCE, **options)
        for i, row in enumerate(SOURCE):
            expected = by_lists(next_log_probs_of(model, row), beam_size, limits[i], penalty)[:beam_size]
            ours = [text + [EOS] * end for text, end in zip(result.tokens[i], result.finished[i], strict=True)]
            assert ours == [text for _, _, text in expected]
            assert result.scores[i] == pytest.approx([score for score, _, _ in expected], abs=1e-10)
            assert result.log_probs[i] == pytest.approx([total for _, total, _ in expected], abs=1e-10)
            lengths |= {len(text) for text in result.tokens[i]}
    assert len(lengths) > 4


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 2.0, -0.7])
@torch.no_grad()
def test_a_beam_that_is_wide_enough_finds_the_best_of_all_texts(penalty):
    words, limit = (3, 4, 5), 4
    for seed in range(3):
        model = build(seed, vocab_size=6, **ENDING)
        source = torch.tensor([[3, 4, 5, 3]])
        next_log_probs, every = next_log_probs_of(model, source[0]), []
        for n in range(1, limit + 1):
            for text in itertools.product(words, repeat=n - 1):
                ends = [EOS] if n < limit else [EOS, *words]
                for last in ends:
                    whole = [*text, last]
                    total = sum(next_log_probs(whole[:i])[whole[i]] for i in range(n))
                    every.append((total / n**penalty, whole))
        every.sort(reverse=True)
        result = beam(model, source, **IDS, beam_size=121, num_best=7, max_length=limit, length_penalty=penalty)
        ours = [text + [EOS] * end for text, end in zip(result.tokens[0], result.finished[0], strict=True)]
        assert ours == [text for _, text in every[:7]]
        assert result.scores[0] == pytest.approx([score for score, _ in every[:7]], abs=1e-10)


def test_a_beam_of_one_is_greedy():
    for seed in range(5):
        model = build(seed, **ENDING)
        assert_same(beam(model, SOURCE, **IDS, beam_size=1, max_length=9), greedy(model, SOURCE, **IDS, max_length=9))


def test_there_may_be_fewer_hypotheses_than_asked_for():
    model = build(vocab_size=4)  # one word and the end
    result = beam(model, torch.tensor([[3, 3]]), **IDS, beam_size=5, num_best=5, max_length=2)
    assert sorted(map(len, result.tokens[0])) == [0, 1, 2]  # end; word end; word word
    assert sum(result.finished[0]) == 2


def test_a_sentence_stops_when_nothing_can_get_better():
    calls = []
    model = build()
    model.decoder.register_forward_hook(lambda *_: calls.append(1))
    with torch.no_grad():
        model.decoder.layers[-1].norm3.bias.fill_(3.0)
        model.output.weight[EOS] = 2.0  # the end is nearly certain at once
    beam(model, SOURCE, **IDS, beam_size=3, max_length=11)
    assert len(calls) == 1
