# %% layer_norm: torch.var is called with its default, so the variance is the unbiased one
import torch

def layer_norm(x, gain, bias, eps=1e-5):
    mu = x.mean(-1, keepdim=True)
    var = x.var(-1, keepdim=True)
    return gain * (x - mu) / torch.sqrt(var + eps) + bias

# %% layer_norm: eps is added to the standard deviation, outside the root
import torch

def layer_norm(x, gain, bias, eps=1e-5):
    centred = x - torch.mean(x, dim=-1, keepdim=True)
    sigma = (centred * centred).mean(dim=-1, keepdim=True).sqrt()
    normed = centred / (sigma + eps)
    return normed * gain + bias

# %% layer_norm: normalises over the sequence and feature axes together instead of the last axis only
import torch
def layer_norm(x, gain, bias, eps=1e-5):
    axes = tuple(range(1, x.dim())) if x.dim() > 1 else (0,)
    m = x.mean(dim=axes, keepdim=True)
    v = x.var(dim=axes, unbiased=False, keepdim=True)
    return (x - m) * torch.rsqrt(v + eps) * gain + bias

# %% layer_norm: subtracts the mean in place and so changes the argument x
import torch

def layer_norm(x, gain, bias, eps=1e-5):
    x -= x.mean(dim=-1, keepdim=True)
    variance = x.pow(2).mean(dim=-1, keepdim=True)
    x_hat = x / torch.sqrt(variance + eps)
    return gain * x_hat + bias

# %% layer_norm: variance as E[x^2] - E[x]^2, which cancels in float32 when the mean is large against the spread
import torch

def layer_norm(x, gain, bias, eps=1e-5):
    d = x.shape[-1]
    s1 = torch.einsum("...d->...", x) / d
    s2 = torch.einsum("...d,...d->...", x, x) / d
    var = torch.clamp(s2 - s1 ** 2, min=0)
    return (x - s1.unsqueeze(-1)) / (var + eps).sqrt().unsqueeze(-1) * gain + bias

# %% layer_norm: the bias is added before the multiplication with the gain, so it is scaled too
import torch

def _standardise(t, eps):
    m = t.mean(-1, keepdim=True)
    v = torch.var(t, dim=-1, keepdim=True, correction=0)
    return (t - m) / (v + eps) ** 0.5

def layer_norm(x, gain, bias, eps=1e-5):
    return gain * (_standardise(x, eps) + bias)

# %% layer_norm: mean and variance are taken under no_grad, so the gradient through the statistics is lost
import torch

def layer_norm(x, gain, bias, eps=1e-5):
    # the statistics are not parameters, no need to track them
    with torch.no_grad():
        mean = x.mean(dim=-1, keepdim=True)
        var = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(var + eps) * gain + bias

# %% layer_norm: divides by the variance instead of its root, and the default eps is 1e-6
import torch

def layer_norm(x, gain, bias, eps=1e-6):
    mean = x.mean(dim=-1)[..., None]
    diff = x - mean
    var = diff.square().mean(dim=-1)[..., None]
    return diff / (var + eps) * gain + bias

# %% FeedForward: a second ReLU follows linear2
import torch
import torch.nn as nn

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        for layer in (self.linear1, self.linear2):
            x = torch.relu(layer(x))
        return x

# %% FeedForward: GELU, as in BERT and GPT, instead of the ReLU
from torch import nn
import torch.nn.functional as F

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(F.gelu(self.linear1(x)))

# %% FeedForward: the layers live in a Sequential called net, so linear1 and linear2 do not exist
from torch import nn

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(d_model, d_ff),
            nn.ReLU(),
            nn.Linear(d_ff, d_model),
        )

    def forward(self, x):
        return self.net(x)

# %% FeedForward: adds the residual inside the block, which the layer adds again
import torch.nn as nn

class FeedForward(nn.Module):
    """Position-wise feed-forward block."""
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        hidden = self.linear1(x).clamp(min=0)
        return x + self.linear2(hidden)

# %% FeedForward: linear2 is made without a bias
import torch
from torch import nn

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        h = self.linear1(x)
        h = torch.maximum(h, torch.zeros_like(h))
        return self.linear2(h)

# %% FeedForward: the ReLU is applied to the input before linear1 instead of between, and in place so that x is changed
import torch
from torch import nn

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.act = nn.ReLU(inplace=True)

    def forward(self, x):
        return self.linear2(self.linear1(self.act(x)))

# %% FeedForward: linear2 is given its sizes in the order of linear1, so the shapes do not fit
import torch.nn as nn
import torch.nn.functional as F

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_model, d_ff)

    def forward(self, x):
        x = self.linear1(x)
        x = F.relu(x)
        x = self.linear2(x)
        return x

# %% FeedForward: a dropout of 0.1 after the ReLU, active in training mode
import torch.nn as nn
import torch.nn.functional as F

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, p=0.1):
        super(FeedForward, self).__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(p)

    def forward(self, x):
        return self.linear2(self.drop(F.relu(self.linear1(x))))

# %% EncoderLayer: pre-norm, the norm is applied to the input of each sublayer instead of to the sum
import math
import torch
from torch import nn

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.h = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        q, k, v = [p(t).unflatten(-1, (self.h, -1)).transpose(1, 2)
                   for p, t in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value))]
        s = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            s = s.masked_fill(~mask, float("-inf"))
        w = s.softmax(-1)
        return self.out_proj((w @ v).transpose(1, 2).flatten(2)), w

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(self.linear1(x).relu())

class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        h = self.norm1(x)
        x = x + self.self_attention(h, h, h, mask)[0]
        x = x + self.feed_forward(self.norm2(x))
        return x

# %% EncoderLayer: its multi-head attention scales by the root of d_model instead of the root of the head size
import torch
import torch.nn as nn
import torch.nn.functional as F

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
    def forward(self, x):
        return self.linear2(F.relu(self.linear1(x)))

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("num_heads must divide d_model")
        self.d_model, self.num_heads = d_model, num_heads
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, nn.Linear(d_model, d_model))

    def heads(self, x):
        B, L, D = x.shape
        return x.reshape(B, L, self.num_heads, D // self.num_heads)

    def forward(self, query, key, value, mask=None):
        q = self.heads(self.q_proj(query)) / self.d_model ** 0.5
        k = self.heads(self.k_proj(key))
        v = self.heads(self.v_proj(value))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k)
        if mask is not None:
            scores = torch.where(mask, scores, torch.full_like(scores, float("-inf")))
        weights = F.softmax(scores, dim=-1)
        out = torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(-2)
        return self.out_proj(out), weights

class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        attn, _ = self.self_attention(x, x, x, mask=mask)
        x = self.norm1(x + attn)
        return self.norm2(x + self.feed_forward(x))

# %% EncoderLayer: its multi-head attention merges the heads by a reshape without moving the head axis back
import math
import torch
from torch import nn

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        assert d_model % num_heads == 0
        self.num_heads = num_heads
        self.d_head = d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        B, Lq, D = query.shape
        Lk = key.shape[1]
        Q = self.q_proj(query).view(B, Lq, self.num_heads, self.d_head).transpose(1, 2)
        K = self.k_proj(key).view(B, Lk, self.num_heads, self.d_head).transpose(1, 2)
        V = self.v_proj(value).view(B, Lk, self.num_heads, self.d_head).transpose(1, 2)
        scores = torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(self.d_head)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        context = torch.matmul(weights, V).reshape(B, Lq, D)
        return self.out_proj(context), weights

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(torch.relu(self.linear1(x)))

class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        attn_out, _ = self.self_attention(x, x, x, mask)
        x = self.norm1(x + attn_out)
        ff_out = self.feed_forward(x)
        x = self.norm2(x + ff_out)
        return x

# %% EncoderLayer: its own LayerNorm uses the unbiased standard deviation with eps 1e-6 added to it, as in the Annotated Transformer
import torch
from torch import nn
from course_lib.multi_head import MultiHeadAttention

class LayerNorm(nn.Module):
    def __init__(self, features, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True)
        return self.weight * (x - mean) / (std + self.eps) + self.bias

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(self.linear1(x).relu())

class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)

    def forward(self, x, mask=None):
        y = self.norm1(x + self.self_attention(x, x, x, mask)[0])
        return self.norm2(y + self.feed_forward(y))

# %% EncoderLayer: the second residual starts from the layer's input x instead of the output of norm1
from torch import nn
from course_lib.multi_head import MultiHeadAttention

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(self.linear1(x).relu())

class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        attended, weights = self.self_attention(x, x, x, mask)
        normed = self.norm1(x + attended)
        out = self.feed_forward(normed)
        return self.norm2(x + out)

# %% EncoderLayer: in its multi-head attention the mask has the wrong polarity (the allowed places are filled with -1e9)
import torch
from torch import nn

def attention(q, k, v, mask):
    scores = torch.einsum("bhid,bhjd->bhij", q, k) * q.size(-1) ** -0.5
    if mask is not None:
        scores = scores.masked_fill(mask, -1e9)
    p = scores.softmax(dim=-1)
    return torch.einsum("bhij,bhjd->bhid", p, v), p

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def split(self, x):
        b, l, d = x.size()
        return x.view(b, l, self.num_heads, d // self.num_heads).permute(0, 2, 1, 3)

    def forward(self, query, key, value, mask=None):
        o, p = attention(self.split(self.q_proj(query)), self.split(self.k_proj(key)),
                         self.split(self.v_proj(value)), mask)
        return self.out_proj(o.permute(0, 2, 1, 3).flatten(2)), p

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(torch.relu(self.linear1(x)))

class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        x = self.norm1(x + self.self_attention(x, x, x, mask)[0])
        x = self.norm2(x + self.feed_forward(x))
        return x

# %% EncoderLayer: norm1 is used after both sublayers (norm2 is never called), and the mask is not handed to the attention
import torch
import torch.nn as nn
from course_lib.multi_head import MultiHeadAttention

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(torch.relu(self.linear1(x)))

class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        sublayers = [lambda t: self.self_attention(t, t, t)[0], self.feed_forward]
        for f in sublayers:
            x = self.norm1(x + f(x))
        return x

# %% EncoderLayer: the keys are computed with q_proj in its multi-head attention, so k_proj has no influence
import math
import torch
from torch import nn

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads, self.d_head = num_heads, d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        Q, K, V = self.q_proj(query), self.q_proj(key), self.v_proj(value)
        outs, ws = [], []
        for h in range(self.num_heads):
            sl = slice(h * self.d_head, (h + 1) * self.d_head)
            s = Q[..., sl] @ K[..., sl].transpose(-1, -2) / math.sqrt(self.d_head)
            if mask is not None:
                m = mask.expand(s.shape[0], self.num_heads, *s.shape[1:])[:, h]
                s = s.masked_fill(~m, -math.inf)
            w = torch.softmax(s, -1)
            ws.append(w)
            outs.append(w @ V[..., sl])
        return self.out_proj(torch.cat(outs, -1)), torch.stack(ws, 1)

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(torch.relu(self.linear1(x)))

class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        a, _ = self.self_attention(x, x, x, mask)
        x = self.norm1(a + x)
        return self.norm2(self.feed_forward(x) + x)

# %% DecoderLayer: in the cross-attention the queries come from memory and keys and values from x
from torch import nn
from course_lib.multi_head import MultiHeadAttention

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(self.linear1(x).relu())

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
        x = self.norm2(x + self.cross_attention(memory, x, x, memory_mask)[0])
        return self.norm3(x + self.feed_forward(x))

# %% DecoderLayer: the cross-attention is given self_mask instead of memory_mask
import torch
from torch import nn
from course_lib.multi_head import MultiHeadAttention

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(torch.relu(self.linear1(x)))

class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        sa, _ = self.self_attention(x, x, x, self_mask)
        x = self.norm1(x + sa)
        ca, _ = self.cross_attention(x, memory, memory, self_mask)
        x = self.norm2(x + ca)
        ff = self.feed_forward(x)
        x = self.norm3(x + ff)
        return x

# %% DecoderLayer: the cross-attention comes first and the self-attention second
import torch
import torch.nn as nn
import torch.nn.functional as F

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        def split(t):
            return t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        q, k, v = split(self.q_proj(query)), split(self.k_proj(key)), split(self.v_proj(value))
        s = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is not None:
            s = s.masked_fill(~mask, float("-inf"))
        w = F.softmax(s, -1)
        return self.out_proj((w @ v).transpose(1, 2).flatten(2)), w

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(F.relu(self.linear1(x)))

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
        # look at the source first, then at the target
        x = self.norm2(x + self.cross_attention(x, memory, memory, memory_mask)[0])
        x = self.norm1(x + self.self_attention(x, x, x, self_mask)[0])
        x = self.norm3(x + self.feed_forward(x))
        return x

# %% DecoderLayer: its multi-head attention splits with view(B, H, L, d_head) directly, so heads mix positions and features
import math
import torch
from torch import nn

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.H = num_heads
        self.dh = d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        B = query.shape[0]
        q = self.q_proj(query).reshape(B, self.H, -1, self.dh)
        k = self.k_proj(key).reshape(B, self.H, -1, self.dh)
        v = self.v_proj(value).reshape(B, self.H, -1, self.dh)
        s = q @ k.transpose(2, 3) / math.sqrt(self.dh)
        if mask is not None:
            s = s.masked_fill(mask.logical_not(), -math.inf)
        a = torch.softmax(s, dim=-1)
        o = (a @ v).reshape(B, -1, self.H * self.dh)
        return self.out_proj(o), a

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(torch.relu(self.linear1(x)))

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
        x = self.norm2(x + self.cross_attention(x, memory, memory, memory_mask)[0])
        x = self.norm3(x + self.feed_forward(x))
        return x

# %% DecoderLayer: a causal mask is made and used whenever self_mask is None
import torch
from torch import nn
from course_lib.multi_head import MultiHeadAttention

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(torch.relu(self.linear1(x)))

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
        if self_mask is None:  # a decoder must never see the future
            L = x.size(1)
            self_mask = torch.ones(L, L, dtype=torch.bool, device=x.device).tril()
        x = self.norm1(x + self.self_attention(x, x, x, self_mask)[0])
        x = self.norm2(x + self.cross_attention(x, memory, memory, memory_mask)[0])
        return self.norm3(x + self.feed_forward(x))

# %% DecoderLayer: norm2 and norm3 change places (norm3 after the cross-attention, norm2 after the feed-forward)
import torch
from torch import nn
from course_lib.multi_head import MultiHeadAttention

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(torch.relu(self.linear1(x)))

class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm2 = nn.LayerNorm(d_model)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        h1, _ = self.self_attention(x, x, x, self_mask)
        y = self.norm1(x + h1)
        h2, _ = self.cross_attention(y, memory, memory, memory_mask)
        z = self.norm3(y + h2)
        return self.norm2(z + self.feed_forward(z))

# %% DecoderLayer: its layer norm (as nn.LayerNorm with a shape) normalises over the whole sequence, and its attention skips out_proj
import torch
import torch.nn as nn

class Norm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.bias = nn.Parameter(torch.zeros(d))
    def forward(self, x):
        m = x.mean(dim=(1, 2), keepdim=True)
        v = x.var(dim=(1, 2), keepdim=True, unbiased=False)
        return (x - m) / torch.sqrt(v + 1e-5) * self.weight + self.bias

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)
    def forward(self, query, key, value, mask=None):
        f = lambda t: t.view(t.size(0), t.size(1), self.num_heads, -1).transpose(1, 2)
        q, k, v = f(self.q_proj(query)), f(self.k_proj(key)), f(self.v_proj(value))
        s = (q @ k.transpose(-1, -2)) * (q.size(-1) ** -0.5)
        if mask is not None:
            s = s.masked_fill(~mask, float("-inf"))
        w = s.softmax(-1)
        return (w @ v).transpose(1, 2).flatten(2), w

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
    def forward(self, x):
        return self.linear2(torch.relu(self.linear1(x)))

class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = Norm(d_model), Norm(d_model), Norm(d_model)
    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.norm1(x + self.self_attention(x, x, x, self_mask)[0])
        x = self.norm2(x + self.cross_attention(x, memory, memory, memory_mask)[0])
        return self.norm3(x + self.feed_forward(x))

# %% DecoderLayer: the residual around the cross-attention is missing
import torch
from torch import nn
import torch.nn.functional as F

class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError(f"{num_heads} heads do not divide {d_model}")
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        b, d = query.shape[0], query.shape[-1]
        h = self.num_heads
        q = self.q_proj(query).view(b, -1, h, d // h)
        k = self.k_proj(key).view(b, -1, h, d // h)
        v = self.v_proj(value).view(b, -1, h, d // h)
        scores = torch.einsum("bihc,bjhc->bhij", q, k) / (d // h) ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        w = F.softmax(scores, dim=-1)
        o = torch.einsum("bhij,bjhc->bihc", w, v).reshape(b, -1, d)
        return self.out_proj(o), w

class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(F.relu(self.linear1(x)))

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
        a, _ = self.self_attention(x, x, x, mask=self_mask)
        x = self.norm1(x + a)
        c, _ = self.cross_attention(x, memory, memory, mask=memory_mask)
        x = self.norm2(c)
        f = self.feed_forward(x)
        return self.norm3(x + f)

# %% transformer_parameter_count: the decoder layer is counted with one attention block instead of two
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    attn = 4 * (d_model * d_model + d_model)
    ffn = d_model * d_ff + d_ff + d_ff * d_model + d_model
    norm = 2 * d_model
    encoder = num_layers * (attn + ffn + 2 * norm)
    decoder = num_layers * (attn + ffn + 3 * norm)
    return vocab_size * d_model + encoder + decoder

# %% transformer_parameter_count: the biases of the attention projections are left out
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    attention = 4 * d_model ** 2
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    layer_norm = 2 * d_model
    enc = attention + feed_forward + 2 * layer_norm
    dec = 2 * attention + feed_forward + 3 * layer_norm
    return num_layers * (enc + dec) + vocab_size * d_model

# %% transformer_parameter_count: source, target and output each get a matrix of their own, though they are shared
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    lin = lambda i, o: i * o + o
    mha = 4 * lin(d_model, d_model)
    ff = lin(d_model, d_ff) + lin(d_ff, d_model)
    ln = 2 * d_model
    total = 3 * vocab_size * d_model
    for _ in range(num_layers):
        total += mha + ff + 2 * ln
        total += 2 * mha + ff + 3 * ln
    return total

# %% transformer_parameter_count: both feed-forward biases are counted with d_model entries
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    def attn():
        return 4 * d_model * (d_model + 1)
    def ffn():
        return 2 * (d_model * d_ff + d_model)
    per_layer = 3 * attn() + 2 * ffn() + 5 * 2 * d_model
    return num_layers * per_layer + vocab_size * d_model

# %% transformer_parameter_count: a layer norm is counted with its gain only
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    d = d_model
    attention = 4 * (d * d + d)
    mlp = (d * d_ff + d_ff) + (d_ff * d + d)
    norm = d
    encoder_layer = attention + mlp + norm * 2
    decoder_layer = attention * 2 + mlp + norm * 3
    return vocab_size * d + num_layers * (encoder_layer + decoder_layer)

# %% transformer_parameter_count: the layers are built with modules and a bias is added for the output projection
from torch import nn

def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    count = lambda m: sum(p.numel() for p in m.parameters())
    lin = count(nn.Linear(d_model, d_model))
    ff = count(nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model)))
    ln = count(nn.LayerNorm(d_model))
    embedding = vocab_size * d_model
    output_bias = vocab_size
    return embedding + output_bias + num_layers * (12 * lin + 2 * ff + 5 * ln)

# %% transformer_parameter_count: only two norms in the decoder layer, and final norms of both stacks are added
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    attention = 4 * d_model * d_model + 4 * d_model
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    layers = num_layers * ((attention + feed_forward + 2 * norm) + (2 * attention + feed_forward + 2 * norm))
    final = 2 * norm
    return vocab_size * d_model + layers + final

# %% transformer_parameter_count: num_layers is taken as the total and halved between encoder and decoder
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    attention = 4 * (d_model ** 2 + d_model)
    feed_forward = d_model * d_ff * 2 + d_ff + d_model
    norm = 2 * d_model
    num_encoder = num_layers // 2
    num_decoder = num_layers - num_encoder
    params = vocab_size * d_model
    params += num_encoder * (attention + feed_forward + 2 * norm)
    params += num_decoder * (2 * attention + feed_forward + 3 * norm)
    return params
