"""The mistakes in `causal_mask`."""

from __future__ import annotations

import math

import numpy as np
import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.masking.parts_of_masks import square

mistake = Mistakes()


@mistake(look="notation: Conventions")
def turned_round(length):
    """True marks the future, that is, what is forbidden. Here True means *may attend*. (`nn.MultiheadAttention` has
    it the other way round.)"""
    return square(length).triu(1)


@mistake
def upper_triangle(length):
    """Every query can attend to itself and the future, but not to the past: rows are queries, columns are keys, and
    this is the other triangle."""
    return square(length).triu()


@mistake
def without_itself(length):
    """The diagonal is missing: a query may attend to itself. Without it, the first query has nothing to attend to."""
    return square(length).tril(-1)


@mistake
def one_step_ahead(length):
    """Every query can attend to one token of the future, the very one that it has to predict: the diagonal is off by
    one."""
    return square(length).tril(1)


@mistake
def everything_but_itself(length):
    """Past and future are allowed, and only the diagonal is forbidden."""
    return ~torch.eye(length, dtype=torch.bool)


@mistake
def only_itself(length):
    """Every query can attend only to itself. It may also attend to earlier keys."""
    return torch.eye(length, dtype=torch.bool)


@mistake
def everything_allowed(length):
    """Every query can attend to every key, including the future: nothing is masked."""
    return square(length)


@mistake
def nothing_allowed(length):
    """No query may attend to anything: all entries are False."""
    return ~square(length)


@mistake
def anti_diagonal(length):
    """The triangle is mirrored: it is cut along the other diagonal, from bottom left to top right. Here the first query
    can attend to the most keys, and the last one to the fewest."""
    return square(length).tril().flip(0)


@mistake
def columns_mirrored(length):
    """The triangle is mirrored: its columns run backwards, so the first query can attend only to the last key."""
    return square(length).tril().flip(1)


@mistake
def zero_and_minus_infinity(length):
    """The mask holds 0 and −∞, to be added to scores. The contract asks for a bool mask, True = may attend."""
    return torch.full((length, length), -math.inf).triu(1)


@mistake
def floats(length):
    """The mask holds the floats 1.0 and 0.0: that is the default of `torch.ones`. A mask
    here is bool."""
    return torch.ones(length, length).tril()


@mistake
def ones_and_zeros(length):
    """The mask holds the ints 1 and 0, in the right places. The contract asks for bool: `~` of the int 1 is −2, and
    `masked_fill` does not accept an int mask."""
    return square(length).tril().long()


@mistake
def infinity_times_zero(length):
    """There is `nan` in the mask, from −∞ times 0. Besides, the mask should not contain numbers to be added to scores:
    here it is bool."""
    return torch.ones(length, length).triu(1) * -math.inf


@mistake
def batch_axis_added(length):
    """The mask has one axis too many: `(1, L, L)`. The mask is the same for every sequence, and two axes broadcast
    against any number."""
    return square(length).tril()[None]


@mistake
def batch_and_head_axes_added(length):
    """The mask has two axes too many: `(1, 1, L, L)`. Two axes broadcast against scores with any number of axes, and
    the contract asks for `(L, L)`."""
    return square(length).tril()[None, None]


@mistake
def one_row(length):
    """The result has one axis: a comparison of all positions with themselves. One of the two has to be a column, so
    that every query meets every key."""
    return torch.arange(length) <= torch.arange(length)


@mistake
def one_size_only(length):
    """`torch.ones(length)` has one axis, but a triangle is taken from a matrix. Give the size of both axes."""
    return torch.ones(length, dtype=torch.bool).tril()


@mistake
def column_compared_with_itself(length):
    """The mask is `(L, 1)`: queries and keys are both columns, so each is compared only with itself. One of the two has
    to be a row."""
    return torch.arange(length)[:, None] <= torch.arange(length)[:, None]


@mistake
def one_too_short(length):
    """The mask has one row and one column too few."""
    return square(length - 1).tril()


@mistake
def one_too_long(length):
    """The mask has one row and one column too many."""
    return square(length + 1).tril()


@mistake
def numpy_array(length):
    """The mask is a NumPy array; the contract asks for a tensor. PyTorch has the same function."""
    return np.tril(np.ones((length, length), dtype=bool))


@mistake
def nested_lists(length):
    """The mask is a list of lists; the contract asks for a tensor, which needs no loop."""
    return [[key <= query for key in range(length)] for query in range(length)]


@mistake
def zero_and_minus_a_billion(length):
    """The mask holds 0 and a large negative number, to be added to scores. The contract asks for a bool mask, True =
    may attend."""
    return torch.ones(length, length).triu(1) * -1e9


@mistake
def floats_turned_round(length):
    """The mask holds floats, with 1.0 for the future. Change two things: the mask should be bool, and True means *may
    attend*."""
    return torch.ones(length, length).triu(1)


for _key, _says, _diagonal in (
    ("floats_without_itself", "the diagonal is missing, though a query may attend to itself", -1),
    ("floats_one_step_ahead", "every query can attend to one token of the future: the diagonal is off by one", 1),
):
    mistake.named(_key, f"Two things: the mask holds floats, and here it is bool; and {_says}.")(
        lambda length, diagonal=_diagonal: torch.ones(length, length).tril(diagonal)
    )


@mistake
def floats_upper_triangle(length):
    """Two things: the mask holds floats, and here it is bool; and this is the other triangle. Rows are queries, columns
    are keys, and a query may attend to the past, not to the future."""
    return torch.ones(length, length).triu()


@mistake
def zero_and_minus_infinity_from_the_diagonal(length):
    """Two things: the mask holds 0 and −∞, to be added to scores, and here it is bool; and the diagonal is hidden, so
    the first query has nothing to attend to."""
    return torch.full((length, length), -math.inf).triu()


for _size in (64, 100, 128, 256):
    mistake.named(
        f"table_of_{_size}",
        f"The mask is cut out of a table of {_size} positions, so a longer one is too small. What sets the size?",
    )(lambda length, size=_size: square(size).tril()[:length, :length])
