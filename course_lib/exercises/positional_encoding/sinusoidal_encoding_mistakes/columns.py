"""Mistakes in `sinusoidal_encoding`: order and kind of the columns."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.positional_encoding.angles import angle_of, with_exponent
from course_lib.exercises.positional_encoding.sinusoidal_encoding_mistakes.parts import table

mistake = Mistakes()


def _by_column(exponent):
    """An angle for each column j instead of one for each pair."""

    def encoding(length, d_model):
        column = torch.arange(d_model)
        angle = torch.arange(length, dtype=torch.float64)[:, None] / 10_000 ** exponent(column.double(), d_model)
        return torch.where(column % 2 == 0, angle.sin(), angle.cos()).float()

    return encoding


@mistake
def halves(length, d_model):
    """All sines are in the left half and all cosines in the right. Here they alternate: which columns belong to angle
    i?"""
    return table(join=lambda sin, cos, width: torch.cat((sin, cos), dim=-1)[:, :width].float())(length, d_model)


@mistake
def cosine_first(length, d_model):
    """Sine and cosine are exchanged: the even columns should be the sines. What should position 0 look like?"""
    return table(first=torch.cos, second=torch.sin)(length, d_model)


@mistake
def sines_only(length, d_model):
    """Every column is a sine. A pair needs sine and cosine of the angle; otherwise moving by an offset is not a
    rotation."""
    return table(second=torch.sin)(length, d_model)


@mistake
def cosines_only(length, d_model):
    """Every column is a cosine. A pair needs sine and cosine of the angle; otherwise moving by an offset is not a
    rotation."""
    return table(first=torch.cos)(length, d_model)


@mistake
def plain_angles(length, d_model):
    """The angles themselves are returned, without sine and cosine, so the numbers grow with the position."""
    return table(first=torch.clone, second=torch.clone)(length, d_model)


@mistake
def sine_and_cosine_by_row(length, d_model):
    """Sines and cosines alternate from row to row: even positions are sines, odd ones cosines. They should alternate
    from column to column; which axis does your slice step through?"""
    column = torch.arange(d_model, dtype=torch.float64) // 2 * 2
    position = torch.arange(length)[:, None]
    angle = position / 10_000 ** (column / d_model)
    return torch.where(position % 2 == 0, angle.sin(), angle.cos()).float()


@mistake
def frequencies_side_by_side(length, d_model):
    """The list of frequencies is repeated as a whole, so neighbouring columns turn at different rates. Which two
    columns share a frequency?"""
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = torch.arange(length)[:, None] / 10_000 ** (torch.cat((two_i, two_i))[:d_model] / d_model)
    return torch.where(torch.arange(d_model) % 2 == 0, angle.sin(), angle.cos()).float()


@mistake
def cosine_first_in_halves(length, d_model):
    """All cosines are in the left half and all sines in the right. Here they alternate, and the sine comes first."""
    return table(join=lambda sin, cos, width: torch.cat((cos, sin), dim=-1)[:, :width].float())(length, d_model)


@mistake
def exponent_i_in_halves(length, d_model):
    """Two things: all sines are left of all cosines, but they should alternate; and the exponent is i over
    d_model, so the frequencies fall half as fast as they should."""
    return table(
        with_exponent(lambda two_i, d: two_i / 2 / d),
        join=lambda sin, cos, width: torch.cat((sin, cos), dim=-1)[:, :width].float(),
    )(length, d_model)


@mistake
def positions_from_one_in_halves(length, d_model):
    """Two things: all sines are left of all cosines, but they should alternate; and the rows start at position
    1."""
    return table(
        lambda position, two_i, d: angle_of(position + 1, two_i, d),
        join=lambda sin, cos, width: torch.cat((sin, cos), dim=-1)[:, :width].float(),
    )(length, d_model)


@mistake
def one_frequency_a_column(length, d_model):
    """Every column has its own frequency: the column number is used in the exponent, odd numbers included.
    Sine and cosine of a pair share one angle; which i belongs to column 3?"""
    return _by_column(lambda j, d: j / d)(length, d_model)


@mistake
def column_doubled(length, d_model):
    """The exponent of column j is 2j / d_model: 2i *is* the number of the column already, so it is doubled once too
    many times, and sine and cosine of a pair have different angles."""
    return _by_column(lambda j, d: 2 * j / d)(length, d_model)


@mistake
def cosine_of_next_pair(length, d_model):
    """The cosine takes the frequency of the pair after its own: column 2i + 1 has the 2i of its neighbour in the
    exponent, not 2i + 2."""
    return _by_column(lambda j, d: (j + j % 2) / d)(length, d_model)


@mistake
def cosine_exponent_doubled(length, d_model):
    """The sines are right. For the cosines the column number, 2i + 1, is used instead of i. Both columns of a pair use
    the same angle."""
    return _by_column(lambda j, d: j * (1 + j % 2) / d)(length, d_model)
