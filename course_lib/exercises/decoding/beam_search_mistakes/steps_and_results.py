"""Mistakes in `beam_search`: steps, and what is returned."""

from __future__ import annotations

import torch

from course_lib.exercises._headings import GREEDY_DECODING
from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.searching import beam
from course_lib.exercises.decoding.wrong_beam_searches import unpruned

mistake = Mistakes()


@mistake
def one_step_too_few(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The search is one step too short: bos is not one of the `max_length` tokens."""
    return beam(steps=lambda max_length: max_length - 1, result=lambda tokens, total, bos, eos: _cut(tokens, eos))(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def one_step_too_many(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The search runs one step too long: a hypothesis has `max_length` generated tokens at most."""
    return beam(steps=lambda max_length: max_length + 1)(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def eos_included(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The result ends with eos. It counts in n but is not part of the result."""
    return beam(result=lambda tokens, total, bos, eos: tokens)(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def bos_included(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The result begins with bos. The model needs it, but the result should not contain it."""
    return beam(result=lambda tokens, total, bos, eos: [bos, *_cut(tokens, eos)])(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def bos_and_eos_included(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """bos and eos are in the result. Both are meant for the model; the result contains only the generated words."""
    return beam(result=lambda tokens, total, bos, eos: [bos, *tokens])(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def last_token_dropped(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The last token is cut off even if it is not eos."""
    return beam(result=lambda tokens, total, bos, eos: tokens[:-1])(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def score_returned_too(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """A pair is returned, the ids and a score. The contract asks only for the ids."""
    return beam(result=lambda tokens, total, bos, eos: (_cut(tokens, eos), total))(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def all_hypotheses_returned(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """A list of hypotheses is returned. The contract asks only for the best one."""
    return beam(result=lambda tokens, total, bos, eos: [_cut(tokens, eos)])(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def tensor_returned(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The ids are returned as a tensor. The contract asks for a list of ints."""
    return beam(result=lambda tokens, total, bos, eos: torch.tensor(_cut(tokens, eos), dtype=torch.long))(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake(look=GREEDY_DECODING)
def only_the_last_token(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The model is given only the last token. It has no memory of its own, so it needs all tokens so far, bos first."""
    return beam(asked=lambda tokens, bos: tokens[-1:] or [bos])(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake(look=GREEDY_DECODING)
def without_bos(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The model is called without bos. It was trained on sequences that begin with it."""
    return beam(asked=lambda tokens, bos: tokens)(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake(look=GREEDY_DECODING)
def bos_and_the_last_token(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The model is given bos and the last token, and nothing in between. The next token depends on all of
    them."""
    return beam(asked=lambda tokens, bos: [bos, *tokens[-1:]])(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def nothing_is_pruned(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """All candidates survive, so this is an exhaustive search. The beam keeps only `beam_size` of them."""
    return unpruned(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


def _cut(tokens, eos):
    return tokens[:-1] if tokens[-1:] == [eos] else tokens
