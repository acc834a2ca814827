"""Mistakes in `kernel_regression`: how the weights are normalised, and other kernels."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.kernel_regression_mistakes.parts import kernel, ratio
from course_lib.exercises.attention.softmax import softmax

mistake = Mistakes()


@mistake
def not_normalised(x_query, x_key, y_key, bandwidth):
    """The kernel-weighted values are added up, but not divided by the sum of the kernels. An average needs weights
    that sum to one."""
    return kernel(average=lambda s, y: s.exp() @ y)(x_query, x_key, y_key, bandwidth)


@mistake
def divided_by_number_of_keys(x_query, x_key, y_key, bandwidth):
    """The sum is divided by the number of keys. The weights are not 1 each: divide by the sum of the kernels."""
    return kernel(average=lambda s, y: s.exp() @ y / s.shape[-1])(x_query, x_key, y_key, bandwidth)


@mistake
def density(x_query, x_key, y_key, bandwidth):
    """The kernel has the factor of the normal density and is taken as a weight. That makes its *integral* one; the
    weights of one query have to sum to one."""
    return kernel(average=lambda s, y: s.exp() @ y)(x_query, x_key, y_key, bandwidth) / (
        bandwidth * math.sqrt(2 * math.pi)
    )


@mistake
def density_and_mean(x_query, x_key, y_key, bandwidth):
    """Each kernel is a normal density and the mean over the keys is taken. That estimates how dense the keys are,
    times y; the weights of one query have to sum to one."""
    return kernel(average=lambda s, y: (s.exp() * y).mean(-1))(x_query, x_key, y_key, bandwidth) / (
        bandwidth * math.sqrt(2 * math.pi)
    )


@mistake
def softmax_over_queries(x_query, x_key, y_key, bandwidth):
    """The weights sum to one over the queries. Each query has its own average, over the keys."""
    return kernel(average=lambda s, y: softmax(s, 0) @ y)(x_query, x_key, y_key, bandwidth)


@mistake
def ratio_over_queries(x_query, x_key, y_key, bandwidth):
    """The kernels are divided by their sum over the queries. Each query has its own average, over the keys.
    (And far from all keys the kernels vanish.)"""
    return kernel(average=lambda s, y: (s.exp() / s.exp().sum(0)) @ y)(x_query, x_key, y_key, bandwidth)


@mistake
def divided_by_sum_of_all(x_query, x_key, y_key, bandwidth):
    """The kernels are divided by the sum over all queries *and* keys. Each query has its own average."""
    return kernel(average=lambda s, y: s.exp() @ y / s.exp().sum())(x_query, x_key, y_key, bandwidth)


@mistake
def divided_by_sum_of_all_softmax(x_query, x_key, y_key, bandwidth):
    """One softmax runs over the whole table of queries and keys. Each query has its own average."""
    return kernel(average=lambda s, y: softmax(s.flatten(), 0).view(s.shape) @ y)(x_query, x_key, y_key, bandwidth)


@mistake
def sum_axis_dropped(x_query, x_key, y_key, bandwidth):
    """The sum over the keys has lost its axis before the kernels are divided by it, so it is lined up with the wrong
    one. There is an option that keeps the axis."""
    return kernel(average=lambda s, y: (s.exp() / s.exp().sum(-1)) @ y)(x_query, x_key, y_key, bandwidth)


@mistake
def no_exponential(x_query, x_key, y_key, bandwidth):
    """The scores are divided by their sum: the exponential of the kernel is missing, so the furthest key counts
    most."""
    return kernel(average=lambda s, y: s @ y / s.sum(-1))(x_query, x_key, y_key, bandwidth)


@mistake
def inverse_distance(x_query, x_key, y_key, bandwidth):
    """The weights fall with the inverse of the distance. The kernel is a Gaussian: it falls faster, and has no pole
    at the key."""
    return kernel(lambda d, b: d, lambda d, y: (1 / d.abs()) @ y / (1 / d.abs()).sum(-1))(
        x_query, x_key, y_key, bandwidth
    )


@mistake
def box(x_query, x_key, y_key, bandwidth):
    """All keys within one bandwidth count alike, the others not at all. The kernel is a Gaussian, which falls smoothly
    and never reaches 0."""
    return kernel(lambda d, b: (d.abs() <= b).to(d.dtype), lambda k, y: k @ y / k.sum(-1))(
        x_query, x_key, y_key, bandwidth
    )


@mistake
def parabola(x_query, x_key, y_key, bandwidth):
    """The kernel is a parabola that ends at one bandwidth. The kernel here is a Gaussian, which falls smoothly and
    never reaches 0."""
    return kernel(lambda d, b: (1 - (d / b) ** 2).clamp(min=0), lambda k, y: k @ y / k.sum(-1))(
        x_query, x_key, y_key, bandwidth
    )


@mistake
def nearest_key(x_query, x_key, y_key, bandwidth):
    """Only the nearest key counts. That is the limit of a very narrow kernel; here the others count as well."""
    return kernel(average=lambda s, y: y[s.argmax(-1)])(x_query, x_key, y_key, bandwidth)


@mistake
def nearest_key_far_away(x_query, x_key, y_key, bandwidth):
    """Far from all keys, only the nearest one is used. That is right only where the others are much further away, in
    relation to distance *and* bandwidth; the softmax weights each key correctly."""
    return kernel(average=lambda s, y: torch.where(s.exp().sum(-1) > 0, ratio(s, y), y[s.argmax(-1)]))(
        x_query, x_key, y_key, bandwidth
    )
