"""Mistakes in `cached_attention`: what is done with the cache, and two at once."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.cached_attention_mistakes.parts import joined, step

mistake = Mistakes()


def _joined_by(both):
    return lambda key, value, cache: (key, value) if cache is None else both(key, value, *cache)


def _cat(*parts):
    return torch.cat(parts, -2)


def _with_weights(query, key, value, cache=None):
    keys, values = joined(key, value, cache)
    weights = (query @ keys.transpose(-2, -1) / math.sqrt(query.shape[-1])).softmax(-1)
    return weights @ values, weights, (keys, values)


def _weights_for_output(query, key, value, cache=None):
    _, weights, grown = _with_weights(query, key, value, cache)
    return weights, grown


def _query_grows(query, key, value, cache=None):
    if cache is not None:
        query = torch.cat((cache[0], query), -2)
    return step()(query, key, value, cache)


def _all_keys_ask(query, key, value, cache=None):
    keys, _ = joined(key, value, cache)
    return step()(keys, key, value, cache)


def _none_at_first(query, key, value, cache=None):
    output, grown = step()(query, key, value, cache)
    return output, None if cache is None else grown


def _value_at_first(query, key, value, cache=None):
    output, grown = step()(query, key, value, cache)
    return (query if cache is None else output), grown


def _detached(query, key, value, cache=None):
    output, grown = step()(query, key, value, cache)
    return output, tuple(x.detach() for x in grown)


def _all_detached(query, key, value, cache=None):
    with torch.no_grad():
        return step()(query, key, value, cache)


_PARTS_OF_THE_CACHE: dict[str, tuple[str, dict]] = {
    "new_before_old": (
        "the new token stands before the old ones",
        {"join": _joined_by(lambda key, value, keys, values: (_cat(key, keys), _cat(value, values)))},
    ),
    "no_scale": ("the scores are not scaled", {"divisor": lambda query, keys: 1.0}),
    "scale_without_root": ("the scores are divided by d", {"divisor": lambda query, keys: query.shape[-1]}),
    "scaled_by_length": ("the scale depends on the length", {"divisor": lambda query, keys: keys.shape[-2] ** 0.5}),
    "old_cache_returned": (
        "the old cache comes back",
        {"kept": lambda keys, values, query, old: (keys, values) if old is None else old},
    ),
    "only_the_new_one_kept": (
        "only the newest token is kept",
        {"kept": lambda keys, values, query, old: (keys[..., -1:, :], values[..., -1:, :])},
    ),
    "cache_swapped": ("the cache is (values, keys)", {"kept": lambda keys, values, query, old: (values, keys)}),
    "query_axis_dropped": ("the output has lost an axis", {"form": lambda output: output.squeeze(-2)}),
    "three_results": ("three values come back", {"together": lambda output, cache: (output, *cache)}),
    "softmax_over_the_query": (
        "the softmax runs over the query",
        {"weights": lambda scores: scores.softmax(-2)},
    ),
    "softmax_over_the_heads": ("the softmax runs over the heads", {"weights": lambda scores: scores.softmax(1)}),
}


_HIDDEN = [
    *({scale, "softmax_over_the_query"} for scale in ("no_scale", "scale_without_root", "scaled_by_length")),
    {"new_before_old", "old_cache_returned"},
]


# The cache.
@mistake
def values_in_front(query, key, value, cache=None):
    """The new value is put before the old ones and the new key after them, so a weight is applied to another token's
    value."""
    return step(join=_joined_by(lambda key, value, keys, values: (_cat(keys, key), _cat(value, values))))(
        query, key, value, cache
    )


@mistake
def new_key_among_the_values(query, key, value, cache=None):
    """The new key is appended to the values as well as to the keys."""
    return step(join=_joined_by(lambda key, value, keys, values: (_cat(keys, key), _cat(values, key))))(
        query, key, value, cache
    )


@mistake
def new_value_among_the_keys(query, key, value, cache=None):
    """The new value is appended to the keys as well as to the values."""
    return step(join=_joined_by(lambda key, value, keys, values: (_cat(keys, value), _cat(values, value))))(
        query, key, value, cache
    )


@mistake
def appended_twice(query, key, value, cache=None):
    """The new token is appended twice."""
    return step(join=_joined_by(lambda key, value, keys, values: (_cat(keys, key, key), _cat(values, value, value))))(
        query, key, value, cache
    )


@mistake
def kept_twice(query, key, value, cache=None):
    """The output is right, but the new token is appended to the cache once more."""
    return step(
        kept=lambda keys, values, query, old: (_cat(keys, keys[..., -1:, :]), _cat(values, values[..., -1:, :]))
    )(query, key, value, cache)


@mistake
def one_axis_for_both(query, key, value, cache=None):
    """Keys are concatenated along the tokens, values along another axis."""
    return step(join=_joined_by(lambda key, value, keys, values: (_cat(keys, key), torch.cat((values, value), 1))))(
        query, key, value, cache
    )


@mistake
def keys_scaled_in_the_cache(query, key, value, cache=None):
    """The cached keys are divided by √d, and will be divided again in every later step."""
    return step(kept=lambda keys, values, query, old: (keys / math.sqrt(keys.shape[-1]), values))(
        query, key, value, cache
    )


@mistake
def keys_transposed_in_the_cache(query, key, value, cache=None):
    """The cached keys are transposed, as the scores need them. The cache should be `(B, H, t, d)`."""
    return step(kept=lambda keys, values, query, old: (keys.transpose(-2, -1), values))(query, key, value, cache)


@mistake
def queries_grow(query, key, value, cache=None):
    """The query is concatenated with the old keys, so there is an output for every token. Only the newest token has a
    query."""
    return _query_grows(query, key, value, cache)


@mistake
def all_keys_ask(query, key, value, cache=None):
    """The keys are used as queries, so there is an output for every token. The only query is that of the newest
    token."""
    return _all_keys_ask(query, key, value, cache)


@mistake
def no_cache_after_the_first_step(query, key, value, cache=None):
    """The first step returns no cache, so the second has none to continue from."""
    return _none_at_first(query, key, value, cache)


@mistake
def query_at_the_first_step(query, key, value, cache=None):
    """The first step returns the query. The newest token attends to itself: its weight is 1, on its own *value*."""
    return _value_at_first(query, key, value, cache)


@mistake
def new_cache_detached(query, key, value, cache=None):
    """The values are right, but no gradient flows through the returned cache: `detach`, `no_grad` or `.data`
    cuts it off."""
    return _detached(query, key, value, cache)


@mistake
def everything_detached(query, key, value, cache=None):
    """The values are right, but no gradient flows at all: `no_grad`, `detach` or `.data` cuts it off."""
    return _all_detached(query, key, value, cache)


# What is returned.
@mistake
def weights_too(query, key, value, cache=None):
    """The weights are returned as well. The contract asks for two: the output, and the pair `(keys, values)`."""
    return _with_weights(query, key, value, cache)


@mistake
def weights_for_output(query, key, value, cache=None):
    """The weights are returned instead of the output. They determine how the values are averaged."""
    return _weights_for_output(query, key, value, cache)


@mistake
def cache_as_a_dictionary(query, key, value, cache=None):
    """The cache is returned as a dictionary. The contract asks for a pair, `(keys, values)`."""
    return step(kept=lambda keys, values, query, old: {"keys": keys, "values": values})(query, key, value, cache)


@mistake
def heads_merged(query, key, value, cache=None):
    """The heads are merged in the output. That is a later step; here it is `(B, H, 1, d)`."""
    return step(form=lambda output: output.transpose(1, 2).flatten(2))(query, key, value, cache)


@mistake
def heads_after_tokens(query, key, value, cache=None):
    """Heads and tokens are exchanged in the output. It is `(B, H, 1, d)`."""
    return step(form=lambda output: output.transpose(1, 2))(query, key, value, cache)


mistake.two_at_once(_PARTS_OF_THE_CACHE, step, _HIDDEN)
