"""Further mistakes in greedy and beam search: what is kept, compared and counted, and two common ones at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch

from course_lib.exercises._exercise import Exercise
from course_lib.exercises._searching import beam, best, greedy, search

__all__ = ["add_beam_slips", "add_greedy_slips", "extended_ones_compete", "twice_as_many"]

INF = float("inf")
Slip = tuple[str, str, Callable]


def _add(
    exercise: Exercise,
    slips: list[Slip],
    common: dict[str, tuple[str, dict]],
    build: Callable,
    hidden: tuple[set[str], ...] = (),
) -> None:
    """The slips, and two common mistakes at once where they lie in different parts and neither hides the other."""
    for key, says, solution in slips:
        exercise.misconception(key, says)(solution)
    for (a, (first, one)), (b, (second, other)) in itertools.combinations(common.items(), 2):
        if not one.keys() & other.keys() and {a, b} not in hidden:
            says = f"Two mistakes meet here: {first}, and {second}. Mend them one at a time."
            exercise.misconception(f"{a}+{b}", says)(build(**one, **other))


# greedy_decode


def _only_new(next_log_probs, bos_id, eos_id, max_length):
    tokens = [bos_id]
    for _ in range(max_length):
        token = int(next_log_probs(tokens).argmax())
        if token == eos_id:
            break
        if token not in tokens:
            tokens.append(token)
    return tokens[1:]


def _ranks_of_the_first_step(next_log_probs, bos_id, eos_id, max_length):
    tokens = []
    for token in next_log_probs([bos_id]).argsort(descending=True)[:max_length].tolist():
        if token == eos_id:
            break
        tokens.append(token)
    return tokens


def _refuses_without_eos(next_log_probs, bos_id, eos_id, max_length):
    def result(tokens, ended, eos):
        if not ended:
            raise RuntimeError("no eos")
        return tokens[1:]

    return greedy(result=result)(next_log_probs, bos_id, eos_id, max_length)


_GREEDY: list[Slip] = [
    (
        "two_too_few",
        "Where eos does not come the result is two tokens too short. Neither bos nor eos is one of the `max_length` "
        "generated tokens.",
        greedy(steps=lambda max_length: max_length - 2),
    ),
    (
        "first_token_dropped",
        "The first generated token is missing: more is cut off in front than bos.",
        greedy(result=lambda tokens, ended, eos: tokens[2:]),
    ),
    (
        "first_dropped_eos_kept",
        "Where eos ends the sequence, it stays, and the first token goes in its place: `pop(0)` takes from the front.",
        greedy(result=lambda tokens, ended, eos: [*tokens[2:], eos] if ended else tokens[1:]),
    ),
    (
        "nothing_at_eos",
        "Where eos comes nothing is returned: a bare `return` gives None. `break` only leaves the loop.",
        greedy(result=lambda tokens, ended, eos: None if ended else tokens[1:]),
    ),
    (
        "one_token_only",
        "Only one token is generated: a `return` stands inside the loop.",
        greedy(steps=lambda max_length: 1, result=lambda tokens, ended, eos: None if ended else tokens[1:]),
    ),
    (
        "stops_unless_eos",
        "The search ends at every token that is *not* eos: the condition is turned round.",
        greedy(stop=lambda token, bos, eos: token != eos),
    ),
    (
        "probability_for_the_id",
        "The highest log-probability itself is taken as the id. What is asked for is the *place* where it stands.",
        greedy(choose=lambda log_probs, bos, eos: int(log_probs.max())),
    ),
    (
        "put_in_front",
        "Each new token is put in front of the earlier ones, right after bos, for the model and in the result. It "
        "belongs at the end.",
        greedy(asked=lambda tokens, bos: [bos, *tokens[:0:-1]], result=lambda tokens, ended, eos: tokens[:0:-1]),
    ),
    (
        "backwards",
        "The result runs backwards.",
        greedy(result=lambda tokens, ended, eos: tokens[:0:-1]),
    ),
    (
        "sorted",
        "The ids are sorted. Their order is the sentence.",
        greedy(result=lambda tokens, ended, eos: sorted(tokens[1:])),
    ),
    (
        "no_repetition",
        "A token that has come before is not appended again, or ends the search. Words may come back.",
        _only_new,
    ),
    (
        "only_the_last_two",
        "The model is asked with the last two tokens alone. It wants to see all tokens so far, bos first.",
        greedy(asked=lambda tokens, bos: tokens[-2:]),
    ),
    (
        "asked_with_a_tensor",
        "The model is asked with a tensor. The contract says a list of ints.",
        greedy(asked=lambda tokens, bos: torch.tensor(tokens)),
    ),
    (
        "asked_with_a_batch",
        "The model is asked with a list in a list, as if there were a batch. It takes one list of ints.",
        greedy(asked=lambda tokens, bos: [tokens]),
    ),
    (
        "ids_as_floats",
        "The ids are floats. They are ints: the model looks them up.",
        greedy(choose=lambda log_probs, bos, eos: float(log_probs.argmax())),
    ),
    (
        "eos_always_added",
        "eos is put at the end of every result, also where it was never generated. It is not part of the result.",
        greedy(result=lambda tokens, ended, eos: [*tokens[1:], eos]),
    ),
    (
        "begins_with_eos",
        "The sequence begins with eos. It begins with bos, and eos ends it.",
        lambda next_log_probs, bos_id, eos_id, max_length: greedy(asked=lambda tokens, bos: [eos_id, *tokens[1:]])(
            next_log_probs, bos_id, eos_id, max_length
        ),
    ),
    (
        "as_text",
        "The ids come back as text. The contract asks for a list of ints.",
        greedy(result=lambda tokens, ended, eos: " ".join(map(str, tokens[1:]))),
    ),
    (
        "error_without_eos",
        "Where eos does not come an error is raised. After `max_length` tokens the search is over, and what was "
        "generated is the result.",
        _refuses_without_eos,
    ),
    (
        "nothing_without_eos",
        "Where eos does not come the result is empty. After `max_length` tokens the search is over, and what was "
        "generated is the result.",
        greedy(result=lambda tokens, ended, eos: tokens[1:] if ended else []),
    ),
    (
        "first_id_left_out",
        "The id 0 is left out before the best one is looked for, so that all others are one too small. A part of a "
        "tensor counts its places from 0 again.",
        greedy(choose=lambda log_probs, bos, eos: int(log_probs[1:].argmax())),
    ),
    (
        "last_id_left_out",
        "The last id of the vocabulary is never chosen: `[:-1]` leaves it out.",
        greedy(choose=lambda log_probs, bos, eos: int(log_probs[:-1].argmax())),
    ),
    (
        "as_if_rows",
        "`[-1]` takes the last number of the log-probabilities, as if there were a row for each position. There is one "
        "row, `(V,)`, for the next token.",
        greedy(choose=lambda log_probs, bos, eos: 0),
    ),
    (
        "ranks_of_the_first_step",
        "The model is asked once, and its most probable tokens are listed one after the other. After each token it has "
        "to be asked again.",
        _ranks_of_the_first_step,
    ),
]

_COMMON_IN_GREEDY: dict[str, tuple[str, dict]] = {
    "eos_included": ("eos stays in the result", {"result": lambda tokens, ended, eos: tokens[1:] + [eos] * ended}),
    "bos_included": ("bos stays in the result", {"result": lambda tokens, ended, eos: tokens}),
    "bos_and_eos_included": (
        "bos and eos stay in the result",
        {"result": lambda tokens, ended, eos: tokens + [eos] * ended},
    ),
    "bos_counted": ("the search is one step too short", {"steps": lambda max_length: max_length - 1}),
    "one_too_many": ("the search is one step too long", {"steps": lambda max_length: max_length + 1}),
    "only_the_last_token": ("the model sees the last token only", {"asked": lambda tokens, bos: tokens[-1:]}),
    "bos_and_the_last_token": (
        "the model sees bos and the last token only",
        {"asked": lambda tokens, bos: [bos, *tokens[1:][-1:]]},
    ),
}


def add_greedy_slips(exercise: Exercise) -> None:
    """Add the mistakes of this module to those of `greedy_decode`."""
    _add(exercise, _GREEDY, _COMMON_IN_GREEDY, greedy)


# beam_search


def _solution(make: Callable[[Callable, int, int], dict]):
    """Beam search with parts that are made anew for every call, from the model, bos and eos."""

    def solution(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
        parts = make(next_log_probs, bos_id, eos_id)
        model = parts.pop("model", next_log_probs)
        return search(model, bos_id, eos_id, beam_size, max_length, length_penalty, **parts)

    return solution


def _parted(hypotheses, eos):
    """Open ones, finished ones."""
    return [h for h in hypotheses if h[0][-1] != eos], [h for h in hypotheses if h[0][-1] == eos]


def _split(choose):
    """A step of which `choose(candidates, still_open, beam_size, eos)` are the survivors."""
    return lambda candidates, still_open, finished, beam_size, eos: _parted(
        choose(candidates, still_open, beam_size, eos), eos
    )


def _old_candidates_too(next_log_probs, bos_id, eos_id):
    every = []

    def split(candidates, still_open, finished, beam_size, eos):
        every.extend(candidates)
        return _parted(best(every)[:beam_size], eos)

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
        left, ended = _parted(best(candidates)[:beam_size], eos)
        return left, [(tokens, totals[tuple(tokens[:-1])]) for tokens, _ in ended]

    return {"split": split}


def twice_as_many(candidates, still_open, finished, beam_size, eos):
    """Twice as many candidates as the beam is wide may end; the best of the others are the new beam."""
    left, ended = _parted(best(candidates)[: 2 * beam_size], eos)
    return left[:beam_size], ended


def _open_ones_compete_at_every_step(candidates, still_open, finished, beam_size, eos):
    left, ended = _parted(best(candidates)[:beam_size], eos)
    return left, ended + left


def _extended_ones_compete(next_log_probs, bos_id, eos_id):
    """Where every survivor has ended, the hypotheses that they extend are still in the list of the open ones."""
    left_over = []

    def split(candidates, still_open, finished, beam_size, eos):
        left, ended = _parted(best(candidates)[:beam_size], eos)
        left_over[:] = left or still_open
        return left, ended

    return {"split": split, "competing": lambda finished, still_open: finished + left_over}


def _vocabulary(candidates):
    return max(tokens[-1] for tokens, _ in candidates) + 1


def _without_id(which):
    def choose(candidates, still_open, beam_size, eos):
        left_out = which(_vocabulary(candidates), eos)
        return best([h for h in candidates if h[0][-1] != left_out])[:beam_size]

    return _split(choose)


def _with_count(count):
    return beam(count=count)


def _by_tokens(hypotheses, key):
    return max(hypotheses, key=lambda h: h[0])


def _longest(hypotheses, key):
    return max(hypotheses, key=lambda h: len(h[0]))


def _cut(tokens, eos):
    return tokens[:-1] if tokens[-1:] == [eos] else tokens


extended_ones_compete = _solution(_extended_ones_compete)

_as_wide_as_the_vocabulary = beam(
    split=_split(
        lambda candidates, still_open, beam_size, eos: best(candidates)[: min(beam_size, _vocabulary(candidates))]
    )
)

_BEAM: list[Slip] = [
    (
        "as_wide_as_the_vocabulary",
        "The beam is never wider than the vocabulary. There are more candidates from the second step on: every open "
        "hypothesis brings as many as there are tokens.",
        _as_wide_as_the_vocabulary,
    ),
    (
        "extended_ones_compete",
        "Where all survivors have ended, the hypotheses that they extend are still in the list of the open ones, and "
        "win with one token less. Nothing is open then.",
        extended_ones_compete,
    ),
    (
        "sorted_by_ids",
        "The candidates are sorted by their ids, not by their sums: tuples are compared by what stands first.",
        beam(split=_split(lambda candidates, still_open, beam_size, eos: sorted(candidates, reverse=True)[:beam_size])),
    ),
    (
        "first_candidates_survive",
        "The first candidates survive, as they come: they are cut before they are sorted.",
        beam(split=_split(lambda candidates, still_open, beam_size, eos: candidates[:beam_size])),
    ),
    (
        "only_the_best_is_extended",
        "Only the best hypothesis is extended, and the others are forgotten: the loop over the beam ends too early.",
        beam(
            split=_split(
                lambda candidates, still_open, beam_size, eos: best(
                    [h for h in candidates if h[0][:-1] == still_open[0][0]]
                )[:beam_size]
            )
        ),
    ),
    (
        "old_candidates_compete_again",
        "The candidates of earlier steps compete again: the list is not emptied at the beginning of a step.",
        _solution(_old_candidates_too),
    ),
    (
        "twice_the_beam_looked_at",
        "Twice as many candidates as the beam is wide may end. Whatever ends in eos has to be among the `beam_size` "
        "best of its step.",
        beam(split=twice_as_many),
    ),
    (
        "open_ones_compete_at_every_step",
        "Every beginning of a sentence competes at the end as if it were one: open hypotheses are added at each step. "
        "Only those that are open after the last step compete as they stand.",
        beam(split=_open_ones_compete_at_every_step),
    ),
    (
        "id_zero_never",
        "The id 0 is never tried. Every token extends a hypothesis.",
        beam(split=_without_id(lambda vocab, eos: 0)),
    ),
    (
        "last_id_never",
        "The last id of the vocabulary is never tried. Every token extends a hypothesis.",
        beam(split=_without_id(lambda vocab, eos: vocab - 1)),
    ),
    (
        "eos_never_tried",
        "No hypothesis is extended by eos, so none ever ends. It is a token like the others.",
        beam(split=_without_id(lambda vocab, eos: eos)),
    ),
    (
        "eos_for_nothing",
        "eos costs nothing: its log-probability is not added. It was generated as well.",
        _solution(_eos_for_nothing),
    ),
    (
        "eos_not_in_the_sum",
        "A finished hypothesis keeps the sum that it had before eos. eos was generated, and its log-probability "
        "belongs to the sum.",
        _solution(_eos_not_added),
    ),
    (
        "log_probabilities_multiplied",
        "Log-probabilities are multiplied. Probabilities are multiplied; their logarithms are added.",
        beam(add=lambda total, log_prob, n, penalty: log_prob if n == 1 else total * log_prob),
    ),
    (
        "multiplied_by_zero",
        "Every sum is 0: the start is 0, and log-probabilities are multiplied with it. They are added.",
        beam(add=lambda total, log_prob, n, penalty: total * log_prob),
    ),
    (
        "subtracted",
        "Log-probabilities are subtracted, which makes costs of them: then the *lowest* would have to survive.",
        beam(add=lambda total, log_prob, n, penalty: total - log_prob),
    ),
    (
        "mean_before_the_penalty",
        "A mean over the tokens is carried on, and the penalty divides once more. Sums stay sums until the end.",
        beam(score=lambda total, n, penalty: total / n / n**penalty),
    ),
    (
        "finished_penalised_twice",
        "Finished hypotheses are divided by the power of n when they end, and once more at the end.",
        _with_count(lambda tokens, eos: len(tokens) ** 2 if tokens[-1] == eos else len(tokens)),
    ),
    (
        "no_tokens_but_eos",
        "n is counted without eos, and a hypothesis of eos alone divides by 0. eos was generated: it counts.",
        _with_count(lambda tokens, eos: len([t for t in tokens if t != eos])),
    ),
    (
        "one_less_for_all",
        "n is one too small for every hypothesis. Which tokens were generated?",
        _with_count(lambda tokens, eos: max(1, len(tokens) - 1)),
    ),
    (
        "penalty_subtracted",
        "The penalty times n is subtracted from the sum. The sum is *divided* by a power of n.",
        beam(score=lambda total, n, penalty: total - penalty * n),
    ),
    (
        "reward_added",
        "The penalty times n is added to the sum. The sum is *divided* by a power of n.",
        beam(score=lambda total, n, penalty: total + penalty * n),
    ),
    (
        "penalty_added_to_n",
        "The sum is divided by n plus the penalty. The penalty is the exponent of n.",
        beam(score=lambda total, n, penalty: total / (n + penalty)),
    ),
    (
        "penalty_to_the_n",
        "Base and exponent are exchanged: n to the power of the penalty is meant.",
        beam(score=lambda total, n, penalty: total / (penalty**n or 1)),
    ),
    (
        "largest_ids_win",
        "At the end the hypotheses are compared by their ids: `max` without a key compares what stands first.",
        beam(choose=_by_tokens),
    ),
    ("longest_wins", "The longest hypothesis is returned. The best score wins.", beam(choose=_longest)),
    (
        "only_the_last_finished_kept",
        "Of the finished hypotheses only the last one is kept: `=` stands where one should be added to the list.",
        beam(competing=lambda finished, still_open: finished[-1:] + still_open),
    ),
    (
        "only_the_first_finished_kept",
        "Of the finished hypotheses only the first one competes. All of them do.",
        beam(competing=lambda finished, still_open: finished[:1] + still_open),
    ),
    (
        "only_the_best_open_one_competes",
        "Of those that have not ended only the last one competes at the end. All of them do.",
        beam(competing=lambda finished, still_open: finished + still_open[-1:]),
    ),
    (
        "score_only",
        "The best score comes back, and not the ids that it belongs to.",
        _solution(
            lambda next_log_probs, bos_id, eos_id: {"result": lambda tokens, total, bos, eos: float(total)},
        ),
    ),
    (
        "first_token_dropped",
        "The first generated token is missing: bos is cut off twice.",
        beam(result=lambda tokens, total, bos, eos: _cut(tokens, eos)[1:]),
    ),
    (
        "tuple_returned",
        "The ids come back as a tuple. The contract asks for a list.",
        beam(result=lambda tokens, total, bos, eos: tuple(_cut(tokens, eos))),
    ),
    (
        "asked_with_a_tensor",
        "The model is asked with a tensor. The contract says a list of ints.",
        beam(asked=lambda tokens, bos: torch.tensor([bos, *tokens])),
    ),
    (
        "bos_at_every_step",
        "The model is asked with bos alone, at every step. What a hypothesis has so far has to go in.",
        beam(asked=lambda tokens, bos: [bos]),
    ),
    (
        "asked_backwards",
        "The model sees the tokens of a hypothesis in the wrong order: the newest one stands at the end.",
        beam(asked=lambda tokens, bos: [bos, *tokens[::-1]]),
    ),
    (
        "only_one_survivor",
        "One candidate survives, whatever `beam_size` says, and others only compete if they end in eos.",
        beam(
            split=lambda candidates, still_open, finished, beam_size, eos: (
                best(candidates)[:1] if best(candidates)[0][0][-1] != eos else [],
                _parted(best(candidates)[:beam_size], eos)[1],
            )
        ),
    ),
]

_COMMON_IN_BEAM: dict[str, tuple[str, dict]] = {
    "eos_included": ("eos stays in the result", {"result": lambda tokens, total, bos, eos: tokens}),
    "bos_included": ("bos stays in the result", {"result": lambda tokens, total, bos, eos: [bos, *_cut(tokens, eos)]}),
    "bos_counted": ("bos is counted in n", {"count": lambda tokens, eos: len(tokens) + 1}),
    "eos_not_counted": (
        "eos is not counted in n",
        {"count": lambda tokens, eos: max(1, len([t for t in tokens if t != eos]))},
    ),
    "open_ones_lost": (
        "what has not ended does not compete",
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
        {"survivors": lambda candidates, beam_size, finished: best(candidates)[: max(0, beam_size - len(finished))]},
    ),
}


def add_beam_slips(exercise: Exercise) -> None:
    """Add the mistakes of this module to those of `beam_search`."""
    hidden = (
        {"bos_counted", "penalty_ignored"},
        {"eos_not_counted", "penalty_ignored"},
        {"penalty_ignored", "ends_with_a_full_list"},
        {"ends_with_a_full_list", "beam_shrinks"},
    )
    _add(exercise, _BEAM, _COMMON_IN_BEAM, beam, hidden)
