"""Mistakes in `apply_rotary`: which features are partners."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.positional_encoding.apply_rotary_mistakes.parts import (
    behind,
    beside,
    neighbours,
    rotary,
    split,
    turned_pair,
)

mistake = Mistakes()


def _by_feature(angle, partner):
    """x · cos + partner(x) · sin with an angle for each feature."""

    def rotary(x, positions, base=10000.0):
        a = angle(positions[:, None].double(), torch.arange(x.shape[-1]).double(), x.shape[-1], base)
        return x * a.cos().to(x.dtype) + partner(x) * a.sin().to(x.dtype)

    return rotary


def _partner_beside(x):
    even, odd = neighbours(x)
    return beside(-odd, even)


def _partner_half_way(x):
    first, second = split(x)
    return behind(-second, first)


def _pairwise(position, j, d, base):
    return position * base ** (-(j - j % 2) / d)


def _side_by_side(position, j, d, base):
    return position * base ** (-2 * (j % (d // 2)) / d)


@mistake
def partners_half_way(x, positions, base=10000.0):
    """Feature i is rotated with feature i + d/2, as in some libraries. Here the partners are neighbours."""
    return rotary(split=split, join=behind)(x, positions, base)


@mistake
def partners_half_way_backwards(x, positions, base=10000.0):
    """Feature i is rotated with feature i + d/2, and clockwise. Here the partners are neighbours, and the other sine
    has the minus."""
    return rotary(split=split, join=behind, turn=lambda even, odd, cos, sin: turned_pair(even, odd, cos, -sin))(
        x, positions, base
    )


@mistake
def split_in_halves_joined_by_turns(x, positions, base=10000.0):
    """The partners are taken from the two halves and then put side by side, so the features change their order. At
    position 0 nothing should change."""
    return rotary(split=split)(x, positions, base)


@mistake
def joined_in_halves(x, positions, base=10000.0):
    """The rotated features are returned in another order: all first partners, then all second ones. At position 0
    nothing should change."""
    return rotary(join=behind)(x, positions, base)


@mistake
def partners_exchanged(x, positions, base=10000.0):
    """The two partners of each pair are returned exchanged. At position 0 nothing should change."""
    return rotary(join=lambda first, second: beside(second, first))(x, positions, base)


@mistake
def partners_half_way_angles_of_neighbours(x, positions, base=10000.0):
    """The angles belong to neighbours, but the partners are taken d/2 apart: two conventions are mixed. Here partners
    are neighbours."""
    return _by_feature(_pairwise, _partner_half_way)(x, positions, base)


@mistake
def angles_of_halves(x, positions, base=10000.0):
    """The list of angles is repeated as a whole, while the partners are neighbours, so the two features of a pair turn
    by different angles. Two conventions are mixed."""
    return _by_feature(_side_by_side, _partner_beside)(x, positions, base)


@mistake
def one_angle_a_feature(x, positions, base=10000.0):
    """Every feature has an angle of its own. The two partners of a pair turn by the same angle; which i belongs to
    feature 3?"""
    return _by_feature(lambda position, j, d, base: position * base ** (-j / d), _partner_beside)(x, positions, base)


@mistake
def one_angle_a_feature_doubled(x, positions, base=10000.0):
    """The exponent of feature j is 2j / d: 2i *is* the number of the feature already, and both partners of a pair
    turn by the same angle."""
    return _by_feature(lambda position, j, d, base: position * base ** (-2 * j / d), _partner_beside)(
        x, positions, base
    )


@mistake
def no_partner(x, positions, base=10000.0):
    """Each feature is multiplied by cosine plus sine of its angle, without its partner. A rotation combines the two."""
    return _by_feature(_pairwise, lambda x: x)(x, positions, base)


@mistake
def partners_shifted_by_one(x, positions, base=10000.0):
    """The partner of every feature is its neighbour on one side. Pairs do not overlap: features 0 and 1, then 2 and
    3."""
    return _by_feature(_pairwise, lambda x: -x.roll(-1, -1))(x, positions, base)
