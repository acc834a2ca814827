"""Mistakes in `kernel_regression`: queries that are far from every key."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.kernel_regression_mistakes.parts import kernel, ratio
from course_lib.exercises.attention.softmax import softmax

mistake = Mistakes()


@mistake
def zero_by_zero(x_query, x_key, y_key, bandwidth):
    """Right near the keys. Far away every kernel is 0 in the computer's numbers, and 0 is divided by 0. The step that
    makes a softmax safe for large scores helps here, too."""
    return kernel(average=ratio)(x_query, x_key, y_key, bandwidth)


@mistake
def zero_by_zero_in_float32(x_query, x_key, y_key, bandwidth):
    """Far from all keys every kernel is 0 in the computer's numbers, and 0 is divided by 0. Besides, the result is
    float32 whatever the input: state the dtype of any tensor that you create yourself."""
    return kernel(average=lambda s, y: ratio(s, y).float())(x_query, x_key, y_key, bandwidth)


@mistake
def zero_far_away(x_query, x_key, y_key, bandwidth):
    """Far from all keys the result is 0: something hides the division of 0 by 0, such as a small number in the divisor
    or a replaced `nan`. The quotient does have a value there, determined by the nearest keys."""
    return kernel(average=lambda s, y: ratio(s, y).nan_to_num())(x_query, x_key, y_key, bandwidth)


@mistake
def tiny_number_in_the_divisor(x_query, x_key, y_key, bandwidth):
    """A tiny number is added to the divisor. Near the keys it costs digits that float64 has, and far from them the
    result is 0, although the nearest keys should determine it."""
    return kernel(average=lambda s, y: s.exp() @ y / (s.exp().sum(-1) + 1e-8))(x_query, x_key, y_key, bandwidth)


@mistake
def small_number_in_the_divisor(x_query, x_key, y_key, bandwidth):
    """A small number is added to the divisor. It pulls estimates towards 0, a little near the keys and all the way
    far from them."""
    return kernel(average=lambda s, y: s.exp() @ y / (s.exp().sum(-1) + 1e-6))(x_query, x_key, y_key, bandwidth)


@mistake
def mean_far_away(x_query, x_key, y_key, bandwidth):
    """Far from all keys the result is the plain mean of the known values, as if all kernels were equal there. They are
    all small, but their ratios are not 1, so the nearest keys count most."""
    return kernel(average=lambda s, y: torch.where(s.exp().sum(-1) > 0, ratio(s, y), y.mean()))(
        x_query, x_key, y_key, bandwidth
    )


@mistake
def bounded_scores(x_query, x_key, y_key, bandwidth):
    """The exponents are clipped, so all keys beyond a certain distance count alike. Their kernels are small, but the
    ratios are not 1, so the nearest keys count most."""
    return kernel(average=lambda s, y: softmax(s.clamp(min=-50.0)) @ y)(x_query, x_key, y_key, bandwidth)


@mistake
def larger_number_in_the_kernel(x_query, x_key, y_key, bandwidth):
    """A number such as 1e-8 is added to every kernel. Near the keys it costs digits that float64 has, and far from them
    it is all that is left, so all keys count alike."""
    return kernel(average=lambda s, y: (s.exp() + 1e-8) @ y / (s.exp() + 1e-8).sum(-1))(
        x_query, x_key, y_key, bandwidth
    )


@mistake
def small_number_in_the_kernel(x_query, x_key, y_key, bandwidth):
    """A small number is added to every kernel, so far from all keys they look equal. Only their ratios matter, however
    small they are."""
    return kernel(average=lambda s, y: (s.exp() + 1e-12) @ y / (s.exp() + 1e-12).sum(-1))(
        x_query, x_key, y_key, bandwidth
    )


@mistake
def largest_of_all(x_query, x_key, y_key, bandwidth):
    """The largest score of all queries is subtracted. For a query that is further away than the others, all kernels are
    still 0: each query may have its own constant."""
    return kernel(average=lambda s, y: (s - s.max()).exp() @ y / (s - s.max()).exp().sum(-1))(
        x_query, x_key, y_key, bandwidth
    )


@mistake
def mean_taken_off(x_query, x_key, y_key, bandwidth):
    """The mean score of each query is subtracted. Where the distances differ greatly, the exponentials then
    overflow."""
    return kernel(
        average=lambda s, y: (s - s.mean(-1, keepdim=True)).exp() @ y / (s - s.mean(-1, keepdim=True)).exp().sum(-1)
    )(x_query, x_key, y_key, bandwidth)


@mistake
def shift_over_queries(x_query, x_key, y_key, bandwidth):
    """The largest score is taken over the queries. The number subtracted cancels only if it is the same for all keys of
    one query."""
    return kernel(average=lambda s, y: (s - s.amax(0)).exp() @ y / (s - s.amax(0)).exp().sum(-1))(
        x_query, x_key, y_key, bandwidth
    )
