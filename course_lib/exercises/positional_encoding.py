"""Exercises of the chapter on position codes."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from course_lib.exercises._draw import Draw
from course_lib.exercises._exercise import Case, Exercise

__all__ = ["ALIBI", "LEARNED", "ROTARY", "SHIFT", "SINUSOIDAL"]

# Sinusoidal encoding


def sinusoidal_encoding(length, d_model):
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)  # (ceil(d_model / 2),)
    position = torch.arange(length, dtype=torch.float64)[:, None]  # (length, 1)
    angle = position / 10_000 ** (two_i / d_model)  # (length, ceil(d_model / 2))
    pairs = torch.stack((angle.sin(), angle.cos()), dim=-1)  # (length, ceil(d_model / 2), 2)
    return pairs.flatten(-2)[:, :d_model].float()  # (length, d_model): an odd width drops the last cosine


SINUSOIDAL = Exercise(
    name="sinusoidal_encoding",
    twins=(
        "transformers.create_sinusoidal_embeddings",
        "transformers.create_weight",
        "transformers.get_sinusoidal_embedding",
    ),
    title="Sines and cosines of the position",
    statement="""\
Attention does not see order, so the order is added to the embeddings: a row of numbers for each position. Compute the
table of "Attention Is All You Need":

$$\\mathrm{PE}[pos, 2i] = \\sin\\!\\left(\\frac{pos}{10000^{2i/d_{model}}}\\right), \\qquad
\\mathrm{PE}[pos, 2i+1] = \\cos\\!\\left(\\frac{pos}{10000^{2i/d_{model}}}\\right).$$

- `length` and `d_model` are ints of at least 1; there is no upper bound on either.
- Return a float32 tensor `(length, d_model)`. Row `pos` is the code of position `pos`, starting at 0; columns 0 and 1
  are sine and cosine of the first angle, columns 2 and 3 of the second, and so on.
- An odd `d_model` works too: the last column is a sine, and its cosine is left out.

Far positions count: at position 5,000 the result still has to be right to about 1e-3.""",
    difficulty=2,
    minutes=15,
    stub='''\
def sinusoidal_encoding(length, d_model):
    """(length, d_model): sine and cosine of each position, in turns."""
    raise NotImplementedError
''',
    hints=(
        "There is one angle for each position and each *pair* of columns. Make these angles first, as a matrix: which "
        "shape does it have?",
        "`torch.arange(0, d_model, 2)` holds the numbers 2i of the formula. A column of positions and a row of "
        "frequencies give a matrix by broadcasting.",
        "Every angle is used twice, in two neighbouring columns. Slices with a step of 2 write to every other column; "
        "or stack the two along a new last axis and flatten it.",
        "For an odd width there is one sine more than there are cosines. Write down for `d_model = 5` which columns "
        "are sines, which are cosines, and how many angles each of them needs.",
    ),
    reference=sinusoidal_encoding,
    shapes={},
    returns=("encoding",),
    look="positional_encoding: Sines and cosines",
    differentiable=False,
)


@SINUSOIDAL.holds(
    "Column 2i is the sine of pos / 10000^(2i / d_model), column 2i + 1 is the cosine of the same angle", weight=3
)
def _(draw):
    yield Case(args=(2, 2), note="two positions, one pair: (0, 1) and sine and cosine of 1")
    for d_model in (4, 6, 8):
        (length,) = draw.sizes(1, 3, 9, but=(d_model,))
        yield Case(args=(length, d_model))
    yield Case(args=(5, 10), note="the table of the chapter")
    yield Case(args=(7, 16))
    yield Case(args=(3, 514), note="a wide model")


@SINUSOIDAL.holds("An odd d_model works, and the last column is a sine")
def _(draw):
    for d_model in (3, 5, 7):
        (length,) = draw.sizes(1, 3, 9, but=(d_model,))
        yield Case(args=(length, d_model), note="odd d_model")
    yield Case(args=(4, 1), note="a single column")
    yield Case(args=(2, 515), note="a wide model of odd d_model")


@SINUSOIDAL.holds("There is one row for each position from 0, for any length")
def _(draw):
    yield Case(args=(1, 6), note="position 0 alone")
    yield Case(args=(1100, 2), note="1,100 positions", tolerance=15)
    yield Case(args=(5003, 4), note="more than 5,000 positions", tolerance=50)


def _angle(position, two_i, d_model):
    return position / 10_000 ** (two_i / d_model)


def _exponent(exponent):
    """Angles with another exponent of 10,000."""
    return lambda position, two_i, d_model: position / 10_000 ** exponent(two_i, d_model)


def _interleaved(first: Tensor, second: Tensor, width: int) -> Tensor:
    return torch.stack((first, second), dim=-1).flatten(-2)[:, :width].float()


def _table(angle=_angle, first=torch.sin, second=torch.cos, join=_interleaved):
    """The encoding with one step exchanged."""

    def encoding(length, d_model):
        two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
        angles = angle(torch.arange(length, dtype=torch.float64)[:, None], two_i, d_model)
        return join(first(angles), second(angles), d_model)

    return encoding


def _by_column(exponent):
    """An angle for each column j instead of one for each pair."""

    def encoding(length, d_model):
        column = torch.arange(d_model)
        angle = torch.arange(length, dtype=torch.float64)[:, None] / 10_000 ** exponent(column.double(), d_model)
        return torch.where(column % 2 == 0, angle.sin(), angle.cos()).float()

    return encoding


def _changed(change):
    """The right encoding, changed afterwards."""
    return lambda length, d_model: change(sinusoidal_encoding(length, d_model))


def _for_odd(change):
    """Right for an even d_model; `change(length, d_model)` is computed for an odd one."""
    return lambda length, d_model: change(length, d_model) if d_model % 2 else sinusoidal_encoding(length, d_model)


# Order and kind of the columns

SINUSOIDAL.misconception(
    "halves",
    "All sines stand in the left half, all cosines in the right. Here they take turns: which columns belong to angle "
    "i?",
)(_table(join=lambda sin, cos, width: torch.cat((sin, cos), dim=-1)[:, :width].float()))
SINUSOIDAL.misconception(
    "cosine_first",
    "Sine and cosine have changed places: the even columns are the sines. What should position 0 look like?",
)(_table(first=torch.cos, second=torch.sin))
SINUSOIDAL.misconception(
    "sines_only",
    "Every column is a sine. A pair needs sine and cosine of the angle, or moving by an offset is not a rotation.",
)(_table(second=torch.sin))
SINUSOIDAL.misconception(
    "cosines_only",
    "Every column is a cosine. A pair needs sine and cosine of the angle, or moving by an offset is not a rotation.",
)(_table(first=torch.cos))
SINUSOIDAL.misconception(
    "plain_angles",
    "The angles themselves come back: no sine, no cosine is taken, so the numbers grow with the position.",
)(_table(first=torch.clone, second=torch.clone))


@SINUSOIDAL.misconception(
    "sine_and_cosine_by_row",
    "Sine and cosine take turns from row to row: even positions are sines, odd ones cosines. They should take turns "
    "from column to column; which axis does your slice step through?",
)
def _(length, d_model):
    column = torch.arange(d_model, dtype=torch.float64) // 2 * 2
    position = torch.arange(length)[:, None]
    angle = position / 10_000 ** (column / d_model)
    return torch.where(position % 2 == 0, angle.sin(), angle.cos()).float()


@SINUSOIDAL.misconception(
    "frequencies_side_by_side",
    "The list of frequencies is laid out twice, one behind the other, so neighbouring columns turn at different "
    "rates. Which two columns share a frequency?",
)
def _(length, d_model):
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = torch.arange(length)[:, None] / 10_000 ** (torch.cat((two_i, two_i))[:d_model] / d_model)
    return torch.where(torch.arange(d_model) % 2 == 0, angle.sin(), angle.cos()).float()


SINUSOIDAL.misconception(
    "cosine_first_in_halves",
    "All cosines stand in the left half, all sines in the right. Here they take turns, and the sine comes first.",
)(_table(join=lambda sin, cos, width: torch.cat((cos, sin), dim=-1)[:, :width].float()))
SINUSOIDAL.misconception(
    "exponent_i_in_halves",
    "Two things: all sines stand left of all cosines, where they should take turns; and the exponent is i over "
    "d_model, so the frequencies fall half as fast as they should.",
)(
    _table(
        _exponent(lambda two_i, d: two_i / 2 / d),
        join=lambda sin, cos, width: torch.cat((sin, cos), dim=-1)[:, :width].float(),
    )
)
SINUSOIDAL.misconception(
    "positions_from_one_in_halves",
    "Two things: all sines stand left of all cosines, where they should take turns; and the rows start at position 1.",
)(
    _table(
        lambda position, two_i, d: _angle(position + 1, two_i, d),
        join=lambda sin, cos, width: torch.cat((sin, cos), dim=-1)[:, :width].float(),
    )
)

# Exponents

SINUSOIDAL.misconception(
    "one_frequency_a_column",
    "Every column has a frequency of its own: the number of the column stands in the exponent, odd numbers too. Sine "
    "and cosine of a pair share one angle; which i belongs to column 3?",
)(_by_column(lambda j, d: j / d))
SINUSOIDAL.misconception(
    "column_doubled",
    "The exponent of column j is 2j / d_model: 2i *is* the number of the column already, so it is doubled once too "
    "often, and sine and cosine of a pair have different angles.",
)(_by_column(lambda j, d: 2 * j / d))
SINUSOIDAL.misconception(
    "cosine_of_next_pair",
    "The cosine takes the frequency of the pair after its own: column 2i + 1 has the 2i of its neighbour in the "
    "exponent, not 2i + 2.",
)(_by_column(lambda j, d: (j + j % 2) / d))
SINUSOIDAL.misconception(
    "cosine_exponent_doubled",
    "The sines are right. For the cosines the number of the column, 2i + 1, stands in place of i. Both columns of a "
    "pair use the very same angle.",
)(_by_column(lambda j, d: j * (1 + j % 2) / d))
SINUSOIDAL.misconception(
    "exponent_i",
    "The frequencies fall half as fast as they should: i / d_model stands in the exponent (or the base is 100). Over "
    "all pairs the exponent of 10,000 should run from 0 to nearly 1.",
)(_table(_exponent(lambda two_i, d: two_i / 2 / d)))
SINUSOIDAL.misconception(
    "exponent_doubled",
    "The frequencies fall twice as fast as they should: a number that steps by 2 already is doubled again, or divided "
    "by half the width. The exponent should run from 0 to nearly 1.",
)(_table(_exponent(lambda two_i, d: 2 * two_i / d)))
SINUSOIDAL.misconception(
    "exponent_sign",
    "The frequencies rise from pair to pair: the position is multiplied by the power, or the exponent has the wrong "
    "sign. The first pair is the fastest.",
)(_table(lambda position, two_i, d: position * 10_000 ** (two_i / d)))
SINUSOIDAL.misconception(
    "same_frequency",
    "All pairs turn at the same rate. Is there an integer division in the exponent, which gives 0, or is the exponent "
    "missing?",
)(_table(lambda position, two_i, d: position + 0 * two_i))
SINUSOIDAL.misconception(
    "frequencies_reversed",
    "The frequencies stand in the opposite order: the slowest comes first.",
)(_table(lambda position, two_i, d: _angle(position, two_i.flip(0), d)))
SINUSOIDAL.misconception(
    "pairs_from_one",
    "The pairs are counted from 1, so that even the first turns more slowly than one radian a position. Which power "
    "is it that the first pair should be divided by?",
)(_table(_exponent(lambda two_i, d: (two_i + 2) / d)))
SINUSOIDAL.misconception(
    "last_exponent_is_one",
    "The frequencies are spread so that the last is exactly 1/10000, as in some libraries. In the formula the "
    "exponent is 2i over the whole width, and never quite reaches 1.",
)(_table(_exponent(lambda two_i, d: two_i / 2 / max(len(two_i) - 1, 1))))
SINUSOIDAL.misconception(
    "last_exponent_is_one_in_halves",
    "This is the layout of some libraries: sines left, cosines right, and frequencies that end exactly at 1/10000. "
    "The formula of the paper has pairs side by side, and 2i over d_model in the exponent.",
)(
    _table(
        _exponent(lambda two_i, d: two_i / 2 / max(len(two_i) - 1, 1)),
        join=lambda sin, cos, width: torch.cat((sin, cos), dim=-1)[:, :width].float(),
    )
)
SINUSOIDAL.misconception(
    "power_of_the_quotient",
    "The power is taken of pos / 10000 as a whole. It belongs to the 10000 alone; a bracket is in the wrong place.",
)(_table(lambda position, two_i, d: (position / 10_000) ** (two_i / d)))
SINUSOIDAL.misconception(
    "product_instead_of_power",
    "10000 is multiplied by 2i / d_model, so the first pair divides by zero. It should be raised to that power.",
)(_table(lambda position, two_i, d: position / (10_000 * two_i / d)))
SINUSOIDAL.misconception(
    "power_before_division",
    "`**` binds more strongly than `/`: 10000 is raised to 2i, and the power is divided by d_model. What belongs in "
    "the exponent needs brackets.",
)(_table(lambda position, two_i, d: position * d / 10_000.0**two_i))
SINUSOIDAL.misconception(
    "power_of_two_only",
    "`**` binds more strongly than `*`: 10000 is squared, and i / d_model is a factor beside it. What belongs in the "
    "exponent needs brackets.",
)(_table(lambda position, two_i, d: position / (10_000.0**2 * two_i / 2 / d)))
SINUSOIDAL.misconception(
    "power_of_two_factors_after",
    "Without brackets the line is read from left to right: the position is divided by 10000², then multiplied by i "
    "and divided by d_model. What belongs in the exponent needs brackets.",
)(_table(lambda position, two_i, d: position / 10_000.0**2 * two_i / 2 / d))
SINUSOIDAL.misconception(
    "power_before_division_by_width",
    "Without brackets the line is read from left to right: 10000 is raised to 2i, and the angle is divided by d_model "
    "in the end. What belongs in the exponent needs brackets.",
)(_table(lambda position, two_i, d: position / 10_000.0**two_i / d))
SINUSOIDAL.misconception(
    "floor_of_the_angle",
    "The angles are rounded down to whole numbers, so that far pairs stand still: `//` divides like integers.",
)(_table(lambda position, two_i, d: _angle(position, two_i, d).floor()))
SINUSOIDAL.misconception(
    "base_1000",
    "The base is 1,000; the paper has 10,000.",
)(_table(lambda position, two_i, d: position / 1_000 ** (two_i / d)))
SINUSOIDAL.misconception(
    "base_100000",
    "The base is 100,000; the paper has 10,000. Count the zeros.",
)(_table(lambda position, two_i, d: position / 100_000 ** (two_i / d)))
SINUSOIDAL.misconception(
    "base_e",
    "The frequencies fall by powers of e: 10,000 does not appear in them. A power of 10,000 written with `exp` needs "
    "a factor in its exponent.",
)(_table(lambda position, two_i, d: position * torch.exp(-two_i / d)))
SINUSOIDAL.misconception(
    "log_missing",
    "10,000 itself stands in the exponent of `exp`, so all frequencies but the first are zero. e to which power is "
    "10,000?",
)(_table(lambda position, two_i, d: position * torch.exp(-two_i * 10_000.0 / d)))
SINUSOIDAL.misconception(
    "log_to_base_10",
    "The logarithm is the one to base 10, the exponential the one to base e. They do not undo each other.",
)(_table(lambda position, two_i, d: position * torch.exp(-two_i * 4.0 / d)))

# Positions

SINUSOIDAL.misconception(
    "positions_from_one",
    "The rows start at position 1. The first position is 0, whose code is 0, 1, 0, 1, …",
)(_table(lambda position, two_i, d: _angle(position + 1, two_i, d)))
SINUSOIDAL.misconception(
    "positions_as_fractions",
    "Positions are divided by the length, so that the code of a position depends on how long the sequence is. A "
    "position is its number.",
)(_table(lambda position, two_i, d: _angle(position / len(position), two_i, d)))
SINUSOIDAL.misconception(
    "positions_reversed",
    "The rows stand in the opposite order: the last one is the code of position 0.",
)(_changed(lambda table: table.flip(0)))
SINUSOIDAL.misconception(
    "full_turns",
    "The angle has a factor 2π too many: the formula asks for radians, not for turns.",
)(_table(lambda position, two_i, d: 2 * math.pi * _angle(position, two_i, d)))
SINUSOIDAL.misconception(
    "degrees",
    "The angle is taken for degrees and converted. Sine and cosine of torch want radians, and the formula gives them.",
)(_table(lambda position, two_i, d: _angle(position, two_i, d).deg2rad()))


@SINUSOIDAL.misconception(
    "row_zero_is_zero",
    "The row of position 0 is set to zeros. Position 0 is a position like the others; padding is masked elsewhere.",
)
def _(length, d_model):
    table = sinusoidal_encoding(length, d_model)
    table[0] = 0
    return table


SINUSOIDAL.misconception(
    "one_row_too_many",
    "There is one row too many: positions 0 to length − 1 are asked for.",
)(lambda length, d_model: sinusoidal_encoding(length + 1, d_model))
SINUSOIDAL.misconception(
    "arguments_swapped",
    "Length and width have changed places: there are d_model positions with `length` features each. Rows are "
    "positions.",
)(lambda length, d_model: sinusoidal_encoding(d_model, length))


def _from_table(longest):
    return lambda length, d_model: sinusoidal_encoding(longest, d_model)[:length]


for _longest in (5000, 4096, 2048, 1024, 1000, 512, 256, 100):
    SINUSOIDAL.misconception(
        f"table_of_{_longest}",
        f"A table of {_longest:,} positions is made, whatever `length` says, so longer sequences come back too short. "
        f"How many rows are asked for?",
    )(_from_table(_longest))

# Shape and kind of the result

SINUSOIDAL.misconception(
    "batch_axis_in_front",
    "There is a batch axis in front: (1, length, d_model). The table itself is asked for, with two axes.",
)(_changed(lambda table: table[None]))
SINUSOIDAL.misconception(
    "batch_axis_in_the_middle",
    "There is a batch axis in the middle: (length, 1, d_model). The table itself is asked for, with two axes.",
)(_changed(lambda table: table[:, None]))
SINUSOIDAL.misconception(
    "transposed",
    "The table is turned round: positions are the rows, features the columns.",
)(_changed(lambda table: table.T))
SINUSOIDAL.misconception(
    "other_dtype",
    "The values are right, the dtype is not: the table is to be float32. One of float64 would turn all that it is "
    "added to into float64, one of float16 is too coarse; compute in what you like, and convert in the end.",
)(_changed(lambda table: table.double()))
SINUSOIDAL.misconception(
    "numpy_result",
    "A NumPy array comes back. It has to be a tensor, float32.",
)(_changed(lambda table: table.numpy()))
SINUSOIDAL.misconception(
    "scaled_by_width",
    "The values are divided by the root of d_model. The formula has sines and cosines as they are, between −1 and 1.",
)(_changed(lambda table: table / table.shape[-1] ** 0.5))

# Odd widths


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


@SINUSOIDAL.misconception(
    "odd_one_cosine_too_many",
    "An odd width crashes: it has one cosine column less than it has sines, and is given as many. How many angles do "
    "the cosines need?",
)
def _(length, d_model):
    return _assigned(_angles(length, torch.arange(0, d_model, 2), d_model), length, d_model)


@SINUSOIDAL.misconception(
    "odd_one_angle_too_few",
    "An odd width goes wrong: there is an angle for every full pair only, and the last sine has none. How many "
    "columns are sines when d_model is 5?",
)
@_for_odd
def _(length, d_model):
    return _assigned(_angles(length, 2 * torch.arange(d_model // 2), d_model), length, d_model)


@SINUSOIDAL.misconception(
    "even_one_cosine_too_few",
    "The last angle is left out of the cosines for an even width as well. Only an odd width has a cosine less than it "
    "has sines.",
)
def _(length, d_model):
    angle = _angles(length, torch.arange(0, d_model, 2), d_model)
    table = torch.zeros(length, d_model)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle[:, :-1].cos()
    return table


SINUSOIDAL.misconception(
    "odd_reshape",
    "An odd width crashes in the reshape: there is a cosine for every sine, one number a row too many.",
)(_for_odd(lambda length, d_model: _whole_pairs(length, d_model).reshape(length, d_model)))
SINUSOIDAL.misconception(
    "odd_one_column_too_many",
    "An odd width gives one column too many: the last sine brings a cosine with it that was not asked for.",
)(_for_odd(_whole_pairs))
SINUSOIDAL.misconception(
    "odd_one_column_missing",
    "An odd width gives one column too few: d_model // 2 counts the full pairs, and a sine is left over.",
)(_for_odd(lambda length, d_model: sinusoidal_encoding(length, d_model)[:, :-1]))


@SINUSOIDAL.misconception(
    "odd_index_error",
    "An odd width crashes: the loop writes a cosine beside every sine, and for the last one there is no column.",
)
@_for_odd
def _(length, d_model):
    table = torch.zeros(length, d_model)
    for column in range(0, d_model, 2):
        angle = torch.arange(length) / 10_000 ** (column / d_model)
        table[:, column] = angle.sin()
        table[:, column + 1] = angle.cos()
    return table


@SINUSOIDAL.misconception(
    "odd_last_column_zero",
    "For an odd width the last column stays zero: it belongs to a sine whose cosine is left out.",
)
@_for_odd
def _(length, d_model):
    table = sinusoidal_encoding(length, d_model)
    table[:, -1] = 0
    return table


SINUSOIDAL.misconception(
    "odd_ends_on_cosine",
    "For an odd width the last column is a cosine. The columns take turns from the first on, so what is column 4?",
)(_for_odd(lambda length, d_model: _whole_pairs(length, d_model)[:, [*range(d_model - 1), d_model]]))


@SINUSOIDAL.misconception(
    "odd_refused",
    "An odd width is refused. It works too: the last column is a sine, without a cosine.",
)
@_for_odd
def _(length, d_model):
    raise ValueError("d_model must be even")


@SINUSOIDAL.misconception(
    "odd_asserted",
    "An `assert` forbids an odd width. It works too: the last column is a sine, without a cosine.",
)
@_for_odd
def _(length, d_model):
    assert d_model % 2 == 0


SINUSOIDAL.misconception(
    "odd_width_rounded_up",
    "For an odd width the exponents are those of the next even one: the table is made one column wider and cut. The "
    "columns can be cut; the d_model in the exponent has to stay.",
)(_for_odd(lambda length, d_model: sinusoidal_encoding(length, d_model + 1)[:, :d_model]))
SINUSOIDAL.misconception(
    "odd_width_rounded_down",
    "For an odd width the exponents are those of the even one below: i over d_model // 2 is 2i over d_model for even "
    "widths only.",
)(_for_odd(_table(_exponent(lambda two_i, d: two_i / 2 / (d // 2)))))


# Learned positions


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        length, max_length = x.shape[1], self.embedding.num_embeddings
        if length > max_length:
            raise ValueError(f"x must be at most {max_length} positions long, got {length}")
        positions = torch.arange(length, device=x.device)  # (L,)
        return x + self.embedding(positions)  # (B, L, d_model) + (L, d_model)


LEARNED = Exercise(
    name="LearnedPositionalEmbedding",
    title="A trained vector for each position",
    statement="""\
BERT and GPT-2 do not compute the code of a position, they train it: a vector for each position, up to a length that
is fixed in advance. Write the module that adds them.

- `__init__(self, max_length, d_model)`: one sub-module, `embedding`, an `nn.Embedding(max_length, d_model)`. No other
  parameters, so that trained weights can be loaded into it.
- `forward(x)`: `x` is `(B, L, d_model)`. Return `x` plus the embeddings of positions 0 to L − 1, of the same shape,
  the same for each sequence of the batch. Nothing else: no scaling, no dropout, no norm.
- Where L is larger than `max_length` there are positions without a vector: raise a `ValueError`. L = `max_length`
  still works.""",
    difficulty=2,
    minutes=10,
    stub='''\
class LearnedPositionalEmbedding(nn.Module):
    """x plus a trained vector for each of its positions."""

    def __init__(self, max_length, d_model):
        super().__init__()
        raise NotImplementedError

    def forward(self, x):
        raise NotImplementedError
''',
    hints=(
        "An `nn.Embedding` is a table that is read by row numbers. Which rows does a sequence of length L need?",
        "`torch.arange` makes the row numbers, on the device of `x`. What comes out of the table is `(L, d_model)`: "
        "does it line up with `(B, L, d_model)` as it is?",
        "Compare the length with `max_length` before you read the table; the table itself raises another error. It "
        "knows its number of rows as `num_embeddings`.",
    ),
    reference=LearnedPositionalEmbedding,
    shapes={"x": "batch length d_model"},
    look="positional_encoding: Learned positions",
)


def _learned(draw: Draw, dtype=torch.float32, more=0, **options):
    """A call with `more` positions than there are vectors; fewer than there are where `more` is negative."""
    max_length, d_model, batch = draw.sizes(3, 4, 9)
    length = max_length + more
    while length in {d_model, batch}:
        max_length, d_model, batch = draw.sizes(3, 4, 9)
        length = max_length + more
    return Case(
        init=(max_length, d_model),
        state=LEARNED.draw_state(draw, max_length, d_model, dtype=dtype),
        args=(draw.normal(batch, length, d_model, dtype=dtype),),
        **options,
    )


@LEARNED.holds("The vector of its position is added to each token, the same in every sequence", weight=3)
def _(draw):
    yield Case(
        init=(4, 2),
        state={"embedding.weight": torch.tensor([[10.0, -10.0], [20.0, -20.0], [30.0, -30.0], [40.0, -40.0]])},
        args=(torch.tensor([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]]),),
        edge="a small case, to be followed with a pencil: 10 on the first position, 20 on the second",
        note="one sequence of three positions",
    )
    for more in (-1, -2):
        yield _learned(draw, more=more)
    for more in (-1, -2):
        yield _learned(draw, torch.float64, more=more)


@LEARNED.holds("x may have max_length positions, or far fewer")
def _(draw):
    for dtype in (torch.float32, torch.float64):
        yield _learned(draw, dtype, more=0, note="L = max_length", edge="two axes of one length on purpose")
    max_length, d_model, batch = draw.sizes(3, 4, 9)
    yield Case(
        init=(max_length, d_model),
        state=LEARNED.draw_state(draw, max_length, d_model),
        args=(draw.normal(batch, 1, d_model),),
        note="one position",
        edge="a length of one on purpose",
    )
    for (max_length, d_model), shape, note in (
        ((5, 3), (7, 2, 3), "more sequences than max_length"),
        ((4, 6), (2, 3, 6), "more features than max_length"),
        ((40, 3), (2, 30, 3), "30 of 40 positions, few features"),
        ((1100, 3), (2, 1050, 3), "more than 1,000 positions"),
    ):
        state = LEARNED.draw_state(draw, max_length, d_model)
        yield Case(init=(max_length, d_model), state=state, args=(draw.normal(*shape),), note=note)


@LEARNED.holds("If x is longer than max_length, a ValueError is raised")
def _(draw):
    yield _learned(draw, more=1, raises=ValueError, note="L = max_length + 1")
    yield _learned(draw, more=3, raises=ValueError, note="L = max_length + 3")
    yield _learned(draw, torch.float64, more=1, raises=ValueError, note="L = max_length + 1")


def _module(add):
    """The module with `add(embedding, x)` in place of the whole forward."""

    class Variant(LearnedPositionalEmbedding):
        def forward(self, x):
            return add(self.embedding, x)

    return Variant


def _checked(add):
    """The same behind the check of the length."""

    def forward(embedding, x):
        if x.shape[1] > embedding.num_embeddings:
            raise ValueError("too long")
        return add(embedding, x)

    return _module(forward)


def _first(embedding, length):
    return embedding(torch.arange(length))


# What is added

LEARNED.misconception(
    "embedding_only",
    "Only the embeddings come back. They are added to x, which brings the tokens.",
)(_checked(lambda embedding, x: _first(embedding, x.shape[1]).expand_as(x)))
LEARNED.misconception(
    "embedding_only_without_batch",
    "The embeddings come back alone, `(L, d_model)`. They are added to x, which brings the tokens and the batch.",
)(_checked(lambda embedding, x: _first(embedding, x.shape[1])))
LEARNED.misconception(
    "x_unchanged",
    "x comes back as it was: what is made of the embeddings is not used.",
)(_checked(lambda embedding, x: x.clone()))
LEARNED.misconception(
    "multiplied",
    "x is multiplied by the embeddings. They are added.",
)(_checked(lambda embedding, x: x * _first(embedding, x.shape[1])))
LEARNED.misconception(
    "concatenated",
    "The embeddings are put beside x, which makes it twice as wide. They are added, so that the width stays.",
)(_checked(lambda embedding, x: torch.cat((x, _first(embedding, x.shape[1]).expand_as(x)), dim=-1)))
LEARNED.misconception(
    "x_scaled",
    "x is multiplied by the root of d_model first. That belongs to the token embedding of the paper, not here.",
)(_checked(lambda embedding, x: x * x.shape[-1] ** 0.5 + _first(embedding, x.shape[1])))
LEARNED.misconception(
    "embedding_scaled",
    "The embeddings are multiplied by the root of d_model. They are added as they are.",
)(_checked(lambda embedding, x: x + _first(embedding, x.shape[1]) * x.shape[-1] ** 0.5))
LEARNED.misconception(
    "subtracted",
    "The embeddings are taken off x. They are added.",
)(_checked(lambda embedding, x: x - _first(embedding, x.shape[1])))
LEARNED.misconception(
    "normalised",
    "The sum goes through a layer norm. That may follow elsewhere; this module only adds.",
)(_checked(lambda embedding, x: nn.functional.layer_norm(x + _first(embedding, x.shape[1]), x.shape[-1:])))

# Which positions

LEARNED.misconception(
    "positions_from_one",
    "The positions are counted from 1: row 0 of the table is never read, and the longest sequence runs past its end. "
    "Which is the first position?",
)(_checked(lambda embedding, x: x + embedding(torch.arange(1, x.shape[1] + 1))))
LEARNED.misconception(
    "same_vector_everywhere",
    "Every position gets the same vector. Is the table read with the length as its index, instead of with all numbers "
    "below it?",
)(_checked(lambda embedding, x: x + embedding(torch.tensor(x.shape[1] - 1))))
LEARNED.misconception(
    "length_as_index",
    "The table is read at the single index L, so that every position gets the same vector. All the numbers below L "
    "are its positions.",
)(_checked(lambda embedding, x: x + embedding(torch.tensor(x.shape[1]))))
LEARNED.misconception(
    "first_vector_everywhere",
    "Every position gets the vector of position 0. The indices have to run along the sequence.",
)(_checked(lambda embedding, x: x + embedding.weight[0]))
LEARNED.misconception(
    "a_vector_a_sequence",
    "Each sequence of the batch gets one vector for all its positions. The indices run along the wrong axis of x.",
)(_checked(lambda embedding, x: x + embedding(torch.arange(x.shape[0]))[:, None]))
LEARNED.misconception(
    "counts_the_batch",
    "The indices are counted along the batch: `x.shape[0]` and `len(x)` are B. Which axis is the sequence?",
)(_checked(lambda embedding, x: x + embedding(torch.arange(len(x)))))
LEARNED.misconception(
    "counts_the_features",
    "The indices are counted along the features: `x.shape[-1]` is d_model. Which axis is the sequence?",
)(_checked(lambda embedding, x: x + embedding(torch.arange(x.shape[-1]))))
LEARNED.misconception(
    "whole_table",
    "The whole table is added, whatever the length of x. A shorter x needs its first L rows only.",
)(_checked(lambda embedding, x: x + embedding.weight))
LEARNED.misconception(
    "last_rows",
    "The last L rows of the table are taken. Position 0 has row 0.",
)(_checked(lambda embedding, x: x + embedding.weight[embedding.num_embeddings - x.shape[1] :]))
LEARNED.misconception(
    "reversed",
    "The positions run backwards: the last one gets row 0.",
)(_checked(lambda embedding, x: x + _first(embedding, x.shape[1]).flip(0)))
LEARNED.misconception(
    "reads_the_table_with_x_as_integers",
    "The table is read with x, made integer. x holds features, no row numbers; the row numbers are the positions.",
)(_checked(lambda embedding, x: x + embedding(x.long())))
LEARNED.misconception(
    "indices_are_floats",
    "The table is read with floating numbers: positions made in a floating dtype, or x itself. Row numbers are "
    "integers, and here they are the positions.",
)(_checked(lambda embedding, x: x + embedding(torch.arange(x.shape[1], dtype=x.dtype))))
LEARNED.misconception(
    "batch_axis_in_the_wrong_place",
    "The embeddings get their new axis after the positions, (L, 1, d_model), so that positions line up with the "
    "batch. Where is the batch axis of x?",
)(_checked(lambda embedding, x: x + _first(embedding, x.shape[1])[:, None]))

# Too long

LEARNED.misconception(
    "no_check",
    "A sequence that is too long ends in the IndexError of the table. Ask for the length before you read it, and "
    "raise a ValueError.",
)(_module(lambda embedding, x: x + _first(embedding, x.shape[1])))
LEARNED.misconception(
    "no_check_slice",
    "A slice of the table ends where the table ends, without a word; only the addition notices, and not always. Ask "
    "for the length first, and raise a ValueError.",
)(_module(lambda embedding, x: x + embedding.weight[: x.shape[1]]))
LEARNED.misconception(
    "cut",
    "A sequence that is too long is cut to max_length in silence. The contract asks for a ValueError.",
)(
    _module(
        lambda embedding, x: (
            x[:, : embedding.num_embeddings] + embedding.weight[: min(x.shape[1], len(embedding.weight))]
        )
    )
)
LEARNED.misconception(
    "last_vector_repeated",
    "Positions past the end all get the last vector. The contract asks for a ValueError.",
)(
    _module(
        lambda embedding, x: x + embedding(torch.arange(x.shape[1]).clamp(max=embedding.num_embeddings - 1)),
    )
)
LEARNED.misconception(
    "starts_again",
    "Positions past the end start again from 0. The contract asks for a ValueError.",
)(_module(lambda embedding, x: x + embedding(torch.arange(x.shape[1]) % embedding.num_embeddings)))
LEARNED.misconception(
    "nothing_past_the_end",
    "Positions past the end get no vector, in silence. The contract asks for a ValueError.",
)(
    _module(
        lambda embedding, x: (
            x
            + nn.functional.pad(
                embedding.weight[: x.shape[1]], (0, 0, 0, max(0, x.shape[1] - embedding.num_embeddings))
            )
        )
    )
)


@LEARNED.misconception(
    "refuses_the_full_length",
    "A sequence of exactly max_length is refused. There is a vector for each of its positions: with n rows, which is "
    "the last position?",
)
@_module
def _(embedding, x):
    if x.shape[1] >= embedding.num_embeddings:
        raise ValueError("too long")
    return x + _first(embedding, x.shape[1])


@LEARNED.misconception(
    "one_too_long_goes_through",
    "One position more than there are vectors passes the check. Compare L itself with max_length.",
)
@_module
def _(embedding, x):
    if x.shape[1] > embedding.num_embeddings + 1:
        raise ValueError("too long")
    return x + _first(embedding, x.shape[1])


@LEARNED.misconception(
    "checks_the_batch",
    "The size of the batch is compared with max_length. How many sequences there are does not matter; how long are "
    "they?",
)
@_module
def _(embedding, x):
    if len(x) > embedding.num_embeddings:
        raise ValueError("too long")
    return x + _first(embedding, x.shape[1])


@LEARNED.misconception(
    "checks_the_features",
    "The number of features is compared with max_length, which is a number of positions. Which axis of x counts those?",
)
@_module
def _(embedding, x):
    if x.shape[-1] > embedding.num_embeddings:
        raise ValueError("too long")
    return x + _first(embedding, x.shape[1])


@LEARNED.misconception(
    "checks_against_the_width",
    "The length is compared with d_model. How many positions have a vector?",
)
@_module
def _(embedding, x):
    if x.shape[1] > embedding.embedding_dim:
        raise ValueError("too long")
    return x + _first(embedding, x.shape[1])


@LEARNED.misconception(
    "assert_instead",
    "An AssertionError is raised where a ValueError is asked for. `assert` is for mistakes of one's own, and `python "
    "-O` drops it.",
)
@_module
def _(embedding, x):
    assert x.shape[1] <= embedding.num_embeddings
    return x + _first(embedding, x.shape[1])


@LEARNED.misconception(
    "error_returned",
    "The ValueError is returned, or made and dropped, instead of raised, so the call goes on as if nothing were wrong.",
)
@_module
def _(embedding, x):
    if x.shape[1] > embedding.num_embeddings:
        return ValueError("too long")
    return x + _first(embedding, x.shape[1])


@LEARNED.misconception(
    "another_error",
    "A RuntimeError is raised where a ValueError is asked for. The contract names the kind of error, so that a caller "
    "can tell it from others.",
)
@_module
def _(embedding, x):
    if x.shape[1] > embedding.num_embeddings:
        raise RuntimeError("too long")
    return x + _first(embedding, x.shape[1])


@LEARNED.misconception(
    "index_error_raised",
    "An IndexError is raised where a ValueError is asked for. The contract names the kind of error, so that a caller "
    "can tell it from others.",
)
@_module
def _(embedding, x):
    if x.shape[1] > embedding.num_embeddings:
        raise IndexError
    return x + _first(embedding, x.shape[1])


@LEARNED.misconception(
    "plain_exception_raised",
    "A plain Exception is raised where a ValueError is asked for. The contract names the kind of error, so that a "
    "caller can tell it from others.",
)
@_module
def _(embedding, x):
    if x.shape[1] > embedding.num_embeddings:
        raise Exception
    return x + _first(embedding, x.shape[1])


@LEARNED.misconception(
    "returns_none_for_too_long",
    "A sequence that is too long gives None. A message on the screen stops nobody: raise a ValueError.",
)
@_module
def _(embedding, x):
    if x.shape[1] > embedding.num_embeddings:
        return None
    return x + _first(embedding, x.shape[1])


# Parameters, gradients and manners


@LEARNED.misconception(
    "table_turned_round",
    "The table has d_model rows and max_length columns. `nn.Embedding` takes the number of rows first: how many "
    "positions, then how wide.",
)
class TurnedRound(LearnedPositionalEmbedding):
    def __init__(self, max_length, d_model):
        super().__init__(d_model, max_length)


@LEARNED.misconception(
    "bare_parameter",
    "The table is an `nn.Parameter` of its own. It has to be an `nn.Embedding`, so that its weights have the name "
    "under which they are loaded.",
)
class BareParameter(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Parameter(torch.zeros(max_length, d_model))

    def forward(self, x):
        return x + self.embedding[: x.shape[1]]


@LEARNED.misconception(
    "no_parameters",
    "There is a table, and it is not registered: a plain tensor, or a layer in a local variable. It would never be "
    "trained, and no weights can be loaded into it.",
)
class NotRegistered(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.table = torch.zeros(max_length, d_model)

    def forward(self, x):
        return x + self.table[: x.shape[1]]


@LEARNED.misconception(
    "one_row_more",
    "The table has a row more than there are positions. Positions 0 to max_length − 1 need max_length rows.",
)
class OneRowMore(LearnedPositionalEmbedding):
    def __init__(self, max_length, d_model):
        super().__init__(max_length + 1, d_model)


@LEARNED.misconception(
    "super_init_missing",
    "`super().__init__()` is missing, so `nn.Module` cannot register the embedding.",
)
class WithoutSuper(LearnedPositionalEmbedding):
    def __init__(self, max_length, d_model):
        self.embedding = nn.Embedding(max_length, d_model)


@LEARNED.misconception(
    "dropout",
    "There is a dropout in it, which the contract does not ask for: train and eval mode differ.",
)
class WithDropout(LearnedPositionalEmbedding):
    def forward(self, x):
        return nn.functional.dropout(super().forward(x), 0.1, self.training)


@LEARNED.misconception(
    "padding_index",
    "The values are right, but row 0 of the table never learns: `padding_idx` freezes it. Position 0 is not padding.",
)
class WithPadding(LearnedPositionalEmbedding):
    def __init__(self, max_length, d_model):
        super().__init__(max_length, d_model)
        self.embedding = nn.Embedding(max_length, d_model, padding_idx=0)


LEARNED.misconception(
    "table_detached",
    "The values are right, but no gradient reaches the table, so the positions are never learned. Either its weights "
    "are frozen (`requires_grad_(False)`), or `.data`, `.detach()` or `no_grad` cuts them off.",
)(_checked(lambda embedding, x: x + embedding.weight.detach()[: x.shape[1]]))
LEARNED.misconception(
    "x_detached",
    "The values are right, but no gradient reaches x, so that nothing before this module can learn.",
)(_checked(lambda embedding, x: x.detach() + _first(embedding, x.shape[1])))
LEARNED.misconception(
    "all_detached",
    "The values are right, but no gradient flows at all: the sum is computed without a graph, or cut off from it.",
)(_checked(lambda embedding, x: (x + _first(embedding, x.shape[1])).detach()))


@LEARNED.misconception(
    "in_place",
    "`+=` and `add_` change x itself, which belongs to the caller. Make a new tensor.",
)
@_checked
def _(embedding, x):
    x += _first(embedding, x.shape[1])
    return x


LEARNED.misconception(
    "float32_result",
    "The result is float32 whatever x is. Where does a dtype get lost, or set by hand?",
)(_checked(lambda embedding, x: x.float() + _first(embedding, x.shape[1]).float()))


# Shift matrix


def shift_matrix(offset, d_model):
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)  # (d_model / 2,)
    angle = offset / 10_000 ** (two_i / d_model)  # how far each pair turns
    cos, sin = angle.cos(), angle.sin()
    blocks = torch.stack((cos, sin, -sin, cos), dim=-1).view(-1, 2, 2)  # (d_model / 2, 2, 2)
    return torch.block_diag(*blocks).float()  # (d_model, d_model)


SHIFT = Exercise(
    name="shift_matrix",
    title="Moving by an offset is a matrix",
    statement="""\
Why sines *and* cosines? Because then a step of $k$ positions is one and the same linear map from wherever it starts,
so that a layer can learn to look "$k$ back". Find its matrix $M_k$:

$$M_k \\, \\mathrm{PE}[p] = \\mathrm{PE}[p + k] \\quad \\text{for every position } p,$$

where $\\mathrm{PE}[p]$ is the sinusoidal code of position $p$ as a column:
$\\mathrm{PE}[p, 2i] = \\sin(p / 10000^{2i/d_{model}})$ and $\\mathrm{PE}[p, 2i+1] = \\cos(p / 10000^{2i/d_{model}})$.

- `offset` is the int $k$; it may be 0 or negative. `d_model` is even.
- Return a float32 tensor `(d_model, d_model)`.

The matrix must not depend on $p$, and for given $k$ there is only one.""",
    difficulty=3,
    minutes=20,
    stub='''\
def shift_matrix(offset, d_model):
    """(d_model, d_model): shift_matrix(k, d) @ pe[p] = pe[p + k] for every p."""
    raise NotImplementedError
''',
    hints=(
        "Take one pair of columns, sin a and cos a. After the step they are sin(a + b) and cos(a + b): what is b?",
        "The addition theorems write sin(a + b) as a sum of sin a and cos a, with two factors that depend on b only. "
        "These factors are a row of the matrix.",
        "Each pair gives a block of 2 × 2, and different pairs have nothing to do with each other: where do the "
        "blocks stand, and what stands elsewhere?",
        "`torch.block_diag` puts blocks along the diagonal; or write to slices with a step of 2 in both axes. To "
        "test, multiply with a row of the table and compare with the row `offset` further on.",
    ),
    reference=shift_matrix,
    shapes={},
    returns=("matrix",),
    look="positional_encoding: A shift is a rotation",
    differentiable=False,
)


@SHIFT.holds("It maps the code of every position p to the code of p + offset", weight=3)
def _(draw):
    yield Case(args=(1, 2), note="one pair, one step: cosine and sine of 1 in the first row")
    for d_model in (4, 6, 8):
        yield Case(args=(draw.choice([n for n in (2, 3, 5, 7) if n != d_model]), d_model))
    yield Case(args=(9, 10))
    yield Case(args=(3, 66), note="a wide model")


@SHIFT.holds("A negative offset goes back, and an offset of 0 changes nothing")
def _(draw):
    for d_model in (2, 4, 6):
        yield Case(args=(-draw.choice((1, 3, 5)), d_model), note="a negative offset")
    yield Case(args=(0, 8), note="no offset")


@SHIFT.holds("Far shifts are right, too")
def _(draw):
    yield Case(args=(100, 6), note="100 positions", tolerance=5)
    yield Case(args=(5003, 4), note="5,003 positions", tolerance=50)
    yield Case(args=(-5003, 8), note="5,003 positions back", tolerance=50)


def _turns(angle=_angle, block=lambda cos, sin: (cos, sin, -sin, cos)):
    """The matrix with other angles or other blocks of (cos, sin), row by row."""

    def matrix(offset, d_model):
        two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
        a = angle(torch.tensor(float(offset), dtype=torch.float64), two_i, d_model)
        blocks = torch.stack(block(a.cos(), a.sin()), dim=-1).view(-1, 2, 2)
        return torch.block_diag(*blocks).float()

    return matrix


def _in_halves(angle=_angle, sign=1):
    """Four diagonals, as for a table with all sines on the left."""

    def matrix(offset, d_model):
        two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
        a = angle(torch.tensor(float(offset), dtype=torch.float64), two_i, d_model)
        cos, sin = a.cos().diag(), sign * a.sin().diag()
        return torch.cat((torch.cat((cos, sin), 1), torch.cat((-sin, cos), 1))).float()

    return matrix


SHIFT.misconception(
    "turned_backwards",
    "It goes back by the offset instead of forward: the minus stands at the wrong sine, as if cosines came first or "
    "rows were columns. Write down sin(a + b) as the first row.",
)(_turns(block=lambda cos, sin: (cos, -sin, sin, cos)))
SHIFT.misconception(
    "minus_missing",
    "Both sines have a plus, so vectors change their length. How does the cosine of a sum differ from the sine of one?",
)(_turns(block=lambda cos, sin: (cos, sin, sin, cos)))
SHIFT.misconception(
    "minus_at_both_sines",
    "Both sines have a minus. One of the two addition theorems has a plus.",
)(_turns(block=lambda cos, sin: (cos, -sin, -sin, cos)))
SHIFT.misconception(
    "reflection",
    "The minus stands at a cosine: each block is a reflection, and an offset of 0 does not leave everything alone.",
)(_turns(block=lambda cos, sin: (cos, sin, sin, -cos)))
SHIFT.misconception(
    "sine_and_cosine_swapped",
    "Sine and cosine have changed places in the blocks. For an offset of 0 the matrix should be the identity.",
)(_turns(block=lambda cos, sin: (sin, cos, -cos, sin)))
SHIFT.misconception(
    "sine_on_the_diagonal",
    "The sines of the offset stand on the diagonal. For an offset of 0 the matrix should be the identity.",
)(_turns(block=lambda cos, sin: (sin, cos, cos, -sin)))
SHIFT.misconception(
    "cosines_only",
    "Only the diagonal is filled. The new sine needs the old cosine too: what do the addition theorems say?",
)(_turns(block=lambda cos, sin: (cos, 0 * cos, 0 * cos, cos)))
SHIFT.misconception(
    "halves",
    "The matrix fits a table with all sines on the left and all cosines on the right. Here sine and cosine take "
    "turns, so that partners are neighbours.",
)(_in_halves())
SHIFT.misconception(
    "halves_backwards",
    "The matrix fits a table with all sines on the left, and goes back by the offset. Here partners are neighbours; "
    "and mind which of the two sines has the minus.",
)(_in_halves(sign=-1))
SHIFT.misconception(
    "exponent_i",
    "The frequencies are not those of the table: they fall half as fast, with i over d_model in the exponent.",
)(_turns(_exponent(lambda two_i, d: two_i / 2 / d)))
SHIFT.misconception(
    "exponent_doubled",
    "The frequencies are not those of the table: they fall twice as fast, since a number that steps by 2 is doubled "
    "again.",
)(_turns(_exponent(lambda two_i, d: 2 * two_i / d)))
SHIFT.misconception(
    "exponent_sign",
    "The frequencies rise from pair to pair. Those of the table fall: the offset is divided by the power.",
)(_turns(lambda offset, two_i, d: offset * 10_000 ** (two_i / d)))
SHIFT.misconception(
    "same_angle",
    "Every pair turns by the offset itself. The pairs have different frequencies; how far does each turn in one step?",
)(_turns(lambda offset, two_i, d: offset + 0 * two_i))
SHIFT.misconception(
    "frequencies_reversed",
    "The blocks stand in the opposite order: the fastest pair comes first.",
)(_turns(lambda offset, two_i, d: _angle(offset, two_i.flip(0), d)))
SHIFT.misconception(
    "pairs_from_one",
    "The pairs are counted from 1, so that each block has the frequency of its neighbour. The first pair turns by one "
    "radian a position.",
)(_turns(_exponent(lambda two_i, d: (two_i + 2) / d)))
SHIFT.misconception(
    "last_exponent_is_one",
    "The frequencies are spread so that the last is exactly 1/10000. Those of the table have 2i over d_model in the "
    "exponent.",
)(_turns(_exponent(lambda two_i, d: two_i / 2 / max(len(two_i) - 1, 1))))
SHIFT.misconception(
    "base_e",
    "The frequencies fall by powers of e: 10,000 does not appear in them.",
)(_turns(lambda offset, two_i, d: offset * torch.exp(-two_i / d)))
SHIFT.misconception(
    "offset_ignored",
    "The matrix moves by one position, whatever the offset.",
)(_turns(lambda offset, two_i, d: _angle(1.0, two_i, d)))
SHIFT.misconception(
    "one_step_too_many",
    "It moves by one position more than asked.",
)(_turns(lambda offset, two_i, d: _angle(offset + 1, two_i, d)))
SHIFT.misconception(
    "absolute_offset",
    "A negative offset moves forward, too: its sign gets lost.",
)(_turns(lambda offset, two_i, d: _angle(offset.abs(), two_i, d)))
SHIFT.misconception(
    "degrees",
    "The angle is taken for degrees and converted. Sine and cosine of torch want radians, as in the table.",
)(_turns(lambda offset, two_i, d: _angle(offset, two_i, d).deg2rad()))
SHIFT.misconception(
    "full_turns",
    "The angle has a factor 2π too many: the table is made with radians.",
)(_turns(lambda offset, two_i, d: 2 * math.pi * _angle(offset, two_i, d)))
SHIFT.misconception(
    "power_of_the_quotient",
    "The power is taken of offset / 10000 as a whole. It belongs to the 10000 alone; a bracket is in the wrong place.",
)(_turns(lambda offset, two_i, d: (offset / 10_000) ** (two_i / d)))
SHIFT.misconception(
    "power_before_division",
    "`**` binds more strongly than `/`: 10000 is raised to 2i, and the power is divided by d_model. What belongs in "
    "the exponent needs brackets.",
)(_turns(lambda offset, two_i, d: offset * d / 10_000.0**two_i))
SHIFT.misconception(
    "first_pair_only",
    "Only the first pair is turned, and the others are left as they are, as with frequencies of zero. Every pair "
    "turns, each at its own rate; is 10,000 itself in the exponent of an `exp`?",
)(_turns(lambda offset, two_i, d: offset * (two_i == 0)))
SHIFT.misconception(
    "power_by_entry",
    "The entries of the matrix for one step are raised to a power, each alone. Taking a step k times is a power of "
    "the matrix.",
)(lambda offset, d_model: shift_matrix(1, d_model) ** offset)
SHIFT.misconception(
    "multiple_of_one_step",
    "The matrix for one step is multiplied by the offset. Taking a step k times multiplies the matrix with itself.",
)(lambda offset, d_model: shift_matrix(1, d_model) * offset)


@SHIFT.misconception(
    "one_frequency_a_row",
    "Every row has a frequency of its own: the number of the row stands in the exponent, odd numbers too. The sine "
    "and the cosine of a pair share one angle.",
)
def _(offset, d_model):
    angle = offset / 10_000 ** (torch.arange(d_model, dtype=torch.float64) / d_model)
    partner = torch.eye(d_model).unflatten(0, (-1, 2)).flip(1).flatten(0, 1)
    sign = torch.tensor([1.0, -1.0]).repeat(d_model // 2)
    return (angle.cos().diag() + (sign * angle.sin())[:, None] * partner).float()


@SHIFT.misconception(
    "features_rolled",
    "The matrix moves the features of a vector along. What has to move is the position that the features stand for.",
)
def _(offset, d_model):
    return torch.eye(d_model).roll(offset, 0)


@SHIFT.misconception(
    "features_rolled_back",
    "The matrix moves the features of a vector along, to the left. What has to move is the position that the features "
    "stand for.",
)
def _(offset, d_model):
    return torch.eye(d_model).roll(-offset, 0)


@SHIFT.misconception(
    "identity",
    "The matrix is the identity: it leaves every position where it is.",
)
def _(offset, d_model):
    return torch.eye(d_model)


def _codes(positions, d_model):
    # Row by row; negative positions too.
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = torch.as_tensor(positions)[..., None].double() / 10_000 ** (two_i / d_model)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)


SHIFT.misconception(
    "code_of_the_offset",
    "The code of one position comes back, a vector. What is asked for is the matrix that takes one code to another.",
)(lambda offset, d_model: _codes(offset, d_model).float())
SHIFT.misconception(
    "power_of_two_only",
    "`**` binds more strongly than `*`: 10000 is squared, and i / d_model is a factor beside it. What belongs in the "
    "exponent needs brackets.",
)(_turns(lambda offset, two_i, d: offset / (10_000.0**2 * two_i / 2 / d)))


@SHIFT.misconception(
    "one_position_only",
    "This takes the code of position 0 to the right place, and no other. The matrix has to do so for every p at once: "
    "think of one pair of features, and turn it.",
)
def _(offset, d_model):
    start, end = _codes(0, d_model), _codes(offset, d_model)
    return (end[:, None] * start / (start @ start)).float()


SHIFT.misconception(
    "outer_product",
    "This is an outer product of codes. Multiplied with the code of p it gives always the same direction, wherever p "
    "is.",
)(lambda offset, d_model: (_codes(offset, d_model)[:, None] * _codes(0, d_model)).float())
SHIFT.misconception(
    "codes_as_matrix",
    "A table of codes comes back, row by row. What is asked for is the matrix that turns one row of it into another.",
)(lambda offset, d_model: _codes(torch.arange(d_model) + offset, d_model).float())
SHIFT.misconception(
    "blocks_not_placed",
    "The blocks come back as a stack, (d_model / 2, 2, 2). They belong along the diagonal of one matrix.",
)(
    lambda offset, d_model: (
        shift_matrix(offset, d_model).view(d_model // 2, 2, -1, 2).diagonal(dim1=0, dim2=2).movedim(-1, 0)
    )
)
SHIFT.misconception(
    "other_dtype",
    "The values are right, the dtype is not: the matrix is to be float32. Compute in float64 if you like, and convert "
    "in the end.",
)(lambda offset, d_model: shift_matrix(offset, d_model).double())


# Rotary positions


def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    two_i = torch.arange(0, d, 2, dtype=torch.float64, device=x.device)  # (d / 2,)
    angle = positions[:, None] * base ** (-two_i / d)  # (L, d / 2), float64
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]  # (..., L, d / 2)
    turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1)  # (..., L, d / 2, 2)
    return turned.flatten(-2)  # (..., L, d)


ROTARY = Exercise(
    name="apply_rotary",
    twins=("transformers.apply_rotary_pos_emb", "transformers.apply_rotary_emb"),
    title="Rotary positions",
    statement="""\
Instead of adding a code to the embeddings, queries and keys can be *turned* by an angle that grows with their
position. The dot product of two turned vectors then depends on their distance only. Write the turning.

- `x` is `(..., L, d)` with even `d`, in float32 or float64. The dots stand for any number of batch dimensions, none
  included.
- `positions` is an int64 tensor `(L,)`: row $l$ of `x` stands at `positions[l]`. They are 0 or more, in any order,
  and need not start at 0: a model that writes token by token passes the place of the new token alone.
- The features go in pairs of neighbours, $(x_{2i}, x_{2i+1})$. Each pair is a point in the plane; turn it,
  anticlockwise, by the angle $\\text{position} \\cdot \\text{base}^{-2i/d}$:

$$\\begin{pmatrix} x'_{2i} \\\\ x'_{2i+1} \\end{pmatrix} =
\\begin{pmatrix} \\cos\\theta & -\\sin\\theta \\\\ \\sin\\theta & \\cos\\theta \\end{pmatrix}
\\begin{pmatrix} x_{2i} \\\\ x_{2i+1} \\end{pmatrix}.$$

- Return a new tensor of the shape and dtype of `x`; the turned features stand where they came from.

Compute the angles in the dtype of `x` or better. Far positions count: at position 5,000 float32 has to be right to
about 1e-3.""",
    difficulty=3,
    minutes=25,
    stub='''\
def apply_rotary(x, positions, base=10000.0):
    """Each pair of neighbours in x turned by position * base^(-2i / d)."""
    raise NotImplementedError
''',
    hints=(
        "Begin with the angles: one for each position and each pair, so a matrix `(L, d / 2)`. How does it line up "
        "with `(..., L, d / 2)`?",
        "A slice with a step of 2 along the last axis gives all first partners, another one all second partners. "
        "Write out the two rows of the matrix product with them.",
        "Both new partners need both old ones: keep the old ones until both are computed.",
        "Stack the two results along a new last axis and flatten the last two axes: then partners are neighbours "
        "again. What would `cat` do to their order?",
    ),
    reference=apply_rotary,
    shapes={"x": "... length d", "positions": "length"},
    returns=("turned",),
    look="positional_encoding: Rotary positions",
)


def _rows(draw: Draw, d: int, batch=(), dtype=torch.float32):
    (length,) = draw.sizes(1, 3, 9, but=(d, *batch))
    return draw.normal(*batch, length, d, dtype=dtype)


def _in_order(x: Tensor) -> Tensor:
    return torch.arange(x.shape[-2])


@ROTARY.holds("Each pair of neighbours (x_2i, x_2i+1) is turned by position · base^(−2i / d)", weight=3)
def _(draw):
    yield Case(
        args=(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 1])),
        edge="the smallest case, to be read by eye: (1, 0) at position 1 becomes cosine and sine of 1",
    )
    for d in (4, 6, 8):
        x = _rows(draw, d)
        yield Case(args=(x, _in_order(x)), note="positions 0, 1, 2, …")


@ROTARY.holds("It works with zero, one or two batch dimensions, in float32 and float64")
def _(draw):
    for dtype in (torch.float32, torch.float64):
        d = draw.choice((4, 6))
        for batch in draw.batches(but=(d,)):
            x = _rows(draw, d, batch, dtype)
            yield Case(args=(x, _in_order(x)), note=f"batch dimensions: {len(batch)}")
    x = draw.normal(2, 3, 5, 7, 4)
    yield Case(args=(x, _in_order(x)), note="batch dimensions: 3")


@ROTARY.holds("The angles depend on the given positions, in any order and starting anywhere", weight=2)
def _(draw):
    for dtype in (torch.float32, torch.float32, torch.float64):
        x = draw.normal(7, 5, 4, dtype=dtype)
        yield Case(args=(x, torch.tensor([11, 2, 7, 3, 5])), note="positions 11, 2, 7, 3, 5")
    x = draw.normal(2, 3, 8)
    yield Case(args=(x, torch.tensor([6, 7, 8])), note="positions 6, 7, 8")
    x = draw.normal(2, 5, 4)
    yield Case(args=(x, torch.tensor([3, 0, 3, 3, 8])), note="positions 3, 0, 3, 3, 8: one of them three times")
    yield Case(
        args=(draw.normal(3, 1, 4), torch.tensor([9])), note="one row, at position 9", edge="a length of one on purpose"
    )


@ROTARY.holds("The given base is used")
def _(draw):
    for base in (100.0, 500_000.0):
        x = _rows(draw, 6, (2,))
        yield Case(args=(x, _in_order(x), base), note=f"base {base:,.0f}")
    x = _rows(draw, 4, dtype=torch.float64)
    yield Case(args=(x, _in_order(x) + 2, 12.5), note="base 12.5")


@ROTARY.holds("Far positions are right, too")
def _(draw):
    x = draw.normal(2, 3, 4)
    yield Case(args=(x, torch.tensor([4999, 5000, 5001])), note="positions about 5,000", tolerance=50)
    x = draw.normal(2, 3, 6)
    yield Case(args=(x, torch.tensor([5000, 70, 600])), note="positions up to 5,000", tolerance=50)
    x = draw.normal(2, 3, 6, dtype=torch.float64)
    yield Case(args=(x, torch.tensor([5000, 70, 100_000])), note="positions up to 100,000, in float64")


def _turn(even, odd, cos, sin):
    return even * cos - odd * sin, even * sin + odd * cos


def _neighbours(x):
    return x[..., 0::2], x[..., 1::2]


def _split(x):
    return x.chunk(2, dim=-1)


def _beside(first, second):
    return torch.stack((first, second), dim=-1).flatten(-2)


def _behind(first, second):
    return torch.cat((first, second), dim=-1)


def _rotary_angle(position, two_i, d, base):
    return position * base ** (-two_i / d)


def _rotary(angle=_rotary_angle, turn=_turn, split=_neighbours, join=_beside):
    """The turning with one step exchanged; `position` is (L, 1), in float64."""

    def rotary(x, positions, base=10000.0):
        two_i = torch.arange(0, x.shape[-1], 2, dtype=torch.float64)
        a = angle(positions[:, None].double(), two_i, x.shape[-1], base)
        return join(*turn(*split(x), a.cos().to(x.dtype), a.sin().to(x.dtype)))

    return rotary


def _by_feature(angle, partner):
    """x · cos + partner(x) · sin with an angle for each feature."""

    def rotary(x, positions, base=10000.0):
        a = angle(positions[:, None].double(), torch.arange(x.shape[-1]).double(), x.shape[-1], base)
        return x * a.cos().to(x.dtype) + partner(x) * a.sin().to(x.dtype)

    return rotary


def _partner_beside(x):
    even, odd = _neighbours(x)
    return _beside(-odd, even)


def _partner_half_way(x):
    first, second = _split(x)
    return _behind(-second, first)


def _pairwise(position, j, d, base):
    return position * base ** (-(j - j % 2) / d)


def _side_by_side(position, j, d, base):
    return position * base ** (-2 * (j % (d // 2)) / d)


# Which features are partners

ROTARY.misconception(
    "partners_half_way",
    "Feature i is turned with feature i + d/2, as some libraries do it. Here the partners are neighbours.",
)(_rotary(split=_split, join=_behind))
ROTARY.misconception(
    "partners_half_way_backwards",
    "Feature i is turned with feature i + d/2, and clockwise. Here the partners are neighbours, and the other one of "
    "the two sines has the minus.",
)(_rotary(split=_split, join=_behind, turn=lambda even, odd, cos, sin: _turn(even, odd, cos, -sin)))
ROTARY.misconception(
    "split_in_halves_joined_by_turns",
    "The partners are taken from the two halves and then put side by side, so the features change places. At position "
    "0 nothing should change.",
)(_rotary(split=_split))
ROTARY.misconception(
    "joined_in_halves",
    "The turned features come back in another order: all first partners, then all second ones. At position 0 nothing "
    "should change.",
)(_rotary(join=_behind))
ROTARY.misconception(
    "partners_exchanged",
    "The two partners of each pair come back in each other's place. At position 0 nothing should change.",
)(_rotary(join=lambda first, second: _beside(second, first)))
ROTARY.misconception(
    "partners_half_way_angles_of_neighbours",
    "The angles belong to neighbours, the partners are taken d/2 apart: two conventions are mixed. Here partners are "
    "neighbours.",
)(_by_feature(_pairwise, _partner_half_way))
ROTARY.misconception(
    "angles_of_halves",
    "The angles are laid out twice, one list behind the other, while the partners are neighbours: two features of a "
    "pair turn by different angles. Two conventions are mixed.",
)(_by_feature(_side_by_side, _partner_beside))
ROTARY.misconception(
    "one_angle_a_feature",
    "Every feature has an angle of its own. The two partners of a pair turn by the same angle; which i belongs to "
    "feature 3?",
)(_by_feature(lambda position, j, d, base: position * base ** (-j / d), _partner_beside))
ROTARY.misconception(
    "one_angle_a_feature_doubled",
    "The exponent of feature j is 2j / d: 2i *is* the number of the feature already, and both partners of a pair turn "
    "by the same angle.",
)(_by_feature(lambda position, j, d, base: position * base ** (-2 * j / d), _partner_beside))
ROTARY.misconception(
    "no_partner",
    "Each feature is multiplied by cosine plus sine of its angle, and never meets its partner. A rotation mixes the "
    "two.",
)(_by_feature(_pairwise, lambda x: x))
ROTARY.misconception(
    "partners_shifted_by_one",
    "The partner of every feature is its neighbour on one side. Pairs do not overlap: features 0 and 1, then 2 and 3.",
)(_by_feature(_pairwise, lambda x: -x.roll(-1, -1)))
ROTARY.misconception(
    "partner_without_minus",
    "The partners are exchanged and both added with a plus: vectors change their length. One of the two needs a minus.",
)(_rotary(turn=lambda even, odd, cos, sin: (even * cos + odd * sin, even * sin + odd * cos)))

# How a pair is turned

ROTARY.misconception(
    "turned_clockwise",
    "The pairs turn clockwise: the minus stands at the other sine, or the matrix is transposed. Where does (1, 0) go "
    "at a small angle?",
)(_rotary(turn=lambda even, odd, cos, sin: _turn(even, odd, cos, -sin)))
ROTARY.misconception(
    "minus_twice",
    "Both sines have a minus, so vectors change their length. Look at the second row of the matrix.",
)(_rotary(turn=lambda even, odd, cos, sin: (even * cos - odd * sin, odd * cos - even * sin)))
ROTARY.misconception(
    "minus_at_the_cosine",
    "A cosine has the minus: each pair is mirrored instead of turned. At position 0 nothing should change.",
)(_rotary(turn=lambda even, odd, cos, sin: (even * cos + odd * sin, even * sin - odd * cos)))
ROTARY.misconception(
    "sine_and_cosine_swapped",
    "Sine and cosine have changed places. At position 0 nothing should change.",
)(_rotary(turn=lambda even, odd, cos, sin: _turn(even, odd, sin, cos)))
ROTARY.misconception(
    "cosines_only",
    "Every feature is multiplied by a cosine, and that is all: the partner does not come in.",
)(_rotary(turn=lambda even, odd, cos, sin: (even * cos, odd * cos)))
ROTARY.misconception(
    "cosine_for_one_sine_for_the_other",
    "The first partner is multiplied by the cosine, the second by the sine. Both are needed in both: see the matrix.",
)(_rotary(turn=lambda even, odd, cos, sin: (even * cos, odd * sin)))
ROTARY.misconception(
    "cosine_taken_twice",
    "In the second row the first partner is used with the cosine, the second with the sine. Which entries has the "
    "second row of the matrix?",
)(_rotary(turn=lambda even, odd, cos, sin: (even * cos - odd * sin, even * cos + odd * sin)))
ROTARY.misconception(
    "first_partner_overwritten",
    "The second partner is computed from the *new* first one. Keep the old values until both are computed; a slice "
    "keeps nothing, it shows what now stands in x.",
)(_rotary(turn=lambda even, odd, cos, sin: ((new := even * cos - odd * sin), new * sin + odd * cos)))
ROTARY.misconception(
    "second_partner_overwritten",
    "The first partner is computed from the *new* second one. Keep the old values until both are computed.",
)(
    _rotary(
        turn=lambda even, odd, cos, sin: (even * cos - (even * sin + odd * cos) * sin, even * sin + odd * cos),
    )
)
ROTARY.misconception(
    "second_partners_unchanged",
    "Only the first partner of each pair is turned; the second stays as it was.",
)(_rotary(turn=lambda even, odd, cos, sin: (even * cos - odd * sin, odd)))
ROTARY.misconception(
    "added_instead_of_turned",
    "Sine and cosine are *added* to x. Rotary positions turn x; nothing is added.",
)(_rotary(turn=lambda even, odd, cos, sin: (even + sin, odd + cos)))
ROTARY.misconception(
    "x_kept",
    "The turned x is added to x. It takes the place of x.",
)(lambda x, positions, base=10000.0: x + apply_rotary(x, positions, base))
ROTARY.misconception(
    "first_pair_only",
    "Only the first pair is turned. All pairs are, each at its own rate.",
)(_rotary(lambda position, two_i, d, base: position * (two_i == 0)))

# Angles

ROTARY.misconception(
    "exponent_i",
    "The rates fall half as fast as they should: i / d stands in the exponent. Over all pairs it should run from 0 to "
    "nearly −1.",
)(_rotary(lambda position, two_i, d, base: position * base ** (-two_i / 2 / d)))
ROTARY.misconception(
    "exponent_doubled",
    "The rates fall twice as fast as they should: a number that steps by 2 already is doubled again, or divided by "
    "half the width.",
)(_rotary(lambda position, two_i, d, base: position * base ** (-2 * two_i / d)))
ROTARY.misconception(
    "exponent_sign",
    "The rates rise from pair to pair. The exponent is negative: the first pair is the fastest.",
)(_rotary(lambda position, two_i, d, base: position * base ** (two_i / d)))
ROTARY.misconception(
    "same_rate",
    "All pairs turn at the same rate. Is there an integer division in the exponent, which gives 0, or is the exponent "
    "missing?",
)(_rotary(lambda position, two_i, d, base: position + 0 * two_i))
ROTARY.misconception(
    "exponent_rounded_down",
    "The exponent is rounded down to −1 for every pair but the first: `//` divides like integers.",
)(_rotary(lambda position, two_i, d, base: position * base ** (-two_i // d)))
ROTARY.misconception(
    "rates_reversed",
    "The rates stand in the opposite order: the slowest pair comes first.",
)(_rotary(lambda position, two_i, d, base: _rotary_angle(position, two_i.flip(0), d, base)))
ROTARY.misconception(
    "pairs_from_one",
    "The pairs are counted from 1, so that even the first turns more slowly than one radian a position.",
)(_rotary(lambda position, two_i, d, base: position * base ** (-(two_i + 2) / d)))
ROTARY.misconception(
    "last_exponent_is_one",
    "The rates are spread so that the last is exactly 1 / base. The exponent is −2i over the whole width.",
)(_rotary(lambda position, two_i, d, base: position * base ** (-two_i / max(d - 2, 1))))
ROTARY.misconception(
    "exponent_over_the_length",
    "2i is divided by the length of the sequence. The exponent is a share of the width d; which axis of x is that?",
)(_rotary(lambda position, two_i, d, base: position * base ** (-two_i / len(position))))
ROTARY.misconception(
    "base_ignored",
    "The base is 10,000 whatever is passed.",
)(_rotary(lambda position, two_i, d, base: position * 10_000 ** (-two_i / d)))
ROTARY.misconception(
    "base_e",
    "The rates fall by powers of e: the base does not appear in them. A power of the base written with `exp` needs a "
    "factor in its exponent.",
)(_rotary(lambda position, two_i, d, base: position * torch.exp(-two_i / d)))
ROTARY.misconception(
    "power_of_the_product",
    "The power is taken of position / base as a whole. It belongs to the base alone; a bracket is in the wrong place.",
)(_rotary(lambda position, two_i, d, base: (position / base) ** (two_i / d)))
ROTARY.misconception(
    "power_before_division",
    "`**` binds more strongly than `/`: the base is raised to −2i, and the power is divided by d. What belongs in the "
    "exponent needs brackets.",
)(_rotary(lambda position, two_i, d, base: position * base ** (-two_i) / d))
ROTARY.misconception(
    "power_before_division_below",
    "`**` binds more strongly than `/`: the base is raised to 2i, the power divided by d, and the position by that. "
    "What belongs in the exponent needs brackets.",
)(_rotary(lambda position, two_i, d, base: position * d / base**two_i))
ROTARY.misconception(
    "power_of_minus_two_only",
    "`**` binds more strongly than `*`: the base is raised to −2, and i / d is a factor beside it. What belongs in "
    "the exponent needs brackets.",
)(_rotary(lambda position, two_i, d, base: position * base**-2 * two_i / 2 / d))
ROTARY.misconception(
    "degrees",
    "The angle is taken for degrees and converted. Sine and cosine of torch want radians, and the formula gives them.",
)(_rotary(lambda position, two_i, d, base: _rotary_angle(position, two_i, d, base).deg2rad()))
ROTARY.misconception(
    "full_turns",
    "The angle has a factor 2π too many: the formula gives radians, not turns.",
)(_rotary(lambda position, two_i, d, base: 2 * math.pi * _rotary_angle(position, two_i, d, base)))

# Positions

ROTARY.misconception(
    "positions_ignored",
    "The rows are numbered 0, 1, 2, … whatever `positions` says. A token that is written alone stands somewhere, too.",
)(lambda x, positions, base=10000.0: apply_rotary(x, torch.arange(x.shape[-2]), base))
ROTARY.misconception(
    "positions_from_one",
    "Every position is taken for the next one: 1 is added somewhere. Position 0 should leave x as it is.",
)(_rotary(lambda position, two_i, d, base: _rotary_angle(position + 1, two_i, d, base)))
ROTARY.misconception(
    "positions_from_the_first",
    "Positions are counted from the first one that is given. They are places in the whole sequence, not in this piece.",
)(_rotary(lambda position, two_i, d, base: _rotary_angle(position - position[0], two_i, d, base)))
ROTARY.misconception(
    "positions_sorted",
    "The positions are put in rising order. They belong to the rows of x in the order in which they come.",
)(_rotary(lambda position, two_i, d, base: _rotary_angle(position.sort(0).values, two_i, d, base)))
ROTARY.misconception(
    "position_missing",
    "Every row turns by the same angles: the position does not come in.",
)(_rotary(lambda position, two_i, d, base: _rotary_angle(1 + 0 * position, two_i, d, base)))
ROTARY.misconception(
    "positions_are_an_index",
    "The positions are used to pick rows out of a table that is as long as x. They may be larger than its length: "
    "compute the angles from them.",
)(
    lambda x, positions, base=10000.0: _rotary(
        lambda position, two_i, d, base: _rotary_angle(torch.arange(len(position))[:, None], two_i, d, base)[positions]
    )(x, positions, base)
)


def _from_rows(longest):
    return _rotary(
        lambda position, two_i, d, base: _rotary_angle(torch.arange(longest)[:, None], two_i, d, base)[
            position[:, 0].long()
        ]
    )


ROTARY.misconception(
    "table_of_fixed_length",
    "Angles are looked up in a table of fixed length, and a position lies past its end. There is no upper bound: "
    "compute the angles of the positions that are given.",
)(_from_rows(2048))
ROTARY.misconception(
    "table_of_ten_thousand",
    "Angles are looked up in a table of some thousand rows, and a position lies past its end. There is no upper bound: "
    "compute the angles of the positions that are given.",
)(_from_rows(10_000))


@ROTARY.misconception(
    "positions_changed",
    "The result is right, but `positions` was changed, which belongs to the caller. What is computed from it needs a "
    "tensor of its own.",
)
def _(x, positions, base=10000.0):
    turned = apply_rotary(x, positions, base)
    positions += 1
    return turned


@ROTARY.misconception(
    "angle_as_length",
    "The angle is used as the length of a complex number and 1 as its angle: `torch.polar` takes the length first.",
)
def _(x, positions, base=10000.0):
    two_i = torch.arange(0, x.shape[-1], 2, dtype=torch.float64)
    a = _rotary_angle(positions[:, None].double(), two_i, x.shape[-1], base)
    return _beside(*_turn(*_neighbours(x), (a * math.cos(1)).to(x.dtype), (a * math.sin(1)).to(x.dtype)))


ROTARY.misconception(
    "split_in_halves_and_exponent_i",
    "Two things: feature i is turned with feature i + d/2, where partners should be neighbours; and i / d is the "
    "exponent, so the rates fall half as fast as they should.",
)(_rotary(lambda position, two_i, d, base: position * base ** (-two_i / 2 / d), split=_split, join=_behind))
ROTARY.misconception(
    "clockwise_and_exponent_i",
    "Two things: the pairs turn clockwise, and i / d is the exponent, so the rates fall half as fast as they should.",
)(
    _rotary(
        lambda position, two_i, d, base: position * base ** (-two_i / 2 / d),
        turn=lambda even, odd, cos, sin: _turn(even, odd, cos, -sin),
    )
)
ROTARY.misconception(
    "clockwise_and_positions_ignored",
    "Two things: the pairs turn clockwise, and the rows are numbered 0, 1, 2, … whatever `positions` says.",
)(
    _rotary(
        lambda position, two_i, d, base: _rotary_angle(torch.arange(len(position))[:, None].double(), two_i, d, base),
        turn=lambda even, odd, cos, sin: _turn(even, odd, cos, -sin),
    )
)
# Axes

ROTARY.misconception(
    "length_axis_first",
    "The angles have an axis too many between length and features, so that positions line up with the batch. Counted "
    "from the right, where are length and features of x?",
)(_rotary(lambda position, two_i, d, base: _rotary_angle(position, two_i, d, base)[:, None]))


@ROTARY.misconception(
    "one_batch_dimension_only",
    "The shape of x is unpacked into three names, which fits one batch dimension only. Count axes from the right.",
)
def _(x, positions, base=10000.0):
    _batch, _length, _d = x.shape
    return apply_rotary(x, positions, base)


@ROTARY.misconception(
    "two_batch_dimensions_only",
    "The shape of x is unpacked into four names, as for batch and heads. There may be fewer or none. Count axes from "
    "the right.",
)
def _(x, positions, base=10000.0):
    _batch, _heads, _length, _d = x.shape
    return apply_rotary(x, positions, base)


@ROTARY.misconception(
    "no_batch_dimension_only",
    "The shape of x is unpacked into two names, which leaves no room for a batch. Count axes from the right.",
)
def _(x, positions, base=10000.0):
    _length, _d = x.shape
    return apply_rotary(x, positions, base)


@ROTARY.misconception(
    "always_one_batch_dimension",
    "The result has a batch axis of length one that x did not have.",
)
def _(x, positions, base=10000.0):
    turned = apply_rotary(x, positions, base)
    return turned if turned.dim() > 2 else turned[None]


@ROTARY.misconception(
    "always_two_batch_dimensions",
    "The result has batch axes of length one that x did not have: the angles are given axes for batch and heads. They "
    "line up from the right without.",
)
def _(x, positions, base=10000.0):
    turned = apply_rotary(x, positions, base)
    return turned[(None,) * max(0, 4 - x.dim())]


@ROTARY.misconception(
    "pairs_not_flattened",
    "The pairs keep an axis of their own, (..., L, d / 2, 2). The result has the shape of x.",
)
def _(x, positions, base=10000.0):
    return apply_rotary(x, positions, base).unflatten(-1, (-1, 2))


# Dtypes, gradients and manners


@ROTARY.misconception(
    "float32_angles",
    "The angles are float32 even if x is float64, so that the result is as inexact as float32. A tensor made inside "
    "has the default dtype unless it is told another.",
)
def _(x, positions, base=10000.0):
    d = x.shape[-1]
    angle = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    return _beside(*_turn(*_neighbours(x), angle.cos(), angle.sin()))


@ROTARY.misconception(
    "float32_exponential",
    "The rates are an exponential in float32 even if x is float64, so that the result is as inexact as float32. Which "
    "dtype has the tensor in the exponent?",
)
def _(x, positions, base=10000.0):
    d = x.shape[-1]
    angle = positions[:, None] * torch.exp(torch.arange(0, d, 2).float() * (-math.log(base) / d))
    return _beside(*_turn(*_neighbours(x), angle.cos(), angle.sin()))


@ROTARY.misconception(
    "float32_throughout",
    "x and the angles are float32 for the computation, and the result is turned back to the dtype of x: what float64 "
    "has more is lost on the way.",
)
def _(x, positions, base=10000.0):
    d = x.shape[-1]
    angle = positions[:, None] * base ** (-torch.arange(0, d, 2) / d)
    return _beside(*_turn(*_neighbours(x.float()), angle.cos(), angle.sin())).to(x.dtype)


@ROTARY.misconception(
    "complex64_throughout",
    "The turning is done with complex numbers of two float32, whatever x is, so that the result is as inexact as "
    "float32. Complex numbers of two float64 exist, too.",
)
def _(x, positions, base=10000.0):
    d = x.shape[-1]
    angle = torch.outer(positions.float(), 1.0 / base ** (torch.arange(0, d, 2).float() / d))
    points = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(points * torch.polar(torch.ones_like(angle), angle)).flatten(-2).to(x.dtype)


@ROTARY.misconception(
    "float32_in_between",
    "x is made float32 for the computation and then turned back: what float64 has more is lost on the way.",
)
def _(x, positions, base=10000.0):
    return apply_rotary(x.float(), positions, base).to(x.dtype)


ROTARY.misconception(
    "float32_result",
    "The result is float32 whatever x is. The dtype of x is kept.",
)(lambda x, positions, base=10000.0: apply_rotary(x, positions, base).float())
ROTARY.misconception(
    "float64_result",
    "The result is float64 whatever x is: angles in float64 are fine, but cosine and sine have to come back to the "
    "dtype of x before they meet it.",
)(lambda x, positions, base=10000.0: apply_rotary(x.double(), positions, base))
ROTARY.misconception(
    "detached",
    "The values are right, but no gradient flows back to x: the way through it is cut.",
)(lambda x, positions, base=10000.0: apply_rotary(x.detach(), positions, base))
ROTARY.misconception(
    "numpy_result",
    "A NumPy array comes back. It has to be a tensor, and NumPy lets no gradient through.",
)(lambda x, positions, base=10000.0: apply_rotary(x, positions, base).numpy())


@ROTARY.misconception(
    "in_place",
    "The result is right, but x itself was changed, which belongs to the caller. A slice is a view: to write to it "
    "writes to x.",
)
def _(x, positions, base=10000.0):
    x[...] = apply_rotary(x.clone(), positions, base)
    return x


# ALiBi


def alibi_bias(num_heads, length):
    head = torch.arange(1, num_heads + 1, dtype=torch.float64)  # h + 1
    slope = 2 ** (-8 * head / num_heads)  # (H,)
    position = torch.arange(length)
    distance = (position[:, None] - position).abs()  # (L, L)
    return (-slope[:, None, None] * distance).float()  # (H, L, L)


ALIBI = Exercise(
    name="alibi_bias",
    twins=("transformers.build_alibi_tensor", "transformers.build_mpt_alibi_tensor"),
    title="A penalty on distance",
    statement="""\
ALiBi adds nothing to the embeddings. It lowers each score in proportion to the distance between query and key, in
each head at a rate of its own: a steep head looks close by, a flat one far. Compute what is added to the scores:

$$\\mathrm{bias}[h, i, j] = -\\,\\mathrm{slope}_h \\cdot |i - j|, \\qquad
\\mathrm{slope}_h = 2^{-8(h+1)/H}, \\qquad h = 0, \\dots, H-1.$$

- `num_heads` is $H$, a power of two (1 included); `length` is the number of positions $L$, both for queries and keys.
- Return a float32 tensor `(H, L, L)`, so that it broadcasts against scores `(B, H, L, L)`.

It is the same on both sides of the diagonal: no mask is built in.""",
    difficulty=2,
    minutes=10,
    stub='''\
def alibi_bias(num_heads, length):
    """(H, L, L), float32: -slope_h * |i - j| with slope_h = 2^(-8 (h + 1) / H)."""
    raise NotImplementedError
''',
    hints=(
        "Two things that do not depend on each other: a slope for each head, `(H,)`, and a distance for each pair of "
        "positions, `(L, L)`.",
        "A column of positions minus a row of positions is the matrix of all differences i − j.",
        "To give each head its own copy of the distances, the slopes need two more axes. With 8 heads the slopes are "
        "1/2, 1/4, …, 1/256: do yours agree?",
    ),
    reference=alibi_bias,
    shapes={},
    returns=("bias",),
    look="positional_encoding: A penalty on distance",
    differentiable=False,
)


@ALIBI.holds("With 8 heads the slopes are 1/2, 1/4, …, 1/256, and the score falls with the distance |i − j|", weight=2)
def _(draw):
    for length in (2, *draw.sizes(2, 3, 7)):
        yield Case(args=(8, length), note="8 heads")


@ALIBI.holds("With any other power of two the slopes are 2^(−8 (h + 1) / H)", weight=2)
def _(draw):
    for num_heads in (2, 4, 16):
        (length,) = draw.sizes(1, 3, 9, but=(num_heads,))
        yield Case(args=(num_heads, length), note=f"{num_heads} heads")
    yield Case(args=(1, 3), note="one head: slope 1/256")
    yield Case(args=(64, 3), note="64 heads")
    yield Case(args=(4, 1), note="one position")


@ALIBI.holds("The bias keeps falling in proportion to the distance, however far the key is")
def _(draw):
    yield Case(args=(2, 40), note="40 positions")
    yield Case(args=(4, 30), note="30 positions")


def _bias(slope=None, distance=None, join=None):
    """The bias with one step exchanged: slope(h + 1, H, L) and distance(i − j)."""

    def bias(num_heads, length):
        head, position = torch.arange(1, num_heads + 1).double(), torch.arange(length).double()
        slopes = 2 ** (-8 * head / num_heads) if slope is None else slope(head, num_heads, length)
        difference = position[:, None] - position
        distances = difference.abs() if distance is None else distance(difference)
        if join is not None:
            return join(slopes, distances).float()
        return (-slopes[:, None, None] * distances).float()

    return bias


ALIBI.misconception(
    "future_masked",
    "The future is −∞: a causal mask is built in. The contract asks for the penalty alone; a mask is a matter of its "
    "own.",
)(_bias(distance=lambda difference: difference.masked_fill(difference < 0, float("inf"))))
ALIBI.misconception(
    "plus",
    "The scores rise with the distance: the minus is missing. Which keys should lose?",
)(_bias(distance=lambda difference: -difference.abs()))
ALIBI.misconception(
    "signed_distance",
    "The distance has a sign, so keys on one side of the query are lowered, those on the other raised. A distance is "
    "never negative.",
)(_bias(distance=lambda difference: difference))
ALIBI.misconception(
    "signed_distance_other_way",
    "The distance has a sign: the past is raised, the future lowered. A distance is never negative.",
)(_bias(distance=lambda difference: -difference))
ALIBI.misconception(
    "future_not_lowered",
    "The future is left at 0, as if a causal mask came after it anyway. Here both sides of the diagonal are the same.",
)(_bias(distance=lambda difference: difference.clamp(min=0)))
ALIBI.misconception(
    "past_not_lowered",
    "The past is left at 0, only the future is lowered. Here both sides of the diagonal are the same.",
)(_bias(distance=lambda difference: (-difference).clamp(min=0)))
ALIBI.misconception(
    "distance_to_the_first",
    "Each key is lowered by its own position, whoever asks. What counts is its distance from the query.",
)(_bias(distance=lambda difference: -difference[:1].expand_as(difference)))
ALIBI.misconception(
    "distance_to_the_last",
    "Each key is lowered by its distance from the last position, whoever asks. What counts is its distance from the "
    "query.",
)(_bias(distance=lambda difference: difference[-1:].expand_as(difference)))
ALIBI.misconception(
    "position_of_the_key_added",
    "Each key is raised by its own position. In a softmax that can stand for the distance to earlier keys; the "
    "contract asks for −slope times |i − j| itself.",
)(_bias(distance=lambda difference: difference[:1].expand_as(difference)))
ALIBI.misconception(
    "distance_squared",
    "The penalty grows with the square of the distance. It is in proportion to the distance.",
)(_bias(distance=lambda difference: difference**2))
ALIBI.misconception(
    "distance_plus_one",
    "The distance is one too large everywhere. How far is a token from itself?",
)(_bias(distance=lambda difference: difference.abs() + 1))
ALIBI.misconception(
    "distance_by_length",
    "The distance is divided by the length, so that the penalty depends on how long the sequence is. It is a number "
    "of tokens.",
)(_bias(distance=lambda difference: difference.abs() / len(difference)))
ALIBI.misconception(
    "heads_from_zero",
    "The exponents are counted from 0, so that the first head has slope 1. The formula has h + 1.",
)(_bias(lambda head, num_heads, length: 2 ** (-8 * (head - 1) / num_heads)))
ALIBI.misconception(
    "slopes_of_eight_heads",
    "The slopes are 1/2, 1/4, 1/8, … for any number of heads. That is right for 8 heads: the last slope is 1/256 "
    "always.",
)(_bias(lambda head, num_heads, length: 2**-head))
ALIBI.misconception(
    "eight_missing",
    "The 8 of the exponent is missing: the last slope should be 1/256.",
)(_bias(lambda head, num_heads, length: 2 ** (-head / num_heads)))
ALIBI.misconception(
    "heads_reversed",
    "The slopes stand in the opposite order: the first head is the steepest.",
)(_bias(lambda head, num_heads, length: (2 ** (-8 * head / num_heads)).flip(0)))
ALIBI.misconception(
    "slopes_in_even_steps",
    "The slopes rise in even steps, (h + 1) / H. They are powers of 2, each head's a fixed factor below the last.",
)(_bias(lambda head, num_heads, length: head / num_heads))
ALIBI.misconception(
    "multiples_of_the_first_slope",
    "The slopes are multiples of the first one. They are its *powers*: the exponent grows from head to head.",
)(_bias(lambda head, num_heads, length: head * 2 ** (-8 / num_heads)))
ALIBI.misconception(
    "exponent_positive",
    "The slopes grow from head to head, far beyond 1: the exponent has lost its minus, or the distance is divided by "
    "the slope.",
)(_bias(lambda head, num_heads, length: 2 ** (8 * head / num_heads)))
ALIBI.misconception(
    "exponent_over_heads",
    "The number of the head stands below the line, as in 8 / (h + 1), so that the slopes rise. It belongs above the "
    "line, and H below.",
)(_bias(lambda head, num_heads, length: 2 ** (-8 / head)))
ALIBI.misconception(
    "power_of_minus_eight_only",
    "`**` binds more strongly than `*`: 2 is raised to −8, and (h + 1) / H is a factor beside it. What belongs in the "
    "exponent needs brackets.",
)(_bias(lambda head, num_heads, length: 2**-8 * head / num_heads))
ALIBI.misconception(
    "power_before_division",
    "`**` binds more strongly than `/`: 2 is raised to −8 (h + 1), and the power is divided by H. What belongs in the "
    "exponent needs brackets.",
)(_bias(lambda head, num_heads, length: 2 ** (-8 * head) / num_heads))
ALIBI.misconception(
    "exponent_rounded_down",
    "The exponents are rounded to whole numbers by `//`. With 16 heads every other one is a half.",
)(_bias(lambda head, num_heads, length: 2 ** (-8 * head // num_heads)))
ALIBI.misconception(
    "eight_by_heads_rounded_down",
    "8 // H is rounded down to 0 for more than 8 heads, so that all slopes are 1.",
)(_bias(lambda head, num_heads, length: 2 ** (-(8 // num_heads) * head)))
ALIBI.misconception(
    "base_e",
    "The slopes are powers of e. They are powers of 2.",
)(_bias(lambda head, num_heads, length: torch.exp(-8 * head / num_heads)))
ALIBI.misconception(
    "same_slope",
    "All heads have the same slope. Each has its own; the number of the head belongs in the exponent.",
)(_bias(lambda head, num_heads, length: 2 ** (-8 / num_heads) + 0 * head))
ALIBI.misconception(
    "slope_one",
    "The distances are not multiplied by a slope.",
)(_bias(lambda head, num_heads, length: 1 + 0 * head))
ALIBI.misconception(
    "slope_by_length",
    "The exponent is divided by the length of the sequence. It is a share of the heads.",
)(_bias(lambda head, num_heads, length: 2 ** (-8 * head / length)))
ALIBI.misconception(
    "sum_of_positions",
    "The penalty grows with the sum of the two positions. What counts is how far they are apart.",
)(_bias(distance=lambda difference: difference[:, :1] - difference[:1]))
ALIBI.misconception(
    "base_and_exponent_exchanged",
    "Base and exponent have changed places: 8 is raised to a power of 2. The slopes are powers of 2, with the 8 in the "
    "exponent.",
)(_bias(lambda head, num_heads, length: 8 ** (-2 * head / num_heads)))
ALIBI.misconception(
    "plus_and_heads_from_zero",
    "Two things: the minus is missing, so the scores rise with the distance; and the exponents are counted from 0.",
)(_bias(lambda head, num_heads, length: -(2 ** (-8 * (head - 1) / num_heads))))
ALIBI.misconception(
    "signed_and_heads_from_zero",
    "Two things: the distance has a sign, so one side of the diagonal is raised; and the exponents are counted from 0.",
)(_bias(lambda head, num_heads, length: 2 ** (-8 * (head - 1) / num_heads), lambda difference: difference))
ALIBI.misconception(
    "future_masked_and_heads_from_zero",
    "Two things: a causal mask is built in, and the exponents are counted from 0.",
)(
    _bias(
        lambda head, num_heads, length: 2 ** (-8 * (head - 1) / num_heads),
        lambda difference: difference.abs().masked_fill(difference < 0, float("inf")),
    )
)
ALIBI.misconception(
    "exponential",
    "The bias is a factor between 0 and 1, the exponential of what is asked for. What is added to the scores is the "
    "penalty itself.",
)(_bias(join=lambda slopes, distances: torch.exp(-slopes[:, None, None] * distances)))
ALIBI.misconception(
    "heads_last",
    "The heads are the last axis. Scores are (B, H, L, L), so the heads come first.",
)(_bias(join=lambda slopes, distances: -slopes * distances[..., None]))
ALIBI.misconception(
    "heads_in_the_middle",
    "The heads stand between the two positions. Scores are (B, H, L, L), so the heads come first.",
)(_bias(join=lambda slopes, distances: -slopes[:, None] * distances[:, None, :]))
ALIBI.misconception(
    "batch_axis",
    "There is a batch axis in front, (1, H, L, L). The bias broadcasts without one.",
)(_bias(join=lambda slopes, distances: -slopes[None, :, None, None] * distances))
ALIBI.misconception(
    "one_row",
    "There is one row for all queries, (H, 1, L). How far a key is depends on the query, so that each has a row.",
)(_bias(join=lambda slopes, distances: -slopes[:, None, None] * distances[:1]))
ALIBI.misconception(
    "one_row_rising",
    "There is one row for all queries, (H, 1, L), in which keys are raised by their position. In a softmax that can "
    "stand for the distance to earlier keys; the contract asks for −slope times |i − j| itself, a row for each query.",
)(_bias(join=lambda slopes, distances: slopes[:, None, None] * distances[:1]))
ALIBI.misconception(
    "one_row_of_the_last_query",
    "There is one row for all queries, (H, 1, L), and it belongs to the last one. How far a key is depends on the "
    "query, so that each has a row.",
)(_bias(join=lambda slopes, distances: -slopes[:, None, None] * distances[-1:]))
ALIBI.misconception(
    "slopes_not_spread",
    "The slopes meet the distances along the wrong axis: `(H,)` lines up with the last axis of `(L, L)`, the keys. "
    "They need axes for queries and keys.",
)(_bias(join=lambda slopes, distances: -slopes * distances))
ALIBI.misconception(
    "one_head",
    "The heads are summed up or only one is left: the result is (L, L). Each head has a bias of its own.",
)(_bias(join=lambda slopes, distances: -slopes[0] * distances))


@ALIBI.misconception(
    "integer_power",
    "An integer tensor cannot hold 2 to a negative power. Make the heads a floating tensor first.",
)
def _(num_heads, length):
    slope = 2 ** (-8 * torch.arange(1, num_heads + 1) // num_heads)
    return -slope[:, None, None] * (torch.arange(length)[:, None] - torch.arange(length)).abs()


ALIBI.misconception(
    "other_dtype",
    "The values are right, the dtype is not: the bias is to be float32. One of float64, added to float32 scores, "
    "makes all that follows float64.",
)(lambda num_heads, length: alibi_bias(num_heads, length).double())
ALIBI.misconception(
    "integer_result",
    "The bias is a tensor of integers, in which the slopes are cut off. It is float32.",
)(lambda num_heads, length: alibi_bias(num_heads, length).long())
ALIBI.misconception(
    "numpy_result",
    "A NumPy array comes back. It has to be a tensor, float32.",
)(lambda num_heads, length: alibi_bias(num_heads, length).numpy())
