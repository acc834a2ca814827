"""Mistakes in `cached_attention`: what is returned, and what is changed."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.cached_attention import cached_attention
from course_lib.exercises.decoding.cached_attention_mistakes.parts import cached, joined_by, joined_cache

mistake = Mistakes()


def _kept(change):
    """The step with a change to the cache that is returned."""
    return cached(kept=lambda query, key, value, cache, output: change(*joined_cache(key, value, cache)))


@mistake
def cache_swapped(query, key, value, cache=None):
    """Values and keys are returned in the wrong order: the cache is `(keys, values)`."""
    return _kept(lambda keys, values: (values, keys))(query, key, value, cache)


@mistake
def cache_read_swapped(query, key, value, cache=None):
    """The pair is read in the wrong order: keys are appended to values. The cache is `(keys, values)`."""
    return joined_by(lambda key, value, cache: joined_cache(key, value, cache[::-1]))(query, key, value, cache)


@mistake
def query_kept(query, key, value, cache=None):
    """The query is kept in place of the key. A query is used once, for its own token, and never again."""
    return (
        cached_attention(query, key, value, cache)[0],
        joined_cache(query, value, cache),
    )


@mistake
def output_kept(query, key, value, cache=None):
    """The output is kept in place of the value. What later tokens average is the value."""
    return cached(
        kept=lambda query, key, value, cache, output: joined_cache(key, output, cache),
    )(query, key, value, cache)


@mistake
def three_results(*args):
    """Three values are returned. The contract asks for two: the output, and the pair `(keys, values)`."""
    return (lambda output, cache: (output, *cache))(*cached_attention(*args))


@mistake
def only_the_output(*args):
    """Only the output is returned. Without the cache there is no next step."""
    return cached_attention(*args)[0]


@mistake
def results_swapped(*args):
    """The cache comes first, then the output. The contract asks for `(output, (keys, values))`."""
    return cached_attention(*args)[::-1]


@mistake
def cache_as_one_tensor(query, key, value, cache=None):
    """The cache is returned as one tensor. The contract asks for a pair, `(keys, values)`."""
    return _kept(lambda keys, values: torch.stack((keys, values)))(query, key, value, cache)


@mistake
def query_axis_dropped(*args):
    """The output has lost the axis of length one: the contract asks for `(B, H, 1, d)`."""
    return (lambda output, cache: (output.squeeze(-2), cache))(*cached_attention(*args))


@mistake
def squeezed(*args):
    """`squeeze()` removes every axis of length one, including that of a single sequence or a single head."""
    return (lambda output, cache: (output.squeeze().unsqueeze(-2), cache))(*cached_attention(*args))


@mistake
def cache_detached(query, key, value, cache=None):
    """The values are right, but no gradient reaches the cache: `detach`, `no_grad`, `.data` or a copy through Python
    numbers cuts it off."""
    return cached_attention(query, key, value, None if cache is None else tuple(x.detach() for x in cache))


@mistake
def cache_never_none(query, key, value, cache=None):
    """The first step has no cache, and None cannot be unpacked."""
    return cached(join=lambda key, value, cache: (torch.cat((cache[0], key), -2), torch.cat((cache[1], value), -2)))(
        query, key, value, cache
    )


@mistake
def if_cache(query, key, value, cache=None):
    """`if keys:` needs one truth value for a whole tensor, which is not defined. Test whether there is a cache
    instead."""
    keys, values = cache if cache is not None else (None, None)
    return cached_attention(query, key, value, (keys, values) if keys else None)


@mistake
def cache_overwritten(query, key, value, cache=None):
    """The new key and value are written into the old cache. It belongs to the caller, and other hypotheses may continue
    from it, so neither its length nor its contents should change."""
    if cache is None:
        return cached_attention(query, key, value)
    result = cached_attention(query, key, value, cache)
    cache[0][..., -1:, :] = key
    cache[1][..., -1:, :] = value
    return result
