# %% split_heads: reshape and transpose
def split_heads(x, num_heads):
    *lead, length, d_model = x.shape
    if d_model % num_heads != 0:
        raise ValueError("d_model must be divisible by num_heads")
    return x.reshape(*lead, length, num_heads, d_model // num_heads).transpose(-3, -2)


# %% split_heads: loop over heads, slices stacked
import torch


def split_heads(x, num_heads):
    d_head, rest = divmod(x.size(-1), num_heads)
    if rest:
        raise ValueError(f"{x.size(-1)} features for {num_heads} heads")
    heads = []
    for h in range(num_heads):
        heads.append(x[..., h * d_head : (h + 1) * d_head])
    return torch.stack(heads, dim=-3)


# %% split_heads: chunk and cat, own exception class, warns and prints
import warnings

import torch


class HeadsDoNotDivide(ValueError):
    """Not a whole number of features for each head."""


def split_heads(x, num_heads):
    warnings.warn("copying the heads")
    if x.shape[-1] % num_heads:
        raise HeadsDoNotDivide(x.shape, num_heads)
    print("splitting", x.shape[-1], "features")
    return torch.cat([part.unsqueeze(-3) for part in torch.chunk(x, num_heads, dim=-1)], dim=-3)


# %% split_heads: features picked by an index table
import torch


def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    d_model = x.shape[-1]
    if d_model // num_heads * num_heads != d_model:
        raise ValueError("num_heads has to divide the last axis")
    table = torch.arange(d_model, device=x.device).view(num_heads, -1)  # (H, d_head)
    picked = x[..., table]  # (..., L, H, d_head)
    return picked.movedim(-2, -3)


# %% split_heads: unfold along the features
def split_heads(x, num_heads):
    width = x.shape[-1] / num_heads
    if not width.is_integer():
        raise ValueError("width of a head must be whole")
    return x.unfold(-1, int(width), int(width)).swapaxes(-3, -2)


# %% split_heads: recursion over the heads, contiguous copy
import torch


def split_heads(x, num_heads):
    def peel(rest, how_many):
        if how_many == 0:
            return []
        width = rest.shape[-1] // how_many
        return [rest.narrow(-1, 0, width)] + peel(rest.narrow(-1, width, rest.shape[-1] - width), how_many - 1)

    if num_heads <= 0 or x.shape[-1] % num_heads > 0:
        raise ValueError(f"cannot split {x.shape[-1]} into {num_heads}")
    return torch.stack(peel(x, num_heads), -3).contiguous()


# %% merge_heads: transpose and reshape
def merge_heads(x):
    x = x.transpose(-3, -2).contiguous()
    return x.view(*x.shape[:-2], x.shape[-2] * x.shape[-1])


# %% merge_heads: the heads side by side, cat of unbind
import torch

merge_heads = lambda x: torch.cat(x.unbind(-3), dim=-1)  # noqa: E731


# %% merge_heads: loops over positions and heads
import torch


def merge_heads(x):
    num_heads, length = x.shape[-3], x.shape[-2]
    positions = []
    for i in range(length):
        features = ()
        for h in range(num_heads):
            features += (x[..., h, i, :],)
        positions.append(torch.hstack(features) if x.dim() == 3 else torch.cat(features, -1))
    return torch.stack(positions, -2)


# %% merge_heads: swapdims and flatten through a helper class, prints
import warnings


class Merger:
    def __init__(self, axis):
        self.axis = axis

    def __call__(self, x):
        print("merging", x.shape[self.axis], "heads")
        warnings.warn("merge_heads copies")
        return x.swapdims(self.axis, self.axis + 1).flatten(start_dim=-2)


merge_heads = Merger(-3)


# %% merge_heads: written into an empty tensor, slice by slice
def merge_heads(x):
    *lead, heads, length, width = x.shape
    merged = x.new_zeros(*lead, length, heads * width)
    for h in range(heads):
        merged[..., h * width : (h + 1) * width] = x[..., h, :, :]
    return merged


# %% merge_heads: recursion, the first half beside the second
import torch


def merge_heads(x):
    n = x.size(-3)
    if n == 1:
        return x.squeeze(-3)
    left = x.narrow(-3, 0, n // 2)
    right = x.narrow(-3, n // 2, n - n // 2)
    return torch.cat((merge_heads(left), merge_heads(right)), -1)


# %% MultiHeadAttention: textbook
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model must be divisible by num_heads")
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def split(self, x):
        return x.view(x.size(0), -1, self.num_heads, self.d_k).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q, k, v = self.split(self.q_proj(query)), self.split(self.k_proj(key)), self.split(self.v_proj(value))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        heads = (weights @ v).transpose(1, 2).contiguous().view(query.size(0), -1, self.num_heads * self.d_k)
        return self.out_proj(heads), weights


# %% MultiHeadAttention: loop over heads with slices of the weights, sub-modules in another order
import torch
import torch.nn.functional as F
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        if d_model % num_heads:
            raise ValueError(f"{num_heads} does not divide {d_model}")
        super().__init__()
        for name in ("out_proj", "v_proj", "k_proj", "q_proj"):
            self.add_module(name, nn.Linear(d_model, d_model))
        self.h, self.d = num_heads, d_model

    def _head(self, linear, x, h):
        rows = slice(h * self.d // self.h, (h + 1) * self.d // self.h)
        return F.linear(x, linear.weight[rows], linear.bias[rows])

    def forward(self, query, key, value, mask=None):
        if mask is not None:
            mask = mask.expand(query.shape[0], self.h, query.shape[1], key.shape[1])
        total, maps = self.out_proj.bias, []
        for h in range(self.h):
            q = self._head(self.q_proj, query, h)
            k = self._head(self.k_proj, key, h)
            v = self._head(self.v_proj, value, h)
            s = torch.bmm(q, k.transpose(1, 2)) / q.shape[-1] ** 0.5
            if mask is not None:
                s = torch.where(mask[:, h], s, torch.full_like(s, -torch.inf))
            w = s.softmax(-1)
            # the concatenation times W_O is a sum over the heads
            columns = slice(h * self.d // self.h, (h + 1) * self.d // self.h)
            total = total + F.linear(w @ v, self.out_proj.weight[:, columns])
            maps.append(w)
        return total, torch.stack(maps, 1)


# %% MultiHeadAttention: einsum with the weights cut into heads
import torch
from torch import Tensor, einsum, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        self.d_head, remainder = divmod(d_model, num_heads)
        if remainder != 0:
            raise ValueError(f"num_heads must divide d_model, {d_model=}, {num_heads=}")
        self.num_heads = num_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(d_model, d_model) for _ in range(4))

    def project(self, layer: nn.Linear, x: Tensor) -> Tensor:
        weight = layer.weight.unflatten(0, (self.num_heads, self.d_head))
        bias = layer.bias.unflatten(0, (self.num_heads, 1, self.d_head))
        return einsum("bld,hed->bhle", x, weight) + bias

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        q, k, v = self.project(self.q_proj, query), self.project(self.k_proj, key), self.project(self.v_proj, value)
        scores = einsum("bhqe,bhke->bhqk", q, k) * self.d_head**-0.5
        if mask is not None:
            scores = scores + torch.zeros_like(scores).masked_fill(~mask, -torch.inf)
        weights = scores.softmax(-1)
        out = self.out_proj.weight.unflatten(1, (self.num_heads, self.d_head))
        return einsum("bhqk,bhke,dhe->bqd", weights, v, out) + self.out_proj.bias, weights


# %% MultiHeadAttention: float64 inside, heads folded into the batch, warns and prints
import warnings

import torch
from torch import nn
from torch.nn.functional import linear


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("heads")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)
        print("built a MultiHeadAttention with", num_heads, "heads")

    def forward(self, query, key, value, mask=None):
        warnings.warn("double precision inside", stacklevel=2)
        b, lq, d = query.shape
        lk = key.shape[1]
        pairs = ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))
        q, k, v = (linear(x.double(), p.weight.double(), p.bias.double()) for p, x in pairs)
        q, k, v = (
            t.reshape(b, -1, self.num_heads, d // self.num_heads).permute(0, 2, 1, 3).flatten(0, 1) for t in (q, k, v)
        )
        s = torch.bmm(q, k.mT) / (d / self.num_heads) ** 0.5
        if mask is not None:
            s = s.masked_fill(~mask.expand(b, self.num_heads, lq, lk).reshape(-1, lq, lk), -1e300)
        w = torch.softmax(s, -1)
        o = (w @ v).unflatten(0, (b, -1)).permute(0, 2, 1, 3).reshape(b, lq, d)
        o = linear(o, self.out_proj.weight.double(), self.out_proj.bias.double())
        return o.to(query.dtype), w.unflatten(0, (b, -1)).to(query.dtype)


# %% MultiHeadAttention: mixin, extra modules without parameters, stacked projections
import torch
from torch import nn


class HeadsMixin:
    def to_heads(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).movedim(-2, -3)

    @staticmethod
    def from_heads(x):
        return x.movedim(-3, -2).flatten(-2)


class _Base(nn.Module):
    def __init__(self, *sizes):
        super().__init__()
        self.dropout = nn.Dropout(0.0)
        self.normalise = nn.Softmax(dim=-1)
        self.q_proj = nn.Linear(*sizes)
        self.k_proj = nn.Linear(*sizes)
        self.v_proj = nn.Linear(*sizes)
        self.out_proj = nn.Linear(*sizes)


class MultiHeadAttention(HeadsMixin, _Base):
    def __init__(self, d_model, num_heads, scale=None):
        super().__init__(d_model, d_model)
        if d_model % num_heads != 0:
            raise ValueError("d_model % num_heads must be 0")
        self.num_heads = num_heads
        self.scale = scale or (d_model // num_heads) ** -0.5
        self.register_buffer("minus_infinity", torch.tensor(-torch.inf), persistent=False)

    def forward(self, query, key, value, mask=None):
        key_value = torch.block_diag(self.k_proj.weight, self.v_proj.weight)
        bias = torch.cat((self.k_proj.bias, self.v_proj.bias))
        k, v = (torch.cat((key, value), -1) @ key_value.T + bias).chunk(2, -1)
        scores = self.to_heads(self.q_proj(query)) @ self.to_heads(k).mT * self.scale
        if mask is not None:
            scores = torch.where(mask, scores, self.minus_infinity.to(scores.dtype))
        weights = self.dropout(self.normalise(scores))
        return self.out_proj(self.from_heads(weights @ self.to_heads(v))), weights


# %% MultiHeadAttention: loops over batch, heads and queries, own softmax
import torch
from torch import nn


def attend_one(q, keys, values, allowed):
    scores = (keys * q).sum(-1) / len(q) ** 0.5
    if allowed is not None:
        scores = scores.masked_fill(torch.logical_not(allowed), float("-inf"))
    e = torch.exp(scores - scores.max())
    w = e / e.sum()
    return (w[:, None] * values).sum(0), w


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model // num_heads * num_heads != d_model:
            raise ValueError
        self.num_heads = num_heads
        setattr(self, "k_proj", nn.Linear(d_model, d_model))
        setattr(self, "q_proj", nn.Linear(d_model, d_model))
        setattr(self, "out_proj", nn.Linear(d_model, d_model))
        setattr(self, "v_proj", nn.Linear(d_model, d_model))

    def forward(self, query, key, value, mask=None):
        batch, len_q, _ = query.shape
        if mask is not None:
            mask = mask.broadcast_to((batch, self.num_heads, len_q, key.shape[1]))
        q, k, v = self.q_proj(query), self.k_proj(key), self.v_proj(value)
        outputs, weights = [], []
        for b in range(batch):
            heads = zip(q[b].chunk(self.num_heads, -1), k[b].chunk(self.num_heads, -1), v[b].chunk(self.num_heads, -1))
            per_head = []
            for h, (qh, kh, vh) in enumerate(heads):
                rows = [attend_one(qh[i], kh, vh, None if mask is None else mask[b, h, i]) for i in range(len_q)]
                per_head.append((torch.stack([r[0] for r in rows]), torch.stack([r[1] for r in rows])))
            outputs.append(torch.cat([o for o, _ in per_head], -1))
            weights.append(torch.stack([w for _, w in per_head]))
        return self.out_proj(torch.stack(outputs)), torch.stack(weights)


# %% multi_head_parameter_count: closed formula
def multi_head_parameter_count(d_model, num_heads, bias=True):
    return 4 * (d_model**2 + (d_model if bias else 0))


# %% multi_head_parameter_count: sum over the four projections and their heads
def _linear(n_in, n_out, bias):
    return n_in * n_out + bias * n_out


def multi_head_parameter_count(d_model: int, num_heads: int, bias: bool = True) -> int:
    d_head = d_model // num_heads
    total = 0
    for _ in ("q", "k", "v"):
        for _head in range(num_heads):
            total += _linear(d_model, d_head, bool(bias))
    return total + _linear(num_heads * d_head, d_model, bool(bias))


# %% multi_head_parameter_count: modules built on the meta device and counted, prints
import warnings

from torch import nn


def multi_head_parameter_count(d_model, num_heads, bias=True):
    warnings.warn("counting by building")
    layers = nn.ModuleList(nn.Linear(d_model, d_model, bias=bias, device="meta") for _ in range(4))
    count = sum(p.numel() for p in layers.parameters())
    print(f"{count:,} parameters")
    return count


# %% multi_head_parameter_count: one matrix with a column for the bias, a partial object
from functools import partial
from math import prod


def count(number_of_projections, d_model, num_heads, bias=True):
    return number_of_projections * prod((d_model, d_model + int(bias)))


multi_head_parameter_count = partial(count, 4)


# %% multi_head_parameter_count: a dataclass of shapes, ValueError where it does not divide
from dataclasses import dataclass


@dataclass
class Shape:
    rows: int
    columns: int = 1

    @property
    def size(self):
        return self.rows * self.columns


def multi_head_parameter_count(d_model, num_heads, bias=True):
    if d_model % num_heads:
        raise ValueError("there is no such class")
    shapes = [Shape(d_model, d_model)] * 4
    if bias:
        shapes += [Shape(d_model)] * 4
    return sum(shape.size for shape in shapes)
