"""Mistakes in `cached_attention`: one step of the attention is replaced."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.cached_attention_mistakes.parts import step

mistake = Mistakes()


def _hiding(hidden):
    def weights(scores):
        return scores.masked_fill(hidden(scores), -math.inf).softmax(-1)

    return weights


# Inside the attention.
@mistake
def multiplied_by_the_root(query, key, value, cache=None):
    """The scores are multiplied by √d. They are divided by it."""
    return step(divisor=lambda query, keys: 1 / math.sqrt(query.shape[-1]))(query, key, value, cache)


@mistake
def scaled_by_heads(query, key, value, cache=None):
    """The scores are divided by the root of the number of heads. The divisor is the root of d, the last axis."""
    return step(divisor=lambda query, keys: math.sqrt(query.shape[1]))(query, key, value, cache)


@mistake
def scaled_by_batch(query, key, value, cache=None):
    """The scores are divided by the root of the size of the batch. The divisor is the root of d, the last axis."""
    return step(divisor=lambda query, keys: math.sqrt(query.shape[0]))(query, key, value, cache)


@mistake
def scaled_by_the_width_of_the_model(query, key, value, cache=None):
    """The scores are divided by the root of heads · d. A head has d features, and the dot product sums only over
    those."""
    return step(divisor=lambda query, keys: math.sqrt(query.shape[-1] * query.shape[1]))(query, key, value, cache)


@mistake
def softmax_before_the_scale(query, key, value, cache=None):
    """The softmax comes first, and its weights are divided by √d: they do not sum to one."""
    return step(
        divisor=lambda query, keys: 1.0,
        average=lambda weights, values: weights @ values / math.sqrt(values.shape[-1]),
    )(query, key, value, cache)


@mistake
def sigmoid(query, key, value, cache=None):
    """A sigmoid is used instead of the softmax, so the weights of a token do not sum to one."""
    return step(weights=torch.sigmoid)(query, key, value, cache)


@mistake
def softmax_over_everything(query, key, value, cache=None):
    """The exponentials are divided by the sum of *all* of them. Each query has its own sum, over its keys."""
    return step(weights=lambda scores: (scores - scores.max()).exp() / (scores - scores.max()).exp().sum())(
        query, key, value, cache
    )


@mistake
def log_softmax(query, key, value, cache=None):
    """The values are averaged with logarithms of weights."""
    return step(weights=lambda scores: scores.log_softmax(-1))(query, key, value, cache)


@mistake
def values_not_added_up(query, key, value, cache=None):
    """The values are weighted but not summed, so there is a result for each of them. There should be one per query."""
    return step(average=lambda weights, values: weights.transpose(-2, -1) * values)(query, key, value, cache)


@mistake
def not_transposed(query, key, value, cache=None):
    """Query and keys do not fit: either the keys are not transposed, so that the sum would run over tokens instead of
    features, or `*` multiplies entry by entry. A score is a sum of products over the features."""
    return step(scores=lambda query, keys: query @ keys)(query, key, value, cache)


@mistake
def heads_transposed(query, key, value, cache=None):
    """Heads and tokens are exchanged in the keys. For the scores, exchange tokens and features."""
    return step(scores=lambda query, keys: query @ keys.transpose(1, 2))(query, key, value, cache)


@mistake
def all_axes_transposed(query, key, value, cache=None):
    """`.T` reverses all axes. Exchange only the last two."""
    return step(scores=lambda query, keys: query @ keys.permute(3, 2, 1, 0))(query, key, value, cache)


@mistake
def feature_sum_loses_an_axis(query, key, value, cache=None):
    """The products are summed over the features, and the axis of the query is lost with it: the scores are `(B, H,
    1, t)`."""
    return step(scores=lambda query, keys: (query * keys).sum(-1))(query, key, value, cache)


@mistake
def sum_loses_an_axis(query, key, value, cache=None):
    """The sum of the exponentials has lost the axis of the keys, so the division runs along another one. A sum can keep
    its axis."""
    return step(weights=lambda scores: scores.exp() / scores.exp().sum(-1))(query, key, value, cache)


@mistake
def newest_masked(query, key, value, cache=None):
    """The newest token is masked: a causal mask without its diagonal. A position sees itself, too."""
    return step(weights=_hiding(lambda s: torch.arange(s.shape[-1]) == s.shape[-1] - 1))(query, key, value, cache)


@mistake
def only_later_ones_seen(query, key, value, cache=None):
    """The mask is turned round: the oldest token is hidden from the only query, as if it came later."""
    return step(weights=_hiding(lambda s: torch.ones_like(s).triu(1) == 0))(query, key, value, cache)


@mistake
def heads_averaged(query, key, value, cache=None):
    """The heads are averaged. Each head has its own output."""
    return step(form=lambda output: output.mean(1, keepdim=True))(query, key, value, cache)


@mistake
def half_precision(query, key, value, cache=None):
    """The weights are converted to half precision and lose most of their digits."""
    return step(average=lambda weights, values: (weights.half() @ values.half()).to(values.dtype))(
        query, key, value, cache
    )
