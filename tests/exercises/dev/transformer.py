# %% layer_norm: unbiased variance, divided by n - 1
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    var = x.var(dim=-1, keepdim=True)
    return gain * (x - mean) / torch.sqrt(var + eps) + bias


# %% layer_norm: eps is added to the standard deviation instead of under the root
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    std = x.std(-1, keepdim=True, unbiased=False)
    return gain * (x - mean) / (std + eps) + bias


# %% layer_norm: the statistics are taken over positions and features together
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    dims = (-2, -1)
    mean = x.mean(dim=dims, keepdim=True)
    var = ((x - mean) ** 2).mean(dim=dims, keepdim=True)
    normalised = (x - mean) * torch.rsqrt(var + eps)
    return normalised * gain + bias


# %% layer_norm: ignores the argument eps
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    mu = torch.mean(x, dim=-1, keepdim=True)
    sigma2 = torch.mean((x - mu) ** 2, dim=-1, keepdim=True)
    x_hat = (x - mu) / torch.sqrt(sigma2 + 1e-5)
    return x_hat * gain + bias


# %% layer_norm: variance as mean of squares minus square of the mean, which cancels for a large mean
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    mean_of_squares = x.pow(2).mean(dim=-1, keepdim=True)
    variance = (mean_of_squares - mean.pow(2)).clamp(min=0)
    return (x - mean) / (variance + eps).sqrt() * gain + bias


# %% layer_norm: centres x in place and so changes the input
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    x -= x.mean(dim=-1, keepdim=True)
    var = (x * x).mean(dim=-1, keepdim=True)
    return x / torch.sqrt(var + eps) * gain + bias


# %% FeedForward: the ReLU is missing, two linear maps in a row
import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        hidden = self.linear1(x)
        return self.linear2(hidden)


# %% FeedForward: GELU instead of ReLU
import torch
import torch.nn.functional as F
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(F.gelu(self.linear1(x)))


# %% FeedForward: a second ReLU after the output layer
import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.relu = nn.ReLU()

    def forward(self, x):
        x = self.relu(self.linear1(x))
        x = self.relu(self.linear2(x))
        return x


# %% FeedForward: the residual connection is already added inside
import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        residual = x
        out = torch.relu(self.linear1(x))
        out = self.linear2(out)
        return out + residual


# %% FeedForward: dropout that was not asked for, so the result is random in training mode
import torch
import torch.nn as nn


class FeedForward(nn.Module):
    "Implements FFN equation."

    def __init__(self, d_model, d_ff):
        super(FeedForward, self).__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        return self.linear2(self.dropout(self.linear1(x).relu()))


# %% FeedForward: an nn.Sequential instead of the named sub-modules, weights cannot be loaded
import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        return self.net(x)


# %% EncoderLayer: pre-norm instead of post-norm
import torch
from torch import nn

from course_lib import FeedForward, MultiHeadAttention


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


# %% EncoderLayer: normalises the sub-layer before the residual is added instead of the sum
import torch
from torch import nn

from course_lib import FeedForward, MultiHeadAttention


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        attended, _ = self.self_attention(x, x, x, mask=mask)
        x = x + self.norm1(attended)
        return x + self.norm2(self.feed_forward(x))


# %% EncoderLayer: norm1 is used in both places, norm2 never
import torch
import torch.nn as nn

from course_lib import FeedForward, MultiHeadAttention


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super(EncoderLayer, self).__init__()
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)

    def forward(self, x, mask=None):
        _x, _ = self.self_attention(x, x, x, mask)
        x = self.norm1(x + _x)
        _x = self.feed_forward(x)
        x = self.norm1(x + _x)
        return x


# %% EncoderLayer: the second residual adds the input of the layer instead of the output of norm1
import torch
from torch import nn

from course_lib import FeedForward, MultiHeadAttention


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        attn_output, _ = self.self_attention(x, x, x, mask)
        normed = self.norm1(x + attn_output)
        ff_output = self.feed_forward(normed)
        return self.norm2(x + ff_output)


# %% EncoderLayer: the mask is not handed on to the attention
import torch
from torch import nn

from course_lib import FeedForward, MultiHeadAttention


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        output, weights = self.self_attention(x, x, x)
        x = self.norm1(x + output)
        return self.norm2(x + self.feed_forward(x))


# %% EncoderLayer: dropout on the sub-layers although the layer is to have none
import torch
from torch import nn

from course_lib import FeedForward, MultiHeadAttention


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x, mask=None):
        attn_output = self.self_attention(x, x, x, mask)[0]
        x = self.norm1(x + self.dropout(attn_output))
        ff_output = self.feed_forward(x)
        x = self.norm2(x + self.dropout(ff_output))
        return x


# %% EncoderLayer: the layer norms use eps 1e-6 instead of the default
import torch
from torch import nn

from course_lib import FeedForward, MultiHeadAttention


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = (nn.LayerNorm(d_model, eps=1e-6) for _ in range(2))

    def forward(self, x, mask=None):
        x = self.norm1(x + self.self_attention(x, x, x, mask)[0])
        return self.norm2(x + self.feed_forward(x))


# %% EncoderLayer: the residual is added in place and changes the input
import torch
from torch import nn

from course_lib import FeedForward, MultiHeadAttention


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        attention, _ = self.self_attention(x, x, x, mask)
        x += attention
        x = self.norm1(x)
        y = x + self.feed_forward(x)
        return self.norm2(y)


# %% DecoderLayer: query and memory swapped in the cross-attention, the memory attends to the target
import torch
from torch import nn

from course_lib import FeedForward, MultiHeadAttention


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
        attended, _ = self.self_attention(x, x, x, self_mask)
        x = self.norm1(x + attended)
        attended, _ = self.cross_attention(memory, x, x, memory_mask)
        x = self.norm2(x + attended)
        return self.norm3(x + self.feed_forward(x))


# %% DecoderLayer: the two masks are handed to the wrong attentions
import torch
from torch import nn

from course_lib import FeedForward, MultiHeadAttention


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.norm1(x + self.self_attention(x, x, x, memory_mask)[0])
        x = self.norm2(x + self.cross_attention(x, memory, memory, self_mask)[0])
        x = self.norm3(x + self.feed_forward(x))
        return x


# %% DecoderLayer: norm2 and norm3 have changed places
import torch
from torch import nn

from course_lib import FeedForward, MultiHeadAttention


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
        self_out, _ = self.self_attention(x, x, x, mask=self_mask)
        x = self.norm1(x + self_out)
        cross_out, _ = self.cross_attention(x, memory, memory, mask=memory_mask)
        x = self.norm3(x + cross_out)
        x = self.norm2(x + self.feed_forward(x))
        return x


# %% DecoderLayer: the cross-attention asks with the input of the layer instead of the output of norm1
import torch
import torch.nn as nn

from course_lib import FeedForward, MultiHeadAttention


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
        attn1, _ = self.self_attention(x, x, x, self_mask)
        out1 = self.norm1(x + attn1)
        attn2, _ = self.cross_attention(x, memory, memory, memory_mask)
        out2 = self.norm2(out1 + attn2)
        ffn = self.feed_forward(out2)
        return self.norm3(out2 + ffn)


# %% DecoderLayer: no residual connection around the cross-attention
import torch
from torch import nn

from course_lib import FeedForward, MultiHeadAttention


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
        attended, _ = self.self_attention(x, x, x, self_mask)
        x = self.norm1(x + attended)
        x, _ = self.cross_attention(x, memory, memory, memory_mask)
        x = self.norm2(x)
        x = self.norm3(x + self.feed_forward(x))
        return x


# %% DecoderLayer: without a self mask it makes a causal one of its own instead of attending everywhere
import torch
from torch import nn

from course_lib import FeedForward, MultiHeadAttention


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
        if self_mask is None:
            length = x.size(1)
            self_mask = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        h = self.norm1(x + self.self_attention(x, x, x, self_mask)[0])
        h = self.norm2(h + self.cross_attention(h, memory, memory, memory_mask)[0])
        return self.norm3(h + self.feed_forward(h))


# %% DecoderLayer: calls self_attention a second time where the cross-attention belongs
import torch
from torch import nn

from course_lib import FeedForward, MultiHeadAttention


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
        residual = x
        x, _ = self.self_attention(x, x, x, self_mask)
        x = self.norm1(residual + x)
        residual = x
        x, _ = self.self_attention(x, memory, memory, memory_mask)
        x = self.norm2(residual + x)
        residual = x
        x = self.feed_forward(x)
        return self.norm3(residual + x)


# %% DecoderLayer: the memory mask is not handed on
import torch
from torch import nn

from course_lib import FeedForward, MultiHeadAttention


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
        context, _ = self.cross_attention(query=x, key=memory, value=memory)
        x = self.norm2(x + context)
        return self.norm3(x + self.feed_forward(x))


# %% transformer_parameter_count: the decoder layer is counted with one attention only
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    attention = 4 * (d_model * d_model + d_model)
    ff = d_model * d_ff + d_ff + d_ff * d_model + d_model
    norm = 2 * d_model
    encoder = attention + ff + 2 * norm
    decoder = attention + ff + 3 * norm
    return vocab_size * d_model + num_layers * (encoder + decoder)


# %% transformer_parameter_count: counts three separate embedding matrices although one is shared
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    attn = 4 * d_model ** 2 + 4 * d_model
    ffn = 2 * d_model * d_ff + d_ff + d_model
    ln = 2 * d_model
    enc = num_layers * (attn + ffn + 2 * ln)
    dec = num_layers * (2 * attn + ffn + 3 * ln)
    embeddings = 3 * vocab_size * d_model
    return enc + dec + embeddings


# %% transformer_parameter_count: two layer norms in the decoder layer instead of three
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    mha = 4 * (d_model + 1) * d_model
    ffn = (d_model + 1) * d_ff + (d_ff + 1) * d_model
    norms = 2 * 2 * d_model
    encoder_layer = mha + ffn + norms
    decoder_layer = 2 * mha + ffn + norms
    return vocab_size * d_model + num_layers * (encoder_layer + decoder_layer)


# %% transformer_parameter_count: adds a final norm after encoder and decoder
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    total = vocab_size * d_model
    total += num_layers * (attention + feed_forward + 2 * norm) + norm
    total += num_layers * (2 * attention + feed_forward + 3 * norm) + norm
    return total


# %% transformer_parameter_count: the biases of the attention projections are forgotten
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    attention = 4 * d_model * d_model
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    layer_norm = d_model + d_model
    encoder = num_layers * (attention + feed_forward + 2 * layer_norm)
    decoder = num_layers * (2 * attention + feed_forward + 3 * layer_norm)
    return encoder + decoder + vocab_size * d_model


# %% transformer_parameter_count: counts a bias for the output projection
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    def linear(n_in, n_out):
        return n_in * n_out + n_out

    attention = 4 * linear(d_model, d_model)
    ffn = linear(d_model, d_ff) + linear(d_ff, d_model)
    norm = 2 * d_model
    layers = num_layers * (3 * attention + 2 * ffn + 5 * norm)
    return vocab_size * d_model + layers + vocab_size


# %% EncoderLayer: own attention, no scaling
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        b = query.size(0)
        q = self.q_proj(query).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        k = self.k_proj(key).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        v = self.v_proj(value).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1))
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        attn = torch.softmax(scores, dim=-1)
        out = torch.matmul(attn, v)
        out = out.transpose(1, 2).contiguous().view(b, -1, self.num_heads * self.d_k)
        return self.out_proj(out), attn


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
        attended, _ = self.self_attention(x, x, x, mask)
        x = self.norm1(x + attended)
        return self.norm2(x + self.feed_forward(x))


# %% DecoderLayer: own attention, softmax over heads
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        b = query.size(0)
        q = self.q_proj(query).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        k = self.k_proj(key).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        v = self.v_proj(value).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        attn = torch.softmax(scores, dim=1)
        out = torch.matmul(attn, v)
        out = out.transpose(1, 2).contiguous().view(b, -1, self.num_heads * self.d_k)
        return self.out_proj(out), attn


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
        attended, _ = self.self_attention(x, x, x, self_mask)
        x = self.norm1(x + attended)
        attended, _ = self.cross_attention(x, memory, memory, memory_mask)
        x = self.norm2(x + attended)
        return self.norm3(x + self.feed_forward(x))


# %% EncoderLayer: own attention, mask of 3 axes per sequence
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        b = query.size(0)
        q = self.q_proj(query).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        k = self.k_proj(key).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        v = self.v_proj(value).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            if mask.dim() == 3:
                mask = mask.unsqueeze(1)
            scores = scores.masked_fill(mask == 0, -1e9)
        attn = torch.softmax(scores, dim=-1)
        out = torch.matmul(attn, v)
        out = out.transpose(1, 2).contiguous().view(b, -1, self.num_heads * self.d_k)
        return self.out_proj(out), attn


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
        attended, _ = self.self_attention(x, x, x, mask)
        x = self.norm1(x + attended)
        return self.norm2(x + self.feed_forward(x))


# %% DecoderLayer: own attention, masked scores filled with 0
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        b = query.size(0)
        q = self.q_proj(query).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        k = self.k_proj(key).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        v = self.v_proj(value).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, 0)
        attn = torch.softmax(scores, dim=-1)
        out = torch.matmul(attn, v)
        out = out.transpose(1, 2).contiguous().view(b, -1, self.num_heads * self.d_k)
        return self.out_proj(out), attn


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
        attended, _ = self.self_attention(x, x, x, self_mask)
        x = self.norm1(x + attended)
        attended, _ = self.cross_attention(x, memory, memory, memory_mask)
        x = self.norm2(x + attended)
        return self.norm3(x + self.feed_forward(x))


# %% EncoderLayer: own norm, unbiased std and eps outside
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        b = query.size(0)
        q = self.q_proj(query).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        k = self.k_proj(key).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        v = self.v_proj(value).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        attn = torch.softmax(scores, dim=-1)
        out = torch.matmul(attn, v)
        out = out.transpose(1, 2).contiguous().view(b, -1, self.num_heads * self.d_k)
        return self.out_proj(out), attn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(torch.relu(self.linear1(x)))


class LayerNorm(nn.Module):
    def __init__(self, d, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.bias = nn.Parameter(torch.zeros(d))
        self.eps = eps

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True)
        return self.weight * (x - mean) / (std + self.eps) + self.bias


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)

    def forward(self, x, mask=None):
        attended, _ = self.self_attention(x, x, x, mask)
        x = self.norm1(x + attended)
        return self.norm2(x + self.feed_forward(x))


# %% DecoderLayer: own attention, heads merged without transposing
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        b = query.size(0)
        q = self.q_proj(query).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        k = self.k_proj(key).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        v = self.v_proj(value).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        attn = torch.softmax(scores, dim=-1)
        out = torch.matmul(attn, v)
        out = out.contiguous().view(b, -1, self.num_heads * self.d_k)
        return self.out_proj(out), attn


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
        attended, _ = self.self_attention(x, x, x, self_mask)
        x = self.norm1(x + attended)
        attended, _ = self.cross_attention(x, memory, memory, memory_mask)
        x = self.norm2(x + attended)
        return self.norm3(x + self.feed_forward(x))


# %% DecoderLayer: own feed-forward, ReLU at the end
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        b = query.size(0)
        q = self.q_proj(query).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        k = self.k_proj(key).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        v = self.v_proj(value).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        attn = torch.softmax(scores, dim=-1)
        out = torch.matmul(attn, v)
        out = out.transpose(1, 2).contiguous().view(b, -1, self.num_heads * self.d_k)
        return self.out_proj(out), attn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return torch.relu(self.linear2(self.linear1(x)))


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
        attended, _ = self.self_attention(x, x, x, self_mask)
        x = self.norm1(x + attended)
        attended, _ = self.cross_attention(x, memory, memory, memory_mask)
        x = self.norm2(x + attended)
        return self.norm3(x + self.feed_forward(x))


# %% EncoderLayer: pre-norm, mask forgotten
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        b = query.size(0)
        q = self.q_proj(query).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        k = self.k_proj(key).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        v = self.v_proj(value).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        attn = torch.softmax(scores, dim=-1)
        out = torch.matmul(attn, v)
        out = out.transpose(1, 2).contiguous().view(b, -1, self.num_heads * self.d_k)
        return self.out_proj(out), attn


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
        y = self.norm1(x)
        x = x + self.self_attention(y, y, y)[0]
        return x + self.feed_forward(self.norm2(x))


# %% DecoderLayer: masks combined
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        b = query.size(0)
        q = self.q_proj(query).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        k = self.k_proj(key).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        v = self.v_proj(value).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        attn = torch.softmax(scores, dim=-1)
        out = torch.matmul(attn, v)
        out = out.transpose(1, 2).contiguous().view(b, -1, self.num_heads * self.d_k)
        return self.out_proj(out), attn


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
        attended, _ = self.self_attention(x, x, x, self_mask)
        x = self.norm1(x + attended)
        attended, _ = self.cross_attention(x, memory, memory, self_mask if memory_mask is None else memory_mask)
        x = self.norm2(x + attended)
        return self.norm3(x + self.feed_forward(x))


# %% DecoderLayer: pre-norm with memory normed by norm2
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.d_k = d_model // num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        b = query.size(0)
        q = self.q_proj(query).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        k = self.k_proj(key).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        v = self.v_proj(value).view(b, -1, self.num_heads, self.d_k).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        attn = torch.softmax(scores, dim=-1)
        out = torch.matmul(attn, v)
        out = out.transpose(1, 2).contiguous().view(b, -1, self.num_heads * self.d_k)
        return self.out_proj(out), attn


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
        y = self.norm1(x)
        x = x + self.self_attention(y, y, y, self_mask)[0]
        y, m = self.norm2(x), self.norm2(memory)
        x = x + self.cross_attention(y, m, m, memory_mask)[0]
        return x + self.feed_forward(self.norm3(x))
