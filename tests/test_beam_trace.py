"""course_kit.beam_trace: all that a beam search considers; its winner is that of course_lib.beam_search."""

from __future__ import annotations

import itertools
import math

import pytest
from next_token_models import BOS, EOS, TRAP, model_of, random_model

from course_kit.beam_trace import beam_trace
from course_lib.decoding import beam_search


def winner_of(steps, max_length: int) -> list[int]:
    """The ids of the best hypothesis that has ended."""
    ended = [c for step in steps for c in step if c.survives and (c.finished or len(c.tokens) == max_length)]
    best = max(ended, key=lambda candidate: candidate.score)
    return [token for token in best.tokens if token != EOS]


@pytest.mark.parametrize("penalty", [0.0, 0.8, 1.5, -1.0])
@pytest.mark.parametrize("beam_size", [1, 2, 3, 40])
def test_the_winner_is_that_of_the_search(beam_size, penalty):
    lengths = set()
    for seed in range(20):
        model = random_model(5, seed)
        ids = beam_search(model, BOS, EOS, beam_size, 6, penalty)
        assert winner_of(beam_trace(model, BOS, EOS, beam_size, 6, penalty), 6) == ids
        lengths.add(len(ids))
    assert len(lengths) > 1


def test_a_trace_by_hand():
    # Step by step: of eos (0.1), 2 (0.5), 3 (0.4) two survive; of their candidates 3 eos (0.36) and 2 2 (0.2).
    first, second, third = beam_trace(TRAP, BOS, EOS, beam_size=2, max_length=3)
    assert [(c.tokens, round(math.exp(c.log_prob), 6)) for c in first if c.survives] == [((2,), 0.5), ((3,), 0.4)]
    assert [(c.tokens, round(math.exp(c.log_prob), 6)) for c in second if c.survives] == [((3, 1), 0.36), ((2, 2), 0.2)]
    assert [c.finished for c in second if c.survives] == [True, False]
    assert [(c.tokens, round(math.exp(c.log_prob), 6)) for c in third if c.survives] == [
        ((2, 2, 1), 0.08),
        ((2, 2, 2), 0.06),
    ]
    assert [len(step) for step in (first, second, third)] == [4, 8, 4]


def test_the_length_of_a_score_counts_eos():
    model = model_of({(): [0.0, 0.5, 0.5, 0.0], (2,): [0.0, 0.9, 0.1, 0.0], (2, 2): [0.0, 1.0, 0.0, 0.0]})
    scores = {c.tokens: c.score for step in beam_trace(model, BOS, EOS, 2, 2, 1.0) for c in step}
    assert scores[2, EOS] == pytest.approx(math.log(0.45) / 2, abs=1e-12)


def test_the_search_ends_when_nothing_is_open():
    model = model_of({(): [0.0, 0.9, 0.06, 0.04]})
    assert len(beam_trace(model, BOS, EOS, 1, 50)) == 1
    assert beam_trace(model, BOS, EOS, 1, 0) == []


def test_survivors_are_the_best_of_all_candidates_together():
    # After 2 both continuations are better than any after 3; a choice for each hypothesis would keep one of 3's.
    rest = {(a, b): [0.0, 1.0, 0.0, 0.0] for a in (2, 3) for b in (2, 3)}
    model = model_of({(): [0.0, 0.0, 0.8, 0.2], (2,): [0.0, 0.0, 0.6, 0.4], (3,): [0.0, 0.0, 0.9, 0.1], **rest})
    _, second, _ = beam_trace(model, BOS, EOS, 2, 3)
    assert [c.tokens for c in second if c.survives] == [(2, 2), (2, 3)]


def test_a_finished_hypothesis_leaves_its_place_to_open_ones():
    # With eos survived in the first step one hypothesis is open; in the second step two of its candidates survive.
    rest = {(2, 2): [0.0, 0.7, 0.2, 0.1], (2, 3): [0.0, 0.7, 0.2, 0.1]}
    model = model_of({(): [0.0, 0.5, 0.4, 0.1], (2,): [0.0, 0.0, 0.6, 0.4], **rest})
    first, second, third = beam_trace(model, BOS, EOS, 2, 3)
    assert [c.tokens for c in first if c.survives] == [(EOS,), (2,)]
    assert [c.tokens for c in second if c.survives] == [(2, 2), (2, 3)]
    assert len(third) == 8  # both are extended


def test_each_step_extends_the_survivors_of_the_last():
    for seed in range(10):
        model = random_model(5, seed)
        steps = beam_trace(model, BOS, EOS, 3, 6, 0.8)
        for step, following in itertools.pairwise(steps):
            assert [c.log_prob for c in step] == sorted((c.log_prob for c in step), reverse=True)
            assert sum(c.survives for c in step) == 3
            parents = {c.tokens for c in step if c.survives and not c.finished}
            assert {c.tokens[:-1] for c in following} == parents
        for c in itertools.chain(*steps):
            prefix = [BOS, *c.tokens]
            total = sum(model(prefix[:i])[prefix[i]].item() for i in range(1, len(prefix)))
            assert c.log_prob == pytest.approx(total, abs=1e-12)
            assert c.score == pytest.approx(total / len(c.tokens) ** 0.8, abs=1e-12)
