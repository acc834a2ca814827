"""Mistakes in `kernel_regression`: queries that are far from every key."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.kernel_regression_mistakes.parts import kernel, ratio
from course_lib.exercises.attention.softmax import softmax

mistake = Mistakes()


@mistake
def zero_by_zero(x_query, x_key, y_key, bandwidth):
    """Right near the keys. Far away every kernel is 0 in the computer's numbers, and 0 is divided by 0. What the
    softmax does with large scores helps here, too."""
    return kernel(average=ratio)(x_query, x_key, y_key, bandwidth)


@mistake
def zero_by_zero_in_float32(x_query, x_key, y_key, bandwidth):
    """Far from all keys every kernel is 0 in the computer's numbers, and 0 is divided by 0. Besides, the result is
    float32 whatever the input: a tensor that you make yourself has to be told its dtype."""
    return kernel(average=lambda s, y: ratio(s, y).float())(x_query, x_key, y_key, bandwidth)


@mistake
def zero_far_away(x_query, x_key, y_key, bandwidth):
    """Far from all keys 0 comes out: something hides the division of 0 by 0, a small number in the divisor or a
    replaced `nan`. The quotient does have a value there; the nearest keys decide it."""
    return kernel(average=lambda s, y: ratio(s, y).nan_to_num())(x_query, x_key, y_key, bandwidth)


@mistake
def tiny_number_in_the_divisor(x_query, x_key, y_key, bandwidth):
    """A tiny number is added to the divisor. Near the keys it costs digits that float64 has, and far from them 0
    comes out, where the nearest keys should decide."""
    return kernel(average=lambda s, y: s.exp() @ y / (s.exp().sum(-1) + 1e-8))(x_query, x_key, y_key, bandwidth)


@mistake
def small_number_in_the_divisor(x_query, x_key, y_key, bandwidth):
    """A small number is added to the divisor. It pulls estimates towards 0, a little near the keys and all the way
    far from them."""
    return kernel(average=lambda s, y: s.exp() @ y / (s.exp().sum(-1) + 1e-6))(x_query, x_key, y_key, bandwidth)


@mistake
def mean_far_away(x_query, x_key, y_key, bandwidth):
    """Far from all keys the plain mean of the known values comes out, as if all kernels were equal there. They are
    all small, but their ratios are not 1: the nearest keys decide."""
    return kernel(average=lambda s, y: torch.where(s.exp().sum(-1) > 0, ratio(s, y), y.mean()))(
        x_query, x_key, y_key, bandwidth
    )


@mistake
def bounded_scores(x_query, x_key, y_key, bandwidth):
    """The exponents are cut off at a bound, so that keys further away than that all count alike. Their kernels are
    small, but the ratios are not 1: the nearest keys decide."""
    return kernel(average=lambda s, y: softmax(s.clamp(min=-50.0)) @ y)(x_query, x_key, y_key, bandwidth)


@mistake
def larger_number_in_the_kernel(x_query, x_key, y_key, bandwidth):
    """A number such as 1e-8 is added to every kernel. Near the keys it costs digits that float64 has, and far from
    them it is all that is left, so that all keys count alike."""
    return kernel(average=lambda s, y: (s.exp() + 1e-8) @ y / (s.exp() + 1e-8).sum(-1))(
        x_query, x_key, y_key, bandwidth
    )


@mistake
def small_number_in_the_kernel(x_query, x_key, y_key, bandwidth):
    """A small number is added to every kernel, so that far from all keys they look equal. Their ratios are what
    counts, however small they are."""
    return kernel(average=lambda s, y: (s.exp() + 1e-12) @ y / (s.exp() + 1e-12).sum(-1))(
        x_query, x_key, y_key, bandwidth
    )


@mistake
def largest_of_all(x_query, x_key, y_key, bandwidth):
    """The largest score of all queries is taken off. A query that is further away than the others still has no
    kernel above 0: each may have its own constant."""
    return kernel(average=lambda s, y: (s - s.max()).exp() @ y / (s - s.max()).exp().sum(-1))(
        x_query, x_key, y_key, bandwidth
    )


@mistake
def mean_taken_off(x_query, x_key, y_key, bandwidth):
    """The mean score of each query is taken off. Where the distances differ much, the exponentials overflow then."""
    return kernel(
        average=lambda s, y: (s - s.mean(-1, keepdim=True)).exp() @ y / (s - s.mean(-1, keepdim=True)).exp().sum(-1)
    )(x_query, x_key, y_key, bandwidth)


@mistake
def shift_over_queries(x_query, x_key, y_key, bandwidth):
    """The largest score is sought over the queries. What is taken off cancels only if it is the same for all keys of
    one query."""
    return kernel(average=lambda s, y: (s - s.amax(0)).exp() @ y / (s - s.amax(0)).exp().sum(-1))(
        x_query, x_key, y_key, bandwidth
    )
