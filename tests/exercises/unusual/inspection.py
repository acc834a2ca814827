# %% previous_token_score: the trace of weights times a shift, as an inner product of vectors
import torch


def previous_token_score(weights):
    n = weights.shape[-1]
    shift = torch.diag_embed(weights.new_ones(n - 1), offset=1)
    moved = torch.matmul(weights, shift)  # column j of the result is column j - 1 of the weights
    return torch.diagonal(moved, dim1=-2, dim2=-1).sum(-1).div(n - 1)


# %% previous_token_score: torch.jit.script with a loop
import torch


@torch.jit.script
def _walk(weights: torch.Tensor) -> torch.Tensor:
    length = weights.size(-1)
    total = weights.select(-2, 1).select(-1, 0)
    for i in range(2, length):
        total = total + weights.select(-2, i).select(-1, i - 1)
    return total / (length - 1)


def previous_token_score(weights):
    return _walk(weights)


# %% previous_token_score: as_strided on a contiguous copy of its own
import torch


def previous_token_score(weights):
    own = weights.contiguous().clone(memory_format=torch.contiguous_format)
    n = own.shape[-1]
    *lead, rows, columns = own.stride()
    band = own.as_strided((*own.shape[:-2], n - 1), (*lead, rows + columns), own.storage_offset() + rows)
    return torch.mean(band, dim=-1)


# %% previous_token_score: custom autograd.Function
import torch


class Score(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weights):
        ctx.shape = weights.shape
        return weights.diagonal(-1, -2, -1).mean(-1)

    @staticmethod
    def backward(ctx, grad):
        n = ctx.shape[-1]
        spread = (grad / (n - 1)).unsqueeze(-1).expand(*ctx.shape[:-2], n - 1)
        return torch.diag_embed(spread, offset=-1)


previous_token_score = Score.apply


# %% previous_token_score: recursion, the map loses its last query and key
def _sum_of(weights):
    n = weights.shape[-1]
    if n == 1:
        return weights[..., 0, 0] * 0
    return weights[..., n - 1, n - 2] + _sum_of(weights[..., : n - 1, : n - 1])


def previous_token_score(weights):
    return _sum_of(weights) / (len(range(weights.shape[-1])) - 1)


# %% previous_token_score: nested vmap over queries, each with a one-hot key
import torch
from torch.func import vmap


def previous_token_score(weights):
    n = weights.shape[-1]
    wanted = torch.nn.functional.one_hot(torch.arange(n - 1, device=weights.device), n).to(weights.dtype)
    each = vmap(torch.dot)
    rows = weights[..., 1:, :].reshape(-1, n - 1, n)
    return vmap(lambda one: each(one, wanted).mean())(rows).reshape(weights.shape[:-2])


# %% previous_token_score: nn.Module with a buffer, checkpointed
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Band(nn.Module):
    def __init__(self, length, like):
        super().__init__()
        mask = torch.ones(length, length, dtype=torch.bool).tril(-1).triu(-1)
        self.register_buffer("mask", mask.to(like.device), persistent=False)

    def forward(self, weights):
        return weights.masked_fill(~self.mask, 0).sum((-1, -2)) / self.mask.sum()


def previous_token_score(weights):
    return checkpoint(Band(weights.shape[-1], weights), weights, use_reentrant=False)


# %% previous_token_score: take_along_dim in a generator of queries, math.fsum-like pairs
import torch


def _queries(weights):
    for i, row in enumerate(weights.unbind(-2)):
        if i:
            yield torch.take_along_dim(row, row.new_full((1,) * row.dim(), i - 1, dtype=torch.long), -1)


def previous_token_score(weights):
    found = torch.cat(list(_queries(weights)), -1)
    while found.shape[-1] > 1:
        if found.shape[-1] % 2:
            found = torch.cat((found, torch.zeros_like(found[..., :1])), -1)
        found = found[..., ::2] + found[..., 1::2]
    return found.squeeze(-1) / (weights.shape[-1] - 1)


# %% attention_entropy: minus the derivative of a sum of powers at one
import torch


def attention_entropy(weights):
    present = weights != 0
    logs = torch.log(torch.where(present, weights, 1))
    _, slope = torch.func.jvp(
        lambda power: torch.where(present, torch.exp(power * logs), 0).sum(-1),
        (weights.new_ones(()),),
        (weights.new_ones(()),),
    )
    return -slope


# %% attention_entropy: torch.jit.script, rows one by one
import torch


@torch.jit.script
def _entropies(rows: torch.Tensor) -> torch.Tensor:
    found: list[torch.Tensor] = []
    for i in range(rows.size(0)):
        row = rows[i]
        row = row[row > 0]
        found.append(-(row * row.log()).sum())
    return torch.stack(found)


def attention_entropy(weights):
    return _entropies(weights.reshape(-1, weights.size(-1))).reshape(weights.shape[:-1])


# %% attention_entropy: cross-entropy of each row with itself, through kl_div to the uniform distribution
import math

import torch
import torch.nn.functional as F


def attention_entropy(weights):
    n = weights.shape[-1]
    uniform = torch.full_like(weights, -math.log(n))
    divergence = F.kl_div(uniform, weights, reduction="none").sum(-1)
    return weights.sum(-1) * math.log(n) - divergence


# %% attention_entropy: compiled with the eager backend
import torch


@torch.compile(backend="eager")
def _entropy(w):
    return torch.where(w > 0, -w * torch.log(torch.where(w > 0, w, 1.0)), 0.0).sum(-1)


def attention_entropy(weights):
    return _entropy(weights)


# %% attention_entropy: the grouping property, one key split off after the other
import torch


def attention_entropy(weights):
    def term(p):
        return -torch.xlogy(p, p)

    entropy = torch.zeros_like(weights[..., 0])
    mass = torch.zeros_like(entropy)
    for p in weights.unbind(-1):
        entropy = entropy + term(p)
        mass = mass + p
    return entropy + 0 * mass


# %% attention_entropy: float64 inside, back to the dtype, autocast off
import torch


def attention_entropy(weights):
    with torch.autocast(weights.device.type, enabled=False):
        w = weights.to(torch.float64)
        h = torch.xlogy(w, w).sum(dim=-1).neg()
    return h.to(weights.dtype)


# %% attention_entropy: a sparse tensor of what is present
import torch


def attention_entropy(weights):
    rows = weights.reshape(-1, weights.shape[-1])
    place = torch.nonzero(rows.detach()).T
    value = rows[place[0], place[1]]
    sparse = torch.sparse_coo_tensor(place, value * value.log(), rows.shape)
    return -torch.sparse.sum(sparse, dim=1).to_dense().reshape(weights.shape[:-1])


# %% attention_entropy: base two by frexp's own idea, logarithm of a reciprocal, a callable class
import torch


class Surprise:
    __slots__ = ("zero",)

    def __init__(self, zero=0.0):
        self.zero = zero

    def __call__(self, p):
        inside = p.masked_fill(p.eq(0), 1.0)
        return inside.reciprocal().log().masked_fill(p.eq(0), self.zero)


def attention_entropy(weights, *, surprise=Surprise()):
    return torch.einsum("...j,...j->...", weights, surprise(weights))


# %% attention_between_words: sparse matrices of membership
import torch


def _sparse(words, like, average):
    kept = torch.nonzero(words >= 0).squeeze(-1)
    word = words[kept]
    count = torch.bincount(word)
    value = (1 / count[word]).to(like.dtype) if average else torch.ones_like(word, dtype=like.dtype)
    if average and like.dtype == torch.float64:
        value = 1 / count[word].double()
    return torch.sparse_coo_tensor(torch.stack((word, kept)), value, (len(count), len(words)))


def attention_between_words(weights, query_words, key_words):
    a = _sparse(query_words, weights, True)
    b = _sparse(key_words, weights, False)
    flat = weights.reshape(-1, *weights.shape[-2:])
    maps = [torch.sparse.mm(b, torch.sparse.mm(a, one).T).T for one in flat]
    return torch.stack(maps).reshape(*weights.shape[:-2], a.shape[0], b.shape[0])


# %% attention_between_words: segment_reduce over sorted pieces
import torch


def _segments(x, words, reduce):
    order = torch.argsort(words, stable=True)
    left_out = int((words < 0).sum())
    lengths = torch.bincount(words[words >= 0])
    data = x.index_select(0, order[left_out:])
    return torch.segment_reduce(data.contiguous(), reduce, lengths=lengths, axis=0)


def attention_between_words(weights, query_words, key_words):
    lead = weights.shape[:-2]
    flat = weights.reshape(-1, *weights.shape[-2:])
    by_key = _segments(flat.permute(2, 0, 1), key_words, "sum")  # (key words, n, L_q)
    by_both = _segments(by_key.permute(2, 1, 0), query_words, "mean")  # (query words, n, key words)
    return by_both.transpose(0, 1).reshape(*lead, by_both.shape[0], by_both.shape[2])


# %% attention_between_words: vmap over words with a mask for each
import torch
from torch.func import vmap


def attention_between_words(weights, query_words, key_words):
    q = torch.arange(int(query_words.amax()) + 1, device=weights.device)
    k = torch.arange(int(key_words.amax()) + 1, device=weights.device)

    def pair(a, b):
        rows, columns = query_words == a, key_words == b
        both = rows[:, None] & columns[None, :]
        return torch.where(both, weights, 0.0).sum((-2, -1)) / rows.sum()

    return vmap(vmap(pair, (None, 0), -1), (0, None), -2)(q, k)


# %% attention_between_words: itertools.groupby over sorted places, cat of slices
import itertools

import torch


def _groups(words):
    pairs = sorted((word, place) for place, word in enumerate(words.tolist()) if word >= 0)
    for _, group in itertools.groupby(pairs, key=lambda pair: pair[0]):
        yield [place for _, place in group]


def attention_between_words(weights, query_words, key_words):
    columns = [sum(weights[..., [j]] for j in group) for group in _groups(key_words)]
    w = torch.cat(columns, -1)
    rows = [sum(w[..., [i], :] for i in group) / len(group) for group in _groups(query_words)]
    return torch.cat(rows, -2)


# %% attention_between_words: custom autograd.Function of a bilinear map
import torch


class Bilinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, weights, left, right):
        ctx.save_for_backward(left, right)
        return left.matmul(weights).matmul(right)

    @staticmethod
    def backward(ctx, grad):
        left, right = ctx.saved_tensors
        return left.T.matmul(grad).matmul(right.T), None, None


def attention_between_words(weights, query_words, key_words):
    eye_q = torch.eye(int(query_words.max()) + 2, dtype=weights.dtype, device=weights.device)
    eye_k = torch.eye(int(key_words.max()) + 2, dtype=weights.dtype, device=weights.device)
    left = eye_q[query_words][:, :-1].T  # the last row belongs to −1
    right = eye_k[key_words][:, :-1]
    return Bilinear.apply(weights, left / left.sum(1, keepdim=True), right)


# %% attention_between_words: threads, one per query word
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch


def _row(weights, query_words, key_words, word):
    mine = weights.index_select(-2, (query_words == word).nonzero().flatten())
    mean = mine.sum(-2) / mine.shape[-2]
    slots = key_words + 1
    binned = mean.new_zeros(*mean.shape[:-1], int(slots.max()) + 1)
    return binned.index_add(-1, slots, mean)[..., 1:]


def attention_between_words(weights, query_words, key_words):
    with ThreadPoolExecutor(2) as pool:
        rows = pool.map(partial(_row, weights, query_words, key_words), range(int(query_words.max()) + 1))
        return torch.stack(list(rows), -2)


# %% attention_between_words: einops-like pattern by F.embedding_bag of the transposed map
import torch
import torch.nn.functional as F


def _bags(table, words, mode):
    kept = (words >= 0).nonzero().flatten()
    order = kept[words[kept].argsort(stable=True)]
    count = torch.bincount(words[kept])
    offsets = torch.cat((count.new_zeros(1), count.cumsum(0)[:-1]))
    return F.embedding_bag(order, table, offsets, mode=mode)


def attention_between_words(weights, query_words, key_words):
    flat = weights.reshape(-1, *weights.shape[-2:])
    done = []
    for one in flat.unbind(0):
        to_words = _bags(one.t().contiguous(), key_words, "sum")
        done.append(_bags(to_words.t().contiguous(), query_words, "mean"))
    return torch.stack(done).unflatten(0, weights.shape[:-2]) if weights.dim() > 2 else done[0]


# %% attention_between_words: index_reduce and index_put with accumulate
import torch


def attention_between_words(weights, query_words, key_words):
    keep = torch.meshgrid(query_words >= 0, key_words >= 0, indexing="ij")
    q, k = torch.meshgrid(query_words, key_words, indexing="ij")
    keep = keep[0].logical_and(keep[1])
    moved = weights.movedim((-2, -1), (0, 1))[keep]  # (kept pairs, ...)
    out = weights.new_zeros(int(query_words.max()) + 1, int(key_words.max()) + 1, *weights.shape[:-2])
    out = out.index_put((q[keep], k[keep]), moved, accumulate=True)
    count = torch.unique(query_words[query_words >= 0], return_counts=True)[1]
    out = out / count.reshape(-1, *[1] * (out.dim() - 1))
    return out.movedim((0, 1), (-2, -1))


# %% attention_rollout: the product of all layers by matrix_power of one block matrix
import torch


def attention_rollout(weights):
    layers, batch, _, n, _ = weights.shape
    eye = torch.eye(n, dtype=weights.dtype, device=weights.device)
    mixed = weights.mean(2).add(eye).div(2)
    big = weights.new_zeros(batch, (layers + 1) * n, (layers + 1) * n)
    for l in range(layers):
        big[:, (l + 1) * n : (l + 2) * n, l * n : (l + 1) * n] = mixed[l]
    power = torch.linalg.matrix_power(big, layers)
    return power[:, layers * n :, :n]


# %% attention_rollout: torch.jit.script
import torch


@torch.jit.script
def _roll(weights: torch.Tensor) -> torch.Tensor:
    eye = torch.eye(weights.size(-1), dtype=weights.dtype, device=weights.device)
    out = eye.unsqueeze(0).repeat(weights.size(1), 1, 1)
    for l in range(weights.size(0)):
        out = torch.baddbmm(out, weights[l].mean(dim=1), out, beta=0.5, alpha=0.5)
    return out


def attention_rollout(weights):
    return _roll(weights)


# %% attention_rollout: the Jacobian of a linear model, torch.func
import torch
from torch.func import jacrev, vmap


def attention_rollout(weights):
    def through(x, maps):  # (L,), (num_layers, H, L, L)
        for layer in maps.unbind(0):
            x = 0.5 * x + 0.5 * (layer @ x).mean(0)
        return x

    start = weights.new_zeros(weights.shape[-1])
    return vmap(lambda maps: jacrev(through)(start, maps), in_dims=1)(weights)


# %% attention_rollout: itertools.accumulate, the last of all partial rollouts
from itertools import accumulate

import torch


def attention_rollout(weights):
    half = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device) / 2
    layers = (w.mean(1) / 2 + half for w in weights)
    *_, last = accumulate(layers, lambda below, above: above @ below)
    return last


# %% attention_rollout: all subsets of layers, expanded by the binomial idea
import itertools

import torch


def attention_rollout(weights):
    attention = weights.mean(2)
    layers, batch, n, _ = attention.shape
    eye = torch.eye(n, dtype=weights.dtype, device=weights.device).expand(batch, n, n)
    total = 0
    for chosen in itertools.product((False, True), repeat=layers):
        path = eye
        for l, used in enumerate(chosen):
            if used:
                path = attention[l] @ path
        total = total + path
    return total / 2**layers


# %% attention_rollout: nn.Module per layer in a Sequential, checkpointed
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Layer(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, below):
        return torch.lerp(below, self.attention @ below, 0.5)


def attention_rollout(weights):
    stack = nn.Sequential(*(Layer(w.mean(1)) for w in weights))
    n = weights.shape[-1]
    start = torch.eye(n, dtype=weights.dtype, device=weights.device).repeat(weights.shape[1], 1, 1)
    return checkpoint(stack, start, use_reentrant=False)


# %% attention_rollout: custom autograd.Function of one step, rows as vectors from the top down
import torch


class Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx, above, mean):
        ctx.save_for_backward(above, mean)
        return (above @ mean + above) / 2

    @staticmethod
    def backward(ctx, grad):
        above, mean = ctx.saved_tensors
        return (grad @ mean.mT + grad) / 2, above.mT @ grad / 2


def attention_rollout(weights):
    n = weights.shape[-1]
    result = torch.eye(n, dtype=weights.dtype, device=weights.device).expand(weights.shape[1], n, n)
    for layer in reversed(weights.unbind(0)):
        result = Step.apply(result, layer.mean(-3))
    return result


# %% attention_rollout: one long einsum string made of letters
import string

import torch


def attention_rollout(weights):
    n, layers = weights.shape[-1], weights.shape[0]
    if layers > 40:
        raise ValueError("not enough letters")
    mixed = (weights.mean(2) + torch.eye(n, dtype=weights.dtype, device=weights.device)) / 2
    letters = [c for c in string.ascii_letters if c != "b"][: layers + 1]
    inputs = ",".join(f"b{letters[l]}{letters[l + 1]}" for l in range(layers))
    return torch.einsum(f"{inputs}->b{letters[0]}{letters[layers]}", *mixed.flip(0).unbind(0))


# %% head_switched_off: the Jacobian-free way, jvp of the projection along the kept part
import torch
import torch.nn.functional as F
from torch.func import jvp


def head_switched_off(heads, weight, bias, off):
    def project(x):
        return F.linear(x.transpose(1, 2).flatten(2), weight, bias)

    keep = torch.ones(heads.shape[1], dtype=heads.dtype, device=heads.device)
    keep = keep.index_fill(0, torch.tensor([off], device=heads.device), 0)
    at_zero, along = jvp(project, (torch.zeros_like(heads),), (heads * keep[:, None, None],))
    return at_zero + along


# %% head_switched_off: torch.jit.script over the heads
import torch


@torch.jit.script
def _others(heads: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, off: int) -> torch.Tensor:
    d = heads.size(3)
    out = bias.view(1, 1, -1).expand(heads.size(0), heads.size(2), bias.size(0))
    for h in range(heads.size(1)):
        if h != off:
            out = out + torch.matmul(heads.select(1, h), weight.narrow(1, h * d, d).t())
    return out


def head_switched_off(heads, weight, bias, off):
    return _others(heads, weight, bias, int(off))


# %% head_switched_off: an nn.Linear on meta with parametrised weight and a hook on its input
import torch
from torch import nn


def head_switched_off(heads, weight, bias, off):
    width = heads.shape[1] * heads.shape[3]
    layer = nn.Linear(width, weight.shape[0], device="meta")

    def silence(module, args):
        (x,) = args
        blocks = x.unflatten(-1, (heads.shape[1], -1)).clone()
        blocks[..., off, :] = 0
        return (blocks.flatten(-2),)

    layer.register_forward_pre_hook(silence)
    side_by_side = heads.permute(0, 2, 1, 3).flatten(2)
    return torch.func.functional_call(layer, {"weight": weight, "bias": bias}, (side_by_side,))


# %% head_switched_off: tensordot over heads and features at once
import torch


def head_switched_off(heads, weight, bias, off):
    blocks = weight.unflatten(1, heads.shape[1::2])  # (d_out, H, d_head)
    chosen = [h for h in range(heads.shape[1]) if h != off]
    return torch.tensordot(heads[:, chosen], blocks[:, chosen], dims=([1, 3], [1, 2])) + bias


# %% head_switched_off: a convolution of width one with grouped heads
import torch
import torch.nn.functional as F


def head_switched_off(heads, weight, bias, off):
    x = heads.mT.flatten(1, 2)  # (B, d_model, L)
    gate = (torch.arange(heads.shape[1], device=heads.device) == off).repeat_interleave(heads.shape[-1])
    return F.conv1d(x.masked_fill(gate[:, None], 0), weight.unsqueeze(-1), bias).mT


# %% head_switched_off: scatter with a graph of its own Function
import torch


class Silence(torch.autograd.Function):
    @staticmethod
    def forward(ctx, heads, off):
        ctx.off = off
        out = heads.clone()
        out[:, off].zero_()
        return out

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        grad[:, ctx.off].zero_()
        return grad, None


def head_switched_off(heads, weight, bias, off):
    quiet = Silence.apply(heads, off)
    return torch.cat(quiet.unbind(1), -1).matmul(weight.t()).add(bias)


# %% head_switched_off: float64 inside, the mean over "which head is on" times H
import torch


def head_switched_off(heads, weight, bias, off):
    h64, w64, b64 = (t.double() for t in (heads, weight, bias))
    per_head = torch.stack(
        [one @ block.T for one, block in zip(h64.unbind(1), w64.chunk(heads.shape[1], dim=1), strict=True)]
    )
    on = torch.tensor([h != off for h in range(len(per_head))], dtype=torch.float64)
    return ((per_head * on.view(-1, 1, 1, 1)).mean(0) * len(per_head) + b64).to(heads.dtype)


# %% head_switched_off: compiled with the eager backend, dataclass, match statement
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Block:
    head: torch.Tensor
    columns: torch.Tensor
    state: str

    def adds(self):
        match self.state:
            case "off":
                return 0 * self.head[..., :1]
            case _:
                return self.head @ self.columns.mT


@torch.compile(backend="eager")
def _sum(parts, bias):
    total = bias
    for part in parts:
        total = total + part
    return total


def head_switched_off(heads, weight, bias, off):
    d = heads.shape[-1]
    blocks = [
        Block(heads[:, h], weight[:, h * d : h * d + d], "off" if h == off else "on") for h in range(heads.shape[1])
    ]
    return _sum([block.adds() for block in blocks], bias)
