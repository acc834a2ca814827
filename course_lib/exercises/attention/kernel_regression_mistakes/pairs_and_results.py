"""Mistakes in `kernel_regression`: which query meets which key, and what is returned."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.kernel_regression import kernel_regression
from course_lib.exercises.attention.kernel_regression_mistakes.parts import kernel
from course_lib.exercises.attention.softmax import softmax

mistake = Mistakes()


@mistake
def keys_averaged(x_query, x_key, y_key, bandwidth):
    """The keys themselves are averaged. The weights come from the x's, but they average the y's."""
    return kernel_regression(x_query, x_key, x_key, bandwidth)


@mistake
def sorted_without_values(x_query, x_key, y_key, bandwidth):
    """The keys are sorted, and their values left in the old order. Nothing here needs an order; each key has to stay
    with its value."""
    return kernel_regression(x_query, x_key.sort().values, y_key, bandwidth)


@mistake
def distance_to_values(x_query, x_key, y_key, bandwidth):
    """Distances are taken between queries and *values*. The x's of the known points determine how near they are."""
    return kernel_regression(x_query, y_key, y_key, bandwidth)


@mistake
def pairs_missing(x_query, x_key, y_key, bandwidth):
    """The i-th query is compared with the i-th key only. Every query has to meet every key, which gives a table (n,
    m)."""
    return softmax(-((x_query - x_key) ** 2) / (2 * bandwidth**2)) @ y_key


@mistake
def pairs_missing_entry_by_entry(x_query, x_key, y_key, bandwidth):
    """The i-th query is combined only with the i-th key and the i-th value, entry by entry. Every query has to meet
    every key, which gives a table (n, m)."""
    return softmax(-((x_query - x_key) ** 2) / (2 * bandwidth**2)) * y_key


@mistake
def keys_by_queries(x_query, x_key, y_key, bandwidth):
    """The table has one row per key and one column per query. Estimates are wanted at the queries, so it should have
    one row per query."""
    return softmax(-((x_query - x_key.unsqueeze(-1)) ** 2) / (2 * bandwidth**2)) @ y_key


@mistake
def column(x_query, x_key, y_key, bandwidth):
    """The numbers are right, but are returned as a column (n, 1). A vector of m values was turned into a matrix; the
    result should be a vector again."""
    return kernel(average=lambda s, y: softmax(s) @ y.unsqueeze(-1))(x_query, x_key, y_key, bandwidth)


@mistake
def squeezed(x_query, x_key, y_key, bandwidth):
    """`squeeze()` without an axis removes *every* axis of length 1: with a single query no axis is left. State which
    axis is meant."""
    return kernel(average=lambda s, y: (softmax(s) @ y.unsqueeze(-1)).squeeze())(x_query, x_key, y_key, bandwidth)


@mistake
def not_summed(x_query, x_key, y_key, bandwidth):
    """The values are multiplied by their weights, but the products are not summed over the keys."""
    return kernel(average=lambda s, y: softmax(s) * y)(x_query, x_key, y_key, bandwidth)


@mistake
def mean_of_weighted(x_query, x_key, y_key, bandwidth):
    """The weighted values are averaged once more, over the number of keys. The weights sum to one already."""
    return kernel(average=lambda s, y: (softmax(s) * y).mean(-1))(x_query, x_key, y_key, bandwidth)


@mistake
def weights_returned(x_query, x_key, y_key, bandwidth):
    """The weights are returned. The last step is missing: what do they average?"""
    return kernel(average=lambda s, y: softmax(s))(x_query, x_key, y_key, bandwidth)


@mistake
def pair_returned(x_query, x_key, y_key, bandwidth):
    """The estimates are returned together with the weights, as in `attend`. The contract asks for the estimates
    alone."""
    return kernel(average=lambda s, y: (softmax(s) @ y, softmax(s)))(x_query, x_key, y_key, bandwidth)


@mistake
def bandwidth_in_float32(x_query, x_key, y_key, bandwidth):
    """The bandwidth is turned into a float32 tensor, so float64 input loses half of its digits. A Python number takes
    the dtype of the tensor that it is combined with."""
    return kernel_regression(x_query, x_key, y_key, torch.tensor(bandwidth, dtype=torch.float32))


@mistake
def float32_inside(x_query, x_key, y_key, bandwidth):
    """Somewhere inside, the numbers become float32, so float64 input loses half of its digits."""
    return kernel_regression(x_query.float(), x_key.float(), y_key.float(), bandwidth).to(x_query.dtype)


@mistake
def caller_changed(x_query, x_key, y_key, bandwidth):
    """The estimates are right, but the caller's tensors are changed: a method whose name ends in `_` works in place."""
    return softmax(-((x_query.unsqueeze_(-1) - x_key) ** 2) / (2 * bandwidth**2)) @ y_key
