# %% split_heads: views straight to (..., H, L, d_head) without moving the head axis
def split_heads(x, num_heads):
    *lead, L, d_model = x.shape
    if d_model % num_heads:
        raise ValueError("d_model must be divisible by num_heads")
    return x.reshape(*lead, num_heads, L, d_model // num_heads)

# %% split_heads: the features are dealt out in turn (head h takes h, h + H, ...) instead of in contiguous slices
def split_heads(x, num_heads):
    d = x.shape[-1]
    if d % num_heads != 0:
        raise ValueError(f"{d} is not a multiple of {num_heads}")
    x = x.unflatten(-1, (d // num_heads, num_heads))
    return x.movedim(-1, -3)

# %% split_heads: an assert, so AssertionError instead of ValueError
def split_heads(x, num_heads):
    d_model = x.size(-1)
    assert d_model % num_heads == 0, "num_heads must divide d_model"
    d_head = d_model // num_heads
    return x.unflatten(-1, (num_heads, d_head)).transpose(-2, -3)

# %% split_heads: unpacks exactly three axes, so it raises ValueError for any other number of batch dimensions
def split_heads(x, num_heads):
    B, L, d_model = x.shape
    if d_model % num_heads != 0:
        raise ValueError("not divisible")
    return x.view(B, L, num_heads, d_model // num_heads).permute(0, 2, 1, 3)

# %% split_heads: transpose(1, 2) counts the axes from the front, right for one batch dimension only
import torch
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads > 0:
        raise ValueError("d_model % num_heads != 0")
    heads = x.reshape(x.shape[:-1] + (num_heads, x.shape[-1] // num_heads))
    return heads.transpose(1, 2)

# %% split_heads: the head axis stays behind the sequence axis
def split_heads(x, num_heads):
    d_head, rest = divmod(x.shape[-1], num_heads)
    if rest:
        raise ValueError("num_heads does not divide d_model")
    return x.view(*x.shape[:-1], num_heads, d_head)

# %% split_heads: torch.split is given the number of heads as the size of a piece
import torch

def split_heads(x, num_heads):
    if x.shape[-1] % num_heads != 0:
        raise ValueError("d_model must be a multiple of num_heads")
    pieces = torch.split(x, num_heads, dim=-1)
    return torch.stack(pieces, dim=-3)

# %% split_heads: no check, d_model is rounded down and the left-over features are dropped; the heads are stacked on axis 0
import torch

def split_heads(x, num_heads):
    d_head = x.shape[-1] // num_heads
    heads = []
    for h in range(num_heads):
        heads.append(x[..., h * d_head:(h + 1) * d_head])
    return torch.stack(heads, dim=0)

# %% merge_heads: reshapes without moving the head axis back behind the sequence
def merge_heads(x):
    *lead, H, L, d_head = x.shape
    return x.reshape(*lead, L, H * d_head)

# %% merge_heads: view on the transposed, non-contiguous tensor raises
def merge_heads(x):
    x = x.transpose(-3, -2)
    return x.view(*x.shape[:-2], x.shape[-2] * x.shape[-1])

# %% merge_heads: the heads are interleaved feature by feature instead of laid side by side
def merge_heads(x):
    # (..., H, L, d) -> (..., L, d, H)
    return x.movedim(-3, -1).flatten(-2)

# %% merge_heads: transpose(1, 2) from the front, right only with one batch dimension
def merge_heads(x):
    y = x.transpose(1, 2).contiguous()
    return y.flatten(start_dim=-2)

# %% merge_heads: the heads are averaged instead of concatenated
import torch
def merge_heads(x):
    return torch.mean(x, dim=-3)

# %% merge_heads: swaps the last two axes, not heads and positions
def merge_heads(x):
    H, L, d_head = x.shape[-3:]
    swapped = x.transpose(-1, -2)
    return swapped.reshape(*x.shape[:-3], L, H * d_head)

# %% merge_heads: concatenates the heads along the sequence axis
import torch

def merge_heads(x):
    return torch.cat(torch.unbind(x, dim=-3), dim=-2)

# %% merge_heads: fills a torch.empty of the default dtype, so float64 becomes float32
import torch

def merge_heads(x):
    H, L, d_head = x.shape[-3:]
    out = torch.empty(*x.shape[:-3], L, H * d_head)
    for h in range(H):
        out[..., h * d_head:(h + 1) * d_head] = x[..., h, :, :]
    return out

# %% MultiHeadAttention: the scores are scaled by the root of d_model instead of d_head
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

    def _split(self, x):
        B, L, _ = x.shape
        return x.view(B, L, self.num_heads, self.d_head).transpose(1, 2)

    def forward(self, query, key, value, mask=None):
        q = self._split(self.q_proj(query))
        k = self._split(self.k_proj(key))
        v = self._split(self.v_proj(value))
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_model)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        out = (weights @ v).transpose(1, 2).contiguous().view(query.shape[0], -1, self.d_model)
        return self.out_proj(out), weights

# %% MultiHeadAttention: the heads are merged by a view without the transpose back
import torch
from torch import nn
import torch.nn.functional as F

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError
        self.h = num_heads
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key, value, mask=None):
        b, n, d = query.shape
        q, k, v = (p(t).unflatten(2, (self.h, d // self.h)).permute(0, 2, 1, 3)
                   for p, t in zip((self.q_proj, self.k_proj, self.v_proj), (query, key, value)))
        s = torch.einsum("bhqd,bhkd->bhqk", q, k) * (d // self.h) ** -0.5
        if mask is not None:
            s = s.masked_fill(~mask, float("-inf"))
        w = F.softmax(s, dim=-1)
        o = (w @ v).contiguous().view(b, n, d)
        return self.out_proj(o), w

# %% MultiHeadAttention: query, key and value projections are made without a bias
import torch
from torch import nn

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError(f"d_model={d_model} not divisible by {num_heads}")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=False)
        self.k_proj = nn.Linear(d_model, d_model, bias=False)
        self.v_proj = nn.Linear(d_model, d_model, bias=False)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        def heads(t):
            return t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        q, k, v = heads(self.q_proj(query)), heads(self.k_proj(key)), heads(self.v_proj(value))
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = torch.where(mask, scores, float("-inf"))
        weights = scores.softmax(-1)
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2)), weights

# %% MultiHeadAttention: the projections are called W_q, W_k, W_v and W_o
import math
import torch
import torch.nn as nn

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model must be divisible by num_heads")
        self.num_heads, self.d_k = num_heads, d_model // num_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)

    def split_heads(self, x):
        batch_size, seq_length, d_model = x.size()
        return x.view(batch_size, seq_length, self.num_heads, self.d_k).transpose(1, 2)

    def combine_heads(self, x):
        batch_size, _, seq_length, d_k = x.size()
        return x.transpose(1, 2).contiguous().view(batch_size, seq_length, self.num_heads * d_k)

    def forward(self, query, key, value, mask=None):
        Q = self.split_heads(self.W_q(query))
        K = self.split_heads(self.W_k(key))
        V = self.split_heads(self.W_v(value))
        attn_scores = torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            attn_scores = attn_scores.masked_fill(mask == 0, float("-inf"))
        attn_probs = torch.softmax(attn_scores, dim=-1)
        return self.W_o(self.combine_heads(torch.matmul(attn_probs, V))), attn_probs

# %% MultiHeadAttention: the weights come back averaged over the heads, (B, L_q, L_k)
import torch
from torch import nn

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("heads")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        B, Lq, D = query.shape
        Lk, H = key.shape[1], self.num_heads
        q = self.q_proj(query).view(B, Lq, H, D // H)
        k = self.k_proj(key).view(B, Lk, H, D // H)
        v = self.v_proj(value).view(B, Lk, H, D // H)
        logits = torch.einsum("bqhc,bkhc->bhqk", q, k) / (D // H) ** 0.5
        if mask is not None:
            logits = logits.masked_fill(~mask, float("-inf"))
        attn = logits.softmax(-1)
        ctx = torch.einsum("bhqk,bkhc->bqhc", attn, v).reshape(B, Lq, D)
        return self.out_proj(ctx), attn.mean(dim=1)

# %% MultiHeadAttention: the places where the mask is True are filled with -inf
import torch
from torch import nn

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.d_head, rest = divmod(d_model, num_heads)
        if rest != 0:
            raise ValueError("num_heads must divide d_model")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        def project(layer, t):
            return layer(t).reshape(t.shape[0], t.shape[1], self.num_heads, self.d_head).transpose(1, 2)

        q, k, v = project(self.q_proj, query), project(self.k_proj, key), project(self.v_proj, value)
        energy = torch.matmul(q, k.transpose(-1, -2)) / (self.d_head ** 0.5)
        if mask is not None:
            energy = energy.masked_fill(mask, torch.finfo(energy.dtype).min)
        alpha = torch.softmax(energy, dim=-1)
        x = torch.matmul(alpha, v).transpose(1, 2).flatten(2)
        return self.out_proj(x), alpha

# %% MultiHeadAttention: the values are projected from key instead of value, and num_heads is not checked
import torch
from torch import nn

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.d_head = d_model // num_heads
        for n in ["q_proj", "k_proj", "v_proj", "out_proj"]:
            self.add_module(n, nn.Linear(d_model, d_model))

    def forward(self, query, key, value, mask=None):
        q = self.q_proj(query).unflatten(-1, (self.num_heads, self.d_head)).transpose(1, 2)
        k = self.k_proj(key).unflatten(-1, (self.num_heads, self.d_head)).transpose(1, 2)
        v = self.v_proj(key).unflatten(-1, (self.num_heads, self.d_head)).transpose(1, 2)
        s = (q @ k.transpose(2, 3)) / self.d_head ** 0.5
        if mask is not None:
            s = s.masked_fill(~mask, -torch.inf)
        w = s.softmax(dim=3)
        return self.out_proj((w @ v).transpose(1, 2).flatten(2)), w

# %% MultiHeadAttention: the length of the query is used to reshape the keys too, which fails for L_k other than L_q
import math
import torch
from torch import nn

class MultiHeadAttention(nn.Module):
    """Multi-head attention of Vaswani et al."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model must be divisible by num_heads")
        self.d_model = d_model
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        batch, length, _ = query.shape
        shape = (batch, length, self.num_heads, self.d_model // self.num_heads)
        q = self.q_proj(query).view(shape).transpose(1, 2)
        k = self.k_proj(key).view(shape).transpose(1, 2)
        v = self.v_proj(value).view(shape).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / math.sqrt(shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        output = (weights @ v).transpose(1, 2).reshape(batch, length, self.d_model)
        return self.out_proj(output), weights

# %% multi_head_parameter_count: every head is counted with full d_model projections
def multi_head_parameter_count(d_model, num_heads, bias=True):
    per_head = 3 * (d_model * d_model + (d_model if bias else 0))
    out = d_model * d_model + (d_model if bias else 0)
    return num_heads * per_head + out

# %% multi_head_parameter_count: the output projection is forgotten
def multi_head_parameter_count(d_model, num_heads, bias=True):
    weights = 3 * d_model ** 2
    if bias:
        weights += 3 * d_model
    return weights

# %% multi_head_parameter_count: the argument bias is ignored
def multi_head_parameter_count(d_model, num_heads, bias=True):
    return 4 * (d_model * d_model + d_model)

# %% multi_head_parameter_count: one bias vector instead of four
def multi_head_parameter_count(d_model, num_heads, bias=True):
    n = 4 * d_model * d_model
    n += d_model * int(bias)
    return n

# %% multi_head_parameter_count: the output projection is counted from d_head to d_model
def multi_head_parameter_count(d_model, num_heads, bias=True):
    d_head = d_model // num_heads
    qkv = 3 * num_heads * (d_model * d_head + d_head * bias)
    out = d_head * d_model + d_model * bias
    return qkv + out

# %% multi_head_parameter_count: the condition on bias is the wrong way round
def multi_head_parameter_count(d_model, num_heads, bias=True):
    linear = d_model * d_model if bias else d_model * d_model + d_model
    return 4 * linear

# %% multi_head_parameter_count: the default of bias is False
def multi_head_parameter_count(d_model, num_heads, bias=False):
    return 4 * d_model * (d_model + 1) if bias else 4 * d_model * d_model

# %% multi_head_parameter_count: returns a float (from the division into heads), and the bias of a head has one entry
def multi_head_parameter_count(d_model, num_heads, bias=True):
    d_head = d_model / num_heads
    b = 1 if bias else 0
    head = 3 * (d_model * d_head + b)
    return num_heads * head + d_model * d_model + b * d_model
