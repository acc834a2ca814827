# %% scaled_dot_product_attention: textbook, minus infinity where masked
import math

import torch


def scaled_dot_product_attention(query, key, value, mask=None):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    weights = scores.softmax(dim=-1)
    return torch.matmul(weights, value), weights


# %% scaled_dot_product_attention: loops over queries and keys
import torch


def scaled_dot_product_attention(query, key, value, mask=None):
    len_q, len_k, d_k = query.shape[-2], key.shape[-2], key.shape[-1]
    shape = query.shape[:-1] + (len_k,)
    allowed = query.new_ones(shape, dtype=torch.bool) if mask is None else mask.expand(shape)
    outputs, all_weights = [], []
    for i in range(len_q):
        s = torch.stack([(query[..., i, :] * key[..., j, :]).sum(-1) / d_k**0.5 for j in range(len_k)], -1)
        s = torch.where(allowed[..., i, :], s, -torch.inf)
        e = torch.exp(s - s.max(-1, keepdim=True).values)
        w = e / e.sum(-1, keepdim=True)
        outputs.append(sum(w[..., j : j + 1] * value[..., j, :] for j in range(len_k)))
        all_weights.append(w)
    return torch.stack(outputs, dim=-2), torch.stack(all_weights, dim=-2)


# %% scaled_dot_product_attention: einsum, the logarithm of the mask added
import torch
from torch import einsum


def scaled_dot_product_attention(query, key, value, mask=None):
    scores = einsum("...qd,...kd->...qk", query, key) * query.shape[-1] ** -0.5
    if mask is not None:
        scores = scores + mask.to(scores.dtype).log()
    weights = torch.softmax(scores, -1)
    output = einsum("...qk,...kd->...qd", weights, value)
    return output, weights


# %% scaled_dot_product_attention: float64 inside, a very low number, warns and prints
import warnings

import torch

LOW = torch.finfo(torch.float64).min


def scaled_dot_product_attention(query, key, value, mask=None):
    warnings.warn("casting to double", UserWarning)
    q, k, v = query.double(), key.double(), value.double()
    scores = (q / q.shape[-1] ** 0.5) @ k.mT
    if mask is not None:
        print("mask", mask.shape)
        scores = torch.where(mask, scores, torch.full_like(scores, LOW))
    w = torch.softmax(scores, -1)
    return (w @ v).to(query.dtype), w.to(query.dtype)


# %% scaled_dot_product_attention: normalised last, value with a column of ones
import torch


def scaled_dot_product_attention(query, key, value, mask=None):
    root = query.new_tensor(float(key.size(-1))).sqrt()
    s = query @ (key / root).transpose(-1, -2)
    if mask is not None:
        s = s.masked_fill(mask.logical_not(), -1e30)
    e = torch.exp(s - s.detach().amax(-1, keepdim=True))
    extended = e @ torch.cat((value, value.new_ones(value.shape[:-1] + (1,))), -1)
    norm = extended.narrow(-1, value.size(-1), 1)
    return extended.narrow(-1, 0, value.size(-1)) / norm, e / norm


# %% scaled_dot_product_attention: a module with a mixin, instance under the name
from torch import nn


class ScaleMixin:
    def scaled(self, x):
        return x.div(x.shape[-1] ** 0.25)


class Attention(ScaleMixin, nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.softmax = nn.Softmax(**options)

    def forward(self, query, key, value, mask=None):
        scores = self.scaled(query) @ self.scaled(key).swapaxes(-1, -2)
        if mask is not None:
            scores = scores.masked_fill(~mask, -float("inf"))
        return (weights := self.softmax(scores)) @ value, weights


scaled_dot_product_attention = Attention(dim=-1)


# %% scaled_dot_product_attention: batch flattened, bmm, decorated with functools.wraps
import functools
import math

import torch


def flatten_batch(function):
    @functools.wraps(function)
    def wrapper(query, key, value, mask=None):
        lead = query.shape[:-2]
        q, k, v = (t.reshape(-1, *t.shape[-2:]) for t in (query, key, value))
        if mask is not None:
            mask = mask.broadcast_to(*query.shape[:-1], key.shape[-2]).reshape(-1, q.shape[1], k.shape[1])
        output, weights = function(q, k, v, mask)
        return output.reshape(lead + output.shape[1:]), weights.reshape(lead + weights.shape[1:])

    return wrapper


@flatten_batch
def scaled_dot_product_attention(q, k, v, mask):
    s = torch.bmm(q, k.permute(0, 2, 1)).mul(1.0 / math.sqrt(q.shape[2]))
    if mask is not None:
        # the largest *allowed* score
        top = s.masked_fill(~mask, -math.inf).amax(2, keepdim=True)
        e = torch.where(mask, s - top, torch.zeros_like(s)).exp() * mask
    else:
        e = torch.exp(s - s.amax(2, keepdim=True))
    w = e / e.sum(2, keepdim=True)
    return torch.bmm(w, v), w


# %% softmax_backward: formula in one line, a lambda
softmax_backward = lambda weights, grad_weights: (  # noqa: E731
    weights * (grad_weights - (weights * grad_weights).sum(dim=-1, keepdim=True))
)


# %% softmax_backward: the whole Jacobian, diag minus outer product
import torch


def softmax_backward(weights, grad_weights):
    jacobian = torch.diag_embed(weights) - weights.unsqueeze(-1) * weights.unsqueeze(-2)
    return (jacobian @ grad_weights.unsqueeze(-1)).squeeze(-1)


# %% softmax_backward: Python loops over both indices
import torch


def softmax_backward(weights, grad_weights):
    n = weights.shape[-1]
    result = []
    for j in range(n):
        total = 0
        for i in range(n):
            delta = 1.0 if i == j else 0.0
            total = total + grad_weights[..., i] * weights[..., i] * (delta - weights[..., j])
        result.append(total)
    return torch.stack(result, dim=-1)


# %% softmax_backward: einsum in float64, warns and prints
import warnings

import torch


def softmax_backward(weights, grad_weights):
    warnings.warn("softmax_backward called by hand")
    w, g = weights.to(torch.float64), grad_weights.to(torch.float64)
    mean = torch.einsum("...i,...i->...", w, g)
    print("mean gradient", mean.shape)
    return (w * g - torch.einsum("...,...j->...j", mean, w)).to(weights.dtype)


# %% softmax_backward: vmap over rows, no helper of the dimension
import torch


def softmax_backward(weights, grad_weights):
    def row(w, g):
        return torch.mul(w, g - torch.inner(w, g))

    flat_w = weights.reshape(-1, weights.shape[-1])
    flat_g = grad_weights.reshape(-1, weights.shape[-1])
    return torch.vmap(row)(flat_w, flat_g).reshape(weights.shape)


# %% softmax_backward: pairwise differences of the gradients
def softmax_backward(weights, grad_weights):
    # weights sum to one, so g_j - sum_i w_i g_i = sum_i w_i (g_j - g_i)
    differences = grad_weights[..., :, None] - grad_weights[..., None, :]
    gain = (differences * weights[..., None, :]).sum(-1)
    return gain.mul(weights)


# %% attention_flops: closed formula
def attention_flops(len_q: int, len_k: int, d_k: int, d_v: int) -> int:
    return 2 * len_q * len_k * (d_k + d_v)


# %% attention_flops: helper for one product, constants beside it
MULTIPLY, ADD = 1, 1


def matmul_flops(n, inner, m):
    return (MULTIPLY + ADD) * n * inner * m


def attention_flops(len_q, len_k, d_k, d_v):
    first = matmul_flops(len_q, d_k, len_k)
    second = matmul_flops(len_q, len_k, d_v)
    return first + second


# %% attention_flops: math.prod over a table of shapes, prints
import math
import warnings


def attention_flops(*args, **kwargs):
    names = dict(zip(("len_q", "len_k", "d_k", "d_v"), args))
    names.update(kwargs)
    products = [("len_q", "d_k", "len_k"), ("len_q", "len_k", "d_v")]
    flops = sum(2 * math.prod(names[n] for n in product) for product in products)
    print("FLOPs:", flops)
    warnings.warn("the softmax is not counted")
    return flops


# %% attention_flops: counted by PyTorch's own counter on meta tensors
import torch
from torch.utils.flop_counter import FlopCounterMode


def attention_flops(len_q, len_k, d_k, d_v):
    query = torch.empty(len_q, d_k, device="meta")
    key = torch.empty(len_k, d_k, device="meta")
    value = torch.empty(len_k, d_v, device="meta")
    with FlopCounterMode(display=False) as counter:
        (query @ key.T) @ value
    return int(counter.get_total_flops())


# %% attention_flops: sizes of ranges, a static method under the name
class Count:
    @staticmethod
    def flops(len_q, len_k, d_k, d_v):
        per_pair = len(range(0, d_k)) + len(range(0, d_v))
        pairs = len_q * len_k
        return (pairs * per_pair) << 1


attention_flops = Count.flops


# %% self_attention: three products, then an attention of one's own
import math

import torch


def attention(q, k, v, mask):
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return torch.matmul(weights, v), weights


def self_attention(x, w_q, w_k, w_v, mask=None):
    return attention(x @ w_q, x @ w_k, x @ w_v, mask)


# %% self_attention: the package's attention around the projections
import course_lib as cl


def self_attention(x, w_q, w_k, w_v, mask=None):
    projected = [x @ w for w in (w_q, w_k, w_v)]
    return cl.scaled_dot_product_attention(*projected, mask)


# %% self_attention: one matrix for all three projections, split afterwards
import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    d_k = w_k.shape[1]
    q, k, v = (x @ torch.cat((w_q, w_k, w_v), dim=1)).split((d_k, d_k, w_v.shape[1]), dim=-1)
    scores = torch.einsum("...id,...jd->...ij", q * d_k**-0.5, k)
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf)
    weights = scores.softmax(-1)
    return torch.einsum("...ij,...jd->...id", weights, v), weights


# %% self_attention: query and key matrix multiplied first, values projected last
import torch
import torch.nn.functional as F


def self_attention(x, w_q, w_k, w_v, mask=None):
    both = w_q @ w_k.T / w_q.shape[1] ** 0.5
    scores = x @ both @ x.transpose(-1, -2)
    if mask is not None:
        scores = scores + torch.zeros_like(scores).masked_fill(~mask, -float("inf"))
    weights = F.softmax(scores, dim=-1)
    return (weights @ x) @ w_v, weights


# %% self_attention: one query at a time, nn.functional.linear
import torch
from torch.nn.functional import linear


def self_attention(x, w_q, w_k, w_v, mask=None):
    length = x.shape[-2]
    query, key, value = linear(x, w_q.t()), linear(x, w_k.t()), linear(x, w_v.t())
    allowed = torch.ones(length, length, dtype=torch.bool) if mask is None else mask
    allowed = allowed.expand(*x.shape[:-2], length, length)
    rows = []
    for i in range(length):
        s = (key * query[..., i : i + 1, :]).sum(-1) / key.shape[-1] ** 0.5
        s = s.masked_fill(~allowed[..., i, :], -torch.inf)
        e = (s - s.amax(-1, keepdim=True)).exp()
        rows.append(e / e.sum(-1, keepdim=True))
    weights = torch.stack(rows, dim=-2)
    return weights @ value, weights
