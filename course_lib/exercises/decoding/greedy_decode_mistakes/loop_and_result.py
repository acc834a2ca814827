"""Mistakes in `greedy_decode`: the loop, and what belongs to the result."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.greedy_decode import greedy_decode
from course_lib.exercises.decoding.searching import greedy

mistake = Mistakes()


INF = float("inf")
SAMPLING = "decoding: Sampling"


def _without_eos(log_probs, bos, eos):
    log_probs[eos] = -INF
    return int(log_probs.argmax())


@mistake
def eos_included(next_log_probs, bos_id, eos_id, max_length):
    """eos stands at the end of the result. It says that the sequence is over, and is not part of it: when do you
    look at the new token, before or after it is appended?"""
    return greedy(result=lambda tokens, ended, eos: tokens[1:] + [eos] * ended)(
        next_log_probs, bos_id, eos_id, max_length
    )


@mistake
def bos_included(next_log_probs, bos_id, eos_id, max_length):
    """bos stands at the beginning of the result. The model needs it, the reader does not."""
    return greedy(result=lambda tokens, ended, eos: tokens)(next_log_probs, bos_id, eos_id, max_length)


@mistake
def bos_and_eos_included(next_log_probs, bos_id, eos_id, max_length):
    """bos and eos are in the result. Both are signs for the model; the result has the generated tokens alone."""
    return greedy(result=lambda tokens, ended, eos: tokens + [eos] * ended)(next_log_probs, bos_id, eos_id, max_length)


@mistake
def last_of_all_dropped(next_log_probs, bos_id, eos_id, max_length):
    """One token too few comes back: something is cut from the end that is not eos."""
    return greedy(result=lambda tokens, ended, eos: tokens[1:-1])(next_log_probs, bos_id, eos_id, max_length)


@mistake
def max_length_ignored(next_log_probs, bos_id, eos_id, max_length):
    """Only eos ends the loop, and a model may never choose it. What else is there to end it?"""
    return greedy(steps=lambda max_length: 10_000)(next_log_probs, bos_id, eos_id, max_length)


@mistake
def bos_counted(next_log_probs, bos_id, eos_id, max_length):
    """The result is one token too short where eos does not come. Either bos counts as one of the `max_length`
    tokens, and it is not generated, or the last token is cut off as if it were eos."""
    return greedy(steps=lambda max_length: max_length - 1)(next_log_probs, bos_id, eos_id, max_length)


@mistake
def one_too_many(next_log_probs, bos_id, eos_id, max_length):
    """Where eos does not come there is one token more than `max_length`: the loop runs once too often."""
    return greedy(steps=lambda max_length: max_length + 1)(next_log_probs, bos_id, eos_id, max_length)


@mistake
def only_the_last_token(next_log_probs, bos_id, eos_id, max_length):
    """The model is asked with the last token alone. It has no memory of its own: it wants to see all tokens so far,
    bos first."""
    return greedy(asked=lambda tokens, bos: tokens[-1:])(next_log_probs, bos_id, eos_id, max_length)


@mistake
def bos_and_the_last_token(next_log_probs, bos_id, eos_id, max_length):
    """The model sees bos and the last token, and nothing of what stands between. The next token depends on all of
    them."""
    return greedy(asked=lambda tokens, bos: [bos, *tokens[1:][-1:]])(next_log_probs, bos_id, eos_id, max_length)


@mistake
def without_bos(next_log_probs, bos_id, eos_id, max_length):
    """The model is asked without bos. It was trained on sequences that begin with it, and the first token has
    nothing else to go on."""
    return greedy(asked=lambda tokens, bos: tokens[1:])(next_log_probs, bos_id, eos_id, max_length)


@mistake
def never_grows(next_log_probs, bos_id, eos_id, max_length):
    """The model is asked with bos alone, at every step, so its answer never changes. What was generated has to go
    back in."""
    return greedy(asked=lambda tokens, bos: [bos])(next_log_probs, bos_id, eos_id, max_length)


@mistake
def reversed(next_log_probs, bos_id, eos_id, max_length):
    """The model sees the generated tokens in the wrong order: the newest one stands at the end."""
    return greedy(asked=lambda tokens, bos: [bos, *tokens[:0:-1]])(next_log_probs, bos_id, eos_id, max_length)


@mistake
def least_probable(next_log_probs, bos_id, eos_id, max_length):
    """The least probable token is taken: log-probabilities are negative, and the one nearest to zero is the best."""
    return greedy(choose=lambda log_probs, bos, eos: int(log_probs.argmin()))(
        next_log_probs, bos_id, eos_id, max_length
    )


@mistake
def largest_absolute_value(next_log_probs, bos_id, eos_id, max_length):
    """The log-probability farthest from zero is taken, which belongs to the least probable token but for bos."""
    return greedy(
        choose=lambda log_probs, bos, eos: int(log_probs.index_fill(0, torch.tensor([bos]), 0).abs().argmax())
    )(next_log_probs, bos_id, eos_id, max_length)


@mistake
def second_best(next_log_probs, bos_id, eos_id, max_length):
    """At each step the second most probable token is taken."""
    return greedy(choose=lambda log_probs, bos, eos: int(log_probs.argsort()[-2]))(
        next_log_probs, bos_id, eos_id, max_length
    )


@mistake
def eos_never_chosen(next_log_probs, bos_id, eos_id, max_length):
    """eos is never chosen, even where it is the most probable token. It is a token like the others, until it is
    chosen."""
    return greedy(choose=_without_eos)(next_log_probs, bos_id, eos_id, max_length)


@mistake
def stops_at_bos(next_log_probs, bos_id, eos_id, max_length):
    """The new token is compared with `bos_id`. It is eos that ends a sequence."""
    return greedy(stop=lambda token, bos, eos: token == bos)(next_log_probs, bos_id, eos_id, max_length)


@mistake
def stops_at_one(next_log_probs, bos_id, eos_id, max_length):
    """The loop ends at the id 1, whatever `eos_id` says."""
    return greedy(stop=lambda token, bos, eos: token == 1)(next_log_probs, bos_id, eos_id, max_length)


@mistake
def stops_at_zero(next_log_probs, bos_id, eos_id, max_length):
    """The loop ends at the id 0, whatever `eos_id` says."""
    return greedy(stop=lambda token, bos, eos: token == 0)(next_log_probs, bos_id, eos_id, max_length)


@mistake
def stops_at_two(next_log_probs, bos_id, eos_id, max_length):
    """The loop ends at the id 2, whatever `eos_id` says."""
    return greedy(stop=lambda token, bos, eos: token == 2)(next_log_probs, bos_id, eos_id, max_length)


@mistake
def tensor_returned(next_log_probs, bos_id, eos_id, max_length):
    """The ids come back as a tensor. The contract asks for a list of ints."""
    return greedy(result=lambda tokens, ended, eos: torch.tensor(tokens[1:], dtype=torch.long))(
        next_log_probs, bos_id, eos_id, max_length
    )


@mistake
def tensors_in_the_list(next_log_probs, bos_id, eos_id, max_length):
    """The list holds tensors with one number each. An id is an int: what makes one of a tensor?"""
    return greedy(choose=lambda log_probs, bos, eos: log_probs.argmax())(next_log_probs, bos_id, eos_id, max_length)


@mistake
def tuple_returned(next_log_probs, bos_id, eos_id, max_length):
    """The ids come back as a tuple. The contract asks for a list."""
    return greedy(result=lambda tokens, ended, eos: tuple(tokens[1:]))(next_log_probs, bos_id, eos_id, max_length)


@mistake
def scores_returned(next_log_probs, bos_id, eos_id, max_length):
    """A pair comes back, the ids and something else. Only the ids are asked for."""
    return greedy(result=lambda tokens, ended, eos: (tokens[1:], 0.0))(next_log_probs, bos_id, eos_id, max_length)


@mistake
def eos_for_the_rest(next_log_probs, bos_id, eos_id, max_length):
    """The result is filled up with eos to `max_length`. A list may be as short as it is."""
    return _filled(next_log_probs, bos_id, eos_id, max_length)


def _filled(next_log_probs, bos_id, eos_id, max_length):
    tokens = greedy_decode(next_log_probs, bos_id, eos_id, max_length)
    return tokens + [eos_id] * (max_length - len(tokens))


@mistake
def goes_on_after_eos(next_log_probs, bos_id, eos_id, max_length):
    """The model is asked for what follows eos. Nothing does: the loop has to end there, not only the result."""
    tokens = [bos_id]
    for _ in range(max_length):
        tokens.append(int(next_log_probs(tokens).argmax()))
    tokens = tokens[1:]
    return tokens[: tokens.index(eos_id)] if eos_id in tokens else tokens


@mistake(look=SAMPLING)
def drawn_by_chance(next_log_probs, bos_id, eos_id, max_length):
    """Tokens are drawn by chance, each with its probability. That is sampling; greedy search takes the most probable
    one."""
    return greedy(choose=lambda log_probs, bos, eos: int(log_probs.exp().multinomial(1)))(
        next_log_probs, bos_id, eos_id, max_length
    )
