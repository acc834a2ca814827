"""The mistakes in `fix_cached_attention`: the code as given, and repairs that leave or bring a fault."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from course_lib.exercises._mistakes import Mistakes

mistake = Mistakes()


def _masked_by_position(may_attend):
    """Fused attention with a mask from the positions of queries and keys, `(L_q, 1)` and `(L_k,)`, and both lengths."""

    def attention(query, key, value):
        len_q, len_k = query.shape[-2], key.shape[-2]
        mask = may_attend(torch.arange(len_q)[:, None], torch.arange(len_k), len_q, len_k)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)

    return attention


def _whole(causal):
    """Fused attention, causal where a condition on the two lengths holds."""

    def attention(query, key, value):
        is_causal = causal(query.shape[-2], key.shape[-2])
        return F.scaled_dot_product_attention(query, key, value, is_causal=is_causal)

    return attention


_causal_at_the_end = _masked_by_position(lambda i, j, len_q, len_k: j <= i + len_k - len_q)


@mistake
def as_given(query, key, value):
    """Right without a cache only. With one, the first new token attends to the first key of the text and to no other,
    the second one to the first two keys, and so on."""
    return _whole(lambda len_q, len_k: True)(query, key, value)


@mistake
def not_causal(query, key, value):
    """Right for one new token. With several, and without a cache, each query attends to all keys, later positions
    included."""
    return _whole(lambda len_q, len_k: False)(query, key, value)


@mistake
def causal_for_several_queries(query, key, value):
    """Right for one new token and without a cache. Several new tokens after a cache are still taken for the first
    positions of the text: they attend to its first keys only."""
    return _whole(lambda len_q, len_k: len_q > 1)(query, key, value)


@mistake
def causal_without_a_cache(query, key, value):
    """Right for one new token and without a cache. Several new tokens after a cache attend to each other's later
    positions: nothing is masked for them."""
    return _whole(lambda len_q, len_k: len_q == len_k)(query, key, value)


@mistake
def one_key_too_many(query, key, value):
    """Each query attends to one key too many, the next position: the diagonal is one too far to the right. For one new
    token that does not show."""
    return _masked_by_position(lambda i, j, len_q, len_k: j <= i + len_k - len_q + 1)(query, key, value)


@mistake
def one_key_too_few(query, key, value):
    """No query attends to its own position: the diagonal is one too far to the left."""
    return _masked_by_position(lambda i, j, len_q, len_k: j < i + len_k - len_q)(query, key, value)


@mistake
def shifted_by_the_queries(query, key, value):
    """The diagonal is moved by the number of new tokens. It has to be moved by the number of tokens before them."""
    return _masked_by_position(lambda i, j, len_q, len_k: j <= i + len_q)(query, key, value)


@mistake
def shifted_the_other_way(query, key, value):
    """With a cache, the first queries attend to nothing: the diagonal is moved to the left, by as many positions as it
    should be moved to the right."""
    return _masked_by_position(lambda i, j, len_q, len_k: j <= i - (len_k - len_q))(query, key, value)


@mistake
def cache_only(query, key, value):
    """Every new token attends to the tokens before all new ones and to none of these, not even itself."""
    return _masked_by_position(lambda i, j, len_q, len_k: (j < len_k - len_q).expand(len_q, len_k))(query, key, value)


@mistake
def cache_and_itself(query, key, value):
    """A new token attends to the cache and to itself, but not to the new tokens before it."""
    return _masked_by_position(lambda i, j, len_q, len_k: (j < len_k - len_q) | (j == i + len_k - len_q))(
        query, key, value
    )


@mistake
def past_of_the_queries_only(query, key, value):
    """The cache is left out: a new token attends to the new tokens up to its own, and to none before these. Without a
    cache that is right."""
    len_q = query.shape[-2]
    return F.scaled_dot_product_attention(query, key[..., -len_q:, :], value[..., -len_q:, :], is_causal=True)


@mistake
def only_itself(query, key, value):
    """A query attends to its own position only: the mask is a diagonal instead of everything up to it."""
    return _masked_by_position(lambda i, j, len_q, len_k: j == i + len_k - len_q)(query, key, value)


@mistake(look="notation: Conventions")
def turned_round(query, key, value):
    """Each query attends to the positions after its own, and to no others: in a bool mask, True means *may attend*. A
    query without any later position gets nothing."""
    return _masked_by_position(lambda i, j, len_q, len_k: j > i + len_k - len_q)(query, key, value)


@mistake(look="notation: Conventions")
def from_its_own_position_on(query, key, value):
    """Each query attends to its own position and to later ones, but not to the past: it is the other triangle."""
    return _masked_by_position(lambda i, j, len_q, len_k: j >= i + len_k - len_q)(query, key, value)


@mistake
def queries_reversed(query, key, value):
    """The queries are in reverse order: the first of them is given the mask of the last position."""
    return _masked_by_position(lambda i, j, len_q, len_k: j < len_k - i)(query, key, value)


@mistake
def zeros_and_ones_added(query, key, value):
    """Later positions still get weight, although less: the mask holds numbers, which are added to the scores, instead
    of bools."""
    positions = _masked_by_position(lambda i, j, len_q, len_k: (j <= i + len_k - len_q).to(query.dtype))
    return positions(query, key, value)


@mistake
def output_of_all_positions(query, key, value):
    """The output has `L_k` rows: queries have been added in front for the earlier positions, and their rows are still
    in the result."""
    padded = F.pad(query, (0, 0, key.shape[-2] - query.shape[-2], 0))
    return F.scaled_dot_product_attention(padded, key, value, is_causal=True)


@mistake
def first_rows_kept(query, key, value):
    """The first rows of the result for all positions are returned instead of the last: they belong to queries that were
    only added to fill the matrix."""
    padded = F.pad(query, (0, 0, key.shape[-2] - query.shape[-2], 0))
    return F.scaled_dot_product_attention(padded, key, value, is_causal=True)[..., : query.shape[-2], :]


@mistake
def queries_moved_to_the_front(query, key, value):
    """The queries are filled up at the end instead of the front, so they are still taken for the first positions, and
    the last rows of the result do not belong to them."""
    padded = F.pad(query, (0, 0, 0, key.shape[-2] - query.shape[-2]))
    return F.scaled_dot_product_attention(padded, key, value, is_causal=True)[..., -query.shape[-2] :, :]


@mistake
def batch_lengths_taken(query, key, value):
    """The lengths are read from the first axis, which holds them only if there is no batch. Count axes from the
    right."""
    mask = torch.ones(query.shape[0], key.shape[0], dtype=torch.bool).tril(key.shape[0] - query.shape[0])
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


@mistake
def lengths_of_one_batch_dimension(query, key, value):
    """The lengths are read from the second axis, which holds them only with one batch dimension. Count axes from the
    right."""
    mask = torch.ones(query.shape[1], key.shape[1], dtype=torch.bool).tril(key.shape[1] - query.shape[1])
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


@mistake
def scale_lost(query, key, value):
    """The mask is right, but the weights are too concentrated: the scores are not divided by √d_k."""
    len_q, len_k = query.shape[-2], key.shape[-2]
    mask = torch.ones(len_q, len_k, dtype=torch.bool).tril(len_k - len_q)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=1.0)


@mistake
def masked_after_the_softmax(query, key, value):
    """Later positions get no weight, but the others do not share all of it: the weights of most queries sum to less
    than one, since the mask acts after the softmax."""
    len_q, len_k = query.shape[-2], key.shape[-2]
    weights = (query @ key.mT / query.shape[-1] ** 0.5).softmax(-1)
    return weights.tril(len_k - len_q) @ value


@mistake
def float32_inside(query, key, value):
    """Right to the accuracy of float32 only: float64 goes through float32 on the way."""
    return _causal_at_the_end(query.float(), key.float(), value.float()).to(query.dtype)
