"""The angle of a position and a pair of columns, and wrong exponents of its frequency."""

from __future__ import annotations

__all__ = ["angle_of", "with_exponent"]


def angle_of(position, two_i, d_model):
    return position / 10_000 ** (two_i / d_model)


def with_exponent(exponent):
    """Angles with another exponent of 10,000."""
    return lambda position, two_i, d_model: position / 10_000 ** exponent(two_i, d_model)
