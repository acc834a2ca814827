"""The mistakes in `fix_decoder_mask`."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.masking.decoder_mask import exercise as decoder_mask

mistake = Mistakes()


def _future(tokens):
    length = tokens.shape[1]
    return torch.ones(length, length, dtype=torch.bool).triu(1)  # (L, L)


def _padded_keys(tokens, pad_id):
    return (tokens == pad_id)[:, None, None, :]  # (B, 1, 1, L)


@mistake(look="notation: Conventions")
def as_given(tokens, pad_id):
    """The mask has the opposite meaning: it is True where a pair is blocked. Fused attention reads True as *may
    attend*, so every query gets the future and the padding, and nothing of the past."""
    return _future(tokens) | _padded_keys(tokens, pad_id)


@mistake
def past_or_padding(tokens, pad_id):
    """The past is allowed now, but padding is allowed too, even padding in the future. One of the two parts still has
    the opposite meaning, and a pair has to pass both."""
    return ~_future(tokens) | _padded_keys(tokens, pad_id)


@mistake
def future_or_real(tokens, pad_id):
    """Real keys are allowed now, but so is the future. One of the two parts still has the opposite meaning, and a pair
    has to pass both."""
    return _future(tokens) | ~_padded_keys(tokens, pad_id)


@mistake
def parts_negated(tokens, pad_id):
    """Each part has the right meaning now, but a pair is allowed as soon as *one* of them allows it: real tokens of the
    future and padding of the past still get through."""
    return ~_future(tokens) | ~_padded_keys(tokens, pad_id)


@mistake
def only_padding_of_the_past(tokens, pad_id):
    """The future is hidden, but of the past only the padding is left. One of the two parts still has the opposite
    meaning."""
    return ~_future(tokens) & _padded_keys(tokens, pad_id)


@mistake
def only_the_real_future(tokens, pad_id):
    """Padding is hidden, but each query attends to the future and not to the past. One of the two parts still has the
    opposite meaning."""
    return _future(tokens) & ~_padded_keys(tokens, pad_id)


@mistake
def own_token_blocked(tokens, pad_id):
    """The polarity is right, but no query attends to its own token, so the first one is left without any key. The
    diagonal belongs to what is allowed."""
    return ~(_future(tokens) | torch.eye(tokens.shape[1], dtype=torch.bool) | _padded_keys(tokens, pad_id))


@mistake
def padding_no_longer_hidden(tokens, pad_id):
    """The future is hidden, but padding is not: adding padding to a batch still changes the output."""
    return (~_future(tokens)).expand(len(tokens), 1, -1, -1)


@mistake
def future_no_longer_hidden(tokens, pad_id):
    """Padding is hidden, but the future is not: changing a later token still changes earlier predictions."""
    return (~_padded_keys(tokens, pad_id)).expand(-1, -1, tokens.shape[1], -1)


# Whatever else is wrong in a solution to that exercise may be wrong here too.
mistake.contains(
    decoder_mask,
    lambda wrong: wrong,
    called="decoder mask",
    without=(
        "turned_round",
        "or_instead_of_and",
        "or_with_the_future",
        "padding_allowed",
        "future_allowed",
        "without_itself",
        "causal_only_batched",
        "padding_only_square",
    ),
)
