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
    return Categorical(logits=logits[where], validate_args=False).log_prob(targets[where]).mean().neg()


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
