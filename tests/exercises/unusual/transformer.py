# %% layer_norm: var_mean and rsqrt
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    var, mean = torch.var_mean(x, dim=-1, keepdim=True, correction=0)
    return (x - mean) * torch.rsqrt(var + eps) * gain + bias

# %% layer_norm: einsum for the moments
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    n = x.shape[-1]
    c = x - torch.einsum("...i->...", x).unsqueeze(-1) / n
    var = torch.einsum("...i,...i->...", c, c).unsqueeze(-1) / n
    return torch.addcmul(bias, c / (var + eps).sqrt(), gain)

# %% layer_norm: projection off the ones vector
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    n = x.shape[-1]
    centre = torch.eye(n, dtype=x.dtype, device=x.device) - torch.full((n, n), 1 / n, dtype=x.dtype, device=x.device)
    c = (x - x[..., :1]) @ centre
    length = torch.sqrt(torch.linalg.vecdot(c, c) / n + eps)
    return c / length[..., None] * gain + bias

# %% layer_norm: custom Function with analytic backward
import torch


class LN(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gain, bias, eps):
        c = x - x.mean(-1, keepdim=True)
        r = (c.square().mean(-1, keepdim=True) + eps).rsqrt()
        h = c * r
        ctx.save_for_backward(h, r, gain)
        return h * gain + bias

    @staticmethod
    def backward(ctx, g):
        h, r, gain = ctx.saved_tensors
        gh = g * gain
        gx = r * (gh - gh.mean(-1, keepdim=True) - h * (gh * h).mean(-1, keepdim=True))
        flat = tuple(range(g.dim() - 1))
        if flat:
            return gx, (g * h).sum(flat), g.sum(flat), None
        return gx, g * h, g, None


def layer_norm(x, gain, bias, eps=1e-5):
    return LN.apply(x, gain, bias, eps)

# %% layer_norm: vmap over every leading axis
import torch
from torch.func import vmap


def layer_norm(x, gain, bias, eps=1e-5):
    def one(v):
        c = v - torch.sum(v) / v.numel()
        return gain * c / torch.sqrt(torch.dot(c, c) / v.numel() + eps) + bias

    for _ in range(x.dim() - 1):
        one = vmap(one)
    return one(x)

# %% layer_norm: scripted
import torch


@torch.jit.script
def layer_norm(x: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    mean = x.mean(-1, keepdim=True)
    d = x - mean
    return d / torch.sqrt(torch.mean(d * d, -1, keepdim=True) + eps) * gain + bias

# %% layer_norm: float64 inside
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    w = x.to(torch.promote_types(x.dtype, torch.float64))
    w = w - w.mean(dim=-1, keepdim=True)
    w = w / w.pow(2).mean(dim=-1, keepdim=True).add(eps).sqrt()
    return torch.mul(w, gain).add(bias).to(x.dtype)

# %% layer_norm: loop over features for the statistics
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    cols = x.unbind(-1)
    mean = sum(cols) / len(cols)
    var = sum((c - mean) ** 2 for c in cols) / len(cols)
    std = (var + eps) ** 0.5
    return torch.stack([(c - mean) / std * g + b for c, g, b in zip(cols, gain, bias)], dim=-1)

# %% layer_norm: pairwise differences for the variance, checkpointed
import torch
from torch.utils.checkpoint import checkpoint


def _norm(x, gain, bias, eps):
    gap = x.unsqueeze(-1) - x.unsqueeze(-2)
    centred = gap.mean(-1)
    var = gap.square().mean((-2, -1)) / 2
    return centred * (var + eps).rsqrt().unsqueeze(-1) * gain + bias


def layer_norm(x, gain, bias, eps=1e-5):
    return checkpoint(_norm, x, gain, bias, eps, use_reentrant=False)

# %% layer_norm: in-place chain on an own tensor
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    own = x.clone()
    own -= x.mean(-1, keepdim=True)
    scale = own.square().mean(-1, keepdim=True).add_(eps).sqrt_()
    own = own / scale
    own = own * gain
    own += bias
    return own

# %% layer_norm: compiled eagerly, std with correction zero
import torch


@torch.compile(backend="eager", dynamic=True)
def _standard(x, eps: float):
    std = torch.std(x, -1, correction=0, keepdim=True).detach()
    c = x - x.mean(-1, keepdim=True)
    return c / torch.sqrt(c.square().mean(-1, keepdim=True) + eps), std


def layer_norm(x, gain, bias, eps=1e-5):
    return _standard(x, eps)[0] * gain + bias

# %% layer_norm: fx-traced body
import torch
from torch import fx


class Body(torch.nn.Module):
    def forward(self, x, gain, bias, eps):
        c = x.sub(x.mean(dim=-1, keepdim=True))
        return c.mul(c.mul(c).mean(dim=-1, keepdim=True).add(eps).rsqrt()).mul(gain).add(bias)


_graph_module = fx.symbolic_trace(Body())


def layer_norm(x, gain, bias, eps=1e-5):
    return _graph_module(x, gain, bias, eps)

# %% layer_norm: mean from the zero-frequency FFT bin
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    n = x.shape[-1]
    shifted = x - x[..., :1].detach()
    wide = shifted.double()
    mean = torch.fft.fft(wide, dim=-1)[..., :1].real / n
    c = wide - mean
    power = (torch.fft.fft(c, dim=-1).abs().square().sum(-1, keepdim=True) / n ** 2) if not c.requires_grad else (c * c).mean(-1, keepdim=True)
    return (c / torch.sqrt(power + eps) * gain + bias).to(x.dtype)

# %% FeedForward: two linears and relu
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(self.linear1(x).relu())

# %% FeedForward: einsum on the weights, clamp for relu
import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        h = torch.einsum("...d,fd->...f", x, self.linear1.weight) + self.linear1.bias
        h = h.clamp(min=0)
        return torch.einsum("...f,df->...d", h, self.linear2.weight) + self.linear2.bias

# %% FeedForward: subclass of nn.Sequential by OrderedDict
from collections import OrderedDict
from torch import nn


class FeedForward(nn.Sequential):
    def __init__(self, d_model, d_ff):
        super().__init__(OrderedDict(linear1=nn.Linear(d_model, d_ff), act=nn.ReLU(), linear2=nn.Linear(d_ff, d_model)))

    def forward(self, x):
        for module in self:
            x = module(x)
        return x

# %% FeedForward: forward hook applies the relu
import torch
from torch import nn


def _rectify(module, args, output):
    return torch.relu(output)


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear1.register_forward_hook(_rectify)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(self.linear1(x))

# %% FeedForward: checkpoint
from torch import nn
from torch.utils.checkpoint import checkpoint


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.add_module("linear1", nn.Linear(d_model, d_ff))
        self.add_module("linear2", nn.Linear(d_ff, d_model))

    def _inner(self, x):
        return self.linear2(nn.functional.relu(self.linear1(x)))

    def forward(self, x):
        return checkpoint(self._inner, x, use_reentrant=False)

# %% FeedForward: custom relu Function
import torch
from torch import nn


class Relu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        keep = x > 0
        ctx.save_for_backward(keep)
        return torch.where(keep, x, torch.zeros_like(x))

    @staticmethod
    def backward(ctx, grad):
        keep, = ctx.saved_tensors
        return grad * keep


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(Relu.apply(self.linear1(x)))

# %% FeedForward: built on meta, materialised, chunks of hidden units summed
import torch
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff, device="meta").to_empty(device="cpu")
        self.linear2 = nn.Linear(d_ff, d_model, device="meta").to_empty(device="cpu")
        self.linear1.reset_parameters()
        self.linear2.reset_parameters()

    def forward(self, x):
        out = self.linear2.bias
        for w1, b1, w2 in zip(self.linear1.weight.split(3), self.linear1.bias.split(3), self.linear2.weight.split(3, dim=1)):
            out = out + torch.relu(x @ w1.T + b1) @ w2.T
        return out

# %% FeedForward: vmap over the flattened positions
import torch
from torch import nn
from torch.func import vmap


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def _one(self, v):
        h = torch.mv(self.linear1.weight, v) + self.linear1.bias
        h = (h + h.abs()) / 2
        return torch.mv(self.linear2.weight, h) + self.linear2.bias

    def forward(self, x):
        return vmap(self._one)(x.reshape(-1, x.shape[-1])).reshape(x.shape)

# %% FeedForward: compiled with the eager backend
import torch
from torch import nn
import torch.nn.functional as F


@torch.compile(backend="eager", dynamic=True)
def _ff(x, w1, b1, w2, b2):
    return F.linear(F.relu(F.linear(x, w1, b1)), w2, b2)


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _ff(x, self.linear1.weight, self.linear1.bias, self.linear2.weight, self.linear2.bias)

# %% FeedForward: reduce over the modules, in-place relu on an own tensor
from functools import reduce
from torch import nn


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        steps = (self.linear1, nn.ReLU(inplace=True), self.linear2)
        return reduce(lambda value, step: step(value), steps, x)

# %% FeedForward: scripted inner function, max with zero
import torch
from torch import nn


@torch.jit.script
def _forward(x: torch.Tensor, w1: torch.Tensor, b1: torch.Tensor, w2: torch.Tensor, b2: torch.Tensor) -> torch.Tensor:
    h = torch.max(torch.matmul(x, w1.t()) + b1, torch.zeros([], dtype=x.dtype))
    return torch.matmul(h, w2.t()) + b2


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return _forward(x, *self.linear1.parameters(), *self.linear2.parameters())

# %% EncoderLayer: course attention, plain post-norm
from torch import nn
from course_lib import MultiHeadAttention


class _FF(nn.Module):
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
        self.feed_forward = _FF(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        x = self.norm1(x + self.self_attention(x, x, x, mask)[0])
        return self.norm2(x + self.feed_forward(x))

# %% EncoderLayer: Sequential feed-forward with named children, residual closure
from collections import OrderedDict
from torch import nn
from course_lib import MultiHeadAttention


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = nn.Sequential(OrderedDict([
            ("linear1", nn.Linear(d_model, d_ff)), ("relu", nn.ReLU()), ("linear2", nn.Linear(d_ff, d_model))]))
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        def residual(norm, sublayer, h):
            return norm(h + sublayer(h))

        def attend(h):
            out, _ = self.self_attention(h, h, h, mask=mask)
            return out

        for norm, sub in ((self.norm1, attend), (self.norm2, self.feed_forward)):
            x = residual(norm, sub, x)
        return x

# %% EncoderLayer: own attention, einsum throughout, norm arithmetic by hand on the nn.LayerNorm weights
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(d, d) for _ in range(4))

    def forward(self, query, key, value, mask=None):
        q, k, v = (p(t).unflatten(-1, (self.h, -1)) for p, t in ((self.q_proj, query), (self.k_proj, key), (self.v_proj, value)))
        s = torch.einsum("bihe,bjhe->bhij", q, k) / q.shape[-1] ** 0.5
        if mask is not None:
            s = s.masked_fill(~mask, -torch.inf)
        w = s.softmax(-1)
        return self.out_proj(torch.einsum("bhij,bjhe->bihe", w, v).flatten(2)), w


class FF(nn.Module):
    def __init__(self, d, f):
        super().__init__()
        self.linear1 = nn.Linear(d, f)
        self.linear2 = nn.Linear(f, d)

    def forward(self, x):
        return self.linear2(torch.clamp_min(self.linear1(x), 0))


def _norm(m, x):
    c = x - x.mean(-1, keepdim=True)
    return c / torch.sqrt(c.pow(2).mean(-1, keepdim=True) + m.eps) * m.weight + m.bias


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = Attention(d_model, num_heads)
        self.feed_forward = FF(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        y = _norm(self.norm1, x + self.self_attention(x, x, x, mask)[0])
        return _norm(self.norm2, y + self.feed_forward(y))

# %% EncoderLayer: checkpoint per sublayer
from torch import nn
from torch.utils.checkpoint import checkpoint
from course_lib import MultiHeadAttention


class PositionWise(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(nn.functional.relu(self.linear1(x)))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = PositionWise(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        x = checkpoint(lambda h: self.norm1(h + self.self_attention(h, h, h, mask)[0]), x, use_reentrant=False)
        return checkpoint(lambda h: self.norm2(h + self.feed_forward(h)), x, use_reentrant=False)

# %% EncoderLayer: materialised from meta
import torch
from torch import nn
from course_lib import MultiHeadAttention


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
        with torch.device("meta"):
            self.self_attention = MultiHeadAttention(d_model, num_heads)
            self.feed_forward = FeedForward(d_model, d_ff)
            self.norm1 = nn.LayerNorm(d_model)
            self.norm2 = nn.LayerNorm(d_model)
        self.to_empty(device="cpu")
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.LayerNorm)):
                module.reset_parameters()

    def forward(self, x, mask=None):
        attended, _ = self.self_attention(x, x, x, mask)
        h = self.norm1(attended + x)
        return self.norm2(self.feed_forward(h) + h)

# %% EncoderLayer: hooks add the residual and the norm
import torch
from torch import nn
from course_lib import MultiHeadAttention


class FF(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.register_forward_hook(lambda mod, args, out: out + args[0])

    def forward(self, x):
        return self.linear2(self.linear1(x).relu())


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FF(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        h = self.norm1(x + self.self_attention(x, x, x, mask=mask)[0])
        return self.norm2(self.feed_forward(h))

# %% EncoderLayer: functional_call with the layer's own parameters
import torch
from torch import nn
from torch.func import functional_call
from course_lib import MultiHeadAttention


class Ff(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(self.linear1(x).relu_())


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = Ff(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        def call(module, *args):
            return functional_call(module, dict(module.named_parameters()), args)

        x = call(self.norm1, x + call(self.self_attention, x, x, x, mask)[0])
        return call(self.norm2, x + call(self.feed_forward, x))

# %% EncoderLayer: one sequence of the batch at a time, in threads
import torch
from torch import nn
from concurrent.futures import ThreadPoolExecutor
from course_lib import MultiHeadAttention


class FF(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(torch.where((h := self.linear1(x)) > 0, h, 0))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.num_heads = num_heads
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FF(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        b, n, _ = x.shape
        masks = [None] * b if mask is None else mask.expand(b, self.num_heads, n, n).split(1)
        grad = torch.is_grad_enabled()

        def one(pair):
            h, m = pair
            with torch.set_grad_enabled(grad):
                h = self.norm1(h + self.self_attention(h, h, h, m)[0])
                return self.norm2(h + self.feed_forward(h))

        with ThreadPoolExecutor(max_workers=2) as pool:
            return torch.cat(list(pool.map(one, zip(x.split(1), masks))))

# %% EncoderLayer: compiled with the eager backend, helper classes after use
from __future__ import annotations
import torch
from torch import nn, Tensor


class EncoderLayer(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int) -> None:
        super().__init__()
        self.self_attention = _Heads(d_model, num_heads)
        self.feed_forward = _Wide(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.norm1(_add(x, self.self_attention(x, x, x, mask)[0]))
        return self.norm2(_add(x, self.feed_forward(x)))


@torch.compile(backend="eager")
def _add(a: Tensor, b: Tensor) -> Tensor:
    return a + b


class _Wide(nn.Module):
    def __init__(self, d: int, f: int) -> None:
        super().__init__()
        self.linear1 = nn.Linear(d, f)
        self.linear2 = nn.Linear(f, d)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.linear1(x).clamp(0))


class _Heads(nn.Module):
    def __init__(self, d: int, h: int) -> None:
        super().__init__()
        self.h = h
        self.q_proj = nn.Linear(d, d)
        self.k_proj = nn.Linear(d, d)
        self.v_proj = nn.Linear(d, d)
        self.out_proj = nn.Linear(d, d)

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        q, k, v = (torch.stack(p(t).chunk(self.h, -1), 1) for p, t in zip((self.q_proj, self.k_proj, self.v_proj), (q, k, v)))
        s = q @ k.mT * k.shape[-1] ** -0.5
        s = s if mask is None else torch.where(mask, s, -torch.inf)
        w = torch.softmax(s, -1)
        return self.out_proj(torch.cat((w @ v).unbind(1), -1)), w

# %% DecoderLayer: course attention, plain
from torch import nn
from course_lib import MultiHeadAttention


class FF(nn.Module):
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
        self.feed_forward = FF(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.norm1(x + self.self_attention(x, x, x, self_mask)[0])
        x = self.norm2(x + self.cross_attention(x, memory, memory, memory_mask)[0])
        return self.norm3(x + self.feed_forward(x))

# %% DecoderLayer: generator of sublayers, names by setattr
from torch import nn
from course_lib import MultiHeadAttention


class Ff(nn.Module):
    def __init__(self, d, f):
        super().__init__()
        self.linear1 = nn.Linear(d, f)
        self.linear2 = nn.Linear(f, d)

    def forward(self, x):
        return self.linear2(nn.ReLU()(self.linear1(x)))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        for name in ("self_attention", "cross_attention"):
            setattr(self, name, MultiHeadAttention(d_model, num_heads))
        self.feed_forward = Ff(d_model, d_ff)
        for i in (1, 2, 3):
            setattr(self, f"norm{i}", nn.LayerNorm(d_model))

    def sublayers(self, memory, self_mask, memory_mask):
        yield self.norm1, lambda h: self.self_attention(h, h, h, self_mask)[0]
        yield self.norm2, lambda h: self.cross_attention(h, memory, memory, memory_mask)[0]
        yield self.norm3, self.feed_forward

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        for norm, f in self.sublayers(memory, self_mask, memory_mask):
            x = norm(x + f(x))
        return x

# %% DecoderLayer: ModuleDict inside a helper, own attention, masked_fill
import math
import torch
from torch import nn


class Heads(nn.ModuleDict):
    def __init__(self, d, h):
        super().__init__({n: nn.Linear(d, d) for n in ("q_proj", "k_proj", "v_proj", "out_proj")})
        self.h = h

    def forward(self, query, key, value, mask=None):
        q, k, v = (self[n](t).unflatten(-1, (self.h, -1)).movedim(-2, 1) for n, t in
                   (("q_proj", query), ("k_proj", key), ("v_proj", value)))
        s = torch.matmul(q, k.swapaxes(-1, -2)).div(math.sqrt(q.size(-1)))
        if mask is not None:
            s = s.masked_fill(~mask, float("-inf"))
        w = s.softmax(-1)
        return self["out_proj"](w.matmul(v).movedim(1, -2).flatten(-2)), w


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = Heads(d_model, num_heads)
        self.cross_attention = Heads(d_model, num_heads)
        self.feed_forward = nn.ModuleDict({"linear1": nn.Linear(d_model, d_ff), "linear2": nn.Linear(d_ff, d_model)})
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.norm1(x + self.self_attention(x, x, x, self_mask)[0])
        x = self.norm2(x + self.cross_attention(x, memory, memory, memory_mask)[0])
        ff = self.feed_forward
        return self.norm3(x + ff["linear2"](torch.relu(ff["linear1"](x))))

# %% DecoderLayer: checkpoint around the whole forward
from torch import nn
from torch.utils.checkpoint import checkpoint
from course_lib import MultiHeadAttention


class FeedFwd(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.linear2(self.linear1(x).clamp_min(0.0))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FeedFwd(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def _all(self, x, memory, self_mask, memory_mask):
        a = self.norm1(x + self.self_attention(x, x, x, self_mask)[0])
        b = self.norm2(a + self.cross_attention(a, memory, memory, memory_mask)[0])
        return self.norm3(b + self.feed_forward(b))

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        return checkpoint(self._all, x, memory, self_mask, memory_mask, use_reentrant=False)

# %% DecoderLayer: materialised from meta, walrus residuals
import torch
from torch import nn
from course_lib import MultiHeadAttention


class FF(nn.Module):
    def __init__(self, d, f):
        super().__init__()
        self.linear1 = nn.Linear(d, f, device="meta")
        self.linear2 = nn.Linear(f, d, device="meta")

    def forward(self, x):
        return self.linear2(self.linear1(x).relu())


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        with torch.device("meta"):
            self.self_attention = MultiHeadAttention(d_model, num_heads)
            self.cross_attention = MultiHeadAttention(d_model, num_heads)
            self.feed_forward = FF(d_model, d_ff)
            self.norm1 = nn.LayerNorm(d_model)
            self.norm2 = nn.LayerNorm(d_model)
            self.norm3 = nn.LayerNorm(d_model)
        self.to_empty(device="cpu").apply(lambda m: m.reset_parameters() if hasattr(m, "reset_parameters") else None)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        a = self.norm1((x := x + self.self_attention(x, x, x, self_mask)[0]))
        b = self.norm2((a := a + self.cross_attention(a, memory, memory, memory_mask)[0]))
        return self.norm3(b + self.feed_forward(b))

# %% DecoderLayer: partial applications of the attentions, reduce
from functools import partial, reduce
from torch import nn
from course_lib import MultiHeadAttention


class FF(nn.Module):
    def __init__(self, d, f):
        super().__init__()
        self.linear1, self.act, self.linear2 = nn.Linear(d, f), nn.ReLU(), nn.Linear(f, d)

    def forward(self, x):
        return self.linear2(self.act(self.linear1(x)))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FF(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        cross = partial(self.cross_attention, key=memory, value=memory, mask=memory_mask)
        steps = [
            (self.norm1, lambda h: self.self_attention(query=h, key=h, value=h, mask=self_mask)[0]),
            (self.norm2, lambda h: cross(h)[0]),
            (self.norm3, self.feed_forward),
        ]
        return reduce(lambda h, step: step[0](h + step[1](h)), steps, x)

# %% DecoderLayer: own attention by vmap over heads
import torch
from torch import nn
from torch.func import vmap


class Heads(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(d, d) for _ in range(4))

    def forward(self, query, key, value, mask=None):
        q, k, v = (p(t).unflatten(-1, (self.h, -1)) for p, t in zip((self.q_proj, self.k_proj, self.v_proj), (query, key, value)))
        ok = torch.ones((), dtype=torch.bool) if mask is None else mask
        ok = ok.expand(query.shape[0], self.h, query.shape[1], key.shape[1])

        def head(q, k, v, ok):
            s = torch.where(ok, torch.bmm(q, k.mT) * q.shape[-1] ** -0.5, -torch.inf)
            w = torch.softmax(s, -1)
            return torch.bmm(w, v), w

        o, w = vmap(head, in_dims=(2, 2, 2, 1), out_dims=(2, 1))(q, k, v, ok)
        return self.out_proj(o.flatten(2)), w


class FF(nn.Module):
    def __init__(self, d, f):
        super().__init__()
        self.linear1 = nn.Linear(d, f)
        self.linear2 = nn.Linear(f, d)

    def forward(self, x):
        return self.linear2(torch.relu(self.linear1(x)))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = Heads(d_model, num_heads)
        self.cross_attention = Heads(d_model, num_heads)
        self.feed_forward = FF(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.norm1(x + self.self_attention(x, x, x, self_mask)[0])
        x = self.norm2(x + self.cross_attention(x, memory, memory, memory_mask)[0])
        return self.norm3(x + self.feed_forward(x))

# %% DecoderLayer: recursion over the residual steps, profiler around
import torch
from torch import nn
from torch.profiler import record_function
from course_lib import MultiHeadAttention


class FF(nn.Module):
    def __init__(self, d, f):
        super().__init__()
        self.linear1 = nn.Linear(d, f)
        self.linear2 = nn.Linear(f, d)

    def forward(self, x):
        return self.linear2(self.linear1(x).relu())


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FF(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        def step(n):
            if n == 0:
                return x
            with record_function(f"sublayer {n}"):
                h = step(n - 1)
                match n:
                    case 1:
                        return self.norm1(h + self.self_attention(h, h, h, self_mask)[0])
                    case 2:
                        return self.norm2(h + self.cross_attention(h, memory, memory, memory_mask)[0])
                    case 3:
                        return self.norm3(h + self.feed_forward(h))

        return step(3)

# %% DecoderLayer: abstract base with shared parts, in-place residual on own tensors
import torch
from torch import nn
from course_lib import MultiHeadAttention


class Base(nn.Module):
    def __init__(self, d, h, f):
        super().__init__()
        self.self_attention = MultiHeadAttention(d, h)
        self.feed_forward = nn.Sequential()
        self.feed_forward.add_module("linear1", nn.Linear(d, f))
        self.feed_forward.add_module("relu", nn.ReLU())
        self.feed_forward.add_module("linear2", nn.Linear(f, d))
        self.norm1 = nn.LayerNorm(d)
        self.norm2 = nn.LayerNorm(d)


class DecoderLayer(Base):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__(d_model, num_heads, d_ff)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        h = self.self_attention(x, x, x, self_mask)[0]
        h = self.norm1(h.add(x))
        c = self.cross_attention(h, memory, memory, memory_mask)[0].clone()
        c += h
        c = self.norm2(c)
        y = self.feed_forward(c).clone()
        y += c
        return self.norm3(y)

# %% transformer_parameter_count: closed form
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    attention = 4 * d_model * (d_model + 1)
    ff = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    return vocab_size * d_model + num_layers * (3 * attention + 2 * ff + 5 * norm)

# %% transformer_parameter_count: modules on meta, counted
import torch
from torch import nn


def _mha(d):
    return nn.ModuleList(nn.Linear(d, d) for _ in range(4))


def _ff(d, f):
    return nn.Sequential(nn.Linear(d, f), nn.ReLU(), nn.Linear(f, d))


def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    with torch.device("meta"):
        model = nn.ModuleList([nn.Embedding(vocab_size, d_model)])
        for _ in range(num_layers):
            model.append(nn.ModuleList([_mha(d_model), _ff(d_model, d_ff), nn.LayerNorm(d_model), nn.LayerNorm(d_model)]))
            model.append(nn.ModuleList([_mha(d_model), _mha(d_model), _ff(d_model, d_ff)] + [nn.LayerNorm(d_model) for _ in range(3)]))
    return sum(p.numel() for p in model.parameters())

# %% transformer_parameter_count: numpy polynomial in d_model
import numpy as np


def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    n, f = num_layers, d_ff
    coefficients = [2 * n * f, vocab_size + 12 * n + 4 * n * f + 2 * n + 10 * n, 12 * n]
    powers = np.array([int(d_model) ** i for i in range(3)], dtype=object)
    return int(np.dot(np.array(coefficients, dtype=object), powers))

# %% transformer_parameter_count: generator of shapes
import math


def _linear(i, o):
    yield o, i
    yield (o,)


def _norm(d):
    yield (d,)
    yield (d,)


def _attention(d):
    for _ in range(4):
        yield from _linear(d, d)


def _shapes(v, d, n, f):
    yield v, d
    for side in ("encoder", "decoder"):
        for _ in range(n):
            yield from _attention(d)
            yield from _norm(d)
            if side == "decoder":
                yield from _attention(d)
                yield from _norm(d)
            yield from _linear(d, f)
            yield from _linear(f, d)
            yield from _norm(d)


def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    return sum(math.prod(s) for s in _shapes(vocab_size, d_model, num_layers, d_ff))

# %% transformer_parameter_count: recursion on the layers
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    if num_layers == 0:
        return vocab_size * d_model
    mha = 4 * (d_model ** 2 + d_model)
    ff = (d_model + 1) * d_ff + (d_ff + 1) * d_model
    layer = (mha + ff + 4 * d_model) + (2 * mha + ff + 6 * d_model)
    return layer + transformer_parameter_count(vocab_size, d_model, num_layers - 1, d_ff)

# %% transformer_parameter_count: Decimal and a dataclass
from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True)
class Size:
    d: Decimal
    f: Decimal

    @property
    def attention(self):
        return 4 * self.d * (self.d + 1)

    @property
    def feed_forward(self):
        return 2 * self.d * self.f + self.d + self.f

    @property
    def norm(self):
        return 2 * self.d


def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    s = Size(Decimal(d_model), Decimal(d_ff))
    encoder = s.attention + s.feed_forward + 2 * s.norm
    decoder = 2 * s.attention + s.feed_forward + 3 * s.norm
    return int(Decimal(vocab_size) * s.d + num_layers * (encoder + decoder))

# %% transformer_parameter_count: Fractions, two halves
from fractions import Fraction


def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    d, f, n = Fraction(d_model), Fraction(d_ff), Fraction(num_layers)
    half = 6 * d * d + 2 * d * f + f + d + 11 * d
    return int(vocab_size * d + 2 * n * half)

# %% transformer_parameter_count: Counter of parts times part sizes
from collections import Counter


def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    size = {"attention": 4 * d_model * d_model + 4 * d_model, "ff": 2 * d_model * d_ff + d_model + d_ff, "norm": 2 * d_model}
    encoder = Counter(attention=1, ff=1, norm=2)
    decoder = Counter(attention=2, ff=1, norm=3)
    per_pair = encoder + decoder
    return d_model * vocab_size + num_layers * sum(size[k] * n for k, n in per_pair.items())

# %% transformer_parameter_count: singledispatch over part types, namedtuples
from functools import singledispatch
from itertools import chain, repeat
from typing import NamedTuple


class Linear(NamedTuple):
    i: int
    o: int


class Norm(NamedTuple):
    d: int


class Embedding(NamedTuple):
    v: int
    d: int


@singledispatch
def count(part):
    raise TypeError(part)


@count.register
def _(part: Linear):
    return part.i * part.o + part.o


@count.register
def _(part: Norm):
    return 2 * part.d


@count.register
def _(part: Embedding):
    return part.v * part.d


def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    layer_pair = [Linear(d_model, d_model)] * 12 + [Linear(d_model, d_ff), Linear(d_ff, d_model)] * 2 + [Norm(d_model)] * 5
    parts = chain([Embedding(vocab_size, d_model)], chain.from_iterable(repeat(layer_pair, num_layers)))
    return sum(map(count, parts))

# %% layer_norm: Welford's running statistics
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    mean, m2 = torch.zeros_like(x[..., 0]), torch.zeros_like(x[..., 0])
    for n, v in enumerate(x.unbind(-1), start=1):
        delta = v - mean
        mean = mean + delta / n
        m2 = m2 + delta * (v - mean)
    std = torch.sqrt(m2 / x.shape[-1] + eps)
    return (x - mean[..., None]) / std[..., None] * gain + bias

# %% layer_norm: linalg.vector_norm of the centred rows, broadcast_tensors
import torch


def layer_norm(x, gain, bias, eps=1e-5):
    x, mean = torch.broadcast_tensors(x, x.mean(-1, keepdim=True))
    c = x - mean
    root = torch.sqrt(torch.linalg.vecdot(c, c).div(x.shape[-1]).add(eps)).unsqueeze(-1)
    return torch.addcdiv(bias.expand_as(c), c * gain, root)

# %% layer_norm: linear layer with a parametrized centring weight
import torch
from torch import nn
from torch.nn.utils import parametrize


class Centre(nn.Module):
    def forward(self, w):
        return w - w.mean(0, keepdim=True)


def layer_norm(x, gain, bias, eps=1e-5):
    lin = nn.Linear(x.shape[-1], x.shape[-1], bias=False, dtype=x.dtype)
    nn.init.eye_(lin.weight).requires_grad_(False)
    parametrize.register_parametrization(lin, "weight", Centre())
    c = lin(x - x[..., :1])
    return c * (c.square().mean(-1, keepdim=True) + eps).rsqrt() * gain + bias

# %% layer_norm: singledispatch, compiler.disable, helpers after use
from functools import singledispatchmethod
import torch


class Norm:
    @singledispatchmethod
    def scale(self, eps):
        return float(eps)

    @torch.compiler.disable
    def __call__(self, x, gain, bias, eps=1e-5):
        return _affine(_standard(x, self.scale(eps)), gain, bias)


def _standard(x, eps):
    c = x - torch.mean(x, -1, True)
    return c / (torch.mean(c ** 2, -1, True) + eps) ** 0.5


def _affine(h, gain, bias):
    return h * gain + bias


layer_norm = Norm()

# %% FeedForward: parametrization during construction, then made permanent
import torch
from torch import nn
from torch.nn.utils import parametrize


class Shrink(nn.Module):
    def forward(self, w):
        return 0.9 * w


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        for lin in (self.linear1, self.linear2):
            parametrize.register_parametrization(lin, "weight", Shrink())
            parametrize.remove_parametrizations(lin, "weight")

    def forward(self, x):
        return self.linear2(torch.relu(self.linear1(x)))

# %% FeedForward: ModuleDict subclass, forward pre-hook rectifies
import torch
from torch import nn


class FeedForward(nn.ModuleDict):
    def __init__(self, d_model, d_ff):
        super().__init__({"linear1": nn.Linear(d_model, d_ff), "linear2": nn.Linear(d_ff, d_model)})
        self["linear2"].register_forward_pre_hook(lambda m, args: (torch.relu(args[0]),))

    def forward(self, x):
        return self["linear2"](self["linear1"](x))

# %% FeedForward: fx-traced body, non-persistent zero buffer
import torch
from torch import nn, fx


def _body(x, w1, b1, w2, b2, zero):
    hidden = torch.maximum(torch.matmul(x, w1.T) + b1, zero)
    return torch.matmul(hidden, w2.T) + b2


_traced = fx.symbolic_trace(_body)


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.register_buffer("zero", torch.zeros(()), persistent=False)

    def forward(self, x):
        a, b = self.linear1, self.linear2
        return _traced(x, a.weight, a.bias, b.weight, b.bias, self.zero)

# %% EncoderLayer: parametrized at construction, autocast off, walrus
import torch
from torch import nn
from torch.nn.utils import parametrize
from course_lib import MultiHeadAttention


class Tame(nn.Module):
    def forward(self, w):
        return w.clamp(-1, 1)


class FF(nn.ModuleDict):
    def forward(self, x):
        return self["linear2"](self["linear1"](x).relu())


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FF(dict(linear1=nn.Linear(d_model, d_ff), linear2=nn.Linear(d_ff, d_model)))
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        parametrize.register_parametrization(self.feed_forward["linear1"], "weight", Tame())
        parametrize.remove_parametrizations(self.feed_forward["linear1"], "weight")

    def forward(self, x, mask=None):
        with torch.autocast("cpu", enabled=False):
            return self.norm2((h := self.norm1(x + self.self_attention(x, x, x, mask)[0])) + self.feed_forward(h))

# %% DecoderLayer: hooks for the residuals, __future__ annotations, star import of torch.nn
from __future__ import annotations
from torch.nn import *
from course_lib import MultiHeadAttention


class FF(Module):
    def __init__(self, d: int, f: int):
        super().__init__()
        self.linear1 = Linear(d, f)
        self.linear2 = Linear(f, d)
        self.register_forward_hook(_residual)

    def forward(self, x):
        return self.linear2(functional.relu(self.linear1(x)))


def _residual(module, args, output):
    return args[0] + output


class DecoderLayer(Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.cross_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = FF(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = LayerNorm(d_model), LayerNorm(d_model), LayerNorm(d_model)

    def forward(self, x, memory, self_mask=None, memory_mask=None):
        x = self.norm1(x + self.self_attention(x, x, x, self_mask)[0])
        x = self.norm2(x + self.cross_attention(x, memory, memory, memory_mask)[0])
        return self.norm3(self.feed_forward(x))

# %% transformer_parameter_count: star import of decimal, partial, lru_cache
from decimal import *
from functools import lru_cache, partial


def _linear(i, o):
    return i * o + o


@lru_cache(maxsize=None)
def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    d, f = Decimal(d_model), Decimal(d_ff)
    square = partial(_linear, d, d)
    both = 12 * square() + 2 * (_linear(d, f) + _linear(f, d)) + 10 * d
    return int(vocab_size * d + num_layers * both)

# %% layer_norm: statistics of halves merged by recursion (Chan)
import torch


def _moments(x):
    n = x.shape[-1]
    if n == 1:
        return 1, x[..., 0], torch.zeros_like(x[..., 0])
    (na, ma, sa), (nb, mb, sb) = _moments(x[..., : n // 2]), _moments(x[..., n // 2:])
    delta = mb - ma
    return n, ma + delta * nb / n, sa + sb + delta ** 2 * na * nb / n


def layer_norm(x, gain, bias, eps=1e-5):
    n, mean, square = _moments(x)
    scale = (square / n + eps).rsqrt()
    return (x - mean.unsqueeze(-1)) * scale.unsqueeze(-1) * gain + bias

# %% transformer_parameter_count: statistics.mean of encoder and decoder layers
from statistics import mean


def transformer_parameter_count(vocab_size, d_model, num_layers, d_ff):
    attention, ff = 4 * d_model * (d_model + 1), (d_model + 1) * d_ff + (d_ff + 1) * d_model
    layers = [attention + ff + 4 * d_model, 2 * attention + ff + 6 * d_model]
    return vocab_size * d_model + int(2 * num_layers * mean(layers))

# %% EncoderLayer: tensor hooks that change nothing, positional keyword mixture, profiler
import torch
from torch import nn
from torch.profiler import record_function
from course_lib import MultiHeadAttention


class EncoderLayer(nn.Module):
    class _FF(nn.Module):
        def __init__(self, d_model, d_ff):
            super().__init__()
            self.linear1 = nn.Linear(d_model, d_ff)
            self.linear2 = nn.Linear(d_ff, d_model)

        def forward(self, x):
            return self.linear2(self.linear1(x).relu())

    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads)
        self.feed_forward = self._FF(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        with record_function("attention"):
            h = self.norm1(x + self.self_attention(x, key=x, value=x, mask=mask)[0])
        if h.requires_grad:
            h.register_hook(lambda g: g)
        with record_function("feed-forward"):
            return self.norm2(h + self.feed_forward(h))
