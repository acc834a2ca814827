# %% layer_norm: textbook, mean and biased variance
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    var = x.var(dim=-1, keepdim=True, unbiased=False)
    return gain * (x - mean) / torch.sqrt(var + eps) + bias


# %% layer_norm: loops over the features
def layer_norm(x, gain, bias, eps=1e-5):
    d = x.shape[-1]
    mean = 0
    for i in range(d):
        mean = mean + x[..., i] / d
    variance = 0
    for i in range(d):
        variance = variance + (x[..., i] - mean) ** 2 / d
    inverse = (variance + eps) ** -0.5
    return (x - mean[..., None]) * inverse[..., None] * gain + bias


# %% layer_norm: float64 inside, einsum, warns and prints
import warnings

import torch


def layer_norm(x, gain, bias, eps=1e-5):
    warnings.warn("float64")
    x64 = x.double()
    centred = x64 - x64.mean(-1, keepdim=True)
    var = torch.einsum("...d,...d->...", centred, centred).div(x.shape[-1]).unsqueeze(-1)
    print("mean variance", var.mean().item())
    return (centred / (var + eps).sqrt() * gain.double() + bias.double()).to(x.dtype)


# %% layer_norm: the centring matrix and functional.normalize with a column for eps
import torch
import torch.nn.functional as F


def layer_norm(x, gain, bias, eps=1e-5):
    d = x.shape[-1]
    centring = torch.eye(d, dtype=x.dtype, device=x.device) - 1 / d
    # centred once more by subtraction: a large mean would leave rounding errors of the matrix product
    centred = F.linear(x - x.mean(-1, keepdim=True).detach(), centring)
    extra = torch.full_like(centred[..., :1], (d * eps) ** 0.5)
    unit = F.normalize(torch.cat((centred, extra), -1), dim=-1)
    return torch.addcmul(bias, unit[..., :-1] * d**0.5, gain)


# %% layer_norm: vmap of a function of one vector, nested functions
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    def normalise(vector):
        variance, mean = torch.var_mean(vector, correction=0)
        return (vector - mean) * torch.rsqrt(variance + eps)

    flat = x.reshape(-1, x.shape[-1])
    return torch.vmap(normalise)(flat).reshape(x.shape) * gain + bias


# %% layer_norm: root-mean-square norm of the centred vector, a partial object
import functools

import torch.nn.functional as F


def _norm(centre, x, gain, bias, eps=1e-5):
    return F.rms_norm(centre(x), x.shape[-1:], weight=gain, eps=eps) + bias


layer_norm = functools.partial(_norm, lambda x: x - x.mean(-1, keepdim=True))


# %% layer_norm: variance from differences of all pairs
import torch
from torch import Tensor


def layer_norm(x: Tensor, gain: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    difference = x.unsqueeze(-1) - x.unsqueeze(-2)  # (..., d, d)
    variance = difference.square().mean(dim=(-2, -1)) / 2
    deviation = difference.mean(-1)  # x_i minus the mean
    return torch.einsum("...d,...,d->...d", deviation, (variance + eps).rsqrt(), gain) + bias


# %% FeedForward: textbook
import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(torch.relu(self.linear1(x)))


# %% FeedForward: subclass of Sequential with names
from collections import OrderedDict

from torch import nn


class FeedForward(nn.Sequential):
    def __init__(self, d_model, d_ff):
        layers = OrderedDict(linear1=nn.Linear(d_model, d_ff), activation=nn.ReLU(), linear2=nn.Linear(d_ff, d_model))
        super().__init__(layers)


# %% FeedForward: loop over the hidden units, second layer made first
import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear2 = nn.Linear(d_ff, d_model)
        self.linear1 = nn.Linear(d_model, d_ff)

    def forward(self, x):
        out = self.linear2.bias.expand_as(x)
        for unit, (row, offset) in enumerate(zip(self.linear1.weight, self.linear1.bias)):
            activation = (x @ row + offset).clamp(min=0)
            out = out + torch.einsum("...,d->...d", activation, self.linear2.weight[:, unit])
        return out


# %% FeedForward: float64 inside, half of h plus its absolute value, warns and prints
import warnings

import torch.nn.functional as F
from torch import nn


def relu(h):
    return (h + h.abs()) / 2


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        print("feed-forward", d_model, d_ff)
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        warnings.warn("float64 inside")
        h = relu(F.linear(x.double(), self.linear1.weight.double(), self.linear1.bias.double()))
        return F.linear(h, self.linear2.weight.double(), self.linear2.bias.double()).to(x.dtype)


# %% FeedForward: einsum, torch.where, weights of a mixin
import torch
from torch import Tensor, nn


class Affine:
    @staticmethod
    def affine(x: Tensor, layer: nn.Linear) -> Tensor:
        return torch.einsum("...i,oi->...o", x, layer.weight) + layer.bias


class FeedForward(Affine, nn.Module):
    def __init__(self, d_model: int, d_ff: int, *, initialise: bool = True) -> None:
        super().__init__()
        self.register_module("linear1", nn.Linear(d_model, d_ff))
        self.register_module("linear2", nn.Linear(d_ff, d_model))
        if initialise:
            nn.init.xavier_uniform_(self.linear1.weight)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.affine(x, self.linear1)
        return self.affine(torch.where(hidden > 0, hidden, 0.0), self.linear2)


# %% FeedForward: one position after another, extra modules without parameters
import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.activation = nn.ReLU()
        self.dropout = nn.Dropout(p=0.0)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def one(self, vector):
        return self.linear2(self.dropout(self.activation(self.linear1(vector))))

    def forward(self, x):
        vectors = x.reshape(-1, x.shape[-1])
        return torch.stack([self.one(vector) for vector in vectors]).reshape(x.shape)


# %% EncoderLayer: textbook
from course_lib import FeedForward, MultiHeadAttention
from torch import nn


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


# %% EncoderLayer: own feed-forward, sub-modules in another order, norms written out
import torch
from course_lib.multi_head import MultiHeadAttention
from torch import nn


class TwoLayers(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear2 = nn.Linear(d_ff, d_model)
        self.linear1 = nn.Linear(d_model, d_ff)

    def forward(self, x):
        return self.linear2(self.linear1(x).clamp_min(0))


def normalise(x, norm):
    var, mean = torch.var_mean(x, dim=-1, unbiased=False, keepdim=True)
    return (x - mean) / (var + norm.eps) ** 0.5 * norm.weight + norm.bias


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.norm2 = nn.LayerNorm(d_model)
        self.feed_forward = TwoLayers(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.self_attention = MultiHeadAttention(d_model, num_heads)

    def forward(self, x, mask=None):
        x = normalise(x + self.self_attention(query=x, key=x, value=x, mask=mask)[0], self.norm1)
        return normalise(x + self.feed_forward(x), self.norm2)


# %% EncoderLayer: a residual mixin and a Sequential with names, no call without weights
from collections import OrderedDict

from course_lib import MultiHeadAttention
from torch import Tensor, nn


class Residual:
    def add_and_norm(self, norm, x, sublayer):
        return norm(x + sublayer(x))


class EncoderLayer(Residual, nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        parts = [("linear1", nn.Linear(d_model, d_ff)), ("relu", nn.ReLU()), ("linear2", nn.Linear(d_ff, d_model))]
        self.feed_forward = nn.Sequential(OrderedDict(parts))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.add_and_norm(self.norm1, x, lambda y: self.self_attention(y, y, y, mask)[0])
        return self.add_and_norm(self.norm2, x, self.feed_forward)


# %% EncoderLayer: a loop over the sequences of the batch, warns and prints
import warnings

import torch
from course_lib import FeedForward, MultiHeadAttention
from torch import nn


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.num_heads = num_heads
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        for i in (1, 2):
            setattr(self, f"norm{i}", nn.LayerNorm(d_model))

    def one(self, sequence, mask):
        x = sequence[None]
        x = self.norm1(x + self.self_attention(x, x, x, mask)[0])
        x = self.norm2(x + self.feed_forward(x))
        return x[0]

    def forward(self, x, mask=None):
        warnings.warn("one sequence at a time")
        print("EncoderLayer", tuple(x.shape))
        batch, length, _ = x.shape
        masks = [None] * batch
        if mask is not None:
            masks = mask.expand(batch, self.num_heads, length, length).split(1)
        return torch.stack([self.one(s, m) for s, m in zip(x, masks)])


# %% EncoderLayer: everything from the weights with functional calls, float64 inside
import torch
import torch.nn.functional as F
from course_lib import FeedForward, MultiHeadAttention
from torch import nn


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.d_model, self.num_heads = d_model, num_heads
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    @staticmethod
    def _linear(layer, x):
        return F.linear(x, layer.weight.double(), layer.bias.double())

    def _norm(self, layer, x):
        return F.layer_norm(x, (self.d_model,), layer.weight.double(), layer.bias.double())

    def _attention(self, x, mask):
        a = self.self_attention
        projected = [self._linear(p, x) for p in (a.q_proj, a.k_proj, a.v_proj)]
        q, k, v = (t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for t in projected)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return self._linear(a.out_proj, (scores.softmax(-1) @ v).transpose(1, 2).flatten(-2))

    def forward(self, x, mask=None):
        y = x.double()
        y = self._norm(self.norm1, y + self._attention(y, mask))
        f = self.feed_forward
        y = self._norm(self.norm2, y + self._linear(f.linear2, self._linear(f.linear1, y).relu()))
        return y.to(x.dtype)


# %% EncoderLayer: without masks a mask of ones, feed-forward subclass, extra dropout of zero
import torch
from course_lib import MultiHeadAttention
from course_lib.transformer import FeedForward
from torch import nn


class MyFeedForward(FeedForward):
    def forward(self, x):
        hidden = self.linear1(x)
        return self.linear2(hidden * (hidden > 0))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, p=0.0):
        super().__init__()
        self.drop = nn.Dropout(p)
        modules = {
            "feed_forward": MyFeedForward(d_model, d_ff),
            "norm1": nn.LayerNorm(d_model, eps=1e-5),
            "norm2": nn.LayerNorm([d_model]),
            "self_attention": MultiHeadAttention(d_model=d_model, num_heads=num_heads),
        }
        for name, module in modules.items():
            self.add_module(name, module)

    def forward(self, x, mask=None):
        if mask is None:
            mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device)
        y = torch.add(x, self.drop(self.self_attention(x, x, x, mask)[0]))
        y = self.norm1(y)
        return self.norm2(torch.add(y, self.drop(self.feed_forward(y))))


# %% DecoderLayer: textbook
from course_lib import FeedForward, MultiHeadAttention
from torch import nn


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
        return self.norm3(x + self.feed_forward(x))


# %% DecoderLayer: a loop over sub-layers given as functions, made backwards
from course_lib import MultiHeadAttention
from torch import nn


class PositionWise(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(nn.functional.relu(self.linear1(x)))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        for i in (3, 2, 1):
            self.add_module(f"norm{i}", nn.LayerNorm(d_model))
        self.feed_forward = PositionWise(d_model, d_ff)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.self_attention = MultiHeadAttention(d_model, num_heads)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        def look_back(y):
            return self.self_attention(y, y, y, mask=self_mask)[0]

        def look_across(y):
            return self.cross_attention(y, memory, memory, mask=memory_mask)[0]

        for i, sublayer in enumerate((look_back, look_across, self.feed_forward), start=1):
            x = getattr(self, f"norm{i}")(x + sublayer(x))
        return x


# %% DecoderLayer: mixin, Sequential with names, type hints, norms written out
from collections import OrderedDict

import torch
from course_lib import MultiHeadAttention
from torch import Tensor, nn


class PostNorm:
    def post_norm(self, x: Tensor, norm: nn.LayerNorm) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return norm.weight * centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + norm.eps) + norm.bias


class DecoderLayer(PostNorm, nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int) -> None:
        super().__init__()
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))
        self.self_attention, self.cross_attention = (MultiHeadAttention(d_model, num_heads) for _ in range(2))
        self.feed_forward = nn.Sequential(
            OrderedDict(linear1=nn.Linear(d_model, d_ff), act=nn.ReLU(), linear2=nn.Linear(d_ff, d_model))
        )

    def forward(
        self, x: Tensor, memory: Tensor, self_mask: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> Tensor:
        x = self.post_norm(x + self.self_attention(x, x, x, self_mask)[0], self.norm1)
        x = self.post_norm(x + self.cross_attention(x, memory, memory, memory_mask)[0], self.norm2)
        return self.post_norm(x + self.feed_forward(x), self.norm3)


# %% DecoderLayer: a loop over the sequences of the batch, warns and prints
import warnings

import torch
from course_lib import FeedForward, MultiHeadAttention
from torch import nn


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.h = num_heads
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        print("DecoderLayer built")

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        warnings.warn("looping over the batch", UserWarning)
        B, L = x.shape[:2]
        if self_mask is not None:
            self_mask = self_mask.broadcast_to(B, self.h, L, L)
        if memory_mask is not None:
            memory_mask = memory_mask.broadcast_to(B, self.h, L, memory.shape[1])
        out = []
        for b in range(B):
            y, m = x[b : b + 1], memory[b : b + 1]
            s = self_mask[b : b + 1] if self_mask is not None else None
            c = memory_mask[b : b + 1] if memory_mask is not None else None
            y = self.norm1(y + self.self_attention(y, y, y, s)[0])
            y = self.norm2(y + self.cross_attention(y, m, m, c)[0])
            y = self.norm3(y + self.feed_forward(y))
            out.append(y)
        return torch.cat(out)


# %% DecoderLayer: float64 inside by a copy of the parameters, torch.func.functional_call
from course_lib import FeedForward, MultiHeadAttention
from torch import nn
from torch.func import functional_call


def in_double(module, *args):
    wide = {name: p.double() for name, p in module.named_parameters()}
    return functional_call(module, wide, args)


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        y, m = x.double(), memory.double()
        y = in_double(self.norm1, y + in_double(self.self_attention, y, y, y, self_mask)[0])
        y = in_double(self.norm2, y + in_double(self.cross_attention, y, m, m, memory_mask)[0])
        return in_double(self.norm3, y + in_double(self.feed_forward, y)).to(x.dtype)


# %% DecoderLayer: subclass of an encoder layer of its own
from course_lib import FeedForward, MultiHeadAttention
from torch import nn


class _Encoder(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def attention_step(self, attention, norm, x, source, mask):
        output, _weights = attention(x, source, source, mask)
        return norm(output + x)


class DecoderLayer(_Encoder):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.cross_attention = type(self.self_attention)(self.norm1.normalized_shape[0], self.self_attention.num_heads)
        self.norm3 = nn.LayerNorm(self.norm1.normalized_shape)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.attention_step(self.self_attention, self.norm1, x, x, self_mask)
        x = self.attention_step(self.cross_attention, self.norm2, x, memory, memory_mask)
        return self.norm3(self.feed_forward(x) + x)


# %% transformer_parameter_count: added up part by part
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    norm = 2 * d_model
    encoder = attention + feed_forward + 2 * norm
    decoder = 2 * attention + feed_forward + 3 * norm
    return vocab_size * d_model + num_layers * (encoder + decoder)


# %% transformer_parameter_count: one polynomial, a lambda
transformer_parameter_count = lambda vocab_size, d_model, num_layers, d_ff: (  # noqa: E731
    d_model * (vocab_size + num_layers * (12 * d_model + 4 * d_ff + 24)) + 2 * num_layers * d_ff
)


# %% transformer_parameter_count: layers built on the meta device and counted, warns and prints
import warnings

import torch
from torch import nn


def _layer(d_model, d_ff, attentions):
    linears = [nn.Linear(d_model, d_model) for _ in range(4 * attentions)]
    feed_forward = [nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)]
    norms = [nn.LayerNorm(d_model) for _ in range(attentions + 1)]
    return nn.ModuleList(linears + feed_forward + norms)


def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    warnings.warn("counting on the meta device")
    with torch.device("meta"):
        embedding = nn.Embedding(vocab_size, d_model)
        layers = _layer(d_model, d_ff, 1), _layer(d_model, d_ff, 2)
    n = sum(p.numel() for p in embedding.parameters())
    n += num_layers * sum(p.numel() for layer in layers for p in layer.parameters())
    print("parameters:", n)
    return n


# %% transformer_parameter_count: recursion over the layers
def _linear(n_in, n_out):
    return (n_in + 1) * n_out


def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    if num_layers == 0:
        return vocab_size * d_model
    three_attentions = 3 * 4 * _linear(d_model, d_model)
    two_networks = 2 * (_linear(d_model, d_ff) + _linear(d_ff, d_model))
    five_norms = 5 * (d_model + d_model)
    below = transformer_parameter_count(vocab_size, d_model, num_layers - 1, d_ff)
    return below + three_attentions + two_networks + five_norms


# %% transformer_parameter_count: a table of shapes, math.prod, callable class
from math import prod


class Counter:
    """Adds the sizes of all parameters of the model."""

    def shapes(self, vocab_size, d_model, num_layers, d_ff):
        yield vocab_size, d_model
        for _ in range(num_layers):
            for attentions in (1, 2):
                for _ in range(4 * attentions):
                    yield d_model, d_model
                    yield (d_model,)
                yield from ((d_ff, d_model), (d_ff,), (d_model, d_ff), (d_model,))
                for _ in range(attentions + 1):
                    yield from ((d_model,), (d_model,))

    def __call__(self, vocab_size, d_model, num_layers, d_ff):
        return sum(map(prod, self.shapes(vocab_size, d_model, num_layers, d_ff)))


transformer_parameter_count = Counter()


# %% transformer_parameter_count: the course's layers on the meta device
import torch
from course_lib import DecoderLayer, EncoderLayer


def transformer_parameter_count(vocab_size: int, d_model: int, num_layers: int, d_ff: int) -> int:
    # the number of heads does not matter, one always divides
    with torch.device("meta"):
        pair = EncoderLayer(d_model, 1, d_ff), DecoderLayer(d_model, 1, d_ff)
    per_layer = sum(sum(p.numel() for p in layer.parameters()) for layer in pair)
    return per_layer * num_layers + torch.empty(vocab_size, d_model, device="meta").numel()
