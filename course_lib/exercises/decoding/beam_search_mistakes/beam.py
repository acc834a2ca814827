"""Mistakes in `beam_search`: which hypotheses stay in the beam, and when the search ends."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.searching import beam, best_first, search
from course_lib.exercises.decoding.wrong_beam_searches import (
    beam_filled_up,
    best_has_ended,
    best_of_each_parent,
    eos_set_aside,
    every_eos,
    full,
    greedy_for_beam,
    no_open_ahead,
    search_for_the_first_to_finish,
    search_without_parents,
    shrinking,
    staying,
    staying_by_score,
)

mistake = Mistakes()


LENGTH = "length_penalty: Dividing by a power of the length"


def _last_step(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    def competing(finished, still_open):
        longest = max(len(tokens) for tokens, _ in finished + still_open)
        return [h for h in finished + still_open if len(h[0]) == longest]

    return search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty, competing=competing)


def _eos_forced(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    def competing(finished, still_open):
        return finished + [
            ([*tokens, eos_id], total + float(next_log_probs([bos_id, *tokens])[eos_id]))
            for tokens, total in still_open
        ]

    return search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty, competing=competing)


def _some_of_each(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    def split(candidates, still_open, finished, beam_size, eos):
        groups: dict[tuple, list] = {}
        for tokens, total in candidates:
            groups.setdefault(tuple(tokens[:-1]), []).append((tokens, total))
        best = [h for group in groups.values() for h in best_first(group)[:beam_size]]
        return [h for h in best if h[0][-1] != eos], [h for h in best if h[0][-1] == eos]

    return search(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty, split=split)


@mistake
def best_of_each(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Every hypothesis keeps its own best extension, so a weak one never leaves the beam. All candidates of a step
    compete together, and the best of them may have the same parent."""
    return beam(split=best_of_each_parent)(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def greedy(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The answer is that of greedy search. Is more than one hypothesis kept open? And does the beam begin with exactly
    one? Several copies of bos have the same extensions, so they fill the beam with copies of one hypothesis."""
    return greedy_for_beam(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def parents_forgotten(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The new tokens are appended to the hypotheses in rank order. Each token belongs to the hypothesis that it
    extends, and the ranks have changed."""
    return search_without_parents(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def finished_stay_in_the_beam(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Finished hypotheses stay in the beam, and take the place of open ones at every step. Set them aside;
    the next `beam_size` survivors are chosen among the new candidates alone."""
    return staying(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake(look=LENGTH)
def finished_stay_and_compete_by_score(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Finished hypotheses stay in the beam, and survival depends on the penalised score. Only the sums of new
    candidates decide which survive; the penalty is applied at the end."""
    return staying_by_score(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def beam_shrinks(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Every finished hypothesis makes the beam narrower for good. Its place should be free again in the next step."""
    return beam(survivors=shrinking)(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def filled_up(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Where survivors have ended, other candidates move up, so that there are always `beam_size` open ones. Only the
    `beam_size` best survive a step, with eos among them."""
    return beam(split=beam_filled_up)(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def every_eos_counts(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """A candidate that ends in eos is taken as finished without having survived. It has to be among the `beam_size`
    best of its step."""
    return beam(split=every_eos)(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def eos_outside_the_beam(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Candidates that end in eos are kept apart: all of them are finished, and the beam is filled with others. eos
    competes for its place like every other token."""
    return beam(split=eos_set_aside)(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake(look=LENGTH)
def first_to_finish(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The search ends when the first hypothesis has ended. An open one may still become better than it."""
    return search_for_the_first_to_finish(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake(look=LENGTH)
def ends_with_a_full_list(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The search ends when `beam_size` hypotheses have ended. As long as one is open, it may still win."""
    return full(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake(look=LENGTH)
def stops_when_the_best_has_ended(*args):
    """The search ends as soon as the best candidate of a step ends in eos. With a penalty a longer one may still
    win, and others are still open."""
    return best_has_ended(*args)


@mistake(look=LENGTH)
def stops_when_no_open_one_is_ahead(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The search ends when the best finished hypothesis has a better score than every open one has now. With a
    penalty an open one can still overtake it: the score may rise with the length."""
    return no_open_ahead(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def only_the_last_step(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Only the survivors of the last step compete. Those that ended in earlier steps also compete: where do you keep
    them?"""
    return _last_step(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def eos_forced_at_the_end(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Hypotheses that have not ended after `max_length` tokens are charged for an eos that they did not generate.
    They compete as they stand."""
    return _eos_forced(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def beam_size_of_each(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """Each hypothesis keeps its `beam_size` best extensions, and all of them are kept, so the beam grows with every
    step. All candidates of a step share `beam_size` places."""
    return _some_of_each(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake
def goes_on_after_eos(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """A hypothesis that has ended is extended. Nothing follows eos: it has to leave the open ones."""
    return beam(
        split=lambda candidates, still_open, finished, beam_size, eos: (best_first(candidates)[:beam_size], [])
    )(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)
