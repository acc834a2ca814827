# %% LearnedPositionalEmbedding: embedding of an arange
import torch
from torch import nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        n = x.shape[1]
        if n > self.embedding.num_embeddings:
            raise ValueError("sequence is too long")
        return x + self.embedding(torch.arange(n, device=x.device))

# %% LearnedPositionalEmbedding: weight slice
from torch import nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        table = self.embedding.weight
        if x.size(1) > len(table):
            raise ValueError(f"{x.size(1)} > {len(table)}")
        return table[: x.size(1)].unsqueeze(0).add(x)

# %% LearnedPositionalEmbedding: one-hot product
import torch
from torch import nn
import torch.nn.functional as F


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.max_length = max_length
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        b, n, d = x.shape
        if self.max_length < n:
            raise ValueError
        hot = F.one_hot(torch.arange(n, device=x.device), self.max_length).to(x.dtype)
        return torch.einsum("lm,md->ld", hot, self.embedding.weight) + x

# %% LearnedPositionalEmbedding: non-persistent buffer of positions
import torch
from torch import nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length: int, d_model: int):
        super().__init__()
        self.embedding = nn.Embedding(max_length, d_model)
        self.register_buffer("positions", torch.arange(max_length)[None], persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] > self.positions.shape[1]:
            raise ValueError("L > max_length")
        return x + self.embedding(self.positions[:, : x.shape[1]])

# %% LearnedPositionalEmbedding: forward pre-hook does the length check
import torch
from torch import nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Embedding(max_length, d_model)
        self.embedding.register_forward_pre_hook(self._check)

    @staticmethod
    def _check(module, args):
        if args[0].numel() > module.num_embeddings:
            raise ValueError("too long")

    def forward(self, x):
        return x + self.embedding(torch.arange(x.shape[1]).to(x.device)).expand_as(x)

# %% LearnedPositionalEmbedding: built on meta and materialised, checkpointed add
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Embedding(max_length, d_model, device="meta").to_empty(device="cpu")
        self.embedding.reset_parameters()

    def _add(self, x):
        return x + self.embedding.weight.narrow(0, 0, x.shape[1])

    def forward(self, x):
        if x.shape[1] > self.embedding.weight.shape[0]:
            raise ValueError("max_length")
        return checkpoint(self._add, x, use_reentrant=False)

# %% LearnedPositionalEmbedding: vmap over the batch, index_select
import torch
from torch import nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        n = x.shape[-2]
        if n not in range(self.embedding.num_embeddings + 1):
            raise ValueError(n)
        table = torch.index_select(self.embedding.weight, 0, torch.arange(n, device=x.device))
        return torch.vmap(torch.add, in_dims=(0, None))(x, table)

# %% LearnedPositionalEmbedding: loop over positions and F.embedding
import torch
from torch import nn
import torch.nn.functional as F


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        steps = x.unbind(1)
        if len(steps) > self.embedding.weight.size(0):
            raise ValueError("positions ran out")
        rows = [s + F.embedding(torch.tensor(i, device=x.device), self.embedding.weight) for i, s in enumerate(steps)]
        return torch.stack(rows, 1)

# %% LearnedPositionalEmbedding: clone and in-place add
import torch
from torch import nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        nn.Module.__init__(self)
        self.embedding = nn.Embedding(embedding_dim=d_model, num_embeddings=max_length)

    def forward(self, x):
        match x.shape:
            case (_, n, _) if n <= self.embedding.num_embeddings:
                out = x.clone()
                out += self.embedding.weight[:n]
                return out
            case _:
                raise ValueError(tuple(x.shape))

# %% sinusoidal_encoding: interleaved writes with float64 angles
import torch


def sinusoidal_encoding(length, d_model):
    pos = torch.arange(length, dtype=torch.float64).unsqueeze(1)
    freq = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    out = torch.zeros(length, d_model)
    out[:, 0::2] = torch.sin(pos * freq)
    out[:, 1::2] = torch.cos(pos * freq[: d_model // 2])
    return out

# %% sinusoidal_encoding: complex exponential viewed as real
import torch


def sinusoidal_encoding(length, d_model):
    pairs = (d_model + 1) // 2
    w = 10000.0 ** (-2.0 * torch.arange(pairs, dtype=torch.float64) / d_model)
    z = torch.exp(1j * torch.outer(torch.arange(length, dtype=torch.float64), w))
    both = torch.view_as_real(z).flip(-1)
    return both.flatten(1)[:, :d_model].float()

# %% sinusoidal_encoding: double loop in plain math
import math
import torch


def sinusoidal_encoding(length, d_model):
    rows = []
    for pos in range(length):
        row = []
        for c in range(d_model):
            angle = pos / 10000 ** ((c // 2 * 2) / d_model)
            row.append(math.cos(angle) if c % 2 else math.sin(angle))
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float32).reshape(length, d_model)

# %% sinusoidal_encoding: cosine as a shifted sine
import math
import torch


def sinusoidal_encoding(length, d_model):
    c = torch.arange(d_model)
    even = c - c % 2
    inv = torch.exp(-math.log(10000.0) * even.double() / d_model)
    angle = torch.arange(length).double()[:, None] * inv
    return torch.sin(angle + (c % 2) * (math.pi / 2)).to(torch.float32)

# %% sinusoidal_encoding: vmap over positions and polar
import torch
from torch import vmap


def sinusoidal_encoding(length, d_model):
    half = -(-d_model // 2)
    inv = torch.pow(torch.tensor(10000.0, dtype=torch.float64), -torch.arange(half, dtype=torch.float64) * 2 / d_model)

    def at(p):
        a = p * inv
        return torch.stack((a.sin(), a.cos()), dim=1).flatten()[:d_model]

    return vmap(at)(torch.arange(length, dtype=torch.float64)).to(torch.float32)

# %% sinusoidal_encoding: default dtype switched and restored
import torch


def sinusoidal_encoding(length, d_model):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        i = torch.arange(0.0, d_model, 2.0)
        angles = torch.arange(float(length))[:, None] / torch.tensor(10000.0) ** (i / d_model)
        full = torch.stack([angles.sin(), angles.cos()], -1).view(length, -1)
    finally:
        torch.set_default_dtype(before)
    return full[:, :d_model].to(torch.float32).contiguous()

# %% sinusoidal_encoding: rotation recurrence with complex cumprod in double
import torch


def sinusoidal_encoding(length, d_model):
    n = (d_model + 1) // 2
    w = 10000.0 ** (-torch.arange(n, dtype=torch.float64) * 2 / d_model)
    step = torch.polar(torch.ones_like(w), w)
    powers = torch.cat((torch.ones(1, n, dtype=step.dtype), step.repeat(length - 1, 1))).cumprod(0)
    out = torch.empty(length, 2 * n)
    out[:, ::2] = powers.imag
    out[:, 1::2] = powers.real
    return out[:, :d_model].clone()

# %% sinusoidal_encoding: scripted
import torch


@torch.jit.script
def sinusoidal_encoding(length: int, d_model: int) -> torch.Tensor:
    out = torch.zeros(length, d_model, dtype=torch.float64)
    pos = torch.arange(length, dtype=torch.float64)
    for c in range(d_model):
        power = float(c - c % 2) / float(d_model)
        angle = pos * torch.pow(torch.tensor(10000.0, dtype=torch.float64), -power)
        if c % 2 == 0:
            out[:, c] = torch.sin(angle)
        else:
            out[:, c] = torch.cos(angle)
    return out.to(torch.float32)

# %% sinusoidal_encoding: numpy float64 with np.where
import numpy as np
import torch


def sinusoidal_encoding(length, d_model):
    c = np.arange(d_model)
    angle = np.arange(length)[:, None] / np.power(10000.0, (c // 2) * 2 / d_model)
    return torch.from_numpy(np.where(c % 2 == 0, np.sin(angle), np.cos(angle)).astype(np.float32))

# %% sinusoidal_encoding: generator of columns, stacked, star import of math
from math import *
import torch


def columns(length, d_model):
    pos = torch.arange(length, dtype=torch.double)
    for c in range(d_model):
        angle = pos * exp(-log(10000.0) * (c & ~1) / d_model)
        yield (torch.cos if c & 1 else torch.sin)(angle)


def sinusoidal_encoding(length, d_model):
    return torch.stack(list(columns(length, d_model)), dim=1).float()

# %% shift_matrix: block_diag of 2x2 rotations
import math
import torch


def shift_matrix(offset, d_model):
    blocks = []
    for i in range(0, d_model, 2):
        a = offset / 10000 ** (i / d_model)
        blocks.append(torch.tensor([[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]))
    return torch.block_diag(*blocks)

# %% shift_matrix: matrix exponential of a skew-symmetric generator in double
import torch


def shift_matrix(offset, d_model):
    w = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    gen = torch.zeros(d_model, d_model, dtype=torch.float64)
    i = torch.arange(0, d_model, 2)
    gen[i, i + 1] = w
    gen[i + 1, i] = -w
    one = torch.linalg.matrix_exp(gen)
    return torch.linalg.matrix_power(one, offset).float()

# %% shift_matrix: diagonal embeddings of cosine and sine
import torch


def shift_matrix(offset, d_model):
    a = offset * 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    c = torch.diag(a.cos().repeat_interleave(2))
    s = torch.stack((a.sin(), torch.zeros_like(a)), 1).flatten()[:-1]
    return (c + torch.diag(s, 1) - torch.diag(s, -1)).to(torch.float32)

# %% shift_matrix: kron and einsum over pairs
import torch


def shift_matrix(offset, d_model):
    n = d_model // 2
    a = torch.tensor([offset / 10000 ** (2 * i / d_model) for i in range(n)], dtype=torch.float64)
    rot = torch.stack((torch.stack((a.cos(), a.sin()), -1), torch.stack((-a.sin(), a.cos()), -1)), -2)
    full = torch.einsum("ij,iab->iajb", torch.eye(n, dtype=torch.float64), rot)
    return full.reshape(d_model, d_model).float()

# %% shift_matrix: index_put into own zeros
import torch


def shift_matrix(offset, d_model):
    e = torch.arange(0, d_model, 2)
    o = e + 1
    ang = float(offset) * torch.exp(e.double() / d_model * -torch.log(torch.tensor(10000.0, dtype=torch.float64)))
    m = torch.zeros(d_model, d_model, dtype=torch.float64)
    for rows, cols, vals in ((e, e, ang.cos()), (o, o, ang.cos()), (e, o, ang.sin()), (o, e, -ang.sin())):
        m.index_put_((rows, cols), vals)
    return m.to(torch.float32)

# %% shift_matrix: complex multiplication applied to the unit vectors
import torch


def shift_matrix(offset, d_model):
    w = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    turn = torch.exp(1j * offset * w)
    basis = torch.eye(d_model, dtype=torch.float64).reshape(d_model, -1, 2)
    z = torch.complex(basis[..., 1].contiguous(), basis[..., 0].contiguous()) * turn
    return torch.stack((z.imag, z.real), -1).reshape(d_model, d_model).T.float()

# %% shift_matrix: jacobian of the rotation by torch.func
import torch
from torch.func import jacrev


def shift_matrix(offset, d_model):
    inv = torch.pow(10000.0, -torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    c, s = torch.cos(inv * offset), torch.sin(inv * offset)

    def shift(pe):
        a, b = pe[0::2], pe[1::2]
        return torch.stack((a * c + b * s, b * c - a * s), 1).flatten()

    return jacrev(shift)(torch.zeros(d_model, dtype=torch.float64)).to(torch.float32)

# %% shift_matrix: linear system solved per pair
import torch


def shift_matrix(offset, d_model):
    out = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(0, d_model, 2):
        w = 10000.0 ** (-i / d_model)
        p = torch.tensor([0.0, torch.pi / 2], dtype=torch.float64)
        now = torch.stack((p.sin(), p.cos()))
        then = torch.stack(((p + offset * w).sin(), (p + offset * w).cos()))
        out[i:i + 2, i:i + 2] = torch.linalg.solve(now, then, left=False)
    return out.float()

# %% shift_matrix: sparse, densified
import torch


def shift_matrix(offset, d_model):
    i = torch.arange(d_model)
    angle = offset * torch.pow(torch.tensor(1e4, dtype=torch.float64), -(i - i % 2) / d_model)
    sign = 1 - 2 * (i % 2)
    rows = torch.cat((i, i))
    cols = torch.cat((i, i + sign))
    vals = torch.cat((angle.cos(), sign * angle.sin()))
    return torch.sparse_coo_tensor(torch.stack((rows, cols)), vals, (d_model, d_model)).to_dense().float()

# %% apply_rotary: complex multiplication
import torch


def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    inv = base ** (-torch.arange(0, d, 2, dtype=torch.float64, device=x.device) / d)
    turn = torch.polar(torch.ones((), dtype=torch.float64).expand(len(positions), d // 2).contiguous(),
                       torch.outer(positions.double(), inv))
    z = torch.view_as_complex(x.double().reshape(*x.shape[:-1], -1, 2).contiguous())
    return torch.view_as_real(z * turn).flatten(-2).to(x.dtype)

# %% apply_rotary: stack and flatten
import torch


def apply_rotary(x, positions, base=10000.0):
    half = x.size(-1) // 2
    theta = positions.to(torch.float64).unsqueeze(-1) * base ** (-torch.arange(half, dtype=torch.float64) / half)
    c, s = theta.cos().to(x.dtype), theta.sin().to(x.dtype)
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack((a * c - b * s, a * s + b * c), dim=-1).flatten(start_dim=-2)

# %% apply_rotary: rotation matrices and einsum
import torch


def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    t = torch.einsum("l,i->li", positions.double(), torch.tensor([base ** (-i / d) for i in range(0, d, 2)], dtype=torch.float64))
    rot = torch.stack((t.cos(), -t.sin(), t.sin(), t.cos()), -1).unflatten(-1, (2, 2)).to(x.dtype)
    return torch.einsum("liab,...lib->...lia", rot, x.unflatten(-1, (-1, 2))).flatten(-2)

# %% apply_rotary: x cos + rotate(x) sin with repeat_interleave
import torch


def _rotate(x):
    y = x.unflatten(-1, (-1, 2))
    return torch.stack((-y[..., 1], y[..., 0]), -1).flatten(-2)


def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    freq = torch.exp(-torch.arange(0, d, 2).double() / d * torch.log(torch.tensor(base, dtype=torch.float64)))
    ang = (positions.double()[:, None] * freq).repeat_interleave(2, dim=-1)
    return x * ang.cos().to(x.dtype) + _rotate(x) * ang.sin().to(x.dtype)

# %% apply_rotary: loop over pairs, in-place on own tensor
import math
import torch


def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    out = torch.zeros_like(x)
    for i in range(d // 2):
        ang = [float(p) * base ** (-2 * i / d) for p in positions.tolist()]
        c = torch.tensor([math.cos(a) for a in ang], dtype=x.dtype)
        s = torch.tensor([math.sin(a) for a in ang], dtype=x.dtype)
        out[..., 2 * i] = x[..., 2 * i] * c - x[..., 2 * i + 1] * s
        out[..., 2 * i + 1] = x[..., 2 * i] * s + x[..., 2 * i + 1] * c
    return out

# %% apply_rotary: custom Function, backward is the opposite rotation
import torch


class Rotary(torch.autograd.Function):
    @staticmethod
    def rotate(x, c, s):
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * c - b * s, a * s + b * c), -1).reshape(x.shape)

    @staticmethod
    def forward(ctx, x, c, s):
        ctx.save_for_backward(c, s)
        return Rotary.rotate(x, c, s)

    @staticmethod
    def backward(ctx, g):
        c, s = ctx.saved_tensors
        return Rotary.rotate(g, c, -s), None, None


def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    theta = positions.double()[:, None] / base ** (torch.arange(0, d, 2).double() / d)
    return Rotary.apply(x, theta.cos().to(x.dtype), theta.sin().to(x.dtype))

# %% apply_rotary: vmap over the leading axes and over positions
import torch
from torch.func import vmap


def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    inv = torch.pow(torch.as_tensor(base, dtype=torch.float64), -torch.arange(0, d, 2, dtype=torch.float64) / d)

    def token(v, p):
        pair = v.reshape(-1, 2)
        t = p * inv
        c, s = t.cos().to(v.dtype), t.sin().to(v.dtype)
        return torch.stack((pair[:, 0] * c - pair[:, 1] * s, pair[:, 0] * s + pair[:, 1] * c), 1).reshape(-1)

    f = vmap(token)
    for _ in range(x.dim() - 2):
        f = vmap(f, in_dims=(0, None))
    return f(x, positions.double())

# %% apply_rotary: scripted, default base
import torch


@torch.jit.script
def apply_rotary(x: torch.Tensor, positions: torch.Tensor, base: float = 10000.0) -> torch.Tensor:
    d = x.size(-1)
    i = torch.arange(0, d, 2, dtype=torch.float64, device=x.device)
    t = positions.to(torch.float64).unsqueeze(1) * torch.pow(torch.full_like(i, base), -i / d)
    c = torch.cos(t).to(x.dtype)
    s = torch.sin(t).to(x.dtype)
    a = x[..., 0::2]
    b = x[..., 1::2]
    return torch.stack([a * c - b * s, b * c + a * s], -1).flatten(-2)

# %% apply_rotary: block matrices from matrix_exp, batched matmul
import torch


def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    i = torch.arange(0, d, 2)
    ang = positions.double()[:, None] * base ** (-i.double() / d)
    gen = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    rot = torch.cos(ang)[..., None, None] * torch.eye(2, dtype=torch.float64) + torch.sin(ang)[..., None, None] * gen
    pairs = x.reshape(*x.shape[:-1], d // 2, 2, 1).double()
    return torch.matmul(rot, pairs).reshape(x.shape).to(x.dtype)

# %% apply_rotary: three shears instead of a rotation, scatter back
import torch


def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    theta = torch.outer(positions.double(), base ** (-torch.arange(0, d, 2).double() / d))
    theta = torch.remainder(theta + torch.pi, 2 * torch.pi) - torch.pi
    quarter = torch.round(theta / (torch.pi / 2))
    rest = theta - quarter * (torch.pi / 2)
    a, b = x[..., 0::2].double(), x[..., 1::2].double()
    for turn in (1, 2, 3):
        hit = torch.remainder(quarter, 4) == turn
        a, b = (torch.where(hit, (-b, -a, b)[turn - 1], a), torch.where(hit, (a, -b, -a)[turn - 1], b))
    t, s = torch.tan(rest / 2), torch.sin(rest)
    a = a - t * b
    b = b + s * a
    a = a - t * b
    index = torch.arange(0, d, 2).expand(a.shape)
    out = torch.zeros(x.shape, dtype=torch.float64).scatter(-1, index, a).scatter(-1, index + 1, b)
    return out.to(x.dtype)

# %% alibi_bias: broadcast formula
import torch


def alibi_bias(num_heads, length):
    h = torch.arange(1, num_heads + 1, dtype=torch.float64)
    slope = torch.exp2(-8 * h / num_heads)
    i = torch.arange(length)
    return (-slope[:, None, None] * (i[:, None] - i).abs()).float()

# %% alibi_bias: loop over heads with a running product
import torch


def alibi_bias(num_heads, length):
    p = torch.arange(length, dtype=torch.float64)
    gap = torch.abs(p.unsqueeze(0) - p.unsqueeze(1))
    ratio = 2.0 ** (-8.0 / num_heads)
    slope, out = 1.0, []
    for _ in range(num_heads):
        slope *= ratio
        out.append(gap.mul(-slope))
    return torch.stack(out).to(torch.float32)

# %% alibi_bias: einsum of slopes and distances
import torch


def alibi_bias(num_heads, length):
    slopes = torch.tensor([2 ** (-8 * (h + 1) / num_heads) for h in range(num_heads)])
    p = torch.arange(length, dtype=torch.float32)
    return torch.einsum("h,ij->hij", slopes.neg(), torch.cdist(p[:, None], p[:, None], p=1.0))

# %% alibi_bias: nested vmap of the scalar formula
import torch
from torch import vmap


def alibi_bias(num_heads, length):
    def entry(h, i, j):
        return -torch.pow(2.0, -8.0 * (h + 1.0) / num_heads) * torch.abs(i - j)

    f = vmap(vmap(vmap(entry, (None, None, 0)), (None, 0, None)), (0, None, None))
    n = torch.arange(length, dtype=torch.float64)
    return f(torch.arange(num_heads, dtype=torch.float64), n, n).float()

# %% alibi_bias: numpy in double
import numpy as np
import torch


def alibi_bias(num_heads, length):
    slope = np.power(2.0, -8.0 * np.arange(1, num_heads + 1) / num_heads)
    gap = np.abs(np.subtract.outer(np.arange(length), np.arange(length)))
    return torch.from_numpy(np.multiply.outer(-slope, gap).astype(np.float32))

# %% alibi_bias: minimum of signed distances, logspace slopes
import torch


def alibi_bias(num_heads, length):
    slopes = torch.logspace(-8 / num_heads, -8, num_heads, base=2.0, dtype=torch.float64)
    i = torch.arange(length).double()
    d = i.view(1, -1, 1) - i.view(1, 1, -1)
    return (torch.minimum(d, -d) * slopes.view(-1, 1, 1)).to(dtype=torch.float32)

# %% alibi_bias: Decimal slopes and itertools
from decimal import Decimal, getcontext
from itertools import product
import torch


def alibi_bias(num_heads, length):
    getcontext()
    slopes = [Decimal(2) ** (Decimal(-8 * (h + 1)) / Decimal(num_heads)) for h in range(num_heads)]
    cells = [float(-s * abs(i - j)) for s, i, j in product(slopes, range(length), range(length))]
    return torch.tensor(cells, dtype=torch.float32).reshape(num_heads, length, length)

# %% alibi_bias: Toeplitz rows by unfold, script
import torch


@torch.jit.script
def alibi_bias(num_heads: int, length: int) -> torch.Tensor:
    line = torch.arange(1 - length, length, dtype=torch.float64).abs()
    gap = line.unfold(0, length, 1).flip(0)
    slope = torch.pow(2.0, -8.0 * torch.arange(1, num_heads + 1, dtype=torch.float64) / num_heads)
    return (-slope.view(-1, 1, 1) * gap).to(torch.float32)

# %% alibi_bias: two triangles by cumulative sums
import torch


def alibi_bias(num_heads: int, length: int) -> torch.Tensor:
    below = torch.ones(length, length, dtype=torch.float64).tril(-1).cumsum(0)
    gap = below + below.T
    h = torch.linspace(8 / num_heads, 8, num_heads, dtype=torch.float64)
    return torch.mul(gap, -(2 ** -h)[:, None, None]).float()

# %% LearnedPositionalEmbedding: parametrization used for the initial scale, then removed
import torch
from torch import nn
from torch.nn.utils import parametrize


class Half(nn.Module):
    def forward(self, w):
        return w / 2


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Embedding(max_length, d_model)
        parametrize.register_parametrization(self.embedding, "weight", Half())
        parametrize.remove_parametrizations(self.embedding, "weight", leave_parametrized=True)

    def forward(self, x):
        if x.shape[1] > self.embedding.num_embeddings:
            raise ValueError("L > max_length")
        return x + self.embedding(torch.arange(x.shape[1], device=x.device))

# %% LearnedPositionalEmbedding: sparse one-hot product
import torch
from torch import nn


class LearnedPositionalEmbedding(nn.Module):
    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Embedding(max_length, d_model)

    def forward(self, x):
        n, m = x.shape[1], self.embedding.num_embeddings
        if n > m:
            raise ValueError("too many positions")
        i = torch.arange(n)
        pick = torch.sparse_coo_tensor(torch.stack((i, i)), torch.ones(n, dtype=x.dtype), (n, m))
        return x + torch.sparse.mm(pick, self.embedding.weight)

# %% sinusoidal_encoding: inverse frequencies in a non-persistent buffer of a cached module
from functools import lru_cache
import torch
from torch import nn


class Frequencies(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.register_buffer("inv", 10000.0 ** (-torch.arange(0, d, 2).double() / d), persistent=False)

    def forward(self, n):
        a = torch.arange(n).double().unsqueeze(1) * self.inv
        return torch.stack((a.sin(), a.cos()), 2).flatten(1)


@lru_cache(maxsize=None)
def _module(d):
    return Frequencies(d)


def sinusoidal_encoding(length, d_model):
    return _module(d_model)(length)[:, :d_model].float()

# %% sinusoidal_encoding: context manager that switches the default dtype, star import of torch
from contextlib import contextmanager
from torch import *
from torch import get_default_dtype, set_default_dtype


@contextmanager
def default(dtype):
    before = get_default_dtype()
    set_default_dtype(dtype)
    try:
        yield
    finally:
        set_default_dtype(before)


def sinusoidal_encoding(length, d_model):
    with default(float64):
        c = arange(d_model)
        a = outer(arange(length) * 1.0, 10000.0 ** (-(c - c % 2) / d_model))
        out = where(c % 2 == 0, sin(a), cos(a))
    return out.to(float32)

# %% shift_matrix: parametrized rotation, detached
import torch
from torch import nn
from torch.nn.utils import parametrize


class Rotation(nn.Module):
    def forward(self, angle):
        c, s = angle.cos(), angle.sin()
        return torch.block_diag(*torch.stack((c, s, -s, c), -1).view(-1, 2, 2))


def shift_matrix(offset, d_model):
    host = nn.Module()
    host.angle = nn.Parameter(offset * 10000.0 ** (-torch.arange(0, d_model, 2).double() / d_model))
    parametrize.register_parametrization(host, "angle", Rotation(), unsafe=True)
    return host.angle.detach().float()

# %% shift_matrix: default dtype switched, powers by repeated squaring
import torch


def shift_matrix(offset, d_model):
    old = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        angle = torch.pow(10000.0, -torch.arange(0, d_model, 2) / d_model)
        one = torch.block_diag(*[torch.tensor([[a.cos(), a.sin()], [-a.sin(), a.cos()]]) for a in angle])
        base = one if offset >= 0 else one.T
        k, out = abs(offset), torch.eye(d_model)
        while k:
            if k & 1:
                out = out @ base
            base = base @ base
            k >>= 1
    finally:
        torch.set_default_dtype(old)
    return out.to(torch.float32)

# %% apply_rotary: default dtype switched for the angles only, index_add of the sine part
import torch


def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        angle = positions.to(torch.float64)[:, None] * torch.pow(base, -torch.arange(0.0, d, 2.0) / d)
        c = angle.cos().repeat_interleave(2, -1).to(x.dtype)
        s = torch.stack((-angle.sin(), angle.sin()), -1).flatten(1).to(x.dtype)
    finally:
        torch.set_default_dtype(before)
    partner = torch.arange(d).view(-1, 2).flip(1).flatten()
    return (x * c).index_add(-1, torch.arange(d), x.index_select(-1, partner) * s)

# %% alibi_bias: parametrized slopes
import torch
from torch import nn
from torch.nn.utils import parametrize


class PowerOfTwo(nn.Module):
    def forward(self, e):
        return torch.exp2(-e)


def alibi_bias(num_heads, length):
    head = nn.Module()
    head.slope = nn.Parameter(8 * torch.arange(1, num_heads + 1, dtype=torch.float64) / num_heads, requires_grad=False)
    parametrize.register_parametrization(head, "slope", PowerOfTwo())
    p = torch.arange(length)
    return (-head.slope.view(-1, 1, 1) * (p - p.view(-1, 1)).abs()).float()

# %% alibi_bias: broadcast_tensors and linalg norms, default dtype switched, threads per head
from concurrent.futures import ThreadPoolExecutor
import torch


def alibi_bias(num_heads, length):
    old = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        i, j = torch.broadcast_tensors(torch.arange(length * 1.0)[:, None], torch.arange(length * 1.0))
        gap = torch.linalg.vector_norm(torch.stack((i - j,)), dim=0)
        with ThreadPoolExecutor(2) as pool:
            parts = list(pool.map(lambda h: gap * -(2.0 ** (-8.0 * (h + 1) / num_heads)), range(num_heads)))
    finally:
        torch.set_default_dtype(old)
    return torch.stack(parts).float()

# %% alibi_bias: absolute value of complex differences, Fraction exponents
from fractions import Fraction
import torch


def alibi_bias(num_heads, length):
    z = torch.arange(length, dtype=torch.float64) + 0j
    gap = (z[:, None] - z).abs()
    slopes = [2.0 ** float(Fraction(-8 * h, num_heads)) for h in range(1, num_heads + 1)]
    return torch.tensordot(-torch.tensor(slopes, dtype=torch.float64)[:, None], gap[None], dims=1).to(torch.float32)
