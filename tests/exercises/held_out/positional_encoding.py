# %% LearnedPositionalEmbedding: Too long an input is not checked for and raises IndexError instead of ValueError.
import torch
from torch import nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        positions = torch.arange(x.size(1), device=x.device)
        return x + self.embedding(positions)


# %% LearnedPositionalEmbedding: Returns the position embeddings alone, without adding x.
import torch
import torch.nn as nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.max_length = max_length
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        batch, length, _ = x.shape
        if length > self.max_length:
            raise ValueError(f"sequence of {length} is longer than {self.max_length}")
        ids = torch.arange(length, device=x.device).expand(batch, length)
        return self.embedding(ids)


# %% LearnedPositionalEmbedding: Off by one: an input of exactly max_length positions is refused.
import torch
import torch.nn as nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super(LearnedPositionalEmbedding, self).__init__()
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        seq_len = x.shape[1]
        if seq_len >= self.embedding.num_embeddings:
            raise ValueError("input is too long")
        pos = torch.arange(0, seq_len).to(x.device)
        return x + self.embedding(pos).unsqueeze(0)


# %% LearnedPositionalEmbedding: Axis 0 is taken for the positions, so the row number in the batch is encoded.
import torch
from torch import nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Embedding(max_length, d_model)
        self.max_length = max_length

    def forward(self, x):
        n = x.size(0)
        if n > self.max_length:
            raise ValueError(f"length {n} > max_length {self.max_length}")
        table = self.embedding(torch.arange(n, device=x.device))
        return x + table[:, None, :]


# %% LearnedPositionalEmbedding: The embeddings are added in place and change the caller's x.
from torch import nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.max_length, self.d_model = max_length, d_model
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        if x.shape[-2] > self.max_length:
            raise ValueError("no embedding for positions beyond max_length")
        x += self.embedding.weight[: x.shape[-2]]
        return x


# %% LearnedPositionalEmbedding: The positions are counted from 1, so the last one has no embedding.
import torch
from torch import nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        length = x.shape[1]
        if length > self.embedding.weight.shape[0]:
            raise ValueError(f"at most {self.embedding.weight.shape[0]} positions, got {length}")
        index = torch.ones(length, dtype=torch.long, device=x.device).cumsum(0)
        return x + self.embedding(index)


# %% sinusoidal_encoding: An odd d_model crashes, because there is one cosine column less than sines.
import math

import torch


def sinusoidal_encoding(length, d_model):
    pe = torch.zeros(length, d_model)
    position = torch.arange(0, length, dtype=torch.float64).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * -(math.log(10000.0) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term).float()
    pe[:, 1::2] = torch.cos(position * div_term).float()
    return pe


# %% sinusoidal_encoding: Each column has a frequency of its own: the cosine does not share that of its sine.
import torch


def sinusoidal_encoding(length, d_model):
    column = torch.arange(d_model, dtype=torch.float64)
    angles = torch.arange(length, dtype=torch.float64)[:, None] / torch.pow(10000.0, column / d_model)
    is_even = torch.arange(d_model) % 2 == 0
    return torch.where(is_even, angles.sin(), angles.cos()).to(torch.float32)


# %% sinusoidal_encoding: The exponent is doubled: the index already counts 0, 2, 4, … and is multiplied by 2 again.
import torch


def sinusoidal_encoding(length, d_model):
    pos = torch.arange(length, dtype=torch.float64).reshape(-1, 1)
    i = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = pos / (10000 ** (2 * i / d_model))
    table = torch.empty(length, d_model)
    table[:, 0::2] = angle.sin().float()
    table[:, 1::2] = angle.cos()[:, : d_model // 2].float()
    return table


# %% sinusoidal_encoding: All sines come first and all cosines after them, instead of alternating.
import torch


def sinusoidal_encoding(length, d_model):
    half = (d_model + 1) // 2
    freqs = 10000.0 ** (-2.0 * torch.arange(half, dtype=torch.float64) / d_model)
    args = torch.outer(torch.arange(length, dtype=torch.float64), freqs)
    encoding = torch.cat([torch.sin(args), torch.cos(args)], dim=1)
    return encoding[:, :d_model].float()


# %% sinusoidal_encoding: The positions start at 1 instead of 0.
import math

import torch


def sinusoidal_encoding(length, d_model):
    rows = []
    for pos in range(1, length + 1):
        row = []
        for col in range(d_model):
            angle = pos / 10000 ** (2 * (col // 2) / d_model)
            row.append(math.sin(angle) if col % 2 == 0 else math.cos(angle))
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float32).reshape(length, d_model)


# %% sinusoidal_encoding: The table is built in NumPy and comes back as float64.
import numpy as np
import torch


def sinusoidal_encoding(length, d_model):
    col = np.arange(d_model)
    angle = np.arange(length)[:, None] / np.power(10000.0, 2 * (col // 2) / d_model)
    angle[:, 0::2] = np.sin(angle[:, 0::2])
    angle[:, 1::2] = np.cos(angle[:, 1::2])
    return torch.from_numpy(angle)


# %% shift_matrix: The sine has the wrong sign, so the matrix shifts backwards.
import torch


def shift_matrix(offset, d_model):
    matrix = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        angle = torch.tensor(offset / 10000 ** (i / d_model), dtype=torch.float64)
        c, s = torch.cos(angle), torch.sin(angle)
        matrix[i, i] = c
        matrix[i, i + 1] = -s
        matrix[i + 1, i] = s
        matrix[i + 1, i + 1] = c
    return matrix


# %% shift_matrix: The frequencies fall half as fast: the exponent is i/d instead of 2i/d.
import math

import torch


def shift_matrix(offset, d_model):
    blocks = []
    for i in range(d_model // 2):
        omega = 10000.0 ** (-i / d_model)
        c, s = math.cos(offset * omega), math.sin(offset * omega)
        blocks.append(torch.tensor([[c, s], [-s, c]], dtype=torch.float32))
    return torch.block_diag(*blocks)


# %% shift_matrix: The matrix is built for sines in the first half and cosines in the second.
import torch


def shift_matrix(offset, d_model):
    w = 1.0 / 10000.0 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    C = torch.diag(torch.cos(offset * w))
    S = torch.diag(torch.sin(offset * w))
    top = torch.cat((C, S), dim=1)
    bottom = torch.cat((-S, C), dim=1)
    return torch.cat((top, bottom), dim=0).float()


# %% shift_matrix: The result is float64, because it is computed in NumPy and never converted.
import numpy as np
import torch


def shift_matrix(offset, d_model):
    out = np.zeros((d_model, d_model))
    even = np.arange(0, d_model, 2)
    theta = offset * np.power(10000.0, -even / d_model)
    out[even, even] = np.cos(theta)
    out[even + 1, even + 1] = np.cos(theta)
    out[even, even + 1] = np.sin(theta)
    out[even + 1, even] = -np.sin(theta)
    return torch.tensor(out)


# %% shift_matrix: The side diagonals are filled throughout, so neighbouring pairs are coupled.
import torch


def shift_matrix(offset, d_model):
    freq = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angle = (offset * freq).repeat_interleave(2)
    cos, sin = angle.cos(), angle.sin()[:-1]
    m = torch.diag(cos) + torch.diag(sin, diagonal=1) - torch.diag(sin, diagonal=-1)
    return m.to(torch.float32)


# %% shift_matrix: The matrix is fitted to the table by least squares, too ill-conditioned in float32 from d_model 8 on.
import torch


def table(length, d_model):
    freq = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * freq
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1).float()


def shift_matrix(offset, d_model):
    n = 2 * d_model + 64
    pe = table(n + offset, d_model)
    before, after = pe[:n], pe[offset:]
    solution = torch.linalg.lstsq(before, after).solution
    return solution.T


# %% apply_rotary: Feature i is paired with feature i + d/2 instead of with its neighbour.
import torch


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    inv_freq = 1.0 / base ** (torch.arange(0, d, 2, dtype=torch.float64, device=x.device) / d)
    freqs = torch.outer(positions.to(torch.float64), inv_freq)
    emb = torch.cat((freqs, freqs), dim=-1)
    return x * emb.cos().to(x.dtype) + rotate_half(x) * emb.sin().to(x.dtype)


# %% apply_rotary: The pairs are turned by minus the angle.
import torch


def apply_rotary(x, positions, base=10000.0):
    d = x.size(-1)
    i = torch.arange(d // 2, dtype=torch.float64, device=x.device)
    theta = positions.double().unsqueeze(1) * torch.pow(base, -2 * i / d)
    cos, sin = theta.cos().to(x.dtype), theta.sin().to(x.dtype)
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * cos + b * sin, b * cos - a * sin], dim=-1).reshape(x.shape)


# %% apply_rotary: The argument positions is ignored; 0 … L-1 is used instead.
import torch


def apply_rotary(x, positions, base=10000.0):
    length, d = x.shape[-2:]
    pos = torch.arange(length, dtype=torch.float64, device=x.device)
    rates = base ** (-torch.arange(0, d, 2, dtype=torch.float64, device=x.device) / d)
    angles = torch.einsum("l,f->lf", pos, rates)
    c = torch.cos(angles).type_as(x)
    s = torch.sin(angles).type_as(x)
    even = x[..., 0::2] * c - x[..., 1::2] * s
    odd = x[..., 0::2] * s + x[..., 1::2] * c
    return torch.stack((even, odd), -1).flatten(-2)


# %% apply_rotary: The turned halves are concatenated, not interleaved again.
import torch


def apply_rotary(x, positions, base=10000.0):
    dim = x.shape[-1]
    exponent = torch.arange(0, dim, 2, device=x.device).double() / dim
    angle = positions.view(-1, 1).double() * (base**-exponent)
    sin, cos = torch.sin(angle).to(x.dtype), torch.cos(angle).to(x.dtype)
    x_even, x_odd = x[..., 0::2], x[..., 1::2]
    rot_even = x_even * cos - x_odd * sin
    rot_odd = x_even * sin + x_odd * cos
    return torch.cat([rot_even, rot_odd], dim=-1)


# %% apply_rotary: The result is written into x itself, which changes the caller's tensor.
import torch


def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    for i in range(d // 2):
        angle = positions.to(torch.float64) * base ** (-2 * i / d)
        c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        first, second = x[..., 2 * i].clone(), x[..., 2 * i + 1].clone()
        x[..., 2 * i] = first * c - second * s
        x[..., 2 * i + 1] = first * s + second * c
    return x


# %% apply_rotary: The argument base is ignored; 10000 is written into the formula.
import math

import torch


def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    inv = torch.exp(-math.log(10000.0) * torch.arange(0, d, 2, dtype=torch.float64, device=x.device) / d)
    phase = positions[:, None].to(inv) * inv[None, :]
    rotation = torch.stack(
        (torch.stack((phase.cos(), -phase.sin()), -1), torch.stack((phase.sin(), phase.cos()), -1)), -2
    ).to(x.dtype)
    pairs = x.unflatten(-1, (d // 2, 2))
    return torch.einsum("lfij,...lfj->...lfi", rotation, pairs).flatten(-2)


# %% alibi_bias: The slopes start at exponent 0, so the first head has slope 1.
import torch


def alibi_bias(num_heads, length):
    h = torch.arange(num_heads, dtype=torch.float32)
    slopes = 2 ** (-8 * h / num_heads)
    pos = torch.arange(length)
    dist = (pos[None, :] - pos[:, None]).abs()
    return -slopes.view(-1, 1, 1) * dist


# %% alibi_bias: The sign is missing: distant keys are favoured.
import torch


def alibi_bias(num_heads, length):
    slopes = torch.tensor([2.0 ** (-8.0 * (h + 1) / num_heads) for h in range(num_heads)])
    i = torch.arange(length).unsqueeze(1)
    j = torch.arange(length).unsqueeze(0)
    return slopes[:, None, None] * torch.abs(i - j).float()


# %% alibi_bias: The absolute value is missing, so keys in the future get a bonus.
import torch


def alibi_bias(num_heads, length):
    bias = torch.zeros(num_heads, length, length)
    relative = torch.arange(length).view(-1, 1) - torch.arange(length).view(1, -1)
    for head in range(num_heads):
        slope = 2 ** (-(8 / num_heads) * (head + 1))
        bias[head] = -slope * relative
    return bias


# %% alibi_bias: The slopes are 1/2, 1/4, 1/8, … whatever the number of heads, which is right for 8 only.
import torch


def alibi_bias(num_heads, length):
    m = 0.5 ** torch.arange(1, num_heads + 1)
    positions = torch.arange(length, dtype=torch.float32)
    distance = torch.cdist(positions[:, None], positions[:, None], p=1)
    return -torch.einsum("h,ij->hij", m, distance)


# %% alibi_bias: The heads are on the last axis: (L, L, H).
import torch


def alibi_bias(num_heads, length):
    ratio = 2 ** (-8 / num_heads)
    slopes = torch.tensor([ratio ** (n + 1) for n in range(num_heads)], dtype=torch.float32)
    idx = torch.arange(length)
    gap = torch.abs(idx[:, None] - idx)
    return gap[..., None] * -slopes


# %% alibi_bias: Future keys get no penalty, as the distance is cut off at 0 instead of made symmetric.
import torch


def alibi_bias(num_heads, length):
    exponents = torch.arange(1, num_heads + 1, dtype=torch.float32) * 8 / num_heads
    slopes = torch.pow(2.0, -exponents)
    steps_back = torch.arange(length)[:, None] - torch.arange(length)[None, :]
    steps_back = steps_back.clamp(min=0).to(torch.float32)
    return -(slopes.reshape(num_heads, 1, 1) * steps_back)
