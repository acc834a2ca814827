# %% sinusoidal_encoding: all sines first, then all cosines, instead of alternating columns
import math

import torch


def sinusoidal_encoding(length, d_model):
    position = torch.arange(length, dtype=torch.float32).unsqueeze(1)
    inv_freq = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    angles = position * inv_freq
    return torch.cat([torch.sin(angles), torch.cos(angles)], dim=1)[:, :d_model]


# %% sinusoidal_encoding: the exponent uses i instead of 2i
import torch


def sinusoidal_encoding(length, d_model):
    pe = torch.zeros(length, d_model)
    pos = torch.arange(length).unsqueeze(1)
    i = torch.arange((d_model + 1) // 2)
    angle = pos / torch.pow(10000.0, i / d_model)
    pe[:, 0::2] = torch.sin(angle)
    pe[:, 1::2] = torch.cos(angle[:, : d_model // 2])
    return pe


# %% sinusoidal_encoding: fails for an odd d_model, where there is one cosine fewer than sines
import math

import torch


def sinusoidal_encoding(length, d_model):
    pe = torch.zeros(length, d_model)
    position = torch.arange(0, length).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2) * -(math.log(10000.0) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


# %% sinusoidal_encoding: the cosine gets a frequency of its own from its own column number
import numpy as np
import torch


def sinusoidal_encoding(length, d_model):
    table = np.array([[pos / np.power(10000, j / d_model) for j in range(d_model)] for pos in range(length)])
    table = table.reshape(length, d_model)
    table[:, 0::2] = np.sin(table[:, 0::2])
    table[:, 1::2] = np.cos(table[:, 1::2])
    return torch.from_numpy(table).float()


# %% sinusoidal_encoding: the positions start at 1
import torch


def sinusoidal_encoding(length, d_model):
    positions = torch.arange(1, length + 1, dtype=torch.float64).reshape(-1, 1)
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    angles = positions / 10000.0 ** (even / d_model)
    encoding = torch.empty(length, d_model, dtype=torch.float64)
    encoding[:, 0::2] = angles.sin()
    encoding[:, 1::2] = angles.cos()[:, : d_model // 2]
    return encoding.to(torch.float32)


# %% sinusoidal_encoding: the minus in the exponent is missing, the angles are multiplied instead of divided
import math

import torch


def sinusoidal_encoding(length, d_model):
    position = torch.arange(length, dtype=torch.float32)[:, None]
    div_term = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float32) * (math.log(10000.0) / d_model))
    pe = torch.zeros(length, d_model)
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)[:, : d_model // 2]
    return pe


# %% sinusoidal_encoding: returns a batch axis in front, shape (1, length, d_model)
import math

import torch


def sinusoidal_encoding(length, d_model):
    pe = torch.zeros(length, d_model)
    position = torch.arange(0, length, dtype=torch.float).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    angles = position * div_term
    pe[:, 0::2] = torch.sin(angles)
    pe[:, 1::2] = torch.cos(angles)[:, : d_model // 2]
    return pe.unsqueeze(0)


# %% sinusoidal_encoding: built in NumPy and handed back as float64
import numpy as np
import torch


def sinusoidal_encoding(length, d_model):
    pos = np.arange(length)[:, np.newaxis]
    two_i = 2 * (np.arange(d_model)[np.newaxis, :] // 2)
    angle = pos / np.power(10000.0, two_i / d_model)
    angle[:, 0::2] = np.sin(angle[:, 0::2])
    angle[:, 1::2] = np.cos(angle[:, 1::2])
    return torch.from_numpy(angle)


# %% LearnedPositionalEmbedding: no check of the length, a long input ends in an IndexError instead of a ValueError
import torch
from torch import nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        positions = torch.arange(x.size(1), device=x.device)
        return x + self.embedding(positions)


# %% LearnedPositionalEmbedding: takes the first axis for the positions, as in sequence-first code
import torch
from torch import nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.max_length = max_length
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        seq_len = x.size(0)
        if seq_len > self.max_length:
            raise ValueError("sequence is too long")
        pos = torch.arange(seq_len, device=x.device).unsqueeze(1)
        return x + self.embedding(pos)


# %% LearnedPositionalEmbedding: also rejects a sequence of exactly max_length
import torch
import torch.nn as nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        length = x.shape[1]
        if length >= self.embedding.num_embeddings:
            raise ValueError(f"length {length} is too long")
        return x + self.embedding(torch.arange(length, device=x.device)).unsqueeze(0)


# %% LearnedPositionalEmbedding: the table is a bare parameter and not an nn.Embedding, weights cannot be loaded
import torch
from torch import nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(max_length, d_model))

    def forward(self, x):
        length = x.size(1)
        if length > self.embedding.size(0):
            raise ValueError("x is longer than max_length")
        return x + self.embedding[:length]


# %% LearnedPositionalEmbedding: multiplies x by the root of d_model before adding
import math

import torch
from torch import nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.d_model = d_model
        self.max_length = max_length
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        batch, length, _ = x.shape
        if length > self.max_length:
            raise ValueError("Sequence length exceeds max_length")
        positions = torch.arange(length, device=x.device).expand(batch, length)
        return x * math.sqrt(self.d_model) + self.embedding(positions)


# %% LearnedPositionalEmbedding: adds in place and so changes the input
import torch
from torch import nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        if x.size(1) > self.embedding.num_embeddings:
            raise ValueError("too many positions")
        x += self.embedding.weight[: x.size(1)]
        return x


# %% shift_matrix: the signs of the sines are swapped, the matrix shifts back instead of forward
import math

import torch


def shift_matrix(offset, d_model):
    m = torch.zeros(d_model, d_model)
    for i in range(d_model // 2):
        w = 1 / 10000 ** (2 * i / d_model)
        c, s = math.cos(w * offset), math.sin(w * offset)
        m[2 * i, 2 * i] = c
        m[2 * i, 2 * i + 1] = -s
        m[2 * i + 1, 2 * i] = s
        m[2 * i + 1, 2 * i + 1] = c
    return m


# %% shift_matrix: built for the layout with all sines before all cosines
import torch


def shift_matrix(offset, d_model):
    freq = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    cos = torch.diag(torch.cos(offset * freq))
    sin = torch.diag(torch.sin(offset * freq))
    top = torch.cat([cos, sin], dim=1)
    bottom = torch.cat([-sin, cos], dim=1)
    return torch.cat([top, bottom], dim=0).float()


# %% shift_matrix: doubles an index that already runs in steps of two, so the frequencies are wrong
import math

import torch


def shift_matrix(offset, d_model):
    matrix = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        omega = 10000 ** (-2 * i / d_model)
        matrix[i, i] = math.cos(offset * omega)
        matrix[i, i + 1] = math.sin(offset * omega)
        matrix[i + 1, i] = -math.sin(offset * omega)
        matrix[i + 1, i + 1] = math.cos(offset * omega)
    return matrix


# %% shift_matrix: fits the matrix by least squares to a few positions, which is badly conditioned
import math

import torch


def shift_matrix(offset, d_model):
    def encode(positions):
        freq = torch.exp(-math.log(10000.0) * torch.arange(0, d_model, 2) / d_model)
        angles = positions[:, None] * freq
        return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)

    p = torch.arange(2 * d_model, dtype=torch.float32)
    before, after = encode(p), encode(p + offset)
    return (torch.linalg.pinv(before) @ after).T


# %% shift_matrix: returns float64
import numpy as np
import torch


def shift_matrix(offset, d_model):
    out = np.zeros((d_model, d_model))
    freqs = 1.0 / np.power(10000.0, np.arange(0, d_model, 2) / d_model)
    even = np.arange(0, d_model, 2)
    out[even, even] = np.cos(offset * freqs)
    out[even + 1, even + 1] = np.cos(offset * freqs)
    out[even, even + 1] = np.sin(offset * freqs)
    out[even + 1, even] = -np.sin(offset * freqs)
    return torch.tensor(out)


# %% shift_matrix: both sines positive, the minus of the addition theorem for the cosine is lost
import torch


def shift_matrix(offset, d_model):
    blocks = []
    for i in range(d_model // 2):
        angle = torch.tensor(offset / 10000 ** (2 * i / d_model))
        c, s = torch.cos(angle), torch.sin(angle)
        blocks.append(torch.stack([torch.stack([c, s]), torch.stack([s, c])]))
    return torch.block_diag(*blocks).to(torch.float32)


# %% apply_rotary: pairs feature i with feature i + d/2 instead of its neighbour
import torch


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    inv_freq = base ** (-torch.arange(0, d, 2, dtype=x.dtype, device=x.device) / d)
    freqs = positions.to(x.dtype)[:, None] * inv_freq
    emb = torch.cat((freqs, freqs), dim=-1)
    return x * emb.cos() + rotate_half(x) * emb.sin()


# %% apply_rotary: rotates in the opposite direction
import torch


def apply_rotary(x, positions, base=10000.0):
    d = x.size(-1)
    theta = base ** (-torch.arange(0, d, 2, device=x.device).to(x.dtype) / d)
    angle = torch.outer(positions.to(x.dtype), theta)
    cos, sin = torch.cos(angle), torch.sin(angle)
    x_even, x_odd = x[..., 0::2], x[..., 1::2]
    out_even = x_even * cos + x_odd * sin
    out_odd = -x_even * sin + x_odd * cos
    return torch.stack((out_even, out_odd), dim=-1).flatten(-2)


# %% apply_rotary: the argument base is ignored, 10000 is written into the formula
import torch


def apply_rotary(x, positions, base=10000.0):
    *_, d = x.shape
    i = torch.arange(d // 2, dtype=x.dtype, device=x.device)
    angles = positions.to(x.dtype).unsqueeze(-1) * 10000.0 ** (-2 * i / d)
    pairs = x.unflatten(-1, (d // 2, 2))
    a, b = pairs[..., 0], pairs[..., 1]
    rotated = torch.stack([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], dim=-1)
    return rotated.reshape(x.shape)


# %% apply_rotary: ignores the given positions and counts from 0
import torch


def apply_rotary(x, positions, base=10000.0):
    L, d = x.shape[-2], x.shape[-1]
    pos = torch.arange(L, dtype=x.dtype, device=x.device)
    freq = 1.0 / base ** (torch.arange(0, d, 2, dtype=x.dtype, device=x.device) / d)
    angles = pos[:, None] * freq[None, :]
    c = angles.cos().repeat_interleave(2, dim=-1)
    s = angles.sin().repeat_interleave(2, dim=-1)
    rotated = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).reshape(x.shape)
    return x * c + rotated * s


# %% apply_rotary: concatenates the rotated even and odd features instead of interleaving them again
import torch


def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    freqs = base ** (-torch.arange(0, d, 2, dtype=x.dtype, device=x.device) / d)
    angles = positions.to(x.dtype)[:, None] * freqs
    cos, sin = angles.cos(), angles.sin()
    x1 = x[..., ::2]
    x2 = x[..., 1::2]
    return torch.cat([x1 * cos - x2 * sin, x1 * sin + x2 * cos], dim=-1)


# %% apply_rotary: the angles are always computed in float32, too coarse for float64 inputs
import torch


def apply_rotary(x, positions, base=10000.0):
    d = x.size(-1)
    inv_freq = 1.0 / (base ** (torch.arange(0, d, 2, device=x.device).float() / d))
    freqs = torch.einsum("i,j->ij", positions.float(), inv_freq)
    cos = freqs.cos().to(x.dtype)
    sin = freqs.sin().to(x.dtype)
    x1, x2 = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((x1 * cos - x2 * sin, x2 * cos + x1 * sin), -1).flatten(-2)


# %% apply_rotary: overwrites the even features before the odd ones are computed from them
import torch


def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    k = torch.arange(0, d, 2, dtype=x.dtype, device=x.device)
    angle = positions.to(x.dtype).reshape(-1, 1) * base ** (-k / d)
    cos, sin = angle.cos(), angle.sin()
    out = x.clone()
    out[..., 0::2] = out[..., 0::2] * cos - out[..., 1::2] * sin
    out[..., 1::2] = out[..., 0::2] * sin + out[..., 1::2] * cos
    return out


# %% apply_rotary: expects the layout (batch, length, heads, d), the positions land on the wrong axis
import torch


def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    freqs = 1.0 / base ** (torch.arange(0, d, 2, dtype=x.dtype, device=x.device) / d)
    angles = torch.outer(positions.to(x.dtype), freqs)
    cos = angles.cos()[None, :, None, :]
    sin = angles.sin()[None, :, None, :]
    even, odd = x[..., 0::2], x[..., 1::2]
    out = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1)
    return out.flatten(-2)


# %% alibi_bias: positive, it rewards the distance instead of punishing it
import torch


def alibi_bias(num_heads, length):
    slopes = torch.tensor([2 ** (-8 * (h + 1) / num_heads) for h in range(num_heads)])
    pos = torch.arange(length)
    distance = (pos[:, None] - pos[None, :]).abs().float()
    return slopes[:, None, None] * distance


# %% alibi_bias: the absolute value is missing, keys to the right get a bonus
import torch


def alibi_bias(num_heads, length):
    h = torch.arange(1, num_heads + 1)
    slopes = torch.pow(2.0, -8.0 * h / num_heads)
    i = torch.arange(length).view(1, -1, 1)
    j = torch.arange(length).view(1, 1, -1)
    return -slopes.view(-1, 1, 1) * (i - j)


# %% alibi_bias: the exponent starts at 0, so the first slope is 1
import torch


def alibi_bias(num_heads, length):
    heads = torch.arange(num_heads, dtype=torch.float32)
    slopes = 2.0 ** (-8.0 * heads / num_heads)
    positions = torch.arange(length, dtype=torch.float32)
    distances = torch.abs(positions.unsqueeze(0) - positions.unsqueeze(1))
    return -slopes.reshape(num_heads, 1, 1) * distances


# %% alibi_bias: the slopes 1/2, 1/4, 1/8, ... belong to eight heads and are used for any number
import torch


def alibi_bias(num_heads, length):
    slopes = [1 / 2 ** (h + 1) for h in range(num_heads)]
    bias = torch.zeros(num_heads, length, length)
    for h, slope in enumerate(slopes):
        for i in range(length):
            for j in range(length):
                bias[h, i, j] = -slope * abs(i - j)
    return bias


# %% alibi_bias: missing brackets, the power is taken of -8 alone and multiplied afterwards
import torch


def alibi_bias(num_heads, length):
    slope = torch.tensor([2 ** -8 * (h + 1) / num_heads for h in range(num_heads)])
    idx = torch.arange(length)
    dist = torch.abs(idx[:, None] - idx[None, :])
    return -torch.einsum("h,ij->hij", slope, dist.float())


# %% alibi_bias: adds a batch axis, shape (1, H, L, L)
import torch


def alibi_bias(num_heads, length):
    start = 2.0 ** (-8.0 / num_heads)
    slopes = torch.tensor([start ** (h + 1) for h in range(num_heads)], dtype=torch.float32)
    pos = torch.arange(length, dtype=torch.float32)
    dist = (pos.view(1, 1, 1, -1) - pos.view(1, 1, -1, 1)).abs()
    return -dist * slopes.view(1, -1, 1, 1)
