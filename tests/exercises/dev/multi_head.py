# %% split_heads: reshapes straight to heads by positions without a transpose, which mixes positions and features
import torch


def split_heads(x, num_heads):
    *batch, length, d_model = x.shape
    if d_model % num_heads != 0:
        raise ValueError("d_model must be divisible by num_heads")
    return x.reshape(*batch, num_heads, length, d_model // num_heads)


# %% split_heads: expects exactly one batch dimension
import torch


def split_heads(x, num_heads):
    batch_size, seq_len, d_model = x.size()
    if d_model % num_heads:
        raise ValueError(f"{d_model} is not divisible by {num_heads}")
    d_head = d_model // num_heads
    return x.view(batch_size, seq_len, num_heads, d_head).transpose(1, 2)


# %% split_heads: an assert instead of the ValueError
import torch


def split_heads(x, num_heads):
    d_model = x.shape[-1]
    assert d_model % num_heads == 0, "d_model must be divisible by num_heads"
    x = x.reshape(*x.shape[:-1], num_heads, d_model // num_heads)
    return x.transpose(-3, -2)


# %% split_heads: head h takes every num_heads-th feature instead of a contiguous slice
import torch


def split_heads(x, num_heads):
    d_model = x.size(-1)
    if d_model % num_heads != 0:
        raise ValueError("num_heads has to divide d_model")
    heads = [x[..., h::num_heads] for h in range(num_heads)]
    return torch.stack(heads, dim=-3)


# %% split_heads: the head axis stays behind the position axis
import torch


def split_heads(x, num_heads):
    if x.shape[-1] % num_heads != 0:
        raise ValueError("d_model % num_heads must be 0")
    d_head = x.shape[-1] // num_heads
    return x.unflatten(-1, (num_heads, d_head))


# %% split_heads: checks the divisibility of the length instead of the width
import torch


def split_heads(x, num_heads):
    if x.shape[-2] % num_heads != 0:
        raise ValueError("does not divide")
    pieces = torch.split(x, x.shape[-1] // num_heads, dim=-1)
    return torch.stack(pieces, dim=-3)


# %% merge_heads: reshapes without moving the head axis back first
import torch


def merge_heads(x):
    *batch, heads, length, d_head = x.shape
    return x.reshape(*batch, length, heads * d_head)


# %% merge_heads: view after transpose without contiguous, works only on what split_heads has just returned
import torch


def merge_heads(x):
    x = x.transpose(-3, -2)
    return x.view(*x.shape[:-2], x.shape[-2] * x.shape[-1])


# %% merge_heads: axes counted from the front, right for one batch dimension only
import torch


def merge_heads(x):
    x = x.transpose(1, 2).contiguous()
    return x.flatten(start_dim=2)


# %% merge_heads: interleaves the heads, the head index runs fastest in the merged features
import torch


def merge_heads(x):
    x = x.movedim(-3, -1)
    return x.reshape(*x.shape[:-2], -1)


# %% merge_heads: concatenates the heads along the positions instead of the features
import torch


def merge_heads(x):
    heads = x.unbind(dim=-3)
    return torch.cat(heads, dim=-2)


# %% merge_heads: a final squeeze drops batches and sequences of length one
import torch


def merge_heads(x):
    num_heads, length, d_head = x.shape[-3:]
    merged = x.transpose(-2, -3).reshape(*x.shape[:-3], length, num_heads * d_head)
    return merged.squeeze()


# %% MultiHeadAttention: scales by the root of d_model instead of the root of the width of one head
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("num_heads must divide d_model")
        self.d_model = d_model
        self.num_heads = num_heads
        self.d_head = d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.num_heads, self.d_head).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q = self.split(self.q_proj(query))
        k = self.split(self.k_proj(key))
        v = self.split(self.v_proj(value))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_model)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        context = (weights @ v).transpose(1, 2).flatten(2)
        return self.out_proj(context), weights


# %% MultiHeadAttention: projects the key instead of the value to get the values, seen only where they differ
import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super(MultiHeadAttention, self).__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model={d_model} not divisible by num_heads={num_heads}")
        self.h = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        Q = self.q_proj(query).unflatten(-1, (self.h, -1)).transpose(1, 2)
        K = self.k_proj(key).unflatten(-1, (self.h, -1)).transpose(1, 2)
        V = self.v_proj(key).unflatten(-1, (self.h, -1)).transpose(1, 2)
        energy = torch.einsum("bhqd,bhkd->bhqk", Q, K) * Q.size(-1) ** -0.5
        if mask is not None:
            energy = energy.masked_fill(mask == 0, float("-inf"))
        attention = F.softmax(energy, dim=-1)
        out = torch.einsum("bhqk,bhkd->bqhd", attention, V).flatten(2)
        return self.out_proj(out), attention


# %% MultiHeadAttention: reshapes keys and values with the length of the query, fails where the lengths differ
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model must be a multiple of num_heads")
        self.num_heads = num_heads
        self.head_dim = d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        B, L, D = query.shape
        q = self.q_proj(query).view(B, L, self.num_heads, self.head_dim).permute(0, 2, 1, 3)
        k = self.k_proj(key).view(B, L, self.num_heads, self.head_dim).permute(0, 2, 1, 3)
        v = self.v_proj(value).view(B, L, self.num_heads, self.head_dim).permute(0, 2, 1, 3)
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.head_dim)
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        weights = scores.softmax(-1)
        out = torch.matmul(weights, v).permute(0, 2, 1, 3).contiguous().view(B, L, D)
        return self.out_proj(out), weights


# %% MultiHeadAttention: always inserts a head axis into the mask, a mask that has one already no longer fits
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    "Multi-headed attention, every head on its own slice of the model width."

    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model % num_heads != 0")
        self.d_k = d_model // num_heads
        self.h = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(1)
        nbatches = query.size(0)
        query, key, value = [
            lin(x).view(nbatches, -1, self.h, self.d_k).transpose(1, 2)
            for lin, x in zip((self.q_proj, self.k_proj, self.v_proj), (query, key, value))
        ]
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        attn = scores.softmax(dim=-1)
        x = torch.matmul(attn, value)
        x = x.transpose(1, 2).contiguous().view(nbatches, -1, self.h * self.d_k)
        return self.out_proj(x), attn


# %% MultiHeadAttention: merges the heads by a reshape without moving the head axis back
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("the heads do not divide the model width")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def _heads(self, t):
        b, n, d = t.shape
        return t.reshape(b, n, self.num_heads, d // self.num_heads).swapaxes(1, 2)

    def forward(self, query, key, value, mask=None):
        b, n, d = query.shape
        q, k, v = self._heads(self.q_proj(query)), self._heads(self.k_proj(key)), self._heads(self.v_proj(value))
        scores = q @ k.mT / (d // self.num_heads) ** 0.5
        if mask is not None:
            scores = torch.where(mask, scores, float("-inf"))
        weights = scores.softmax(dim=-1)
        output = (weights @ v).reshape(b, n, d)
        return self.out_proj(output), weights


# %% MultiHeadAttention: returns the weights averaged over the heads instead of one map for each head
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("embed dim must be divisible by the number of heads")
        self.num_heads = num_heads
        self.d_head = d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        b, len_q = query.shape[0], query.shape[1]
        len_k = key.shape[1]
        q = self.q_proj(query).view(b, len_q, self.num_heads, self.d_head).transpose(1, 2)
        k = self.k_proj(key).view(b, len_k, self.num_heads, self.d_head).transpose(1, 2)
        v = self.v_proj(value).view(b, len_k, self.num_heads, self.d_head).transpose(1, 2)
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.d_head)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        weights = torch.softmax(scores, dim=-1)
        output = (weights @ v).transpose(1, 2).reshape(b, len_q, -1)
        return self.out_proj(output), weights.mean(dim=1)


# %% MultiHeadAttention: no check in the constructor, a number of heads that does not divide is accepted
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.d_head = int(d_model / num_heads)
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        def heads(x):
            return x.view(x.shape[0], x.shape[1], self.num_heads, self.d_head).transpose(1, 2)

        q, k, v = heads(self.q_proj(query)), heads(self.k_proj(key)), heads(self.v_proj(value))
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.d_head)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        merged = torch.matmul(weights, v).transpose(1, 2).flatten(start_dim=2)
        return self.out_proj(merged), weights


# %% MultiHeadAttention: softmax over axis 1, which is the head axis of the four-dimensional scores
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model must be divisible by num_heads")
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        batch = query.size(0)
        q = self.q_proj(query).reshape(batch, -1, self.num_heads, self.d_k).transpose(1, 2)
        k = self.k_proj(key).reshape(batch, -1, self.num_heads, self.d_k).transpose(1, 2)
        v = self.v_proj(value).reshape(batch, -1, self.num_heads, self.d_k).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        weights = F.softmax(scores, dim=1)
        concat = torch.matmul(weights, v).transpose(1, 2).reshape(batch, -1, self.num_heads * self.d_k)
        return self.out_proj(concat), weights


# %% multi_head_parameter_count: forgets the output projection
def multi_head_parameter_count(d_model, num_heads, bias=True):
    per_projection = d_model * d_model
    if bias:
        per_projection += d_model
    return 3 * per_projection


# %% multi_head_parameter_count: ignores the argument bias and always counts the bias vectors
def multi_head_parameter_count(d_model, num_heads, bias=True):
    return 4 * (d_model * d_model + d_model)


# %% multi_head_parameter_count: gives every head projections of the full width
def multi_head_parameter_count(d_model, num_heads, bias=True):
    b = d_model if bias else 0
    qkv = 3 * num_heads * (d_model * d_model + b)
    out = num_heads * d_model * d_model + b
    return qkv + out


# %% multi_head_parameter_count: counts one bias vector for the four projections together
def multi_head_parameter_count(d_model, num_heads, bias=True):
    count = 4 * d_model ** 2
    if bias:
        count += d_model
    return count


# %% multi_head_parameter_count: the biases of the heads are counted for a single head only
def multi_head_parameter_count(d_model, num_heads, bias=True):
    d_head = d_model // num_heads
    weights = num_heads * 3 * d_model * d_head + d_model * d_model
    biases = 3 * d_head + d_model
    return weights + biases if bias else weights


# %% multi_head_parameter_count: true division makes the result a float
def multi_head_parameter_count(d_model, num_heads, bias=True):
    d_head = d_model / num_heads
    per_head = 3 * d_model * d_head
    if bias:
        per_head += 3 * d_head
    output = d_model * d_model + (d_model if bias else 0)
    return num_heads * per_head + output


# %% multi_head_parameter_count: a head multiplies the four matrices, the biases are counted once
def multi_head_parameter_count(d_model, num_heads, bias=True):
    count = num_heads * 4 * d_model * d_model
    if bias:
        count += 4 * d_model
    return count


# %% multi_head_parameter_count: a head multiplies the three matrices of the inputs, biases and W_O are counted once
def multi_head_parameter_count(d_model, num_heads, bias=True):
    weights = num_heads * 3 * d_model**2 + d_model**2
    return weights + 4 * d_model * bias


# %% multi_head_parameter_count: a head multiplies the three matrices of the inputs, no biases at all
def multi_head_parameter_count(d_model, num_heads, bias=True):
    per_head = 3 * d_model * d_model
    output = d_model * d_model
    return num_heads * per_head + output
