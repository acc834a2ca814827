# %% online_softmax_step: the state joins the block as one more key
import torch


def online_softmax_step(maximum, total, output, scores, value):
    everything = torch.cat([maximum.unsqueeze(-1), scores], dim=-1)
    peak = everything.amax(-1)
    weights = (everything - peak.unsqueeze(-1)).exp()
    counts = torch.cat([total.unsqueeze(-1), torch.ones_like(scores)], dim=-1)
    mixed = torch.einsum("...qb,...bv->...qv", weights[..., 1:], value)
    return peak, torch.linalg.vecdot(weights, counts), mixed + weights[..., :1] * output


# %% online_softmax_step: nested vmap, over the batches and the queries
import torch
from torch.func import vmap


def _one_query(m, t, o, s, v):
    new = torch.maximum(m, torch.max(s))
    shrink, p = torch.exp(m - new), torch.exp(s - new)
    return new, t * shrink + p.sum(), o * shrink + p @ v


def online_softmax_step(maximum, total, output, scores, value):
    per_batch = vmap(_one_query, in_dims=(0, 0, 0, 0, None))
    for _ in range(value.dim() - 2):
        per_batch = vmap(per_batch)
    return per_batch(maximum, total, output, scores, value)


# %% online_softmax_step: custom autograd.Function for the sums given the maximum
import torch
from torch.autograd.function import once_differentiable


class Sums(torch.autograd.Function):
    @staticmethod
    def forward(ctx, old, new, total, output, scores, value):
        shrink = torch.exp(old - new)
        p = torch.exp(scores - new[..., None])
        ctx.save_for_backward(shrink, p, total, output, value)
        return total * shrink + p.sum(-1), output * shrink[..., None] + p @ value

    @staticmethod
    @once_differentiable
    def backward(ctx, g_total, g_output):
        shrink, p, total, output, value = ctx.saved_tensors
        d_old = shrink * (g_total * total + (g_output * output).sum(-1))
        d_scores = p * (g_total[..., None] + g_output @ value.mT)
        d_new = -d_old - d_scores.sum(-1)
        return d_old, d_new, g_total * shrink, g_output * shrink[..., None], d_scores, p.mT @ g_output


def online_softmax_step(maximum, total, output, scores, value):
    peak = torch.maximum(maximum, scores.max(dim=-1).values)
    return (peak, *Sums.apply(maximum, peak, total, output, scores, value))


# %% online_softmax_step: torch.jit.script, key after key
from typing import Tuple

import torch


@torch.jit.script
def _walk(
    m: torch.Tensor, t: torch.Tensor, o: torch.Tensor, s: torch.Tensor, v: torch.Tensor
) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    for j in range(s.size(-1)):
        column = s.select(-1, j)
        new = torch.max(m, column)
        old_part = torch.exp(m - new)
        new_part = torch.exp(column - new)
        t = t * old_part + new_part
        o = o * old_part.unsqueeze(-1) + new_part.unsqueeze(-1) * v.select(-2, j).unsqueeze(-2)
        m = new
    return m, t, o


def online_softmax_step(maximum, total, output, scores, value):
    return _walk(maximum, total, output, scores, value)


# %% online_softmax_step: recursion, halves of the block merged as a monoid
import torch


def _merge(a, b):
    m = torch.where(a[0] >= b[0], a[0], b[0])
    x, y = (a[0] - m).exp(), (b[0] - m).exp()
    return m, x * a[1] + y * b[1], x[..., None] * a[2] + y[..., None] * b[2]


def _state(scores, value):
    n = scores.shape[-1]
    if n == 1:
        m = scores[..., 0]
        return m, torch.ones_like(m), value.expand(*scores.shape[:-1], value.shape[-1])
    half = n // 2
    return _merge(
        _state(scores[..., :half], value[..., :half, :]),
        _state(scores[..., half:], value[..., half:, :]),
    )


online_softmax_step = lambda maximum, total, output, scores, value: _merge(  # noqa: E731
    (maximum, total, output), _state(scores, value)
)


# %% online_softmax_step: float64 inside, powers of two, a column of ones for the total
import math

import torch


def online_softmax_step(maximum, total, output, scores, value):
    kind = scores.dtype
    m, t, o, s, v = (x.to(torch.float64) for x in (maximum, total, output, scores, value))
    state = torch.cat((o, t[..., None]), -1)
    with_ones = torch.nn.functional.pad(v, (0, 1), value=1.0)
    top = m.clamp(min=s.amax(-1))
    turn = 1 / math.log(2)
    state = torch.exp2((m - top) * turn)[..., None] * state
    state = state + torch.matmul(torch.exp2((s - top[..., None]) * turn), with_ones)
    new_output, new_total = state.split([v.shape[-1], 1], dim=-1)
    return top.to(kind), new_total.squeeze(-1).to(kind), new_output.to(kind)


# %% online_softmax_step: a class with __call__, softmax and logsumexp of the block first
import torch


class Step:
    def __init__(self, join=torch.maximum):
        self.join = join

    def __call__(self, maximum, total, output, scores, value):
        size = torch.logsumexp(scores, dim=-1)
        mean = torch.softmax(scores, dim=-1) @ value
        peak = self.join(maximum, torch.sort(scores, dim=-1, descending=True)[0][..., 0])
        kept, mass = torch.exp(maximum - peak), torch.exp(size - peak)
        return (
            peak,
            torch.addcmul(mass, total, kept),
            torch.addcmul(output * kept.unsqueeze(-1), mean, mass.unsqueeze(-1)),
        )


_step = Step()


def online_softmax_step(maximum, total, output, scores, value):
    return _step(maximum, total, output, scores, value)


# %% online_softmax_step: checkpoint, flat batch and baddbmm on a diagonal matrix
import torch
from torch.utils.checkpoint import checkpoint


def _flat(m, t, o, s, v):
    top = torch.cummax(torch.cat([s, m[..., None]], dim=-1), dim=-1).values[..., -1]
    shrink = torch.exp(m - top)
    p = torch.exp(s - top[..., None])
    kept = torch.bmm(torch.diag_embed(shrink), o)
    return top, shrink * t + p.sum(dim=-1), torch.baddbmm(kept, p, v)


def online_softmax_step(maximum, total, output, scores, value):
    lead, q, b = scores.shape[:-2], *scores.shape[-2:]
    d = value.shape[-1]
    m, t, o = checkpoint(
        _flat,
        maximum.reshape(-1, q),
        total.reshape(-1, q),
        output.reshape(-1, q, d),
        scores.reshape(-1, q, b),
        value.reshape(-1, b, d),
        use_reentrant=False,
    )
    return m.reshape(*lead, q), t.reshape(*lead, q), o.reshape(*lead, q, d)


# %% tiled_attention: functools.reduce over a generator of blocks
import math
from functools import reduce

import torch


def _blocks(query, key, value, size):
    scale = 1 / math.sqrt(query.shape[-1])
    for k, v in zip(key.split(size, dim=-2), value.split(size, dim=-2)):
        yield torch.einsum("...qd,...kd->...qk", query * scale, k), v


def _fold(state, block):
    (m, t, o), (s, v) = state, block
    new = torch.maximum(m, s.amax(-1, keepdim=True))
    a, p = (m - new).exp(), (s - new).exp()
    return new, a * t + p.sum(-1, keepdim=True), a * o + p @ v


def tiled_attention(query, key, value, block_size):
    column = query.new_zeros(*query.shape[:-1], 1)
    start = (column - math.inf, column, query.new_zeros(*query.shape[:-1], value.shape[-1]))
    _, total, output = reduce(_fold, _blocks(query, key, value, block_size), start)
    return output / total


# %% tiled_attention: custom autograd.Function, the backward pass recomputes each block
import torch
from torch.autograd.function import once_differentiable


class Flash(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, size):
        scale = query.shape[-1] ** -0.5
        lse = out = None
        for begin in range(0, key.shape[-2], size):
            s = (query @ key[..., begin : begin + size, :].mT) * scale
            part = torch.logsumexp(s, -1, keepdim=True)
            mean = torch.softmax(s, -1) @ value[..., begin : begin + size, :]
            if lse is None:
                lse, out = part, mean
            else:
                both = torch.logaddexp(lse, part)
                out = out * (lse - both).exp() + mean * (part - both).exp()
                lse = both
        ctx.save_for_backward(query, key, value, out, lse)
        ctx.size, ctx.scale = size, scale
        return out.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        query, key, value, out, lse = ctx.saved_tensors
        centre = (grad * out).sum(-1, keepdim=True)
        d_query, d_key, d_value = torch.zeros_like(query), [], []
        for k, v in zip(key.split(ctx.size, -2), value.split(ctx.size, -2)):
            p = torch.exp((query @ k.mT) * ctx.scale - lse)
            d_value.append(p.mT @ grad)
            d_s = p * (grad @ v.mT - centre) * ctx.scale
            d_query = d_query + d_s @ k
            d_key.append(d_s.mT @ query)
        return d_query, torch.cat(d_key, -2), torch.cat(d_value, -2), None


def tiled_attention(query, key, value, block_size):
    return Flash.apply(query, key, value, block_size)


# %% tiled_attention: recursion on halves of the list of blocks, sigmoid gate between them
import torch


def _attend(query, pairs):
    if len(pairs) == 1:
        ((k, v),) = pairs
        s = torch.matmul(query, k.transpose(-1, -2))
        return torch.logsumexp(s, -1, True), torch.softmax(s, -1) @ v
    half = len(pairs) // 2
    left, right = _attend(query, pairs[:half]), _attend(query, pairs[half:])
    gate = torch.sigmoid(right[0] - left[0])
    return torch.logaddexp(left[0], right[0]), torch.lerp(left[1], right[1], gate.expand_as(left[1]))


def tiled_attention(query, key, value, block_size):
    pairs = list(zip(torch.split(key, block_size, -2), torch.split(value, block_size, -2)))
    return _attend(query / query.shape[-1] ** 0.5, pairs)[1]


# %% tiled_attention: two passes, the first for the maximum only, the scores made twice
import torch


def tiled_attention(query, key, value, block_size):
    scaled = query.div(torch.tensor(query.shape[-1], dtype=query.dtype, device=query.device).sqrt())
    starts = [*range(0, key.shape[-2], block_size)]
    with torch.no_grad():
        top = None
        for i in starts:
            here = (scaled @ key[..., i : i + block_size, :].mT).amax(-1, keepdim=True)
            top = here if top is None else torch.maximum(top, here)
    numerator = denominator = 0
    for i in reversed(starts):
        p = (scaled @ key[..., i : i + block_size, :].mT - top).exp()
        numerator = numerator + p @ value[..., i : i + block_size, :]
        denominator = denominator + p.sum(-1, keepdim=True)
    return numerator / denominator


# %% tiled_attention: torch.jit.script with a while loop from the last block
import torch


@torch.jit.script
def _loop(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, size: int) -> torch.Tensor:
    end = key.size(-2)
    scaled = query / (float(query.size(-1)) ** 0.5)
    top = torch.full_like(scaled.select(-1, 0), -float("inf"))
    total = torch.zeros_like(top)
    output = torch.zeros_like(top).unsqueeze(-1)
    while end > 0:
        begin = max(0, end - size)
        k = key.narrow(-2, begin, end - begin)
        v = value.narrow(-2, begin, end - begin)
        s = torch.matmul(scaled, k.transpose(-2, -1))
        new = torch.max(top, torch.amax(s, dim=[-1]))
        keep = torch.exp(top - new)
        p = torch.exp(s - new.unsqueeze(-1))
        total = total * keep + p.sum(-1)
        output = output * keep.unsqueeze(-1) + torch.matmul(p, v)
        top = new
        end = begin
    return output / total.unsqueeze(-1)


def tiled_attention(query, key, value, block_size):
    return _loop(query, key, value, int(block_size))


# %% tiled_attention: checkpoint per block, float64 inside, while-else
import torch
from torch.utils.checkpoint import checkpoint


def _one(query, k, v, top, state):
    s = query @ k.mT
    new = top.clamp(min=s.detach().amax(-1, keepdim=True))
    return new, (top - new).exp() * state + (s - new).exp() @ v


def tiled_attention(query, key, value, block_size):
    q, k = query.double() / query.shape[-1] ** 0.5, key.double()
    v = torch.nn.functional.pad(value.double(), (0, 1), value=1.0)
    top = torch.full(q.shape[:-1] + (1,), -torch.inf, dtype=q.dtype, device=q.device)
    state = q.new_zeros(q.shape[:-1] + v.shape[-1:])
    at = 0
    while at < key.shape[-2]:
        piece = slice(at, at + block_size)
        top, state = checkpoint(_one, q, k[..., piece, :], v[..., piece, :], top, state, use_reentrant=False)
        at += block_size
    else:
        answer = state[..., :-1] / state[..., -1:]
    return answer.to(query.dtype)


# %% tiled_attention: vmap over the queries, each with a running mean over its blocks
import torch
from torch.func import vmap


def tiled_attention(query, key, value, block_size):
    def single(q, keys, values):
        size, mean = None, None
        for k, v in zip(keys.split(block_size), values.split(block_size)):
            s = torch.mv(k, q) / k.shape[-1] ** 0.5
            new_size, new_mean = torch.logsumexp(s, 0), torch.softmax(s, 0) @ v
            if size is None:
                size, mean = new_size, new_mean
                continue
            joint = torch.logaddexp(size, new_size)
            size, mean = joint, mean + torch.exp(new_size - joint) * (new_mean - mean)
        return mean

    mapped = vmap(single, in_dims=(0, None, None))
    for _ in query.shape[:-2]:
        mapped = vmap(mapped)
    return mapped(query, key, value)


# %% tiled_attention: a class with a state, blocks of strided keys, baddbmm on a flat batch
import torch


class Accumulator:
    def __init__(self, query):
        self.query, self.scale = query, query.shape[-1] ** -0.5
        self.top = self.total = self.output = None

    def __call__(self, k, v):
        empty = self.query.new_empty(1, 1, 1)
        s = torch.baddbmm(empty, self.query, k.transpose(1, 2), beta=0, alpha=self.scale)
        if self.top is None:
            self.top = s.max(2, keepdim=True)[0]
            p = torch.exp(s - self.top)
            self.total, self.output = p.sum(2, keepdim=True), torch.bmm(p, v)
            return self
        new = torch.fmax(self.top, s.max(2, keepdim=True)[0])
        keep, p = torch.exp(self.top - new), torch.exp(s - new)
        self.total = self.total * keep + p.sum(2, keepdim=True)
        self.output = torch.baddbmm(self.output * keep, p, v)
        self.top = new
        return self


def tiled_attention(query, key, value, block_size):
    q, k, v = (x.reshape(-1, *x.shape[-2:]) for x in (query, key, value))
    steps = -(-k.shape[1] // block_size)
    state = Accumulator(q)
    for first in range(steps):  # every steps-th key from first on: at most block_size of them
        state(k[:, first::steps], v[:, first::steps])
    return (state.output / state.total).reshape(*query.shape[:-1], value.shape[-1])


# %% grouped_query_attention: one einsum per product over an unflattened head axis, logsumexp instead of softmax
import torch


def grouped_query_attention(query, key, value):
    q = query.unflatten(1, (key.shape[1], -1))
    logits = torch.einsum("bgrqd,bgkd->bkgrq", q, key) * query.shape[-1] ** -0.5
    probabilities = torch.exp(logits - logits.logsumexp(dim=1, keepdim=True))
    return torch.einsum("bkgrq,bgkd->bgrqd", probabilities, value).flatten(1, 2)


# %% grouped_query_attention: four nested vmaps down to a single query vector
import torch
from torch.func import vmap


def _one(q, k, v):
    return torch.mv(v.t(), torch.softmax(torch.mv(k, q) / q.numel() ** 0.5, 0))


def grouped_query_attention(query, key, value):
    batch, heads, length, d = query.shape
    groups = key.size(1)
    over_queries = vmap(_one, in_dims=(0, None, None))
    over_members = vmap(over_queries, in_dims=(0, None, None))
    everything = vmap(vmap(over_members))
    return everything(query.reshape(batch, groups, heads // groups, length, d), key, value).reshape(query.shape)


# %% grouped_query_attention: custom autograd.Function, the gradients of a group summed by hand
import torch
from torch.autograd.function import once_differentiable


class Grouped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value):
        b, h, n, d = query.shape
        g = key.shape[1]
        q = query.reshape(b, g, h // g, n, d)
        w = ((q @ key.unsqueeze(2).mT) / d**0.5).softmax(-1)
        ctx.save_for_backward(q, key, value, w)
        return (w @ value.unsqueeze(2)).reshape(b, h, n, d)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        q, k, v, w = ctx.saved_tensors
        grad = grad.reshape(q.shape)
        dv = (w.mT @ grad).sum(2)
        dw = grad @ v.unsqueeze(2).mT
        ds = w * (dw - (dw * w).sum(-1, keepdim=True)) / q.shape[-1] ** 0.5
        dq = (ds @ k.unsqueeze(2)).flatten(1, 2)
        dk = (ds.mT @ q).sum(2)
        return dq, dk, dv


def grouped_query_attention(query, key, value):
    return Grouped.apply(query, key, value)


# %% grouped_query_attention: torch.jit.script, a loop over the heads and a list
from typing import List

import torch


@torch.jit.script
def _heads(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    per_group = query.size(1) // key.size(1)
    outputs: List[torch.Tensor] = []
    for h in range(query.size(1)):
        g = h // per_group
        scores = torch.bmm(query.select(1, h), key.select(1, g).transpose(1, 2))
        scores = scores / float(query.size(3)) ** 0.5
        outputs.append(torch.bmm(torch.softmax(scores, 2), value.select(1, g)))
    return torch.stack(outputs, 1)


def grouped_query_attention(query, key, value):
    return _heads(query, key, value)


# %% grouped_query_attention: the members of a group laid end to end as one long query, baddbmm
import torch


def grouped_query_attention(query, key, value):
    B, G, L_k, d = key.shape
    long_query = query.reshape(B * G, -1, d)
    k, v = key.reshape(B * G, L_k, d), value.reshape(B * G, L_k, d)
    nothing = query.new_zeros(1, 1, 1)
    scores = torch.baddbmm(nothing, long_query, k.transpose(1, 2), beta=0, alpha=1 / d**0.5)
    out = torch.baddbmm(nothing, scores.softmax(-1), v, beta=0)
    return out.view_as(query)


# %% grouped_query_attention: functools.reduce over the keys one by one, online softmax in float64
import functools

import torch


def _meet(state, token):
    top, total, output = state
    score, v = token
    new = torch.maximum(top, score)
    old_weight, weight = (top - new).exp(), (score - new).exp()
    return new, total * old_weight + weight, output * old_weight.unsqueeze(-1) + weight.unsqueeze(-1) * v


def grouped_query_attention(query, key, value):
    q, k, v = (t.to(torch.float64) for t in (query, key, value))
    members = q.size(1) // k.size(1)
    owner = torch.bucketize(
        torch.arange(q.size(1), device=q.device),
        torch.arange(members, q.size(1), members, device=q.device),
        right=True,
    )
    k, v = k.index_select(1, owner), v.index_select(1, owner)
    tokens = (
        ((q * k[:, :, j : j + 1]).sum(-1) / q.size(-1) ** 0.5, v[:, :, j : j + 1]) for j in range(k.size(2))
    )
    first_score, first_value = next(tokens)
    start = (first_score, torch.ones_like(first_score), first_value.expand(*first_score.shape, -1))
    _, total, output = functools.reduce(_meet, tokens, start)
    return (output / total.unsqueeze(-1)).to(query.dtype)


# %% grouped_query_attention: as_strided with stride 0 shares the key heads, torch.utils.checkpoint
import torch
from torch.utils.checkpoint import checkpoint


def _shared(t, members):
    t = t.clone(memory_format=torch.contiguous_format)
    b, g, n, d = t.shape
    return t.as_strided((b, g, members, n, d), (g * n * d, n * d, 0, d, 1)).reshape(b, g * members, n, d)


def _attend(query, key, value):
    members = query.shape[1] // key.shape[1]
    scores = query.matmul(_shared(key, members).transpose(-1, -2)).mul(query.shape[-1] ** -0.5)
    return scores.softmax(dim=-1).matmul(_shared(value, members))


def grouped_query_attention(query, key, value):
    return checkpoint(_attend, query, key, value, use_reentrant=False)


# %% grouped_query_attention: every head sees the keys of all groups, a block mask leaves its own
import torch


class GroupedQueryAttention:
    def __init__(self, fill=float("-inf")):
        self.fill = fill

    def __call__(self, query, key, value):
        heads, groups, n = query.size(1), key.size(1), key.size(2)
        mine = torch.block_diag(*[torch.ones(heads // groups, n, device=query.device)] * groups).bool()
        scores = query @ key.flatten(1, 2).unsqueeze(1).mT / query.size(-1) ** 0.5
        weights = scores.masked_fill(~mine[:, None, :], self.fill).softmax(-1)
        return weights @ value.flatten(1, 2).unsqueeze(1)


def grouped_query_attention(query, key, value, attend=GroupedQueryAttention()):
    return attend(query, key, value)


# %% linear_attention: logcumsumexp, the values as sinh of their asinh
import torch


def _log_feature(x):
    return torch.where(x > 0, torch.log1p(x.clamp(min=0)), x)


def linear_attention(query, key, value):
    q, k, v = query.double(), key.double(), value.double()
    lq, lk = _log_feature(q), _log_feature(k)
    below = torch.logsumexp(lq + torch.logcumsumexp(lk, -2), -1)[..., None]
    a = torch.asinh(v)[..., None, :]

    def side(sign):
        seen = torch.logcumsumexp(lk[..., None] + sign * a, dim=-3)
        return torch.exp(torch.logsumexp(lq[..., None] + seen, dim=-2) - below)

    return ((side(1) - side(-1)) / 2).to(value.dtype)


# %% linear_attention: divide and conquer, the right half gets the state of the left half
import torch


def _phi(x):
    return torch.clamp(x, min=0) + torch.exp(-torch.relu(-x))


def _halves(q, k, v):
    """Returns the numerators with the denominators as last column, and the state."""
    n = q.shape[-2]
    if n == 1:
        state = k.transpose(-1, -2) * v
        return q @ state, state
    m = n // 2
    left, a = _halves(q[..., :m, :], k[..., :m, :], v[..., :m, :])
    right, b = _halves(q[..., m:, :], k[..., m:, :], v[..., m:, :])
    return torch.cat([left, right + q[..., m:, :] @ a], -2), a + b


def linear_attention(query, key, value):
    with_one = torch.cat([value, torch.ones_like(value[..., :1])], -1)
    both, _ = _halves(_phi(query), _phi(key), with_one)
    *_, d = value.shape
    top, bottom = both.split([d, 1], -1)
    return top / bottom


# %% linear_attention: torch.jit.script, a recurrent network over select
from typing import List

import torch


@torch.jit.script
def _run(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    q = torch.nn.functional.elu(query) + 1.0
    k = torch.nn.functional.elu(key) + 1.0
    out: List[torch.Tensor] = []
    memory = k.select(-2, 0).unsqueeze(-1) * value.select(-2, 0).unsqueeze(-2)
    norm = k.select(-2, 0)
    for i in range(q.size(-2)):
        if i > 0:
            memory = memory + k.select(-2, i).unsqueeze(-1) * value.select(-2, i).unsqueeze(-2)
            norm = norm + k.select(-2, i)
        qi = q.select(-2, i)
        out.append((qi.unsqueeze(-1) * memory).sum(-2) / (qi * norm).sum(-1, keepdim=True))
    return torch.stack(out, -2)


def linear_attention(query, key, value):
    return _run(query, key, value)


# %% linear_attention: custom autograd.Function, the backward pass sums from the end
import torch
from torch.autograd.function import once_differentiable


def _from_end(x, dim):
    return x.flip(dim).cumsum(dim).flip(dim)


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value):
        q = torch.nn.functional.elu(query) + 1
        k = torch.nn.functional.elu(key) + 1
        memory = (k.unsqueeze(-1) * value.unsqueeze(-2)).cumsum(-3)
        norm = k.cumsum(-2)
        z = (q * norm).sum(-1, keepdim=True)
        out = (q.unsqueeze(-2) @ memory).squeeze(-2) / z
        ctx.save_for_backward(query, key, value, q, k, memory, norm, z, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        query, key, value, q, k, memory, norm, z, out = ctx.saved_tensors
        top = grad / z
        bottom = -(top * out).sum(-1, keepdim=True)
        dq = (memory @ top.unsqueeze(-1)).squeeze(-1) + bottom * norm
        later = _from_end(q.unsqueeze(-1) * top.unsqueeze(-2), -3)
        dk = (later @ value.unsqueeze(-1)).squeeze(-1) + _from_end(bottom * q, -2)
        dv = (k.unsqueeze(-2) @ later).squeeze(-2)
        slope_q = torch.where(query > 0, torch.ones_like(q), q)
        slope_k = torch.where(key > 0, torch.ones_like(k), k)
        return dq * slope_q, dk * slope_k, dv


def linear_attention(*projections):
    return Linear.apply(*projections)


# %% linear_attention: itertools.accumulate over a class with __add__, a generator of outputs
import itertools
import operator

import torch


class State:
    def __init__(self, memory, norm):
        self.memory, self.norm = memory, norm

    def __add__(self, other):
        return State(self.memory + other.memory, self.norm + other.norm)

    def __call__(self, q):
        return torch.einsum("...d,...dv->...v", q, self.memory) / torch.linalg.vecdot(q, self.norm)[..., None]


def _outputs(query, key, value):
    phi = torch.nn.ELU().forward
    tokens = (
        State((1 + phi(k)).unsqueeze(-1) * v.unsqueeze(-2), 1 + phi(k))
        for k, v in zip(key.unbind(-2), value.unbind(-2))
    )
    for q, state in zip(query.unbind(-2), itertools.accumulate(tokens, operator.add)):
        yield state(1 + phi(q))


def linear_attention(query, key, value):
    return torch.stack(list(_outputs(query, key, value)), dim=-2)


# %% linear_attention: vmap over the query positions inside a checkpoint, the later keys weighted 0
import torch
from torch.func import vmap
from torch.utils.checkpoint import checkpoint


def _feature(x):
    return torch.where(x < 0, x.clamp(max=0).exp(), x + 1)


def _all(query, key, value):
    q, k = _feature(query), _feature(key)
    where = torch.arange(q.shape[-2], device=q.device)

    def at(i, row):
        w = torch.einsum("...d,...kd->...k", row, k) * torch.heaviside((i - where).to(k.dtype), k.new_ones(()))
        w = w / w.sum(-1, keepdim=True)
        return (w.unsqueeze(-1) * value).sum(-2)

    return vmap(at, in_dims=(0, -2), out_dims=-2)(where, q)


def linear_attention(query, key, value):
    return checkpoint(_all, query, key, value, use_reentrant=False)


# %% linear_attention: unfold of the padded keys and values, one window of the past per query
import torch
import torch.nn.functional as F


def linear_attention(query, key, value):
    past = query.shape[-2] - 1
    q, k = F.elu(query) + 1, F.elu(key) + 1
    keys = F.pad(k, (0, 0, past, 0)).unfold(-2, past + 1, 1)  # (..., L, d_k, window)
    values = F.pad(value, (0, 0, past, 0)).unfold(-2, past + 1, 1)  # (..., L, d_v, window)
    weights = torch.einsum("...id,...idw->...iw", q, keys)
    return torch.einsum("...iw,...ivw->...iv", weights, values) / weights.sum(-1, keepdim=True)


# %% linear_attention: a doubling scan of the states (while-else), float64 inside
import torch


def linear_attention(query, key, value):
    dtype = value.dtype
    query, key, value = query.double(), key.double(), value.double()
    phi = lambda x: torch.where(x > 0, x + 1, x.clamp(max=0).exp())  # noqa: E731
    k = phi(key)
    state = torch.cat([k[..., None] * value[..., None, :], k[..., None]], -1)
    step, n = 1, k.shape[-2]
    while step < n:
        moved = torch.cat([torch.zeros_like(state[..., :step, :, :]), state[..., : n - step, :, :]], -3)
        state, step = state + moved, 2 * step
    else:
        both = (phi(query)[..., None, :] @ state)[..., 0, :]
    return (both[..., :-1] / both[..., -1:]).to(dtype)


# %% convolution_layers: itertools.accumulate and takewhile count the powers below the length
from itertools import accumulate, repeat, takewhile
from operator import mul


def convolution_layers(length, kernel_size, dilated=False):
    if not dilated:
        return -((1 - length) // (kernel_size - 1))
    powers = accumulate(repeat(kernel_size), mul, initial=1)
    return sum(1 for _ in takewhile(lambda power: power < length, powers))


# %% convolution_layers: digits of length - 1 in base k, and a Fraction rounded up
import math
from fractions import Fraction


def _digits(number, base):
    while number:
        number, digit = divmod(number, base)
        yield digit


def convolution_layers(length, kernel_size, dilated=False):
    if dilated:
        return len(list(_digits(length - 1, kernel_size)))
    return math.ceil(Fraction(length - 1, kernel_size - 1))


# %% convolution_layers: the reachable positions as bits of one Python integer
def convolution_layers(length, kernel_size, dilated=False):
    reached, layers, step = 1, 0, 1  # bit n: the output depends on the input n positions earlier
    everything = (1 << length) - 1
    while not reached >> (length - 1) & 1:
        wider = 0
        for tap in range(kernel_size):
            wider |= reached << tap * step
        reached = wider & everything
        layers += 1
        step = kernel_size**layers if dilated else 1
    return layers


# %% convolution_layers: bisection with a key over the candidate numbers of layers
from bisect import bisect_left


def convolution_layers(length, kernel_size, dilated=False):
    def field(n):
        if dilated:
            return kernel_size**n
        return n * (kernel_size - 1) + 1

    most = length.bit_length() + 1 if dilated else length + 1
    return bisect_left(range(most), length, key=field)


# %% convolution_layers: recursion, a dilated network seen from above is a shorter one
def convolution_layers(length, kernel_size, dilated=False):
    if length == 1:
        return 0
    if dilated:
        blocks = length // kernel_size + bool(length % kernel_size)
        return 1 + convolution_layers(blocks, kernel_size, True)
    whole, rest = divmod(length - 1, kernel_size - 1)
    return whole + (rest > 0)


# %% convolution_layers: torch.searchsorted in a tensor of receptive fields
import torch


def convolution_layers(length, kernel_size, dilated=False):
    if dilated:
        fields = [1]
        while fields[-1] < length:
            fields.append(fields[-1] * kernel_size)
        fields = torch.tensor(fields)
    else:
        fields = torch.arange(1, length + kernel_size, kernel_size - 1)
    return torch.searchsorted(fields, torch.tensor(length)).item()


# %% convolution_layers: a pulse at the first position is sent through real convolutions until it arrives
import torch


def convolution_layers(length, kernel_size, dilated=False):
    pulse = torch.zeros(1, 1, length)
    pulse[..., 0] = 1
    ones = torch.ones(1, 1, kernel_size)
    layers = 0
    while not pulse[0, 0, -1]:
        dilation = kernel_size**layers if dilated else 1
        padded = torch.nn.functional.pad(pulse, ((kernel_size - 1) * dilation, 0))
        pulse = torch.nn.functional.conv1d(padded, ones, dilation=dilation).sign()
        layers += 1
    return layers


# %% convolution_layers: match, a walk back from the last position, while-else
def convolution_layers(length, kernel_size, dilated=False):
    position = length - 1
    layers = 0
    match dilated:
        case False:
            stride = lambda n: 1
        case _:
            stride = lambda n: kernel_size**n
    while position > 0:
        position -= (kernel_size - 1) * stride(layers)
        layers += 1
    else:
        return layers


# %% cache_bytes: functools.reduce from the two of keys and values
from functools import reduce
from operator import mul


def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    return reduce(mul, (num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number), 2)


# %% cache_bytes: the size of a meta tensor, never allocated
import torch


def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    shape = (2, num_layers, batch_size, num_kv_heads, length, d_head, bytes_per_number)
    return torch.empty(shape, dtype=torch.uint8, device="meta").nbytes


# %% cache_bytes: multiplication by doubling, bits only
def _times(a, b):
    total = 0
    while b:
        if b & 1:
            total += a
        a <<= 1
        b >>= 1
    return total


def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    size = 1 << 1
    for factor in (num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number):
        size = _times(size, factor)
    return size


# %% cache_bytes: torch.jit.script with integers
import torch


@torch.jit.script
def _scripted(a: int, b: int, c: int, d: int, e: int, f: int) -> int:
    keys = a * b * c * d * e * f
    values = keys
    return keys + values


def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    return _scripted(num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number)


# %% cache_bytes: a lambda of math.prod over a starred list
import math

cache_bytes = lambda num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2: math.prod(
    [*map(len, ["kv"]), num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number]
)
cache_bytes.__name__ = "cache_bytes"


# %% cache_bytes: Decimal with many digits
from decimal import Decimal, localcontext


def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    with localcontext() as context:
        context.prec = 100
        per_token = Decimal(num_layers) * Decimal(num_kv_heads) * Decimal(d_head) * 2
        numbers = per_token * Decimal(length) * Decimal(batch_size)
        return int(numbers * Decimal(bytes_per_number))


# %% cache_bytes: lengths of nested ranges, the last address plus one
def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    sizes = [2, num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number]
    addresses = range(1)
    for size in reversed(sizes):
        addresses = range(len(addresses) * size)
    return len(addresses)


# %% cache_bytes: a dataclass with properties
from dataclasses import dataclass


@dataclass(frozen=True)
class Cache:
    layers: int
    heads: int
    width: int

    @property
    def token(self):
        return sum(self.layers * self.heads * self.width for _ in ("key", "value"))

    def __matmul__(self, tokens):
        return self.token * tokens


def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    return (Cache(num_layers, num_kv_heads, d_head) @ (length * batch_size)) * bytes_per_number


# %% speculative_acceptance: the kept mass over the draft's mass
import torch


def speculative_acceptance(target, draft):
    kept = torch.minimum(target, draft)
    nothing = draft == 0
    accept = torch.where(nothing, torch.ones_like(kept), kept / torch.where(nothing, 1.0, draft))
    left = target - kept
    return accept, left / left.sum(-1, keepdim=True)


# %% speculative_acceptance: custom autograd.Function with a backward of its own
import torch


class Accept(torch.autograd.Function):
    @staticmethod
    def forward(ctx, target, draft):
        below = target < draft
        safe = draft.masked_fill(~below, 1.0)
        rest = (target - draft).masked_fill(target <= draft, 0.0)
        mass = rest.sum(-1, keepdim=True)
        residual = rest / mass
        ctx.save_for_backward(target, safe, below, draft < target, residual, mass)
        return torch.where(below, target / safe, 1.0), residual

    @staticmethod
    def backward(ctx, grad_accept, grad_residual):
        target, safe, below, above, residual, mass = ctx.saved_tensors
        zero = torch.zeros_like(target)
        to_target = torch.where(below, grad_accept / safe, zero)
        to_draft = torch.where(below, -grad_accept * target / safe.square(), zero)
        inner = (grad_residual * residual).sum(-1, keepdim=True)
        to_rest = torch.where(above, (grad_residual - inner) / mass, zero)
        return to_target + to_rest, to_draft - to_rest


def speculative_acceptance(target, draft):
    return Accept.apply(target, draft)


# %% speculative_acceptance: two vmaps, over flattened rows and over tokens
import torch
from torch.func import vmap


def _token(p, q):
    return torch.where(p < q, p / torch.where(p < q, q, torch.ones_like(q)), torch.ones_like(p)), torch.relu(p - q)


def _row(p, q):
    accept, extra = vmap(_token)(p, q)
    return accept, extra / extra.sum()


def speculative_acceptance(target, draft):
    size = target.shape
    accept, residual = vmap(_row)(target.reshape(-1, size[-1]), draft.reshape(-1, size[-1]))
    return accept.reshape(size), residual.reshape(size)


# %% speculative_acceptance: torch.jit.script with masked_fill and float64 inside
import torch


@torch.jit.script
def _both(target: torch.Tensor, draft: torch.Tensor):
    p, q = target.double(), draft.double()
    empty = q == 0.0
    accept = (p / q.masked_fill(empty, 1.0)).masked_fill(empty, 1.0).clamp(max=1.0)
    more = (p - q).clamp(min=0.0)
    residual = more / more.sum(dim=-1, keepdim=True)
    return accept.to(target.dtype), residual.to(target.dtype)


def speculative_acceptance(target, draft):
    return _both(target, draft)


# %% speculative_acceptance: a Python list of tokens and torch.stack
import torch


def speculative_acceptance(target, draft):
    accepts, extras, total = [], [], 0
    for p, q in zip(target.unbind(-1), draft.unbind(-1)):
        drawn = q > 0
        ratio = p / torch.where(drawn, q, torch.ones_like(q))
        accepts.append(torch.where(drawn & (ratio < 1), ratio, torch.ones_like(ratio)))
        extra = torch.where(p > q, p - q, torch.zeros_like(p))
        extras.append(extra)
        total = total + extra
    return torch.stack(accepts, dim=-1), torch.stack([extra / total for extra in extras], dim=-1)


# %% speculative_acceptance: boolean indexing, ratios written into a tensor of ones
import torch


def speculative_acceptance(target, draft):
    where = (target < draft).nonzero(as_tuple=True)
    accept = torch.ones_like(target).index_put(where, target[where] / draft[where])
    missing = (target > draft).nonzero(as_tuple=True)
    gap = torch.zeros_like(target).index_put(missing, target[missing] - draft[missing])
    return accept, torch.einsum("...v,...->...v", gap, gap.sum(-1).reciprocal())


# %% speculative_acceptance: checkpoint and arithmetic with masks of 0 and 1, no where
import torch
from torch.utils.checkpoint import checkpoint


def _compute(target, draft):
    above = (target > draft).to(target.dtype)
    gap = torch.einsum("...v,...v->...v", target - draft, above)
    below = torch.addcmul(target, target, above, value=-1)
    divisor = draft + (draft == 0)
    accept = below / divisor + above + ((draft == 0) & (target == 0))
    return accept, torch.nn.functional.normalize(gap, p=1.0, dim=-1)


def speculative_acceptance(target, draft):
    return checkpoint(_compute, target, draft, use_reentrant=False)


# %% speculative_acceptance: a class with __call__, recursion over halves of the vocabulary, in logs
import torch


class Judge:
    def parts(self, p, q):
        size = p.shape[-1]
        if size > 1:
            left = self.parts(p[..., : size // 2], q[..., : size // 2])
            right = self.parts(p[..., size // 2 :], q[..., size // 2 :])
            return tuple(torch.cat(pair, -1) for pair in zip(left, right))
        low = (p < q) & (p > 0)
        one = torch.ones_like(p)
        ratio = torch.exp(torch.log(torch.where(low, p, one)) - torch.log(torch.where(low, q, one)))
        accept = torch.where((p < q) & (p == 0), p / torch.where(p < q, q, one), ratio)
        return accept, torch.nn.functional.relu(p - q)

    def __call__(self, target, draft):
        accept, gap = self.parts(target, draft)
        return accept, gap / torch.linalg.vector_norm(gap, ord=1, dim=-1, keepdim=True)


def speculative_acceptance(target, draft):
    return Judge()(target, draft)
