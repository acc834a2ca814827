"""Mistakes in `scaled_dot_product_attention`: the scale and the scores."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._headings import DIVIDE_BY_ROOT
from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.scaled_dot_product.scaled_dot_product_attention_mistakes.parts import (
    attention_with,
    dot_products,
)

mistake = Mistakes()


def _in_float32(query, key, value):
    return torch.tensor(float(query.shape[-1]), dtype=torch.float32).sqrt()


@mistake(look=DIVIDE_BY_ROOT)
def root_by_precedence(query, key, value, mask=None):
    """`d ** 1 / 2` is half of d: Python takes the power before the division. Put the exponent in brackets, or use a
    function for the root."""
    return attention_with(scale=lambda q, k, v: q.shape[-1] / 2)(query, key, value, mask)


@mistake(look=DIVIDE_BY_ROOT)
def root_by_precedence_inline(query, key, value, mask=None):
    """`scores / d ** 1 / 2` divides by d and then by 2, and `d ** -1 / 2` is half of 1/d: Python takes the power
    first. Put the exponent in brackets, or use a function for the root."""
    return attention_with(scale=lambda q, k, v: q.shape[-1] * 2)(query, key, value, mask)


@mistake(look=DIVIDE_BY_ROOT)
def root_rounded_down(query, key, value, mask=None):
    """The root is rounded down to an int. The divisor need not be a whole number."""
    return attention_with(scale=lambda q, k, v: int(math.sqrt(q.shape[-1])))(query, key, value, mask)


@mistake(look=DIVIDE_BY_ROOT)
def fourth_root(query, key, value, mask=None):
    """The scores are divided by the fourth root of d_k. Was the root taken twice, or was only one of query and key
    scaled?"""
    return attention_with(scale=lambda q, k, v: q.shape[-1] ** 0.25)(query, key, value, mask)


@mistake(look=DIVIDE_BY_ROOT)
def scale_by_square(query, key, value, mask=None):
    """The scores are divided by d_k². Their spread grows more slowly than d_k itself."""
    return attention_with(scale=lambda q, k, v: q.shape[-1] ** 2)(query, key, value, mask)


@mistake(look=DIVIDE_BY_ROOT)
def scale_by_keys_without_root(query, key, value, mask=None):
    """The scores are divided by the number of keys. What matters is how many features one dot product sums over."""
    return attention_with(scale=lambda q, k, v: k.shape[-2])(query, key, value, mask)


@mistake(look=DIVIDE_BY_ROOT)
def scale_by_value_width_without_root(query, key, value, mask=None):
    """The scores are divided by the width of the values. The values take no part in the scores: which width does?"""
    return attention_with(scale=lambda q, k, v: v.shape[-1])(query, key, value, mask)


@mistake(look=DIVIDE_BY_ROOT)
def scale_by_features_of_all(query, key, value, mask=None):
    """The divisor is the root of the number of all entries of the query. One dot product sums over the features of
    one query alone."""
    return attention_with(scale=lambda q, k, v: math.sqrt(q.numel()))(query, key, value, mask)


@mistake(look=DIVIDE_BY_ROOT)
def scale_by_length_of_query(query, key, value, mask=None):
    """The scores are divided by the length (the norm) of each query vector. The divisor depends on how many features
    there are, not on what they contain."""
    return attention_with(compare=lambda q, k: dot_products(q / q.norm(dim=-1, keepdim=True), k))(
        query, key, value, mask
    )


@mistake
def root_in_float32(query, key, value, mask=None):
    """The root is computed as a float32 tensor, so in float64 the scores are only as exact as float32. A plain
    Python number fits every dtype."""
    return attention_with(scale=_in_float32)(query, key, value, mask)


@mistake
def divided_and_rounded_down(query, key, value, mask=None):
    """`//` divides and rounds down, so the scores lose their fractional part and their gradient."""
    return attention_with(compare=lambda q, k: (dot_products(q, k) // math.sqrt(q.shape[-1])) * math.sqrt(q.shape[-1]))(
        query, key, value, mask
    )


@mistake
def entry_by_entry(query, key, value, mask=None):
    """`*` multiplies query and key entry by entry. A score is a dot product of one query with one key, for every
    pair: which operation on matrices computes that?"""
    return attention_with(compare=lambda q, k: q * k)(query, key, value, mask)


@mistake
def entry_by_entry_summed(query, key, value, mask=None):
    """The i-th query meets the i-th key only: `*` works entry by entry. Every query has to be compared with every
    key."""
    return attention_with(compare=lambda q, k: (q * k).sum(-1))(query, key, value, mask)


@mistake
def entry_by_entry_with_transpose(query, key, value, mask=None):
    """`*` multiplies the query with the transposed key entry by entry. The shapes need not even fit; a table of dot
    products needs another operation."""
    return attention_with(compare=lambda q, k: q * k.transpose(-2, -1))(query, key, value, mask)


@mistake
def features_compared(query, key, value, mask=None):
    """The query is transposed instead of the key, so features are compared with features. The axis that is summed
    over has to be the features."""
    return attention_with(compare=lambda q, k: q.transpose(-2, -1) @ k)(query, key, value, mask)


@mistake
def keys_by_queries(query, key, value, mask=None):
    """The scores have one row per key and one column per query. Rows belong to queries: which factor comes first?"""
    return attention_with(compare=lambda q, k: k @ q.transpose(-2, -1))(query, key, value, mask)


@mistake
def queries_with_queries(query, key, value, mask=None):
    """The queries are compared with each other, and the keys are never used."""
    return attention_with(compare=lambda q, k: dot_products(q, q))(query, key, value, mask)


@mistake
def keys_with_keys(query, key, value, mask=None):
    """The keys are compared with each other, and the queries are never used."""
    return attention_with(compare=lambda q, k: dot_products(k, k))(query, key, value, mask)


@mistake
def distances(query, key, value, mask=None):
    """The scores are distances between queries and keys, so the farthest key gets the largest weight. Attention
    compares with dot products."""
    return attention_with(compare=torch.cdist)(query, key, value, mask)


@mistake
def signs_turned(query, key, value, mask=None):
    """The scores have the wrong sign, so the key that fits worst gets the largest weight."""
    return attention_with(compare=lambda q, k: -dot_products(q, k))(query, key, value, mask)
