"""Mistakes in `apply_rotary`: axes, dtypes, gradients and changes in place."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.positional_encoding.apply_rotary import apply_rotary
from course_lib.exercises.positional_encoding.apply_rotary_mistakes.parts import (
    beside,
    neighbours,
    rotary,
    rotary_angle,
    turned_pair,
)

mistake = Mistakes()


@mistake
def length_axis_first(x, positions, base=10000.0):
    """The angles have an extra axis between length and features, so positions are lined up with the batch.
    Counted from the right, where are length and features of x?"""
    return rotary(lambda position, two_i, d, base: rotary_angle(position, two_i, d, base)[:, None])(x, positions, base)


@mistake
def one_batch_dimension_only(x, positions, base=10000.0):
    """The shape of x is unpacked into three names, which works only with one batch dimension. Count axes from the
    right."""
    _batch, _length, _d = x.shape
    return apply_rotary(x, positions, base)


@mistake
def two_batch_dimensions_only(x, positions, base=10000.0):
    """The shape of x is unpacked into four names, as for batch and heads. There may be fewer or none. Count axes
    from the right."""
    _batch, _heads, _length, _d = x.shape
    return apply_rotary(x, positions, base)


@mistake
def no_batch_dimension_only(x, positions, base=10000.0):
    """The shape of x is unpacked into two names, which leaves no room for a batch. Count axes from the right."""
    _length, _d = x.shape
    return apply_rotary(x, positions, base)


@mistake
def always_one_batch_dimension(x, positions, base=10000.0):
    """The result has an extra batch axis of length one."""
    turned = apply_rotary(x, positions, base)
    return turned if turned.dim() > 2 else turned[None]


@mistake
def always_two_batch_dimensions(x, positions, base=10000.0):
    """The result has extra batch axes of length one: the angles are given axes for batch and heads. They broadcast from
    the right without these."""
    turned = apply_rotary(x, positions, base)
    return turned[(None,) * max(0, 4 - x.dim())]


@mistake
def pairs_not_flattened(x, positions, base=10000.0):
    """The pairs keep an axis of their own, (..., L, d / 2, 2). The result has the shape of x."""
    return apply_rotary(x, positions, base).unflatten(-1, (-1, 2))


@mistake
def float32_angles(x, positions, base=10000.0):
    """The angles are float32 even if x is float64, so the result is only as exact as float32. A new tensor has the
    default dtype unless you state another."""
    d = x.shape[-1]
    angle = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    return beside(*turned_pair(*neighbours(x), angle.cos(), angle.sin()))


@mistake
def float32_exponential(x, positions, base=10000.0):
    """The rates are an exponential in float32 even if x is float64, so the result is only as exact as float32. Which
    dtype does the tensor in the exponent have?"""
    d = x.shape[-1]
    angle = positions[:, None] * torch.exp(torch.arange(0, d, 2).float() * (-math.log(base) / d))
    return beside(*turned_pair(*neighbours(x), angle.cos(), angle.sin()))


@mistake
def float32_throughout(x, positions, base=10000.0):
    """x and the angles are float32 in the computation, and the result is converted back to the dtype of x: the extra
    digits of float64 are lost."""
    d = x.shape[-1]
    angle = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    return beside(*turned_pair(*neighbours(x.float()), angle.cos(), angle.sin())).to(x.dtype)


@mistake
def complex64_throughout(x, positions, base=10000.0):
    """The rotation uses complex numbers of two float32, whatever x is, so the result is only as exact as float32. There
    are also complex numbers of two float64."""
    d = x.shape[-1]
    angle = torch.outer(positions.float(), 1.0 / base ** (torch.arange(0, d, 2).float() / d))
    points = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(points * torch.polar(torch.ones_like(angle), angle)).flatten(-2).to(x.dtype)


@mistake
def float32_in_between(x, positions, base=10000.0):
    """x is converted to float32 for the computation and then back: the extra digits of float64 are lost."""
    return apply_rotary(x.float(), positions, base).to(x.dtype)


@mistake
def float32_result(x, positions, base=10000.0):
    """The result is float32 whatever x is. The dtype of x should be kept."""
    return apply_rotary(x, positions, base).float()


@mistake
def float64_result(x, positions, base=10000.0):
    """The result is float64 whatever x is: angles in float64 are fine, but cosine and sine have to be converted to the
    dtype of x before they are multiplied by it."""
    return apply_rotary(x.double(), positions, base)


@mistake
def detached(x, positions, base=10000.0):
    """The values are right, but no gradient flows back to x: it is detached on the way."""
    return apply_rotary(x.detach(), positions, base)


@mistake
def numpy_result(x, positions, base=10000.0):
    """A NumPy array is returned. It has to be a tensor; gradients do not flow through NumPy."""
    return apply_rotary(x, positions, base).numpy()


@mistake
def in_place(x, positions, base=10000.0):
    """The result is right, but x itself was changed, which belongs to the caller. A slice is a view: writing to it
    changes x."""
    x[...] = apply_rotary(x.clone(), positions, base)
    return x
