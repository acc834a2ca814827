"""Mistakes in `beam_search`: other sums and other choices, and two at once."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.searching import beam, best_first
from course_lib.exercises.decoding.wrong_beam_searches import parted, search_with

mistake = Mistakes()


def _with_count(count):
    return beam(count=count)


def _by_tokens(hypotheses, key):
    return max(hypotheses, key=lambda h: h[0])


def _longest(hypotheses, key):
    return max(hypotheses, key=lambda h: len(h[0]))


def _cut(tokens, eos):
    return tokens[:-1] if tokens[-1:] == [eos] else tokens


_COMMON_IN_BEAM: dict[str, tuple[str, dict]] = {
    "eos_included": ("eos stays in the result", {"result": lambda tokens, total, bos, eos: tokens}),
    "bos_included": ("bos stays in the result", {"result": lambda tokens, total, bos, eos: [bos, *_cut(tokens, eos)]}),
    "bos_counted": ("bos is counted in n", {"count": lambda tokens, eos: len(tokens) + 1}),
    "eos_not_counted": (
        "eos is not counted in n",
        {"count": lambda tokens, eos: max(1, len([t for t in tokens if t != eos]))},
    ),
    "open_ones_lost": (
        "hypotheses that have not ended do not compete",
        {"competing": lambda finished, still_open: finished or still_open},
    ),
    "penalty_ignored": ("the penalty has no effect", {"score": lambda total, n, penalty: total}),
    "always_a_mean": ("the penalty is not an exponent", {"score": lambda total, n, penalty: total / n}),
    "ends_with_a_full_list": (
        "the search ends too early, with a full list",
        {"over": lambda finished, still_open, beam_size: len(finished) >= beam_size or not still_open},
    ),
    "beam_shrinks": (
        "the beam gets narrower with every eos",
        {
            "survivors": lambda candidates, beam_size, finished: best_first(candidates)[
                : max(0, beam_size - len(finished))
            ]
        },
    ),
}


hidden = (
    {"bos_counted", "penalty_ignored"},
    {"eos_not_counted", "penalty_ignored"},
    {"penalty_ignored", "ends_with_a_full_list"},
    {"ends_with_a_full_list", "beam_shrinks"},
)


@mistake
def log_probabilities_multiplied(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Log-probabilities are multiplied. Probabilities are multiplied; their logarithms are added."""
    return beam(add=lambda total, log_prob, n, penalty: log_prob if n == 1 else total * log_prob)(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def multiplied_by_zero(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Every sum is 0: the initial value is 0, and log-probabilities are multiplied by it. They should be added."""
    return beam(add=lambda total, log_prob, n, penalty: total * log_prob)(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def subtracted(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Log-probabilities are subtracted, which turns them into costs: then the *lowest* would have to survive."""
    return beam(add=lambda total, log_prob, n, penalty: total - log_prob)(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def mean_before_the_penalty(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """A mean over the tokens is carried on, and the penalty divides once more. Do not divide the sums before the
    end."""
    return beam(score=lambda total, n, penalty: total / n / n**penalty)(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def finished_penalised_twice(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Finished hypotheses are divided by the power of n when they end, and once more at the end."""
    return _with_count(lambda tokens, eos: len(tokens) ** 2 if tokens[-1] == eos else len(tokens))(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def no_tokens_but_eos(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """n is counted without eos, and for a hypothesis of eos alone the divisor is 0. eos was generated: it counts."""
    return _with_count(lambda tokens, eos: len([t for t in tokens if t != eos]))(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def one_less_for_all(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """n is one too small for every hypothesis. Which tokens were generated?"""
    return _with_count(lambda tokens, eos: max(1, len(tokens) - 1))(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def penalty_subtracted(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The penalty times n is subtracted from the sum. The sum is *divided* by a power of n."""
    return beam(score=lambda total, n, penalty: total - penalty * n)(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def reward_added(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The penalty times n is added to the sum. The sum is *divided* by a power of n."""
    return beam(score=lambda total, n, penalty: total + penalty * n)(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def penalty_added_to_n(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The sum is divided by n plus the penalty. The penalty is the exponent of n."""
    return beam(score=lambda total, n, penalty: total / (n + penalty))(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def penalty_to_the_n(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Base and exponent are exchanged: n should be raised to the power of the penalty."""
    return beam(score=lambda total, n, penalty: total / (penalty**n or 1))(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def largest_ids_win(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """At the end the hypotheses are compared by their ids: `max` without a key compares the first elements."""
    return beam(choose=_by_tokens)(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def longest_wins(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The longest hypothesis is returned. The best score wins."""
    return beam(choose=_longest)(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def only_the_last_finished_kept(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Only the last of the finished hypotheses is kept: `=` is used where the hypothesis should be appended to the
    list."""
    return beam(competing=lambda finished, still_open: finished[-1:] + still_open)(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def only_the_first_finished_kept(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Only the first of the finished hypotheses competes. All of them should."""
    return beam(competing=lambda finished, still_open: finished[:1] + still_open)(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def only_the_best_open_one_competes(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Of those that have not ended, only the last one competes at the end. All of them should."""
    return beam(competing=lambda finished, still_open: finished + still_open[-1:])(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def score_only(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The best score is returned instead of the ids that it belongs to."""
    return search_with(
        lambda next_log_probs, bos_id, eos_id: {"result": lambda tokens, total, bos, eos: float(total)},
    )(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def first_token_dropped(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The first generated token is missing: bos is cut off twice."""
    return beam(result=lambda tokens, total, bos, eos: _cut(tokens, eos)[1:])(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def tuple_returned(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The ids are returned as a tuple. The contract asks for a list."""
    return beam(result=lambda tokens, total, bos, eos: tuple(_cut(tokens, eos)))(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def asked_with_a_tensor(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The model is called with a tensor. The contract says a list of ints."""
    return beam(asked=lambda tokens, bos: torch.tensor([bos, *tokens]))(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def bos_at_every_step(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The model is given bos alone, at every step. It needs all tokens of the hypothesis so far."""
    return beam(asked=lambda tokens, bos: [bos])(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def asked_backwards(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The model is given the tokens of a hypothesis in the wrong order: the newest one belongs at the end."""
    return beam(asked=lambda tokens, bos: [bos, *tokens[::-1]])(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def only_one_survivor(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """One candidate survives, whatever `beam_size` is, and others compete only if they end in eos."""
    return beam(
        split=lambda candidates, still_open, finished, beam_size, eos: (
            best_first(candidates)[:1] if best_first(candidates)[0][0][-1] != eos else [],
            parted(best_first(candidates)[:beam_size], eos)[1],
        )
    )(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


mistake.two_at_once(_COMMON_IN_BEAM, beam, hidden)
