"""The batched beam against plain lists, against all texts, and against greedy decoding."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from searching import (
    BOS,
    ENDING,
    EOS,
    IDS,
    PAD,
    POSITIONS,
    SOURCE,
    assert_same,
    build,
)

from course_kit.translator.search import beam, greedy
from course_lib.decoding import beam_search, greedy_decode


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


@pytest.mark.thorough
@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 2.0, -0.7])
@pytest.mark.parametrize("beam_size", [1, 2, 3, 5])
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


@pytest.mark.parametrize("penalty", [0.0, 1.0])
@torch.no_grad()
def test_the_best_is_that_of_the_short_functions_of_the_chapter(penalty):
    for seed in (1, 2, 3):
        model = build(seed, **ENDING)
        ours = beam(model, SOURCE, **IDS, beam_size=3, max_length=7, length_penalty=penalty)
        greedily = greedy(model, SOURCE, **IDS, max_length=7)
        for i, row in enumerate(SOURCE):
            steps = next_log_probs_of(model, row)

            def next_log_probs(ids, steps=steps):
                return torch.tensor(steps(ids[1:]), dtype=torch.float64)

            assert ours.tokens[i][0] == beam_search(next_log_probs, BOS, EOS, 3, 7, penalty)
            assert greedily.tokens[i][0] == greedy_decode(next_log_probs, BOS, EOS, 7)


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


@POSITIONS
def test_a_beam_of_one_is_greedy(positions):
    for seed in range(5):
        model = build(seed, positions=positions, **ENDING)
        assert_same(beam(model, SOURCE, **IDS, beam_size=1, max_length=9), greedy(model, SOURCE, **IDS, max_length=9))


@pytest.mark.parametrize("penalty", [0.0, 1.0, 2.0])
def test_the_n_best_are_different_and_in_order(penalty):
    result = beam(build(2, **ENDING), SOURCE, **IDS, beam_size=7, num_best=5, max_length=9, length_penalty=penalty)
    for texts, sums, scores, ends in zip(result.tokens, result.log_probs, result.scores, result.finished, strict=True):
        assert len(texts) == 5
        assert len({(*text, end) for text, end in zip(texts, ends, strict=True)}) == 5
        assert scores == sorted(scores, reverse=True)
        for text, total, score, end in zip(texts, sums, scores, ends, strict=True):
            assert score == pytest.approx(total / (len(text) + end) ** penalty)
    fewer = beam(build(2, **ENDING), SOURCE, **IDS, beam_size=7, num_best=2, max_length=9, length_penalty=penalty)
    assert fewer.tokens == [texts[:2] for texts in result.tokens]


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
