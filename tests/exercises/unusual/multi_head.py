# %% split_heads: unflatten and movedim
import torch


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("num_heads must divide d_model")
    return x.unflatten(-1, (num_heads, -1)).movedim(-2, -3)

# %% split_heads: stack of narrow slices
import torch


def split_heads(x, num_heads):
    d_head, rest = divmod(x.size(-1), num_heads)
    if rest != 0:
        raise ValueError(f"{x.size(-1)} does not divide by {num_heads}")
    return torch.stack([x.narrow(-1, h * d_head, d_head) for h in range(num_heads)], dim=-3)

# %% split_heads: einsum with a selection tensor
import torch


def split_heads(x, num_heads):
    d = x.shape[-1]
    if d % num_heads != 0:
        raise ValueError("not divisible")
    select = torch.eye(d, dtype=x.dtype, device=x.device).reshape(d, num_heads, d // num_heads)
    return torch.einsum("...ld,dhe->...hle", x, select)

# %% split_heads: gather along the features
import torch


def split_heads(x, num_heads):
    *lead, n, d = x.shape
    if d % num_heads:
        raise ValueError((d, num_heads))
    e = d // num_heads
    index = torch.arange(d).view(num_heads, 1, e).expand(num_heads, n, e)
    wide = x.unsqueeze(-3).expand(*lead, num_heads, n, d)
    return torch.gather(wide, -1, index.expand(*lead, num_heads, n, e))

# %% split_heads: chunk, generator, vmap
import torch


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads > 0:
        raise ValueError("d_model % num_heads != 0")

    def per_token(token):
        return token.reshape(num_heads, -1)

    for _ in range(x.dim() - 1):
        per_token = torch.vmap(per_token)
    return per_token(x).transpose(-3, -2)

# %% split_heads: as_strided on a contiguous copy
import torch


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("heads")
    own = x.contiguous()
    *lead, n, d = own.shape
    e = d // num_heads
    *ls, sn, sd = own.stride()
    return own.as_strided((*lead, num_heads, n, e), (*ls, e * sd, sn, sd), own.storage_offset())

# %% split_heads: scripted with list shapes
import torch
from typing import List


@torch.jit.script
def _split(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    shape: List[int] = list(x.shape[:-1])
    shape.append(num_heads)
    shape.append(x.shape[-1] // num_heads)
    return x.reshape(shape).transpose(-2, -3)


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("num_heads")
    return _split(x, num_heads)

# %% split_heads: nn.Unflatten module and permute
import torch
from torch import nn


def split_heads(x, num_heads):
    if (d := x.shape[-1]) % num_heads:
        raise ValueError(f"d_model={d}")
    y = nn.Unflatten(-1, (num_heads, d // num_heads))(x)
    order = [*range(y.ndim - 3), y.ndim - 2, y.ndim - 3, y.ndim - 1]
    return y.permute(order)

# %% split_heads: in-place copy into an own tensor
import torch


def split_heads(x, num_heads):
    try:
        assert x.shape[-1] % num_heads == 0
    except AssertionError:
        raise ValueError("num_heads does not divide d_model") from None
    e = x.shape[-1] // num_heads
    out = x.new_zeros(*x.shape[:-2], num_heads, x.shape[-2], e)
    for h in range(num_heads):
        out[..., h, :, :] += x[..., h * e:(h + 1) * e]
    return out

# %% split_heads: recursion, halving the list of heads
import torch


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("indivisible")

    def halve(y, h):
        if h == 1:
            return y.unsqueeze(-3)
        left = h // 2
        cut = y.shape[-1] // h * left
        a, b = y.tensor_split([cut], dim=-1)
        return torch.cat((halve(a, left), halve(b, h - left)), dim=-3)

    return halve(x, num_heads)

# %% merge_heads: transpose and flatten
import torch


def merge_heads(x):
    return x.transpose(-3, -2).flatten(-2)

# %% merge_heads: cat of the unbound heads
import torch


def merge_heads(x):
    return torch.cat(x.unbind(dim=-3), dim=-1)

# %% merge_heads: einsum with an identity
import torch


def merge_heads(x):
    h, e = x.shape[-3], x.shape[-1]
    place = torch.eye(h * e, dtype=x.dtype, device=x.device).view(h, e, h * e)
    return torch.einsum("...hle,hed->...ld", x, place)

# %% merge_heads: vmap over tokens
import torch
from torch import vmap


def merge_heads(x):
    f = vmap(lambda t: t.reshape(-1), in_dims=1)
    for _ in range(x.dim() - 3):
        f = vmap(f)
    return f(x)

# %% merge_heads: functools.reduce of hstack along the last axis
from functools import partial, reduce
import torch

_join = partial(torch.concat, dim=-1)


def merge_heads(x):
    return reduce(lambda a, b: _join([a, b]), (x.select(-3, h) for h in range(x.size(-3))))

# %% merge_heads: scatter-style writes into own zeros
import torch


def merge_heads(x):
    *lead, h, n, e = x.shape
    out = torch.zeros(*lead, n, h * e, dtype=x.dtype, device=x.device)
    for i, head in enumerate(x.unbind(-3)):
        out = torch.slice_scatter(out, head, dim=-1, start=i * e, end=(i + 1) * e)
    return out

# %% merge_heads: custom Function whose backward splits again
import torch


class Merge(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.heads = x.shape[-3]
        return x.swapaxes(-3, -2).reshape(*x.shape[:-3], x.shape[-2], -1)

    @staticmethod
    def backward(ctx, g):
        return g.unflatten(-1, (ctx.heads, -1)).swapaxes(-3, -2)


def merge_heads(x):
    return Merge.apply(x)

# %% merge_heads: scripted permute with a computed order
import torch
from typing import List


@torch.jit.script
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    n = x.dim()
    order: List[int] = []
    for i in range(n - 3):
        order.append(i)
    order.append(n - 2)
    order.append(n - 3)
    order.append(n - 1)
    y = x.permute(order)
    return y.reshape(y.shape[:-2] + [y.shape[-2] * y.shape[-1]])

# %% merge_heads: index_select on a flattened layout
import torch


def merge_heads(x):
    *lead, h, n, e = x.shape
    flat = x.reshape(*lead, h * n * e)
    i = torch.arange(n).view(n, 1, 1)
    j = torch.arange(h).view(1, h, 1)
    k = torch.arange(e).view(1, 1, e)
    index = (j * n * e + i * e + k).flatten()
    return flat.index_select(-1, index).unflatten(-1, (n, h * e))

# %% merge_heads: shape inference on meta first
import torch


def merge_heads(x):
    ghost = torch.empty(x.shape, device="meta").movedim(-3, -2)
    target = ghost.flatten(start_dim=-2).shape
    return x.movedim(-3, -2).reshape(target)

# %% MultiHeadAttention: plain views, masked_fill
import math
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        def heads(x):
            return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

        q, k, v = heads(self.q_proj(query)), heads(self.k_proj(key)), heads(self.v_proj(value))
        s = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            s = s.masked_fill(~mask, float("-inf"))
        w = s.softmax(-1)
        return self.out_proj((w @ v).transpose(1, 2).flatten(2)), w

# %% MultiHeadAttention: einsum with reshaped weights, no head reshape of activations
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.h, self.e = num_heads, d_model // num_heads
        if self.h * self.e != d_model:
            raise ValueError((d_model, num_heads))
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            self.add_module(name, nn.Linear(d_model, d_model))

    def _in(self, lin, x):
        w = lin.weight.view(self.h, self.e, -1)
        return torch.einsum("bld,hed->bhle", x, w) + lin.bias.view(1, self.h, 1, self.e)

    def forward(self, query, key, value, mask=None):
        q, k, v = (self._in(l, x) for l, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value)))
        s = torch.einsum("bhie,bhje->bhij", q, k) * self.e ** -0.5
        if mask is not None:
            s = torch.where(mask, s, -torch.inf)
        w = torch.softmax(s, dim=3)
        wo = self.out_proj.weight.view(-1, self.h, self.e)
        return torch.einsum("bhij,bhje,dhe->bid", w, v, wo) + self.out_proj.bias, w

# %% MultiHeadAttention: loop over heads, sum of per-head outputs
import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int) -> None:
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model % num_heads")
        self.num_heads = num_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key, value, mask=None):
        e = query.shape[-1] // self.num_heads
        if mask is not None:
            mask = mask.broadcast_to(query.shape[0], self.num_heads, query.shape[1], key.shape[1])
        total, weights = self.out_proj.bias, []
        for h in range(self.num_heads):
            rows = slice(h * e, (h + 1) * e)
            q, k, v = (F.linear(x, p.weight[rows], p.bias[rows]) for x, p in
                       ((query, self.q_proj), (key, self.k_proj), (value, self.v_proj)))
            s = torch.bmm(q, k.transpose(1, 2)) / e ** 0.5
            if mask is not None:
                s = s.masked_fill(mask[:, h].logical_not(), float("-inf"))
            w = F.softmax(s, dim=-1)
            weights.append(w)
            total = total + F.linear(torch.bmm(w, v), self.out_proj.weight[:, rows])
        return total, torch.stack(weights, dim=1)

# %% MultiHeadAttention: built on meta, then materialised and reset
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        if d_model % num_heads:
            raise ValueError("heads do not divide the model")
        super().__init__()
        self.n = num_heads
        with torch.device("meta"):
            self.q_proj = nn.Linear(d_model, d_model)
            self.k_proj = nn.Linear(d_model, d_model)
            self.v_proj = nn.Linear(d_model, d_model)
            self.out_proj = nn.Linear(d_model, d_model)
        self.to_empty(device="cpu")
        for m in self.children():
            m.reset_parameters()

    def forward(self, query, key, value, mask=None):
        b, lq, d = query.shape
        q = self.q_proj(query).view(b, lq, self.n, -1).permute(0, 2, 1, 3)
        k = self.k_proj(key).view(b, key.shape[1], self.n, -1).permute(0, 2, 3, 1)
        v = self.v_proj(value).view(b, key.shape[1], self.n, -1).permute(0, 2, 1, 3)
        s = q @ k / (d // self.n) ** 0.5
        if mask is not None:
            s = s + torch.zeros(mask.shape, dtype=s.dtype).masked_fill_(~mask, -torch.inf)
        w = torch.softmax(s, -1)
        return self.out_proj((w @ v).permute(0, 2, 1, 3).reshape(b, lq, d)), w

# %% MultiHeadAttention: heads folded into the batch, bmm
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        d_head, rest = divmod(d_model, num_heads)
        if rest:
            raise ValueError("remainder")
        self.shape = (num_heads, d_head)
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def fold(self, x):
        b, n, _ = x.shape
        return x.reshape(b, n, *self.shape).transpose(1, 2).reshape(-1, n, self.shape[1])

    def forward(self, query, key, value, mask=None):
        q, k, v = self.fold(self.q_proj(query)), self.fold(self.k_proj(key)), self.fold(self.v_proj(value))
        s = torch.bmm(q * self.shape[1] ** -0.5, k.mT)
        if mask is not None:
            full = mask.expand(query.shape[0], self.shape[0], query.shape[1], key.shape[1])
            s = s.masked_fill(~full.reshape(s.shape), -torch.inf)
        w = torch.exp(s - torch.amax(s, -1, keepdim=True))
        w = w / w.sum(-1, keepdim=True)
        o = torch.bmm(w, v).unflatten(0, (query.shape[0], -1)).transpose(1, 2).flatten(-2)
        return self.out_proj(o), w.unflatten(0, (query.shape[0], -1))

# %% MultiHeadAttention: vmap over batch and heads, checkpointed
import torch
from torch import nn
from torch.func import vmap
from torch.utils.checkpoint import checkpoint


def _head(q, k, v, ok):
    s = torch.where(ok, q @ k.T * q.shape[-1] ** -0.5, float("-inf"))
    w = s.softmax(-1)
    return w @ v, w


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads > 0:
            raise ValueError("no")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def _body(self, query, key, value, mask):
        split = [p(x).unflatten(-1, (self.num_heads, -1)) for p, x in
                 ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))]
        ok = mask.expand(len(query), self.num_heads, query.size(1), key.size(1))
        per_batch = vmap(_head, in_dims=(1, 1, 1, 0), out_dims=(1, 0))
        o, w = vmap(per_batch)(*split, ok)
        return self.out_proj(o.flatten(-2)), w

    def forward(self, query, key, value, mask=None):
        if mask is None:
            mask = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=query.device)
        return checkpoint(self._body, query, key, value, mask, use_reentrant=False)

# %% MultiHeadAttention: custom Function for the core
import torch
from torch import nn


class Core(torch.autograd.Function):
    @staticmethod
    def forward(q, k, v, mask):
        s = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            s = s.masked_fill(~mask, -torch.inf)
        w = torch.softmax(s, -1)
        return w @ v, w

    @staticmethod
    def setup_context(ctx, inputs, output):
        q, k, v, _ = inputs
        ctx.save_for_backward(q, k, v, output[1])

    @staticmethod
    def backward(ctx, go, gw):
        q, k, v, w = ctx.saved_tensors
        gs = torch.einsum("bhid,bhjd->bhij", go, v) + gw
        gs = w * (gs - (gs * w).sum(-1, True)) / q.shape[-1] ** 0.5
        return gs @ k, gs.mT @ q, w.mT @ go, None


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("d_model")
        self.h = num_heads
        self.q_proj, self.k_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.v_proj, self.out_proj = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q, k, v = [f(x).view(x.shape[0], x.shape[1], self.h, -1).transpose(1, 2) for f, x in
                   zip((self.q_proj, self.k_proj, self.v_proj), (query, key, value))]
        o, w = Core.apply(q, k, v, mask)
        return self.out_proj(o.transpose(1, 2).reshape(query.shape)), w

# %% MultiHeadAttention: stacked projection when query, key and value are one tensor
import torch
from torch import nn
import torch.nn.functional as F


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        projections = (self.q_proj, self.k_proj, self.v_proj)
        if query is key is value:
            w = torch.cat([p.weight for p in projections])
            b = torch.cat([p.bias for p in projections])
            q, k, v = F.linear(query, w, b).chunk(3, dim=-1)
        else:
            q, k, v = (p(x) for p, x in zip(projections, (query, key, value)))
        q, k, v = (torch.stack(t.chunk(self.num_heads, -1), 1) for t in (q, k, v))
        logits = (q / q.size(-1) ** 0.5).matmul(k.transpose(2, 3))
        if mask is not None:
            logits = logits.masked_fill(torch.bitwise_not(mask), -torch.inf)
        attn = (logits - logits.logsumexp(-1, keepdim=True).detach()).softmax(-1)
        return self.out_proj(torch.cat(attn.matmul(v).unbind(1), -1)), attn

# %% MultiHeadAttention: scripted inner function, non-persistent scale buffer
import torch
from torch import nn
from typing import Optional, Tuple


@torch.jit.script
def _attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: torch.Tensor, mask: Optional[torch.Tensor]) -> Tuple[torch.Tensor, torch.Tensor]:
    s = torch.matmul(q, k.transpose(-1, -2)) * scale
    if mask is not None:
        s = torch.where(mask, s, torch.full_like(s, -float("inf")))
    w = torch.softmax(s, -1)
    return torch.matmul(w, v), w


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("!")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)
        scale = torch.tensor(d_model // num_heads, dtype=torch.float64).rsqrt()
        self.register_buffer("scale", scale, persistent=False)

    def forward(self, query, key, value, mask=None):
        q, k, v = (lin(x).unflatten(2, (self.num_heads, -1)).swapaxes(1, 2) for lin, x in
                   ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value)))
        o, w = _attend(q, k, v, self.scale.to(q.dtype), mask)
        return self.out_proj(o.swapaxes(1, 2).reshape(*query.shape[:2], -1)), w

# %% MultiHeadAttention: dictionary of projections, log-domain weights, index_put mask, half-safe float32 scores
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    NAMES = ("q_proj", "k_proj", "v_proj", "out_proj")

    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{d_model=} {num_heads=}")
        self.num_heads = num_heads
        for n in self.NAMES:
            setattr(self, n, nn.Linear(d_model, d_model))

    def _split(self, x):
        return torch.stack(x.tensor_split(self.num_heads, dim=-1), dim=1)

    def forward(self, query, key, value, mask=None):
        acc = torch.promote_types(query.dtype, torch.float32)
        q, k, v = (self._split(getattr(self, n)(x)) for n, x in zip(self.NAMES, (query, key, value)))
        s = torch.linalg.vecdot(q.unsqueeze(-2).to(acc), k.unsqueeze(-3).to(acc)) * q.shape[-1] ** -0.5
        if mask is not None:
            banned = torch.nonzero(~mask.expand_as(s), as_tuple=True)
            s = s.index_put(banned, s.new_full((), -torch.inf))
        s = s - s.detach().amax(-1, keepdim=True)
        w = (s - s.logsumexp(-1, keepdim=True)).exp().to(query.dtype)
        o = torch.stack([wh @ vh for wh, vh in zip(w.unbind(1), v.unbind(1))], dim=2)
        return self.out_proj(o.flatten(2)), w

# %% multi_head_parameter_count: count the meta module
import torch
from torch import nn


def multi_head_parameter_count(d_model, num_heads, bias=True):
    with torch.device("meta"):
        layers = nn.ModuleDict({n: nn.Linear(d_model, d_model, bias=bias) for n in ("q", "k", "v", "out")})
    return sum(p.numel() for p in layers.parameters())

# %% multi_head_parameter_count: closed form
def multi_head_parameter_count(d_model, num_heads, bias=True):
    return 4 * d_model * (d_model + bool(bias))

# %% multi_head_parameter_count: per-head sum with Fractions
from fractions import Fraction
from itertools import repeat


def multi_head_parameter_count(d_model, num_heads, bias=True):
    d_head = Fraction(d_model, num_heads)
    per_head = 4 * d_model * d_head
    weights = sum(repeat(per_head, num_heads), Fraction(0))
    return int(weights) + (4 * d_model if bias else 0)

# %% multi_head_parameter_count: numpy product of shapes
import numpy as np


def multi_head_parameter_count(d_model, num_heads, bias=True):
    shapes = [(d_model, d_model), (d_model,)] if bias else [(d_model, d_model)]
    return 4 * sum(int(np.prod(s, dtype=np.int64)) for s in shapes)

# %% multi_head_parameter_count: recursion over a list of names
def multi_head_parameter_count(d_model, num_heads, bias=True, names=("q", "k", "v", "out")):
    if not names:
        return 0
    one = d_model ** 2 + (d_model if bias else 0)
    return one + multi_head_parameter_count(d_model, num_heads, bias, names[1:])

# %% multi_head_parameter_count: Decimal and lru_cache
from decimal import Decimal
from functools import lru_cache


@lru_cache(maxsize=128)
def multi_head_parameter_count(d_model: int, num_heads: int, bias: bool = True) -> int:
    d = Decimal(d_model)
    return int((d * d + (d if bias else Decimal(0))) * Decimal(4))

# %% multi_head_parameter_count: state_dict of a Sequential, Counter
from collections import Counter
import torch
from torch import nn


def multi_head_parameter_count(d_model, num_heads, bias=True):
    stack = nn.Sequential(*[nn.Linear(d_model, d_model, bias, device="meta") for _ in range(4)])
    tally = Counter()
    for key, tensor in stack.state_dict().items():
        tally[key.rsplit(".", 1)[1]] += tensor.nelement()
    return tally.total() if hasattr(tally, "total") else sum(tally.values())

# %% multi_head_parameter_count: match on bias, generator of shapes
import math


def multi_head_parameter_count(d_model, num_heads, bias=True):
    def shapes():
        for _ in range(4):
            yield d_model, d_model
            match bool(bias):
                case True:
                    yield (d_model,)
                case False:
                    pass

    return sum(map(math.prod, shapes()))

# %% multi_head_parameter_count: dataclass with computed property, partial
from dataclasses import dataclass, field


@dataclass
class Projection:
    d: int
    bias: bool
    size: int = field(init=False)

    def __post_init__(self):
        self.size = self.d * self.d + self.d * int(self.bias)


def multi_head_parameter_count(d_model, num_heads, bias=True):
    return sum(Projection(d_model, bool(bias)).size for _ in "qkvo")

# %% multi_head_parameter_count: parameters_to_vector of meta tensors
import torch
from torch.nn.utils import parameters_to_vector


def multi_head_parameter_count(d_model, num_heads, bias=True):
    tensors = [torch.empty(d_model, d_model, device="meta") for _ in range(4)]
    if bias:
        tensors += [torch.empty(d_model, device="meta")] * 4
    return parameters_to_vector(tensors).shape[0]

# %% split_heads: sparse permutation of the features
import torch


def split_heads(x, num_heads):
    d = x.shape[-1]
    if d % num_heads:
        raise ValueError("d_model")
    idx = torch.arange(d)
    perm = torch.sparse_coo_tensor(torch.stack((idx, idx)), torch.ones(d, dtype=x.dtype), (d, d))
    flat = torch.sparse.mm(perm, x.reshape(-1, d).T).T
    return flat.reshape(*x.shape[:-1], num_heads, -1).swapaxes(-2, -3)

# %% split_heads: index_put by head number, compiler.disable
import torch


@torch.compiler.disable
def split_heads(x, num_heads):
    width, extra = divmod(x.shape[-1], num_heads)
    if extra:
        raise ValueError("extra features")
    parts = x.movedim(-1, 0)
    out = parts.new_zeros(num_heads, width, *parts.shape[1:])
    f = torch.arange(x.shape[-1])
    out = out.index_put((f // width, f % width), parts)
    return out.movedim((0, 1), (-3, -1))

# %% merge_heads: threads copy the heads, scatter into features
from concurrent.futures import ThreadPoolExecutor
import torch


def merge_heads(x):
    h, n, e = x.shape[-3:]
    on = torch.is_grad_enabled()

    def place(i):
        with torch.set_grad_enabled(on):
            index = torch.arange(i * e, (i + 1) * e).expand(*x.shape[:-3], n, e)
            return x.new_zeros(*x.shape[:-3], n, h * e).scatter(-1, index, x[..., i, :, :])

    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(place, range(h)))

# %% merge_heads: sparse selection matrices, one per head
import torch


def merge_heads(x):
    *lead, h, n, e = x.shape
    total = 0
    for i, head in enumerate(x.unbind(-3)):
        idx = torch.stack((torch.arange(e) + i * e, torch.arange(e)))
        place = torch.sparse_coo_tensor(idx, torch.ones(e, dtype=x.dtype), (h * e, e))
        total = total + torch.sparse.mm(place, head.reshape(-1, e).T).T
    return total.reshape(*lead, n, h * e)

# %% MultiHeadAttention: broadcast products instead of matmul, autocast off
from __future__ import annotations
import torch
from torch import nn
from functools import partial


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.num_heads = num_heads
        make = partial(nn.Linear, d_model, d_model)
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = make(), make(), make(), make()

    def forward(self, query, key, value, mask: torch.Tensor | None = None):
        with torch.autocast("cpu", enabled=False):
            h = self.num_heads
            q, k, v = (_heads(p(x), h) for p, x in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value)))
            s = (q.unsqueeze(3) * k.unsqueeze(2)).sum(-1) / q.shape[-1] ** 0.5
            if mask is not None:
                s, mask = torch.broadcast_tensors(s, mask)
                s = s.masked_fill(~mask, -torch.inf)
            w = _weights(s)
            return self.out_proj((w.unsqueeze(-1) * v.unsqueeze(2)).sum(3).movedim(1, 2).flatten(2)), w


@torch.compiler.disable
def _weights(s):
    return s.softmax(-1)


def _heads(x, h):
    return x.unflatten(-1, (h, -1)).movedim(2, 1)

# %% multi_head_parameter_count: star imports of itertools and operator
from itertools import *
from operator import *


def multi_head_parameter_count(d_model, num_heads, bias=True):
    shapes = chain(repeat((d_model, d_model), 4), repeat((d_model, 1), 4 if bias else 0))
    return sum(starmap(mul, shapes))

# %% multi_head_parameter_count: ModuleDict on meta with a non-persistent buffer that does not count
import torch
from torch import nn


def multi_head_parameter_count(d_model, num_heads, bias=True):
    parts = nn.ModuleDict({f"{c}_proj": nn.Linear(d_model, d_model, bias=bias, device="meta") for c in ("q", "k", "v", "out")})
    parts.register_buffer("scale", torch.empty((), device="meta"), persistent=False)
    return sum(t.numel() for t in parts.state_dict().values())
