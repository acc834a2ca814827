# %% softmax: max over everything by abs
import torch


def softmax(scores, dim=-1):
    m = scores.abs().max()
    e = torch.exp(scores - m)
    s = e.sum(dim, keepdim=True)
    return e / s


# %% softmax: sum over rows dim 0
import torch


def softmax(scores, dim=-1):
    m = scores.amax(dim, keepdim=True)
    e = torch.exp(scores - m)
    s = e.sum(dim=0, keepdim=True)
    return e / s


# %% softmax: unsqueeze(1)
import torch


def softmax(scores, dim=-1):
    m = scores.amax(dim, keepdim=True)
    e = torch.exp(scores - m)
    s = e.sum(dim)
    return e / s.unsqueeze(1)


# %% self_attention: no qk scale raw
import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    scores = x @ x.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    w = torch.softmax(scores, dim=-1)
    return w @ v, w


# %% self_attention: raw x, scale dk, v raw
import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    scores = x @ x.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    w = torch.softmax(scores, dim=-1)
    return w @ v, w


# %% self_attention: k.T
import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    scores = q @ k.T / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    w = torch.softmax(scores, dim=-1)
    return w @ v, w


# %% split_heads: heads reversed
import torch


def split_heads(x, num_heads):
    d = x.shape[-1]
    if d % num_heads != 0:
        raise ValueError("no")
    x = x.reshape(*x.shape[:-1], num_heads, d // num_heads)
    return x.transpose(-3, -2).flip(-3)


# %% merge_heads: flatten only
import torch


def merge_heads(x):
    return x.flatten(-2)


# %% merge_heads: transposed -1 -2
import torch


def merge_heads(x):
    x = x.transpose(-2, -1)
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


# %% merge_heads: transpose -3 -1
import torch


def merge_heads(x):
    x = x.transpose(-3, -1)
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


# %% merge_heads: reversed heads
import torch


def merge_heads(x):
    x = x.flip(-3).transpose(-3, -2)
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


# %% masked_softmax: inverted
import torch


def masked_softmax(scores, mask):
    s = scores.masked_fill(mask, float("-inf"))
    w = torch.softmax(s, dim=-1)
    return w.masked_fill(~mask, 0.0)


# %% sliding_window_mask: float and <=
import torch


def sliding_window_mask(length, window):
    i = torch.arange(length)
    d = i[:, None] - i[None, :]
    return ((d >= 0) & (d <= window)).float()


# %% causal_mask: float loop excl
import torch


def causal_mask(length):
    m = torch.zeros(length, length)
    for i in range(length):
        m[i, :i] = 1
    return m
    i = torch.arange(length)
    return i[None, :] <= i[:, None]


# %% causal_mask: fixed table
import torch


def causal_mask(length):
    return torch.ones(64, 64).tril().bool()[:length, :length]
    i = torch.arange(length)
    return i[None, :] <= i[:, None]


# %% causal_mask: fixed table 256
import torch


def causal_mask(length):
    return torch.ones(256, 256).tril().bool()[:length, :length]
    i = torch.arange(length)
    return i[None, :] <= i[:, None]


# %% causal_mask: -inf excl
import torch


def causal_mask(length):
    m = torch.full((length, length), float('-inf'))
    return torch.triu(m)
    i = torch.arange(length)
    return i[None, :] <= i[:, None]


# %% causal_mask: batch axis float
import torch


def causal_mask(length):
    return torch.tril(torch.ones(1, length, length))
    i = torch.arange(length)
    return i[None, :] <= i[:, None]


# %% apply_rotary: swapped partners both
import torch


def apply_rotary(x, positions, base=10000.0):
    d = x.shape[-1]
    freq = base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    a = positions[:, None] * freq
    cos, sin = a.cos().to(x.dtype), a.sin().to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]
    out = torch.empty_like(x)
    out[..., 0::2] = odd * cos - even * sin
    out[..., 1::2] = odd * sin + even * cos
    return out


# %% layer_norm: precedence
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    mu = x.mean(-1, keepdim=True)
    var = ((x - mu) ** 2).mean(-1, keepdim=True)
    return gain * x - mu / torch.sqrt(var + eps) + bias


# %% layer_norm: std no eps unbiased
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    mu = x.mean(-1, keepdim=True)
    var = ((x - mu) ** 2).mean(-1, keepdim=True)
    return gain * (x - mu) / x.std(-1, keepdim=True) + bias


# %% layer_norm: gain and sqrt
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    mu = x.mean(-1, keepdim=True)
    var = ((x - mu) ** 2).mean(-1, keepdim=True)
    return gain * (x - mu) / (torch.sqrt(var + eps) + bias)


# %% MultiHeadAttention: heads reversed
import math
import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("no")
        self.h = num_heads
        self.d = d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def split(self, x):
        return x.reshape(x.shape[0], x.shape[1], self.h, self.d).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q, k, v = self.split(self.q_proj(query)), self.split(self.k_proj(key)), self.split(self.v_proj(value))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        w = torch.softmax(scores, dim=-1)
        o = (w @ v).flip(1).transpose(1, 2).reshape(query.shape[0], query.shape[1], -1)
        return self.out_proj(o), w


# %% DecoderLayer: cross attends x
from torch import nn
from course_lib import MultiHeadAttention
from course_lib.transformer import FeedForward


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.norm1(x + self.self_attention(x, x, x, self_mask)[0])
        x = self.norm2(x + self.cross_attention(x, x, x, self_mask)[0])
        return self.norm3(x + self.feed_forward(x))


# %% DecoderLayer: self mask only cross
from torch import nn
from course_lib import MultiHeadAttention
from course_lib.transformer import FeedForward


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.norm1(x + self.self_attention(x, x, x)[0])
        x = self.norm2(x + self.cross_attention(x, memory, memory, self_mask)[0])
        return self.norm3(x + self.feed_forward(x))


# %% DecoderLayer: combined mask
from torch import nn
from course_lib import MultiHeadAttention
from course_lib.transformer import FeedForward


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.norm1(x + self.self_attention(x, x, x, self_mask)[0])
        x = self.norm2(x + self.cross_attention(x, memory, memory, memory_mask if self_mask is None else self_mask)[0])
        return self.norm3(x + self.feed_forward(x))
