"""Mistakes in `cached_attention`: the attention itself."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.cached_attention_mistakes.parts import attention, cached

mistake = Mistakes()


def _top_left(scores, dim):
    rows, columns = scores.shape[-2:]
    return scores.masked_fill(~torch.ones(rows, columns, dtype=torch.bool).tril(), -math.inf).softmax(dim)


@mistake(look="masking: Causal mask")
def causal_mask_from_the_top_left(query, key, value, cache=None):
    """A causal mask is cut from the top left corner, where row 0 is the first token. Here the only row is the *last*
    token: with this mask it can attend only to the oldest key."""
    return cached(attend=lambda query, key, value: attention(query, key, value, weights=_top_left))(
        query, key, value, cache
    )


@mistake(look="scaled_dot_product: Why divide by the root of d")
def no_scale(query, key, value, cache=None):
    """The scores are not scaled. This is the same attention as before, including the factor 1/√d."""
    return cached(attend=lambda query, key, value: attention(query, key, value, scale=1.0))(query, key, value, cache)


@mistake(look="scaled_dot_product: Why divide by the root of d")
def scale_without_root(query, key, value, cache=None):
    """The scores are divided by d, and not by its root."""
    return cached(attend=lambda query, key, value: attention(query, key, value, scale=query.shape[-1]))(
        query, key, value, cache
    )


@mistake(look="scaled_dot_product: Why divide by the root of d")
def scaled_by_length(query, key, value, cache=None):
    """The scores are divided by the root of the number of tokens, so they change as the cache grows. The divisor is
    the root of d."""
    return cached(attend=lambda query, key, value: attention(query, key, value, scale=key.shape[-2] ** 0.5))(
        query, key, value, cache
    )


@mistake
def softmax_over_the_query(query, key, value, cache=None):
    """The softmax runs over the axis of the query, which has length one, so every weight is 1. It runs over the
    keys."""
    return cached(attend=lambda query, key, value: attention(query, key, value, dim=-2))(query, key, value, cache)


@mistake
def softmax_over_the_heads(query, key, value, cache=None):
    """The softmax runs over the heads. It runs over the keys, the last axis."""
    return cached(attend=lambda query, key, value: attention(query, key, value, dim=1))(query, key, value, cache)


@mistake
def softmax_over_the_batch(query, key, value, cache=None):
    """The softmax runs over the batch. It runs over the keys, the last axis."""
    return cached(attend=lambda query, key, value: attention(query, key, value, dim=0))(query, key, value, cache)


@mistake
def no_softmax(query, key, value, cache=None):
    """The values are weighted by the raw scores: the softmax is missing."""
    return cached(attend=lambda query, key, value: attention(query, key, value, weights=lambda scores, dim: scores))(
        query, key, value, cache
    )


@mistake(look="attention: The softmax turns scores into weights")
def unstable_softmax(query, key, value, cache=None):
    """Large scores overflow: their exponentials leave the range of the dtype. `torch.softmax` subtracts a constant
    first."""
    return cached(
        attend=lambda query, key, value: attention(
            query, key, value, weights=lambda s, dim: s.exp() / s.exp().sum(dim, keepdim=True)
        )
    )(query, key, value, cache)


@mistake
def plain_mean(query, key, value, cache=None):
    """All tokens get the same weight, whatever the query. Attention weights them by the scores."""
    return cached(attend=lambda query, key, value: attention(query * 0, key, value))(query, key, value, cache)


@mistake
def keys_averaged(query, key, value, cache=None):
    """The keys are averaged instead of the values."""
    return cached(attend=lambda query, key, value: attention(query, key, key))(query, key, value, cache)
