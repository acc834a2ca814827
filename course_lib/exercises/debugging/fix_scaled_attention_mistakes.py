"""The mistakes in `fix_scaled_attention`: the code as given, and repairs that leave or bring a fault."""

from __future__ import annotations

import math

from course_lib.exercises._mistakes import Mistakes

mistake = Mistakes()


def _scaled_by(number, axis=-1, output=None):
    """Attention whose scores are divided by a number made from the arguments, and perhaps another output."""

    def attention(query, key, value):
        weights = (query @ key.transpose(-2, -1) / number(query, key, value)).softmax(axis)
        return (weights @ value if output is None else output(query, key, value)), weights

    return attention


def _nothing(query, key, value):
    return 1.0


def _root(query, key, value):
    return math.sqrt(query.shape[-1])


_divided_by_the_root = _scaled_by(_root)
_without_scale = _scaled_by(_nothing)


@mistake
def as_given(query, key, value):
    """The weights are still more concentrated than they should be: the more features there are, the closer they are to
    one-hot."""
    return _without_scale(query, key, value)


@mistake
def scaled_twice(query, key, value):
    """The scores are divided by d_k instead of its root, or by the root twice: with many features the weights are
    nearly uniform."""
    return _scaled_by(lambda query, key, value: query.shape[-1])(query, key, value)


@mistake
def multiplied_by_the_root(query, key, value):
    """The scores are multiplied by √d_k, so that the weights are even closer to one-hot than without a scale."""
    return _scaled_by(lambda query, key, value: query.shape[-1] ** -0.5)(query, key, value)


@mistake
def fourth_root(query, key, value):
    """The scores are divided by a smaller number than √d_k, its own root: the weights still become more concentrated
    with more features. If only one of two factors is scaled, it needs the whole root."""
    return _scaled_by(lambda query, key, value: query.shape[-1] ** 0.25)(query, key, value)


@mistake
def whole_root(query, key, value):
    """The root is rounded down to an integer, so the result is right only where d_k is a square number."""
    return _scaled_by(lambda query, key, value: math.isqrt(query.shape[-1]))(query, key, value)


@mistake
def fixed_scale(query, key, value):
    """The scores are divided by a fixed number, the root of 64. The scale depends on how many features the queries
    have."""
    return _scaled_by(lambda query, key, value: 8.0)(query, key, value)


@mistake
def root_of_d_v(query, key, value):
    """The scores are divided by the root of d_v, the width of the values. A score is a sum over d_k products, and d_v
    may be another number."""
    return _scaled_by(lambda query, key, value: math.sqrt(value.shape[-1]))(query, key, value)


@mistake
def root_of_the_keys(query, key, value):
    """The scores are divided by the root of the number of keys. Their size depends on the number of features instead:
    a score is a sum over d_k products."""
    return _scaled_by(lambda query, key, value: math.sqrt(key.shape[-2]))(query, key, value)


@mistake
def root_of_the_queries(query, key, value):
    """The scores are divided by the root of the number of queries. Their size depends on the number of features
    instead: a score is a sum over d_k products."""
    return _scaled_by(lambda query, key, value: math.sqrt(query.shape[-2]))(query, key, value)


@mistake
def weights_scaled(query, key, value):
    """The finished weights are divided by √d_k: they are as concentrated as before, and a row does not sum to one any
    more. The scale has to act before the softmax."""
    weights = _without_scale(query, key, value)[1] / _root(query, key, value)
    return weights @ value, weights


@mistake
def output_scaled(query, key, value):
    """The output is divided by √d_k, while the weights are still those of scores without a scale. The scale has to act
    before the softmax."""
    output, weights = _without_scale(query, key, value)
    return output / _root(query, key, value), weights


@mistake
def output_of_unscaled_weights(query, key, value):
    """The weights that are returned are right, but the output is still the average with weights without a scale."""
    return _without_scale(query, key, value)[0], _divided_by_the_root(query, key, value)[1]


@mistake
def unscaled_weights_returned(query, key, value):
    """The output is right, but the weights that are returned are those without a scale, which is not what the output
    was averaged with."""
    return _divided_by_the_root(query, key, value)[0], _without_scale(query, key, value)[1]


@mistake
def scores_returned(query, key, value):
    """The output is right, but the second result is the scaled scores instead of the weights: its rows do not sum to
    one."""
    scores = query @ key.transpose(-2, -1) / _root(query, key, value)
    return _divided_by_the_root(query, key, value)[0], scores


@mistake
def softmax_left_out(query, key, value):
    """The values are averaged with the scaled scores themselves, some of which are negative: between the scale and the
    output, the softmax is missing."""
    scores = query @ key.transpose(-2, -1) / _root(query, key, value)
    return scores @ value, scores


@mistake
def over_queries(query, key, value):
    """The scale is right, but now the weights sum to one over the queries: each column does, and each row should."""
    return _scaled_by(_root, axis=-2)(query, key, value)


@mistake
def over_queries_unscaled(query, key, value):
    """The scores are not scaled, and the weights sum to one over the queries instead of the keys."""
    return _scaled_by(_nothing, axis=-2)(query, key, value)


@mistake
def only_the_output(query, key, value):
    """The output is right, but the weights are not returned with it: the contract asks for a pair."""
    return _divided_by_the_root(query, key, value)[0]


@mistake
def weights_first(query, key, value):
    """Both results are right, but their order is not: the output comes first, then the weights."""
    output, weights = _divided_by_the_root(query, key, value)
    return weights, output


@mistake
def scaled_in_place(query, key, value):
    """The result is right, but the query, which belongs to the caller, is divided in place, and autograd does not
    allow it for a leaf: `/=` and methods whose name ends in `_` write to their tensor."""
    query /= _root(query, key, value)
    return _without_scale(query, key, value)
