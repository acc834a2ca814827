"""The mistakes in `padding_mask`."""

from __future__ import annotations

import math
import operator

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.masking.parts_of_masks import (
    first_tokens,
    first_tokens_and_one,
    until_the_first_pad,
    until_the_last_real,
)

mistake = Mistakes()


def _padding(real=lambda tokens, pad_id: tokens != pad_id, place=lambda real: real[:, None, None, :]):
    """The padding mask with another test or other axes."""
    return lambda tokens, pad_id: place(real(tokens, pad_id))


@mistake(look="notation: Conventions")
def turned_round(tokens, pad_id):
    """True marks the padding. In this course True means *may attend*, and no query may attend to
    padding. (`nn.MultiheadAttention` has it the other way round.)"""
    return _padding(operator.eq)(tokens, pad_id)


@mistake
def no_axes_added(tokens, pad_id):
    """The mask is `(B, L)`. Against scores `(B, H, L_q, L)` its batch axis would be lined up with the queries: two
    axes are missing."""
    return _padding(place=lambda real: real)(tokens, pad_id)


@mistake(look="notation: Conventions")
def key_padding_mask(tokens, pad_id):
    """This is the `key_padding_mask` of `nn.MultiheadAttention`: `(B, L)`, with True at the padding. Here True means
    *may attend*, and the mask has axes for heads and queries."""
    return _padding(operator.eq, lambda padded: padded)(tokens, pad_id)


@mistake
def no_axis_for_heads(tokens, pad_id):
    """The mask is `(B, 1, L)`. It has an axis for the queries and none for the heads, so its batch would be lined up
    with the heads."""
    return _padding(place=lambda real: real[:, None, :])(tokens, pad_id)


@mistake
def queries_masked(tokens, pad_id):
    """The tokens are along the axis of the queries. Padding concerns the keys: mask their columns, in every row."""
    return _padding(place=lambda real: real[:, None, :, None])(tokens, pad_id)


@mistake
def axes_at_the_end(tokens, pad_id):
    """The new axes are at the end, `(B, L, 1, 1)`, so the tokens take the place of the heads. The keys are the
    last axis."""
    return _padding(place=lambda real: real[:, :, None, None])(tokens, pad_id)


@mistake
def one_axis_at_the_end(tokens, pad_id):
    """The mask is `(B, L, 1)`: its tokens are lined up with the queries. The keys are the last axis, and the heads need
    an axis too."""
    return _padding(place=lambda real: real[:, :, None])(tokens, pad_id)


@mistake
def axes_in_front(tokens, pad_id):
    """The new axes come first, `(1, 1, B, L)`, so the sequences of the batch are lined up with the queries."""
    return _padding(place=lambda real: real[None, None])(tokens, pad_id)


@mistake
def one_axis_in_front(tokens, pad_id):
    """One new axis comes before the batch, `(1, B, 1, L)`, so the sequences are lined up with the heads."""
    return _padding(place=lambda real: real[None, :, None, :])(tokens, pad_id)


@mistake
def expanded_to_a_square(tokens, pad_id):
    """The mask is expanded to `(B, 1, L, L)`. It is the same for every query, so an axis of length one is enough,
    and fits cross-attention too."""
    return _padding(place=lambda real: real[:, None, None, :].expand(-1, 1, real.shape[1], -1))(tokens, pad_id)


@mistake
def pairs_of_real_tokens(tokens, pad_id):
    """The mask is `(B, 1, L, L)`, True where query *and* key are real. Only the keys matter: the rows of padded queries
    are not used."""
    return _padding(place=lambda real: real[:, None, None, :] & real[:, None, :, None])(tokens, pad_id)


@mistake
def future_masked_too(tokens, pad_id):
    """Later tokens are masked as well. This mask is for padding only; the next exercise hides the future."""
    return _padding(place=lambda real: real[:, None, None, :] & torch.ones(real.shape[1], real.shape[1]).tril().bool())(
        tokens, pad_id
    )


@mistake
def pad_id_taken_as_zero(tokens, pad_id):
    """Token 0 counts as padding, whatever `pad_id` says."""
    return _padding(lambda tokens, pad_id: tokens != 0)(tokens, pad_id)


@mistake
def greater_than_pad_id(tokens, pad_id):
    """Only ids *above* `pad_id` count as tokens. That works as long as padding has the lowest id of all."""
    return _padding(operator.gt)(tokens, pad_id)


@mistake
def position_compared(tokens, pad_id):
    """The positions are compared with `pad_id`; compare the tokens at these positions instead."""
    return _padding(lambda tokens, pad_id: (torch.arange(tokens.shape[1]) != pad_id).expand_as(tokens))(tokens, pad_id)


@mistake
def tokens_counted(tokens, pad_id):
    """The mask is made from the *number* of real tokens, as if they always came first. Padding can come before them."""
    return _padding(first_tokens)(tokens, pad_id)


@mistake
def all_after_the_first_pad(tokens, pad_id):
    """Everything after the first padding is masked, real tokens too. Test each token separately."""
    return _padding(until_the_first_pad)(tokens, pad_id)


@mistake
def only_padding_at_the_end(tokens, pad_id):
    """Padding is recognised only at the end of a sequence. It can also come before real tokens."""
    return _padding(until_the_last_real)(tokens, pad_id)


@mistake
def first_pad_visible(tokens, pad_id):
    """One padding token per sequence stays visible: an off-by-one in the count of real tokens."""
    return _padding(first_tokens_and_one)(tokens, pad_id)


@mistake
def first_sequence_for_all(tokens, pad_id):
    """The padding of the first sequence is used for the whole batch. Every sequence has its own."""
    return _padding(lambda tokens, pad_id: (tokens[:1] != pad_id).expand_as(tokens))(tokens, pad_id)


@mistake
def whole_sequence_masked(tokens, pad_id):
    """One padding token masks its whole sequence. The mask needs a value for each token, not for each sequence."""
    return _padding(lambda tokens, pad_id: (tokens != pad_id).all(1, keepdim=True).expand_as(tokens))(tokens, pad_id)


@mistake
def one_answer_a_sequence(tokens, pad_id):
    """There is one True or False per sequence instead of one per token: a reduction has removed the axis of the
    keys."""
    return _padding(lambda tokens, pad_id: (tokens != pad_id).any(1, keepdim=True))(tokens, pad_id)


@mistake
def ones_and_zeros(tokens, pad_id):
    """The mask holds the numbers 1 and 0, in the right places. The contract asks for bool: `~` of the int 1 is −2, and
    `masked_fill` does not accept an int mask."""
    return _padding(lambda tokens, pad_id: (tokens != pad_id).long())(tokens, pad_id)


@mistake
def floats(tokens, pad_id):
    """The mask holds the floats 1.0 and 0.0. Fused attention would *add* them to the scores; a mask here is bool."""
    return _padding(lambda tokens, pad_id: (tokens != pad_id).float())(tokens, pad_id)


@mistake
def zero_and_minus_infinity(tokens, pad_id):
    """The mask holds 0 and −∞, to be added to scores. The contract asks for a bool mask, True = may attend."""
    return _padding(lambda tokens, pad_id: torch.zeros(tokens.shape).masked_fill(tokens == pad_id, -math.inf))(
        tokens, pad_id
    )


@mistake
def squeezed_batch(tokens, pad_id):
    """An axis is squeezed away; with a batch of one sequence, it is the batch axis."""
    return _padding(place=lambda real: real.squeeze()[..., None, None, :])(tokens, pad_id)


@mistake
def tokens_overwritten(tokens, pad_id):
    """The mask is right, but it overwrites `tokens`, which the caller still needs: an operation whose name ends
    in `_`, or an assignment to a part of a tensor, works in place."""
    return tokens.ne_(pad_id).bool()[:, None, None, :]


@mistake
def is_not(tokens, pad_id):
    """`is not` tests whether two Python objects are the same one, and gives a single True. Comparing a tensor entry by
    entry needs another operator."""
    different = tokens is not pad_id
    return different[:, None, None, :]


@mistake
def if_tokens(tokens, pad_id):
    """A Python `if` needs one truth value and gets a whole tensor of them. The comparison itself is the mask
    already."""
    if tokens != pad_id:
        return torch.ones(tokens.shape[0], 1, 1, tokens.shape[1], dtype=torch.bool)
    return torch.zeros(tokens.shape[0], 1, 1, tokens.shape[1], dtype=torch.bool)


@mistake
def zero_and_minus_a_billion(tokens, pad_id):
    """The mask holds 0 and a large negative number, to be added to scores. The contract asks for a bool mask, True =
    may attend."""
    return _padding(lambda tokens, pad_id: (tokens == pad_id) * -1e9)(tokens, pad_id)


@mistake
def floats_turned_round(tokens, pad_id):
    """The mask holds floats, with 1.0 at the padding. Change two things: the mask should be bool, and True means *may
    attend*."""
    return _padding(lambda tokens, pad_id: (tokens == pad_id).float())(tokens, pad_id)
