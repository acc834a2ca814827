# %% split_heads: Reshapes straight to (H, L, d_head) without a transpose, which mixes positions and heads.
def split_heads(x, num_heads):
    *batch, length, d_model = x.shape
    if d_model % num_heads != 0:
        raise ValueError("num_heads must divide d_model")
    return x.reshape(*batch, num_heads, length, d_model // num_heads)


# %% split_heads: An assert is used, so a width that does not divide raises AssertionError and not ValueError.
def split_heads(x, num_heads):
    d_model = x.size(-1)
    assert d_model % num_heads == 0, "d_model must be divisible by num_heads"
    head_dim = d_model // num_heads
    x = x.view(*x.shape[:-1], num_heads, head_dim)
    return x.transpose(-2, -3)


# %% split_heads: The head axis is not moved before the positions: the result is (L, H, d_head).
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError(f"{x.shape[-1]} features cannot be split into {num_heads} heads")
    return x.unflatten(-1, (num_heads, x.shape[-1] // num_heads))


# %% split_heads: The shape is unpacked into exactly three numbers, so only one batch dimension works.
def split_heads(x, num_heads):
    batch_size, seq_len, d_model = x.shape
    if d_model % num_heads != 0:
        raise ValueError("d_model % num_heads != 0")
    depth = d_model // num_heads
    return x.view(batch_size, seq_len, num_heads, depth).permute(0, 2, 1, 3)


# %% split_heads: The heads take every H-th feature instead of a contiguous slice.
def split_heads(x, num_heads):
    width = x.shape[-1]
    if width % num_heads > 0:
        raise ValueError("width is not a multiple of the number of heads")
    split = x.reshape(x.shape[:-1] + (width // num_heads, num_heads))
    return split.movedim(-1, -3)


# %% split_heads: The heads are stacked on the very first axis, before the batch dimensions.
import torch


def split_heads(x, num_heads):
    d_head, rest = divmod(x.shape[-1], num_heads)
    if rest:
        raise ValueError(f"cannot divide {x.shape[-1]} by {num_heads}")
    heads = [x[..., h * d_head : (h + 1) * d_head] for h in range(num_heads)]
    return torch.stack(heads, dim=0)


# %% merge_heads: Reshapes without transposing first, which mixes heads and positions.
def merge_heads(x):
    *batch, num_heads, length, d_head = x.shape
    return x.reshape(*batch, length, num_heads * d_head)


# %% merge_heads: view after transpose without contiguous raises a RuntimeError.
def merge_heads(x):
    heads, length, d_head = x.shape[-3:]
    x = x.transpose(-3, -2)
    return x.view(*x.shape[:-3], length, heads * d_head)


# %% merge_heads: Heads are taken from axis 1, which is the head axis for one batch dimension only.
import torch


def merge_heads(x):
    return torch.cat([head for head in x.unbind(1)], dim=-1)


# %% merge_heads: The heads' features are interleaved instead of laid side by side.
def merge_heads(x):
    moved = x.movedim(-3, -1)
    return moved.flatten(start_dim=-2)


# %% merge_heads: The last two axes are exchanged instead of heads and positions, which scrambles the features.
def merge_heads(x):
    n_heads, seq_len, head_dim = x.shape[-3], x.shape[-2], x.shape[-1]
    out = x.transpose(-1, -2).contiguous()
    return out.view(x.shape[:-3] + (seq_len, n_heads * head_dim))


# %% merge_heads: transpose_ works in place and changes the shape of the caller's tensor.
def merge_heads(x):
    x.transpose_(-3, -2)
    length = x.size(-3)
    return x.reshape(list(x.shape[:-3]) + [length, -1])


# %% MultiHeadAttention: Scales by the root of d_model instead of that of one head's width.
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model must be divisible by num_heads")
        self.d_model = d_model
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
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_model)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        out = torch.matmul(weights, v).transpose(1, 2).contiguous().view(query.size(0), -1, self.d_model)
        return self.out_proj(out), weights


# %% MultiHeadAttention: The heads are split by view straight to (B, H, L, d_head), mixing positions and heads.
import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super(MultiHeadAttention, self).__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model={d_model} is not a multiple of num_heads={num_heads}")
        self.h = num_heads
        self.head_dim = d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        B, Lq, D = query.shape
        Lk = key.shape[1]
        Q = self.q_proj(query).view(B, self.h, Lq, self.head_dim)
        K = self.k_proj(key).view(B, self.h, Lk, self.head_dim)
        V = self.v_proj(value).view(B, self.h, Lk, self.head_dim)
        energy = Q @ K.transpose(2, 3) / self.head_dim**0.5
        if mask is not None:
            energy = energy.masked_fill(~mask, torch.finfo(energy.dtype).min)
        attention = F.softmax(energy, dim=-1)
        x = (attention @ V).permute(0, 2, 1, 3).reshape(B, Lq, D)
        return self.out_proj(x), attention


# %% MultiHeadAttention: out_proj is created and never used; the concatenated heads are returned.
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("embedding size has to be a multiple of the number of heads")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q = self.q_proj(query).chunk(self.num_heads, dim=-1)
        k = self.k_proj(key).chunk(self.num_heads, dim=-1)
        v = self.v_proj(value).chunk(self.num_heads, dim=-1)
        q, k, v = (torch.stack(t, dim=1) for t in (q, k, v))
        logits = torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
        if mask is not None:
            logits = torch.where(mask, logits, torch.full_like(logits, -torch.inf))
        weights = logits.softmax(dim=-1)
        context = torch.einsum("bhij,bhjd->bhid", weights, v)
        output = torch.cat(context.unbind(dim=1), dim=-1)
        return output, weights


# %% MultiHeadAttention: Keys and values are reshaped with the length of the query, so cross-attention fails.
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model % num_heads must be 0")
        self.n_heads, self.d_head = num_heads, d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        batch, length, d_model = query.size()
        heads = []
        for layer, t in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value)):
            heads.append(layer(t).reshape(batch, length, self.n_heads, self.d_head).transpose(1, 2))
        q, k, v = heads
        att = q.matmul(k.mT).div(math.sqrt(self.d_head))
        if mask is not None:
            att = att.masked_fill(mask.logical_not(), float("-inf"))
        att = att.softmax(-1)
        y = att.matmul(v).transpose(1, 2).reshape(batch, length, d_model)
        return self.out_proj(y), att


# %% MultiHeadAttention: The weights are averaged over the heads before they are returned: (B, L_q, L_k).
import math

import torch
import torch.nn as nn


def attention(q, k, v, mask):
    s = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
    if mask is not None:
        s = s.masked_fill(~mask, float("-inf"))
    p = torch.softmax(s, -1)
    return p @ v, p


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("num_heads does not divide d_model")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def _heads(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q = self._heads(self.q_proj(query))
        k = self._heads(self.k_proj(key))
        v = self._heads(self.v_proj(value))
        x, weights = attention(q, k, v, mask)
        x = x.transpose(1, 2).flatten(2)
        return self.out_proj(x), weights.mean(dim=1)


# %% MultiHeadAttention: The mask gets a further axis for the heads, though it already broadcasts to (B, H, L_q, L_k).
import torch
from torch import nn
from torch.nn import functional as F


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.head_size, remainder = divmod(d_model, num_heads)
        if remainder != 0:
            raise ValueError("d_model must be a multiple of num_heads")
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key, value, mask=None):
        q, k, v = self.q_proj(query), self.k_proj(key), self.v_proj(value)
        q, k, v = [torch.stack(t.split(self.head_size, dim=2), dim=1) for t in (q, k, v)]
        scores = torch.matmul(q, k.transpose(2, 3)) / self.head_size**0.5
        if mask is not None:
            mask = mask.unsqueeze(1)
            scores = scores.masked_fill(mask == 0, float("-inf"))
        weights = F.softmax(scores, dim=3)
        merged = torch.matmul(weights, v).transpose(1, 2).reshape(query.shape)
        return self.out_proj(merged), weights


# %% multi_head_parameter_count: The output projection is forgotten: three matrices instead of four.
def multi_head_parameter_count(d_model, num_heads, bias=True):
    total = 0
    for _ in ("query", "key", "value"):
        total += d_model * d_model
        if bias:
            total += d_model
    return total


# %% multi_head_parameter_count: The count is multiplied by the number of heads, though the heads share the matrices.
def multi_head_parameter_count(d_model, num_heads, bias=True):
    per_linear = d_model * d_model + (d_model if bias else 0)
    return num_heads * 3 * per_linear + per_linear


# %% multi_head_parameter_count: The argument bias is ignored and biases are always counted.
def multi_head_parameter_count(d_model, num_heads, bias=True):
    return 4 * (d_model + 1) * d_model


# %% multi_head_parameter_count: Only one bias vector is counted for all four projections.
def multi_head_parameter_count(d_model, num_heads, bias=True):
    weights = 4 * d_model**2
    biases = d_model if bias else 0
    return weights + biases


# %% multi_head_parameter_count: The head width comes from a true division, so the result is a float.
def multi_head_parameter_count(d_model, num_heads, bias=True):
    d_head = d_model / num_heads
    qkv = 3 * num_heads * (d_model * d_head)
    out = d_model * (num_heads * d_head)
    if bias:
        return qkv + out + 4 * d_model
    return qkv + out


# %% multi_head_parameter_count: The projections of one head only are counted, not those of all heads.
def linear_params(n_in, n_out, with_bias):
    return n_in * n_out + (n_out if with_bias else 0)


def multi_head_parameter_count(d_model, num_heads, bias=True):
    head_dim = d_model // num_heads
    projections = 3 * linear_params(d_model, head_dim, bias)
    return projections + linear_params(d_model, d_model, bias)
