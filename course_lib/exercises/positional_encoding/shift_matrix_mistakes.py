"""The mistakes in `shift_matrix`."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.positional_encoding.angles import angle_of, with_exponent
from course_lib.exercises.positional_encoding.shift_matrix import shift_matrix

mistake = Mistakes()


def _turns(angle=angle_of, block=lambda cos, sin: (cos, sin, -sin, cos)):
    """The matrix with other angles or other blocks of (cos, sin), row by row."""

    def matrix(offset, d_model):
        two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
        a = angle(torch.tensor(float(offset), dtype=torch.float64), two_i, d_model)
        blocks = torch.stack(block(a.cos(), a.sin()), dim=-1).view(-1, 2, 2)
        return torch.block_diag(*blocks).float()

    return matrix


def _in_halves(angle=angle_of, sign=1):
    """Four diagonals, as for a table with all sines on the left."""

    def matrix(offset, d_model):
        two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
        a = angle(torch.tensor(float(offset), dtype=torch.float64), two_i, d_model)
        cos, sin = a.cos().diag(), sign * a.sin().diag()
        return torch.cat((torch.cat((cos, sin), 1), torch.cat((-sin, cos), 1))).float()

    return matrix


@mistake
def turned_backwards(offset, d_model):
    """It moves back by the offset instead of forward: the minus is at the wrong sine, as if cosines came first or rows
    were columns. Write down sin(a + b) as the first row."""
    return _turns(block=lambda cos, sin: (cos, -sin, sin, cos))(offset, d_model)


@mistake
def minus_missing(offset, d_model):
    """Both sines have a plus, which changes the length of vectors. How does the cosine of a sum differ from the sine of
    a sum?"""
    return _turns(block=lambda cos, sin: (cos, sin, sin, cos))(offset, d_model)


@mistake
def minus_at_both_sines(offset, d_model):
    """Both sines have a minus. One of the two addition theorems has a plus."""
    return _turns(block=lambda cos, sin: (cos, -sin, -sin, cos))(offset, d_model)


@mistake
def reflection(offset, d_model):
    """The minus is at a cosine: each block is a reflection, and an offset of 0 does not give the identity."""
    return _turns(block=lambda cos, sin: (cos, sin, sin, -cos))(offset, d_model)


@mistake
def sine_and_cosine_swapped(offset, d_model):
    """Sine and cosine are exchanged in the blocks. For an offset of 0 the matrix should be the identity."""
    return _turns(block=lambda cos, sin: (sin, cos, -cos, sin))(offset, d_model)


@mistake
def sine_on_the_diagonal(offset, d_model):
    """The sines of the offset are on the diagonal. For an offset of 0 the matrix should be the identity."""
    return _turns(block=lambda cos, sin: (sin, cos, cos, -sin))(offset, d_model)


@mistake
def cosines_only(offset, d_model):
    """Only the diagonal is filled. The new sine needs the old cosine too: what do the addition theorems say?"""
    return _turns(block=lambda cos, sin: (cos, 0 * cos, 0 * cos, cos))(offset, d_model)


@mistake
def halves(offset, d_model):
    """The matrix fits a table with all sines on the left and all cosines on the right. Here sines and cosines
    alternate, so partners are neighbours."""
    return _in_halves()(offset, d_model)


@mistake
def halves_backwards(offset, d_model):
    """The matrix fits a table with all sines on the left, and moves back by the offset. Here partners are neighbours.
    Also check which of the two sines has the minus."""
    return _in_halves(sign=-1)(offset, d_model)


@mistake
def exponent_i(offset, d_model):
    """The frequencies are not those of the table: they fall half as fast, with i over d_model in the exponent."""
    return _turns(with_exponent(lambda two_i, d: two_i / 2 / d))(offset, d_model)


@mistake
def exponent_doubled(offset, d_model):
    """The frequencies are not those of the table: they fall twice as fast, since a number that steps by 2 is doubled
    again."""
    return _turns(with_exponent(lambda two_i, d: 2 * two_i / d))(offset, d_model)


@mistake
def exponent_sign(offset, d_model):
    """The frequencies rise from pair to pair. Those of the table fall: the offset is divided by the power."""
    return _turns(lambda offset, two_i, d: offset * 10_000 ** (two_i / d))(offset, d_model)


@mistake
def same_angle(offset, d_model):
    """Every pair turns by the offset itself. The pairs have different frequencies; how far does each turn in one
    step?"""
    return _turns(lambda offset, two_i, d: offset + 0 * two_i)(offset, d_model)


@mistake
def frequencies_reversed(offset, d_model):
    """The blocks are in the opposite order: the fastest pair comes first."""
    return _turns(lambda offset, two_i, d: angle_of(offset, two_i.flip(0), d))(offset, d_model)


@mistake
def pairs_from_one(offset, d_model):
    """The pairs are counted from 1, so each block has the frequency of its neighbour. The first pair turns by one
    radian per position."""
    return _turns(with_exponent(lambda two_i, d: (two_i + 2) / d))(offset, d_model)


@mistake
def last_exponent_is_one(offset, d_model):
    """The frequencies are spaced so that the last is exactly 1/10000. Those of the table have 2i over d_model in the
    exponent."""
    return _turns(with_exponent(lambda two_i, d: two_i / 2 / max(len(two_i) - 1, 1)))(offset, d_model)


@mistake
def base_e(offset, d_model):
    """The frequencies fall by powers of e: 10,000 is not used."""
    return _turns(lambda offset, two_i, d: offset * torch.exp(-two_i / d))(offset, d_model)


@mistake
def offset_ignored(offset, d_model):
    """The matrix moves by one position, whatever the offset."""
    return _turns(lambda offset, two_i, d: angle_of(1.0, two_i, d))(offset, d_model)


@mistake
def one_step_too_many(offset, d_model):
    """It moves by one position more than asked."""
    return _turns(lambda offset, two_i, d: angle_of(offset + 1, two_i, d))(offset, d_model)


@mistake
def absolute_offset(offset, d_model):
    """A negative offset also moves forward: its sign is lost."""
    return _turns(lambda offset, two_i, d: angle_of(offset.abs(), two_i, d))(offset, d_model)


@mistake
def degrees(offset, d_model):
    """The angle is treated as degrees and converted. `torch.sin` and `torch.cos` need radians, as in the table."""
    return _turns(lambda offset, two_i, d: angle_of(offset, two_i, d).deg2rad())(offset, d_model)


@mistake
def full_turns(offset, d_model):
    """The angle has an extra factor of 2π: the table uses radians."""
    return _turns(lambda offset, two_i, d: 2 * math.pi * angle_of(offset, two_i, d))(offset, d_model)


@mistake
def power_of_the_quotient(offset, d_model):
    """The power is taken of offset / 10000 as a whole. It belongs to the 10000 alone; a bracket is in the wrong
    place."""
    return _turns(lambda offset, two_i, d: (offset / 10_000) ** (two_i / d))(offset, d_model)


@mistake
def power_before_division(offset, d_model):
    """`**` binds more tightly than `/`: 10000 is raised to 2i, and the power is divided by d_model. What belongs in
    the exponent needs brackets."""
    return _turns(lambda offset, two_i, d: offset * d / 10_000.0**two_i)(offset, d_model)


@mistake
def first_pair_only(offset, d_model):
    """Only the first pair is rotated, and the others are left as they are, as with frequencies of zero. Every pair
    turns, each at its own rate; is 10,000 itself in the exponent of an `exp`?"""
    return _turns(lambda offset, two_i, d: offset * (two_i == 0))(offset, d_model)


@mistake
def power_by_entry(offset, d_model):
    """The entries of the matrix for one step are raised to a power one by one. Taking k steps is a power of the
    matrix."""
    return shift_matrix(1, d_model) ** offset


@mistake
def multiple_of_one_step(offset, d_model):
    """The matrix for one step is multiplied by the offset. Taking k steps is a power of the matrix."""
    return shift_matrix(1, d_model) * offset


@mistake
def one_frequency_a_row(offset, d_model):
    """Every row has its own frequency: the row number is used in the exponent, odd numbers included. The sine
    and the cosine of a pair share one angle."""
    angle = offset / 10_000 ** (torch.arange(d_model, dtype=torch.float64) / d_model)
    partner = torch.eye(d_model).unflatten(0, (-1, 2)).flip(1).flatten(0, 1)
    sign = torch.tensor([1.0, -1.0]).repeat(d_model // 2)
    return (angle.cos().diag() + (sign * angle.sin())[:, None] * partner).float()


@mistake
def features_rolled(offset, d_model):
    """The matrix shifts the features of a vector. It should shift the position that the features encode."""
    return torch.eye(d_model).roll(offset, 0)


@mistake
def features_rolled_back(offset, d_model):
    """The matrix shifts the features of a vector to the left. It should shift the position that the features encode."""
    return torch.eye(d_model).roll(-offset, 0)


@mistake
def identity(offset, d_model):
    """The matrix is the identity: it leaves every position where it is."""
    return torch.eye(d_model)


def _codes(positions, d_model):
    # Row by row; negative positions too.
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = torch.as_tensor(positions)[..., None].double() / 10_000 ** (two_i / d_model)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)


@mistake
def code_of_the_offset(offset, d_model):
    """The code of one position is returned, a vector. The exercise asks for the matrix that maps one code to
    another."""
    return _codes(offset, d_model).float()


@mistake
def power_of_two_only(offset, d_model):
    """`**` binds more tightly than `*`: 10000 is squared, and the result is multiplied by i / d_model. What belongs in
    the exponent needs brackets."""
    return _turns(lambda offset, two_i, d: offset / (10_000.0**2 * two_i / 2 / d))(offset, d_model)


@mistake
def one_position_only(offset, d_model):
    """This maps only the code of position 0 correctly. The matrix has to do so for every p: think of one pair of
    features, and rotate it."""
    start, end = _codes(0, d_model), _codes(offset, d_model)
    return (end[:, None] * start / (start @ start)).float()


@mistake
def outer_product(offset, d_model):
    """This is an outer product of codes. Multiplied by the code of p, it always gives the same direction, whatever p
    is."""
    return (_codes(offset, d_model)[:, None] * _codes(0, d_model)).float()


@mistake
def codes_as_matrix(offset, d_model):
    """A table of codes is returned, row by row. The exercise asks for the matrix that maps one row of it to another."""
    return _codes(torch.arange(d_model) + offset, d_model).float()


@mistake
def blocks_not_placed(offset, d_model):
    """The blocks are returned as a stack, (d_model / 2, 2, 2). They belong along the diagonal of one matrix."""
    return shift_matrix(offset, d_model).view(d_model // 2, 2, -1, 2).diagonal(dim1=0, dim2=2).movedim(-1, 0)


@mistake
def other_dtype(offset, d_model):
    """The values are right, but the dtype is not: the matrix should be float32. You may compute in float64 and convert
    at the end."""
    return shift_matrix(offset, d_model).double()
