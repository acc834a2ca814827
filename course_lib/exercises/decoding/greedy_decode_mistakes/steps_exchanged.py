"""Mistakes in `greedy_decode`: one step of the loop is replaced."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.searching import greedy

mistake = Mistakes()


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


_COMMON_IN_GREEDY: dict[str, tuple[str, dict]] = {
    "eos_included": ("eos stays in the result", {"result": lambda tokens, ended, eos: tokens[1:] + [eos] * ended}),
    "bos_included": ("bos stays in the result", {"result": lambda tokens, ended, eos: tokens}),
    "bos_and_eos_included": (
        "bos and eos stay in the result",
        {"result": lambda tokens, ended, eos: tokens + [eos] * ended},
    ),
    "bos_counted": ("the search is one step too short", {"steps": lambda max_length: max_length - 1}),
    "one_too_many": ("the search is one step too long", {"steps": lambda max_length: max_length + 1}),
    "only_the_last_token": (
        "the model is called without bos from the second step on",
        {"asked": lambda tokens, bos: tokens[-1:]},
    ),
    "bos_and_the_last_token": (
        "the model sees bos and the last token only",
        {"asked": lambda tokens, bos: [bos, *tokens[1:][-1:]]},
    ),
}


@mistake
def two_too_few(next_log_probs, bos_id, eos_id, max_length):
    """If eos is not generated, the result is two tokens too short. Neither bos nor eos is one of the `max_length`
    generated tokens."""
    return greedy(steps=lambda max_length: max_length - 2)(next_log_probs, bos_id, eos_id, max_length)


@mistake
def first_token_dropped(next_log_probs, bos_id, eos_id, max_length):
    """The first generated token is missing: more than bos is cut off at the front."""
    return greedy(result=lambda tokens, ended, eos: tokens[2:])(next_log_probs, bos_id, eos_id, max_length)


@mistake
def first_dropped_eos_kept(next_log_probs, bos_id, eos_id, max_length):
    """Where eos ends the sequence, it stays, and the first token is removed instead: `pop(0)` removes from the
    front."""
    return greedy(result=lambda tokens, ended, eos: [*tokens[2:], eos] if ended else tokens[1:])(
        next_log_probs, bos_id, eos_id, max_length
    )


@mistake
def nothing_at_eos(next_log_probs, bos_id, eos_id, max_length):
    """If eos is generated, nothing is returned: a bare `return` gives None. `break` only leaves the loop."""
    return greedy(result=lambda tokens, ended, eos: None if ended else tokens[1:])(
        next_log_probs, bos_id, eos_id, max_length
    )


@mistake
def one_token_only(next_log_probs, bos_id, eos_id, max_length):
    """Only one token is generated: there is a `return` inside the loop."""
    return greedy(steps=lambda max_length: 1, result=lambda tokens, ended, eos: None if ended else tokens[1:])(
        next_log_probs, bos_id, eos_id, max_length
    )


@mistake
def stops_unless_eos(next_log_probs, bos_id, eos_id, max_length):
    """The search ends at every token that is *not* eos: the condition is reversed."""
    return greedy(stop=lambda token, bos, eos: token != eos)(next_log_probs, bos_id, eos_id, max_length)


@mistake
def probability_for_the_id(next_log_probs, bos_id, eos_id, max_length):
    """The highest log-probability itself is taken as the id. The id is its *index*."""
    return greedy(choose=lambda log_probs, bos, eos: int(log_probs.max()))(next_log_probs, bos_id, eos_id, max_length)


@mistake
def put_in_front(next_log_probs, bos_id, eos_id, max_length):
    """Each new token is put before the earlier ones, right after bos, both for the model and in the result. It belongs
    at the end."""
    return greedy(asked=lambda tokens, bos: [bos, *tokens[:0:-1]], result=lambda tokens, ended, eos: tokens[:0:-1])(
        next_log_probs, bos_id, eos_id, max_length
    )


@mistake
def backwards(next_log_probs, bos_id, eos_id, max_length):
    """The result is in reverse order."""
    return greedy(result=lambda tokens, ended, eos: tokens[:0:-1])(next_log_probs, bos_id, eos_id, max_length)


@mistake(key="sorted")
def sorted_(next_log_probs, bos_id, eos_id, max_length):
    """The ids are sorted. They should stay in the order of the sentence."""
    return greedy(result=lambda tokens, ended, eos: sorted(tokens[1:]))(next_log_probs, bos_id, eos_id, max_length)


@mistake
def no_repetition(next_log_probs, bos_id, eos_id, max_length):
    """A token that has occurred before is not appended again, or ends the search. Words may be repeated."""
    return _only_new(next_log_probs, bos_id, eos_id, max_length)


@mistake
def only_the_last_two(next_log_probs, bos_id, eos_id, max_length):
    """The model is given only the last two tokens. It needs all tokens so far, bos first."""
    return greedy(asked=lambda tokens, bos: tokens[-2:])(next_log_probs, bos_id, eos_id, max_length)


@mistake
def asked_with_a_tensor(next_log_probs, bos_id, eos_id, max_length):
    """The model is called with a tensor. The contract says a list of ints."""
    return greedy(asked=lambda tokens, bos: torch.tensor(tokens))(next_log_probs, bos_id, eos_id, max_length)


@mistake
def asked_with_a_batch(next_log_probs, bos_id, eos_id, max_length):
    """The model is called with a nested list, as if there were a batch. It takes one list of ints."""
    return greedy(asked=lambda tokens, bos: [tokens])(next_log_probs, bos_id, eos_id, max_length)


@mistake
def ids_as_floats(next_log_probs, bos_id, eos_id, max_length):
    """The ids are floats. They should be ints, because the model uses them as indices."""
    return greedy(choose=lambda log_probs, bos, eos: float(log_probs.argmax()))(
        next_log_probs, bos_id, eos_id, max_length
    )


@mistake
def eos_always_added(next_log_probs, bos_id, eos_id, max_length):
    """eos is put at the end of every result, even where it was never generated. It is not part of the result."""
    return greedy(result=lambda tokens, ended, eos: [*tokens[1:], eos])(next_log_probs, bos_id, eos_id, max_length)


@mistake
def begins_with_eos(next_log_probs, bos_id, eos_id, max_length):
    """The sequence begins with eos. It begins with bos, and eos ends it."""
    return greedy(asked=lambda tokens, bos: [eos_id, *tokens[1:]])(next_log_probs, bos_id, eos_id, max_length)


@mistake
def as_text(next_log_probs, bos_id, eos_id, max_length):
    """The ids are returned as text. The contract asks for a list of ints."""
    return greedy(result=lambda tokens, ended, eos: " ".join(map(str, tokens[1:])))(
        next_log_probs, bos_id, eos_id, max_length
    )


@mistake
def error_without_eos(next_log_probs, bos_id, eos_id, max_length):
    """If eos is not generated, an error is raised. After `max_length` tokens the search is over, and what was
    generated is the result."""
    return _refuses_without_eos(next_log_probs, bos_id, eos_id, max_length)


@mistake
def nothing_without_eos(next_log_probs, bos_id, eos_id, max_length):
    """If eos is not generated, the result is empty. After `max_length` tokens the search is over, and what was
    generated is the result."""
    return greedy(result=lambda tokens, ended, eos: tokens[1:] if ended else [])(
        next_log_probs, bos_id, eos_id, max_length
    )


@mistake
def first_id_left_out(next_log_probs, bos_id, eos_id, max_length):
    """The id 0 is left out before the maximum is taken, so all other ids are one too small. The indices of a slice
    start from 0 again."""
    return greedy(choose=lambda log_probs, bos, eos: int(log_probs[1:].argmax()))(
        next_log_probs, bos_id, eos_id, max_length
    )


@mistake
def last_id_left_out(next_log_probs, bos_id, eos_id, max_length):
    """The last id of the vocabulary is never chosen: `[:-1]` leaves it out."""
    return greedy(choose=lambda log_probs, bos, eos: int(log_probs[:-1].argmax()))(
        next_log_probs, bos_id, eos_id, max_length
    )


@mistake
def as_if_rows(next_log_probs, bos_id, eos_id, max_length):
    """`[-1]` takes the last number of the log-probabilities, as if there were a row for each position. There is one
    row, `(V,)`, for the next token."""
    return greedy(choose=lambda log_probs, bos, eos: 0)(next_log_probs, bos_id, eos_id, max_length)


@mistake
def ranks_of_the_first_step(next_log_probs, bos_id, eos_id, max_length):
    """The model is called once, and its most probable tokens are listed one after the other. It has to be called again
    after each token."""
    return _ranks_of_the_first_step(next_log_probs, bos_id, eos_id, max_length)


mistake.two_at_once(_COMMON_IN_GREEDY, greedy)
