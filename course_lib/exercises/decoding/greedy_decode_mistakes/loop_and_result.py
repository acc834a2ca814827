"""Mistakes in `greedy_decode`: the loop, and what belongs to the result."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.greedy_decode import greedy_decode
from course_lib.exercises.decoding.searching import greedy

mistake = Mistakes()


SAMPLING = "decoding: Sampling"


def _without_eos(log_probs, bos, eos):
    log_probs[eos] = -math.inf
    return int(log_probs.argmax())


@mistake
def eos_included(next_log_probs, bos_id, eos_id, max_length):
    """The result ends with eos. It marks the end of the sequence and is not part of it: do you test the new token
    before or after it is appended?"""
    return greedy(result=lambda tokens, ended, eos: tokens[1:] + [eos] * ended)(
        next_log_probs, bos_id, eos_id, max_length
    )


@mistake
def bos_included(next_log_probs, bos_id, eos_id, max_length):
    """The result begins with bos. The model needs it, but the result should not contain it."""
    return greedy(result=lambda tokens, ended, eos: tokens)(next_log_probs, bos_id, eos_id, max_length)


@mistake
def bos_and_eos_included(next_log_probs, bos_id, eos_id, max_length):
    """bos and eos are in the result. Both are meant for the model; the result contains only the generated words."""
    return greedy(result=lambda tokens, ended, eos: tokens + [eos] * ended)(next_log_probs, bos_id, eos_id, max_length)


@mistake
def last_of_all_dropped(next_log_probs, bos_id, eos_id, max_length):
    """One token too few is returned: something other than eos is cut from the end."""
    return greedy(result=lambda tokens, ended, eos: tokens[1:-1])(next_log_probs, bos_id, eos_id, max_length)


@mistake
def max_length_ignored(next_log_probs, bos_id, eos_id, max_length):
    """Only eos ends the loop, and a model may never choose it. What else should end it?"""
    return greedy(steps=lambda max_length: 10_000)(next_log_probs, bos_id, eos_id, max_length)


@mistake
def bos_counted(next_log_probs, bos_id, eos_id, max_length):
    """The result is one token too short if eos is not generated. Either bos is counted as one of the `max_length`
    tokens, although it is not generated, or the last token is cut off as if it were eos."""
    return greedy(steps=lambda max_length: max_length - 1)(next_log_probs, bos_id, eos_id, max_length)


@mistake
def one_too_many(next_log_probs, bos_id, eos_id, max_length):
    """If eos is not generated, there is one token more than `max_length`: the loop runs one time too many."""
    return greedy(steps=lambda max_length: max_length + 1)(next_log_probs, bos_id, eos_id, max_length)


@mistake
def only_the_last_token(next_log_probs, bos_id, eos_id, max_length):
    """From its second call on, the model is given a new token without bos before it. It has no memory of its own, so at
    every step it needs all tokens so far, bos first."""
    return greedy(asked=lambda tokens, bos: tokens[-1:])(next_log_probs, bos_id, eos_id, max_length)


@mistake
def bos_and_the_last_token(next_log_probs, bos_id, eos_id, max_length):
    """The model is given bos and the last token, and nothing in between. The next token depends on all of
    them."""
    return greedy(asked=lambda tokens, bos: [bos, *tokens[1:][-1:]])(next_log_probs, bos_id, eos_id, max_length)


@mistake
def without_bos(next_log_probs, bos_id, eos_id, max_length):
    """The model is called without bos. It was trained on sequences that begin with it, and the first token has
    nothing else to go on."""
    return greedy(asked=lambda tokens, bos: tokens[1:])(next_log_probs, bos_id, eos_id, max_length)


@mistake
def never_grows(next_log_probs, bos_id, eos_id, max_length):
    """The model is given bos alone, at every step, so its output never changes. It needs the generated tokens as
    well."""
    return greedy(asked=lambda tokens, bos: [bos])(next_log_probs, bos_id, eos_id, max_length)


@mistake
def reversed(next_log_probs, bos_id, eos_id, max_length):
    """The model is given the generated tokens in the wrong order: the newest one belongs at the end."""
    return greedy(asked=lambda tokens, bos: [bos, *tokens[:0:-1]])(next_log_probs, bos_id, eos_id, max_length)


@mistake
def least_probable(next_log_probs, bos_id, eos_id, max_length):
    """The least probable token is taken: log-probabilities are negative, and the one nearest to zero is the best."""
    return greedy(choose=lambda log_probs, bos, eos: int(log_probs.argmin()))(
        next_log_probs, bos_id, eos_id, max_length
    )


@mistake
def largest_absolute_value(next_log_probs, bos_id, eos_id, max_length):
    """The log-probability farthest from zero is taken, which belongs to the least probable token other than bos."""
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
    """The new token is compared with `bos_id`. A sequence ends with eos."""
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
    """The ids are returned as a tensor. The contract asks for a list of ints."""
    return greedy(result=lambda tokens, ended, eos: torch.tensor(tokens[1:], dtype=torch.long))(
        next_log_probs, bos_id, eos_id, max_length
    )


@mistake
def tensors_in_the_list(next_log_probs, bos_id, eos_id, max_length):
    """The list holds tensors with one number each. An id is an int: how do you convert a tensor to one?"""
    return greedy(choose=lambda log_probs, bos, eos: log_probs.argmax())(next_log_probs, bos_id, eos_id, max_length)


@mistake
def tuple_returned(next_log_probs, bos_id, eos_id, max_length):
    """The ids are returned as a tuple. The contract asks for a list."""
    return greedy(result=lambda tokens, ended, eos: tuple(tokens[1:]))(next_log_probs, bos_id, eos_id, max_length)


@mistake
def scores_returned(next_log_probs, bos_id, eos_id, max_length):
    """A pair is returned, the ids and something else. The contract asks only for the ids."""
    return greedy(result=lambda tokens, ended, eos: (tokens[1:], 0.0))(next_log_probs, bos_id, eos_id, max_length)


@mistake
def eos_for_the_rest(next_log_probs, bos_id, eos_id, max_length):
    """The result is padded with eos to `max_length`. The list may be shorter."""
    return _filled_with_eos(next_log_probs, bos_id, eos_id, max_length)


def _filled_with_eos(next_log_probs, bos_id, eos_id, max_length):
    tokens = greedy_decode(next_log_probs, bos_id, eos_id, max_length)
    return tokens + [eos_id] * (max_length - len(tokens))


@mistake
def goes_on_after_eos(next_log_probs, bos_id, eos_id, max_length):
    """The model is called for the token after eos. There is none: the loop has to end there, not only the result."""
    tokens = [bos_id]
    for _ in range(max_length):
        tokens.append(int(next_log_probs(tokens).argmax()))
    tokens = tokens[1:]
    return tokens[: tokens.index(eos_id)] if eos_id in tokens else tokens


@mistake(look=SAMPLING)
def drawn_by_chance(next_log_probs, bos_id, eos_id, max_length):
    """Tokens are drawn at random, each with its probability. That is sampling; greedy search takes the most probable
    one."""
    return greedy(choose=lambda log_probs, bos, eos: int(log_probs.exp().multinomial(1)))(
        next_log_probs, bos_id, eos_id, max_length
    )
