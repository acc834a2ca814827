"""Mistakes in `sinusoidal_encoding`: positions, and shape and kind of the result."""

from __future__ import annotations

import math

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.positional_encoding.angles import angle_of
from course_lib.exercises.positional_encoding.sinusoidal_encoding import sinusoidal_encoding
from course_lib.exercises.positional_encoding.sinusoidal_encoding_mistakes.parts import table

mistake = Mistakes()


def _changed(change):
    """The right encoding, changed afterwards."""
    return lambda length, d_model: change(sinusoidal_encoding(length, d_model))


@mistake
def positions_from_one(length, d_model):
    """The rows start at position 1. The first position is 0, whose code is 0, 1, 0, 1, …"""
    return table(lambda position, two_i, d: angle_of(position + 1, two_i, d))(length, d_model)


@mistake
def positions_as_fractions(length, d_model):
    """Positions are divided by the length, so the code of a position depends on the length of the sequence. Use the
    position itself."""
    return table(lambda position, two_i, d: angle_of(position / len(position), two_i, d))(length, d_model)


@mistake
def positions_reversed(length, d_model):
    """The rows are in the opposite order: the last one is the code of position 0."""
    return _changed(lambda table: table.flip(0))(length, d_model)


@mistake
def full_turns(length, d_model):
    """The angle has an extra factor of 2π: the formula gives radians, not turns."""
    return table(lambda position, two_i, d: 2 * math.pi * angle_of(position, two_i, d))(length, d_model)


@mistake
def degrees(length, d_model):
    """The angle is treated as degrees and converted. `torch.sin` and `torch.cos` need radians, which the formula
    gives."""
    return table(lambda position, two_i, d: angle_of(position, two_i, d).deg2rad())(length, d_model)


@mistake
def row_zero_is_zero(length, d_model):
    """The row of position 0 is set to zeros. Position 0 is a position like the others; padding is masked elsewhere."""
    table = sinusoidal_encoding(length, d_model)
    table[0] = 0
    return table


@mistake
def one_row_too_many(length, d_model):
    """There is one row too many: the positions are 0 to length − 1."""
    return sinusoidal_encoding(length + 1, d_model)


@mistake
def arguments_swapped(length, d_model):
    """Length and width are exchanged: there are d_model positions with `length` features each. Rows are
    positions."""
    return sinusoidal_encoding(d_model, length)


def _from_table(longest):
    return lambda length, d_model: sinusoidal_encoding(longest, d_model)[:length]


for _longest in (5000, 4096, 2048, 1024, 1000, 512, 256, 100):
    mistake.named(
        f"table_of_{_longest}",
        f"A table of {_longest:,} positions is made, whatever `length` says, so longer sequences come back too short. "
        f"How many rows are asked for?",
    )(_from_table(_longest))


@mistake
def batch_axis_in_front(length, d_model):
    """There is a batch axis in front: (1, length, d_model). The result should be the table itself, with two axes."""
    return _changed(lambda table: table[None])(length, d_model)


@mistake
def batch_axis_in_the_middle(length, d_model):
    """There is a batch axis in the middle: (length, 1, d_model). The result should be the table itself, with two
    axes."""
    return _changed(lambda table: table[:, None])(length, d_model)


@mistake
def transposed(length, d_model):
    """The table is transposed: positions should be the rows, features the columns."""
    return _changed(lambda table: table.T)(length, d_model)


@mistake
def other_dtype(length, d_model):
    """The values are right, but the dtype is not: the table should be float32. Adding a float64 table would turn
    everything into float64, and float16 is too coarse. You may compute in any dtype and convert at the end."""
    return _changed(lambda table: table.double())(length, d_model)


@mistake
def numpy_result(length, d_model):
    """A NumPy array is returned. It has to be a float32 tensor."""
    return _changed(lambda table: table.numpy())(length, d_model)


@mistake
def scaled_by_width(length, d_model):
    """The values are divided by the root of d_model. The formula has sines and cosines as they are, between −1 and
    1."""
    return _changed(lambda table: table / table.shape[-1] ** 0.5)(length, d_model)
