"""Mistakes in `apply_rotary`: positions, and two mistakes at once."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.positional_encoding.apply_rotary import apply_rotary
from course_lib.exercises.positional_encoding.apply_rotary_mistakes.parts import (
    behind,
    beside,
    neighbours,
    rotary,
    rotary_angle,
    split,
    turned_pair,
)

mistake = Mistakes()


@mistake
def positions_ignored(x, positions, base=10000.0):
    """The rows are numbered 0, 1, 2, …, whatever `positions` is. A single token can have any position."""
    return apply_rotary(x, torch.arange(x.shape[-2]), base)


@mistake
def positions_from_one(x, positions, base=10000.0):
    """Every position is one too large: 1 is added somewhere. Position 0 should leave x as it is."""
    return rotary(lambda position, two_i, d, base: rotary_angle(position + 1, two_i, d, base))(x, positions, base)


@mistake
def positions_from_the_first(x, positions, base=10000.0):
    """Positions are counted from the first one that is given. They are places in the whole sequence, not in this part
    of it."""
    return rotary(lambda position, two_i, d, base: rotary_angle(position - position[0], two_i, d, base))(
        x, positions, base
    )


@mistake
def positions_sorted(x, positions, base=10000.0):
    """The positions are sorted. They belong to the rows of x in the given order."""
    return rotary(lambda position, two_i, d, base: rotary_angle(position.sort(0).values, two_i, d, base))(
        x, positions, base
    )


@mistake
def position_missing(x, positions, base=10000.0):
    """Every row turns by the same angles: the position is not used."""
    return rotary(lambda position, two_i, d, base: rotary_angle(1 + 0 * position, two_i, d, base))(x, positions, base)


@mistake
def positions_are_an_index(x, positions, base=10000.0):
    """The positions are used to pick rows out of a table that is as long as x. They may be larger than its length:
    compute the angles from them."""
    return rotary(
        lambda position, two_i, d, base: rotary_angle(torch.arange(len(position))[:, None], two_i, d, base)[positions]
    )(x, positions, base)


def _from_rows(longest):
    return rotary(
        lambda position, two_i, d, base: rotary_angle(torch.arange(longest)[:, None], two_i, d, base)[
            position[:, 0].long()
        ]
    )


@mistake
def table_of_fixed_length(x, positions, base=10000.0):
    """Angles are looked up in a table of fixed length, and a position is past its end. There is no upper bound:
    compute the angles of the positions that are given."""
    return _from_rows(2048)(x, positions, base)


@mistake
def table_of_ten_thousand(x, positions, base=10000.0):
    """Angles are looked up in a table of some thousand rows, and a position is past its end. There is no upper
    bound: compute the angles of the positions that are given."""
    return _from_rows(10_000)(x, positions, base)


@mistake
def positions_changed(x, positions, base=10000.0):
    """The result is right, but `positions` was changed, which belongs to the caller. Store the results of the
    computation in a new tensor."""
    turned = apply_rotary(x, positions, base)
    positions += 1
    return turned


@mistake
def angle_as_length(x, positions, base=10000.0):
    """The angle is used as the length of a complex number and 1 as its angle: `torch.polar` takes the length first."""
    two_i = torch.arange(0, x.shape[-1], 2, dtype=torch.float64)
    a = rotary_angle(positions[:, None].double(), two_i, x.shape[-1], base)
    return beside(*turned_pair(*neighbours(x), (a * math.cos(1)).to(x.dtype), (a * math.sin(1)).to(x.dtype)))


@mistake
def split_in_halves_and_exponent_i(x, positions, base=10000.0):
    """Two things: feature i is rotated with feature i + d/2, where partners should be neighbours; and i / d is the
    exponent, so the rates fall half as fast as they should."""
    return rotary(lambda position, two_i, d, base: position * base ** (-two_i / 2 / d), split=split, join=behind)(
        x, positions, base
    )


@mistake
def clockwise_and_exponent_i(x, positions, base=10000.0):
    """Two things: the pairs turn clockwise, and i / d is the exponent, so the rates fall half as fast as they
    should."""
    return rotary(
        lambda position, two_i, d, base: position * base ** (-two_i / 2 / d),
        turn=lambda even, odd, cos, sin: turned_pair(even, odd, cos, -sin),
    )(x, positions, base)


@mistake
def clockwise_and_positions_ignored(x, positions, base=10000.0):
    """Two things: the pairs turn clockwise, and the rows are numbered 0, 1, 2, …, whatever `positions` is."""
    return rotary(
        lambda position, two_i, d, base: rotary_angle(torch.arange(len(position))[:, None].double(), two_i, d, base),
        turn=lambda even, odd, cos, sin: turned_pair(even, odd, cos, -sin),
    )(x, positions, base)
