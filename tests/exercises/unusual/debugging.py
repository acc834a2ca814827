# %% fix_loss: einsum with one-hot targets
import torch
import torch.nn.functional as F


def fix_loss(logits, targets, pad_id):
    real = targets != pad_id
    wanted = F.one_hot(torch.where(real, targets, 0).long(), logits.shape[-1]).to(logits)
    wanted = wanted * real.unsqueeze(-1)
    return -torch.einsum("blv,blv->", wanted, logits.log_softmax(-1)) / wanted.sum()


# %% fix_loss: nested vmap, zero where padded
import torch
from torch.func import vmap


def fix_loss(logits, targets, pad_id):
    def one(scores, token):
        known = token != pad_id
        index = torch.where(known, token, 0).long()
        surprise = -torch.log_softmax(scores, 0).gather(0, index.unsqueeze(0)).squeeze(0)
        return torch.where(known, surprise, 0.0), known

    surprises, known = vmap(vmap(one))(logits, targets)
    return surprises.sum() / known.sum()


# %% fix_loss: a custom autograd.Function
import torch
from torch.autograd.function import once_differentiable


class CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, wanted):
        shifted = rows - rows.amax(-1, keepdim=True)
        log_p = shifted - shifted.exp().sum(-1, keepdim=True).log()
        ctx.save_for_backward(log_p, wanted)
        return -log_p.take_along_dim(wanted[:, None], 1).mean()

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        log_p, wanted = ctx.saved_tensors
        slope = log_p.exp()
        slope[torch.arange(wanted.numel()), wanted] -= 1
        return grad * slope / wanted.numel(), None


def fix_loss(logits, targets, pad_id):
    keep = targets.ne(pad_id)
    return CrossEntropy.apply(logits[keep], targets[keep].long())


# %% fix_loss: torch.jit.script
import torch


@torch.jit.script
def fix_loss(logits: torch.Tensor, targets: torch.Tensor, pad_id: int) -> torch.Tensor:
    log_p = torch.log_softmax(logits, -1)
    total = torch.zeros([], dtype=logits.dtype, device=logits.device)
    count = 0
    for b in range(targets.size(0)):
        for i in range(targets.size(1)):
            token = int(targets[b, i].item())
            if token != pad_id:
                total = total - log_p[b, i, token]
                count += 1
    return total / count


# %% fix_loss: class with weights for the classes, the padding's weight is nought
import torch
import torch.nn.functional as F


class Loss:
    def __init__(self, reduction="mean"):
        self.options = {"reduction": reduction}

    def __call__(self, logits, targets, pad_id):
        classes = logits.size(-1)
        # one more class takes the padding in; nothing is ever predicted for it
        moved = torch.where(targets == pad_id, classes, targets).flatten().long()
        wide = F.pad(logits.flatten(end_dim=1), (0, 1), value=-1e9)
        weight = torch.ones(classes + 1, dtype=logits.dtype, device=logits.device)
        weight[-1] = 0
        return F.cross_entropy(wide, moved, weight=weight, **self.options)


fix_loss = Loss()


# %% fix_loss: functools.reduce over pairs of the standard library
import itertools
from functools import reduce
from operator import add

import torch


def fix_loss(logits, targets, pad_id):
    pairs = zip(itertools.chain.from_iterable(logits), itertools.chain.from_iterable(targets.tolist()))
    losses = [torch.logsumexp(row - row[token], 0) for row, token in pairs if token != pad_id]
    return reduce(add, losses) / len(losses)


# %% fix_loss: a weighted mean with nll_loss, reduction none
import torch
import torch.nn.functional as F


def fix_loss(logits, targets, pad_id):
    channels_second = F.log_softmax(logits.movedim(-1, 1), dim=1)
    each = F.nll_loss(channels_second, targets.to(torch.int64), ignore_index=pad_id, reduction="none")
    share = (targets != pad_id).to(each.dtype)
    return torch.vdot(each.flatten(), share.flatten() / share.sum())


# %% fix_loss: torch.distributions
import torch
from torch.distributions import Categorical


def fix_loss(logits, targets, pad_id):
    where = torch.nonzero(targets != pad_id, as_tuple=True)
    rows = logits[where]
    rows = rows - rows.detach().amax(-1, keepdim=True)  # Categorical takes logsumexp off, which is coarse at 1e4
    return Categorical(logits=rows, validate_args=False).log_prob(targets[where]).mean().neg()


# %% fix_loss: recursion, halves of the flattened batch
import torch


def _sum(rows, tokens, pad_id):
    n = len(tokens)
    if n == 1:
        if tokens[0] == pad_id:
            return rows.sum() * 0, 0
        return -rows[0].log_softmax(-1)[tokens[0]], 1
    (a, x), (b, y) = (_sum(rows[part], tokens[part], pad_id) for part in (slice(n // 2), slice(n // 2, n)))
    return a + b, x + y


fix_loss = lambda logits, targets, pad_id: torch.div(  # noqa: E731
    *_sum(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1).tolist(), pad_id)
)


# %% fix_decoder_mask: nested comprehensions over lists
import torch


def fix_decoder_mask(tokens, pad_id):
    return torch.tensor(
        [[[[j <= i and token != pad_id for j, token in enumerate(row)] for i in range(len(row))]] for row in tokens.tolist()],
        dtype=torch.bool,
        device=tokens.device,
    )


# %% fix_decoder_mask: einsum of integers
import torch


def fix_decoder_mask(tokens, pad_id):
    length = tokens.size(1)
    lower = torch.ones(length, length, device=tokens.device).tril()
    real = (tokens != pad_id).float()
    return torch.einsum("qk,bk->bqk", lower, real).unsqueeze(1) > 0.5


# %% fix_decoder_mask: vmap over sequences and queries
import torch
from torch.func import vmap


def fix_decoder_mask(tokens, pad_id):
    at = torch.arange(tokens.shape[-1], device=tokens.device)
    one_query = lambda row, i: (at <= i) & (row != pad_id)  # noqa: E731
    return vmap(vmap(one_query, in_dims=(None, 0)), in_dims=(0, None))(tokens, at).unsqueeze(1)


# %% fix_decoder_mask: itertools.accumulate, a growing list of known keys
import itertools

import torch


def fix_decoder_mask(tokens, pad_id):
    length = tokens.shape[1]

    def rows(real):
        known = itertools.accumulate(range(length), lambda row, j: [*row[:j], real[j], *row[j + 1 :]], initial=[False] * length)
        return list(known)[1:]

    masks = [[rows(sequence)] for sequence in (tokens != pad_id).tolist()]
    return torch.tensor(masks, device=tokens.device)


# %% fix_decoder_mask: a cumulative sum over the queries
import torch


def fix_decoder_mask(tokens, pad_id):
    real = tokens.ne(pad_id).to(torch.int64)
    return torch.diag_embed(real).cumsum(dim=-2).bool()[:, None]


# %% fix_decoder_mask: a class with __call__ and a cache of the triangles
import functools

import torch


class Mask:
    @staticmethod
    @functools.lru_cache(maxsize=None)
    def triangle(length):
        return torch.tril_indices(length, length)

    def __call__(self, tokens, pad_id):
        batch, length = tokens.shape
        query, key = self.triangle(length)
        mask = tokens.new_zeros((batch, 1, length, length), dtype=torch.bool)
        mask[:, 0, query, key] = torch.not_equal(tokens, pad_id)[:, key]
        return mask


fix_decoder_mask = Mask()


# %% fix_decoder_mask: index_put and outer comparison with masked_fill
import torch


def fix_decoder_mask(tokens, pad_id):
    n = tokens.shape[1]
    ids = torch.arange(n, device=tokens.device)
    mask = torch.greater_equal(*torch.meshgrid(ids, ids, indexing="ij"))
    mask = mask.repeat(len(tokens), 1, 1, 1)
    mask.masked_fill_(tokens.eq(pad_id)[:, None, None], False)
    return mask


# %% fix_decoder_mask: additive scores, the finite ones are allowed
import torch


def fix_decoder_mask(tokens, pad_id):
    length = tokens.size(-1)
    future = torch.full((length, length), -torch.inf, device=tokens.device).triu(1)
    padding = torch.zeros(tokens.shape, device=tokens.device).masked_fill(tokens == pad_id, -torch.inf)
    return torch.isfinite(future + padding.reshape(-1, 1, 1, length))


# %% fix_decoder_mask: NumPy
import numpy as np
import torch


def fix_decoder_mask(tokens, pad_id):
    array = np.asarray(tokens.tolist())
    causal = np.tri(array.shape[1], dtype=bool)
    both = causal[np.newaxis, np.newaxis] & (array != pad_id)[:, np.newaxis, np.newaxis]
    return torch.tensor(both.tolist(), dtype=torch.bool, device=tokens.device)


# %% fix_decoder_mask: flex attention's mask_mod in loops of torch.where
import torch


def fix_decoder_mask(tokens, pad_id):
    def mask_mod(b, h, q, k):
        return (q >= k) & (tokens[b, k] != pad_id)

    batch, length = tokens.shape
    axes = [torch.arange(n, device=tokens.device) for n in (batch, 1, length, length)]
    b, h, q, k = (axis.view([-1 if i == j else 1 for j in range(4)]) for i, axis in enumerate(axes))
    return mask_mod(b, h, q, k).expand(batch, 1, length, length).clone()


# %% fix_decoder_attention: functools.reduce over the two sources
import math
from functools import reduce

import torch


def _read(state, source):
    keys, mask = source
    keys = state if keys is None else keys
    scores = torch.baddbmm(
        torch.zeros(mask.shape, dtype=state.dtype, device=state.device).masked_fill(~mask, -math.inf),
        state,
        keys.mT,
        alpha=state.shape[-1] ** -0.5,
    )
    return torch.baddbmm(state, scores.softmax(-1), keys)


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    return reduce(_read, [(None, self_mask), (memory, memory_mask)], x)


# %% fix_decoder_attention: vmap over the batch
import torch
from torch.func import vmap


def _layer(x, memory, self_mask, memory_mask):
    c = x.shape[-1] ** 0.5
    y = x + torch.where(self_mask, x @ x.T / c, -torch.inf).softmax(-1) @ x
    return y + torch.where(memory_mask, y @ memory.T / c, -torch.inf).softmax(-1) @ memory


fix_decoder_attention = vmap(_layer)


# %% fix_decoder_attention: a residual decorator
import functools

import torch.nn.functional as F


def residual(function):
    @functools.wraps(function)
    def wrapped(x, *rest):
        return x + function(x, *rest)

    return wrapped


@residual
def _self(x, mask):
    return F.scaled_dot_product_attention(x, x, x, mask)


@residual
def _cross(y, memory, mask):
    return F.scaled_dot_product_attention(y, memory, memory, mask.repeat(1, y.size(1), 1))


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    return _cross(_self(x, self_mask), memory, memory_mask)


# %% fix_decoder_attention: scripted, query by query
import torch


@torch.jit.script
def attend(query: torch.Tensor, source: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    out = torch.jit.annotate(list[torch.Tensor], [])
    root = float(query.size(-1)) ** 0.5
    for i in range(query.size(1)):
        s = (query[:, i].unsqueeze(1) * source).sum(-1) / root
        s = s.masked_fill(torch.logical_not(mask[:, i]), -float("inf"))
        out.append((torch.softmax(s, -1).unsqueeze(-1) * source).sum(1))
    return torch.stack(out, 1)


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    y = x + attend(x, x, self_mask)
    return y + attend(y, memory, memory_mask.expand(y.shape[0], y.shape[1], memory.shape[1]))


# %% fix_decoder_attention: checkpoint and a class with __call__
import torch
from torch.utils.checkpoint import checkpoint


class Attention:
    def __init__(self, source, mask):
        self.source, self.mask = source, mask

    def __call__(self, query):
        source = query if self.source is None else self.source
        scores = torch.einsum("bqd,bkd->bqk", query, source).div(query.size(-1) ** 0.5)
        weights = scores.where(self.mask, -torch.inf).softmax(2)
        return query + torch.einsum("bqk,bkd->bqd", weights, source)


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    for attention in (Attention(None, self_mask), Attention(memory, memory_mask)):
        x = checkpoint(attention, x, use_reentrant=False)
    return x


# %% fix_decoder_attention: the residual as a term of the weights
import torch


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    kind = {"dtype": x.dtype, "device": x.device}
    scale = 1 / x.shape[-1] ** 0.5
    own = (x @ x.mT * scale).masked_fill(~self_mask, -torch.inf).softmax(-1)
    y = (own + torch.eye(x.shape[1], **kind)) @ x
    read = (y @ memory.mT * scale).masked_fill(~memory_mask, -torch.inf).softmax(-1)
    # [I  W] [y; m] = y + W m
    table = torch.cat([torch.eye(y.shape[1], **kind).expand(len(y), -1, -1), read], dim=-1)
    return table @ torch.cat([y, memory], dim=-2)


# %% fix_decoder_attention: threads, one sequence each
from concurrent.futures import ThreadPoolExecutor

import torch


def _one(x, memory, self_mask, memory_mask):
    scale = x.shape[-1] ** -0.5
    rows = []
    for i, row in enumerate(x):
        known = x[self_mask[i]]
        rows.append(row + torch.softmax(known @ row * scale, 0) @ known)
    kept = memory[memory_mask[0]]
    return torch.stack([row + torch.softmax(kept @ row * scale, 0) @ kept for row in rows])


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    grad = torch.is_grad_enabled()

    def work(parts):
        with torch.set_grad_enabled(grad):
            return _one(*parts)

    with ThreadPoolExecutor(max_workers=2) as pool:
        return torch.stack(list(pool.map(work, zip(x, memory, self_mask, memory_mask))))


# %% fix_decoder_attention: a generator of states, powers of two
import math

import torch


def _states(x, sources):
    yield x
    for source, mask in sources:
        source = x if source is None else source
        s = x @ source.transpose(1, 2) * (math.log2(math.e) / math.sqrt(x.shape[-1]))
        s = s + torch.log2(mask.to(s.dtype))
        p = torch.exp2(s - s.detach().amax(-1, keepdim=True))
        x = x + p @ source / p.sum(-1, keepdim=True)
        yield x


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    *_, last = _states(x, [(None, self_mask), (memory, memory_mask)])
    return last


# %% fix_decoder_attention: four dimensions, one head, fused
import torch
import torch.nn.functional as F


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    own, other = x[:, None], memory[:, None]
    own = own + F.scaled_dot_product_attention(own, own, own, attn_mask=self_mask[:, None], dropout_p=0.0)
    bias = torch.zeros_like(memory_mask, dtype=x.dtype).masked_fill_(~memory_mask, -torch.inf)
    read = F.scaled_dot_product_attention(own, other, other, attn_mask=bias[:, None], scale=x.size(-1) ** -0.5)
    return (own + read).squeeze(1)


# %% fix_layer_stack: functools.reduce over the module list
from functools import reduce

import torch
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList(map(lambda _: nn.Linear(d_model, d_model), range(num_layers)))

    def forward(self, x):
        return reduce(lambda state, layer: state + layer(state).relu(), self.layers, x)


# %% fix_layer_stack: recursion in forward
import torch
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList()
        self.layers.extend(nn.Linear(d_model, d_model) for _ in range(num_layers))

    def forward(self, x, depth=0):
        if depth == len(self.layers):
            return x
        return self.forward(x + torch.relu(self.layers[depth](x)), depth + 1)


# %% fix_layer_stack: setattr of numbered sub-modules, forward as a closure
import torch
from torch import nn


def _container(d_model, number):
    holder = nn.Module()
    for i in range(number):
        setattr(holder, str(i), nn.Linear(d_model, d_model))
    return holder


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.num_layers = num_layers
        self.layers = _container(d_model, num_layers)

    def forward(self, x):
        def step(i, state):
            return state if i == self.num_layers else step(i + 1, state + getattr(self.layers, str(i))(state).clamp_min(0))

        return step(0, x)


# %% fix_layer_stack: einsum on the parameters instead of calling the layers
import torch
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(d_model, d_model) for _ in range(num_layers)])

    def forward(self, x):
        for layer in self.layers:
            change = torch.einsum("...i,oi->...o", x, layer.weight) + layer.bias
            x = x + torch.maximum(change, torch.zeros_like(change))
        return x


# %% fix_layer_stack: a subclass of ModuleList that knows how to run
import torch.nn.functional as F
from torch import nn


class Residuals(nn.ModuleList):
    def forward(self, x):
        for layer in self:
            x = x + F.relu(layer(x))
        return x


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = Residuals(nn.Linear(d_model, d_model) for _ in range(num_layers))

    def forward(self, x):
        return self.layers(x)


# %% fix_layer_stack: checkpoint of each layer
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(num_layers)])

    @staticmethod
    def block(layer, x):
        return x + torch.relu(layer(x))

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(self.block, layer, x, use_reentrant=False)
        return x


# %% fix_layer_stack: functional_call with each layer's parameters
import torch
from torch import nn
from torch.func import functional_call


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        layers = [nn.Linear(d_model, d_model) for _ in range(num_layers)]
        self.layers = nn.ModuleDict(dict(zip(map(str, range(num_layers)), layers)))

    def forward(self, x):
        for layer in self.layers.values():
            change = functional_call(layer, dict(layer.named_parameters()), (x,))
            x = x + change * (change > 0)
        return x


# %% fix_layer_stack: the residual in a forward hook of each layer
import torch
from torch import nn


def _residual(layer, inputs, output):
    return inputs[0] + torch.relu(output)


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.Sequential()
        for i in range(num_layers):
            layer = nn.Linear(d_model, d_model)
            layer.register_forward_hook(_residual)
            self.layers.append(layer)

    def forward(self, x):
        return self.layers(x)


# %% fix_layer_stack: a base class, a property and a descriptor-free factory, prints its size
from torch import nn


class Stack(nn.Module):
    def make(self):
        raise NotImplementedError

    def __init__(self, d_model, num_layers):
        super().__init__()
        self.d_model = d_model
        self.layers = nn.ModuleList()
        for index in range(num_layers):
            self.layers.insert(index, self.make())

    @property
    def depth(self):
        return len(self.layers)

    def forward(self, x):
        for i in range(self.depth):
            x = self.step(self.layers[i], x)
        return x


class fix_layer_stack(Stack):
    def make(self):
        return nn.Linear(self.d_model, self.d_model)

    def step(self, layer, x):
        return x.add(nn.functional.threshold(layer(x), 0.0, 0.0))


# %% fix_layer_stack: the rows in one matrix, addmm, one itertools.accumulate
import itertools

import torch
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList(itertools.starmap(nn.Linear, itertools.repeat((d_model, d_model), num_layers)))

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])

        def step(state, layer):
            return state + torch.addmm(layer.bias, state, layer.weight.t()).relu()

        *_, last = itertools.accumulate(self.layers, step, initial=rows)
        return last.reshape(x.shape)


# %% fix_head_split: einsum with a table of slices
import torch


def fix_head_split(x, num_heads):
    d_model = x.shape[-1]
    table = torch.eye(d_model, dtype=x.dtype, device=x.device).reshape(d_model, num_heads, d_model // num_heads)
    return torch.einsum("...lm,mhd->...hld", x, table)


# %% fix_head_split: as_strided on a contiguous copy
import torch


def fix_head_split(x, num_heads):
    x = x.contiguous()
    *batch, length, d_model = x.shape
    size = d_model // num_heads
    lead = x.stride()[:-2]
    return torch.as_strided(x, (*batch, num_heads, length, size), (*lead, size, d_model, 1), x.storage_offset())


# %% fix_head_split: unfold of the last axis
def fix_head_split(x, num_heads):
    size = x.shape[-1] // num_heads
    return x.unfold(-1, size, size).transpose(-2, -3)


# %% fix_head_split: gather with computed indices
import torch


def fix_head_split(x, num_heads):
    *batch, length, d_model = x.shape
    size = d_model // num_heads
    head = torch.arange(num_heads, device=x.device).view(-1, 1, 1)
    at = head * size + torch.arange(size, device=x.device)
    at = at.expand(*batch, num_heads, length, size)
    wide = x.unsqueeze(-3).expand(*batch, num_heads, length, d_model)
    return wide.gather(-1, at)


# %% fix_head_split: recursion over the heads
import torch


def fix_head_split(x, num_heads):
    if num_heads == 1:
        return x.unsqueeze(-3)
    first, rest = x.tensor_split([x.shape[-1] // num_heads], dim=-1)
    return torch.cat((first.unsqueeze(-3), fix_head_split(rest, num_heads - 1)), dim=-3)


# %% fix_head_split: vmap over the heads' starts
import torch
from torch.func import vmap


def fix_head_split(x, num_heads):
    size = x.shape[-1] // num_heads
    places = torch.arange(num_heads * size, device=x.device).reshape(num_heads, size)
    return vmap(lambda at: x.index_select(-1, at), out_dims=x.dim() - 2)(places)


# %% fix_head_split: a custom autograd.Function that joins the heads backwards
import torch


class Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, heads):
        return torch.stack(torch.tensor_split(x, heads, dim=-1), dim=-3)

    @staticmethod
    def backward(ctx, grad):
        return torch.cat(grad.unbind(-3), dim=-1), None


fix_head_split = Split.apply


# %% fix_head_split: written into an empty tensor, head by head
import torch


def fix_head_split(x, num_heads):
    *batch, length, d_model = x.shape
    result = x.new_zeros(*batch, num_heads, length, d_model // num_heads)
    for head, part in enumerate(torch.hsplit(x.reshape(-1, d_model), num_heads)):
        result[..., head, :, :] = part.reshape(*batch, length, -1)
    return result


# %% fix_head_split: a scripted function with negative axes worked out
import torch


@torch.jit.script
def fix_head_split(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    size = x.size(-1) // num_heads
    parts = [x.narrow(-1, h * size, size) for h in range(num_heads)]
    return torch.stack(parts, x.dim() - 2)


# %% fix_head_split: einops's spirit, swapdims after a view of the transposed
from functools import partial

import torch


def _compose(*functions):
    def run(x):
        for function in functions:
            x = function(x)
        return x

    return run


def fix_head_split(x, num_heads):
    return _compose(
        partial(torch.swapdims, dim0=-1, dim1=-2),
        partial(torch.unflatten, dim=-2, sizes=(num_heads, x.shape[-1] // num_heads)),
        partial(torch.swapaxes, axis0=-1, axis1=-2),
    )(x)


# %% fix_softmax: two passes of the standard library over unbound slices
import functools
import operator

import torch


def fix_softmax(scores, dim=-1):
    slices = scores.unbind(dim)
    top = functools.reduce(torch.maximum, slices).detach()
    powers = [(part - top).exp() for part in slices]
    total = functools.reduce(operator.add, powers)
    return torch.stack([power / total for power in powers], dim)


# %% fix_softmax: the derivative of logsumexp
import torch
from torch.func import grad


def fix_softmax(scores, dim=-1):
    def free_energy(s):
        return torch.logsumexp(s, dim).sum()

    return grad(free_energy)(scores - scores.detach().amax(dim, keepdim=True))


# %% fix_softmax: a custom autograd.Function
import torch


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, dim):
        p = scores - scores.amax(dim, keepdim=True)
        p.exp_()
        p.div_(p.sum(dim, keepdim=True))
        ctx.dim = dim
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        return p * (g - (g * p).sum(ctx.dim, keepdim=True)), None


def fix_softmax(scores, dim=-1):
    return Softmax.apply(scores, dim)


# %% fix_softmax: vmap of a softmax of one row
import torch
from torch.func import vmap


def _row(row):
    e = torch.exp(row - row.max())
    return e / torch.sum(e)


def fix_softmax(scores, dim=-1):
    rows = scores.transpose(dim, -1)
    run = _row
    for _ in range(rows.dim() - 1):
        run = vmap(run)
    return run(rows).transpose(dim, -1)


# %% fix_softmax: one over the sum of exponentials of differences
import torch


def fix_softmax(scores, dim=-1):
    s = scores.movedim(dim, -1)
    # 1 / Σⱼ exp(sⱼ − sᵢ), as the sigmoid of minus the logarithm of the others' part: nothing overflows
    gaps = s.unsqueeze(-2) - s.unsqueeze(-1)
    return torch.exp(-torch.logsumexp(gaps, dim=-1)).movedim(-1, dim)


# %% fix_softmax: a scripted function in powers of two
import torch


@torch.jit.script
def fix_softmax(scores: torch.Tensor, dim: int = -1) -> torch.Tensor:
    ratio = 1.4426950408889634
    top = scores.detach().amax(dim, keepdim=True)
    p = torch.exp2((scores - top) * ratio)
    return p / p.sum(dim, keepdim=True)


# %% fix_softmax: a class with __call__ and a partial application, sort for the maximum
import torch


class Normalised:
    def __init__(self, function):
        self.function = function

    def __call__(self, scores, dim=-1):
        values = self.function(scores, dim)
        return torch.divide(values, torch.sum(values, dim, keepdim=True))


@Normalised
def fix_softmax(scores, dim):
    ordered, _ = torch.sort(scores, dim=dim, descending=True)
    return scores.sub(ordered.narrow(dim, 0, 1)).exp()


# %% fix_softmax: online, a running maximum and total
import torch


def fix_softmax(scores, dim=-1):
    m = torch.full_like(scores.select(dim, 0), torch.finfo(scores.dtype).min)
    total = torch.zeros_like(m)
    for s in torch.unbind(scores, dim):
        new = torch.maximum(m, s.detach())
        total = total * torch.exp(m - new) + torch.exp(s - new)
        m = new
    return (scores - m.unsqueeze(dim)).exp() * total.reciprocal().unsqueeze(dim)


# %% fix_softmax: matrix product with ones, axes permuted
import torch


def fix_softmax(scores, dim=-1):
    axes = list(range(scores.dim()))
    axes[dim], axes[-1] = axes[-1], axes[dim]
    moved = scores.permute(axes)
    e = (moved - moved.detach().max(dim=-1, keepdim=True).values).exp()
    ones = e.new_ones((e.size(-1), e.size(-1)))
    return (e / (e @ ones)).permute(axes)


# %% fix_scaled_attention: nested vmap
import torch
from torch.func import vmap


def _head(q, k, v):
    def one(row):
        w = torch.softmax(torch.mv(k, row) / len(row) ** 0.5, 0)
        return w @ v, w

    return vmap(one)(q)


def fix_scaled_attention(query, key, value):
    run = _head
    for _ in range(query.dim() - 2):
        run = vmap(run)
    return run(query, key, value)


# %% fix_scaled_attention: a custom autograd.Function
import torch


class Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v):
        c = q.shape[-1] ** -0.5
        w = torch.softmax(q @ k.mT * c, -1)
        ctx.c = c
        ctx.save_for_backward(q, k, v, w)
        return w @ v, w

    @staticmethod
    def backward(ctx, g_out, g_w):
        q, k, v, w = ctx.saved_tensors
        g = g_w + g_out @ v.mT
        s = w * (g - (g * w).sum(-1, keepdim=True)) * ctx.c
        return s @ k, s.mT @ q, w.mT @ g_out


fix_scaled_attention = Attention.apply


# %% fix_scaled_attention: key by key, online softmax
import torch


def fix_scaled_attention(query, key, value):
    root = query.size(-1) ** 0.5
    m = query.new_full(query.shape[:-1], torch.finfo(query.dtype).min)
    total, mixed, kept = 0.0, 0.0, []
    for k, v in zip(key.unbind(-2), value.unbind(-2)):
        s = torch.linalg.vecdot(query, k.unsqueeze(-2)) / root
        kept.append(s)
        new = torch.maximum(m, s.detach())
        old, p = (m - new).exp(), (s - new).exp()
        total = total * old + p
        mixed = mixed * old[..., None] + p[..., None] * v.unsqueeze(-2)
        m = new
    weights = torch.exp(torch.stack(kept, -1) - m[..., None]) / total[..., None]
    return mixed / total[..., None], weights


# %% fix_scaled_attention: a class with __call__, closures for scores and weights
import math

import torch


class Attend:
    def __init__(self, temperature=math.sqrt):
        self.temperature = temperature

    def __call__(self, query, key, value):
        width = query.shape[-1]

        def scores():
            return torch.einsum("...id,...jd->...ij", query, key) / self.temperature(width)

        def weights(s=None):
            s = scores() if s is None else s
            return (s - s.logsumexp(-1, keepdim=True)).exp()

        w = weights()
        return torch.einsum("...ij,...jv->...iv", w, value), w


fix_scaled_attention = Attend()


# %% fix_scaled_attention: a column of ones carries the total
import torch
import torch.nn.functional as F


def fix_scaled_attention(query, key, value):
    d_v = value.shape[-1]
    scores = query.matmul(key.transpose(-1, -2)).mul(query.shape[-1] ** -0.5)
    powers = torch.exp(scores - scores.max(-1, True)[0])
    both = powers @ F.pad(value, (0, 1), value=1.0)
    output, total = both.split((d_v, 1), dim=-1)
    return output / total, powers / total


# %% fix_scaled_attention: scripted
import torch
from typing import Tuple


@torch.jit.script
def fix_scaled_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    scores = torch.matmul(query, key.transpose(-2, -1)) / float(query.size(-1)) ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return torch.matmul(weights, value), weights


# %% fix_scaled_attention: a namedtuple of results, decorator for the batch
import functools
from collections import namedtuple

import torch

Attended = namedtuple("Attended", "output weights")


def flat(function):
    @functools.wraps(function)
    def wrapped(*tensors):
        batch = tensors[0].shape[:-2]
        results = function(*(t.reshape(-1, *t.shape[-2:]) for t in tensors))
        return Attended(*(r.reshape(*batch, *r.shape[1:]) for r in results))

    return wrapped


@flat
def fix_scaled_attention(query, key, value):
    scale = query.shape[2] ** -0.5
    empty = query.new_zeros(())
    weights = torch.baddbmm(empty, query, key.transpose(1, 2), beta=0, alpha=scale).softmax(2)
    return torch.bmm(weights, value), weights


# %% fix_scaled_attention: differences of scores, sums over expanded axes
import torch


def fix_scaled_attention(query, key, value):
    q = (query / torch.tensor(query.shape[-1], dtype=query.dtype).sqrt()).unsqueeze(-2)
    s = (q * key.unsqueeze(-3)).sum(-1)
    w = torch.exp(-torch.logsumexp(s.unsqueeze(-2) - s.unsqueeze(-1), -1))
    return (w.unsqueeze(-1) * value.unsqueeze(-3)).sum(-2), w


# %% fix_scaled_attention: squared distances, which differ by what softmax ignores
import torch


def fix_scaled_attention(query, key, value):
    # q·k = (|q|² + |k|² − |q − k|²) / 2, and |q|² is the same for each key
    apart = (query.unsqueeze(-2) - key.unsqueeze(-3)).square().sum(-1)
    scores = (key.square().sum(-1).unsqueeze(-2) - apart) * 0.5
    weights = scores.div(query.shape[-1] ** 0.5).softmax(-1)
    return weights @ value, weights


# %% fix_attention_weights: lambda and einsum
import torch

fix_attention_weights = lambda query, key: torch.softmax(  # noqa: E731
    torch.einsum("...qd,...kd,->...qk", query, key, torch.tensor(query.shape[-1] ** -0.5, dtype=query.dtype)), -1
)


# %% fix_attention_weights: recursion over the batch dimensions
import torch


def fix_attention_weights(query, key):
    if query.dim() > 2:
        return torch.stack([fix_attention_weights(q, k) for q, k in zip(query, key)])
    return torch.softmax(torch.mm(query, key.t()) / query.size(1) ** 0.5, dim=1)


# %% fix_attention_weights: the derivative of logsumexp by the scores
import torch
from torch.func import grad


def fix_attention_weights(query, key):
    scores = torch.matmul(query, key.mT) / query.shape[-1] ** 0.5
    return grad(lambda s: s.logsumexp(-1).sum())(scores)


# %% fix_attention_weights: vmap of one query
import torch
from torch.func import vmap


def fix_attention_weights(query, key):
    one = lambda q, k: torch.softmax(k @ q / q.numel() ** 0.5, -1)  # noqa: E731
    run = vmap(one, in_dims=(0, None))
    for _ in range(query.ndim - 2):
        run = vmap(run)
    return run(query, key)


# %% fix_attention_weights: a custom autograd.Function for the softmax of the rows
import torch


class RowSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, s):
        p = (s - s.amax(-1, keepdim=True)).exp()
        p /= p.sum(-1, keepdim=True)
        ctx.save_for_backward(p)
        return p

    @staticmethod
    def backward(ctx, g):
        p = ctx.saved_tensors[0]
        return p * (g - torch.linalg.vecdot(g, p).unsqueeze(-1))


def fix_attention_weights(query, key):
    return RowSoftmax.apply((query * query.size(-1) ** -0.5) @ key.transpose(-2, -1))


# %% fix_attention_weights: comprehension over queries and keys
import math

import torch


def fix_attention_weights(query, key):
    root = math.sqrt(query.shape[-1])
    table = [[(q * k).sum(-1) / root for k in key.unbind(-2)] for q in query.unbind(-2)]
    rows = []
    for row in table:
        top = torch.stack(row).amax(0).detach()
        powers = [(s - top).exp() for s in row]
        rows.append(torch.stack([p / sum(powers) for p in powers], dim=-1))
    return torch.stack(rows, dim=-2)


# %% fix_attention_weights: tensordot of the flattened batch, its diagonal taken
import torch


def fix_attention_weights(query, key):
    lead, n, m, d = query.shape[:-2], query.shape[-2], key.shape[-2], query.shape[-1]
    q, k = query.reshape(-1, n, d), key.reshape(-1, m, d)
    everything = torch.tensordot(q, k, dims=([2], [2]))
    scores = torch.diagonal(everything, dim1=0, dim2=2).movedim(-1, 0)
    return torch.special.softmax(scores / d**0.5, -1).reshape(*lead, n, m)


# %% fix_attention_weights: a module without parameters, Softmax as a layer
import torch
from torch import nn


class Weights(nn.Module):
    def __init__(self):
        super().__init__()
        self.normalise = nn.Softmax(dim=-1)

    def forward(self, query, key):
        return self.normalise(query @ key.mT * torch.rsqrt(query.new_tensor(float(query.size(-1)))))


fix_attention_weights = Weights()


# %% fix_attention_weights: a pipeline of partial functions, checkpointed
from functools import partial, reduce

import torch
from torch.utils.checkpoint import checkpoint


def _pipeline(query, key):
    steps = [
        partial(torch.matmul, other=key.transpose(-2, -1)),
        partial(torch.mul, other=query.shape[-1] ** -0.5),
        partial(torch.softmax, dim=query.dim() - 1),
    ]
    return reduce(lambda x, step: step(x), steps, query)


def fix_attention_weights(query, key):
    return checkpoint(_pipeline, query, key, use_reentrant=False)


# %% fix_masked_softmax: a custom autograd.Function in float64
import torch


class Masked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, mask):
        s = scores.double().masked_fill(~mask, -torch.inf)
        top = s.amax(-1, keepdim=True).nan_to_num(neginf=0.0)
        e = torch.exp(s - top)
        p = e / e.sum(-1, keepdim=True).clamp_min(1e-300)
        ctx.save_for_backward(p)
        return p.to(scores.dtype)

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        wide = g.double()
        return (p * (wide - (wide * p).sum(-1, keepdim=True))).to(g.dtype), None


def fix_masked_softmax(scores, mask):
    return Masked.apply(scores, mask)


# %% fix_masked_softmax: one more key that only an empty row attends to
import torch


def fix_masked_softmax(scores, mask):
    mask = torch.broadcast_to(mask, scores.shape)
    hidden = scores.where(mask, scores.new_tensor(float("-inf")))
    sink = torch.zeros_like(scores[..., :1]).masked_fill(mask.any(-1, keepdim=True), float("-inf"))
    return torch.softmax(torch.cat([hidden, sink], dim=-1), dim=-1)[..., :-1]


# %% fix_masked_softmax: vmap over the rows
import torch
from torch.func import vmap


def _row(s, may):
    wide = s.to(torch.float64)
    top = torch.where(may, wide, -torch.inf).max()
    top = torch.where(may.any(), top, 0.0)
    e = torch.where(may, torch.exp(torch.where(may, wide - top, 0.0)), 0.0)
    return (e / torch.where(may.any(), e.sum(), 1.0)).to(s.dtype)


def fix_masked_softmax(scores, mask):
    run = _row
    for _ in range(scores.dim() - 1):
        run = vmap(run)
    return run(scores, mask.expand_as(scores))


# %% fix_masked_softmax: scripted
import torch


@torch.jit.script
def fix_masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    closed = torch.logical_not(mask)
    empty = closed.expand_as(scores).all(-1, True)
    blocked = torch.logical_and(closed, torch.logical_not(empty))
    weights = torch.softmax(scores.masked_fill(blocked, -float("inf")), -1)
    return weights.masked_fill(closed, 0.0)


# %% fix_masked_softmax: recursion over the batch, indexing of the open keys
import torch


def fix_masked_softmax(scores, mask):
    mask = mask.expand(scores.shape)
    if scores.dim() > 1:
        return torch.stack([fix_masked_softmax(s, m) for s, m in zip(scores, mask)])
    if not bool(mask.any()):
        return scores.mul(0)
    places = mask.nonzero(as_tuple=True)
    return torch.zeros_like(scores).index_put(places, scores[places].softmax(0))


# %% fix_masked_softmax: a decorator that widens and narrows the dtype
import functools

import torch


def in_double(function):
    @functools.wraps(function)
    def wrapped(scores, mask):
        return function(scores.to(torch.float64), mask).to(scores.dtype)

    return wrapped


@in_double
def fix_masked_softmax(scores, mask):
    allowed = mask.to(scores.dtype)
    penalty = (1 - allowed) * 1e30
    weights = torch.softmax(scores - penalty, dim=-1)
    return torch.mul(weights, allowed)


# %% fix_masked_softmax: log_softmax and exp
import torch


def fix_masked_softmax(scores, mask):
    kind = torch.promote_types(scores.dtype, torch.float32)
    usable = mask | ~mask.any(dim=-1, keepdim=True)
    log_p = scores.to(kind).masked_fill(~usable, -torch.inf).log_softmax(-1)
    safe = log_p.masked_fill(~usable, 0)
    return (safe.exp() * mask).to(scores.dtype)


# %% fix_masked_softmax: half the lowest number of the wide dtype, added
import torch
import torch.nn.functional as F


def fix_masked_softmax(scores, mask):
    wide = torch.float32 if scores.dtype in (torch.float16, torch.bfloat16) else scores.dtype
    bias = torch.zeros(mask.shape, dtype=wide, device=scores.device).masked_fill(~mask, torch.finfo(wide).min / 2)
    p = F.softmax(scores.to(wide) + bias, dim=-1)
    return torch.where(mask, p, p.new_zeros(())).type_as(scores)


# %% fix_masked_softmax: sorted by openness, the open keys first
import torch


def fix_masked_softmax(scores, mask):
    full = mask.expand_as(scores).contiguous()
    order = torch.argsort(full.to(torch.int8), dim=-1, descending=True, stable=True)
    ranked = scores.double().gather(-1, order)
    number = full.sum(-1, keepdim=True)
    inside = torch.arange(scores.shape[-1], device=scores.device) < number
    top = ranked.detach().where(inside, torch.tensor(-torch.inf, dtype=torch.float64)).amax(-1, keepdim=True)
    e = (ranked - top).masked_fill(~inside, -torch.inf).exp().masked_fill(~inside, 0)
    e = e / e.sum(-1, keepdim=True).where(number > 0, torch.ones((), dtype=torch.float64))
    return torch.zeros_like(e).scatter(-1, order, e).to(scores)


# %% fix_padding_mask: vmap over heads and sequences
import torch
from torch.func import vmap


def _head(q, k, v, real):
    s = torch.where(real, q @ k.T * q.shape[-1] ** -0.5, -torch.inf)
    return torch.softmax(s, -1) @ v


def fix_padding_mask(query, key, value, real):
    over_heads = vmap(_head, in_dims=(0, 0, 0, None))
    return vmap(over_heads)(query, key, value, real != 0)


# %% fix_padding_mask: the logarithm of zeros and ones, added
import torch
import torch.nn.functional as F


def fix_padding_mask(query, key, value, real):
    bias = real.detach().to(query.dtype).log()
    return F.scaled_dot_product_attention(query, key, value, bias[:, None, None])


# %% fix_padding_mask: padded keys sorted to the end, then cut
import torch


def fix_padding_mask(query, key, value, real):
    open_keys = [torch.argwhere(row > 0).flatten() for row in real]

    def attend(b):
        k, v = (t[b].index_select(-2, open_keys[b]) for t in (key, value))
        s = torch.einsum("hqd,hkd->hqk", query[b], k) / query.shape[-1] ** 0.5
        return torch.einsum("hqk,hkv->hqv", s.softmax(-1), v)

    return torch.stack(list(map(attend, range(len(real)))))


# %% fix_padding_mask: a class with __call__, mask as a closure
import math

import torch


class Attention:
    def __init__(self, allowed):
        self.allowed = allowed

    def __call__(self, query, key, value):
        scores = torch.matmul(query, key.mT).div(math.sqrt(query.size(-1)))
        top = self.allowed(scores.detach(), -torch.inf).amax(-1, keepdim=True)
        powers = self.allowed(torch.exp(self.allowed(scores - top, 0.0)), 0.0)
        return powers.matmul(value) / powers.sum(-1, keepdim=True)


def fix_padding_mask(query, key, value, real):
    closed = torch.eq(real, 0).unsqueeze(-2).unsqueeze(-2)
    return Attention(lambda x, fill: x.masked_fill(closed, fill))(query, key, value)


# %% fix_padding_mask: scripted
import torch


@torch.jit.script
def fix_padding_mask(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, real: torch.Tensor) -> torch.Tensor:
    scores = torch.matmul(query, key.transpose(2, 3)) / float(query.size(3)) ** 0.5
    keep = real.gt(0).unsqueeze(1).unsqueeze(1)
    weights = torch.softmax(scores.masked_fill(keep.logical_not(), -float("inf")), dim=3)
    return torch.matmul(weights, value)


# %% fix_padding_mask: key after key, a padded one leaves the state alone
import torch


def fix_padding_mask(query, key, value, real):
    q = query / query.size(-1) ** 0.5
    m = torch.full_like(q[..., :1], torch.finfo(q.dtype).min).detach()
    total, mixed = torch.zeros_like(m), 0.0
    for j in range(key.size(2)):
        s = (q * key[:, :, j : j + 1]).sum(-1, keepdim=True)
        yes = real[:, j].bool().view(-1, 1, 1, 1)
        new = torch.where(yes, torch.maximum(m, s.detach()), m)
        shrink = torch.exp(m - new)
        p = torch.exp(torch.where(yes, s - new, 0.0)) * yes
        total = total * shrink + p
        mixed = mixed * shrink + p * value[:, :, j : j + 1]
        m = new
    return mixed / total


# %% fix_padding_mask: a custom autograd.Function
import torch


class PaddedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, closed):
        c = q.shape[-1] ** -0.5
        w = (q @ k.mT * c).masked_fill_(closed, -torch.inf).softmax(-1)
        ctx.c = c
        ctx.save_for_backward(q, k, v, w)
        return w @ v

    @staticmethod
    def backward(ctx, g):
        q, k, v, w = ctx.saved_tensors
        gw = g @ v.mT
        s = w * (gw - (gw * w).sum(-1, keepdim=True)) * ctx.c
        return s @ k, s.mT @ q, w.mT @ g, None


def fix_padding_mask(query, key, value, real):
    return PaddedAttention.apply(query, key, value, (real < 0.5)[:, None, None, :])


# %% fix_padding_mask: one long row of keys for the whole batch
import torch


def fix_padding_mask(query, key, value, real):
    b, h, n, d = query.shape
    m = key.shape[2]
    q = query.transpose(0, 1).reshape(h, b * n, d)
    k = key.transpose(0, 1).reshape(h, b * m, d)
    v = value.transpose(0, 1).reshape(h, b * m, value.shape[-1])
    of_query = torch.arange(b, device=q.device).repeat_interleave(n)
    of_key = torch.arange(b, device=q.device).repeat_interleave(m)
    may = (of_query[:, None] == of_key) & (real.reshape(-1) == 1)
    w = (q @ k.mT / d**0.5).masked_fill(~may, -torch.inf).softmax(-1)
    return (w @ v).unflatten(1, (b, n)).transpose(0, 1)


# %% fix_padding_mask: heads in a loop, einsum, warnings and prints
import warnings

import torch


def fix_padding_mask(query, key, value, real):
    if not real.dtype.is_floating_point:
        warnings.warn("an integer mask")
    kept = real.bool()
    print("real tokens:", kept.sum(1).tolist())
    heads = []
    for q, k, v in zip(*(t.unbind(1) for t in (query, key, value))):
        s = torch.einsum("bqd,bkd->bqk", q, k).mul(q.size(-1) ** -0.5)
        s = s.masked_fill(~kept.unsqueeze(1), -torch.inf)
        heads.append(torch.einsum("bqk,bkv->bqv", torch.exp(s - s.logsumexp(-1, keepdim=True)), v))
    return torch.stack(heads, 1)


# %% fix_cached_attention: both axes turned round, the mask starts at the last query
import torch


def fix_cached_attention(query, key, value):
    q, k, v = (t.flip(-2) for t in (query, key, value))
    n, m = q.shape[-2], k.shape[-2]
    may = torch.ones(n, m, dtype=torch.bool, device=q.device).triu()
    w = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~may, -torch.inf).softmax(-1)
    return (w @ v).flip(-2)


# %% fix_cached_attention: recursion, the last query sees everything
import torch


def fix_cached_attention(query, key, value):
    last = query[..., -1:, :]
    seen = torch.softmax(last @ key.mT * query.shape[-1] ** -0.5, -1) @ value
    if query.shape[-2] == 1:
        return seen
    earlier = fix_cached_attention(query[..., :-1, :], key[..., :-1, :], value[..., :-1, :])
    return torch.cat((earlier, seen), dim=-2)


# %% fix_cached_attention: vmap with the positions of the queries
import torch
from torch.func import vmap


def fix_cached_attention(query, key, value):
    n, m = query.shape[-2], key.shape[-2]
    places = torch.arange(m, device=query.device)

    def one(q, last, k, v):
        s = torch.where(places <= last, k @ q / q.shape[0] ** 0.5, -torch.inf)
        return torch.softmax(s, 0) @ v

    run = vmap(one, in_dims=(0, 0, None, None))
    for _ in range(query.dim() - 2):
        run = vmap(run, in_dims=(0, None, 0, 0))
    return run(query, places[m - n :], key, value)


# %% fix_cached_attention: cumulative sums of the exponentials
import torch


def fix_cached_attention(query, key, value):
    n, m = query.shape[-2], key.shape[-2]
    s = torch.einsum("...qd,...kd->...qk", query, key) / query.shape[-1] ** 0.5
    # the maximum of what each query may see: a running one, so that the future cannot overflow
    at = torch.arange(m - n, m, device=s.device)
    top = s.detach().cummax(-1).values.gather(-1, at[:, None].expand(*s.shape[:-1], 1))
    seen = torch.arange(m, device=s.device) <= at[:, None]
    p = torch.where(seen, torch.exp(torch.where(seen, s - top, 0.0)), 0.0)
    total = p.cumsum(-1)[..., -1:]
    mixed = (p.unsqueeze(-1) * value.unsqueeze(-3)).cumsum(-2)[..., -1, :]
    return mixed / total


# %% fix_cached_attention: the cache and the new keys apart, joined by their totals
import torch


def _part(q, k, v, mask=None):
    s = q @ k.mT
    if mask is not None:
        s = s.masked_fill(~mask, -torch.inf)
    return s.logsumexp(-1, keepdim=True), s.softmax(-1) @ v


def fix_cached_attention(query, key, value):
    n, m = query.shape[-2], key.shape[-2]
    q = query * query.shape[-1] ** -0.5
    k_old, k_new = key.split([m - n, n], dim=-2)
    v_old, v_new = value.split([m - n, n], dim=-2)
    size, new = _part(q, k_new, v_new, torch.ones(n, n, dtype=torch.bool, device=q.device).tril())
    if m == n:
        return new
    old_size, old = _part(q, k_old, v_old)
    share = torch.sigmoid(old_size - size)
    return share * old + (1 - share) * new


# %% fix_cached_attention: one token after another, a real cache
import torch


class Cache:
    def __init__(self, keys, values):
        self.keys, self.values = keys, values

    def __call__(self, query, key, value):
        self.keys = [*self.keys, key]
        self.values = [*self.values, value]
        k, v = torch.stack(self.keys, -2), torch.stack(self.values, -1)
        w = torch.softmax(torch.einsum("...d,...kd->...k", query, k) / query.shape[-1] ** 0.5, -1)
        return torch.einsum("...vk,...k->...v", v, w)


def fix_cached_attention(query, key, value):
    before = key.shape[-2] - query.shape[-2]
    q, k, v = (list(t.unbind(-2)) for t in (query, key, value))
    cache = Cache(k[:before], v[:before])
    return torch.stack([cache(*step) for step in zip(q, k[before:], v[before:])], dim=-2)


# %% fix_cached_attention: scripted
import torch


@torch.jit.script
def fix_cached_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    n = query.size(-2)
    m = key.size(-2)
    future = torch.ones([n, m], dtype=torch.bool, device=query.device).triu(m - n + 1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / float(query.size(-1)) ** 0.5
    return torch.matmul(torch.softmax(scores.masked_fill(future, -float("inf")), -1), value)


# %% fix_cached_attention: as_strided-free sliding rows, itertools.count and a generator
import itertools

import torch
import torch.nn.functional as F


def _rows(query, key, value):
    for q, end in zip(query.split(1, dim=-2), itertools.count(key.shape[-2] - query.shape[-2] + 1)):
        yield F.scaled_dot_product_attention(q, key.narrow(-2, 0, end), value.narrow(-2, 0, end))


def fix_cached_attention(query, key, value):
    return torch.concat([*_rows(query, key, value)], dim=-2)


# %% fix_cached_attention: a penalty that grows with the distance into the future
import torch


def fix_cached_attention(query, key, value):
    n, m = query.shape[-2], key.shape[-2]
    rows = torch.arange(n, dtype=torch.float64, device=query.device).unsqueeze(1) + (m - n)
    ahead = torch.relu(torch.arange(m, dtype=torch.float64, device=query.device) - rows)
    s = query.double() @ key.double().mT / query.shape[-1] ** 0.5 - ahead * 1e12
    return (torch.softmax(s, -1) @ value.double()).to(query.dtype)


# %% fix_layer_norm: a centring matrix
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    n = x.shape[-1]
    centring = torch.eye(n, dtype=x.dtype, device=x.device) - 1 / n
    centred = x @ centring
    return torch.addcmul(bias, centred * gain, (centred.pow(2).mean(-1, True) + eps).rsqrt())


# %% fix_layer_norm: a custom autograd.Function
import torch


class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gain, bias, eps):
        variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
        scale = torch.rsqrt(variance + eps)
        z = (x - mean) * scale
        ctx.save_for_backward(z, scale, gain)
        return z * gain + bias

    @staticmethod
    def backward(ctx, g):
        z, scale, gain = ctx.saved_tensors
        h = g * gain
        d_x = scale * (h - h.mean(-1, keepdim=True) - z * (h * z).mean(-1, keepdim=True))
        rows = g.reshape(-1, g.shape[-1])
        return d_x, (rows * z.reshape(rows.shape)).sum(0), rows.sum(0), None


def fix_layer_norm(x, gain, bias, eps=1e-5):
    return Norm.apply(x, gain, bias, eps)


# %% fix_layer_norm: vmap over the rows
import torch
from torch.func import vmap


def fix_layer_norm(x, gain, bias, eps=1e-5):
    def row(r):
        c = r - r.mean()
        return c / torch.sqrt(torch.dot(c, c) / len(r) + eps) * gain + bias

    for _ in range(x.dim() - 1):
        row = vmap(row)
    return row(x)


# %% fix_layer_norm: sums in float64
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    wide = x.to(torch.float64)
    n = wide.size(-1)
    mean = torch.einsum("...d->...", wide).unsqueeze(-1) / n
    variance = torch.einsum("...d,...d->...", wide - mean, wide - mean).unsqueeze(-1) / n
    return (gain.double() * (wide - mean) / (variance + eps).sqrt() + bias.double()).to(x.dtype)


# %% fix_layer_norm: half the mean squared distance of all pairs is the variance
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    pairs = x.unsqueeze(-1) - x.unsqueeze(-2)
    variance = pairs.square().mean((-2, -1)).unsqueeze(-1) / 2
    return pairs.mean(-1) / (variance + eps) ** 0.5 * gain + bias


# %% fix_layer_norm: Welford's running mean and sum of squares
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    mean, squares = torch.zeros_like(x[..., 0]), torch.zeros_like(x[..., 0])
    for count, one in enumerate(x.unbind(-1), start=1):
        step = one - mean
        mean = mean + step / count
        squares = squares + step * (one - mean)
    scale = torch.sqrt(squares / x.shape[-1] + eps)
    return torch.stack([(x[..., i] - mean) / scale * gain[i] + bias[i] for i in range(x.shape[-1])], dim=-1)


# %% fix_layer_norm: scripted
import torch


@torch.jit.script
def fix_layer_norm(x: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    mean = x.mean(-1, keepdim=True)
    centred = x - mean
    return centred * torch.rsqrt((centred * centred).mean(-1, keepdim=True) + eps) * gain + bias


# %% fix_layer_norm: a length by torch.linalg, eps as one more coordinate
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    n = x.size(-1)
    centred = x - x.mean(dim=-1, keepdim=True)
    corner = torch.full_like(centred[..., :1], (n * eps) ** 0.5)
    length = torch.linalg.vector_norm(torch.cat([centred, corner], dim=-1), dim=-1, keepdim=True)
    return gain * centred * n**0.5 / length + bias


# %% fix_layer_norm: a class with __call__ and a property, batch flattened
import torch


class Rows:
    def __init__(self, x):
        self.shape, self.rows = x.shape, x.reshape(-1, x.shape[-1])

    @property
    def centred(self):
        return self.rows - self.rows.mean(1, keepdim=True)

    def __call__(self, gain, bias, eps):
        variance = self.rows.std(1, correction=0, keepdim=True).square() if eps < 0 else self.centred.square().mean(1, True)
        normal = self.centred.T / (variance.T + eps).sqrt()
        return (torch.diag(gain) @ normal + bias[:, None]).T.reshape(self.shape)


def fix_layer_norm(x, gain, bias, eps=1e-5):
    return Rows(x)(gain, bias, eps)


# %% fix_layer_norm: a pipeline of closures, functools.reduce
from functools import reduce

import torch


def centre(x):
    return torch.sub(x, x.mean(-1, keepdim=True))


def shrink(eps):
    return lambda x: x * torch.float_power(x.square().mean(-1, keepdim=True).add(eps), -0.5).to(x.dtype)


def affine(gain, bias):
    return lambda x: torch.einsum("...d,d->...d", x, gain) + bias


def fix_layer_norm(x, gain, bias, eps=1e-5):
    return reduce(lambda value, step: step(value), (centre, shrink(eps), affine(gain, bias)), x)
