"""Further mistakes in attention with a cache: inside of the attention itself, in the cache, and in what comes back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import torch

from course_lib.exercises._exercise import Exercise

__all__ = ["add_slips"]

INF = float("inf")


def _joined(key, value, cache):
    if cache is None:
        return key, value
    return torch.cat((cache[0], key), -2), torch.cat((cache[1], value), -2)


def _step(
    *,
    join=_joined,
    scores=lambda query, keys: query @ keys.transpose(-2, -1),
    divisor=lambda query, keys: math.sqrt(query.shape[-1]),
    weights=lambda scores: scores.softmax(-1),
    average=lambda weights, values: weights @ values,
    kept=lambda keys, values, query, old: (keys, values),
    form=lambda output: output,
    together=lambda output, cache: (output, cache),
):
    """A step with parts exchanged; as it stands, it is right."""

    def solution(query, key, value, cache=None):
        keys, values = join(key, value, cache)
        shares = weights(scores(query, keys) / divisor(query, keys))
        return together(form(average(shares, values)), kept(keys, values, query, cache))

    return solution


def _joined_by(both):
    return lambda key, value, cache: (key, value) if cache is None else both(key, value, *cache)


def _cat(*parts):
    return torch.cat(parts, -2)


def _masked(hidden):
    def weights(scores):
        return scores.masked_fill(hidden(scores), -INF).softmax(-1)

    return weights


def _with_weights(query, key, value, cache=None):
    keys, values = _joined(key, value, cache)
    weights = (query @ keys.transpose(-2, -1) / math.sqrt(query.shape[-1])).softmax(-1)
    return weights @ values, weights, (keys, values)


def _weights_for_output(query, key, value, cache=None):
    _, weights, grown = _with_weights(query, key, value, cache)
    return weights, grown


def _query_grows(query, key, value, cache=None):
    if cache is not None:
        query = torch.cat((cache[0], query), -2)
    return _step()(query, key, value, cache)


def _all_keys_ask(query, key, value, cache=None):
    keys, _ = _joined(key, value, cache)
    return _step()(keys, key, value, cache)


def _none_at_first(query, key, value, cache=None):
    output, grown = _step()(query, key, value, cache)
    return output, None if cache is None else grown


def _value_at_first(query, key, value, cache=None):
    output, grown = _step()(query, key, value, cache)
    return (query if cache is None else output), grown


def _detached(query, key, value, cache=None):
    output, grown = _step()(query, key, value, cache)
    return output, tuple(x.detach() for x in grown)


def _all_detached(query, key, value, cache=None):
    with torch.no_grad():
        return _step()(query, key, value, cache)


_SLIPS: list[tuple[str, str, Callable]] = [
    # Inside of the attention.
    (
        "multiplied_by_the_root",
        "The scores are multiplied by √d. They are divided by it.",
        _step(divisor=lambda query, keys: 1 / math.sqrt(query.shape[-1])),
    ),
    (
        "scaled_by_heads",
        "The scores are divided by the root of the number of heads. The divisor is the root of d, the last axis.",
        _step(divisor=lambda query, keys: math.sqrt(query.shape[1])),
    ),
    (
        "scaled_by_batch",
        "The scores are divided by the root of the size of the batch. The divisor is the root of d, the last axis.",
        _step(divisor=lambda query, keys: math.sqrt(query.shape[0])),
    ),
    (
        "scaled_by_the_width_of_the_model",
        "The scores are divided by the root of heads · d. A head has d features, and only those are multiplied.",
        _step(divisor=lambda query, keys: math.sqrt(query.shape[-1] * query.shape[1])),
    ),
    (
        "softmax_before_the_scale",
        "The softmax comes first, and its weights are divided by √d: they do not sum to one.",
        _step(
            divisor=lambda query, keys: 1.0,
            average=lambda weights, values: weights @ values / math.sqrt(values.shape[-1]),
        ),
    ),
    (
        "sigmoid",
        "A sigmoid stands where the softmax belongs: the weights of a token do not sum to one.",
        _step(weights=torch.sigmoid),
    ),
    (
        "softmax_over_everything",
        "The exponentials are divided by the sum of *all* of them. Each query has its own sum, over its keys.",
        _step(weights=lambda scores: (scores - scores.max()).exp() / (scores - scores.max()).exp().sum()),
    ),
    (
        "log_softmax",
        "The values are averaged with logarithms of weights.",
        _step(weights=lambda scores: scores.log_softmax(-1)),
    ),
    (
        "values_not_added_up",
        "The values are weighed and not added up, so there is a result for each of them. The output has one.",
        _step(average=lambda weights, values: weights.transpose(-2, -1) * values),
    ),
    (
        "not_transposed",
        "Query and keys do not fit: either the keys are not transposed, so that their tokens stand where features are "
        "multiplied, or `*` multiplies number by number. A score is a sum of products over the features.",
        _step(scores=lambda query, keys: query @ keys),
    ),
    (
        "heads_transposed",
        "Heads and tokens change places in the keys. For scores it is tokens and features that do.",
        _step(scores=lambda query, keys: query @ keys.transpose(1, 2)),
    ),
    (
        "all_axes_transposed",
        "`.T` turns all axes round. Only the last two change places.",
        _step(scores=lambda query, keys: query @ keys.permute(3, 2, 1, 0)),
    ),
    (
        "feature_sum_loses_an_axis",
        "The products are summed over the features, and the axis of the query is lost with it: the scores are "
        "`(B, H, 1, t)`.",
        _step(scores=lambda query, keys: (query * keys).sum(-1)),
    ),
    (
        "sum_loses_an_axis",
        "The sum of the exponentials has lost the axis of the keys, and is divided along another one. A sum can keep "
        "its axis.",
        _step(weights=lambda scores: scores.exp() / scores.exp().sum(-1)),
    ),
    (
        "newest_masked",
        "The newest token is masked: a causal mask without its diagonal. A position sees itself, too.",
        _step(weights=_masked(lambda s: torch.arange(s.shape[-1]) == s.shape[-1] - 1)),
    ),
    (
        "only_later_ones_seen",
        "The mask is turned round: the oldest token is hidden from the only query, as if it came later.",
        _step(weights=_masked(lambda s: torch.ones_like(s).triu(1) == 0)),
    ),
    (
        "heads_averaged",
        "The heads are averaged. Each head has its own output.",
        _step(form=lambda output: output.mean(1, keepdim=True)),
    ),
    (
        "half_precision",
        "The weights go through half precision, and lose most of their digits.",
        _step(average=lambda weights, values: (weights.half() @ values.half()).to(values.dtype)),
    ),
    # The cache.
    (
        "values_in_front",
        "The new value is put in front of the old ones, the new key behind them, so a weight goes to another token's "
        "value.",
        _step(join=_joined_by(lambda key, value, keys, values: (_cat(keys, key), _cat(value, values)))),
    ),
    (
        "new_key_among_the_values",
        "The new key is appended to the values as well as to the keys.",
        _step(join=_joined_by(lambda key, value, keys, values: (_cat(keys, key), _cat(values, key)))),
    ),
    (
        "new_value_among_the_keys",
        "The new value is appended to the keys as well as to the values.",
        _step(join=_joined_by(lambda key, value, keys, values: (_cat(keys, value), _cat(values, value)))),
    ),
    (
        "appended_twice",
        "The new token is appended twice.",
        _step(join=_joined_by(lambda key, value, keys, values: (_cat(keys, key, key), _cat(values, value, value)))),
    ),
    (
        "kept_twice",
        "The output is right, and the new token is appended to the cache once more.",
        _step(kept=lambda keys, values, query, old: (_cat(keys, keys[..., -1:, :]), _cat(values, values[..., -1:, :]))),
    ),
    (
        "one_axis_for_both",
        "Keys are put together along the tokens, values along another axis.",
        _step(join=_joined_by(lambda key, value, keys, values: (_cat(keys, key), torch.cat((values, value), 1)))),
    ),
    (
        "keys_scaled_in_the_cache",
        "The keys that are kept are divided by √d, and so will be again in every later step.",
        _step(kept=lambda keys, values, query, old: (keys / math.sqrt(keys.shape[-1]), values)),
    ),
    (
        "keys_transposed_in_the_cache",
        "The keys that are kept are transposed, as the scores need them. The cache has `(B, H, t, d)`.",
        _step(kept=lambda keys, values, query, old: (keys.transpose(-2, -1), values)),
    ),
    (
        "queries_grow",
        "The query is put together with the old keys, and so there is an output for every token. Only the newest token "
        "asks.",
        _query_grows,
    ),
    (
        "all_keys_ask",
        "The keys ask in place of the query, and there is an output for every token. The newest query asks, alone.",
        _all_keys_ask,
    ),
    (
        "no_cache_after_the_first_step",
        "The first step gives no cache back, so the second has none to continue from.",
        _none_at_first,
    ),
    (
        "query_at_the_first_step",
        "The first step returns the query. The newest token attends to itself: its weight is 1, on its own *value*.",
        _value_at_first,
    ),
    (
        "new_cache_detached",
        "The values are right, but no gradient flows through the cache that comes back: `detach`, `no_grad` or `.data` "
        "cuts it off.",
        _detached,
    ),
    (
        "everything_detached",
        "The values are right, but no gradient flows at all: `no_grad`, `detach` or `.data` cuts it off.",
        _all_detached,
    ),
    # What comes back.
    (
        "weights_too",
        "The weights come back as well. The contract asks for two: the output, and the pair `(keys, values)`.",
        _with_weights,
    ),
    (
        "weights_for_output",
        "The weights come back in place of the output. They say how the values are averaged.",
        _weights_for_output,
    ),
    (
        "cache_as_a_dictionary",
        "The cache comes back as a dictionary. The contract asks for a pair, `(keys, values)`.",
        _step(kept=lambda keys, values, query, old: {"keys": keys, "values": values}),
    ),
    (
        "heads_merged",
        "The heads are merged in the output. That is a later step; here it is `(B, H, 1, d)`.",
        _step(form=lambda output: output.transpose(1, 2).flatten(2)),
    ),
    (
        "heads_after_tokens",
        "Heads and tokens have changed places in the output. It is `(B, H, 1, d)`.",
        _step(form=lambda output: output.transpose(1, 2)),
    ),
]

_COMMON: dict[str, tuple[str, dict]] = {
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


def add_slips(exercise: Exercise) -> None:
    """Add the mistakes of this module to those of the exercise."""
    for key, says, solution in _SLIPS:
        exercise.misconception(key, says)(solution)
    for (a, (first, one)), (b, (second, other)) in itertools.combinations(_COMMON.items(), 2):
        if not one.keys() & other.keys() and {a, b} not in _HIDDEN:
            says = f"Two mistakes meet here: {first}, and {second}. Mend them one at a time."
            exercise.misconception(f"{a}+{b}", says)(_step(**one, **other))
