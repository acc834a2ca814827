# %% layer_norm: The variance is the unbiased one (divided by d - 1), PyTorch's default.
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    var = x.var(dim=-1, keepdim=True)
    return gain * (x - mean) / torch.sqrt(var + eps) + bias


# %% layer_norm: eps is added to the standard deviation, outside the root.
def layer_norm(x, gain, bias, eps=1e-5):
    mu = x.mean(-1, keepdim=True)
    sigma = x.std(-1, keepdim=True, unbiased=False)
    normed = (x - mu) / (sigma + eps)
    return normed * gain + bias


# %% layer_norm: Mean and variance are taken over positions and features together, not over the features alone.
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    axes = (-2, -1) if x.dim() > 1 else -1
    variance, mean = torch.var_mean(x, dim=axes, correction=0, keepdim=True)
    x_hat = (x - mean) * (variance + eps).rsqrt()
    return torch.addcmul(bias, x_hat, gain)


# %% layer_norm: Mean and variance lack keepdim and so line up with the wrong axis.
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    m = torch.mean(x, -1)
    v = torch.mean((x - m) ** 2, -1)
    y = (x - m) / torch.sqrt(v + eps)
    return y * gain + bias


# %% layer_norm: The mean is subtracted in place, which changes the caller's x.
def layer_norm(x, gain, bias, eps=1e-5):
    d = x.shape[-1]
    x -= x.sum(-1, keepdim=True) / d
    second_moment = x.pow(2).sum(-1, keepdim=True) / d
    return gain * (x / (second_moment + eps) ** 0.5) + bias


# %% layer_norm: The variance is the difference of E[x²] and E[x]², which cancels for a large mean in float32.
import torch


def moments(x):
    first = x.mean(-1, keepdim=True)
    second = (x * x).mean(-1, keepdim=True)
    return first, second - first * first


def layer_norm(x, gain, bias, eps=1e-5):
    mean, var = moments(x)
    scale = gain / torch.sqrt(var + eps)
    return (x - mean) * scale + bias


# %% FeedForward: The ReLU between the two layers is missing.
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        x = self.linear1(x)
        x = self.linear2(x)
        return x


# %% FeedForward: A second ReLU follows the second layer, so the output is never negative.
import torch.nn as nn
import torch.nn.functional as F


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super(FeedForward, self).__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        for layer in (self.linear1, self.linear2):
            x = F.relu(layer(x))
        return x


# %% FeedForward: Dropout is switched on, so in training mode the output is random.
import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.dropout = nn.Dropout(dropout)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(self.dropout(torch.relu(self.linear1(x))))


# %% FeedForward: The layers sit in a Sequential and have other names, so weights cannot be loaded.
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


# %% FeedForward: The residual connection is added inside, where the contract has none.
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.activation = nn.ReLU()
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        hidden = self.activation(self.linear1(x))
        return x + self.linear2(hidden)


# %% FeedForward: GELU is used instead of ReLU.
import torch.nn as nn
from torch.nn.functional import gelu


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        expanded = gelu(self.linear1(x))
        return self.linear2(expanded)


# %% EncoderLayer: Pre-norm instead of post-norm: the norm stands before each sub-layer.
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
        normed = self.norm1(x)
        attended, _ = self.self_attention(normed, normed, normed, mask)
        x = x + attended
        return x + self.feed_forward(self.norm2(x))


# %% EncoderLayer: The residual connection around the feed-forward network is missing.
import torch.nn as nn

from course_lib import FeedForward, MultiHeadAttention


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super(EncoderLayer, self).__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        attn_out, attn_weights = self.self_attention(x, x, x, mask=mask)
        out1 = self.norm1(x + attn_out)
        out2 = self.norm2(self.feed_forward(out1))
        return out2


# %% EncoderLayer: The mask is accepted and not passed on to the attention.
from torch import nn

import course_lib


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = course_lib.MultiHeadAttention(d_model, num_heads)
        self.feed_forward = course_lib.FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        y, _ = self.self_attention(query=x, key=x, value=x)
        x = self.norm1(x + y)
        x = self.norm2(x + self.feed_forward(x))
        return x


# %% EncoderLayer: norm1 is used after both sub-layers and norm2 never.
from torch import nn

from course_lib import FeedForward, MultiHeadAttention


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def add_and_norm(self, x, sublayer_output):
        return self.norm1(x + sublayer_output)

    def forward(self, x, mask=None):
        x = self.add_and_norm(x, self.self_attention(x, x, x, mask)[0])
        return self.add_and_norm(x, self.feed_forward(x))


# %% EncoderLayer: The second residual comes from the layer's input instead of from the first norm's output.
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
        residual = x
        h, _ = self.self_attention(x, x, x, mask)
        h = self.norm1(h + residual)
        h = self.feed_forward(h)
        return self.norm2(h + residual)


# %% EncoderLayer: The norm is applied to the sub-layer's output before the residual is added, not to the sum.
import torch.nn as nn

from course_lib.multi_head import MultiHeadAttention
from course_lib.transformer import FeedForward


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        context = self.self_attention(x, x, x, mask)[0]
        x = x + self.norm1(context)
        x = x + self.norm2(self.feed_forward(x))
        return x


# %% DecoderLayer: The two masks are exchanged between self-attention and cross-attention.
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
        attn, _ = self.self_attention(x, x, x, memory_mask)
        x = self.norm1(x + attn)
        attn, _ = self.cross_attention(x, memory, memory, self_mask)
        x = self.norm2(x + attn)
        return self.norm3(x + self.feed_forward(x))


# %% DecoderLayer: The padding mask of the memory is forgotten in cross-attention.
import torch.nn as nn

from course_lib import FeedForward, MultiHeadAttention


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super(DecoderLayer, self).__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.norm2 = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        self_out = self.self_attention(query=x, key=x, value=x, mask=self_mask)[0]
        x1 = self.norm1(self_out + x)
        cross_out = self.cross_attention(query=x1, key=memory, value=memory)[0]
        x2 = self.norm2(cross_out + x1)
        ff_out = self.feed_forward(x2)
        return self.norm3(ff_out + x2)


# %% DecoderLayer: Query and memory are exchanged in cross-attention: the source asks and the target answers.
from torch import nn

from course_lib import FeedForward, MultiHeadAttention


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention, self.cross_attention = (MultiHeadAttention(d_model, num_heads) for _ in range(2))
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        y, _ = self.self_attention(x, x, x, self_mask)
        x = self.norm1(x + y)
        y, _ = self.cross_attention(memory, x, x, memory_mask)
        x = self.norm2(x + y)
        y = self.feed_forward(x)
        return self.norm3(x + y)


# %% DecoderLayer: Pre-norm instead of post-norm: the norm stands before each sub-layer.
from torch import nn

import course_lib


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = course_lib.MultiHeadAttention(d_model, num_heads)
        self.cross_attention = course_lib.MultiHeadAttention(d_model, num_heads)
        self.feed_forward = course_lib.FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        z = self.norm1(x)
        x = x + self.self_attention(z, z, z, self_mask)[0]
        z = self.norm2(x)
        x = x + self.cross_attention(z, memory, memory, memory_mask)[0]
        z = self.norm3(x)
        x = x + self.feed_forward(z)
        return x


# %% DecoderLayer: Cross-attention runs through self_attention's weights; cross_attention is never used.
from torch import nn

from course_lib import FeedForward, MultiHeadAttention


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        for n in (1, 2, 3):
            setattr(self, f"norm{n}", nn.LayerNorm(d_model))

    def _attend(self, x, source, mask):
        out, _ = self.self_attention(x, source, source, mask)
        return x + out

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.norm1(self._attend(x, x, self_mask))
        x = self.norm2(self._attend(x, memory, memory_mask))
        return self.norm3(x + self.feed_forward(x))


# %% DecoderLayer: The residual connection around cross-attention is missing.
from torch import nn

from course_lib.multi_head import MultiHeadAttention
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
        target, target_weights = self.self_attention(x, x, x, self_mask)
        target = self.norm1(x + target)
        context, context_weights = self.cross_attention(target, memory, memory, memory_mask)
        context = self.norm2(context)
        return self.norm3(context + self.feed_forward(context))


# %% transformer_parameter_count: Source, target and output each get an embedding matrix, though one is shared.
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    attn = 4 * (d_model * d_model + d_model)
    ffn = d_model * d_ff + d_ff + d_ff * d_model + d_model
    ln = 2 * d_model
    encoder = num_layers * (attn + ffn + 2 * ln)
    decoder = num_layers * (2 * attn + ffn + 3 * ln)
    return 3 * vocab_size * d_model + encoder + decoder


# %% transformer_parameter_count: The decoder's cross-attention is forgotten.
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    attention = 4 * d_model**2 + 4 * d_model
    feed_forward = 2 * d_model * d_ff + d_model + d_ff
    encoder_layer = attention + feed_forward + 2 * 2 * d_model
    decoder_layer = attention + feed_forward + 3 * 2 * d_model
    return vocab_size * d_model + num_layers * (encoder_layer + decoder_layer)


# %% transformer_parameter_count: The biases of all linear layers are left out.
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    mha = 4 * d_model * d_model
    mlp = 2 * d_model * d_ff
    norms = 5 * 2 * d_model
    per_pair = 3 * mha + 2 * mlp + norms
    return vocab_size * d_model + num_layers * per_pair


# %% transformer_parameter_count: A layer norm is counted with its gain only, d instead of 2d.
def linear(n_in, n_out):
    return n_in * n_out + n_out


def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    attention = sum(linear(d_model, d_model) for _ in range(4))
    ff = linear(d_model, d_ff) + linear(d_ff, d_model)
    norm = d_model
    total = vocab_size * d_model
    for _ in range(num_layers):
        total += attention + ff + 2 * norm
        total += attention + attention + ff + 3 * norm
    return total


# %% transformer_parameter_count: The decoder layer is counted with two norms instead of three.
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    d = d_model
    self_attention = cross_attention = 4 * d * d + 4 * d
    feed_forward = (d * d_ff + d_ff) + (d_ff * d + d)
    layer_norms = 2 * (2 * d)
    encoder = self_attention + feed_forward + layer_norms
    decoder = self_attention + cross_attention + feed_forward + layer_norms
    embedding = vocab_size * d
    return embedding + num_layers * encoder + num_layers * decoder


# %% transformer_parameter_count: A bias of the output projection is added, though the contract has none.
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    counts = {
        "embedding": vocab_size * d_model,
        "output bias": vocab_size,
        "attention": 3 * num_layers * 4 * (d_model + 1) * d_model,
        "feed forward": 2 * num_layers * ((d_model + 1) * d_ff + (d_ff + 1) * d_model),
        "norms": 5 * num_layers * 2 * d_model,
    }
    return sum(counts.values())
