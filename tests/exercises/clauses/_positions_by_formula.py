"""Tables and matrices of positions that break one clause of the contract each."""

import torch
from contract_clauses import breaks

from course_lib.exercises.positional_encoding.alibi_bias import alibi_bias
from course_lib.exercises.positional_encoding.shift_matrix import shift_matrix
from course_lib.exercises.positional_encoding.sinusoidal_encoding import sinusoidal_encoding

# sinusoidal_encoding


def codes(length, d_model, dtype=torch.float64, exponent=lambda two_i, d: two_i / d, base=10_000):
    two_i = torch.arange(0, d_model, 2).to(dtype)
    angle = torch.arange(length).to(dtype)[:, None] / base ** exponent(two_i, d_model)
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(-2)[:, :d_model].float()


def up_to(longest):
    """A table of fixed length, repeated past its end."""
    return lambda length, d_model: sinusoidal_encoding(longest, d_model)[torch.arange(length) % longest]


def step_by_step(length, d_model):
    """Each row turned from the row before in float32, so that errors add up."""
    start, turn = codes(1, d_model + d_model % 2, torch.float32)[0], shift_matrix(1, d_model + d_model % 2)
    rows = [start]
    for _ in range(length - 1):
        rows.append((turn @ rows[-1]).to(torch.bfloat16).float())
    return torch.stack(rows)[:, :d_model]


def sines_first(length, d_model):
    return sinusoidal_encoding(length, d_model)[:, [*range(0, d_model, 2), *range(1, d_model, 2)]]


def rounded_up_width(length, d_model):
    return codes(length, d_model, exponent=lambda two_i, d: two_i / (d + d % 2))


def turned_for_odd(length, d_model):
    table = sinusoidal_encoding(length, d_model)
    return table.flip(-1) if d_model % 2 else table


def refuses_odd(length, d_model):
    if d_model % 2:
        raise ValueError("d_model must be even")
    return sinusoidal_encoding(length, d_model)


def refuses_one(length, d_model):
    if d_model == 1:
        raise ValueError("d_model must be at least 2")
    return sinusoidal_encoding(length, d_model)


def of_a_list(width):
    """Widths beyond this one get a slowest frequency that is used again and again."""

    def solution(length, d_model):
        column = torch.arange(d_model).clamp(max=width - 1 + (d_model - width) % 2)
        return sinusoidal_encoding(length, d_model)[:, column]

    return solution


for says, solution in (
    ("column 2i is the sine, column 2i + 1 the cosine", sines_first),
    ("the exponent is 2i / d_model", lambda length, d: codes(length, d, exponent=lambda two_i, d: two_i / 2 / d)),
    (
        "the exponent is 2i / d_model, of the odd width too",
        rounded_up_width,
    ),
    ("the base is 10,000", lambda length, d: codes(length, d, base=9_999)),
    ("positions count from 0", lambda length, d: sinusoidal_encoding(length + 1, d)[1:]),
    ("returns (length, d_model)", lambda length, d: sinusoidal_encoding(length, d).squeeze(0)),
    ("returns (length, d_model), one column too", lambda length, d: sinusoidal_encoding(length, d).squeeze(-1)),
    ("returns (length, d_model), without a batch", lambda length, d: sinusoidal_encoding(length, d)[None]),
    ("float32", lambda length, d: sinusoidal_encoding(length, d).double()),
    ("float32 accuracy", lambda length, d: sinusoidal_encoding(length, d).half().float()),
    ("odd d_model works", refuses_odd),
    ("odd d_model works: d_model = 1", refuses_one),
    ("odd d_model ends on a sine", turned_for_odd),
    ("any length", up_to(512)),
    ("any length", up_to(1024)),
    ("any length", up_to(5000)),
    ("any width", of_a_list(64)),
    ("any width", of_a_list(256)),
    ("right to 1e-3 at position 5,000", lambda length, d: codes(length, d, torch.bfloat16)),
    ("right to 1e-3 at position 5,000", step_by_step),
):
    breaks("sinusoidal_encoding", says)(solution)

# shift_matrix


def pe(positions, d_model):
    two_i = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = positions.double()[:, None] / 10_000 ** (two_i / d_model)
    return torch.stack((angle.sin(), angle.cos()), -1).flatten(-2)


def one_p_only(offset, d_model):
    start, end = pe(torch.tensor([0, offset]), d_model)
    return (end[:, None] * start / (start @ start)).float()


def sines_first_matrix(offset, d_model):
    order = [*range(0, d_model, 2), *range(1, d_model, 2)]
    return shift_matrix(offset, d_model)[order][:, order]


def coarse_power(offset, d_model):
    step = shift_matrix(1 if offset >= 0 else -1, d_model).bfloat16().float()
    return torch.linalg.matrix_power(step, abs(offset))


def only_blocks(offset, d_model):
    blocks = shift_matrix(offset, d_model).view(d_model // 2, 2, d_model // 2, 2)
    return blocks.diagonal(dim1=0, dim2=2).movedim(-1, 0)


def reduced(offset, d_model):
    """Offsets taken modulo 1,000."""
    return shift_matrix(offset % 1000 if offset >= 0 else -(-offset % 1000), d_model)


for says, solution in (
    ("pe[p] to pe[p + k]", lambda k, d: shift_matrix(-k, d)),
    ("for every p", one_p_only),
    ("the interleaved columns of the course", sines_first_matrix),
    ("with the frequencies 10000^(-2i/d)", lambda k, d: shift_matrix(k, 2 * d)[:d, :d]),
    ("k may be negative", lambda k, d: shift_matrix(abs(k), d)),
    ("k may be 0", lambda k, d: shift_matrix(k or 1, d)),
    ("k may be large", reduced),
    ("k may be large: precision", coarse_power),
    ("float32", lambda k, d: shift_matrix(k, d).double()),
    ("float32 accuracy", lambda k, d: shift_matrix(k, d).half().float()),
    ("returns (d_model, d_model)", lambda k, d: shift_matrix(k, d)[None]),
    (
        "returns (d_model, d_model), the blocks in their places",
        only_blocks,
    ),
    ("rows are what comes out", lambda k, d: shift_matrix(k, d).T),
    ("any even d_model", lambda k, d: torch.block_diag(shift_matrix(k, d)[:16, :16], torch.eye(max(0, d - 16)))),
):
    breaks("shift_matrix", says)(solution)

# alibi_bias


def future_hidden(num_heads, length):
    return alibi_bias(num_heads, length).masked_fill(torch.ones(length, length).triu(1) > 0, -torch.inf)


def at_most_32(num_heads, length):
    return alibi_bias(num_heads, length).maximum(alibi_bias(num_heads, 33)[:, :1, -1:])


def slopes_of(table):
    def solution(num_heads, length):
        slopes = torch.tensor([table(h, num_heads) for h in range(num_heads)], dtype=torch.float64)
        position = torch.arange(length)
        return (-slopes[:, None, None] * (position[:, None] - position).abs()).float()

    return solution


for says, solution in (
    ("slope_h = 2^(-8(h+1)/H)", slopes_of(lambda h, n: 2 ** -(h + 1))),
    ("h from 0: the exponent has h + 1", slopes_of(lambda h, n: 2 ** (-8 * h / n))),
    ("slopes for 16 heads", slopes_of(lambda h, n: 2 ** (-8 * (h + 1) // n))),
    ("slopes for one head", slopes_of(lambda h, n: 2 ** (-8 * (h + 1) / n) if n > 1 else 1.0)),
    ("num_heads is any power of two", slopes_of(lambda h, n: 2 ** (-8 * (h % 16 + 1) / min(n, 16)))),
    ("minus", lambda heads, length: -alibi_bias(heads, length)),
    ("|i - j|", lambda heads, length: alibi_bias(heads, length).tril() - alibi_bias(heads, length).triu()),
    ("|i - j|: no mask is built in", lambda heads, length: alibi_bias(heads, length).tril()),
    (
        "|i - j|: no mask is built in",
        future_hidden,
    ),
    (
        "|i - j|, however far",
        at_most_32,
    ),
    ("returns (H, L, L)", lambda heads, length: alibi_bias(heads, length)[None]),
    ("returns (H, L, L), for one head too", lambda heads, length: alibi_bias(heads, length).squeeze(0)),
    ("returns (H, L, L), for one position too", lambda heads, length: alibi_bias(heads, length).squeeze(-1)),
    ("float32", lambda heads, length: alibi_bias(heads, length).double()),
    ("float32 accuracy", lambda heads, length: alibi_bias(heads, length).half().float()),
):
    breaks("alibi_bias", says)(solution)
