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


@pytest.mark.parametrize(("beam_size", "penalty"), [(1, 0.8), (2, 0.0), (2, 1.5), (3, -1.0), (40, 0.8)])
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
    steps = beam_trace(TRAP, BOS, EOS, beam_size=2, max_length=3)
    survivors = [[(c.tokens, round(math.exp(c.log_prob), 6), c.finished) for c in step if c.survives] for step in steps]
    assert survivors == [
        [((2,), 0.5, False), ((3,), 0.4, False)],
        [((3, 1), 0.36, True), ((2, 2), 0.2, False)],
        [((2, 2, 1), 0.08, True), ((2, 2, 2), 0.06, False)],
    ]
    assert [len(step) for step in steps] == [4, 8, 4]


def test_the_search_ends_when_nothing_is_open():
    model = model_of({(): [0.0, 0.9, 0.06, 0.04]})
    assert len(beam_trace(model, BOS, EOS, 1, 50)) == 1
    assert beam_trace(model, BOS, EOS, 1, 0) == []


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
