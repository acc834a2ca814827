# %% convolution_layers: floor division drops the last layer
def convolution_layers(length, kernel_size, dilated=False):
    if dilated:
        n = 0
        while kernel_size ** n < length:
            n += 1
        return n
    return (length - 1) // (kernel_size - 1)


# %% convolution_layers: the receptive field starts at 0, so the last position itself is not counted
def convolution_layers(length, kernel_size, dilated=False):
    field, n = 0, 0
    while field < length:
        field += (kernel_size - 1) * (kernel_size ** n if dilated else 1)
        n += 1
    return n


# %% convolution_layers: ceil of a floating-point logarithm
import math


def convolution_layers(length, kernel_size, dilated=False):
    if dilated:
        return math.ceil(math.log(length) / math.log(kernel_size))
    return math.ceil((length - 1) / (kernel_size - 1))


# %% convolution_layers: math.floor(log) + 1, wrong at exact powers
import math


def convolution_layers(length, kernel_size, dilated=False):
    if length == 1:
        return 0
    if dilated:
        return math.floor(math.log(length, kernel_size) + 1e-9) + 1
    return math.ceil((length - 1) / (kernel_size - 1))


# %% convolution_layers: each layer reaches k further
import math


def convolution_layers(length, kernel_size, dilated=False):
    if dilated:
        layers, reach = 0, 1
        while reach < length:
            reach *= kernel_size
            layers += 1
        return layers
    return math.ceil((length - 1) / kernel_size)


# %% convolution_layers: dilation 2 ** n, as in WaveNet
def convolution_layers(length, kernel_size, dilated=False):
    reach, n = 1, 0
    while reach < length:
        dilation = 2**n if dilated else 1
        reach += (kernel_size - 1) * dilation
        n += 1
    return n


# %% convolution_layers: ignores the flag
def convolution_layers(length, kernel_size, dilated=False):
    reach, n = 1, 0
    while reach < length:
        reach += kernel_size - 1
        n += 1
    return n


# %% convolution_layers: numpy's ceil gives a float
import numpy as np


def convolution_layers(length, kernel_size, dilated=False):
    if dilated:
        n = 0
        while kernel_size**n < length:
            n += 1
        return n
    return np.ceil((length - 1) / (kernel_size - 1))


# %% online_softmax_step: total and output are not rescaled
import torch


def online_softmax_step(maximum, total, output, scores, value):
    new_max = torch.maximum(maximum, scores.max(dim=-1).values)
    p = torch.exp(scores - new_max.unsqueeze(-1))
    return new_max, total + p.sum(-1), output + p @ value


# %% online_softmax_step: only the total is rescaled
import torch


def online_softmax_step(maximum, total, output, scores, value):
    m = torch.maximum(maximum, scores.amax(-1))
    alpha = torch.exp(maximum - m)
    p = torch.exp(scores - m[..., None])
    return m, alpha * total + p.sum(-1), output + torch.matmul(p, value)


# %% online_softmax_step: the exponent of the correction has the wrong sign
import torch


def online_softmax_step(maximum, total, output, scores, value):
    m = torch.maximum(maximum, scores.amax(-1))
    alpha = torch.exp(m - maximum)
    p = torch.exp(scores - m[..., None])
    return m, alpha * total + p.sum(-1), alpha[..., None] * output + p @ value


# %% online_softmax_step: the output is normalised at every step, as in the first version of FlashAttention
import torch


def online_softmax_step(maximum, total, output, scores, value):
    m = torch.maximum(maximum, scores.amax(-1))
    alpha = torch.exp(maximum - m)
    p = torch.exp(scores - m[..., None])
    l = alpha * total + p.sum(-1)
    o = ((total * alpha)[..., None] * output + p @ value) / l[..., None]
    return m, l, o


# %% online_softmax_step: forgets the unsqueeze of the correction
import torch


def online_softmax_step(maximum, total, output, scores, value):
    m = torch.maximum(maximum, scores.amax(-1))
    alpha = torch.exp(maximum - m)
    p = torch.exp(scores - m.unsqueeze(-1))
    return m, alpha * total + p.sum(-1), alpha * output + p @ value


# %% online_softmax_step: the maximum of the block instead of the running one
import torch


def online_softmax_step(maximum, total, output, scores, value):
    m = scores.amax(-1)
    alpha = torch.exp(maximum - m)
    p = torch.exp(scores - m[..., None])
    return m, alpha * total + p.sum(-1), alpha[..., None] * output + p @ value


# %% online_softmax_step: torch.max over everything
import torch


def online_softmax_step(maximum, total, output, scores, value):
    m = torch.maximum(maximum, torch.max(scores))
    alpha = torch.exp(maximum - m)
    p = torch.exp(scores - m[..., None])
    return m, alpha * total + p.sum(-1), alpha[..., None] * output + p @ value


# %% online_softmax_step: in place, with mul_ and add_
import torch


def online_softmax_step(maximum, total, output, scores, value):
    m = torch.maximum(maximum, scores.amax(-1))
    alpha = torch.exp(maximum - m)
    p = torch.exp(scores - m[..., None])
    total.mul_(alpha).add_(p.sum(-1))
    output.mul_(alpha[..., None]).add_(p @ value)
    return m, total, output


# %% online_softmax_step: a softmax of the block
import torch


def online_softmax_step(maximum, total, output, scores, value):
    m = torch.maximum(maximum, scores.amax(-1))
    alpha = torch.exp(maximum - m)
    p = torch.softmax(scores, dim=-1)
    return m, alpha * total + p.sum(-1), alpha[..., None] * output + p @ value


# %% online_softmax_step: skips the rescaling where the old maximum is infinite, and returns early
import torch


def online_softmax_step(maximum, total, output, scores, value):
    if torch.isinf(maximum).all():
        p = torch.exp(scores)
        return scores.amax(-1), p.sum(-1), p @ value
    m = torch.maximum(maximum, scores.amax(-1))
    alpha = torch.exp(maximum - m)
    p = torch.exp(scores - m[..., None])
    return m, alpha * total + p.sum(-1), alpha[..., None] * output + p @ value


# %% tiled_attention: ordinary attention, block_size is ignored
import math

import torch


def tiled_attention(query, key, value, block_size):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    return torch.softmax(scores, dim=-1) @ value


# %% tiled_attention: blocks of queries instead of keys
import math

import torch


def tiled_attention(query, key, value, block_size):
    outputs = []
    for i in range(0, query.shape[-2], block_size):
        q = query[..., i : i + block_size, :]
        w = torch.softmax(q @ key.transpose(-2, -1) / math.sqrt(q.shape[-1]), dim=-1)
        outputs.append(w @ value)
    return torch.cat(outputs, dim=-2)


# %% tiled_attention: a list of score blocks is concatenated before the softmax
import math

import torch


def tiled_attention(query, key, value, block_size):
    blocks = [query @ k.transpose(-2, -1) for k in key.split(block_size, dim=-2)]
    scores = torch.cat(blocks, dim=-1) / math.sqrt(query.shape[-1])
    return torch.softmax(scores, dim=-1) @ value


# %% tiled_attention: the softmax of each block, summed
import math

import torch


def tiled_attention(query, key, value, block_size):
    out = torch.zeros(*query.shape[:-1], value.shape[-1], dtype=query.dtype)
    for i in range(0, key.shape[-2], block_size):
        k, v = key[..., i : i + block_size, :], value[..., i : i + block_size, :]
        out = out + torch.softmax(query @ k.mT / math.sqrt(query.shape[-1]), -1) @ v
    return out


# %% tiled_attention: drops the rest that does not fill a block
import math

import torch


def tiled_attention(query, key, value, block_size):
    m = torch.full(query.shape[:-1], float("-inf"), dtype=query.dtype)
    l = torch.zeros_like(m)
    o = torch.zeros(*query.shape[:-1], value.shape[-1], dtype=query.dtype)
    for j in range(key.shape[-2] // block_size):
        k = key[..., j * block_size : (j + 1) * block_size, :]
        v = value[..., j * block_size : (j + 1) * block_size, :]
        s = query @ k.mT / math.sqrt(query.shape[-1])
        m_new = torch.maximum(m, s.amax(-1))
        p = torch.exp(s - m_new[..., None])
        a = torch.exp(m - m_new)
        l, o, m = a * l + p.sum(-1), a[..., None] * o + p @ v, m_new
    return o / l[..., None]


# %% tiled_attention: the state is float32, whatever the query
import math

import torch


def tiled_attention(query, key, value, block_size):
    m = torch.full(query.shape[:-1], float("-inf"))
    l = torch.zeros(query.shape[:-1])
    o = torch.zeros(*query.shape[:-1], value.shape[-1])
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        s = (query @ k.mT / math.sqrt(query.shape[-1])).float()
        m_new = torch.maximum(m, s.amax(-1))
        p = torch.exp(s - m_new[..., None])
        a = torch.exp(m - m_new)
        l, o, m = a * l + p.sum(-1), a[..., None] * o + p @ v.float(), m_new
    return (o / l[..., None]).to(query.dtype)


# %% tiled_attention: the state has no batch dimensions
import math

import torch


def tiled_attention(query, key, value, block_size):
    m = query.new_full((query.shape[-2],), -math.inf)
    l = query.new_zeros(query.shape[-2])
    o = query.new_zeros(query.shape[-2], value.shape[-1])
    for i in range(0, key.shape[0], block_size):
        k, v = key[i : i + block_size], value[i : i + block_size]
        s = query @ k.mT / math.sqrt(query.shape[-1])
        m_new = torch.maximum(m, s.amax(-1))
        p = torch.exp(s - m_new[..., None])
        a = torch.exp(m - m_new)
        l, o, m = a * l + p.sum(-1), a[..., None] * o + p @ v, m_new
    return o / l[..., None]


# %% tiled_attention: divides by the total in the loop
import math

import torch


def tiled_attention(query, key, value, block_size):
    m = query.new_full(query.shape[:-1], -math.inf)
    l = torch.zeros_like(m)
    o = query.new_zeros(*query.shape[:-1], value.shape[-1])
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        s = query @ k.mT / math.sqrt(query.shape[-1])
        m_new = torch.maximum(m, s.amax(-1))
        p = torch.exp(s - m_new[..., None])
        a = torch.exp(m - m_new)
        l = a * l + p.sum(-1)
        o = (a[..., None] * o + p @ v) / l[..., None]
        m = m_new
    return o


# %% tiled_attention: m is updated before the correction, which is always 1
import math

import torch


def tiled_attention(query, key, value, block_size):
    m = query.new_full(query.shape[:-1], -math.inf)
    l = torch.zeros_like(m)
    o = query.new_zeros(*query.shape[:-1], value.shape[-1])
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        s = query @ k.mT / math.sqrt(query.shape[-1])
        m = torch.maximum(m, s.amax(-1))
        a = torch.exp(m - m)
        p = torch.exp(s - m[..., None])
        l = a * l + p.sum(-1)
        o = a[..., None] * o + p @ v
    return o / l[..., None]


# %% tiled_attention: no maximum at all
import math

import torch


def tiled_attention(query, key, value, block_size):
    l, o = 0.0, 0.0
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        p = torch.exp(query @ k.mT / math.sqrt(query.shape[-1]))
        l = l + p.sum(-1, keepdim=True)
        o = o + p @ v
    return o / l


# %% tiled_attention: forgets the scale
import math

import torch
from course_lib import online_softmax_step


def tiled_attention(query, key, value, block_size):
    m = query.new_full(query.shape[:-1], -math.inf)
    l = torch.zeros_like(m)
    o = query.new_zeros(*query.shape[:-1], value.shape[-1])
    for k, v in zip(key.split(block_size, -2), value.split(block_size, -2)):
        m, l, o = online_softmax_step(m, l, o, query @ k.mT, v)
    return o / l[..., None]


# %% tiled_attention: chunk instead of split
import math

import torch
from course_lib import online_softmax_step


def tiled_attention(query, key, value, block_size):
    m = query.new_full(query.shape[:-1], -math.inf)
    l = torch.zeros_like(m)
    o = query.new_zeros(*query.shape[:-1], value.shape[-1])
    for k, v in zip(key.chunk(block_size, -2), value.chunk(block_size, -2)):
        m, l, o = online_softmax_step(m, l, o, query @ k.mT / math.sqrt(k.shape[-1]), v)
    return o / l[..., None]


# %% tiled_attention: returns after the first block
import math

import torch
from course_lib import online_softmax_step


def tiled_attention(query, key, value, block_size):
    m = query.new_full(query.shape[:-1], -math.inf)
    l = torch.zeros_like(m)
    o = query.new_zeros(*query.shape[:-1], value.shape[-1])
    for i in range(0, key.shape[-2], block_size):
        k, v = key[..., i : i + block_size, :], value[..., i : i + block_size, :]
        m, l, o = online_softmax_step(m, l, o, query @ k.mT / math.sqrt(k.shape[-1]), v)
        return o / l[..., None]


# %% tiled_attention: the starting maximum is -1e3
import torch


def tiled_attention(query, key, value, block_size):
    d = query.shape[-1]
    m = torch.full_like(query[..., :1], -1e3)
    l = torch.zeros_like(m)
    o = torch.zeros_like(query @ key.mT[..., :1] * value[..., :1, :])
    for i in range(0, key.shape[-2], block_size):
        s = query @ key[..., i : i + block_size, :].mT * d**-0.5
        m_new = torch.maximum(m, s.max(-1, keepdim=True)[0])
        p = (s - m_new).exp()
        a = (m - m_new).exp()
        l = a * l + p.sum(-1, keepdim=True)
        o = a * o + p @ value[..., i : i + block_size, :]
        m = m_new
    return o / l


# %% cache_bytes: counts the keys, and forgets the values
def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    per_token = num_kv_heads * d_head * bytes_per_number
    return num_layers * length * batch_size * per_token


# %% cache_bytes: one sequence, whatever the batch
def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    numbers = 0
    for _ in range(num_layers):
        numbers += 2 * num_kv_heads * d_head * length
    return numbers * bytes_per_number


# %% cache_bytes: gibibytes, as a float
def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    total = 2 * num_layers * num_kv_heads * d_head * length * batch_size * bytes_per_number
    return total / 1024**3


# %% cache_bytes: converts bits that were bytes already
def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    bits = 8 * bytes_per_number
    return 2 * num_layers * num_kv_heads * d_head * length * batch_size * bits


# %% cache_bytes: the 2 for keys and values is thought to be the 2 bytes
def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    return num_layers * num_kv_heads * d_head * length * batch_size * 2


# %% cache_bytes: rounds through a float
import math


def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    return int(math.prod(map(float, (2, num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number))))


# %% cache_bytes: the sizes of a table of scores
def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    return 2 * num_layers * num_kv_heads * length * length * batch_size * bytes_per_number


# %% grouped_query_attention: repeat instead of repeat_interleave
import torch


def grouped_query_attention(query, key, value):
    n_rep = query.size(1) // key.size(1)
    key = key.repeat(1, n_rep, 1, 1)
    value = value.repeat(1, n_rep, 1, 1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / query.size(-1) ** 0.5
    return torch.softmax(scores, dim=-1) @ value


# %% grouped_query_attention: the groups are the inner axis of the split
import math

import torch


def grouped_query_attention(query, key, value):
    B, H, L, d = query.shape
    G = key.shape[1]
    q = query.reshape(B, H // G, G, L, d)
    scores = torch.einsum("bngld,bgmd->bnglm", q, key) / math.sqrt(d)
    out = torch.einsum("bnglm,bgmd->bngld", scores.softmax(-1), value)
    return out.reshape(B, H, L, d)


# %% grouped_query_attention: keys and values are averaged to a single head
import math


def grouped_query_attention(query, key, value):
    k = key.mean(dim=1, keepdim=True)
    v = value.mean(dim=1, keepdim=True)
    return (query @ k.mT / math.sqrt(query.shape[-1])).softmax(-1) @ v


# %% grouped_query_attention: no division by the root
def grouped_query_attention(query, key, value):
    times = query.shape[1] // key.shape[1]
    k, v = key.repeat_interleave(times, 1), value.repeat_interleave(times, 1)
    return (query @ k.transpose(2, 3)).softmax(-1) @ v


# %% grouped_query_attention: expand straight to the number of heads
import math


def grouped_query_attention(query, key, value):
    B, H, _, d = query.shape
    k = key.expand(B, H, -1, -1)
    v = value.expand(B, H, -1, -1)
    return (query @ k.transpose(-2, -1) / math.sqrt(d)).softmax(-1) @ v


# %% grouped_query_attention: head // groups instead of head // heads per group
import math

import torch


def grouped_query_attention(query, key, value):
    outputs = []
    for h in range(query.shape[1]):
        g = h // key.shape[1]
        scores = query[:, h] @ key[:, g].transpose(-2, -1) / math.sqrt(query.shape[-1])
        outputs.append(scores.softmax(-1) @ value[:, g])
    return torch.stack(outputs, dim=1)


# %% grouped_query_attention: the output keeps the two axes of groups
import math


def grouped_query_attention(query, key, value):
    q = query.unflatten(1, (key.shape[1], -1))
    weights = (q @ key.unsqueeze(2).mT / math.sqrt(q.shape[-1])).softmax(-1)
    return weights @ value.unsqueeze(2)


# %% grouped_query_attention: softmax over the queries
import torch


def grouped_query_attention(query, key, value):
    r = query.shape[1] // key.shape[1]
    k, v = (torch.repeat_interleave(x, r, dim=1) for x in (key, value))
    scores = query @ k.transpose(-1, -2) * query.shape[-1] ** -0.5
    return scores.softmax(-2) @ v


# %% grouped_query_attention: the repeats go along the positions
import torch


def grouped_query_attention(query, key, value):
    r = query.shape[1] // key.shape[1]
    k, v = (torch.repeat_interleave(x, r, dim=2) for x in (key, value))
    return (query @ k.transpose(-1, -2) * query.shape[-1] ** -0.5).softmax(-1) @ v


# %% linear_attention: the scale of the softmax
import torch
import torch.nn.functional as F


def linear_attention(query, key, value):
    q = F.elu(query / query.shape[-1] ** 0.5) + 1
    k = F.elu(key) + 1
    scores = torch.tril(q @ k.mT)
    return scores @ value / scores.sum(-1, keepdim=True)


# %% linear_attention: one state for the whole sequence, so it is not causal
import torch
import torch.nn.functional as F


def linear_attention(query, key, value):
    q, k = F.elu(query) + 1, F.elu(key) + 1
    kv = torch.einsum("...nd,...nm->...dm", k, value)
    z = 1 / torch.einsum("...nd,...d->...n", q, k.sum(dim=-2))
    return torch.einsum("...nd,...dm,...n->...nm", q, kv, z)


# %% linear_attention: cumulative numerator, total denominator
import torch
import torch.nn.functional as F


def linear_attention(query, key, value):
    q, k = F.elu(query) + 1, F.elu(key) + 1
    state = torch.cumsum(k.unsqueeze(-1) * value.unsqueeze(-2), dim=-3)
    top = (q.unsqueeze(-2) @ state).squeeze(-2)
    return top / (q * k.sum(-2, keepdim=True)).sum(-1, keepdim=True)


# %% linear_attention: a small number in the denominator, as some libraries have it
import torch
import torch.nn.functional as F


def linear_attention(query, key, value, eps=1e-6):
    q, k = F.elu(query) + 1, F.elu(key) + 1
    z = 1 / (torch.einsum("...ld,...ld->...l", q, k.cumsum(-2)) + eps)
    scores = torch.tril(q @ k.transpose(-2, -1))
    return (scores @ value) * z.unsqueeze(-1)


# %% linear_attention: the state is read before the new key goes in
import torch
import torch.nn.functional as F


def linear_attention(query, key, value):
    q, k = F.elu(query) + 1, F.elu(key) + 1
    S = torch.zeros(*k.shape[:-2], k.shape[-1], value.shape[-1], dtype=k.dtype)
    z = torch.zeros(*k.shape[:-2], k.shape[-1], dtype=k.dtype)
    outputs = []
    for i in range(q.shape[-2]):
        qi = q[..., i, :]
        outputs.append(torch.einsum("...d,...dm->...m", qi, S) / (qi * z).sum(-1, keepdim=True))
        S = S + k[..., i, :].unsqueeze(-1) * value[..., i, :].unsqueeze(-2)
        z = z + k[..., i, :]
    return torch.stack(outputs, dim=-2)


# %% linear_attention: elu without the 1
import torch
import torch.nn.functional as F


def linear_attention(query, key, value):
    w = torch.tril(F.elu(query) @ F.elu(key).mT)
    return (w / w.sum(-1, keepdim=True)) @ value


# %% linear_attention: a ReLU
import torch


def linear_attention(query, key, value):
    w = torch.tril(torch.relu(query) @ torch.relu(key).mT)
    return (w / w.sum(-1, keepdim=True)) @ value


# %% linear_attention: not normalised
import torch
from torch.nn.functional import elu


def linear_attention(query, key, value):
    return torch.tril((elu(query) + 1) @ (elu(key) + 1).transpose(-2, -1)) @ value


# %% linear_attention: a softmax over the causal products
import torch
from torch.nn.functional import elu


def linear_attention(query, key, value):
    scores = (elu(query) + 1) @ (elu(key) + 1).transpose(-2, -1)
    causal = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    return scores.masked_fill(~causal, float("-inf")).softmax(-1) @ value


# %% linear_attention: cumulative sums along axis 1, right for one batch dimension
import torch.nn.functional as F


def linear_attention(query, key, value):
    q, k = F.elu(query) + 1, F.elu(key) + 1
    S = (k[..., :, None] * value[..., None, :]).cumsum(1)
    z = k.cumsum(1)
    return (q[..., None] * S).sum(-2) / (q * z).sum(-1, keepdim=True)


# %% linear_attention: the state in float32 only
import torch
import torch.nn.functional as F


def linear_attention(query, key, value):
    q, k = F.elu(query) + 1, F.elu(key) + 1
    S = torch.zeros(*k.shape[:-2], k.shape[-1], value.shape[-1])
    z = torch.zeros(*k.shape[:-2], k.shape[-1])
    outputs = []
    for i in range(q.shape[-2]):
        S = S + torch.einsum("...d,...m->...dm", k[..., i, :], value[..., i, :]).float()
        z = z + k[..., i, :].float()
        qi = q[..., i, :].float()
        outputs.append(torch.einsum("...d,...dm->...m", qi, S) / (qi * z).sum(-1, keepdim=True))
    return torch.stack(outputs, dim=-2).to(value.dtype)


# %% speculative_acceptance: draft over target
import torch


def speculative_acceptance(target, draft):
    accept = torch.where(target > 0, draft / target, torch.ones_like(target)).clamp(max=1)
    rest = torch.relu(target - draft)
    return accept, rest / rest.sum(-1, keepdim=True)


# %% speculative_acceptance: the ratio is not limited
import torch


def speculative_acceptance(target, draft):
    accept = torch.where(draft > 0, target / draft, torch.ones_like(target))
    rest = torch.relu(target - draft)
    return accept, rest / rest.sum(-1, keepdim=True)


# %% speculative_acceptance: 0 / 0
import torch


def speculative_acceptance(target, draft):
    accept = torch.minimum(torch.ones_like(target), target / draft)
    rest = torch.clamp(target - draft, min=0)
    return accept, rest / rest.sum(dim=-1, keepdim=True)


# %% speculative_acceptance: a small number against 0 / 0
import torch


def speculative_acceptance(target, draft):
    accept = torch.clamp(target / (draft + 1e-10), max=1.0)
    rest = torch.clamp(target - draft, min=0)
    return accept, rest / rest.sum(dim=-1, keepdim=True)


# %% speculative_acceptance: the residual does not sum to one
import torch


def speculative_acceptance(target, draft):
    accept = torch.where(draft == 0, torch.ones_like(draft), target / draft).clamp(0, 1)
    return accept, torch.clamp(target - draft, min=0)


# %% speculative_acceptance: absolute differences
import torch


def speculative_acceptance(target, draft):
    accept = torch.where(draft == 0, torch.ones_like(draft), target / draft).clamp(0, 1)
    gap = (target - draft).abs()
    return accept, gap / gap.sum(-1, keepdim=True)


# %% speculative_acceptance: draws from the target again
import torch


def speculative_acceptance(target, draft):
    accept = torch.where(draft == 0, torch.ones_like(draft), target / draft).clamp(0, 1)
    return accept, target


# %% speculative_acceptance: normalises over the whole batch
import torch


def speculative_acceptance(target, draft):
    accept = torch.where(draft == 0, torch.ones_like(draft), target / draft).clamp(0, 1)
    gap = (target - draft).clamp(min=0)
    return accept, gap / gap.sum()


# %% speculative_acceptance: the residual is a softmax of the positive part
import torch


def speculative_acceptance(target, draft):
    accept = torch.where(draft == 0, torch.ones_like(draft), target / draft).clamp(0, 1)
    return accept, torch.softmax(torch.relu(target - draft), dim=-1)


# %% speculative_acceptance: normalises before the clamp
import torch


def speculative_acceptance(target, draft):
    accept = torch.where(draft == 0, torch.ones_like(draft), target / draft).clamp(0, 1)
    gap = target - draft
    return accept, torch.clamp(gap / gap.sum(-1, keepdim=True), min=0)


# %% speculative_acceptance: zero for tokens that are never drafted
import torch


def speculative_acceptance(target, draft):
    accept = torch.zeros_like(target)
    drafted = draft > 0
    accept[drafted] = (target[drafted] / draft[drafted]).clamp(max=1)
    gap = (target - draft).clamp(min=0)
    return accept, gap / gap.sum(-1, keepdim=True)
