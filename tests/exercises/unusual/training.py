# %% teacher_forcing_pair: two slices
def teacher_forcing_pair(tokens):
    return tokens[:, :-1], tokens[:, 1:]

# %% teacher_forcing_pair: narrow and clone
def teacher_forcing_pair(tokens):
    n = tokens.size(1) - 1
    return tokens.narrow(1, 0, n).clone(), tokens.narrow(1, 1, n).clone()

# %% teacher_forcing_pair: two windows by unfold, unbind
def teacher_forcing_pair(tokens):
    windows = tokens.unfold(1, tokens.shape[1] - 1, 1)
    inputs, targets = windows.unbind(1)
    return inputs, targets

# %% teacher_forcing_pair: roll and drop
import torch


def teacher_forcing_pair(tokens):
    rolled = torch.roll(tokens, shifts=-1, dims=1)
    return tokens[..., : tokens.shape[1] - 1].contiguous(), rolled[..., : tokens.shape[1] - 1].contiguous()

# %% teacher_forcing_pair: gather with two index ranges
import torch


def teacher_forcing_pair(tokens):
    b, l = tokens.shape
    at = torch.arange(l - 1, device=tokens.device).expand(b, -1)
    return torch.gather(tokens, 1, at), torch.gather(tokens, 1, at + 1)

# %% teacher_forcing_pair: namedtuple, itertools pairwise over the columns
from collections import namedtuple
from itertools import pairwise
import torch

Pair = namedtuple("Pair", ["inputs", "targets"])


def teacher_forcing_pair(tokens):
    none = tokens[:, :0]
    steps = list(pairwise(tokens.split(1, dim=1)))
    first, second = ([pair[k] for pair in steps] for k in (0, 1))
    return Pair(torch.cat([none, *first], 1), torch.cat([none, *second], 1))

# %% teacher_forcing_pair: scripted
import torch
from typing import Tuple


@torch.jit.script
def teacher_forcing_pair(tokens: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    n = tokens.size(1)
    return tokens[:, 0:n - 1], tokens[:, 1:n]

# %% teacher_forcing_pair: numpy copies
import numpy as np
import torch


def teacher_forcing_pair(tokens):
    a = tokens.cpu().numpy()
    both = (np.delete(a, -1, axis=1), np.delete(a, 0, axis=1))
    return tuple(torch.from_numpy(x.copy()).to(tokens.device) for x in both)

# %% teacher_forcing_pair: vmap, tensor_split
import torch
from torch.func import vmap


def teacher_forcing_pair(tokens):
    def one(row):
        head, _ = row.tensor_split([row.shape[0] - 1])
        _, tail = row.tensor_split([1])
        return head, tail

    return vmap(one)(tokens)

# %% teacher_forcing_pair: boolean column masks
import torch


def teacher_forcing_pair(tokens):
    col = torch.arange(tokens.shape[1])
    return tokens[:, col < col.max()], tokens[:, col > 0]

# %% label_smoothing_loss: log_softmax, gather on the kept rows
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    keep = targets != pad_id
    logp = torch.log_softmax(logits[keep], dim=-1)
    nll = -logp.gather(1, targets[keep].unsqueeze(1)).squeeze(1)
    return ((1 - smoothing) * nll - smoothing * logp.mean(-1)).mean()

# %% label_smoothing_loss: dense target distribution and einsum
import torch
import torch.nn.functional as F


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    v = logits.shape[-1]
    keep = targets.ne(pad_id)
    z, t = logits[keep], targets[keep]
    q = F.one_hot(t, v).to(z.dtype).mul(1 - smoothing).add(smoothing / v)
    shifted = z - z.amax(-1, keepdim=True).detach()
    logp = shifted - shifted.exp().sum(-1, keepdim=True).log()
    return -torch.einsum("nv,nv->", q, logp) / len(t)

# %% label_smoothing_loss: explicit loop over tokens
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    total, count = torch.zeros((), dtype=logits.dtype, device=logits.device), 0
    for row, t in zip(logits, targets.tolist()):
        if t == pad_id:
            continue
        top = row.max().detach()
        lse = top + torch.log(torch.exp(row - top).sum())
        total = total + lse - (1 - smoothing) * row[t] - smoothing * row.mean()
        count += 1
    return total / count

# %% label_smoothing_loss: KL divergence plus entropy
import math
import torch
import torch.nn.functional as F


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    v = logits.size(1)
    rows = torch.nonzero(targets != pad_id).squeeze(1)
    logp = F.log_softmax(logits.index_select(0, rows), 1)
    q = torch.full_like(logp, smoothing / v).scatter_add(
        1, targets[rows].view(-1, 1), torch.full((len(rows), 1), 1.0 - smoothing, dtype=logp.dtype))
    entropy = -torch.xlogy(q, q).sum(1)
    kl = F.kl_div(logp, q, reduction="none").sum(1)
    return (kl + entropy).mean()

# %% label_smoothing_loss: custom Function, gradient softmax minus target
import torch


class SmoothLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, targets, smoothing, pad_id):
        keep = targets != pad_id
        safe = torch.where(keep, targets, 0)
        q = torch.full_like(logits, smoothing / logits.shape[1])
        q[torch.arange(len(safe)), safe] += 1 - smoothing
        logp = torch.log_softmax(logits, 1)
        n = keep.sum()
        ctx.save_for_backward(logp, q, keep, n)
        return -((q * logp).sum(1) * keep).sum() / n

    @staticmethod
    def backward(ctx, g):
        logp, q, keep, n = ctx.saved_tensors
        return g * (logp.exp() - q) * keep.unsqueeze(1) / n, None, None, None


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    return SmoothLoss.apply(logits, targets, smoothing, pad_id)

# %% label_smoothing_loss: vmap over tokens with weights zero on padding
import torch
from torch.func import vmap


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    v = logits.shape[-1]
    classes = torch.arange(v, device=logits.device)

    def one(row, t):
        z = row - row.amax(0)
        lse = torch.logsumexp(z, 0)
        picked = torch.where(classes == t, z, 0).sum()
        loss = lse - (1 - smoothing) * picked - smoothing * z.sum() / v
        return torch.where(t == pad_id, 0, loss)

    return vmap(one)(logits, targets).sum() / (targets != pad_id).sum()

# %% label_smoothing_loss: scripted
import torch


@torch.jit.script
def label_smoothing_loss(logits: torch.Tensor, targets: torch.Tensor, smoothing: float, pad_id: int) -> torch.Tensor:
    keep = targets != pad_id
    z = logits[keep]
    t = targets[keep]
    logp = torch.log_softmax(z, dim=1)
    picked = logp.gather(1, t.unsqueeze(1)).sum()
    uniform = logp.sum() / logits.size(1)
    return -(picked * (1.0 - smoothing) + uniform * smoothing) / t.numel()

# %% label_smoothing_loss: float64 inside, checkpointed
import torch
from torch.utils.checkpoint import checkpoint


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    def body(x):
        x = x.double()
        x = x - x.max(dim=1, keepdim=True).values
        logp = x - x.logsumexp(1, keepdim=True)
        ok = targets.not_equal(pad_id)
        nll = -logp[ok, targets[ok]]
        return (nll * (1 - smoothing) - logp[ok].mean(1) * smoothing).mean()

    return checkpoint(body, logits, use_reentrant=False).to(logits.dtype)

# %% label_smoothing_loss: nll_loss and a masked mean, two terms
import torch
import torch.nn.functional as F


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    logp = F.log_softmax(logits, dim=-1)
    nll = F.nll_loss(logp, targets, ignore_index=pad_id)
    keep = (targets != pad_id).to(logits.dtype)
    flat = -(logp.mean(-1) * keep).sum() / keep.sum()
    return torch.lerp(nll, flat, smoothing)

# %% label_smoothing_loss: odds against the target, logaddexp reduced over classes
import functools
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    keep = targets != pad_id
    z, t = logits[keep], targets[keep]
    z = z - z.amax(1, keepdim=True).detach()
    lse = functools.reduce(torch.logaddexp, z.unbind(1))
    target_logit = torch.take_along_dim(z, t[:, None], dim=1)[:, 0]
    losses = lse - torch.add((1 - smoothing) * target_logit, z.mean(1), alpha=smoothing)
    return losses.mean()

# %% label_smoothing_loss: nn.Module, sparse targets
import torch
from torch import nn


class Loss(nn.Module):
    def __init__(self, smoothing, pad_id):
        super().__init__()
        self.smoothing, self.pad_id = smoothing, pad_id

    def forward(self, logits, targets):
        n, v = logits.shape
        rows = torch.where(targets != self.pad_id)[0]
        idx = torch.stack((rows, targets[rows]))
        hot = torch.sparse_coo_tensor(idx, torch.ones(len(rows), dtype=logits.dtype), (n, v)).to_dense()
        q = hot * (1 - self.smoothing) + hot.sum(1, keepdim=True) * (self.smoothing / v)
        return -(q * torch.log_softmax(logits, 1)).sum() / len(rows)


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    return Loss(smoothing, pad_id)(logits, targets)

# %% label_smoothing_loss: compiled eagerly core on the kept rows
import torch


@torch.compile(backend="eager", dynamic=True)
def _core(z, t, s: float):
    logp = torch.log_softmax(z, -1)
    return -(1 - s) * logp.gather(-1, t[:, None]).mean() - s * logp.mean()


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    keep = targets != pad_id
    return _core(logits[keep], targets[keep], float(smoothing))

# %% warmup_rate: the formula
def warmup_rate(step, d_model, warmup_steps):
    return d_model ** -0.5 * min(step ** -0.5, step * warmup_steps ** -1.5)

# %% warmup_rate: two branches
from math import sqrt


def warmup_rate(step, d_model, warmup_steps):
    if step < warmup_steps:
        return step / (sqrt(d_model) * warmup_steps * sqrt(warmup_steps))
    return 1 / sqrt(d_model * step)

# %% warmup_rate: logarithms
import math


def warmup_rate(step, d_model, warmup_steps):
    up = math.log(step) - 1.5 * math.log(warmup_steps)
    down = -0.5 * math.log(step)
    return math.exp(-0.5 * math.log(d_model) + min(up, down))

# %% warmup_rate: Decimal
from decimal import Decimal, localcontext


def warmup_rate(step, d_model, warmup_steps):
    with localcontext() as ctx:
        ctx.prec = 40
        s, d, w = Decimal(step), Decimal(d_model), Decimal(warmup_steps)
        return float(min(1 / s.sqrt(), s / (w * w.sqrt())) / d.sqrt())

# %% warmup_rate: numpy minimum in float64
import numpy as np


def warmup_rate(step, d_model, warmup_steps):
    s = np.float64(step)
    return float(np.minimum(np.power(s, -0.5), s * np.power(float(warmup_steps), -1.5)) * np.power(float(d_model), -0.5))

# %% warmup_rate: torch float64, item
import torch


def warmup_rate(step, d_model, warmup_steps):
    s, d, w = torch.tensor([step, d_model, warmup_steps], dtype=torch.float64)
    return torch.mul(d.rsqrt(), torch.minimum(s.rsqrt(), s * w.pow(-1.5))).item()

# %% warmup_rate: peak rate times a relative shape
from dataclasses import dataclass


@dataclass
class Schedule:
    d_model: int
    warmup: int

    @property
    def peak(self) -> float:
        return (self.d_model * self.warmup) ** -0.5

    def __call__(self, step) -> float:
        r = step / self.warmup
        return self.peak * (r if r <= 1 else r ** -0.5)


def warmup_rate(step, d_model, warmup_steps):
    return Schedule(d_model, warmup_steps)(step)

# %% warmup_rate: scripted floats
import torch


@torch.jit.script
def _rate(step: float, d_model: float, warmup: float) -> float:
    return d_model ** -0.5 * min(step ** -0.5, step * warmup ** -1.5)


def warmup_rate(step, d_model, warmup_steps):
    return _rate(float(step), float(d_model), float(warmup_steps))

# %% warmup_rate: Fraction under one square root
import math
from fractions import Fraction


def warmup_rate(step, d_model, warmup_steps):
    square = min(Fraction(1, step), Fraction(step ** 2, warmup_steps ** 3)) / d_model
    return math.sqrt(square)

# %% warmup_rate: match with guards, lru_cache
from functools import lru_cache


@lru_cache(maxsize=1024)
def warmup_rate(step, d_model, warmup_steps):
    match step:
        case early if early <= warmup_steps:
            factor = early * warmup_steps ** -1.5
        case late:
            factor = late ** -0.5
    return factor / d_model ** 0.5

# %% token_batches: greedy over sorted indices
def token_batches(lengths, max_tokens):
    if any(n > max_tokens for n in lengths):
        raise ValueError("a sequence is longer than max_tokens")
    batches, current = [], []
    for i in sorted(range(len(lengths)), key=lengths.__getitem__):
        if current and (len(current) + 1) * lengths[i] > max_tokens:
            batches.append(current)
            current = []
        current.append(i)
    if current:
        batches.append(current)
    return batches

# %% token_batches: dynamic programme, fewest batches then least padding
def token_batches(lengths, max_tokens):
    if lengths and max(lengths) > max_tokens:
        raise ValueError("too long")
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    best = [(0, 0, 0)]
    for end in range(1, len(order) + 1):
        longest, padding, choice = lengths[order[end - 1]], 0, None
        for start in range(end - 1, -1, -1):
            if (end - start) * longest > max_tokens:
                break
            padding += longest - lengths[order[start]]
            candidate = (best[start][0] + 1, best[start][1] + padding, start)
            if choice is None or candidate < choice:
                choice = candidate
        best.append(choice)
    out, end = [], len(order)
    while end:
        start = best[end][2]
        out.append(order[start:end])
        end = start
    return out[::-1]

# %% token_batches: recursion, longest feasible prefix
def token_batches(lengths, max_tokens):
    for n in lengths:
        if n > max_tokens:
            raise ValueError(n)
    order = [i for _, i in sorted(zip(lengths, range(len(lengths))))]

    def split(rest):
        if not rest:
            return []
        size = 1
        while size < len(rest) and (size + 1) * lengths[rest[size]] <= max_tokens:
            size += 1
        return [rest[:size]] + split(rest[size:])

    return split(order)

# %% token_batches: generator with list
def _stream(lengths, max_tokens):
    batch = []
    for n, i in sorted((n, i) for i, n in enumerate(lengths)):
        if n * (len(batch) + 1) > max_tokens and batch:
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch


def token_batches(lengths, max_tokens):
    if max(lengths, default=0) > max_tokens:
        raise ValueError("max_tokens is too small")
    return list(_stream(lengths, max_tokens))

# %% token_batches: torch sort and tensor_split
import torch


def token_batches(lengths, max_tokens):
    t = torch.tensor(list(lengths), dtype=torch.int64)
    if t.gt(max_tokens).any():
        raise ValueError("longer than max_tokens")
    values, order = torch.sort(t, stable=True)
    cuts, start = [], 0
    for k, n in enumerate(values.tolist()):
        if (k - start + 1) * n > max_tokens and k > start:
            cuts.append(k)
            start = k
    if not len(t):
        return []
    return [part.tolist() for part in order.tensor_split(cuts)]

# %% token_batches: numpy argsort, np.split
import numpy as np


def token_batches(lengths, max_tokens):
    a = np.asarray(lengths, dtype=np.int64)
    if a.size == 0:
        return []
    if a.max() > max_tokens:
        raise ValueError(int(a.max()))
    order = np.argsort(a, kind="stable")
    cuts = []
    start = 0
    while start < len(order):
        sizes = np.arange(1, len(order) - start + 1)
        fits = sizes * a[order[start:]] <= max_tokens
        stop = len(order) if fits.all() else start + int(np.argmin(fits))
        cuts.append(stop)
        start = stop
    return [piece.tolist() for piece in np.split(order, cuts[:-1])]

# %% token_batches: functools.reduce over the ordered indices
from functools import reduce


def token_batches(lengths, max_tokens):
    if [n for n in lengths if n > max_tokens]:
        raise ValueError("length over max_tokens")

    def put(batches, i):
        if batches and (len(batches[-1]) + 1) * lengths[i] <= max_tokens:
            return [*batches[:-1], [*batches[-1], i]]
        return [*batches, [i]]

    return reduce(put, sorted(range(len(lengths)), key=lambda i: (lengths[i], i)), [])

# %% token_batches: heap and a Batch dataclass
import heapq
from dataclasses import dataclass, field


@dataclass
class Batch:
    limit: int
    longest: int = 0
    items: list[int] = field(default_factory=list)

    def takes(self, n: int) -> bool:
        return not self.items or (len(self.items) + 1) * max(self.longest, n) <= self.limit

    def add(self, n: int, i: int) -> None:
        self.items.append(i)
        self.longest = max(self.longest, n)


def token_batches(lengths, max_tokens):
    heap = []
    for i, n in enumerate(lengths):
        if n > max_tokens:
            raise ValueError(f"length {n} of sequence {i}")
        heapq.heappush(heap, (n, i))
    batches = []
    while heap:
        n, i = heapq.heappop(heap)
        if not batches or not batches[-1].takes(n):
            batches.append(Batch(max_tokens))
        batches[-1].add(n, i)
    return [b.items for b in batches]

# %% token_batches: buckets of equal length, then runs
from collections import defaultdict, deque


def token_batches(lengths, max_tokens):
    buckets = defaultdict(deque)
    for i, n in enumerate(lengths):
        if n > max_tokens:
            raise ValueError("no batch can hold it")
        buckets[n].append(i)
    out, open_batch = [], []
    for n in sorted(buckets):
        queue = buckets[n]
        while queue:
            room = (max_tokens // n if n else len(lengths)) - len(open_batch)
            if room <= 0:
                out.append(open_batch)
                open_batch = []
                continue
            for _ in range(min(room, len(queue))):
                open_batch.append(queue.popleft())
    return out + ([open_batch] if open_batch else [])

# %% token_batches: itertools groupby with a stateful key
from itertools import groupby


class Key:
    def __init__(self, lengths, limit):
        self.lengths, self.limit, self.group, self.size = lengths, limit, 0, 0

    def __call__(self, i):
        if self.size and (self.size + 1) * self.lengths[i] > self.limit:
            self.group += 1
            self.size = 0
        self.size += 1
        return self.group


def token_batches(lengths, max_tokens):
    if not all(n <= max_tokens for n in lengths):
        raise ValueError("over the limit")
    order = sorted(range(len(lengths)), key=lambda i: lengths[i])
    return [list(g) for _, g in groupby(order, key=Key(lengths, max_tokens))]

# %% teacher_forcing_pair: generator of the two halves, lru_cache of slices
from functools import lru_cache


@lru_cache(maxsize=2)
def _cut(k):
    return slice(k, None) if k else slice(None, -1)


def teacher_forcing_pair(tokens):
    def halves():
        yield tokens[:, _cut(0)]
        yield tokens[:, _cut(1)]

    return tuple(halves())

# %% label_smoothing_loss: uniform part from the zero-frequency FFT bin
import torch


def label_smoothing_loss(logits, targets, smoothing, pad_id):
    keep = (targets != pad_id).nonzero()[:, 0]
    z = logits[keep].double()
    z = z - z.amax(1, keepdim=True).detach()
    lse = torch.logsumexp(z, 1)
    uniform = torch.fft.fft(z, dim=1)[:, 0].real / z.shape[1]
    hit = z.gather(1, targets[keep, None])[:, 0]
    return (lse - (1 - smoothing) * hit - smoothing * uniform).mean().to(logits.dtype)

# %% label_smoothing_loss: threads over the rows, compiler.disable
from concurrent.futures import ThreadPoolExecutor
import torch


@torch.compiler.disable
def label_smoothing_loss(logits, targets, smoothing, pad_id):
    on = torch.is_grad_enabled()

    def one(args):
        row, t = args
        with torch.set_grad_enabled(on):
            logp = torch.log_softmax(row, 0)
            return -(1 - smoothing) * logp[t] - smoothing * logp.mean()

    pairs = [(row, t) for row, t in zip(logits, targets.tolist()) if t != pad_id]
    with ThreadPoolExecutor(2) as pool:
        return torch.stack(list(pool.map(one, pairs))).mean()

# %% warmup_rate: singledispatch, star import of fractions and math
from fractions import *
from functools import singledispatch
from math import *


@singledispatch
def _root(x):
    return sqrt(x)


@_root.register
def _(x: Fraction):
    return sqrt(x.numerator) / sqrt(x.denominator)


def warmup_rate(step, d_model, warmup_steps):
    return _root(Fraction(1, d_model) * min(Fraction(1, step), Fraction(step * step, warmup_steps ** 3)))

# %% warmup_rate: default dtype switched and restored, 0-d tensors
import torch


def warmup_rate(step, d_model, warmup_steps):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        s, d, w = (torch.tensor(float(v)) for v in (step, d_model, warmup_steps))
        return float(torch.where(s < w, s / w.pow(1.5), s.rsqrt()) * d.rsqrt())
    finally:
        torch.set_default_dtype(before)

# %% token_batches: namedtuple items, partial key, helpers after use
from __future__ import annotations
from collections import namedtuple
from functools import partial

Item = namedtuple("Item", "length index")


def token_batches(lengths: list[int], max_tokens: int) -> list[list[int]]:
    items = sorted(map(Item._make, zip(lengths, range(len(lengths)))))
    if items and items[-1].length > max_tokens:
        raise ValueError(f"{items[-1].length} > {max_tokens}")
    fits = partial(_fits, limit=max_tokens)
    out: list[list[int]] = []
    while items:
        k = 1
        while k < len(items) and fits(items[: k + 1]):
            k += 1
        head, items = items[:k], items[k:]
        out.append([item.index for item in head])
    return out


def _fits(batch, limit):
    return len(batch) * batch[-1].length <= limit

# %% warmup_rate: geometric mean from the statistics module
from statistics import geometric_mean


def warmup_rate(step, d_model, warmup_steps):
    return geometric_mean([1 / d_model, min(1 / step, step ** 2 / warmup_steps ** 3)])

# %% teacher_forcing_pair: operator.itemgetter inside a lambda
from operator import itemgetter

_halves = itemgetter((slice(None), slice(None, -1)), (slice(None), slice(1, None)))
teacher_forcing_pair = lambda tokens: _halves(tokens)  # noqa: E731

# %% token_batches: binary search for the end of each batch
def token_batches(lengths, max_tokens):
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    if order and lengths[order[-1]] > max_tokens:
        raise ValueError("length over max_tokens")
    out, start = [], 0
    while start < len(order):
        low, high = start + 1, len(order)
        while low < high:
            mid = (low + high + 1) // 2
            if (mid - start) * lengths[order[mid - 1]] <= max_tokens:
                low = mid
            else:
                high = mid - 1
        out.append(order[start:low])
        start = low
    return out
