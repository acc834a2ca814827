"""Mistakes in `beam_search`: steps, and what comes back."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.searching import beam
from course_lib.exercises.decoding.wrong_beam_searches import unpruned

mistake = Mistakes()


GREEDILY = "decoding: Greedy decoding"


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
    """eos stands at the end of the result. It counts in n, and is not part of the result."""
    return beam(result=lambda tokens, total, bos, eos: tokens)(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def bos_included(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """bos stands at the beginning of the result. The model needs it, the reader does not."""
    return beam(result=lambda tokens, total, bos, eos: [bos, *_cut(tokens, eos)])(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def bos_and_eos_included(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """bos and eos are in the result. Both are signs for the model; the result has the generated tokens alone."""
    return beam(result=lambda tokens, total, bos, eos: [bos, *tokens])(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def last_token_dropped(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The last token is cut off where it is not eos, too."""
    return beam(result=lambda tokens, total, bos, eos: tokens[:-1])(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def score_returned_too(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """A pair comes back, the ids and a score. Only the ids are asked for."""
    return beam(result=lambda tokens, total, bos, eos: (_cut(tokens, eos), total))(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def all_hypotheses_returned(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """A list of hypotheses comes back. Only the best one is asked for."""
    return beam(result=lambda tokens, total, bos, eos: [_cut(tokens, eos)])(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def tensor_returned(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The ids come back as a tensor. The contract asks for a list of ints."""
    return beam(result=lambda tokens, total, bos, eos: torch.tensor(_cut(tokens, eos), dtype=torch.long))(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake(look=GREEDILY)
def only_the_last_token(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The model is asked with the last token alone. It has no memory of its own: it wants to see all tokens so far,
    bos first."""
    return beam(asked=lambda tokens, bos: tokens[-1:] or [bos])(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake(look=GREEDILY)
def without_bos(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The model is asked without bos. It was trained on sequences that begin with it."""
    return beam(asked=lambda tokens, bos: tokens)(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


@mistake(look=GREEDILY)
def bos_and_the_last_token(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """The model sees bos and the last token, and nothing of what stands between. The next token depends on all of
    them."""
    return beam(asked=lambda tokens, bos: [bos, *tokens[-1:]])(
        next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty
    )


@mistake
def nothing_is_pruned(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty=0.0):
    """All candidates survive, so this searches everything there is. The beam keeps `beam_size` of them."""
    return unpruned(next_log_probs, bos_id, eos_id, beam_size, max_length, length_penalty)


def _cut(tokens, eos):
    return tokens[:-1] if tokens[-1:] == [eos] else tokens
