"""The mistakes in `decoder_mask`."""

from __future__ import annotations

import math
import operator

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.masking.parts_of_masks import (
    first_tokens,
    first_tokens_and_one,
    square,
    until_the_first_pad,
    until_the_last_real,
)

mistake = Mistakes()


def _keys(real):
    return lambda tokens, pad_id: real(tokens, pad_id)[:, None, None, :]


def _past(length):
    return square(length).tril()


def _decoder(real=None, past=_past, join=operator.and_):
    """The decoder mask with one part, or the operation that joins them, replaced."""
    real = real or _keys(operator.ne)
    return lambda tokens, pad_id: join(real(tokens, pad_id), past(tokens.shape[1]))


def _queries(tokens, pad_id):
    return (tokens != pad_id)[:, None, :, None]


def _pairs(tokens, pad_id):
    return _queries(tokens, pad_id) & _keys(operator.ne)(tokens, pad_id)


@mistake(look="notation: Conventions")
def turned_round(tokens, pad_id):
    """True and False are exchanged throughout: True marks what is forbidden. Here True means *may attend*."""
    return _decoder(join=lambda real, past: ~(real & past))(tokens, pad_id)


@mistake(look="masking: Causal mask")
def future_allowed(tokens, pad_id):
    """Padding is hidden, but every query can attend to the future instead of the past. One of the two masks has the
    opposite meaning of the other; a model trained like this has a very low loss but cannot generate text."""
    return _decoder(past=lambda length: square(length).triu(1))(tokens, pad_id)


@mistake(look="masking: Causal mask")
def upper_triangle(tokens, pad_id):
    """Padding is hidden, but every query can attend to itself and the keys after it, not to those before. Rows are
    queries."""
    return _decoder(past=lambda length: square(length).triu())(tokens, pad_id)


@mistake(look="masking: Padding mask")
def padding_allowed(tokens, pad_id):
    """The future is hidden, but in the past only the *padding* can be attended to. One of the two masks has the
    opposite meaning of the other."""
    return _decoder(real=_keys(operator.eq))(tokens, pad_id)


@mistake(look="notation: Conventions")
def both_turned_round(tokens, pad_id):
    """Each of the two parts marks what is forbidden, so only the pairs forbidden by both are True: padding in the
    future. True means *may attend*, in both parts."""
    return _decoder(real=_keys(operator.eq), past=lambda length: square(length).triu(1))(tokens, pad_id)


@mistake
def or_instead_of_and(tokens, pad_id):
    """A pair is allowed as soon as one of the two masks allows it. It must pass both. (Adding two bool masks is an
    *or*, too.)"""
    return _decoder(join=operator.or_)(tokens, pad_id)


@mistake
def or_with_the_future(tokens, pad_id):
    """A pair is allowed where the key is not padding *or* lies in the future. It must pass both masks, and the
    causal one has the opposite meaning."""
    return _decoder(past=lambda length: square(length).triu(1), join=operator.or_)(tokens, pad_id)


@mistake
def exactly_one(tokens, pad_id):
    """A pair is allowed where exactly one of the two masks allows it. It must pass both."""
    return _decoder(join=operator.xor)(tokens, pad_id)


@mistake
def both_agree(tokens, pad_id):
    """A pair is allowed where the two masks agree, even where both forbid it. Both must allow it."""
    return _decoder(join=operator.eq)(tokens, pad_id)


@mistake(look="masking: Causal mask")
def padding_only(tokens, pad_id):
    """Padding is hidden but the future is not, and the mask has no axis of length L for the queries: it is `(B, 1, 1,
    L)`."""
    return _decoder(join=lambda real, past: real)(tokens, pad_id)


@mistake(look="masking: Causal mask")
def padding_only_square(tokens, pad_id):
    """Padding is hidden but the future is not: every row of a sequence is the same."""
    return _decoder(join=lambda real, past: real & square(len(past)))(tokens, pad_id)


@mistake(look="masking: Padding mask")
def causal_only(tokens, pad_id):
    """The future is hidden but padding is not, and the batch does not appear in the shape: the mask is `(L, L)`."""
    return _decoder(join=lambda real, past: past)(tokens, pad_id)


@mistake(look="masking: Padding mask")
def causal_only_batched(tokens, pad_id):
    """The future is hidden but padding is not: every sequence has the same mask."""
    return _decoder(join=lambda real, past: past.expand(real.shape[0], 1, -1, -1))(tokens, pad_id)


@mistake(look="masking: Padding mask")
def causal_only_one_for_all(tokens, pad_id):
    """The future is hidden but padding is not, and one mask `(1, 1, L, L)` is given for the whole batch."""
    return _decoder(join=lambda real, past: past[None, None])(tokens, pad_id)


@mistake(look="masking: Padding mask")
def queries_masked(tokens, pad_id):
    """The rows of padded queries are all False, and the padded keys stay visible: the tokens are along the axis of the
    queries."""
    return _decoder(real=_queries)(tokens, pad_id)


@mistake
def queries_masked_too(tokens, pad_id):
    """Besides the padded keys, the rows of padded queries are masked. The contract leaves those rows as they are:
    they are never read, and rows without any key only cause problems in a softmax."""
    return _decoder(real=_pairs)(tokens, pad_id)


@mistake
def padded_queries_see_everything(tokens, pad_id):
    """The rows of padded queries are True for all keys. The contract leaves them as the rule makes them: no future and
    no padding."""
    return _decoder(join=lambda real, past: (real & past) | ~real.transpose(-2, -1))(tokens, pad_id)


@mistake
def padded_queries_see_the_past(tokens, pad_id):
    """Padded queries can attend to padded keys before them. A key that is padding is hidden from every query."""
    return _decoder(join=lambda real, past: (real | ~real.transpose(-2, -1)) & past)(tokens, pad_id)


@mistake
def diagonal_always_allowed(tokens, pad_id):
    """Every query can attend to itself, padding or not. That avoids empty rows, but here a padded key is masked even
    for its own query."""
    return _decoder(join=lambda real, past: (real & past) | torch.eye(len(past), dtype=torch.bool))(tokens, pad_id)


@mistake
def empty_rows_see_everything(tokens, pad_id):
    """Empty rows have been set to True. The contract leaves them empty; a softmax can deal with them later."""
    return _decoder(join=lambda real, past: (real & past) | ~(real & past).any(-1, keepdim=True))(tokens, pad_id)


@mistake
def empty_rows_see_themselves(tokens, pad_id):
    """In empty rows, the query has been allowed to attend to itself. The contract leaves them empty; a
    softmax can deal with them later."""
    return _decoder(
        join=lambda real, past: (
            (real & past) | (~(real & past).any(-1, keepdim=True) & torch.eye(len(past), dtype=torch.bool))
        )
    )(tokens, pad_id)


@mistake
def first_key_always_allowed(tokens, pad_id):
    """The first key is always allowed, padding or not. The contract leaves empty rows as they are."""
    return _decoder(join=lambda real, past: (real & past) | (torch.arange(len(past)) == 0))(tokens, pad_id)


@mistake(look="masking: Causal mask")
def without_itself(tokens, pad_id):
    """The diagonal is missing: a query may attend to itself if it is not padding."""
    return _decoder(past=lambda length: square(length).tril(-1))(tokens, pad_id)


@mistake(look="masking: Causal mask")
def one_step_ahead(tokens, pad_id):
    """Every query can attend to one token of the future, the very one that it has to predict: the diagonal is off by
    one."""
    return _decoder(past=lambda length: square(length).tril(1))(tokens, pad_id)


@mistake
def no_axis_for_heads(tokens, pad_id):
    """The mask is `(B, L, L)`, without an axis for the heads; against scores `(B, H, L, L)` its batch would be lined
    up with the heads."""
    return _decoder(join=lambda real, past: (real & past)[:, 0])(tokens, pad_id)


@mistake
def axis_in_front_of_the_batch(tokens, pad_id):
    """The axis of length one comes before the batch, `(1, B, L, L)`, so the sequences are lined up with the heads."""
    return _decoder(join=lambda real, past: (real & past).transpose(0, 1))(tokens, pad_id)


@mistake
def queries_and_keys_exchanged(tokens, pad_id):
    """The mask is right except that its last two axes are exchanged: rows are queries, columns are keys."""
    return _decoder(join=lambda real, past: (real & past).transpose(-2, -1))(tokens, pad_id)


@mistake
def padding_without_axes(tokens, pad_id):
    """The tokens `(B, L)` meet the causal mask `(L, L)` as they are, so the batch is lined up with the queries. The
    padding part needs axes for heads and queries."""
    return _decoder(real=operator.ne)(tokens, pad_id)


@mistake
def padding_without_axes_unsqueezed(tokens, pad_id):
    """The tokens `(B, L)` get one axis only, in the wrong place: against the causal mask, the batch is lined up with
    the queries."""
    return _decoder(real=lambda tokens, pad_id: (tokens != pad_id)[None], join=lambda real, past: real & past)(
        tokens, pad_id
    )


@mistake
def pad_id_taken_as_zero(tokens, pad_id):
    """Token 0 counts as padding, whatever `pad_id` says."""
    return _decoder(real=_keys(lambda tokens, pad_id: tokens != 0))(tokens, pad_id)


@mistake
def greater_than_pad_id(tokens, pad_id):
    """Only ids *above* `pad_id` count as tokens. That works as long as padding has the lowest id of all."""
    return _decoder(real=_keys(operator.gt))(tokens, pad_id)


@mistake
def tokens_counted(tokens, pad_id):
    """The mask is made from the *number* of real tokens, as if they always came first. Padding can come before them."""
    return _decoder(real=_keys(first_tokens))(tokens, pad_id)


@mistake
def first_pad_visible(tokens, pad_id):
    """One padding token per sequence stays visible: an off-by-one in the count of real tokens."""
    return _decoder(real=_keys(first_tokens_and_one))(tokens, pad_id)


@mistake
def all_after_the_first_pad(tokens, pad_id):
    """Everything after the first padding is masked, real tokens too. Test each key separately."""
    return _decoder(real=_keys(until_the_first_pad))(tokens, pad_id)


@mistake
def only_padding_at_the_end(tokens, pad_id):
    """Padding is recognised only at the end of a sequence. It can also come before real tokens."""
    return _decoder(real=_keys(until_the_last_real))(tokens, pad_id)


@mistake
def first_sequence_for_all(tokens, pad_id):
    """The padding of the first sequence is used for the whole batch. Every sequence has its own."""
    return _decoder(real=_keys(lambda tokens, pad_id: (tokens[:1] != pad_id).expand_as(tokens)))(tokens, pad_id)


@mistake
def whole_sequence_masked(tokens, pad_id):
    """One padding token masks its whole sequence. Test each key, not each sequence."""
    return _decoder(real=_keys(lambda tokens, pad_id: (tokens != pad_id).all(1, keepdim=True).expand_as(tokens)))(
        tokens, pad_id
    )


@mistake
def ones_and_zeros(tokens, pad_id):
    """The mask holds the ints 1 and 0, in the right places. The contract asks for bool: `~` of the int 1 is −2, and
    `masked_fill` does not accept an int mask."""
    return _decoder(join=lambda real, past: real.long() * past.long())(tokens, pad_id)


@mistake
def sum_of_ints(tokens, pad_id):
    """The two masks are added as numbers, which gives 0, 1 and 2. A pair must pass both masks: that is a logical
    operation with a bool result."""
    return _decoder(join=lambda real, past: real.long() + past.long())(tokens, pad_id)


@mistake
def floats(tokens, pad_id):
    """The mask holds the floats 1.0 and 0.0, with the right places. Fused attention would *add* them to the scores;
    a mask here is bool."""
    return _decoder(past=lambda length: torch.ones(length, length).tril(), join=operator.mul)(tokens, pad_id)


@mistake
def sum_of_floats(tokens, pad_id):
    """The two masks are added as floats, which gives 0, 1 and 2. A pair must pass both masks: that is a logical
    operation with a bool result."""
    return _decoder(past=lambda length: torch.ones(length, length).tril(), join=operator.add)(tokens, pad_id)


@mistake
def zero_and_minus_infinity(tokens, pad_id):
    """The mask holds 0 and −∞, to be added to scores. The contract asks for a bool mask, True = may attend."""
    return _decoder(join=lambda real, past: torch.zeros((real & past).shape).masked_fill(~(real & past), -math.inf))(
        tokens, pad_id
    )


@mistake
def batch_for_length(tokens, pad_id):
    """The causal part has the size of the batch. Its size should be the length of the sequences: which axis of `tokens`
    is that?"""
    return (tokens != pad_id)[:, None, None, :] & _past(len(tokens))


@mistake
def one_too_short(tokens, pad_id):
    """The causal part has one row and one column too few for the tokens."""
    return _decoder(past=lambda length: _past(length - 1))(tokens, pad_id)


@mistake
def squeezed_batch(tokens, pad_id):
    """An axis is squeezed away; with a batch of one sequence, it is the batch axis."""
    return _decoder(real=lambda tokens, pad_id: (tokens != pad_id).squeeze()[..., None, None, :])(tokens, pad_id)


@mistake
def python_and(tokens, pad_id):
    """`and` needs one truth value for each mask as a whole, which is not defined. There is another operator that
    combines two tensors entry by entry."""
    return (tokens != pad_id)[:, None, None, :] and _past(tokens.shape[1])


@mistake
def precedence(tokens, pad_id):
    """`&` binds more tightly than `!=`: what is compared with the tokens is `pad_id & …`. Put parentheses around the
    comparison."""
    past = _past(tokens.shape[1])
    return tokens[:, None, None, :] != pad_id & past


@mistake
def precedence_without_axes(tokens, pad_id):
    """`&` binds more tightly than `!=`, and the tokens meet the causal mask without axes for heads and queries. Put
    parentheses around the comparison, and then look at the shapes."""
    return tokens != pad_id & _past(tokens.shape[1])


@mistake
def tokens_overwritten(tokens, pad_id):
    """The mask is right, but `tokens` is overwritten, which the caller still needs: an operation
    whose name ends in `_`, or an assignment to a part of a tensor, works in place."""
    return tokens.ne_(pad_id).bool()[:, None, None, :] & _past(tokens.shape[1])


@mistake
def zero_and_minus_a_billion(tokens, pad_id):
    """The mask holds 0 and a large negative number, to be added to scores. The contract asks for a bool mask, True =
    may attend."""
    return _decoder(join=lambda real, past: torch.zeros((real & past).shape).masked_fill(~(real & past), -1e9))(
        tokens, pad_id
    )
