"""The building blocks of the mistakes in `cached_attention`."""

from __future__ import annotations

import math

import torch

__all__ = ["attention", "cached", "joined", "joined_by", "joined_cache", "step"]


def joined_cache(key, value, cache, dim=-2):
    if cache is None:
        return key, value
    return torch.cat((cache[0], key), dim), torch.cat((cache[1], value), dim)


def attention(query, key, value, scale=None, dim=-1, weights=torch.softmax):
    scores = query @ key.transpose(-2, -1) / (query.shape[-1] ** 0.5 if scale is None else scale)
    return weights(scores, dim) @ value


def cached(*, join=joined_cache, attend=attention, seen=None, kept=None):
    """The step with one part replaced: how the cache is joined, what is attended to, what is kept."""

    def step(query, key, value, cache=None):
        keys, values = join(key, value, cache)
        output = attend(query, *(seen(key, value, cache) if seen else (keys, values)))
        return output, (kept(query, key, value, cache, output) if kept else (keys, values))

    return step


def joined_by(function):
    """The step with another way to join the cache and the new token."""
    return cached(join=lambda key, value, cache: (key, value) if cache is None else function(key, value, cache))


def joined(key, value, cache):
    if cache is None:
        return key, value
    return torch.cat((cache[0], key), -2), torch.cat((cache[1], value), -2)


def step(
    *,
    join=joined,
    scores=lambda query, keys: query @ keys.transpose(-2, -1),
    divisor=lambda query, keys: math.sqrt(query.shape[-1]),
    weights=lambda scores: scores.softmax(-1),
    average=lambda weights, values: weights @ values,
    kept=lambda keys, values, query, old: (keys, values),
    form=lambda output: output,
    together=lambda output, cache: (output, cache),
):
    """A step with parts replaced; unchanged, it is right."""

    def solution(query, key, value, cache=None):
        keys, values = join(key, value, cache)
        shares = weights(scores(query, keys) / divisor(query, keys))
        return together(form(average(shares, values)), kept(keys, values, query, cache))

    return solution
