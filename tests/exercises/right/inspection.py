# %% previous_token_score: the diagonal below the main one
def previous_token_score(weights):
    return weights.diagonal(offset=-1, dim1=-2, dim2=-1).mean(-1)


# %% previous_token_score: two index vectors
import torch


def previous_token_score(weights):
    i = torch.arange(1, weights.shape[-1], device=weights.device)
    return weights[..., i, i - 1].mean(dim=-1)


# %% previous_token_score: a loop over the queries, a running sum
def previous_token_score(weights):
    length = weights.size(-1)
    total = 0
    for i in range(1, length):
        total = total + weights[..., i, i - 1]
    return total / (length - 1)


# %% previous_token_score: einsum with a shifted identity
import torch


def previous_token_score(weights):
    n = weights.shape[-1]
    back = torch.eye(n, dtype=weights.dtype, device=weights.device).roll(1, dims=0)
    back[0] = 0
    return torch.einsum("...ij,ij->...", weights, back) / back.sum()


# %% previous_token_score: a bool mask by distance, and torch.where
import torch


def previous_token_score(weights):
    position = torch.arange(weights.shape[-1], device=weights.device)
    is_previous = position[:, None] - position[None, :] == 1
    kept = torch.where(is_previous, weights, weights.new_zeros(()))
    return kept.sum((-2, -1)) / is_previous.sum()


# %% previous_token_score: gather along the keys, without the first query
import torch


def previous_token_score(weights):
    rows = weights[..., 1:, :]
    key = torch.arange(rows.shape[-2], device=rows.device)
    key = key.reshape(-1, 1).expand(*rows.shape[:-1], 1)
    return rows.gather(-1, key).squeeze(-1).sum(-1) / (weights.shape[-1] - 1)


# %% previous_token_score: flattened, every (L + 1)-th number from the second row on
def previous_token_score(weights):
    length = weights.shape[-1]
    flat = weights.reshape(*weights.shape[:-2], length * length)
    return flat[..., length :: length + 1].mean(-1)


# %% previous_token_score: the trace of the block without first row and last column, by vmap
import torch


def previous_token_score(weights):
    batch, length = weights.shape[:-2], weights.shape[-1]
    blocks = weights[..., 1:, :-1].reshape(-1, length - 1, length - 1)
    traces = torch.func.vmap(torch.trace)(blocks)
    return (traces / (length - 1)).reshape(batch)


# %% attention_entropy: torch.special.entr
import torch


def attention_entropy(weights):
    return torch.special.entr(weights).sum(dim=-1)


# %% attention_entropy: xlogy
import torch


def attention_entropy(weights):
    return -torch.xlogy(weights, weights).sum(-1)


# %% attention_entropy: zeros are replaced by ones before the logarithm
import torch


def attention_entropy(weights):
    positive = weights > 0
    safe = torch.where(positive, weights, torch.ones_like(weights))
    return -(weights * safe.log()).sum(-1)


# %% attention_entropy: clamped inside the logarithm only, by the smallest normal number; einsum
import torch


def attention_entropy(weights):
    log_weights = weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
    return torch.einsum("...k,...k->...", weights, log_weights).neg()


# %% attention_entropy: NaN of 0 · log 0 filled in afterwards
def attention_entropy(weights):
    terms = weights * weights.log()
    terms = terms.masked_fill(weights == 0, 0.0)
    return 0.0 - terms.sum(dim=-1)


# %% attention_entropy: a loop over the keys, in place on a tensor of its own
import torch


def attention_entropy(weights):
    entropy = torch.zeros(weights.shape[:-1], dtype=weights.dtype, device=weights.device)
    for column in weights.unbind(-1):
        present = column != 0
        entropy[present] -= column[present] * torch.log(column[present])
    return entropy


# %% attention_entropy: scattered sum over the places with a weight, index_add
import torch


def attention_entropy(weights):
    flat = weights.reshape(-1, weights.shape[-1])
    row, key = flat.nonzero(as_tuple=True)
    w = flat[row, key]
    out = torch.zeros(flat.shape[0], dtype=w.dtype, device=w.device)
    return out.index_add(0, row, -w * w.log()).reshape(weights.shape[:-1])


# %% attention_entropy: base two first, then turned into nats, inside vmap
import math

import torch


def bits(row):
    return -(row * torch.log2(row.where(row > 0, 1))).sum()


def attention_entropy(weights):
    rows = weights.flatten(0, -2)
    return torch.func.vmap(bits)(rows).mul(math.log(2)).view(weights.shape[:-1])


# %% attention_entropy: an autograd.Function with its own backward pass
import torch


class Entropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w):
        logs = torch.where(w > 0, w, 1.0).log()
        ctx.save_for_backward(logs)
        return -(w * logs).sum(-1)

    @staticmethod
    def backward(ctx, grad):
        (logs,) = ctx.saved_tensors
        return -(logs + 1) * grad.unsqueeze(-1)


def attention_entropy(weights):
    return Entropy.apply(weights)


# %% attention_between_words: two one-hot matrices
import torch


def attention_between_words(weights, query_words, key_words):
    def belongs(words):
        number = torch.arange(int(words.max()) + 1, device=words.device)
        return (number[:, None] == words[None, :]).to(weights.dtype)

    to_queries, to_keys = belongs(query_words), belongs(key_words)
    mean = to_queries / to_queries.sum(1, keepdim=True)
    return mean @ weights @ to_keys.mT


# %% attention_between_words: einsum with F.one_hot, column for −1 cut off
import torch
import torch.nn.functional as F


def attention_between_words(weights, query_words, key_words):
    q = F.one_hot(query_words + 1)[:, 1:].to(weights)
    k = F.one_hot(key_words + 1)[:, 1:].to(weights)
    summed = torch.einsum("...ij,iq,jk->...qk", weights, q, k)
    return summed / q.sum(0)[:, None]


# %% attention_between_words: two loops over words and bool masks
import torch


def attention_between_words(weights, query_words, key_words):
    rows = []
    for a in range(int(query_words.max()) + 1):
        from_a = weights[..., query_words == a, :].mean(-2)
        row = [from_a[..., key_words == b].sum(-1) for b in range(int(key_words.max()) + 1)]
        rows.append(torch.stack(row, dim=-1))
    return torch.stack(rows, dim=-2)


# %% attention_between_words: index_add along both axes, tokens without a word taken out first
import torch


def attention_between_words(weights, query_words, key_words):
    rows, columns = query_words >= 0, key_words >= 0
    w = weights[..., rows, :][..., columns]
    query_words, key_words = query_words[rows], key_words[columns]
    n_k, n_q = int(key_words.max()) + 1, int(query_words.max()) + 1
    to_words = w.new_zeros(*w.shape[:-1], n_k).index_add(-1, key_words, w)
    total = w.new_zeros(*w.shape[:-2], n_q, n_k).index_add(-2, query_words, to_words)
    pieces = torch.bincount(query_words, minlength=n_q).to(w.dtype)
    return total / pieces[:, None]


# %% attention_between_words: scatter_add with one extra bin for −1, the bin dropped at the end
import torch


def gathered(x, words, dim):
    bins = words.max() + 2
    slot = torch.where(words < 0, bins - 1, words)
    shape = list(x.shape)
    shape[dim] = int(bins)
    view = [1] * x.dim()
    view[dim] = -1
    slot = slot.view(view).expand_as(x)
    out = torch.zeros(shape, dtype=x.dtype, device=x.device).scatter_add_(dim, slot, x)
    return out.narrow(dim, 0, int(bins) - 1)


def attention_between_words(weights, query_words, key_words):
    w = gathered(gathered(weights, key_words, weights.dim() - 1), query_words, weights.dim() - 2)
    count = gathered(torch.ones_like(query_words), query_words, 0)
    return w / count.to(w.dtype).unsqueeze(-1)


# %% attention_between_words: a dictionary of words to places, in place on a tensor of its own
import torch


def places(words):
    found = {}
    for place, word in enumerate(words.tolist()):
        if word != -1:
            found.setdefault(word, []).append(place)
    return found


def attention_between_words(weights, query_words, key_words):
    queries, keys = places(query_words), places(key_words)
    out = torch.zeros(*weights.shape[:-2], len(queries), len(keys), dtype=weights.dtype, device=weights.device)
    for a, rows in queries.items():
        for b, columns in keys.items():
            for i in rows:
                for j in columns:
                    out[..., a, b] += weights[..., i, j] / len(rows)
    return out


# %% attention_between_words: sorted pieces and differences of a cumulative sum
import torch


def cumulated(x, words):
    order = words.argsort(stable=True)
    x = x.index_select(-1, order)
    numbers = words[order].contiguous()
    word = torch.arange(int(words.max()) + 1, device=words.device)
    start, end = torch.searchsorted(numbers, word), torch.searchsorted(numbers, word, right=True)
    sums = torch.cat([torch.zeros_like(x[..., :1]), x.cumsum(-1)], -1)
    return sums[..., end] - sums[..., start], end - start


def attention_between_words(weights, query_words, key_words):
    by_key, _ = cumulated(weights, key_words)
    by_both, count = cumulated(by_key.transpose(-2, -1), query_words)
    return (by_both / count).transpose(-2, -1)


# %% attention_rollout: a loop, each layer from the left
import torch


def attention_rollout(weights):
    length = weights.shape[-1]
    eye = torch.eye(length, dtype=weights.dtype, device=weights.device)
    rollout = eye
    for layer in weights:
        rollout = (0.5 * layer.mean(1) + 0.5 * eye) @ rollout
    return rollout


# %% attention_rollout: functools.reduce over the layers in reverse order
from functools import reduce

import torch


def attention_rollout(weights):
    mixed = weights.mean(dim=2)
    mixed = (mixed + torch.eye(mixed.shape[-1]).to(mixed)) / 2
    return reduce(torch.matmul, mixed.flip(0).unbind(0))


# %% attention_rollout: in place on the diagonal of its own mean
def attention_rollout(weights):
    a = weights.sum(2) / weights.size(2) / 2
    a.diagonal(dim1=-2, dim2=-1).add_(0.5)
    result = a[-1]
    for layer in range(a.shape[0] - 2, -1, -1):
        result = result.bmm(a[layer])
    return result


# %% attention_rollout: neighbours multiplied in pairs until one matrix is left
import torch


def attention_rollout(weights):
    matrices = list(torch.lerp(weights.mean(2), torch.eye(weights.shape[-1]).to(weights), 0.5))
    while len(matrices) > 1:
        pairs = [later @ earlier for earlier, later in zip(matrices[::2], matrices[1::2])]
        if len(matrices) % 2:
            pairs.append(matrices[-1])
        matrices = pairs
    return matrices[0]


# %% attention_rollout: linalg.multi_dot for each sentence
import torch


def attention_rollout(weights):
    num_layers, batch, heads, length, _ = weights.shape
    identity = torch.eye(length, dtype=weights.dtype, device=weights.device)
    found = []
    for b in range(batch):
        chain = [(weights[n, b].mean(0) + identity) / 2 for n in reversed(range(num_layers))]
        found.append(chain[0] if len(chain) == 1 else torch.linalg.multi_dot(chain))
    return torch.stack(found)


# %% attention_rollout: one input token after the other goes through the layers, as a vector (no matrix products)
import torch


def attention_rollout(weights):
    length = weights.shape[-1]
    columns = []
    for j in range(length):
        share = weights.new_zeros(weights.shape[1], length)
        share[:, j] = 1
        for layer in weights:
            attended = (layer * share[:, None, None, :]).sum(-1).mean(1)
            share = (attended + share) / 2
        columns.append(share)
    return torch.stack(columns, dim=-1)


# %% attention_rollout: recursion, einsum over heads and positions at once
import torch


def attention_rollout(weights):
    below = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
    if len(weights) == 0:
        return below.expand(weights.shape[1], -1, -1)
    below = attention_rollout(weights[:-1])
    attended = torch.einsum("bhij,bjk->bik", weights[-1], below) / weights.shape[2]
    return attended / 2 + below / 2


# %% attention_rollout: vmap over the batch, a stacked identity as one more "head"
import torch


def one_sentence(weights):
    layers, heads, length, _ = weights.shape
    keep = torch.eye(length, dtype=weights.dtype, device=weights.device).expand(layers, 1, -1, -1)
    share = weights.new_tensor([0.5 / heads] * heads + [0.5])
    mixed = torch.einsum("nhij,h->nij", torch.cat([weights, keep], 1), share)
    total = mixed[0]
    for n in range(1, layers):
        total = torch.mm(mixed[n], total)
    return total


def attention_rollout(weights):
    return torch.func.vmap(one_sentence, in_dims=1)(weights)


# %% head_switched_off: a clone with zeros in place of the head, merged, F.linear
import torch.nn.functional as F


def head_switched_off(heads, weight, bias, off):
    heads = heads.clone()
    heads[:, off] = 0
    batch, num_heads, length, d_head = heads.shape
    merged = heads.transpose(1, 2).reshape(batch, length, num_heads * d_head)
    return F.linear(merged, weight, bias)


# %% head_switched_off: a mask over the heads and one einsum with the weight cut by heads
import torch


def head_switched_off(heads, weight, bias, off):
    num_heads, d_head = heads.shape[1], heads.shape[3]
    on = (torch.arange(num_heads, device=heads.device) != off).to(heads.dtype)
    by_head = weight.view(weight.shape[0], num_heads, d_head) if weight.is_contiguous() else weight.reshape(
        weight.shape[0], num_heads, d_head
    )
    return torch.einsum("bhld,ohd,h->blo", heads, by_head, on) + bias


# %% head_switched_off: a sum over the other heads, each with its columns
def head_switched_off(heads, weight, bias, off):
    d_head = heads.shape[-1]
    output = bias.expand(heads.shape[0], heads.shape[2], -1)
    for h in range(heads.shape[1]):
        if h == off:
            continue
        output = output + heads[:, h] @ weight[:, h * d_head : (h + 1) * d_head].T
    return output


# %% head_switched_off: the whole output, minus what the head adds
def head_switched_off(heads, weight, bias, off):
    d_head = heads.shape[-1]
    whole = heads.permute(0, 2, 1, 3).flatten(2) @ weight.mT + bias
    columns = weight[:, off * d_head : (off + 1) * d_head]
    return whole - heads[:, off] @ columns.mT


# %% head_switched_off: the head's columns of the weight set to zero, functional_call of an nn.Linear
import torch
from torch import nn


def head_switched_off(heads, weight, bias, off):
    d_out, d_model = weight.shape
    d_head = d_model // heads.shape[1]
    column = torch.arange(d_model, device=weight.device)
    pruned = weight.masked_fill(column // d_head == off, 0)
    layer = nn.Linear(d_model, d_out, device="meta")
    x = heads.swapaxes(1, 2).flatten(start_dim=-2)
    return torch.func.functional_call(layer, {"weight": pruned, "bias": bias}, (x,))


# %% head_switched_off: the head really taken out, a smaller projection
import torch


def without(x, start, stop, dim):
    before = x.narrow(dim, 0, start)
    after = x.narrow(dim, stop, x.shape[dim] - stop)
    return torch.cat([before, after], dim)


def head_switched_off(heads, weight, bias, off):
    d = heads.shape[-1]
    others = without(heads, off, off + 1, 1)
    smaller = without(weight, off * d, (off + 1) * d, 1)
    x = torch.cat([head for head in others.unbind(1)], -1) if others.shape[1] else heads.new_zeros(
        heads.shape[0], heads.shape[2], 0
    )
    return torch.addmm(bias, x.flatten(0, 1), smaller.t()).unflatten(0, x.shape[:2])


# %% head_switched_off: torch.where over the merged features, vmap over the batch
import torch


def head_switched_off(heads, weight, bias, off):
    _, num_heads, _, d_head = heads.shape
    silent = torch.arange(num_heads * d_head, device=heads.device).div(d_head, rounding_mode="floor") == off

    def sentence(x):
        side_by_side = x.movedim(0, 1).reshape(x.shape[1], -1)
        return torch.where(silent, 0.0, side_by_side) @ weight.T + bias

    return torch.func.vmap(sentence)(heads)


# %% head_switched_off: index_copy into an empty row of features, one position at a time
import torch


def head_switched_off(heads, weight, bias, off):
    batch, num_heads, length, d_head = heads.shape
    rows = []
    for i in range(length):
        features = torch.zeros(batch, weight.shape[1], dtype=heads.dtype, device=heads.device)
        for h in set(range(num_heads)) - {off}:
            place = torch.arange(h * d_head, (h + 1) * d_head, device=heads.device)
            features = features.index_copy(1, place, heads[:, h, i])
        rows.append((weight @ features.unsqueeze(-1)).squeeze(-1) + bias)
    return torch.stack(rows, 1)
