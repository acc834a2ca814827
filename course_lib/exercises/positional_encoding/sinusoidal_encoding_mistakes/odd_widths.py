"""Mistakes in `sinusoidal_encoding`: odd widths."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.positional_encoding.angles import with_exponent
from course_lib.exercises.positional_encoding.sinusoidal_encoding import sinusoidal_encoding
from course_lib.exercises.positional_encoding.sinusoidal_encoding_mistakes.parts import table

mistake = Mistakes()


def _for_odd(change):
    """Right for an even d_model; `change(length, d_model)` is computed for an odd one."""
    return lambda length, d_model: change(length, d_model) if d_model % 2 else sinusoidal_encoding(length, d_model)


def _assigned(angle, length, d_model):
    table = torch.zeros(length, d_model)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()
    return table


def _angles(length, two_i, d_model):
    return torch.arange(length)[:, None] / 10_000 ** (two_i / d_model)


def _whole_pairs(length, d_model):
    angle = _angles(length, torch.arange(0, d_model, 2), d_model)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)


@mistake
def odd_one_cosine_too_many(length, d_model):
    """An odd width causes an error: it has one cosine column fewer than sine columns, but gets as many values for both.
    How many angles do the cosines need?"""
    return _assigned(_angles(length, torch.arange(0, d_model, 2), d_model), length, d_model)


@mistake(by=_for_odd)
def odd_one_angle_too_few(length, d_model):
    """An odd width fails: there are angles only for complete pairs, so the last sine has none. How many
    columns are sines when d_model is 5?"""
    return _assigned(_angles(length, 2 * torch.arange(d_model // 2), d_model), length, d_model)


@mistake
def even_one_cosine_too_few(length, d_model):
    """The last angle is left out of the cosines for an even width as well. Only an odd width has one cosine fewer than
    sines."""
    angle = _angles(length, torch.arange(0, d_model, 2), d_model)
    table = torch.zeros(length, d_model)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle[:, :-1].cos()
    return table


@mistake
def odd_reshape(length, d_model):
    """An odd width causes an error in the reshape: there is a cosine for every sine, so each row has one number too
    many."""
    return _for_odd(lambda length, d_model: _whole_pairs(length, d_model).reshape(length, d_model))(length, d_model)


@mistake
def odd_one_column_too_many(length, d_model):
    """An odd width gives one column too many: the last sine should have no cosine."""
    return _for_odd(_whole_pairs)(length, d_model)


@mistake
def odd_one_column_missing(length, d_model):
    """An odd width gives one column too few: d_model // 2 counts only complete pairs, and one sine remains."""
    return _for_odd(lambda length, d_model: sinusoidal_encoding(length, d_model)[:, :-1])(length, d_model)


@mistake(by=_for_odd)
def odd_index_error(length, d_model):
    """An odd width causes an error: the loop writes a cosine after every sine, but there is no column for the last
    one."""
    table = torch.zeros(length, d_model)
    for column in range(0, d_model, 2):
        angle = torch.arange(length) / 10_000 ** (column / d_model)
        table[:, column] = angle.sin()
        table[:, column + 1] = angle.cos()
    return table


@mistake(by=_for_odd)
def odd_last_column_zero(length, d_model):
    """For an odd width the last column stays zero: it belongs to a sine whose cosine is left out."""
    table = sinusoidal_encoding(length, d_model)
    table[:, -1] = 0
    return table


@mistake
def odd_ends_on_cosine(length, d_model):
    """For an odd width the last column is a cosine. Sines and cosines alternate from the first column on, so what is
    column 4?"""
    return _for_odd(lambda length, d_model: _whole_pairs(length, d_model)[:, [*range(d_model - 1), d_model]])(
        length, d_model
    )


@mistake(by=_for_odd)
def odd_refused(length, d_model):
    """An odd width is rejected. It should work too: the last column is a sine, without a cosine."""
    raise ValueError("d_model must be even")


@mistake(by=_for_odd)
def odd_asserted(length, d_model):
    """An `assert` rejects an odd width. It should work too: the last column is a sine, without a cosine."""
    assert d_model % 2 == 0


@mistake
def odd_width_rounded_up(length, d_model):
    """For an odd width the exponents are those of the next even one: the table is computed with one more column, which
    is then cut off. That is fine for the columns, but the exponent needs the original d_model."""
    return _for_odd(lambda length, d_model: sinusoidal_encoding(length, d_model + 1)[:, :d_model])(length, d_model)


@mistake
def odd_width_rounded_down(length, d_model):
    """For an odd width the exponents are those of the even one below: i over d_model // 2 equals 2i over d_model only
    for even widths."""
    return _for_odd(table(with_exponent(lambda two_i, d: two_i / 2 / (d // 2))))(length, d_model)
