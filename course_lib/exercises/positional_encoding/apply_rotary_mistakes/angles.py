"""Mistakes in `apply_rotary`: the angles."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.positional_encoding.apply_rotary_mistakes.parts import rotary, rotary_angle

mistake = Mistakes()


@mistake
def exponent_i(x, positions, base=10000.0):
    """The rates fall half as fast as they should: the exponent is i / d. Over all pairs it should run from 0
    to nearly −1."""
    return rotary(lambda position, two_i, d, base: position * base ** (-two_i / 2 / d))(x, positions, base)


@mistake
def exponent_doubled(x, positions, base=10000.0):
    """The rates fall twice as fast as they should: a number that steps by 2 already is doubled again, or divided by
    half the width."""
    return rotary(lambda position, two_i, d, base: position * base ** (-2 * two_i / d))(x, positions, base)


@mistake
def exponent_sign(x, positions, base=10000.0):
    """The rates rise from pair to pair. The exponent is negative: the first pair is the fastest."""
    return rotary(lambda position, two_i, d, base: position * base ** (two_i / d))(x, positions, base)


@mistake
def same_rate(x, positions, base=10000.0):
    """All pairs turn at the same rate. Is there an integer division in the exponent, which gives 0, or is the
    exponent missing?"""
    return rotary(lambda position, two_i, d, base: position + 0 * two_i)(x, positions, base)


@mistake
def exponent_rounded_down(x, positions, base=10000.0):
    """The exponent is rounded down to −1 for every pair but the first: `//` rounds down."""
    return rotary(lambda position, two_i, d, base: position * base ** (-two_i // d))(x, positions, base)


@mistake
def rates_reversed(x, positions, base=10000.0):
    """The rates are in the opposite order: the slowest pair comes first."""
    return rotary(lambda position, two_i, d, base: rotary_angle(position, two_i.flip(0), d, base))(x, positions, base)


@mistake
def pairs_from_one(x, positions, base=10000.0):
    """The pairs are counted from 1, so even the first turns more slowly than one radian per position."""
    return rotary(lambda position, two_i, d, base: position * base ** (-(two_i + 2) / d))(x, positions, base)


@mistake
def last_exponent_is_one(x, positions, base=10000.0):
    """The rates are spaced so that the last is exactly 1 / base. The exponent is −2i over the whole width."""
    return rotary(lambda position, two_i, d, base: position * base ** (-two_i / max(d - 2, 1)))(x, positions, base)


@mistake
def exponent_over_the_length(x, positions, base=10000.0):
    """2i is divided by the length of the sequence. The divisor is the width d; which axis of x is that?"""
    return rotary(lambda position, two_i, d, base: position * base ** (-two_i / len(position)))(x, positions, base)


@mistake
def base_ignored(x, positions, base=10000.0):
    """The base is 10,000, whatever value is passed."""
    return rotary(lambda position, two_i, d, base: position * 10_000 ** (-two_i / d))(x, positions, base)


@mistake
def base_e(x, positions, base=10000.0):
    """The rates fall by powers of e: the base is not used. A power of the base written with `exp` needs
    a factor in its exponent."""
    return rotary(lambda position, two_i, d, base: position * torch.exp(-two_i / d))(x, positions, base)


@mistake
def power_of_the_product(x, positions, base=10000.0):
    """The power is taken of position / base as a whole. It belongs to the base alone; a bracket is in the wrong
    place."""
    return rotary(lambda position, two_i, d, base: (position / base) ** (two_i / d))(x, positions, base)


@mistake
def power_before_division(x, positions, base=10000.0):
    """`**` binds more tightly than `/`: the base is raised to −2i, and the power is divided by d. What belongs in
    the exponent needs brackets."""
    return rotary(lambda position, two_i, d, base: position * base ** (-two_i) / d)(x, positions, base)


@mistake
def power_before_division_below(x, positions, base=10000.0):
    """`**` binds more tightly than `/`: the base is raised to 2i, the power divided by d, and the position by that.
    What belongs in the exponent needs brackets."""
    return rotary(lambda position, two_i, d, base: position * d / base**two_i)(x, positions, base)


@mistake
def power_of_minus_two_only(x, positions, base=10000.0):
    """`**` binds more tightly than `*`: the base is raised to −2, and the result is multiplied by i / d. What belongs
    in the exponent needs brackets."""
    return rotary(lambda position, two_i, d, base: position * base**-2 * two_i / 2 / d)(x, positions, base)


@mistake
def degrees(x, positions, base=10000.0):
    """The angle is treated as degrees and converted. `torch.sin` and `torch.cos` need radians, which the formula
    gives."""
    return rotary(lambda position, two_i, d, base: rotary_angle(position, two_i, d, base).deg2rad())(x, positions, base)


@mistake
def full_turns(x, positions, base=10000.0):
    """The angle has an extra factor of 2π: the formula gives radians, not turns."""
    return rotary(lambda position, two_i, d, base: 2 * math.pi * rotary_angle(position, two_i, d, base))(
        x, positions, base
    )
