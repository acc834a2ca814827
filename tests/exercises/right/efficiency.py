# %% convolution_layers: closed formula for plain layers, powers counted for dilated ones
def convolution_layers(length, kernel_size, dilated=False):
    if not dilated:
        return -(-(length - 1) // (kernel_size - 1))
    layers = 0
    while kernel_size**layers < length:
        layers += 1
    return layers


# %% convolution_layers: the receptive field grows layer by layer
def convolution_layers(length: int, kernel_size: int, dilated: bool = False) -> int:
    field, dilation, layers = 1, 1, 0
    while field < length:
        field += (kernel_size - 1) * dilation
        if dilated:
            dilation *= kernel_size
        layers += 1
    return layers


# %% convolution_layers: walks back from the last position, a generator of dilations
import itertools


def dilations(kernel_size, dilated):
    for n in itertools.count():
        yield kernel_size**n if dilated else 1


def convolution_layers(length, kernel_size, dilated=False):
    position = length - 1
    for layer, dilation in enumerate(dilations(kernel_size, dilated)):
        if position <= 0:
            return layer
        position -= (kernel_size - 1) * dilation


# %% convolution_layers: recursion on the length divided by the kernel, math.ceil
import math


def convolution_layers(length, kernel_size, dilated=False):
    if length == 1:
        return 0
    if dilated:
        groups = (length + kernel_size - 1) // kernel_size
        return 1 + convolution_layers(groups, kernel_size, True)
    return math.ceil((length - 1) / (kernel_size - 1))


# %% convolution_layers: bisection over the number of layers
import bisect


def convolution_layers(length, kernel_size, dilated=False):
    def field(layers):
        return kernel_size**layers if dilated else 1 + layers * (kernel_size - 1)

    # after length.bit_length() dilated layers, or length - 1 plain ones, the first position is always reached
    most = length.bit_length() if dilated else length
    return bisect.bisect_left(range(most), length, key=field)


# %% convolution_layers: digits of the distance in base k, divmod, prints
import warnings


def convolution_layers(length, kernel_size, dilated=False):
    distance = length - 1
    if dilated:
        digits = []
        while distance:
            distance, digit = divmod(distance, kernel_size)
            digits.append(digit)
        print("digits:", digits[::-1])
        return len(digits)
    warnings.warn("plain convolutions need many layers")
    full, rest = divmod(distance, kernel_size - 1)
    return full + (rest > 0)


# %% online_softmax_step: textbook, one new maximum and one correction
import torch


def online_softmax_step(maximum, total, output, scores, value):
    new_maximum = torch.maximum(maximum, scores.max(dim=-1).values)
    correction = torch.exp(maximum - new_maximum)
    exps = torch.exp(scores - new_maximum.unsqueeze(-1))
    new_total = correction * total + exps.sum(dim=-1)
    new_output = correction.unsqueeze(-1) * output + torch.matmul(exps, value)
    return new_maximum, new_total, new_output


# %% online_softmax_step: one key after the other
import torch


def online_softmax_step(maximum, total, output, scores, value):
    for j in range(scores.shape[-1]):
        s = scores[..., j]
        top = torch.maximum(maximum, s)
        old, new = torch.exp(maximum - top), torch.exp(s - top)
        total = total * old + new
        output = output * old[..., None] + new[..., None] * value[..., j : j + 1, :]
        maximum = top
    return maximum, total, output


# %% online_softmax_step: the old state is one more column of scores, weighted with its total
import torch


def online_softmax_step(maximum, total, output, scores, value):
    extended = torch.cat((maximum[..., None], scores), dim=-1)
    new_maximum = extended.amax(-1)
    e = (extended - new_maximum[..., None]).exp()
    counts = torch.cat((total[..., None], torch.ones_like(scores)), dim=-1)
    return new_maximum, (e * counts).sum(-1), e[..., :1] * output + e[..., 1:] @ value


# %% online_softmax_step: the block becomes a state of its own, and two states are merged
from typing import NamedTuple

import torch


class State(NamedTuple):
    maximum: torch.Tensor
    total: torch.Tensor
    output: torch.Tensor


def of_block(scores, value):
    top = scores.amax(dim=-1, keepdim=True)
    e = torch.exp(scores - top)
    return State(top.squeeze(-1), e.sum(-1), e @ value)


def merge(a, b):
    top = torch.where(a.maximum > b.maximum, a.maximum, b.maximum)
    wa, wb = (a.maximum - top).exp(), (b.maximum - top).exp()
    return State(
        top,
        wa * a.total + wb * b.total,
        wa.unsqueeze(-1) * a.output + wb.unsqueeze(-1) * b.output,
    )


def online_softmax_step(maximum, total, output, scores, value):
    return merge(State(maximum, total, output), of_block(scores, value))


# %% online_softmax_step: einsum in float64 and back, warns and prints
import warnings

import torch


def online_softmax_step(maximum, total, output, scores, value):
    warnings.warn("casting to double")
    kind = scores.dtype
    m, t, o, s, v = (x.to(torch.float64) for x in (maximum, total, output, scores, value))
    new = torch.stack((m, s.amax(-1))).amax(0)
    old = torch.exp(m - new)
    e = torch.exp(s - new[..., None])
    print("block of", s.shape[-1])
    t = t * old + torch.einsum("...k->...", e)
    o = torch.einsum("...q,...qd->...qd", old, o) + torch.einsum("...qk,...kd->...qd", e, v)
    return new.to(kind), t.to(kind), o.to(kind)


# %% online_softmax_step: logsumexp and softmax of the block, relative to the new maximum
import torch
import torch.nn.functional as F


def online_softmax_step(maximum, total, output, scores, value):
    block_max, _ = torch.max(scores, dim=-1)
    top = torch.max(maximum, block_max)
    block_total = torch.logsumexp(scores - top[..., None], dim=-1).exp()
    block_mean = F.softmax(scores, dim=-1) @ value
    keep = (maximum - top).exp()
    total = torch.addcmul(block_total, total, keep)
    output = torch.addcmul(block_mean * block_total[..., None], output, keep[..., None])
    return top, total, output


# %% tiled_attention: blocks from split, running maximum, total and output
import math

import torch


def tiled_attention(query, key, value, block_size):
    scale = 1 / math.sqrt(query.size(-1))
    maximum = query.new_full(query.shape[:-1] + (1,), -math.inf)
    total = torch.zeros_like(maximum)
    output = query.new_zeros(query.shape[:-1] + value.shape[-1:])
    for k, v in zip(key.split(block_size, dim=-2), value.split(block_size, dim=-2)):
        scores = torch.matmul(query, k.transpose(-2, -1)) * scale
        new_maximum = torch.maximum(maximum, scores.amax(-1, keepdim=True))
        correction = torch.exp(maximum - new_maximum)
        exps = torch.exp(scores - new_maximum)
        total = total * correction + exps.sum(-1, keepdim=True)
        output = output * correction + torch.matmul(exps, v)
        maximum = new_maximum
    return output / total


# %% tiled_attention: recursion, halves the keys until a block is small enough
import torch


def part(query, key, value, block_size):
    n = key.shape[-2]
    if n <= block_size:
        s = query @ key.mT
        top = s.max(-1, keepdim=True).values
        e = torch.exp(s - top)
        return top, e.sum(-1, keepdim=True), e @ value
    half = n // 2
    top_a, total_a, out_a = part(query, key[..., :half, :], value[..., :half, :], block_size)
    top_b, total_b, out_b = part(query, key[..., half:, :], value[..., half:, :], block_size)
    top = torch.maximum(top_a, top_b)
    a, b = torch.exp(top_a - top), torch.exp(top_b - top)
    return top, a * total_a + b * total_b, a * out_a + b * out_b


def tiled_attention(query, key, value, block_size):
    _, total, output = part(query / query.shape[-1] ** 0.5, key, value, block_size)
    return output / total


# %% tiled_attention: padded to whole blocks, padding masked, a loop with einsum
import torch
import torch.nn.functional as F


def tiled_attention(query, key, value, block_size):
    length = key.shape[-2]
    block_size = min(block_size, length)
    missing = -length % block_size
    key = F.pad(key, (0, 0, 0, missing))
    value = F.pad(value, (0, 0, 0, missing))
    real = torch.arange(length + missing, device=key.device) < length
    m = l = acc = None
    for start in range(0, length + missing, block_size):
        block = slice(start, start + block_size)
        s = torch.einsum("...qd,...kd->...qk", query, key[..., block, :]) / query.shape[-1] ** 0.5
        s = s.masked_fill(~real[block], -torch.inf)
        top = s.amax(-1)
        new = top if m is None else torch.maximum(m, top)
        p = torch.exp(s - new[..., None])
        pv = torch.einsum("...qk,...kd->...qd", p, value[..., block, :])
        if m is None:
            l, acc = p.sum(-1), pv
        else:
            c = torch.exp(m - new)
            l, acc = l * c + p.sum(-1), acc * c[..., None] + pv
        m = new
    return acc / l[..., None]


# %% tiled_attention: three passes that compute the scores again: maximum, total, output
import functools
import math

import torch


def tiled_attention(query, key, value, block_size):
    starts = range(0, key.shape[-2], block_size)
    root = math.sqrt(key.shape[-1])

    def scores(start):
        return query @ key[..., start : start + block_size, :].transpose(-1, -2) / root

    tops = (scores(a).amax(dim=-1, keepdim=True) for a in starts)
    top = functools.reduce(torch.maximum, tops).detach()  # the quotient does not depend on it
    total = sum((scores(a) - top).exp().sum(-1, keepdim=True) for a in starts)
    return sum(((scores(a) - top).exp() / total) @ value[..., a : a + block_size, :] for a in starts)


# %% tiled_attention: one query at a time, values with a column of ones
import torch


def tiled_attention(query, key, value, block_size):
    ones = torch.ones_like(value[..., :1])
    extended = torch.cat((value, ones), dim=-1)
    rows = []
    for i in range(query.size(-2)):
        q = query[..., i, :] * query.size(-1) ** -0.5
        best, state = None, 0.0
        first = 0
        while first < key.size(-2):
            k, v = key[..., first : first + block_size, :], extended[..., first : first + block_size, :]
            s = (k * q.unsqueeze(-2)).sum(-1)
            highest = s.amax(-1)
            if best is not None:
                highest = torch.maximum(best, highest)
                state = state * torch.exp(best - highest).unsqueeze(-1)
            state = state + (torch.exp(s - highest.unsqueeze(-1)).unsqueeze(-1) * v).sum(-2)
            best = highest
            first += block_size
        rows.append(state[..., :-1] / state[..., -1:])
    return torch.stack(rows, dim=-2)


# %% tiled_attention: normalised outputs blended with logaddexp, float64 inside, batch flattened
import torch


def tiled_attention(query, key, value, block_size):
    lead = query.shape[:-2]
    q, k, v = (x.double().reshape(-1, *x.shape[-2:]) for x in (query, key, value))
    mean, log_total = None, None
    for j in range(0, k.shape[1], block_size):
        s = torch.bmm(q, k[:, j : j + block_size].permute(0, 2, 1)).div(q.shape[2] ** 0.5)
        block_mean = torch.bmm(s.softmax(2), v[:, j : j + block_size])
        block_log = s.logsumexp(2, keepdim=True)
        if mean is None:
            mean, log_total = block_mean, block_log
        else:
            mean = mean + torch.sigmoid(block_log - log_total) * (block_mean - mean)
            log_total = torch.logaddexp(log_total, block_log)
    return mean.reshape(*lead, *mean.shape[1:]).to(query.dtype)


# %% cache_bytes: one product
def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    return 2 * num_layers * num_kv_heads * d_head * length * batch_size * bytes_per_number


# %% cache_bytes: bytes per token first, named steps
KEYS_AND_VALUES = 2


def bytes_per_token(layers: int, heads: int, width: int, size: int) -> int:
    per_layer = KEYS_AND_VALUES * heads * width * size
    return layers * per_layer


def cache_bytes(
    num_layers: int, num_kv_heads: int, d_head: int, length: int, batch_size: int = 1, bytes_per_number: int = 2
) -> int:
    tokens = batch_size * length
    return tokens * bytes_per_token(num_layers, num_kv_heads, d_head, bytes_per_number)


# %% cache_bytes: math.prod over all arguments, prints
import math
import warnings


def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    shape = (num_layers, batch_size, num_kv_heads, length, d_head)
    numbers = 2 * math.prod(shape)
    print(f"{numbers} numbers")
    warnings.warn("the weights of the model are not counted")
    return numbers * bytes_per_number


# %% cache_bytes: the shapes of tensors on the meta device
import torch


def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    keys = torch.empty((batch_size, num_kv_heads, length, d_head), device="meta")
    values = torch.empty_like(keys)
    return num_layers * (keys.numel() + values.numel()) * bytes_per_number


# %% cache_bytes: reduce over a list of factors
import operator
from functools import reduce


def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    factors = [num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number]
    one_of_the_two = reduce(operator.mul, factors, 1)
    return one_of_the_two + one_of_the_two


# %% cache_bytes: a dataclass with properties, a loop over the layers
from dataclasses import dataclass


@dataclass
class Cache:
    num_layers: int
    num_kv_heads: int
    d_head: int
    length: int
    batch_size: int = 1
    bytes_per_number: int = 2

    @property
    def tensor_bytes(self):
        return self.batch_size * self.num_kv_heads * self.length * self.d_head * self.bytes_per_number

    @property
    def bytes(self):
        total = 0
        for _layer in range(self.num_layers):
            for _tensor in ("key", "value"):
                total += self.tensor_bytes
        return total


def cache_bytes(*args, **kwargs):
    return Cache(*args, **kwargs).bytes


# %% grouped_query_attention: keys and values repeated with repeat_interleave
import math

import torch


def grouped_query_attention(query, key, value):
    repeats = query.size(1) // key.size(1)
    key = key.repeat_interleave(repeats, dim=1)
    value = value.repeat_interleave(repeats, dim=1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
    return torch.matmul(torch.softmax(scores, dim=-1), value)


# %% grouped_query_attention: an axis for the groups, einsum
import torch


def grouped_query_attention(query, key, value):
    B, H, L, d = query.shape
    G = key.shape[1]
    q = query.reshape(B, G, H // G, L, d)
    weights = torch.einsum("bgrqd,bgkd->bgrqk", q, key).mul(d**-0.5).softmax(-1)
    return torch.einsum("bgrqk,bgkd->bgrqd", weights, value).reshape(B, H, L, d)


# %% grouped_query_attention: one query head at a time, softmax by hand
import torch


def attention(q, k, v):
    s = q @ k.mT / k.shape[-1] ** 0.5
    e = torch.exp(s - s.amax(-1, keepdim=True))
    return (e / e.sum(-1, keepdim=True)) @ v


def grouped_query_attention(query, key, value):
    size = query.shape[1] // key.shape[1]
    heads = [attention(query[:, h], key[:, h // size], value[:, h // size]) for h in range(query.shape[1])]
    return torch.stack(heads, dim=1)


# %% grouped_query_attention: the heads of a group become further queries of one head
import torch.nn.functional as F


def grouped_query_attention(query, key, value):
    batch, groups, _, width = key.shape
    folded = query.reshape(batch, groups, -1, width)
    weights = F.softmax(folded @ (key / width**0.5).transpose(2, 3), dim=3)
    return (weights @ value).reshape(query.shape)


# %% grouped_query_attention: PyTorch's attention per group of heads, joined with cat
import torch
from torch.nn.functional import scaled_dot_product_attention


def grouped_query_attention(query, key, value):
    groups = query.chunk(key.size(1), dim=1)
    outputs = []
    for g, q in enumerate(groups):
        k = key[:, g : g + 1].expand(-1, q.size(1), -1, -1)
        v = value[:, g : g + 1].expand(-1, q.size(1), -1, -1)
        outputs.append(scaled_dot_product_attention(q, k, v))
    return torch.cat(outputs, dim=1)


# %% grouped_query_attention: indices of the key heads, float64 inside, warns and prints
import warnings

import torch


def grouped_query_attention(query, key, value):
    warnings.warn("casting to double")
    num_heads, num_groups = query.shape[1], key.shape[1]
    index = torch.arange(num_heads, device=query.device) * num_groups // num_heads
    print("key head of each query head:", index.tolist())
    q, k, v = query.double(), key.double()[:, index], value.double()[:, index]
    logits = (q.unsqueeze(3) * k.unsqueeze(2)).sum(-1) / q.new_tensor(q.shape[-1]).sqrt()
    log_weights = logits - logits.logsumexp(-1, keepdim=True)
    return torch.matmul(log_weights.exp(), v).to(query.dtype)


# %% linear_attention: the whole matrix with a triangular mask
import torch
import torch.nn.functional as F


def linear_attention(query, key, value):
    q, k = F.elu(query) + 1, F.elu(key) + 1
    scores = torch.tril(q @ k.transpose(-2, -1))
    return scores @ value / scores.sum(dim=-1, keepdim=True)


# %% linear_attention: a recurrence with a state per position
import torch
from torch.nn import ELU

elu = ELU()


def linear_attention(query, key, value):
    q, k = elu(query) + 1, elu(key) + 1
    state, norm = 0.0, 0.0
    outputs = []
    for i in range(query.shape[-2]):
        k_i, v_i, q_i = k[..., i, :], value[..., i, :], q[..., i, :]
        state = state + k_i.unsqueeze(-1) * v_i.unsqueeze(-2)
        norm = norm + k_i
        numerator = (q_i.unsqueeze(-2) @ state).squeeze(-2)
        outputs.append(numerator / (q_i * norm).sum(-1, keepdim=True))
    return torch.stack(outputs, dim=-2)


# %% linear_attention: cumsum of the outer products, einsum
import torch


def feature_map(x):
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())


def linear_attention(query, key, value):
    q, k = feature_map(query), feature_map(key)
    kv = torch.einsum("...lk,...lv->...lkv", k, value).cumsum(dim=-3)
    numerator = torch.einsum("...lk,...lkv->...lv", q, kv)
    denominator = torch.einsum("...lk,...lk->...l", q, k.cumsum(dim=-2))
    return numerator / denominator.unsqueeze(-1)


# %% linear_attention: one prefix of the keys per query, weights normalised first
import torch


def linear_attention(query, key, value):
    phi = lambda x: torch.nn.functional.elu(x).add(1)  # noqa: E731
    phi_k = phi(key)
    rows = []
    for i in range(query.size(-2)):
        similarity = (phi_k[..., : i + 1, :] * phi(query[..., i : i + 1, :])).sum(-1)
        weights = similarity / similarity.sum(-1, keepdim=True)
        rows.append((weights.unsqueeze(-1) * value[..., : i + 1, :]).sum(-2))
    return torch.stack(rows, -2)


# %% linear_attention: float64 and einsum inside, a Boolean mask, warns and prints
import warnings

import torch


def linear_attention(query, key, value):
    warnings.warn("casting to double")
    q = torch.relu(query.double()) + torch.exp(query.double().clamp(max=0))
    k = torch.relu(key.double()) + torch.exp(key.double().clamp(max=0))
    position = torch.arange(query.shape[-2], device=query.device)
    future = position[None, :] > position[:, None]
    weights = torch.einsum("...id,...jd->...ij", q, k).masked_fill(future, 0)
    print("weights", tuple(weights.shape))
    weights = weights / torch.einsum("...ij->...i", weights)[..., None]
    return torch.einsum("...ij,...jv->...iv", weights, value.double()).to(value.dtype)


# %% linear_attention: chunks of four with a carried state, values with a column of ones
import torch
import torch.nn.functional as F

CHUNK = 4


def linear_attention(query, key, value):
    q = 1 + F.elu(query)
    k = 1 + F.elu(key)
    v = torch.cat([value, value.new_ones(*value.shape[:-1], 1)], dim=-1)
    carried = value.new_zeros(*value.shape[:-2], key.shape[-1], v.shape[-1])
    parts = []
    for q_c, k_c, v_c in zip(q.split(CHUNK, -2), k.split(CHUNK, -2), v.split(CHUNK, -2)):
        inside = (q_c @ k_c.mT).tril() @ v_c
        parts.append(inside + q_c @ carried)
        carried = carried + k_c.mT @ v_c
    joined = torch.cat(parts, dim=-2)
    return joined[..., :-1] / joined[..., -1:]


# %% speculative_acceptance: a safe denominator, then clamp
import torch


def speculative_acceptance(target, draft):
    possible = draft > 0
    ratio = target / torch.where(possible, draft, torch.ones_like(draft))
    accept = torch.where(possible, ratio.clamp(max=1.0), torch.ones_like(ratio))
    residual = (target - draft).clamp(min=0)
    return accept, residual / residual.sum(dim=-1, keepdim=True)


# %% speculative_acceptance: the smaller probability divided by the draft's, relu
import torch
import torch.nn.functional as F


def speculative_acceptance(target, draft):
    zero = draft == 0
    accept = torch.minimum(target, draft).masked_fill(zero, 1) / draft.masked_fill(zero, 1)
    excess = F.relu(target - draft)
    return accept, F.normalize(excess, p=1, dim=-1, eps=0)


# %% speculative_acceptance: a ratio only where the target is the smaller one
import torch


def speculative_acceptance(target, draft):
    less = target < draft  # so draft is positive there
    accept = torch.ones_like(target)
    accept = torch.where(less, target / draft.where(less, accept), accept)
    difference = torch.where(less, torch.zeros_like(target), target - draft)
    residual = difference / torch.einsum("...v->...", difference).unsqueeze(-1)
    return accept, residual


# %% speculative_acceptance: loops over the tokens of the vocabulary
import torch


def speculative_acceptance(target, draft):
    kept, left = [], []
    for p, q in zip(target.unbind(-1), draft.unbind(-1)):
        one = torch.ones_like(p)
        ratio = p / torch.where(q == 0, one, q)
        kept.append(torch.where((q == 0) | (ratio > 1), one, ratio))
        left.append(torch.maximum(p - q, torch.zeros_like(p)))
    norm = sum(left)
    return torch.stack(kept, -1), torch.stack([r / norm for r in left], -1)


# %% speculative_acceptance: rows flattened, Boolean indexing, float64 inside, prints
import warnings

import torch


def speculative_acceptance(target, draft):
    warnings.warn("casting to double")
    p, q = target.to(torch.float64).flatten(), draft.to(torch.float64).flatten()
    can_be_drawn = q.nonzero().squeeze(-1)
    accept = torch.ones_like(p)
    accept = accept.index_copy(0, can_be_drawn, (p[can_be_drawn] / q[can_be_drawn]).clamp_max(1))
    print(len(can_be_drawn), "tokens can be drawn")
    over = torch.relu(p - q).reshape(target.shape)
    residual = over / over.sum(-1, keepdim=True)
    return accept.reshape(target.shape).to(target.dtype), residual.to(target.dtype)


# %% speculative_acceptance: what both models share is removed from the target, a namedtuple
from collections import namedtuple

import torch

Decision = namedtuple("Decision", "accept residual")


def speculative_acceptance(target, draft):
    shared = torch.where(target < draft, target, draft)
    never_drafted = draft.eq(0).to(draft.dtype)
    accept = (shared + never_drafted) / (draft + never_drafted)
    rest = target - shared
    return Decision(accept, rest / rest.sum(-1, keepdim=True))
