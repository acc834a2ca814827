"""Mistakes in `sinusoidal_encoding`: exponents and the base."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.positional_encoding.angles import angle_of, with_exponent
from course_lib.exercises.positional_encoding.sinusoidal_encoding_mistakes.parts import table

mistake = Mistakes()


@mistake
def exponent_i(length, d_model):
    """The frequencies fall half as fast as they should: the exponent is i / d_model (or the base is 100).
    Over all pairs the exponent of 10,000 should run from 0 to nearly 1."""
    return table(with_exponent(lambda two_i, d: two_i / 2 / d))(length, d_model)


@mistake
def exponent_doubled(length, d_model):
    """The frequencies fall twice as fast as they should: a number that steps by 2 already is doubled again, or
    divided by half the width. The exponent should run from 0 to nearly 1."""
    return table(with_exponent(lambda two_i, d: 2 * two_i / d))(length, d_model)


@mistake
def exponent_sign(length, d_model):
    """The frequencies rise from pair to pair: the position is multiplied by the power, or the exponent has the wrong
    sign. The first pair is the fastest."""
    return table(lambda position, two_i, d: position * 10_000 ** (two_i / d))(length, d_model)


@mistake
def same_frequency(length, d_model):
    """All pairs turn at the same rate. Is there an integer division in the exponent, which gives 0, or is the
    exponent missing?"""
    return table(lambda position, two_i, d: position + 0 * two_i)(length, d_model)


@mistake
def frequencies_reversed(length, d_model):
    """The frequencies are in the opposite order: the slowest comes first."""
    return table(lambda position, two_i, d: angle_of(position, two_i.flip(0), d))(length, d_model)


@mistake
def pairs_from_one(length, d_model):
    """The pairs are counted from 1, so even the first turns more slowly than one radian per position. By which power
    should the first pair be divided?"""
    return table(with_exponent(lambda two_i, d: (two_i + 2) / d))(length, d_model)


@mistake
def last_exponent_is_one(length, d_model):
    """The frequencies are spaced so that the last is exactly 1/10000, as in some libraries. In the formula the exponent
    is 2i over the whole width, which never quite reaches 1."""
    return table(with_exponent(lambda two_i, d: two_i / 2 / max(len(two_i) - 1, 1)))(length, d_model)


@mistake
def last_exponent_is_one_in_halves(length, d_model):
    """This is the layout of some libraries: sines on the left, cosines on the right, and frequencies that end exactly
    at 1/10000. The formula of the paper has pairs side by side, and 2i over d_model in the exponent."""
    return table(
        with_exponent(lambda two_i, d: two_i / 2 / max(len(two_i) - 1, 1)),
        join=lambda sin, cos, width: torch.cat((sin, cos), dim=-1)[:, :width].float(),
    )(length, d_model)


@mistake
def power_of_the_quotient(length, d_model):
    """The power is taken of pos / 10000 as a whole. It belongs to the 10000 alone; a bracket is in the wrong place."""
    return table(lambda position, two_i, d: (position / 10_000) ** (two_i / d))(length, d_model)


@mistake
def product_instead_of_power(length, d_model):
    """10000 is multiplied by 2i / d_model, so the first pair divides by zero. It should be raised to that power."""
    return table(lambda position, two_i, d: position / (10_000 * two_i / d))(length, d_model)


@mistake
def power_before_division(length, d_model):
    """`**` binds more tightly than `/`: 10000 is raised to 2i, and the power is divided by d_model. What belongs in
    the exponent needs brackets."""
    return table(lambda position, two_i, d: position * d / 10_000.0**two_i)(length, d_model)


@mistake
def power_of_two_only(length, d_model):
    """`**` binds more tightly than `*`: 10000 is squared, and the result is multiplied by i / d_model. What belongs in
    the exponent needs brackets."""
    return table(lambda position, two_i, d: position / (10_000.0**2 * two_i / 2 / d))(length, d_model)


@mistake
def power_of_two_factors_after(length, d_model):
    """Without brackets the line is read from left to right: the position is divided by 10000², then multiplied by i
    and divided by d_model. What belongs in the exponent needs brackets."""
    return table(lambda position, two_i, d: position / 10_000.0**2 * two_i / 2 / d)(length, d_model)


@mistake
def power_before_division_by_width(length, d_model):
    """Without brackets the line is read from left to right: 10000 is raised to 2i, and the angle is finally divided by
    d_model. What belongs in the exponent needs brackets."""
    return table(lambda position, two_i, d: position / 10_000.0**two_i / d)(length, d_model)


@mistake
def floor_of_the_angle(length, d_model):
    """The angles are rounded down to whole numbers, so distant pairs do not turn: `//` rounds down."""
    return table(lambda position, two_i, d: angle_of(position, two_i, d).floor())(length, d_model)


@mistake
def base_1000(length, d_model):
    """The base is 1,000; the paper has 10,000."""
    return table(lambda position, two_i, d: position / 1_000 ** (two_i / d))(length, d_model)


@mistake
def base_100000(length, d_model):
    """The base is 100,000; the paper has 10,000. Count the zeros."""
    return table(lambda position, two_i, d: position / 100_000 ** (two_i / d))(length, d_model)


@mistake
def base_e(length, d_model):
    """The frequencies fall by powers of e: 10,000 is not used. A power of 10,000 written with `exp`
    needs a factor in its exponent."""
    return table(lambda position, two_i, d: position * torch.exp(-two_i / d))(length, d_model)


@mistake
def log_missing(length, d_model):
    """10,000 itself is the exponent of `exp`, so all frequencies but the first are zero. e to which power is
    10,000?"""
    return table(lambda position, two_i, d: position * torch.exp(-two_i * 10_000.0 / d))(length, d_model)


@mistake
def log_to_base_10(length, d_model):
    """The logarithm has base 10, but the exponential has base e, so they are not inverse to each other."""
    return table(lambda position, two_i, d: position * torch.exp(-two_i * 4.0 / d))(length, d_model)
