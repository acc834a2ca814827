"""Mistakes in `layer_norm`: gain and bias, axes, and what is changed."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.transformer.layer_norm_mistakes.parts import mean, norm
from course_lib.transformer import layer_norm

mistake = Mistakes()


def _over(*dims):
    """Layer norm over other axes."""
    return norm(centre=lambda x: x.mean(dims, keepdim=True), power=lambda x: x.var(dims, keepdim=True, correction=0))


@mistake
def gain_and_bias_ignored(x, gain, bias, eps=1e-5):
    """gain and bias are not used. The network needs them to undo the norm where that helps."""
    return norm(apply=lambda y, gain, bias: y)(x, gain, bias, eps)


@mistake
def gain_ignored(x, gain, bias, eps=1e-5):
    """gain is not used."""
    return norm(apply=lambda y, gain, bias: y + bias)(x, gain, bias, eps)


@mistake
def bias_ignored(x, gain, bias, eps=1e-5):
    """bias is not used."""
    return norm(apply=lambda y, gain, bias: y * gain)(x, gain, bias, eps)


@mistake
def gain_and_bias_exchanged(x, gain, bias, eps=1e-5):
    """gain is added and bias is multiplied: their roles are exchanged."""
    return norm(apply=lambda y, gain, bias: y * bias + gain)(x, gain, bias, eps)


@mistake
def bias_scaled(x, gain, bias, eps=1e-5):
    """The bias is added before the gain, so it is multiplied by it."""
    return norm(apply=lambda y, gain, bias: (y + bias) * gain)(x, gain, bias, eps)


@mistake
def gain_plus_one(x, gain, bias, eps=1e-5):
    """The result is multiplied by 1 + gain. Some models store their gain that way; here gain = 1 means no change."""
    return norm(apply=lambda y, gain, bias: y * (1 + gain) + bias)(x, gain, bias, eps)


@mistake
def divided_by_gain(x, gain, bias, eps=1e-5):
    """The result is divided by gain instead of multiplied by it."""
    return norm(apply=lambda y, gain, bias: y / gain + bias)(x, gain, bias, eps)


@mistake
def gain_and_bias_first(x, gain, bias, eps=1e-5):
    """gain and bias are applied before the norm, which partly undoes them. They belong after it."""
    return layer_norm(x * gain + bias, torch.ones_like(gain), torch.zeros_like(bias), eps)


@mistake
def over_first_axis(x, gain, bias, eps=1e-5):
    """Mean and variance run over the first axis. Each vector has its own, over its features: the last axis."""
    return _over(0)(x, gain, bias, eps)


@mistake
def over_axis_1(x, gain, bias, eps=1e-5):
    """Mean and variance run over axis 1, counted from the left. That is the axis of the features only if there are two
    axes; count from the right."""
    return _over(1)(x, gain, bias, eps)


@mistake
def over_axis_2(x, gain, bias, eps=1e-5):
    """Mean and variance run over axis 2, counted from the left. That is the axis of the features only if there are
    three axes; count from the right."""
    return _over(2)(x, gain, bias, eps)


@mistake
def over_positions(x, gain, bias, eps=1e-5):
    """Mean and variance run over the last axis but one, the positions. A position's norm must not depend on the
    others."""
    return _over(-2)(x, gain, bias, eps)


@mistake
def over_last_two(x, gain, bias, eps=1e-5):
    """Mean and variance run over the last two axes together. Each position has its own."""
    return _over(-2, -1)(x, gain, bias, eps)


@mistake
def over_last_two_if_there_are_two(x, gain, bias, eps=1e-5):
    """Mean and variance run over the last two axes together where there are two. Each position has its own."""
    return (_over(-2, -1) if x.dim() > 1 else layer_norm)(x, gain, bias, eps)


@mistake
def over_everything(x, gain, bias, eps=1e-5):
    """A single mean and variance are computed over all numbers. Each vector along the last axis has its own."""
    return norm(centre=lambda x: x.mean(), power=lambda x: x.var(correction=0))(x, gain, bias, eps)


@mistake
def over_everything_unbiased(x, gain, bias, eps=1e-5):
    """A single mean and variance are computed over all numbers, and the variance is divided by one less than their
    number. Each vector along the last axis has its own, of d features, divided by d."""
    return norm(centre=lambda x: x.mean(), power=lambda x: x.var())(x, gain, bias, eps)


@mistake
def spread_of_everything(x, gain, bias, eps=1e-5):
    """Each vector has its own mean, but a single variance is computed over all numbers."""
    return norm(power=lambda x: (x - mean(x)).square().mean())(x, gain, bias, eps)


@mistake
def over_all_but_first(x, gain, bias, eps=1e-5):
    """Mean and variance run over all axes but the first, as for an image. Here each vector along the last axis is
    normalised separately."""
    return norm(centre=lambda x: _flat_mean(x, x), power=lambda x: _flat_mean(x, (x - _flat_mean(x, x)).square()))(
        x, gain, bias, eps
    )


@mistake
def axis_dropped(x, gain, bias, eps=1e-5):
    """A mean or a variance has lost its axis, so it lines up with the features instead of the positions. One
    argument keeps the axis, with length one."""
    return norm(centre=lambda x: x.mean(-1), power=lambda x: x.var(-1, correction=0))(x, gain, bias, eps)


@mistake
def gain_as_column(x, gain, bias, eps=1e-5):
    """gain and bias have been given an extra axis, so they line up with the positions. There is one of each per
    feature, and the features are the last axis already."""
    return norm(apply=lambda y, gain, bias: y * gain.unsqueeze(-1) + bias.unsqueeze(-1))(x, gain, bias, eps)


@mistake
def statistics_detached(x, gain, bias, eps=1e-5):
    """The values are right, but mean and variance are detached from the graph. They depend on x, so gradients have to
    flow through them."""
    return norm(centre=lambda x: mean(x).detach(), power=lambda x: x.var(-1, keepdim=True, correction=0).detach())(
        x, gain, bias, eps
    )


@mistake
def variance_detached(x, gain, bias, eps=1e-5):
    """The values are right, but the variance is detached from the graph. It depends on x, so gradients have to flow
    through it."""
    return norm(power=lambda x: x.var(-1, keepdim=True, correction=0).detach())(x, gain, bias, eps)


@mistake
def eps_in_the_numerator(x, gain, bias, eps=1e-5):
    """eps is added to the centred vector, in the numerator. It belongs to the variance, under the root."""
    return (x - mean(x) + eps) / (x.var(-1, keepdim=True, correction=0) + eps).sqrt() * gain + bias


@mistake
def eps_in_and_outside_the_root(x, gain, bias, eps=1e-5):
    """eps is added twice: under the root, and to the root once more. It belongs to the variance alone."""
    return norm(root=lambda variance, eps: (variance + eps).sqrt() + eps)(x, gain, bias, eps)


@mistake
def divided_by_rows(x, gain, bias, eps=1e-5):
    """The sums are divided by the length of the first axis: `len(x)` and `x.shape[0]` count vectors. How many features
    does a vector have?"""
    return norm(
        centre=lambda x: x.sum(-1, keepdim=True) / len(x),
        power=lambda x: (x - x.sum(-1, keepdim=True) / len(x)).square().sum(-1, keepdim=True) / len(x),
    )(x, gain, bias, eps)


@mistake
def min_and_max(x, gain, bias, eps=1e-5):
    """The vector is rescaled to the range from 0 to 1 by its smallest and largest feature. It should have mean 0 and
    variance 1."""
    return (x - x.amin(-1, keepdim=True)) / (x.amax(-1, keepdim=True) - x.amin(-1, keepdim=True) + eps) * gain + bias


@mistake
def root_of_deviation(x, gain, bias, eps=1e-5):
    """The root is taken twice: a standard deviation already contains a root."""
    return norm(root=lambda variance, eps: (variance.sqrt() + eps).sqrt())(x, gain, bias, eps)


@mistake
def variance_squared(x, gain, bias, eps=1e-5):
    """The vector is divided by the square of its variance, or a power has the wrong exponent. What has the same unit
    as x?"""
    return norm(root=lambda variance, eps: (variance + eps) ** 2)(x, gain, bias, eps)


@mistake
def three_axes_unpacked(x, gain, bias, eps=1e-5):
    """The shape of x is unpacked into three names, so only one number of axes works. This function needs only the last
    axis: count from the right."""
    _batch, _length, _d = x.shape
    return layer_norm(x, gain, bias, eps)


@mistake
def two_axes_unpacked(x, gain, bias, eps=1e-5):
    """The shape of x is unpacked into two names, so only one number of axes works. This function needs only the last
    axis: count from the right."""
    _rows, _d = x.shape
    return layer_norm(x, gain, bias, eps)


@mistake
def centred_in_place(x, gain, bias, eps=1e-5):
    """The result is right, but x, which belongs to the caller, is centred in place: `-=` writes to it."""
    x -= mean(x)
    return layer_norm(x, gain, bias, eps)


@mistake
def float32_inside(x, gain, bias, eps=1e-5):
    """The computation is done in float32 whatever the dtype of x is: the extra digits of float64 are lost."""
    return layer_norm(x.float(), gain.float(), bias.float(), eps).to(x.dtype)


def _flat_mean(like, x):
    return x.mean(tuple(range(1, x.dim())) or -1, keepdim=True)
