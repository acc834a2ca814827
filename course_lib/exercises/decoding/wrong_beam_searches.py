"""Wrong beam searches that cases are drawn against, and that mistakes are made of."""

from __future__ import annotations

import math
from collections.abc import Callable

from course_lib.exercises.decoding.greedy_decode import greedy_decode
from course_lib.exercises.decoding.searching import beam, best_first, search

__all__ = [
    "added_to_n",
    "beam_filled_up",
    "best_has_ended",
    "best_of_each_parent",
    "eos_set_aside",
    "every_eos",
    "extended_ones_compete",
    "full",
    "gnmt",
    "greedy_for_beam",
    "multiplied",
    "no_open_ahead",
    "one_more",
    "only_finished",
    "only_open",
    "open_as_sums",
    "open_counted_longer",
    "parted",
    "penalty_and_mean",
    "penalty_of_bos",
    "products",
    "renormalised",
    "rewarded",
    "score_as_a_mean",
    "score_with_bos",
    "search_for_the_first_to_finish",
    "search_with",
    "search_without_parents",
    "shrinking",
    "staying",
    "staying_by_score",
    "subtracted",
    "twice_as_many",
    "unpruned",
    "without_eos_counted",
    "without_penalty",
]


def search_with(make: Callable[[Callable, int, int], dict]):
    """Beam search with parts that are made anew for every call, from the model, bos and eos."""

    def solution(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
        parts = make(next_log_probs, bos_id, eos_id)
        model = parts.pop("model", next_log_probs)
        return search(model, bos_id, eos_id, beam_size, max_length, length_penalty, **parts)

    return solution


def parted(hypotheses, eos):
    """Open ones, finished ones."""
    return [h for h in hypotheses if h[0][-1] != eos], [h for h in hypotheses if h[0][-1] == eos]


def twice_as_many(candidates, still_open, finished, beam_size, eos):
    """Twice as many candidates as the beam is wide may end; the best of the others are the new beam."""
    left, ended = parted(best_first(candidates)[: 2 * beam_size], eos)
    return left[:beam_size], ended


def _extended_ones_compete(next_log_probs, bos_id, eos_id):
    """Where every survivor has ended, the hypotheses that they extend are still in the list of the open ones."""
    left_over = []

    def split(candidates, still_open, finished, beam_size, eos):
        left, ended = parted(best_first(candidates)[:beam_size], eos)
        left_over[:] = left or still_open
        return left, ended

    return {"split": split, "competing": lambda finished, still_open: finished + left_over}


extended_ones_compete = search_with(_extended_ones_compete)


def greedy_for_beam(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    return greedy_decode(next_log_probs, bos_id, eos_id, max_length)


def best_of_each_parent(candidates, still_open, finished, beam_size, eos):
    """Every open hypothesis keeps its own best extension; the first step fills the beam."""
    groups: dict[tuple, list] = {}
    for tokens, total in candidates:
        groups.setdefault(tuple(tokens[:-1]), []).append((tokens, total))
    best = (
        best_first(candidates)[:beam_size] if len(groups) == 1 else [best_first(group)[0] for group in groups.values()]
    )
    return [h for h in best if h[0][-1] != eos], [h for h in best if h[0][-1] == eos]


def beam_filled_up(candidates, still_open, finished, beam_size, eos):
    """Survivors in eos are finished, and other candidates move up into their places."""
    ranked = best_first(candidates)
    return [h for h in ranked if h[0][-1] != eos][:beam_size], [h for h in ranked[:beam_size] if h[0][-1] == eos]


def every_eos(candidates, still_open, finished, beam_size, eos):
    """Whatever ends in eos is finished, whether it survives or not."""
    ranked = best_first(candidates)
    return [h for h in ranked[:beam_size] if h[0][-1] != eos], [h for h in ranked if h[0][-1] == eos]


def eos_set_aside(candidates, still_open, finished, beam_size, eos):
    """Whatever ends in eos is finished, and the beam is filled with others."""
    ranked = best_first(candidates)
    return [h for h in ranked if h[0][-1] != eos][:beam_size], [h for h in ranked if h[0][-1] == eos]


def staying(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0, *, key=None):
    """Finished hypotheses stay in the beam, and open ones have to beat them."""
    beam = [([], 0.0)]
    for _ in range(max_length):
        candidates = []
        for tokens, total in beam:
            if tokens[-1:] == [eos_id]:
                candidates.append((tokens, total))
                continue
            row = next_log_probs([bos_id, *tokens]).tolist()
            candidates += [([*tokens, token], total + log_prob) for token, log_prob in enumerate(row)]
        key_of = key or (lambda h, penalty: h[1])
        beam = sorted(candidates, key=lambda h: key_of(h, length_penalty), reverse=True)[:beam_size]
    tokens = max(beam, key=lambda h: h[1] / len(h[0]) ** length_penalty)[0]
    return tokens[:-1] if tokens[-1] == eos_id else tokens


def _by_mean(h, penalty):
    return h[1] / len(h[0]) ** penalty


def staying_by_score(*args):
    return staying(*args, key=_by_mean)


def shrinking(candidates, beam_size, finished):
    return best_first(candidates)[: max(0, beam_size - len(finished))]


def _renormalised(candidates, beam_size, finished):
    kept = best_first(candidates)[:beam_size]
    total = math.log(math.fsum(math.exp(log_prob) for _, log_prob in kept))
    return [(tokens, log_prob - total) for tokens, log_prob in kept]


renormalised = beam(survivors=_renormalised)
penalty_and_mean = beam(score=lambda total, n, penalty: total / n / n**penalty)
unpruned = beam(survivors=lambda candidates, beam_size, finished: best_first(candidates)[:100])
one_more = beam(survivors=lambda candidates, beam_size, finished: best_first(candidates)[: beam_size + 1])
only_finished = beam(competing=lambda finished, still_open: finished or still_open)
only_open = beam(competing=lambda finished, still_open: still_open or finished)
products = beam(score=lambda total, n, penalty: math.exp(total) / n**penalty)
without_penalty = beam(score=lambda total, n, penalty: total)
without_eos_counted = beam(count=lambda tokens, eos: max(1, len([t for t in tokens if t != eos])))
multiplied = beam(score=lambda total, n, penalty: total * n**penalty)
subtracted = beam(score=lambda total, n, penalty: total - penalty * n)
rewarded = beam(score=lambda total, n, penalty: total + penalty * n)
added_to_n = beam(score=lambda total, n, penalty: total / (n + penalty))
score_as_a_mean = beam(score=lambda total, n, penalty: total / n)
search_for_the_first_to_finish = beam(over=lambda finished, still_open, beam_size: bool(finished) or not still_open)
full = beam(over=lambda finished, still_open, beam_size: len(finished) >= beam_size or not still_open)


def gnmt(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    formula = beam(score=lambda total, n, penalty: total / ((5 + n) / 6) ** penalty)
    return formula(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


def no_open_ahead(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    def over(finished, still_open, beam_size):
        scores = [
            max((_by_mean(h, length_penalty) for h in part), default=-math.inf) for part in (finished, still_open)
        ]
        return not still_open or scores[0] >= scores[1]

    return search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty, over=over)


score_with_bos = beam(count=lambda tokens, eos: len(tokens) + 1)
penalty_of_bos = beam(count=lambda tokens, eos: len(tokens) + (tokens[-1] != eos))
open_counted_longer = penalty_of_bos


def open_as_sums(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    # Without the penalty a count of one leaves the sum as it is.
    count = beam(count=lambda tokens, eos: len(tokens) if tokens[-1] == eos else 1)
    return count(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


def search_without_parents(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The new tokens are appended to the hypotheses in the order of the beam, not to the ones that they came from."""

    def split(candidates, still_open, finished, beam_size, eos):
        ranked = best_first(candidates)[:beam_size]
        mixed = [
            ([*(still_open[i][0] if i < len(still_open) else tokens[:-1]), tokens[-1]], total)
            for i, (tokens, total) in enumerate(ranked)
        ]
        return [h for h in mixed if h[0][-1] != eos], [h for h in mixed if h[0][-1] == eos]

    return search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty, split=split)


def best_has_ended(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    def split(candidates, still_open, finished, beam_size, eos):
        ranked = best_first(candidates)[:beam_size]
        done = [h for h in ranked if h[0][-1] == eos]
        return ([] if ranked[0][0][-1] == eos else [h for h in ranked if h[0][-1] != eos]), done

    return search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty, split=split)
