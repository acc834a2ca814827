"""Mistakes in `beam_search`: sums, the length penalty, and which hypothesis wins."""

from __future__ import annotations

import math

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.searching import beam, best_first
from course_lib.exercises.decoding.wrong_beam_searches import (
    gnmt,
    multiplied,
    only_finished,
    only_open,
    open_as_sums,
    penalty_of_bos,
    products,
    renormalised,
    score_as_a_mean,
    score_with_bos,
    without_eos_counted,
    without_penalty,
)

mistake = Mistakes()


LENGTH = "length_penalty: Dividing by a power of the length"


@mistake(look=LENGTH)
def eos_not_counted(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """n is counted after eos has been taken off. It was generated, and its log-probability is in the sum, so it
    counts."""
    return without_eos_counted(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake(look=LENGTH)
def bos_counted(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """n is one too large: it counts bos, which was not generated."""
    return score_with_bos(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake(look=LENGTH)
def open_ones_counted_longer(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """A hypothesis that has not ended is counted with the eos that it does not have."""
    return penalty_of_bos(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake(look=LENGTH)
def open_ones_not_penalised(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Finished hypotheses are divided by their length, open ones are not. At the end, the same score applies to all."""
    return open_as_sums(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake(look=LENGTH)
def penalty_multiplied(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The sum is multiplied by the power of n. Sums are negative: what does that do to a long hypothesis, and what
    should it do?"""
    return multiplied(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake(look=LENGTH)
def penalty_ignored(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The highest plain sum wins; `length_penalty` has no effect."""
    return without_penalty(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake(look=LENGTH)
def always_a_mean(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The sum is always divided by n, whatever `length_penalty` says. It is the exponent of n."""
    return score_as_a_mean(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake(look=LENGTH)
def penalty_times_n(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The sum is divided by the penalty times n. The penalty is the exponent of n."""
    return beam(score=lambda total, n, penalty: total / (n * penalty) if penalty else total)(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake(look=LENGTH)
def other_formula(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The length enters as (5 + n)/6. That is another penalty that is in use; here it is n itself."""
    return gnmt(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake(look=LENGTH)
def divided_at_every_step(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The sum is divided at every step and the quotient is carried on, so the first tokens are divided again and again.
    Do not divide the sums before the end."""
    return beam(
        add=lambda total, log_prob, n, penalty: (total + log_prob) / n**penalty, score=lambda total, n, penalty: total
    )(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake(look=LENGTH)
def each_token_divided(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Each log-probability is divided by the length at its own step. The whole sum is divided, by the final length."""
    return beam(
        add=lambda total, log_prob, n, penalty: total + log_prob / n**penalty, score=lambda total, n, penalty: total
    )(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def sum_forgotten(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Candidates are ranked by their last token alone. What a hypothesis has cost so far counts as well."""
    return beam(add=lambda total, log_prob, n, penalty: log_prob)(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def survivors_renormalised(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The sums of the survivors are normalised after each step, as if only they existed. That raises late hypotheses
    above those that ended earlier. A sum stays the log-probability of the whole sequence."""
    return renormalised(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def best_tokens_renormalised(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Of each hypothesis, only the best tokens are kept, and their probabilities are normalised so that they sum to
    one. The log-probabilities of the model are added up as they are."""

    def model(tokens):
        log_probs = next_log_probs(tokens)
        best = log_probs.topk(min(beam_size, len(log_probs)))
        return log_probs.new_full(log_probs.shape, -math.inf).scatter(0, best.indices, best.values.log_softmax(0))

    return beam()(model, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def probabilities_added(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Probabilities are added up. The probability of a sequence is a product; logarithms are added, and the model
    returns logarithms already."""
    return beam(add=lambda total, log_prob, n, penalty: total + math.exp(log_prob))(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake(look=LENGTH)
def products_penalised(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Products of probabilities are divided by the power of n. The penalty belongs to the sum of the logarithms."""
    return products(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def lowest_sums(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The candidates with the lowest sums survive. Log-probabilities are negative: the highest are nearest to zero."""
    return beam(survivors=lambda candidates, beam_size, finished: best_first(candidates)[::-1][:beam_size])(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def worst_wins(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The right hypotheses are collected, but the one with the lowest score is returned."""
    return beam(choose=min)(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def open_ones_lost(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Hypotheses that have not ended after `max_length` tokens are left out as soon as any has ended. They compete
    as they stand."""
    return only_finished(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def finished_ones_lost(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Only hypotheses that are still in the beam after the last step compete. Those that ended earlier also compete:
    where do you keep them?"""
    return only_open(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def open_ones_need_eos(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """At the end, hypotheses that have not ended never win, and if none has ended, nothing is returned."""
    return beam(competing=lambda finished, still_open: finished or [([], 0.0)])(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def first_finished_wins(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The hypothesis that was finished first is returned. Finished ones have to be compared."""
    return beam(choose=lambda hypotheses, key: hypotheses[0])(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def last_finished_wins(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The hypothesis that came last is returned. They have to be compared."""
    return beam(choose=lambda hypotheses, key: hypotheses[-1])(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )
