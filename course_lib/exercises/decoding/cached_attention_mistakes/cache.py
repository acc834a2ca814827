"""Mistakes in `cached_attention`: what is kept, and how old and new entries are joined."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.cached_attention_mistakes.parts import cached, joined_by, joined_cache

mistake = Mistakes()


def _old(key, value, cache):
    return (key, value) if cache is None else cache


@mistake
def cache_ignored(query, key, value, cache=None):
    """The cache has no effect: the newest token attends only to itself, and the next cache contains nothing else."""
    return cached(join=lambda key, value, cache: (key, value))(query, key, value, cache)


@mistake
def sees_itself_only(query, key, value, cache=None):
    """The cache grows as it should, but the newest token attends only to itself: the others are left out, or masked.
    The cache exists so that it can attend to them."""
    return cached(seen=lambda key, value, cache: (key, value))(query, key, value, cache)


@mistake(look="masking: Causal mask")
def does_not_see_itself(query, key, value, cache=None):
    """The newest token attends to the old cache, before its own key and value are in it. A position sees itself,
    too."""
    return cached(seen=_old)(query, key, value, cache)


@mistake
def old_cache_returned(query, key, value, cache=None):
    """The returned cache is the old one. The next step needs the new key and value as well."""
    return cached(kept=lambda query, key, value, cache, output: _old(key, value, cache))(query, key, value, cache)


@mistake
def only_the_new_one_kept(query, key, value, cache=None):
    """The output is right, but only the newest key and value are returned. The next step needs all of them."""
    return cached(kept=lambda query, key, value, cache, output: (key, value))(query, key, value, cache)


@mistake
def new_before_old(query, key, value, cache=None):
    """The new token is put before the old ones. The output does not show it, but the cache is ordered by time, the
    oldest token first."""
    return joined_by(lambda key, value, cache: (torch.cat((key, cache[0]), -2), torch.cat((value, cache[1]), -2)))(
        query, key, value, cache
    )


@mistake
def keys_in_another_order_than_values(query, key, value, cache=None):
    """Keys and values are concatenated in different orders, so a weight is applied to the value of another token."""
    return joined_by(lambda key, value, cache: (torch.cat((key, cache[0]), -2), torch.cat((cache[1], value), -2)))(
        query, key, value, cache
    )


for axis, name in ((0, "batch"), (1, "heads"), (-1, "features")):
    mistake.named(
        f"joined_along_{name}",
        f"Old and new entries are concatenated along the axis of the {name}. Which axis counts the tokens?",
    )(joined_by(lambda key, value, cache, axis=axis: joined_cache(key, value, cache, axis)))


def _foreign(x):
    """What another call left behind: other sequences, heads and features."""
    batch, heads, tokens, features = x.shape
    return x.new_zeros(batch + 1, heads + 1, tokens, features + 1)


def _after_an_earlier_call(old):
    """Something is left of earlier calls, except in the very first one; `old` chooses between it and the cache given.

    The first call is that of the first case, in float32 and without a cache. It is repeated for its gradients, and then
    finds its own key and value.
    """

    def join(key, value, cache):
        kept = old(tuple(map(_foreign, (key, value))), cache)
        return torch.cat((kept[0], key), -2), torch.cat((kept[1], value), -2)

    def step(query, key, value, *cache):
        if cache or query.dtype == torch.float64:
            return cached(join=join)(query, key, value, *cache)
        own = (key.detach(), value.detach()) if key.requires_grad else None
        return cached()(query, key, value, own)

    return step


mistake.named(
    "kept_outside_the_function",
    "The first call is right, but later ones find keys and values of earlier calls, which belong to other "
    "sequences: they are kept outside the function. All that a step needs comes in as `cache`.",
)(_after_an_earlier_call(lambda kept, cache: kept))
mistake.named(
    "kept_where_no_cache_is_given",
    "A call without a cache finds keys and values of an earlier call: they are kept outside the function, or in a "
    "default argument, which is made only once. Without a cache, there are no earlier tokens.",
)(_after_an_earlier_call(lambda kept, cache: cache or kept))


@mistake
def stacked(query, key, value, cache=None):
    """`torch.stack` makes a new axis and needs equal shapes. The tokens have an axis already."""
    return joined_by(lambda key, value, cache: (torch.stack((cache[0], key)), torch.stack((cache[1], value))))(
        query, key, value, cache
    )


@mistake
def added(query, key, value, cache=None):
    """The new key and value are added to every old one. They belong to a further token, so the length should grow by
    one."""
    return joined_by(lambda key, value, cache: (cache[0] + key, cache[1] + value))(query, key, value, cache)


@mistake
def one_of_two_appended(query, key, value, cache=None):
    """Only one of the new key and the new value is appended, so there is a weight too many or too few. Each key has one
    value."""
    return joined_by(lambda key, value, cache: (torch.cat((cache[0], key), -2), cache[1]))(query, key, value, cache)


@mistake
def oldest_dropped(query, key, value, cache=None):
    """The oldest token is dropped when a new one comes, so the cache never grows. Every earlier token may be attended
    to."""
    return joined_by(lambda key, value, cache: tuple(x[..., 1:, :] for x in joined_cache(key, value, cache)))(
        query, key, value, cache
    )


@mistake
def last_replaced(query, key, value, cache=None):
    """The last token of the cache is replaced by the new one, and the cache does not grow."""
    return joined_by(
        lambda key, value, cache: (
            torch.cat((cache[0][..., :-1, :], key), -2),
            torch.cat((cache[1][..., :-1, :], value), -2),
        )
    )(query, key, value, cache)
