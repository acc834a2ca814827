# %% LearnedPositionalEmbedding: looked up by arange
import torch
from torch import nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.max_length = max_length
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        length = x.size(1)
        if length > self.max_length:
            raise ValueError(f"sequence of {length} is longer than {self.max_length}")
        return x + self.embedding(torch.arange(length, device=x.device))


# %% LearnedPositionalEmbedding: rows of the weight, sliced
from torch import Tensor, nn


class LearnedPositionalEmbedding(nn.Module):
    embedding: nn.Embedding

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(num_embeddings=max_length, embedding_dim=d_model)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-2] > self.embedding.num_embeddings:
            raise ValueError("too long")
        return self.embedding.weight[: x.shape[-2]].unsqueeze(0) + x


# %% LearnedPositionalEmbedding: positions in a buffer, warns and prints
import warnings

import torch
from torch import nn


class TooLong(ValueError):
    pass


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.register_buffer("positions", torch.arange(max_length)[None], persistent=False)
        self.embedding = nn.Embedding(max_length, d_model)
        nn.init.normal_(self.embedding.weight, std=0.02)

    def forward(self, x):
        warnings.warn("positions start at 0")
        print("positions", x.shape[1])
        if x.shape[1] > self.positions.shape[1]:
            raise TooLong
        return x + self.embedding(self.positions[:, : x.shape[1]]).expand(x.shape[0], -1, -1)


# %% LearnedPositionalEmbedding: one-hot vectors times the weight, mixin
import torch
import torch.nn.functional as F
from torch import nn


class CheckLength:
    def check(self, n):
        if n > self.embedding.weight.shape[0]:
            raise ValueError(n)
        return n


class LearnedPositionalEmbedding(CheckLength, nn.Module):
    def __init__(self, max_length, d_model):
        nn.Module.__init__(self)
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        n = self.check(x.shape[1])
        hot = F.one_hot(torch.arange(n, device=x.device), self.embedding.num_embeddings).to(x.dtype)
        return x + hot @ self.embedding.weight


# %% LearnedPositionalEmbedding: loop over positions
import torch
from torch import nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.add_module("embedding", nn.Embedding(max_length, d_model))

    def forward(self, x):
        out = []
        for i, vectors in enumerate(x.unbind(1)):
            try:
                out.append(vectors + self.embedding.weight[i])
            except IndexError as error:
                raise ValueError(f"no embedding for position {i}") from error
        return torch.stack(out, dim=1)


# %% LearnedPositionalEmbedding: float64 inside, functional embedding
import torch
from torch import nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        batch, length, _ = x.shape
        if not length <= self.embedding.num_embeddings:
            raise ValueError("x is too long")
        index = torch.arange(length, device=x.device).repeat(batch, 1)
        looked_up = nn.functional.embedding(index, self.embedding.weight.double())
        return torch.add(x.double(), looked_up).to(x.dtype)


# %% sinusoidal_encoding: the usual tutorial, columns written with a step of two
import math

import torch


def sinusoidal_encoding(length, d_model):
    pe = torch.zeros(length, d_model)
    position = torch.arange(0, length, dtype=torch.float64).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10000.0) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)[:, : d_model // 2]
    return pe.to(torch.float32)


# %% sinusoidal_encoding: Python loops and the math module, prints
import math
import warnings

import torch


def sinusoidal_encoding(length, d_model):
    warnings.warn("slow, but plain")
    table = []
    for pos in range(length):
        row = []
        for column in range(d_model):
            two_i = column - column % 2
            angle = pos / 10000 ** (two_i / d_model)
            row.append(math.sin(angle) if column % 2 == 0 else math.cos(angle))
        table.append(row)
    print("table of", length, "rows")
    return torch.tensor(table, dtype=torch.float32).reshape(length, d_model)


# %% sinusoidal_encoding: numpy, where of even and odd columns
import numpy as np
import torch


def sinusoidal_encoding(length, d_model):
    column = np.arange(d_model)
    angle = np.arange(length)[:, None] / np.power(10000.0, (column // 2 * 2) / d_model)
    return torch.from_numpy(np.where(column % 2 == 0, np.sin(angle), np.cos(angle)).astype(np.float32))


# %% sinusoidal_encoding: complex exponential, imaginary and real part
import torch

BASE = 10_000.0


def sinusoidal_encoding(length: int, d_model: int) -> torch.Tensor:
    pairs = (d_model + 1) // 2
    frequency = BASE ** (-2 * torch.arange(pairs, dtype=torch.float64) / d_model)
    angle = torch.outer(torch.arange(length, dtype=torch.float64), frequency)
    z = torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(z).flip(-1).flatten(1)[:, :d_model].float()


# %% sinusoidal_encoding: every column a sine, the odd ones a quarter turn later
import math

import torch


def sinusoidal_encoding(length, d_model):
    columns = []
    position = torch.arange(length).double()
    for c in range(d_model):
        wavelength = math.pow(10000, 2 * (c // 2) / d_model)
        columns.append(torch.sin(position / wavelength + (c % 2) * math.pi / 2))
    return torch.stack(columns, dim=1).type(torch.float32)


# %% sinusoidal_encoding: each row turned from the row before
import torch


def sinusoidal_encoding(length, d_model):
    step = 10000.0 ** (-torch.arange(0, d_model, 2).double() / d_model)
    turn = torch.complex(step.cos(), step.sin())
    rows = torch.empty(length, d_model)
    z = torch.ones_like(turn)
    for p in range(length):
        rows[p, 0::2] = z.imag.float()
        rows[p, 1::2] = z.real[: d_model // 2].float()
        z = z * turn
    return rows.float()


# %% sinusoidal_encoding: float32 throughout, as most notebooks have it
import torch


def sinusoidal_encoding(length, d_model):
    exponent = torch.arange(0, d_model, 2, dtype=torch.float32) / d_model
    angle = torch.arange(length, dtype=torch.float32)[:, None] / torch.pow(10000.0, exponent)
    return torch.stack([angle.sin(), angle.cos()], dim=2).reshape(length, -1)[:, :d_model]


# %% shift_matrix: loops over the pairs, math module
import math

import torch


def shift_matrix(offset, d_model):
    m = torch.zeros(d_model, d_model, dtype=torch.float32)
    for i in range(0, d_model, 2):
        a = offset / 10000 ** (i / d_model)
        m[i, i] = math.cos(a)
        m[i, i + 1] = math.sin(a)
        m[i + 1, i] = -math.sin(a)
        m[i + 1, i + 1] = math.cos(a)
    return m


# %% shift_matrix: block_diag of small matrices
import torch


def shift_matrix(offset, d_model):
    w = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model) * offset
    blocks = [torch.stack([torch.stack([a.cos(), a.sin()]), torch.stack([-a.sin(), a.cos()])]) for a in w]
    return torch.block_diag(*blocks).float()


# %% shift_matrix: the matrix exponential of a skew-symmetric one, warns and prints
import warnings

import torch


def shift_matrix(offset, d_model):
    warnings.warn("matrix_exp is expensive")
    frequency = torch.zeros(d_model - 1, dtype=torch.float64)
    frequency[::2] = 10000.0 ** (-torch.arange(0, d_model, 2).double() / d_model)
    generator = torch.diag(frequency, 1) - torch.diag(frequency, -1)
    m = torch.linalg.matrix_exp(offset * generator)
    print(m.shape)
    return m.to(torch.float32)


# %% shift_matrix: power of the shift by one
import torch


def _one_step(d_model):
    angle = 1e4 ** (-torch.arange(d_model // 2).double() * 2 / d_model)
    m = torch.diag(angle.cos().repeat_interleave(2))
    even = torch.arange(0, d_model, 2)
    m[even, even + 1] = angle.sin()
    m[even + 1, even] = -angle.sin()
    return m


def shift_matrix(offset, d_model):
    power = torch.linalg.matrix_power(_one_step(d_model), abs(offset))
    # the matrix is orthogonal, so the way back is the transpose
    return (power if offset >= 0 else power.T).float()


# %% shift_matrix: numpy with einsum over pairs
import numpy as np
import torch


def shift_matrix(offset, d_model):
    half = d_model // 2
    angle = offset * np.power(10000.0, -2.0 * np.arange(half) / d_model)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    full = np.einsum("abn,nm->namb", turn, np.eye(half))
    return torch.tensor(full.reshape(d_model, d_model), dtype=torch.float32)


# %% shift_matrix: complex numbers, real part on the diagonal, Kronecker products
import torch

SAME = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
CROSS = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)


def shift_matrix(offset: int, d_model: int) -> torch.Tensor:
    i = torch.arange(d_model // 2, dtype=torch.float64)
    z = torch.exp(1j * offset * torch.pow(10000.0, -2 * i / d_model))
    return (torch.kron(torch.diag(z.real), SAME) + torch.kron(torch.diag(z.imag), CROSS)).float()


# %% apply_rotary: even and odd features, stacked again
import torch


def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    freq = base ** (-torch.arange(0, d, 2, dtype=torch.float64, device=x.device) / d)
    angle = positions.to(torch.float64)[:, None] * freq
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    x1, x2 = x[..., 0::2], x[..., 1::2]
    return torch.stack((x1 * cos - x2 * sin, x1 * sin + x2 * cos), dim=-1).flatten(-2)


# %% apply_rotary: complex numbers
import torch


def apply_rotary(x, positions, base=10000.0):
    pairs = x.double().unflatten(-1, (-1, 2)).contiguous()
    z = torch.view_as_complex(pairs)
    exponent = torch.arange(pairs.shape[-2], dtype=torch.float64, device=x.device) * 2 / x.shape[-1]
    angle = torch.outer(positions.double(), 1 / base**exponent)
    turned = z * torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)


# %% apply_rotary: loops over positions and pairs, math module
import math

import torch


def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    rows = []
    for row, p in zip(x.unbind(-2), positions.tolist()):
        features = []
        for i in range(d // 2):
            a = p * base ** (-2 * i / d)
            first, second = row[..., 2 * i], row[..., 2 * i + 1]
            features.append(first * math.cos(a) - second * math.sin(a))
            features.append(first * math.sin(a) + second * math.cos(a))
        rows.append(torch.stack(features, -1))
    return torch.stack(rows, -2)


# %% apply_rotary: x times cosine plus the swapped x times sine, warns and prints
import warnings

import torch


def swap_pairs(x):
    swapped = x.clone()
    swapped[..., 0::2] = -x[..., 1::2]
    swapped[..., 1::2] = x[..., 0::2]
    return swapped


def apply_rotary(x, positions, base=10000.0):
    warnings.warn("interleaved pairs, not halves")
    d = x.size(-1)
    power = torch.arange(d // 2, device=x.device).repeat_interleave(2).double().mul(-2 / d)
    angle = positions.double().unsqueeze(1) * torch.pow(float(base), power)
    print("largest angle", angle.max())
    return x * angle.cos().to(x.dtype) + swap_pairs(x) * angle.sin().to(x.dtype)


# %% apply_rotary: a 2 x 2 matrix for each position and pair, einsum
import torch


def apply_rotary(x, positions, base=10000.0):
    def angles():
        i = torch.arange(0, x.shape[-1], 2, dtype=torch.float64, device=x.device)
        return torch.einsum("l,i->li", positions.to(torch.float64), base ** (-i / x.shape[-1]))

    a = angles()
    turn = torch.stack([a.cos(), -a.sin(), a.sin(), a.cos()], -1).reshape(*a.shape, 2, 2).to(x.dtype)
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    return torch.einsum("lirc,...lic->...lir", turn, pairs).reshape(x.shape)


# %% apply_rotary: a whole matrix for each position, vmap over positions
import torch
from torch import Tensor


def _matrix(angle: Tensor) -> Tensor:
    one = torch.eye(2, dtype=angle.dtype, device=angle.device)
    quarter_turn = one.flip(0) * one.new_tensor([[-1.0], [1.0]])
    return torch.kron(torch.diag(angle.cos()), one) + torch.kron(torch.diag(angle.sin()), quarter_turn)


def apply_rotary(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    frequency = base ** (-torch.arange(0, x.shape[-1], 2, device=x.device).to(torch.float64) / x.shape[-1])
    matrices = torch.vmap(lambda p: _matrix(p * frequency))(positions.to(torch.float64))  # (L, d, d)
    return (matrices @ x.to(torch.float64).unsqueeze(-1)).squeeze(-1).to(x.dtype)


# %% apply_rotary: roll by one, signs and parity, callable class
import torch


class Rotary:
    def __call__(self, x, positions, base=10000.0):
        d = x.shape[-1]
        column = torch.arange(d, device=x.device)
        even = column % 2 == 0
        angle = positions[:, None].double() * base ** (-(column - column % 2).double() / d)
        partner = torch.where(even, -torch.roll(x, -1, -1), torch.roll(x, 1, -1))
        return torch.addcmul(x * torch.cos(angle).to(x), partner, torch.sin(angle).to(x))


apply_rotary = Rotary()


# %% apply_rotary: angles in the dtype of x, as most notebooks have it
import torch


def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    inv_freq = 1.0 / (base ** (torch.arange(0, d, 2, device=x.device).to(x.dtype) / d))
    angle = torch.einsum("i,j->ij", positions.to(x.dtype), inv_freq)
    cos, sin = angle.cos(), angle.sin()
    result = torch.empty_like(x)
    result[..., ::2] = x[..., ::2] * cos - x[..., 1::2] * sin
    result[..., 1::2] = x[..., 1::2] * cos + x[..., ::2] * sin
    return result


# %% alibi_bias: broadcasting
import torch


def alibi_bias(num_heads, length):
    slopes = torch.tensor([2 ** (-8 * (h + 1) / num_heads) for h in range(num_heads)], dtype=torch.float32)
    position = torch.arange(length)
    distance = (position[None, :] - position[:, None]).abs()
    return -slopes[:, None, None] * distance


# %% alibi_bias: three loops, prints
import warnings

import torch


def alibi_bias(num_heads, length):
    warnings.warn("three nested loops")
    bias = torch.zeros(num_heads, length, length, dtype=torch.float32)
    for h in range(num_heads):
        slope = 2.0 ** (-8.0 * (h + 1) / num_heads)
        for i in range(length):
            for j in range(length):
                bias[h, i, j] = -slope * abs(i - j)
    print(bias.shape)
    return bias


# %% alibi_bias: numpy, outer products
import numpy as np
import torch


def alibi_bias(num_heads, length):
    slope = np.exp2(-8 * np.arange(1, num_heads + 1) / num_heads)
    p = np.arange(length)
    return torch.from_numpy(np.multiply.outer(-slope, np.abs(np.subtract.outer(p, p)))).float()


# %% alibi_bias: geometric series of slopes, cumulative product, einsum
import torch


def alibi_bias(num_heads, length):
    ratio = torch.full((num_heads,), 2.0 ** (-8.0 / num_heads), dtype=torch.float64)
    slope = ratio.cumprod(0)
    i = torch.arange(length, dtype=torch.float64)
    distance = torch.maximum(i[:, None], i) - torch.minimum(i[:, None], i)
    return torch.einsum("h,ij->hij", -slope, distance).to(torch.float32)


# %% alibi_bias: distances from cumulative sums of causal masks
import torch


def alibi_bias(num_heads: int, length: int) -> torch.Tensor:
    future = torch.ones(length, length, dtype=torch.float64).triu(1).cumsum(1)  # j - i above the diagonal
    distance = future + future.T
    exponent = torch.linspace(-8.0 / num_heads, -8.0, num_heads, dtype=torch.float64)
    return torch.stack([distance * -(2.0**e) for e in exponent]).float()


# %% alibi_bias: recursion over the heads, a diagonal at a time
import torch


def alibi_bias(num_heads, length):
    def heads(h):
        if h == num_heads:
            return []
        m = torch.zeros(length, length, dtype=torch.float32)
        for k in range(1, length):
            penalty = -k * 2 ** (-8 * (h + 1) / num_heads)
            m.diagonal(k).fill_(penalty)
            m.diagonal(-k).fill_(penalty)
        return [m] + heads(h + 1)

    return torch.stack(heads(0))
