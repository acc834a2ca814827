# %% softmax: gradient of a shifted logsumexp through torch.func.grad
import torch
from torch.func import grad


def softmax(scores, dim=-1):
    shift = scores.detach().amax(dim=dim, keepdim=True) if scores.numel() else 0.0
    return grad(lambda s: torch.logsumexp(s, dim=dim).sum())(scores - shift)

# %% softmax: custom autograd.Function with hand-written backward
import torch


class _Soft(torch.autograd.Function):
    @staticmethod
    def forward(ctx, s, dim):
        if s.shape[dim] == 0:
            out = s.clone()
        else:
            out = s - s.amax(dim, keepdim=True)
            out.exp_()
            out /= out.sum(dim, keepdim=True)
        ctx.dim = dim
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        gy = g * y
        return gy - y * gy.sum(ctx.dim, keepdim=True), None


def softmax(scores, dim=-1):
    return _Soft.apply(scores, dim)

# %% softmax: torch.jit.script
import torch


@torch.jit.script
def softmax(scores: torch.Tensor, dim: int = -1) -> torch.Tensor:
    if scores.numel() == 0:
        return scores.clone()
    z = scores - torch.max(scores, dim, True)[0].detach()
    e = torch.exp(z)
    return e / torch.sum(e, dim, True)

# %% softmax: log domain with logaddexp reduced over slices
import functools
import torch


def softmax(scores, dim=-1):
    pieces = scores.unbind(dim)
    if not scores.numel():
        return scores.clone()
    top = functools.reduce(torch.maximum, [p.detach() for p in pieces])
    shifted = [p - top for p in pieces]
    norm = functools.reduce(torch.logaddexp, shifted)
    return torch.stack([(p - norm).exp() for p in shifted], dim=dim)

# %% softmax: float64 accumulation, promote_types, back to the input dtype
import torch


def softmax(scores, dim=-1):
    wide = torch.promote_types(scores.dtype, torch.float64)
    x = scores.to(wide)
    if x.size(dim):
        x = x - x.amax(dim=dim, keepdim=True)
    x = x.exp()
    return x.div(x.sum(dim=dim, keepdim=True)).to(scores.dtype)

# %% softmax: movedim, flattened rows, explicit loop over rows
import torch


def softmax(scores, dim=-1):
    moved = scores.movedim(dim, -1)
    shape = moved.shape
    if moved.numel() == 0:
        return scores.clone()
    rows = moved.reshape(-1, shape[-1])
    done = []
    for row in rows:
        e = (row - row.max()).exp()
        done.append(e / e.sum())
    return torch.stack(done).reshape(shape).movedim(-1, dim)

# %% softmax: torch.compile with the eager backend
import torch


@torch.compile(backend="eager", dynamic=True)
def _core(s, dim: int):
    e = torch.exp(s - torch.amax(s, dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


def softmax(scores, dim=-1):
    if scores.numel() == 0:
        return torch.empty_like(scores)
    return _core(scores, dim)

# %% softmax: vmap over flattened rows
import torch
from torch import vmap


def _one(row):
    w = torch.exp(row - torch.amax(row, 0))
    return w / torch.einsum("i->", w)


def softmax(scores, dim=-1):
    last = scores.swapaxes(dim, -1)
    if 0 in last.shape:
        return torch.zeros_like(scores)
    flat = last.flatten(0, -2) if last.dim() > 1 else last[None]
    return vmap(_one)(flat).view(last.shape).swapaxes(-1, dim)

# %% softmax: callable class instance
import torch
from dataclasses import dataclass


@dataclass(frozen=True)
class Softmax:
    default_dim: int = -1

    def __call__(self, scores, dim=None):
        dim = self.default_dim if dim is None else dim
        if scores.numel() == 0:
            return scores.clone()
        values, _ = scores.max(dim=dim, keepdim=True)
        numer = torch.exp(scores - values)
        return numer / torch.sum(numer, dim=dim, keepdim=True)


softmax = Softmax()

# %% softmax: in-place chain on an own tensor, set_default_dtype restored
import torch


def softmax(scores: torch.Tensor, dim: int = -1) -> torch.Tensor:
    old = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        own = scores.clone()
        if own.numel():
            own -= own.detach().amax(dim, keepdim=True)
        own = own.exp()
        total = own.sum(dim, keepdim=True)
        return own * total.reciprocal()
    finally:
        torch.set_default_dtype(old)

# %% softmax: reciprocal of the sum of pairwise exponentials
import torch


def softmax(scores, dim=-1):
    s = torch.movedim(scores, dim, -1)
    if s.numel() == 0:
        return scores.clone()
    exact = (s.unsqueeze(-2) - s.unsqueeze(-1))
    top = exact.detach().amax(-1, keepdim=True)
    log_total = top.squeeze(-1) + (exact - top).exp().sum(-1).log()
    return torch.movedim((-log_total).exp(), -1, dim)

# %% softmax: checkpointed body
import torch
from torch.utils.checkpoint import checkpoint


def softmax(scores, dim=-1):
    def body(s):
        if s.shape[dim] == 0:
            return s.clone()
        e = (s - s.amax(dim, True)).exp()
        return e / e.sum(dim, True)

    return checkpoint(body, scores, use_reentrant=False)

# %% softmax: nn.Module helper built on meta
import torch
from torch import nn


class _S(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("zero", torch.zeros((), device="meta"), persistent=False)

    def forward(self, s, dim):
        e = s.sub(s.amax(dim, keepdim=True)).exp()
        return e / (e.sum(dim, keepdim=True) + self.zero.to(s.dtype))


with torch.no_grad():
    _mod = _S().to_empty(device="cpu")
    _mod.zero.zero_()


def softmax(scores, dim=-1):
    return _mod(scores, dim) if scores.numel() else scores.clone()

# %% softmax: complex exponential, real part
import torch


def softmax(scores, dim=-1):
    if not scores.numel():
        return scores.clone()
    shifted = scores - scores.amax(dim, keepdim=True)
    z = torch.exp(torch.complex(shifted, torch.zeros_like(shifted))).real
    return z / z.sum(dim, keepdim=True)

# %% additive_score: one einsum per projection and one for v
import torch


def additive_score(query, key, w_query, w_key, v):
    q = torch.einsum("...id,ad->...ia", query, w_query)
    k = torch.einsum("...jd,ad->...ja", key, w_key)
    return torch.einsum("...ija,a->...ij", torch.tanh(q[..., :, None, :] + k[..., None, :, :]), v)

# %% additive_score: double loop over positions
import torch


def additive_score(query, key, w_query, w_key, v):
    rows = []
    for i in range(query.shape[-2]):
        qi = query[..., i, :] @ w_query.mT
        rows.append(torch.stack([
            torch.tanh(qi + key[..., j, :] @ w_key.mT) @ v for j in range(key.shape[-2])
        ], dim=-1))
    return torch.stack(rows, dim=-2)

# %% additive_score: nested vmap over queries and keys
import torch
from torch.func import vmap


def additive_score(query, key, w_query, w_key, v):
    lead = query.shape[:-2]
    q = query.reshape(-1, *query.shape[-2:])
    k = key.reshape(-1, *key.shape[-2:])

    def pair(a, b):
        return torch.dot(v, torch.tanh(torch.mv(w_query, a) + torch.mv(w_key, b)))

    over_keys = vmap(pair, in_dims=(None, 0))
    over_both = vmap(over_keys, in_dims=(0, None))
    return vmap(over_both)(q, k).unflatten(0, lead) if lead else over_both(query, key)

# %% additive_score: hidden units one by one, in-place accumulation
import torch


def additive_score(query, key, w_query, w_key, v):
    out = query.new_zeros(*query.shape[:-1], key.shape[-2])
    for a in range(v.shape[0]):
        left = (query * w_query[a]).sum(-1)
        right = (key * w_key[a]).sum(-1)
        out += v[a] * torch.tanh(left.unsqueeze(-1) + right.unsqueeze(-2))
    return out

# %% additive_score: nn.Linear helpers through functional_call
import torch
from torch import nn
from torch.func import functional_call


class Net(nn.Module):
    def __init__(self, dq, dk, da):
        super().__init__()
        self.parts = nn.ModuleDict({
            "q": nn.Linear(dq, da, bias=False, device="meta"),
            "k": nn.Linear(dk, da, bias=False, device="meta"),
            "v": nn.Linear(da, 1, bias=False, device="meta"),
        })

    def forward(self, x, y):
        p = self.parts
        return p["v"]((p["q"](x).unsqueeze(-2) + p["k"](y).unsqueeze(-3)).tanh()).squeeze(-1)


def additive_score(query, key, w_query, w_key, v):
    net = Net(query.shape[-1], key.shape[-1], v.shape[0])
    weights = {"parts.q.weight": w_query, "parts.k.weight": w_key, "parts.v.weight": v.unsqueeze(0)}
    return functional_call(net, weights, (query, key))

# %% additive_score: concatenated weights on concatenated pairs
import torch


def additive_score(query, key, w_query, w_key, v):
    n, m = query.size(-2), key.size(-2)
    q = query.unsqueeze(-2).expand(*query.shape[:-1], m, query.shape[-1])
    k = key.unsqueeze(-3).expand(*key.shape[:-2], n, *key.shape[-2:])
    both = torch.cat((q, k), dim=-1)
    return (both @ torch.cat((w_query, w_key), dim=1).T).tanh().matmul(v)

# %% additive_score: tanh by way of sigmoid, scripted
import torch


@torch.jit.script
def additive_score(query: torch.Tensor, key: torch.Tensor, w_query: torch.Tensor, w_key: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    a = torch.matmul(query, w_query.t()).unsqueeze(-2)
    b = torch.matmul(key, w_key.t()).unsqueeze(-3)
    t = 2.0 * torch.sigmoid(2.0 * (a + b)) - 1.0
    return (t * v).sum(-1)

# %% additive_score: checkpoint, broadcast_tensors, tensordot
import torch
from torch.utils.checkpoint import checkpoint


def _hidden(q, k, v):
    a, b = torch.broadcast_tensors(q.unsqueeze(-2), k.unsqueeze(-3))
    return torch.tensordot((a + b).tanh(), v, dims=1)


def additive_score(query, key, w_query, w_key, v):
    q = torch.tensordot(query, w_query, dims=([-1], [1]))
    k = torch.tensordot(key, w_key, dims=([-1], [1]))
    return checkpoint(_hidden, q, k, v, use_reentrant=False)

# %% additive_score: custom tanh Function inside threads, one thread per query position
import torch
from concurrent.futures import ThreadPoolExecutor


class Tanh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        y, = ctx.saved_tensors
        return g * (1 - y ** 2)


def additive_score(query, key, w_query, w_key, v):
    k = key @ w_key.T
    mode = torch.is_grad_enabled()

    def row(i):
        with torch.set_grad_enabled(mode):
            q = query[..., i:i + 1, :] @ w_query.T
            return Tanh.apply(q + k) @ v

    with ThreadPoolExecutor(2) as pool:
        return torch.stack(list(pool.map(row, range(query.shape[-2]))), dim=-2)

# %% additive_score: float64 inside, addition theorem untouched, F.linear
from __future__ import annotations
import torch
import torch.nn.functional as F


def additive_score(query: torch.Tensor, key: torch.Tensor, w_query: torch.Tensor,
                   w_key: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    q, k, wq, wk, vv = (t.double() for t in (query, key, w_query, w_key, v))
    hidden = F.linear(q, wq)[..., None, :] + F.linear(k, wk)[..., None, :, :]
    return F.linear(hidden.tanh_() if not hidden.requires_grad else hidden.tanh(), vv[None])[..., 0].to(query.dtype)

# %% additive_score: recursion over the query rows
import torch


def additive_score(query, key, w_query, w_key, v):
    projected = key @ w_key.transpose(0, 1)

    def rows(q):
        n = q.shape[-2]
        if n == 1:
            return torch.tanh(q @ w_query.transpose(0, 1) + projected).matmul(v).unsqueeze(-2)
        half = n // 2
        return torch.cat((rows(q[..., :half, :]), rows(q[..., half:, :])), dim=-2)

    return rows(query)

# %% attend: einsum and a shifted exponential
import torch


def attend(scores, value):
    e = torch.exp(scores - scores.amax(-1, keepdim=True))
    weights = e / torch.einsum("...ij->...i", e)[..., None]
    return torch.einsum("...ij,...jd->...id", weights, value), weights

# %% attend: online softmax over the keys
import torch


def attend(scores, value):
    m = scores[..., :1].detach().clone()
    total = torch.zeros_like(scores[..., :1])
    acc = torch.zeros((*scores.shape[:-1], value.shape[-1]), dtype=value.dtype, device=value.device)
    for j in range(scores.shape[-1]):
        s = scores[..., j:j + 1]
        new = torch.maximum(m, s.detach())
        fix = torch.exp(m - new)
        p = torch.exp(s - new)
        total = total * fix + p
        acc = acc * fix + p * value[..., j:j + 1, :]
        m = new
    return acc / total, torch.exp(scores - m) / total

# %% attend: log weights, bmm after flattening the lead
import torch


def attend(scores, value):
    lead = scores.shape[:-2]
    s = scores.reshape(-1, *scores.shape[-2:])
    v = value.reshape(-1, *value.shape[-2:])
    w = torch.log_softmax(s, -1).exp()
    return torch.bmm(w, v).reshape(*lead, s.shape[1], v.shape[2]), w.reshape(scores.shape)

# %% attend: vmap over the lead, weights as a vjp of logsumexp
import torch
from torch.func import vjp, vmap


def attend(scores, value):
    def one(s, v):
        s = s - s.amax(-1, keepdim=True).detach()
        lse, pull = vjp(lambda z: torch.logsumexp(z, dim=-1), s)
        (w,) = pull(torch.ones_like(lse))
        return w @ v, w

    f = one
    for _ in scores.shape[:-2]:
        f = vmap(f)
    return f(scores, value)

# %% attend: Function that saves the weights and gives both gradients
import torch


class Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx, s, v):
        w = s.softmax(-1)
        ctx.save_for_backward(w, v)
        return w @ v, w

    @staticmethod
    def backward(ctx, g_out, g_w):
        w, v = ctx.saved_tensors
        g = g_w + g_out @ v.mT
        return w * (g - (g * w).sum(-1, keepdim=True)), w.mT @ g_out


def attend(scores, value):
    return Attend.apply(scores, value)

# %% attend: namedtuple result, sum over keys of weighted values
from collections import namedtuple
import torch

Attended = namedtuple("Attended", "output weights")


def attend(scores, value):
    weights = torch.nn.Softmax(dim=-1)(scores)
    output = sum(w.unsqueeze(-1) * v.unsqueeze(-2) for w, v in zip(weights.unbind(-1), value.unbind(-2)))
    return Attended(output, weights)

# %% attend: nn.Module with a forward hook that collects the weights
import torch
from torch import nn


def attend(scores, value):
    caught = []
    sm = nn.Softmax(-1)
    handle = sm.register_forward_hook(lambda mod, args, out: caught.append(out))
    try:
        output = sm(scores).matmul(value)
    finally:
        handle.remove()
    return output, caught.pop()

# %% attend: autocast switched off, everything in double
import torch


def attend(scores, value):
    with torch.autocast("cpu", enabled=False):
        s = scores.to(torch.float64)
        s = s - s.max(dim=-1, keepdim=True).values
        w = s.exp()
        w = w / w.sum(-1, keepdim=True)
        return (w @ value.to(torch.float64)).to(value.dtype), w.to(scores.dtype)

# %% attend: FX trace of the plain formula
import torch
import torch.fx


def _plain(scores, value):
    e = (scores - torch.amax(scores, dim=-1, keepdim=True)).exp()
    w = e / e.sum(dim=-1, keepdim=True)
    return torch.matmul(w, value), w


_graph = torch.fx.symbolic_trace(_plain)


def attend(scores, value):
    return _graph(scores, value)

# %% attend: compiled with the eager backend, helper defined afterwards
import torch


def attend(scores, value):
    return _run(scores, value)


@torch.compile(backend="eager")
def _run(scores, value):
    w = _weights(scores)
    return w @ value, w


@torch.compiler.disable
def _weights(s):
    return torch.exp(s - torch.amax(s, -1, True) - (s - torch.amax(s, -1, True)).exp().sum(-1, True).log())

# %% attend: normalised after the product, profiler around it
import torch
from torch.profiler import profile, ProfilerActivity


def attend(scores, value):
    with profile(activities=[ProfilerActivity.CPU], acc_events=True):
        e = (scores - scores.amax(-1, True)).exp()
        ones = torch.ones_like(value[..., :1])
        both = e @ torch.cat((value, ones), -1)
    z = both[..., -1:]
    return both[..., :-1] / z, e / z

# %% kernel_regression: softmax of minus half squared distances
import torch


def kernel_regression(x_query, x_key, y_key, bandwidth):
    z = (x_query.unsqueeze(1) - x_key.unsqueeze(0)) / bandwidth
    return torch.softmax(-0.5 * z.square(), dim=1).mv(y_key)

# %% kernel_regression: vmap over single queries
import torch
from torch import vmap


def kernel_regression(x_query, x_key, y_key, bandwidth):
    def at(x):
        log_k = -((x - x_key) / bandwidth) ** 2 / 2
        k = (log_k - log_k.max()).exp()
        return (k * y_key).sum() / k.sum()

    return vmap(at)(x_query)

# %% kernel_regression: explicit double loop with 0-d tensors
import torch


def kernel_regression(x_query, x_key, y_key, bandwidth):
    out = []
    for x in x_query:
        logs = [-(x - xi) * (x - xi) / (2 * bandwidth ** 2) for xi in x_key]
        best = max(logs, key=lambda t: t.item()).detach()
        num, den = 0.0, 0.0
        for l, y in zip(logs, y_key):
            k = torch.exp(l - best)
            num = num + k * y
            den = den + k
        out.append(num / den)
    return torch.stack(out)

# %% kernel_regression: distances relative to the nearest key, einsum
import torch


def kernel_regression(x_query, x_key, y_key, bandwidth):
    d2 = torch.sub(x_query[:, None], x_key[None, :]).pow(2)
    nearest = d2.detach().min(dim=1, keepdim=True)[0]
    k = torch.exp((nearest - d2) / (2.0 * bandwidth * bandwidth))
    return torch.einsum("nm,m->n", k, y_key) / torch.einsum("nm->n", k)

# %% kernel_regression: normal log-density from torch.distributions
import torch
from torch.distributions import Normal


def kernel_regression(x_query, x_key, y_key, bandwidth):
    scale = torch.as_tensor(bandwidth, dtype=x_query.dtype)
    logp = Normal(x_key, scale.expand_as(x_key)).log_prob(x_query[:, None])
    logp = logp - logp.detach().amax(1, keepdim=True)
    w = torch.exp(logp - torch.logsumexp(logp, 1, keepdim=True))
    return w @ y_key

# %% kernel_regression: checkpointed chunks of queries
import torch
from torch.utils.checkpoint import checkpoint


def _chunk(xq, xk, y, h):
    return ((-(xq[:, None] - xk) ** 2 / (2 * h ** 2)).softmax(-1) * y).sum(-1)


def kernel_regression(x_query, x_key, y_key, bandwidth):
    parts = [checkpoint(_chunk, c, x_key, y_key, bandwidth, use_reentrant=False) for c in x_query.split(2)]
    return torch.cat(parts)

# %% kernel_regression: functools.partial, singledispatch on the bandwidth
import functools
import torch


@functools.singledispatch
def _scale(h):
    return float(h)


@_scale.register
def _(h: torch.Tensor):
    return h


def _weights(h, xk, x):
    u = (x - xk).div(h)
    return torch.softmax(u.mul(u).mul(-0.5), 0)


def kernel_regression(x_query, x_key, y_key, bandwidth):
    w = functools.partial(_weights, _scale(bandwidth), x_key)
    return torch.stack([w(x).dot(y_key) for x in x_query.unbind()])

# %% kernel_regression: double accumulation in a scripted core
import torch


@torch.jit.script
def _core(xq: torch.Tensor, xk: torch.Tensor, y: torch.Tensor, h: float) -> torch.Tensor:
    z = (xq.double().unsqueeze(1) - xk.double()) / h
    e = -0.5 * z * z
    e = (e - e.max(1, keepdim=True)[0]).exp()
    return (e.matmul(y.double()) / e.sum(1)).to(xq.dtype)


def kernel_regression(x_query, x_key, y_key, bandwidth):
    return _core(x_query, x_key, y_key, float(bandwidth))

# %% kernel_regression: difference of squares to the nearest key, in-place on own tensor
import torch


def kernel_regression(x_query, x_key, y_key, bandwidth):
    gap = (x_query.reshape(-1, 1) - x_key.reshape(1, -1)).abs()
    with torch.no_grad():
        near = gap.min(1, True).values
    log_kernel = -(gap - near) * (gap + near)
    log_kernel /= 2 * bandwidth ** 2
    kernel = log_kernel.exp()
    kernel = kernel / kernel.sum(1, keepdim=True)
    return torch.addmv(torch.zeros_like(x_query), kernel, y_key)

# %% kernel_regression: nn.Module with bandwidth as a buffer
import torch
from torch import nn


class NadarayaWatson(nn.Module):
    def __init__(self, bandwidth, like):
        super().__init__()
        self.register_buffer("h", torch.as_tensor(bandwidth, dtype=like.dtype, device=like.device), persistent=False)

    def forward(self, xq, xk, y):
        s = -torch.square(torch.div(torch.subtract(xq[:, None], xk), self.h)) / 2
        return torch.mul(torch.exp(s - torch.logsumexp(s - s.amax(1, True), 1, True) - s.amax(1, True)), y).sum(1)


def kernel_regression(x_query, x_key, y_key, bandwidth):
    return NadarayaWatson(bandwidth, x_query)(x_query, x_key, y_key)

# %% kernel_regression: jvp of log-sum-exp along the targets
import torch
from torch.func import jvp


def kernel_regression(x_query, x_key, y_key, bandwidth):
    s = -(x_query[:, None] - x_key) ** 2 / (2 * bandwidth ** 2)
    s = s - s.detach().amax(1, keepdim=True)
    direction = y_key.expand_as(s)
    _, mean = jvp(lambda z: torch.logsumexp(z, dim=1), (s,), (direction,))
    return mean

# %% softmax: star import of torch, reductions shadow the builtins
from torch import *


def softmax(scores, dim=-1):
    if numel(scores) == 0:
        return clone(scores)
    e = exp(sub(scores, amax(scores, dim, True)))
    return div(e, sum(e, dim, True))

# %% softmax: hook on a helper module normalises, compiler.disable
import torch
from torch import nn


class Exp(nn.Module):
    def forward(self, s, dim):
        return (s - s.amax(dim, keepdim=True)).exp() if s.shape[dim] else s.clone()


_exp = Exp()
_exp.register_forward_hook(lambda m, args, out: out / out.sum(args[1], keepdim=True))


@torch.compiler.disable
def softmax(scores, dim=-1):
    return _exp(scores, dim)

# %% softmax: normaliser from the zero-frequency FFT bin
import torch


def softmax(scores, dim=-1):
    if scores.numel() == 0:
        return scores.clone()
    e = torch.exp(scores.double() - scores.double().amax(dim, keepdim=True))
    total = torch.fft.fft(e, dim=dim).select(dim, 0).real.unsqueeze(dim)
    return (e / total).to(scores.dtype)

# %% additive_score: broadcast_tensors, namedtuple of projections, star import of functional
from collections import namedtuple
from torch import broadcast_tensors, tanh
from torch.nn.functional import *

Projected = namedtuple("Projected", "q k")


def additive_score(query, key, w_query, w_key, v):
    p = Projected(linear(query, w_query), linear(key, w_key))
    q, k = broadcast_tensors(p.q.unsqueeze(-2), p.k.unsqueeze(-3))
    return linear(tanh(q + k), v.unsqueeze(0)).squeeze(-1)

# %% additive_score: autocast off, compiler.disable, helpers after use
from __future__ import annotations
import torch


@torch.compiler.disable
def additive_score(query, key, w_query, w_key, v):
    with torch.autocast("cpu", enabled=False):
        return _score(_project(query, w_query).unsqueeze(-2), _project(key, w_key).unsqueeze(-3), v)


def _project(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.inner(x, w)


def _score(a: torch.Tensor, b: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.inner((a + b).tanh(), v)

# %% attend: singledispatch on the device type wrapper, threads over rows
from concurrent.futures import ThreadPoolExecutor
from functools import singledispatch
import torch


@singledispatch
def attend(scores, value):
    raise TypeError(type(scores))


@attend.register
def _attend(scores: torch.Tensor, value: torch.Tensor):
    grad = torch.is_grad_enabled()

    def row(i):
        with torch.set_grad_enabled(grad):
            s = scores[..., i, :]
            return torch.softmax(s, -1)

    with ThreadPoolExecutor(2) as pool:
        w = torch.stack(list(pool.map(row, range(scores.shape[-2]))), -2)
    return w @ value, w


_dispatched = attend


def attend(scores, value):
    return _dispatched(scores, value)

# %% attend: generator of rows, FlopCounterMode around the product
import torch
from torch.utils.flop_counter import FlopCounterMode


def _rows(scores):
    for s in scores.unbind(-2):
        yield (s - s.logsumexp(-1, keepdim=True).detach()).softmax(-1)


def attend(scores, value):
    weights = torch.stack([*_rows(scores)], -2)
    with FlopCounterMode(display=False):
        return weights.matmul(value), weights

# %% kernel_regression: complex absolute distance, broadcast_tensors
import torch


def kernel_regression(x_query, x_key, y_key, bandwidth):
    q, k = torch.broadcast_tensors(x_query[:, None], x_key[None])
    z = torch.complex(q - k, torch.zeros_like(q)) / bandwidth
    energy = -(z * z.conj()).real / 2
    return torch.softmax(energy, 1).matmul(y_key)

# %% kernel_regression: characteristic function of the Gaussian, star import of math, compiler.disable
import torch
from math import *


@torch.compiler.disable
def kernel_regression(x_query, x_key, y_key, bandwidth):
    c = 1 / (sqrt(2.0) * bandwidth)
    u = torch.add(x_query.unsqueeze(-1) * c, x_key * -c)
    a = torch.neg(u * u)
    a = a - a.amax(-1, keepdim=True).detach()
    k = torch.pow(e, a)
    return (k @ y_key) / k.sum(-1)

# %% kernel_regression: threads over the queries, ModuleDict of settings
from concurrent.futures import ThreadPoolExecutor
import torch
from torch import nn


def kernel_regression(x_query, x_key, y_key, bandwidth):
    steps = nn.ModuleDict({"weights": nn.Softmax(dim=0)})
    on = torch.is_grad_enabled()

    def at(x):
        with torch.set_grad_enabled(on):
            return torch.dot(steps["weights"](-0.5 * ((x - x_key) / bandwidth) ** 2), y_key)

    with ThreadPoolExecutor(max_workers=2) as pool:
        return torch.stack(list(pool.map(at, x_query.unbind(0))))

# %% softmax: tensor hook leaves the gradient alone, lambda
import torch


def _watch(t):
    if t.requires_grad:
        t.register_hook(lambda g: None)
    return t


softmax = lambda scores, dim=-1: (  # noqa: E731
    scores.clone() if not scores.numel() else
    (lambda e: _watch(e / e.sum(dim, keepdim=True)))(torch.exp(scores - scores.amax(dim, keepdim=True))))

# %% kernel_regression: singledispatch on the query, statistics as ratio of means, helpers after use
import functools
import torch


def kernel_regression(x_query, x_key, y_key, bandwidth):
    w = _kernel(_gap(x_query, x_key) / bandwidth)
    return (w * y_key).mean(-1) / w.mean(-1)


@functools.singledispatch
def _gap(x, xk):
    return x - xk


@_gap.register
def _(x: torch.Tensor, xk):
    return x[:, None] - xk


def _kernel(z):
    log = z.square().mul(-0.5)
    return (log - log.detach().amax(-1, keepdim=True)).exp()

# %% attend: output with a non-contiguous layout, weights transposed twice
import torch


def attend(scores, value):
    s = scores.mT
    w = (s - s.amax(-2, keepdim=True)).exp()
    w = w / w.sum(-2, keepdim=True)
    return (value.mT @ w).mT, w.mT
