"""Mistakes in `tiled_attention`: the factor of the scores."""

from __future__ import annotations

import math

from course_lib.exercises._headings import DIVIDE_BY_ROOT
from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.tiled_attention_mistakes.parts import tiled_with

mistake = Mistakes()


@mistake(look=DIVIDE_BY_ROOT)
def no_scale(*args):
    """The scores are not divided by the root of d_k. Each block needs the same scaling as in ordinary attention."""
    return tiled_with(divisor=lambda query, key, value, b: 1.0)(*args)


@mistake(look=DIVIDE_BY_ROOT)
def scaled_twice(*args):
    """The scores are divided by the root of d_k twice, so by d_k. Is the query scaled before the loop, and the scores
    in it once more?"""
    return tiled_with(divisor=lambda query, key, value, b: query.shape[-1])(*args)


@mistake(look=DIVIDE_BY_ROOT)
def scaled_in_every_round(query, key, value, block_size):
    """The query is divided by the root of d_k again in every round of the loop, so later blocks have smaller scores.
    Scale it once, before the loop."""
    root = math.sqrt(query.shape[-1])

    def blocks(key, value, size):
        pairs = zip(key.split(size, -2), value.split(size, -2), strict=True)
        return [(keys / root**number, values) for number, (keys, values) in enumerate(pairs)]

    return tiled_with(blocks=blocks)(query, key, value, block_size)


@mistake(look=DIVIDE_BY_ROOT)
def multiplied_by_root(*args):
    """The scores are multiplied by the root of d_k instead of divided."""
    return tiled_with(divisor=lambda query, key, value, b: query.shape[-1] ** -0.5)(*args)


@mistake(look=DIVIDE_BY_ROOT)
def scaled_by_the_block(*args):
    """The scores are divided by the root of `block_size`. What matters is how many features one dot product sums over,
    not how many keys a block has."""
    return tiled_with(divisor=lambda query, key, value, b: math.sqrt(b))(*args)


@mistake(look=DIVIDE_BY_ROOT)
def scaled_by_the_values(*args):
    """The scores are divided by the root of d_v. The values take no part in the scores: which width does?"""
    return tiled_with(divisor=lambda query, key, value, b: math.sqrt(value.shape[-1]))(*args)


@mistake(look=DIVIDE_BY_ROOT)
def scaled_by_the_keys(*args):
    """The scores are divided by the root of the number of keys. What matters is how many features one dot product sums
    over."""
    return tiled_with(divisor=lambda query, key, value, b: math.sqrt(key.shape[-2]))(*args)
