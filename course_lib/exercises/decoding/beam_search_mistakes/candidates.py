"""Mistakes in `beam_search`: which candidates survive."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.beam_search import beam_search
from course_lib.exercises.decoding.searching import beam, best_first
from course_lib.exercises.decoding.wrong_beam_searches import (
    extended_ones_compete,
    one_more,
    parted,
    search_with,
    twice_as_many,
)

mistake = Mistakes()


def _split(choose):
    """A step whose survivors are `choose(candidates, still_open, beam_size, eos)`."""
    return lambda candidates, still_open, finished, beam_size, eos: parted(
        choose(candidates, still_open, beam_size, eos), eos
    )


def _old_candidates_too(next_log_probs, bos_id, eos_id):
    every = []

    def split(candidates, still_open, finished, beam_size, eos):
        every.extend(candidates)
        return parted(best_first(every)[:beam_size], eos)

    return {"split": split}


def _eos_for_nothing(next_log_probs, bos_id, eos_id):
    def model(tokens):
        log_probs = next_log_probs(tokens)
        log_probs[eos_id] = 0.0
        return log_probs

    return {"model": model}


def _eos_not_added(next_log_probs, bos_id, eos_id):
    def split(candidates, still_open, finished, beam_size, eos):
        totals = {tuple(tokens): total for tokens, total in still_open}
        left, ended = parted(best_first(candidates)[:beam_size], eos)
        return left, [(tokens, totals[tuple(tokens[:-1])]) for tokens, _ in ended]

    return {"split": split}


def _open_ones_compete_at_every_step(candidates, still_open, finished, beam_size, eos):
    left, ended = parted(best_first(candidates)[:beam_size], eos)
    return left, ended + left


def _vocabulary(candidates):
    return max(tokens[-1] for tokens, _ in candidates) + 1


def _without_id(which):
    def choose(candidates, still_open, beam_size, eos):
        left_out = which(_vocabulary(candidates), eos)
        return best_first([h for h in candidates if h[0][-1] != left_out])[:beam_size]

    return _split(choose)


_as_wide_as_the_vocabulary = beam(
    split=_split(
        lambda candidates, still_open, beam_size, eos: best_first(candidates)[: min(beam_size, _vocabulary(candidates))]
    )
)


@mistake
def one_survivor_too_many(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """One candidate too many survives each step."""
    return one_more(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def one_survivor_too_few(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """One candidate too few survives each step."""
    return beam(survivors=lambda candidates, beam_size, finished: best_first(candidates)[: max(1, beam_size - 1)])(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def more_than_the_vocabulary(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """`topk` is called with `beam_size`, but there are fewer tokens. The beam may be wider than the vocabulary."""

    def checked(tokens):
        log_probs = next_log_probs(tokens)
        log_probs.topk(beam_size)
        return log_probs

    return beam_search(checked, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def as_wide_as_the_vocabulary(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The beam is never wider than the vocabulary. There are more candidates from the second step on: every open
    hypothesis brings as many as there are tokens."""
    return _as_wide_as_the_vocabulary(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake(key="extended_ones_compete")
def extended_ones_compete_(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Where all survivors have ended, the hypotheses that they extend are still in the list of open ones, and win with
    one token fewer. The list should be empty then."""
    return extended_ones_compete(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def sorted_by_ids(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The candidates are sorted by their ids, not by their sums: tuples are compared by their first element."""
    return beam(
        split=_split(lambda candidates, still_open, beam_size, eos: sorted(candidates, reverse=True)[:beam_size])
    )(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def first_candidates_survive(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The first candidates survive, whatever their sums: the list is cut before it is sorted."""
    return beam(split=_split(lambda candidates, still_open, beam_size, eos: candidates[:beam_size]))(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def only_the_best_is_extended(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Only the best hypothesis is extended, and the others are forgotten: the loop over the beam ends too early."""
    return beam(
        split=_split(
            lambda candidates, still_open, beam_size, eos: best_first(
                [h for h in candidates if h[0][:-1] == still_open[0][0]]
            )[:beam_size]
        )
    )(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def old_candidates_compete_again(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The candidates of earlier steps compete again: the list is not emptied at the beginning of a step."""
    return search_with(_old_candidates_too)(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def twice_the_beam_looked_at(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Twice as many candidates as the beam is wide may end. A candidate that ends in eos has to be among the
    `beam_size` best of its step."""
    return beam(split=twice_as_many)(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def open_ones_compete_at_every_step(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Every prefix competes at the end like a finished hypothesis: open hypotheses are added at each step.
    Only those that are open after the last step compete as they stand."""
    return beam(split=_open_ones_compete_at_every_step)(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def id_zero_never(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The id 0 is never tried. Every token extends a hypothesis."""
    return beam(split=_without_id(lambda vocab, eos: 0))(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def last_id_never(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The last id of the vocabulary is never tried. Every token extends a hypothesis."""
    return beam(split=_without_id(lambda vocab, eos: vocab - 1))(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def eos_never_tried(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """No hypothesis is extended by eos, so none ever ends. eos is a token like the others."""
    return beam(split=_without_id(lambda vocab, eos: eos))(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def eos_for_nothing(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The result is always empty. Either eos costs nothing, although it was generated and its log-probability belongs
    to the sum, or no hypothesis can win: a score is never above 0, so is it compared with a number that it cannot
    reach?"""
    return search_with(_eos_for_nothing)(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def eos_not_in_the_sum(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """A finished hypothesis keeps the sum that it had before eos. eos was generated, and its log-probability belongs
    to the sum."""
    return search_with(_eos_not_added)(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)
