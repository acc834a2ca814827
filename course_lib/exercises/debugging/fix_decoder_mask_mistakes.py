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


def _mask_of(corner, join=torch.Tensor.__or__):
    """A mask from one corner of the square, joined with the padded keys."""
    return lambda tokens, pad_id: join(corner(torch.ones_like(_future(tokens))), _padded_keys(tokens, pad_id))


@mistake
def as_given(tokens, pad_id):
    """Every query still attends to the future and to padding, and to nothing else: changing a later token changes
    earlier predictions, and so does adding padding."""
    return _future(tokens) | _padded_keys(tokens, pad_id)


@mistake
def own_token_and_the_future(tokens, pad_id):
    """Every query attends to its own token now, but still to the future and to padding, and to nothing real of the
    past."""
    return _mask_of(lambda square: square.triu(0))(tokens, pad_id)


@mistake
def later_future_only(tokens, pad_id):
    """The next token is hidden now, but every query still attends to all tokens after it and to padding, and to nothing
    real of the past."""
    return _mask_of(lambda square: square.triu(2))(tokens, pad_id)


@mistake
def next_token_and_padding(tokens, pad_id):
    """The past is allowed now, but so is the next token, the very one to be predicted, and so is all padding."""
    return _mask_of(lambda square: square.tril(1))(tokens, pad_id)


@mistake
def own_token_the_future_or_real(tokens, pad_id):
    """Real tokens are allowed now, but those of the future too, and padding still gets through where it is a query's
    own token or comes later."""
    return _mask_of(lambda square: square.triu(0), lambda corner, padded: corner | ~padded)(tokens, pad_id)


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
