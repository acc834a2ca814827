# %% sinusoidal_encoding: all sines in the first half and all cosines in the second, not interleaved
import torch

def sinusoidal_encoding(length, d_model):
    pos = torch.arange(length, dtype=torch.float32).unsqueeze(1)
    two_i = torch.arange(0, d_model, 2, dtype=torch.float32)
    angle = pos / 10000 ** (two_i / d_model)
    return torch.cat([torch.sin(angle), torch.cos(angle)], dim=1)[:, :d_model]

# %% sinusoidal_encoding: the exponent uses 2 * column although the column is already 2i
import torch

def sinusoidal_encoding(length, d_model):
    pe = torch.zeros(length, d_model)
    for pos in range(length):
        for i in range(0, d_model, 2):
            angle = pos / (10000 ** (2 * i / d_model))
            pe[pos, i] = torch.sin(torch.tensor(angle))
            if i + 1 < d_model:
                pe[pos, i + 1] = torch.cos(torch.tensor(angle))
    return pe

# %% sinusoidal_encoding: odd d_model raises, the cosine columns are one fewer than the sines
import math
import torch

def sinusoidal_encoding(length, d_model):
    pe = torch.zeros(length, d_model)
    position = torch.arange(0, length, dtype=torch.float).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe

# %% sinusoidal_encoding: positions counted from 1
import torch

def sinusoidal_encoding(length, d_model):
    positions = torch.linspace(1, length, length)
    freqs = torch.pow(10000.0, -torch.arange(0, d_model, 2) / d_model)
    angles = torch.outer(positions, freqs)
    out = torch.stack((angles.sin(), angles.cos()), dim=-1)
    return out.flatten(1)[:, :d_model]

# %% sinusoidal_encoding: sine and cosine are swapped
import torch

def sinusoidal_encoding(length, d_model):
    col = torch.arange(d_model)
    rate = 10000.0 ** (-(col // 2 * 2) / d_model)
    angle = torch.arange(length)[:, None] * rate[None, :]
    return torch.where(col % 2 == 0, angle.cos(), angle.sin())

# %% sinusoidal_encoding: the cosine column gets a frequency of its own, 10000^(-(2i+1)/d)
import torch

def sinusoidal_encoding(length, d_model):
    t = torch.arange(length).float().view(-1, 1)
    c = torch.arange(d_model).float().view(1, -1)
    table = t / torch.pow(torch.tensor(10000.0), c / d_model)
    table[:, 0::2] = table[:, 0::2].sin()
    table[:, 1::2] = table[:, 1::2].cos()
    return table

# %% sinusoidal_encoding: base 1000 instead of 10000, and the result is float64 from numpy
import numpy as np
import torch

def sinusoidal_encoding(length, d_model):
    pos = np.arange(length)[:, None]
    i = np.arange(d_model)[None, :]
    angles = pos / np.power(1000, (2 * (i // 2)) / d_model)
    angles[:, 0::2] = np.sin(angles[:, 0::2])
    angles[:, 1::2] = np.cos(angles[:, 1::2])
    return torch.from_numpy(angles)

# %% sinusoidal_encoding: integer division in the exponent, all frequencies are 1
import torch

def sinusoidal_encoding(length, d_model):
    enc = torch.empty(length, d_model)
    p = torch.arange(length, dtype=torch.float32)
    for k in range(d_model):
        freq = 10000.0 ** -((k - k % 2) // d_model)
        enc[:, k] = torch.cos(p * freq) if k % 2 else torch.sin(p * freq)
    return enc

# %% LearnedPositionalEmbedding: the embeddings alone come back, x is not added
import torch
from torch import nn

class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.max_length = max_length
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        B, L, _ = x.shape
        if L > self.max_length:
            raise ValueError("sequence is too long")
        return self.embedding(torch.arange(L, device=x.device)).expand(B, -1, -1)

# %% LearnedPositionalEmbedding: no check of the length, so IndexError instead of ValueError
import torch
import torch.nn as nn

class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        positions = torch.arange(x.size(1), device=x.device).unsqueeze(0)
        return x + self.embedding(positions)

# %% LearnedPositionalEmbedding: the positions run from 1 to L
import torch
from torch import nn

class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        n = x.shape[-2]
        if n > self.embedding.num_embeddings:
            raise ValueError(f"{n} positions, but only {self.embedding.num_embeddings} embeddings")
        idx = torch.arange(1, n + 1, device=x.device)
        return x + self.embedding(idx)

# %% LearnedPositionalEmbedding: the sub-module is called position_embeddings
import torch
from torch import nn

class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.position_embeddings = nn.Embedding(max_length, d_model)

    def forward(self, x):
        L = x.shape[1]
        if L > self.position_embeddings.weight.shape[0]:
            raise ValueError("L > max_length")
        return x + self.position_embeddings.weight[:L]

# %% LearnedPositionalEmbedding: the length is read from the batch axis, so each sequence gets one position
import torch
from torch import nn

class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.max_length = max_length
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        L = x.size(0)
        if L > self.max_length:
            raise ValueError("too long")
        pos = torch.arange(L, device=x.device).unsqueeze(1)
        return x + self.embedding(pos)

# %% LearnedPositionalEmbedding: a sequence of exactly max_length is refused
import torch
from torch import nn

class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.max_length, self.d_model = max_length, d_model
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        if x.shape[1] >= self.max_length:
            raise ValueError(f"length {x.shape[1]} does not fit into {self.max_length}")
        return x + self.embedding.weight[: x.shape[1]].unsqueeze(0)

# %% LearnedPositionalEmbedding: adds in place and so changes x
import torch
from torch import nn

class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        length = x.shape[1]
        if length > self.embedding.num_embeddings:
            raise ValueError("length over max_length")
        x += self.embedding(torch.arange(length, device=x.device))
        return x

# %% LearnedPositionalEmbedding: the embedding goes in through .data, so it gets no gradient, and x is scaled by the root of d_model
import math
import torch
from torch import nn

class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super(LearnedPositionalEmbedding, self).__init__()
        self.d_model = d_model
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        L = x.shape[1]
        table = self.embedding.weight.data
        if L > len(table):
            raise ValueError("too many positions")
        return x * math.sqrt(self.d_model) + table[:L]

# %% shift_matrix: the signs of the two sines are swapped, so it shifts by -offset
import torch

def shift_matrix(offset, d_model):
    M = torch.zeros(d_model, d_model)
    for i in range(0, d_model, 2):
        a = torch.tensor(offset / 10000 ** (i / d_model))
        c, s = torch.cos(a), torch.sin(a)
        M[i, i], M[i, i + 1] = c, -s
        M[i + 1, i], M[i + 1, i + 1] = s, c
    return M

# %% shift_matrix: the pair index i is used for 2i in the exponent
import math
import torch

def shift_matrix(offset, d_model):
    blocks = []
    for i in range(d_model // 2):
        w = offset * 10000 ** (-i / d_model)
        blocks.append(torch.tensor([[math.cos(w), math.sin(w)], [-math.sin(w), math.cos(w)]]))
    return torch.block_diag(*blocks)

# %% shift_matrix: a cyclic shift of the features instead of a rotation of each pair
import torch

def shift_matrix(offset, d_model):
    return torch.roll(torch.eye(d_model), shifts=offset, dims=0)

# %% shift_matrix: laid out for sines in the first half and cosines in the second
import torch

def shift_matrix(offset, d_model):
    half = d_model // 2
    theta = offset * 10000.0 ** (-2 * torch.arange(half) / d_model)
    C, S = torch.diag(theta.cos()), torch.diag(theta.sin())
    top = torch.cat([C, S], dim=1)
    bottom = torch.cat([-S, C], dim=1)
    return torch.cat([top, bottom], dim=0)

# %% shift_matrix: every pair is turned by the same angle
import math
import torch
def shift_matrix(offset, d_model):
    rot = torch.tensor([[math.cos(offset), math.sin(offset)],
                        [-math.sin(offset), math.cos(offset)]])
    return torch.kron(torch.eye(d_model // 2), rot)

# %% shift_matrix: made in numpy and returned in float64
import numpy as np
import torch

def shift_matrix(offset, d_model):
    m = np.zeros((d_model, d_model))
    for i in range(d_model // 2):
        ang = offset / np.power(10000, 2 * i / d_model)
        m[2 * i:2 * i + 2, 2 * i:2 * i + 2] = [[np.cos(ang), np.sin(ang)], [-np.sin(ang), np.cos(ang)]]
    return torch.tensor(m)

# %% shift_matrix: the outer product of the encodings of two positions, which shifts one position only
import torch

def shift_matrix(offset, d_model):
    i = torch.arange(0, d_model, 2)
    angle = offset * 10000.0 ** (-i / d_model)
    pe_k = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten()
    pe_0 = torch.stack([torch.zeros_like(angle), torch.ones_like(angle)], dim=-1).flatten()
    return torch.outer(pe_k, pe_0) / (pe_0 @ pe_0)

# %% shift_matrix: the matrix is fitted to the first d_model positions by a float32 inverse, which is far too badly conditioned
import torch

def _pe(length, d):
    p = torch.arange(length).float()[:, None]
    w = 10000.0 ** (-torch.arange(0, d, 2) / d)
    return torch.stack([(p * w).sin(), (p * w).cos()], -1).flatten(1)

def shift_matrix(offset, d_model):
    pe = _pe(d_model + abs(offset), d_model)
    start, shifted = pe[:d_model], pe[abs(offset):abs(offset) + d_model]
    # M @ start.T = shifted.T
    return shifted.T @ torch.linalg.pinv(start.T)

# %% apply_rotary: pairs x_i with x_(i + d/2) instead of neighbours
import torch

def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    inv = base ** (-torch.arange(0, d, 2, device=x.device, dtype=x.dtype) / d)
    ang = positions.to(x.dtype)[:, None] * inv
    cos, sin = torch.cat([ang.cos()] * 2, -1), torch.cat([ang.sin()] * 2, -1)
    x1, x2 = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-x2, x1], dim=-1) * sin

# %% apply_rotary: rotates in the opposite direction
import torch

def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    theta = positions.to(x.dtype).unsqueeze(-1) * base ** (-torch.arange(0, d, 2, dtype=x.dtype, device=x.device) / d)
    c, s = theta.cos(), theta.sin()
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack([even * c + odd * s, odd * c - even * s], dim=-1).flatten(-2)

# %% apply_rotary: the exponent is -i/d instead of -2i/d
import torch

def apply_rotary(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    freqs = torch.pow(torch.tensor(base, dtype=x.dtype, device=x.device),
                      -torch.arange(half, dtype=x.dtype, device=x.device) / x.shape[-1])
    angles = torch.outer(positions.to(x.dtype), freqs)
    pairs = x.unflatten(-1, (half, 2))
    a, b = pairs.unbind(-1)
    rotated = torch.stack((a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()), dim=-1)
    return rotated.flatten(-2)

# %% apply_rotary: the even entries are overwritten before the odd ones are computed (and x itself is changed)
import torch

def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    i = torch.arange(d // 2, device=x.device, dtype=x.dtype)
    ang = positions.to(x.dtype)[:, None] / base ** (2 * i / d)
    x[..., 0::2] = x[..., 0::2] * ang.cos() - x[..., 1::2] * ang.sin()
    x[..., 1::2] = x[..., 0::2] * ang.sin() + x[..., 1::2] * ang.cos()
    return x

# %% apply_rotary: the argument positions is not used, the angles are those of 0 ... L-1
import torch

def apply_rotary(x, positions, base=10000.0):
    L, d = x.shape[-2:]
    t = torch.arange(L, dtype=x.dtype, device=x.device)
    inv_freq = 1.0 / base ** (torch.arange(0, d, 2, dtype=x.dtype, device=x.device) / d)
    ang = torch.einsum("l,f->lf", t, inv_freq)
    out = torch.empty_like(x)
    out[..., ::2] = x[..., ::2] * ang.cos() - x[..., 1::2] * ang.sin()
    out[..., 1::2] = x[..., ::2] * ang.sin() + x[..., 1::2] * ang.cos()
    return out

# %% apply_rotary: the angles are computed in float32 for float64 inputs too
import torch

def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    freq = 1.0 / (base ** (torch.arange(0, d, 2).float() / d)).to(x.device)
    ang = positions.float()[:, None] * freq[None, :]
    cos = torch.repeat_interleave(ang.cos(), 2, dim=-1).to(x.dtype)
    sin = torch.repeat_interleave(ang.sin(), 2, dim=-1).to(x.dtype)
    turned = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).reshape(x.shape)
    return x * cos + turned * sin

# %% apply_rotary: base is ignored in favour of 10000, and the sequence is taken to lie on axis 1
import torch

def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    w = 10000.0 ** (-torch.arange(0, d, 2, dtype=x.dtype, device=x.device) / d)
    ang = positions.to(x.dtype)[:, None] * w
    shape = [1] * x.dim()
    shape[1 if x.dim() > 2 else 0] = len(positions)
    shape[-1] = d // 2
    ang = ang.view(shape)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * ang.cos() - b * ang.sin(), a * ang.sin() + b * ang.cos()], -1).flatten(-2)

# %% apply_rotary: the rotated even and odd entries are joined in halves instead of interleaved again
import torch

def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    exponent = torch.arange(0, d, 2, dtype=x.dtype, device=x.device) / d
    angle = positions.to(x.dtype).reshape(-1, 1) * (1 / base ** exponent)
    e, o = x[..., 0::2], x[..., 1::2]
    new_e = e * torch.cos(angle) - o * torch.sin(angle)
    new_o = e * torch.sin(angle) + o * torch.cos(angle)
    return torch.cat([new_e, new_o], dim=-1)

# %% alibi_bias: the slopes start at 2^0, h is used for h + 1
import torch

def alibi_bias(num_heads, length):
    h = torch.arange(num_heads, dtype=torch.float32)
    slopes = 2.0 ** (-8 * h / num_heads)
    pos = torch.arange(length)
    return -slopes[:, None, None] * (pos[:, None] - pos[None, :]).abs()

# %% alibi_bias: the bias is positive, far keys are favoured
import torch

def alibi_bias(num_heads, length):
    idx = torch.arange(length, dtype=torch.float32)
    dist = torch.abs(idx.unsqueeze(0) - idx.unsqueeze(1))
    slope = torch.tensor([2 ** (-8 * (h + 1) / num_heads) for h in range(num_heads)])
    return slope.view(-1, 1, 1) * dist

# %% alibi_bias: the signed distance j - i, so later keys get a positive bias
import torch

def alibi_bias(num_heads, length):
    slopes = torch.pow(2.0, -8.0 * torch.arange(1, num_heads + 1) / num_heads)
    i = torch.arange(length)[:, None]
    j = torch.arange(length)[None, :]
    return torch.einsum("h,ij->hij", slopes, (j - i).float())

# %% alibi_bias: the slopes 2^-(h+1) of eight heads for every number of heads
import torch

def alibi_bias(num_heads, length):
    bias = torch.zeros(num_heads, length, length)
    for h in range(num_heads):
        m = 1 / 2 ** (h + 1)
        for i in range(length):
            for j in range(length):
                bias[h, i, j] = -m * abs(i - j)
    return bias

# %% alibi_bias: the head axis comes last, (L, L, H)
import torch

def alibi_bias(num_heads, length):
    d = (torch.arange(length)[:, None] - torch.arange(length)).abs()
    slopes = 2.0 ** (-8.0 * (torch.arange(num_heads) + 1) / num_heads)
    return -d[..., None] * slopes

# %% alibi_bias: 8 // H in the exponent, which is 0 for more than eight heads
import torch

def alibi_bias(num_heads, length):
    step = 8 // num_heads
    slopes = torch.tensor([2.0 ** (-step * (h + 1)) for h in range(num_heads)])
    p = torch.arange(length, dtype=torch.float32)
    return slopes[:, None, None] * -torch.cdist(p[:, None], p[:, None], p=1)

# %% alibi_bias: the squared distance, and the future is set to -inf
import torch

def alibi_bias(num_heads, length):
    slopes = 2.0 ** (-8.0 * torch.arange(1, num_heads + 1) / num_heads)
    i = torch.arange(length)
    dist = (i[:, None] - i[None, :]).float()
    bias = -slopes.view(num_heads, 1, 1) * dist.pow(2)
    return bias.masked_fill(dist < 0, float("-inf"))

# %% alibi_bias: the exponent is divided by length instead of by the number of heads
import torch

def alibi_bias(num_heads, length):
    def slope(h):
        return 2 ** (-8 * (h + 1) / length)
    rel = torch.arange(length).view(1, -1) - torch.arange(length).view(-1, 1)
    rel = rel.abs().to(torch.float32)
    return torch.stack([-slope(h) * rel for h in range(num_heads)])
