# %% scaled_dot_product_attention: einsum and masked_fill
import torch


def scaled_dot_product_attention(query, key, value, mask=None):
    scores = torch.einsum("...id,...jd->...ij", query, key) * query.shape[-1] ** -0.5
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), float("-inf"))
    weights = scores.softmax(dim=-1)
    return torch.einsum("...ij,...jd->...id", weights, value), weights

# %% scaled_dot_product_attention: baddbmm with an additive bias
import math
import torch


def scaled_dot_product_attention(query, key, value, mask=None):
    lead, n, m = query.shape[:-2], query.shape[-2], key.shape[-2]
    q = query.reshape(-1, n, query.shape[-1])
    k = key.reshape(-1, m, key.shape[-1])
    v = value.reshape(-1, m, value.shape[-1])
    bias = torch.zeros(*lead, n, m, dtype=query.dtype, device=query.device)
    if mask is not None:
        bias = torch.where(mask, bias, bias.new_full((), -math.inf))
    s = torch.baddbmm(bias.reshape(-1, n, m), q, k.transpose(1, 2), alpha=1 / math.sqrt(q.shape[-1]))
    w = torch.softmax(s, 2)
    return (w @ v).reshape(*lead, n, v.shape[-1]), w.reshape(*lead, n, m)

# %% scaled_dot_product_attention: one query row after another
import torch


def scaled_dot_product_attention(query, key, value, mask=None):
    n, m = query.size(-2), key.size(-2)
    if mask is not None:
        mask = mask.expand(*query.shape[:-1], m)
    scale = query.size(-1) ** 0.5
    outs, weights = [], []
    for i in range(n):
        s = (key * (query[..., i, :] / scale).unsqueeze(-2)).sum(-1)
        if mask is not None:
            s = s.masked_fill(~mask[..., i, :], float("-inf"))
        e = (s - s.amax(-1, keepdim=True)).exp()
        w = e / e.sum(-1, keepdim=True)
        weights.append(w)
        outs.append((w.unsqueeze(-1) * value).sum(-2))
    return torch.stack(outs, -2), torch.stack(weights, -2)

# %% scaled_dot_product_attention: vmap over every leading axis
import torch
from torch.func import vmap


def scaled_dot_product_attention(query, key, value, mask=None):
    full = torch.ones((), dtype=torch.bool) if mask is None else mask
    full = torch.broadcast_to(full, (*query.shape[:-1], key.shape[-2]))

    def head(q, k, v, ok):
        s = torch.where(ok, (q @ k.T) / q.shape[-1] ** 0.5, -torch.inf)
        w = torch.softmax(s, -1)
        return w @ v, w

    for _ in range(query.dim() - 2):
        head = vmap(head)
    return head(query, key, value, full)

# %% scaled_dot_product_attention: FlashAttention-style blocks of keys
import torch


def scaled_dot_product_attention(query, key, value, mask=None):
    n, m = query.shape[-2], key.shape[-2]
    ok = torch.ones(1, 1, dtype=torch.bool) if mask is None else mask
    ok = ok.expand(*query.shape[:-1], m)
    q = query / query.shape[-1] ** 0.5
    blocks = []
    lowest = torch.finfo(query.dtype).min
    top = torch.full((*query.shape[:-1], 1), lowest, dtype=query.dtype)
    for start in range(0, m, 2):
        stop = min(start + 2, m)
        s = q @ key[..., start:stop, :].mT
        s = s.masked_fill(~ok[..., start:stop], -torch.inf)
        blocks.append(s)
        top = torch.maximum(top, s.detach().amax(-1, keepdim=True))
    den, num = 0.0, 0.0
    for b, s in enumerate(blocks):
        e = torch.exp(s - top)
        den = den + e.sum(-1, keepdim=True)
        num = num + e @ value[..., 2 * b:2 * b + 2, :]
    return num / den, torch.cat([torch.exp(s - top) for s in blocks], -1) / den

# %% scaled_dot_product_attention: custom autograd.Function with the full backward
import torch


class SDPA(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, mask):
        c = q.shape[-1] ** -0.5
        s = (q @ k.mT).mul_(c)
        if mask is not None:
            s.masked_fill_(~mask, float("-inf"))
        s.sub_(s.amax(-1, keepdim=True)).exp_()
        s.div_(s.sum(-1, keepdim=True))
        ctx.c = c
        ctx.save_for_backward(q, k, v, s)
        return s @ v, s

    @staticmethod
    def backward(ctx, go, gw):
        q, k, v, w = ctx.saved_tensors
        g = gw + go @ v.mT
        gs = w * (g - (g * w).sum(-1, keepdim=True)) * ctx.c
        return gs @ k, gs.mT @ q, w.mT @ go, None


def scaled_dot_product_attention(query, key, value, mask=None):
    return SDPA.apply(query, key, value, mask)

# %% scaled_dot_product_attention: scripted with Optional mask
from typing import Optional, Tuple
import math
import torch
from torch import Tensor


@torch.jit.script
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, mask: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(torch.logical_not(mask), -float("inf"))
    weights = torch.softmax(scores, dim=-1)
    return torch.matmul(weights, value), weights

# %% scaled_dot_product_attention: checkpoint over the whole step
import torch
from torch.utils.checkpoint import checkpoint


def scaled_dot_product_attention(query, key, value, mask=None):
    def step(q, k, v):
        s = (q * q.shape[-1] ** -0.25) @ (k * k.shape[-1] ** -0.25).mT
        if mask is not None:
            s = s.masked_fill(mask == False, -torch.inf)  # noqa: E712
        w = s.softmax(-1)
        return w.matmul(v), w

    return checkpoint(step, query, key, value, use_reentrant=False, preserve_rng_state=False)

# %% scaled_dot_product_attention: log mask added, shifted logsumexp
import torch


def scaled_dot_product_attention(query, key, value, mask=None):
    d = torch.tensor(query.shape[-1], dtype=query.dtype)
    s = query.div(d.sqrt()).matmul(key.swapaxes(-1, -2))
    if mask is not None:
        s = s + mask.to(s.dtype).log()
    s = s - s.detach().max(-1, keepdim=True)[0]
    logw = s - s.logsumexp(-1, keepdim=True)
    w = logw.exp()
    return w @ value, w

# %% scaled_dot_product_attention: double precision inside, index_put for the mask
import torch


def scaled_dot_product_attention(query, key, value, mask=None):
    q, k, v = (t.to(torch.float64) for t in (query, key, value))
    s = torch.matmul(q, k.mT) / q.shape[-1] ** 0.5
    if mask is not None:
        where = torch.nonzero(~mask.expand_as(s), as_tuple=True)
        s = s.index_put(where, torch.tensor(-torch.inf, dtype=s.dtype))
    e = torch.exp(s - s.amax(-1, keepdim=True))
    w = e / e.sum(-1, keepdim=True)
    return (w @ v).to(value.dtype), w.to(query.dtype)

# %% scaled_dot_product_attention: mask multiplies the exponentials after a masked maximum
import torch


def scaled_dot_product_attention(query, key, value, mask=None):
    s = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    allowed = torch.ones_like(s, dtype=torch.bool) if mask is None else mask.broadcast_to(s.shape)
    with torch.no_grad():
        top = torch.where(allowed, s, torch.finfo(s.dtype).min).amax(-1, keepdim=True)
    e = torch.where(allowed, s - top, 0.0).exp() * allowed
    w = e / e.sum(-1, keepdim=True)
    return w @ value, w

# %% scaled_dot_product_attention: walrus and match, compiled eagerly in part
import torch


@torch.compile(backend="eager", dynamic=True)
def _scores(q, k):
    return q @ k.mT * q.shape[-1] ** -0.5


def scaled_dot_product_attention(query, key, value, mask=None):
    match mask:
        case None:
            s = _scores(query, key)
        case torch.Tensor():
            s = torch.where(mask, _scores(query, key), torch.tensor(-torch.inf, dtype=query.dtype))
        case _:
            raise TypeError("mask")
    return (w := torch.softmax(s, -1)) @ value, w

# %% scaled_dot_product_attention: nn.Module, threads over the flattened lead
import torch
from torch import nn
from concurrent.futures import ThreadPoolExecutor


class OneHead(nn.Module):
    def forward(self, q, k, v, ok):
        s = torch.addmm(torch.zeros(q.shape[0], k.shape[0], dtype=q.dtype), q, k.T, alpha=q.shape[1] ** -0.5)
        w = torch.softmax(s.masked_fill(~ok, -torch.inf), 1)
        return torch.mm(w, v), w


def scaled_dot_product_attention(query, key, value, mask=None):
    lead, (n, m) = query.shape[:-2], (query.shape[-2], key.shape[-2])
    ok = torch.ones((), dtype=torch.bool) if mask is None else mask
    ok = ok.expand(*lead, n, m).reshape(-1, n, m)
    flat = [t.reshape(-1, *t.shape[-2:]) for t in (query, key, value)] + [ok]
    grad_on = torch.is_grad_enabled()
    head = OneHead()

    def work(args):
        with torch.set_grad_enabled(grad_on):
            return head(*args)

    with ThreadPoolExecutor(max_workers=2) as pool:
        outs, ws = zip(*pool.map(work, zip(*flat)))
    return torch.stack(outs).reshape(*lead, n, -1), torch.stack(ws).reshape(*lead, n, m)

# %% softmax_backward: textbook formula, einsum dot product
import torch


def softmax_backward(weights, grad_weights):
    dot = torch.einsum("...i,...i->...", weights, grad_weights)
    return weights * (grad_weights - dot.unsqueeze(-1))

# %% softmax_backward: the full Jacobian diag(w) - w w^T
import torch


def softmax_backward(weights, grad_weights):
    jac = torch.diag_embed(weights) - weights.unsqueeze(-1) * weights.unsqueeze(-2)
    return torch.matmul(jac, grad_weights.unsqueeze(-1)).squeeze(-1)

# %% softmax_backward: vmap over rows
import torch


def softmax_backward(weights, grad_weights):
    def row(w, g):
        return w * g - w * torch.dot(w, g)

    for _ in range(weights.ndim - 1):
        row = torch.vmap(row)
    return row(weights, grad_weights)

# %% softmax_backward: in-place on an own copy
import torch


def softmax_backward(weights, grad_weights):
    out = weights.mul(grad_weights)
    total = out.sum(-1, keepdim=True)
    out = out.clone()
    out -= weights * total
    return out

# %% softmax_backward: pairwise differences of the gradients
import torch


def softmax_backward(weights, grad_weights):
    diff = grad_weights[..., :, None] - grad_weights[..., None, :]
    return weights * (diff * weights[..., None, :]).sum(dim=-1)

# %% softmax_backward: scripted with torch.linalg.vecdot
import torch


@torch.jit.script
def softmax_backward(weights: torch.Tensor, grad_weights: torch.Tensor) -> torch.Tensor:
    mean = torch.linalg.vecdot(weights, grad_weights, dim=-1)
    return torch.addcmul(weights * grad_weights, weights, mean.unsqueeze(-1), value=-1.0)

# %% softmax_backward: loop over entries, running total
from itertools import starmap
from operator import mul
import torch


def softmax_backward(weights, grad_weights):
    ws, gs = weights.unbind(-1), grad_weights.unbind(-1)
    total = sum(starmap(mul, zip(ws, gs)))
    return torch.stack([w * (g - total) for w, g in zip(ws, gs)], dim=-1)

# %% softmax_backward: double accumulation and back
import torch


def softmax_backward(weights, grad_weights):
    w, g = weights.double(), grad_weights.double()
    return (w * (g - torch.sum(w * g, dim=-1, keepdim=True))).to(weights.dtype)

# %% softmax_backward: two-argument decorated closure with matmul rows
import functools
import torch


def last_axis_rows(f):
    @functools.wraps(f)
    def inner(weights, grad_weights):
        shape = weights.shape
        w, g = weights.reshape(-1, shape[-1]), grad_weights.reshape(-1, shape[-1])
        return f(w, g).reshape(shape)
    return inner


@last_axis_rows
def softmax_backward(weights, grad_weights):
    mean = torch.bmm(weights[:, None, :], grad_weights[:, :, None])[:, 0]
    return weights * (grad_weights - mean)

# %% softmax_backward: fx-traced formula
import torch
from torch import fx


def formula(weights, grad_weights):
    product = weights * grad_weights
    return product - weights * product.sum(-1, keepdim=True)


softmax_backward = fx.symbolic_trace(formula).forward

# %% softmax_backward: weighted covariance through expand and bmm with ones
import torch


def softmax_backward(weights: "torch.Tensor", grad_weights: "torch.Tensor") -> "torch.Tensor":
    n = weights.shape[-1]
    ones = torch.ones(n, n, dtype=weights.dtype, device=weights.device)
    return weights * grad_weights - weights * ((weights * grad_weights) @ ones)

# %% attention_flops: FlopCounterMode on meta tensors
import torch
from torch.utils.flop_counter import FlopCounterMode


def attention_flops(len_q, len_k, d_k, d_v):
    with FlopCounterMode(display=False) as counter:
        q = torch.empty(len_q, d_k, device="meta")
        k = torch.empty(len_k, d_k, device="meta")
        v = torch.empty(len_k, d_v, device="meta")
        (q @ k.T) @ v
    return int(counter.get_total_flops())

# %% attention_flops: recursion over the two products
def attention_flops(len_q, len_k, d_k, d_v):
    def product(*shapes):
        if not shapes:
            return 0
        (a, b, c), *rest = shapes
        return 2 * a * b * c + product(*rest)

    return product((len_q, d_k, len_k), (len_q, len_k, d_v))

# %% attention_flops: Fraction and sum of a generator
from fractions import Fraction


def attention_flops(len_q, len_k, d_k, d_v):
    multiply_adds = sum(Fraction(len_q * len_k * d) for d in (d_k, d_v))
    return int(multiply_adds / Fraction(1, 2))

# %% attention_flops: Decimal
from decimal import Decimal, localcontext


def attention_flops(len_q, len_k, d_k, d_v):
    with localcontext() as ctx:
        ctx.prec = 60
        return int(Decimal(len_q) * Decimal(len_k) * (Decimal(d_k) + Decimal(d_v)) * 2)

# %% attention_flops: numpy int64 dot product
import numpy as np


def attention_flops(len_q, len_k, d_k, d_v):
    sizes = np.array([d_k, d_v], dtype=object)
    return int(np.dot(sizes, np.full(2, 2 * int(len_q) * int(len_k), dtype=object)))

# %% attention_flops: dataclass per matrix product
from dataclasses import dataclass
from functools import reduce
import operator


@dataclass
class MatMul:
    rows: int
    inner: int
    cols: int

    @property
    def flops(self) -> int:
        return reduce(operator.mul, (2, self.rows, self.inner, self.cols), 1)


def attention_flops(len_q: int, len_k: int, d_k: int, d_v: int) -> int:
    return MatMul(len_q, d_k, len_k).flops + MatMul(len_q, len_k, d_v).flops

# %% attention_flops: callable with lru_cache
from functools import lru_cache


@lru_cache(maxsize=None)
def _mm(n, k, m):
    return (n * k * m) << 1


@lru_cache
def attention_flops(len_q, len_k, d_k, d_v):
    return _mm(len_q, d_k, len_k) + _mm(len_q, len_k, d_v)

# %% attention_flops: shapes from meta tensors, numel
import torch


def attention_flops(len_q, len_k, d_k, d_v):
    scores = torch.empty(len_q, len_k, device="meta")
    out = torch.empty(len_q, d_v, device="meta")
    return 2 * (scores.numel() * d_k + out.numel() * len_k)

# %% attention_flops: einsum strings parsed into sizes
import math


def attention_flops(len_q, len_k, d_k, d_v):
    size = dict(i=len_q, j=len_k, d=d_k, e=d_v)
    return sum(2 * math.prod(size[c] for c in set(spec) - set(",->"))
               for spec in ("id,jd->ij", "ij,je->ie"))

# %% attention_flops: namedtuple and match statement
from typing import NamedTuple


class Product(NamedTuple):
    n: int
    k: int
    m: int


def attention_flops(len_q, len_k, d_k, d_v):
    total = 0
    for p in (Product(len_q, d_k, len_k), Product(len_q, len_k, d_v)):
        match p:
            case Product(n=a, k=b, m=c):
                total += a * b * c * 2
    return total

# %% attention_flops: class used as a function object, scripted adder
import torch


@torch.jit.script
def _add(a: int, b: int) -> int:
    return a + b


class Flops:
    per_multiply_add = 2

    def __call__(self, len_q, len_k, d_k, d_v):
        pairs = len_q * len_k * self.per_multiply_add
        return _add(pairs * d_k, pairs * d_v)


attention_flops = Flops()

# %% scaled_dot_product_attention: dot products by Parseval, FFT in double
import torch


def scaled_dot_product_attention(query, key, value, mask=None):
    d = query.shape[-1]
    fq = torch.fft.fft(query.double(), dim=-1)
    fk = torch.fft.fft(key.double(), dim=-1)
    s = torch.einsum("...id,...jd->...ij", fq, fk.conj()).real / d / d ** 0.5
    if mask is not None:
        s = s.masked_fill(~mask, -torch.inf)
    w = s.softmax(-1)
    return (w @ value.double()).to(value.dtype), w.to(query.dtype)

# %% scaled_dot_product_attention: broadcast_tensors on the mask, partial, __future__ annotations
from __future__ import annotations
from functools import partial
import torch

_soft = partial(torch.softmax, dim=-1)


def scaled_dot_product_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                                 mask: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    s = query @ key.mT / query.shape[-1] ** 0.5
    if mask is not None:
        s, m = torch.broadcast_tensors(s, mask)
        s = torch.where(m, s, s.new_tensor(float("-inf")))
    w = _soft(s)
    return w @ value, w

# %% scaled_dot_product_attention: autocast off, non-persistent buffer, hook on the scores
import torch
from torch import nn


class Scores(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.register_buffer("scale", torch.tensor(d, dtype=torch.float64).rsqrt(), persistent=False)

    def forward(self, q, k, mask):
        return torch.matmul(q, k.mT) * self.scale


def _apply_mask(module, args, out):
    return out if args[2] is None else out.masked_fill(~args[2], -torch.inf)


def scaled_dot_product_attention(query, key, value, mask=None):
    scores = Scores(query.shape[-1])
    scores.register_forward_hook(_apply_mask)
    with torch.autocast("cpu", enabled=False):
        w = scores(query, key, mask).softmax(-1)
        return w @ value, w

# %% softmax_backward: dot product by Parseval
import torch


def softmax_backward(weights, grad_weights):
    n = weights.shape[-1]
    fw = torch.fft.fft(weights.double(), dim=-1)
    fg = torch.fft.fft(grad_weights.double(), dim=-1)
    dot = (fw * fg.conj()).real.sum(-1, keepdim=True) / n
    return weights * (grad_weights - dot.to(weights.dtype))

# %% softmax_backward: star import of torch, broadcast_tensors
from torch import *


def softmax_backward(weights, grad_weights):
    mean = sum(mul(weights, grad_weights), -1, True)
    w, g, m = broadcast_tensors(weights, grad_weights, mean)
    return addcmul(zeros_like(w), w, sub(g, m))

# %% softmax_backward: callable class, compiler.disable, promote_types
import torch


class Backward:
    @torch.compiler.disable
    def __call__(self, weights, grad_weights):
        acc = torch.promote_types(weights.dtype, torch.float64)
        w, g = weights.to(acc), grad_weights.to(acc)
        return (w * (g - torch.linalg.vecdot(w, g).unsqueeze(-1))).to(weights.dtype)


softmax_backward = Backward()

# %% attention_flops: statistics.mean of the two widths, star import
from statistics import *


def attention_flops(len_q, len_k, d_k, d_v):
    return int(len_q * len_k * mean([4 * d_k, 4 * d_v]))

# %% attention_flops: Decimal, singledispatch, statistics.mean
from decimal import Decimal
from functools import singledispatch
from statistics import mean


@singledispatch
def _exact(n):
    return Decimal(int(n))


@_exact.register
def _(n: Decimal):
    return n


def attention_flops(len_q, len_k, d_k, d_v):
    return int(4 * _exact(len_q) * _exact(len_k) * mean([_exact(d_k), _exact(d_v)]))

# %% attention_flops: functools.reduce over a traced product list
from functools import reduce
from itertools import product


def attention_flops(len_q, len_k, d_k, d_v):
    per_pair = reduce(lambda a, b: a + 2 * b, (d_k, d_v), 0)
    return sum(per_pair * len_k for _ in product(range(1))) * len_q

# %% self_attention: one product with the three matrices side by side
import math

import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    sizes = [w_q.shape[-1], w_k.shape[-1], w_v.shape[-1]]
    q, k, v = (x @ torch.cat((w_q, w_k, w_v), dim=-1)).split(sizes, dim=-1)
    s = q @ k.mT / math.sqrt(sizes[1])
    if mask is not None:
        s = s.masked_fill(~mask, -math.inf)
    w = s.softmax(-1)
    return w @ v, w

# %% self_attention: scores by the bilinear form of the two matrices
import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    between = w_q @ w_k.transpose(-2, -1) / w_k.size(-1) ** 0.5
    s = x @ between @ x.transpose(-2, -1)
    if mask is not None:
        s = torch.where(mask, s, float("-inf"))
    w = torch.softmax(s, dim=-1)
    return w @ (x @ w_v), w

# %% self_attention: values projected after the average
import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    s = (x @ w_q) @ (x @ w_k).transpose(-2, -1) * w_k.size(-1) ** -0.5
    if mask is not None:
        s = s.masked_fill(mask.logical_not(), float("-inf"))
    w = torch.softmax(s, dim=-1)
    return (w @ x) @ w_v, w

# %% self_attention: einsum throughout
import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    q = torch.einsum("...ld,dk->...lk", x, w_q)
    k = torch.einsum("...ld,dk->...lk", x, w_k)
    v = torch.einsum("...ld,dv->...lv", x, w_v)
    s = torch.einsum("...ik,...jk->...ij", q / q.shape[-1] ** 0.5, k)
    if mask is not None:
        s = s.masked_fill(mask == False, -torch.inf)  # noqa: E712
    w = s.softmax(-1)
    return torch.einsum("...ij,...jv->...iv", w, v), w

# %% self_attention: linear layers without a bias
import torch
import torch.nn.functional as F


def self_attention(x, w_q, w_k, w_v, mask=None):
    q, k, v = (F.linear(x, w.t()) for w in (w_q, w_k, w_v))
    s = q.matmul(k.transpose(-1, -2)).div(k.shape[-1] ** 0.5)
    if mask is not None:
        s = s + torch.zeros_like(s).masked_fill(~mask, -torch.inf)
    w = F.softmax(s, dim=-1)
    return w.matmul(v), w

# %% self_attention: exponentials divided by their sum, the largest score subtracted
import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    s = q @ k.transpose(-2, -1) / torch.tensor(float(k.shape[-1]), dtype=x.dtype, device=x.device).sqrt()
    if mask is not None:
        s = s.masked_fill(~mask, float("-inf"))
    e = torch.exp(s - s.max(dim=-1, keepdim=True).values)
    w = e / e.sum(dim=-1, keepdim=True)
    return w @ v, w

# %% self_attention: one query row after another
import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    length = x.shape[-2]
    if mask is not None:
        mask = mask.expand(*x.shape[:-1], length)
    rows = []
    for i in range(length):
        s = (k @ q[..., i, :, None]).squeeze(-1) / k.shape[-1] ** 0.5
        if mask is not None:
            s = s.masked_fill(~mask[..., i, :], float("-inf"))
        rows.append(s.softmax(-1))
    w = torch.stack(rows, dim=-2)
    return w @ v, w

# %% self_attention: a class that is called like a function
import math

import torch


class Attention:
    def __init__(self, *matrices):
        self.w_q, self.w_k, self.w_v = matrices

    def scores(self, x):
        return (x @ self.w_q) @ (x @ self.w_k).mT / math.sqrt(self.w_k.shape[1])

    def __call__(self, x, mask):
        scores = self.scores(x)
        if mask is not None:
            scores = scores.where(mask, -math.inf)
        weights = scores.softmax(-1)
        return weights @ (x @ self.w_v), weights


def self_attention(x, w_q, w_k, w_v, mask=None):
    return Attention(w_q, w_k, w_v)(x, mask)
