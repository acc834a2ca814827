# %% fix_loss: cross_entropy leaves the padding out of the sum and of the mean
import torch.nn.functional as F


def fix_loss(logits, targets, pad_id):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten().long(), ignore_index=pad_id)


# %% fix_loss: log_softmax, gather, masked mean
import torch


def fix_loss(logits, targets, pad_id):
    counted = targets != pad_id
    log_p = torch.log_softmax(logits, dim=-1)
    safe = torch.where(counted, targets, 0).long()
    losses = -log_p.gather(-1, safe.unsqueeze(-1)).squeeze(-1)
    return (losses * counted).sum() / counted.sum()


# %% fix_loss: only the real positions, logsumexp minus the target's logit
import torch


def fix_loss(logits, targets, pad_id):
    keep = targets.ne(pad_id)
    rows = logits[keep]
    rows = rows - rows.detach().amax(-1, keepdim=True)
    wanted = targets[keep].long()
    right = rows[torch.arange(len(rows), device=rows.device), wanted]
    return (torch.logsumexp(rows, -1) - right).mean()


# %% fix_loss: sums over the batch, token by token
import torch


def fix_loss(logits: torch.Tensor, targets: torch.Tensor, pad_id: int) -> torch.Tensor:
    total, count = logits.new_zeros(()), 0
    for row, wanted in zip(logits, targets):
        for scores, token in zip(row, wanted.tolist()):
            if token == pad_id:
                continue
            top = scores.detach().max()
            total = total + ((scores - top).exp().sum().log() + (top - scores[token]))
            count += 1
    return total / count


# %% fix_loss: nn.CrossEntropyLoss on the classes in the second axis, summed
from torch import nn


def fix_loss(logits, targets, pad_id):
    criterion = nn.CrossEntropyLoss(ignore_index=pad_id, reduction="sum")
    real_tokens = (targets != pad_id).sum()
    return criterion(logits.transpose(1, 2), targets.long()) / real_tokens


# %% fix_decoder_mask: tril and the keys that are no padding
import torch


def fix_decoder_mask(tokens, pad_id):
    length = tokens.shape[1]
    causal = torch.tril(torch.ones(length, length, dtype=torch.bool, device=tokens.device))
    real = tokens != pad_id
    return causal[None, None] & real[:, None, None, :]


# %% fix_decoder_mask: what is blocked, turned round at the end
import torch


def fix_decoder_mask(tokens, pad_id):
    _, length = tokens.shape
    future = torch.triu(torch.ones((length, length), dtype=torch.bool, device=tokens.device), diagonal=1)
    padded_key = (tokens == pad_id).unsqueeze(1).unsqueeze(2)
    blocked = future | padded_key
    return ~blocked


# %% fix_decoder_mask: positions compared
import torch


def fix_decoder_mask(tokens, pad_id):
    batch, length = tokens.shape
    position = torch.arange(length, device=tokens.device)
    causal = position.view(1, 1, 1, length) <= position.view(1, 1, length, 1)
    return torch.logical_and(causal, tokens.ne(pad_id).view(batch, 1, 1, length))


# %% fix_decoder_mask: writes row by row into a mask of zeros
import torch


def fix_decoder_mask(tokens, pad_id):
    batch, length = tokens.shape
    mask = torch.zeros(batch, 1, length, length, dtype=torch.bool, device=tokens.device)
    for query in range(length):
        mask[:, 0, query, : query + 1] = tokens[:, : query + 1] != pad_id
    return mask


# %% fix_decoder_mask: expand and tril of the real keys
import torch


def fix_decoder_mask(tokens, pad_id):
    real = (tokens != pad_id)[:, None, None]
    return real.expand(-1, 1, tokens.size(-1), -1).tril()


# %% fix_decoder_attention: two fused calls
import torch.nn.functional as F


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    x = x + F.scaled_dot_product_attention(x, x, x, attn_mask=self_mask)
    return x + F.scaled_dot_product_attention(x, memory, memory, attn_mask=memory_mask.expand(-1, x.shape[1], -1))


# %% fix_decoder_attention: a helper that masks with minus infinity
import math

import torch


def attend(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, dim=-1) @ value


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    y = x + attend(x, x, x, self_mask)
    return y + attend(y, memory, memory, memory_mask)


# %% fix_decoder_attention: additive masks
import torch
import torch.nn.functional as F


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    def additive(mask):
        bias = torch.zeros(mask.shape, dtype=x.dtype, device=x.device)
        return bias.masked_fill(mask.logical_not(), float("-inf"))

    own = F.scaled_dot_product_attention(x, x, x, attn_mask=additive(self_mask))
    y = x + own
    read = F.scaled_dot_product_attention(y, memory, memory, attn_mask=additive(memory_mask))
    return y + read


# %% fix_decoder_attention: one sequence of the batch after another, its real memory only
import torch


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    scale = x.shape[-1] ** -0.5
    results = []
    for target, source, may, real in zip(x, memory, self_mask, memory_mask):
        scores = torch.where(may, target @ target.T * scale, -torch.inf)
        y = target + scores.softmax(-1) @ target
        kept = source[real[0]]
        results.append(y + (y @ kept.T * scale).softmax(-1) @ kept)
    return torch.stack(results)


# %% fix_decoder_attention: einsum, masked exponentials divided by their sum
import torch


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    y = x
    for source, mask in ((x, self_mask), (memory, memory_mask)):
        scores = torch.einsum("bqd,bkd->bqk", y, source) / x.size(-1) ** 0.5
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        powers = torch.exp(scores - scores.amax(-1, keepdim=True).detach()) * mask
        y = y + torch.einsum("bqk,bkd->bqd", powers / powers.sum(-1, keepdim=True), source)
    return y


# %% fix_layer_stack: nn.ModuleList
import torch
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(num_layers)])

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return x


# %% fix_layer_stack: nn.Sequential as a container, walked through
import torch.nn.functional as F
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model: int, num_layers: int):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(d_model, d_model) for _ in range(num_layers)))

    def forward(self, x):
        for layer in self.layers:
            x = x + F.relu(layer(x))
        return x


# %% fix_layer_stack: append to an empty ModuleList, index in forward
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.num_layers = num_layers
        self.layers = nn.ModuleList()
        for _ in range(num_layers):
            self.layers.append(nn.Linear(d_model, d_model))

    def forward(self, x):
        for i in range(self.num_layers):
            x = x + self.layers[i](x).clamp(min=0)
        return x


# %% fix_layer_stack: add_module on a bare module
import torch
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        nn.Module.__init__(self)
        self.layers = nn.Module()
        for i in range(num_layers):
            self.layers.add_module(str(i), nn.Linear(d_model, d_model))
        self.relu = nn.ReLU()

    def forward(self, x):
        for layer in self.layers.children():
            x = torch.add(x, self.relu(layer(x)))
        return x


# %% fix_layer_stack: a ModuleDict with numbers for keys
import torch
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleDict({f"{n}": nn.Linear(d_model, d_model) for n in range(num_layers)})

    def forward(self, x):
        for layer in self.layers.values():
            change = layer(x)
            x = x + torch.where(change > 0, change, torch.zeros_like(change))
        return x


# %% fix_head_split: view, then transpose
def fix_head_split(x, num_heads):
    *batch, length, d_model = x.shape
    return x.reshape(*batch, length, num_heads, d_model // num_heads).transpose(-3, -2)


# %% fix_head_split: chunks of the features, stacked
import torch


def fix_head_split(x, num_heads):
    return torch.stack(x.chunk(num_heads, dim=-1), dim=-3)


# %% fix_head_split: unflatten and movedim, contiguous
def fix_head_split(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).movedim(-2, -3).contiguous()


# %% fix_head_split: one head after another into an empty tensor
import torch


def fix_head_split(x, num_heads):
    size = x.shape[-1] // num_heads
    heads = []
    for h in range(num_heads):
        heads.append(x[..., h * size : (h + 1) * size].unsqueeze(-3))
    return torch.cat(heads, dim=-3)


# %% fix_head_split: the batch flattened and permute
import torch


def fix_head_split(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    length, d_model = x.shape[-2:]
    d_head = d_model // num_heads
    batch = x.shape[:-2]
    heads = x.reshape(-1, length, num_heads, d_head).permute(0, 2, 1, 3)
    return heads.reshape(*batch, num_heads, length, d_head)


# %% fix_softmax: it needs no repair, the detached maximum is only a shift
import torch


def fix_softmax(scores, dim=-1):
    highest = scores.detach().amax(dim=dim, keepdim=True)
    powers = torch.exp(scores - highest)
    return powers / powers.sum(dim=dim, keepdim=True)


# %% fix_softmax: the maximum in the graph
def fix_softmax(scores, dim=-1):
    shifted = scores - scores.max(dim=dim, keepdim=True).values
    e = shifted.exp()
    return e / e.sum(dim, keepdim=True)


# %% fix_softmax: F.normalize, the exponentials have norm one as a sum of absolute values
import torch.nn.functional as F


def fix_softmax(scores, dim=-1):
    powers = (scores - scores.amax(dim=dim, keepdim=True)).exp()
    return F.normalize(powers, p=1.0, dim=dim)


# %% fix_softmax: exp of the scores less their logsumexp
import torch


def fix_softmax(scores, dim=-1):
    shifted = scores - scores.amax(dim, keepdim=True)
    return torch.exp(shifted - torch.logsumexp(shifted, dim, keepdim=True))


# %% fix_softmax: the axis goes last and comes back
import torch


def fix_softmax(scores: torch.Tensor, dim: int = -1) -> torch.Tensor:
    rows = scores.movedim(dim, -1)
    with torch.no_grad():
        top = rows.max(-1, keepdim=True)[0]
    e = torch.exp(rows - top)
    return torch.div(e, e.sum(-1, keepdim=True)).movedim(-1, dim)


# %% fix_scaled_attention: matmul, square root of the width
import math

import torch


def fix_scaled_attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights


# %% fix_scaled_attention: einsum, the query scaled first
import torch


def fix_scaled_attention(query, key, value):
    scaled = query * query.size(-1) ** -0.5
    weights = torch.einsum("...qd,...kd->...qk", scaled, key).softmax(-1)
    return torch.einsum("...qk,...kv->...qv", weights, value), weights


# %% fix_scaled_attention: exponentials and their sum, divided at the end
import torch


def fix_scaled_attention(query, key, value):
    width = query.shape[-1]
    scores = torch.matmul(query, key.mT) * width**-0.5
    powers = (scores - scores.detach().amax(-1, keepdim=True)).exp()
    total = powers.sum(-1, keepdim=True)
    return torch.matmul(powers, value) / total, powers / total


# %% fix_scaled_attention: query by query
import torch


def fix_scaled_attention(query, key, value):
    root = torch.tensor(query.shape[-1], dtype=query.dtype, device=query.device).sqrt()
    outputs, weights = [], []
    for one in query.unbind(-2):
        scores = (one.unsqueeze(-2) * key).sum(-1) / root
        weight = torch.nn.functional.softmax(scores, dim=-1)
        weights.append(weight)
        outputs.append((weight.unsqueeze(-1) * value).sum(-2))
    return torch.stack(outputs, dim=-2), torch.stack(weights, dim=-2)


# %% fix_scaled_attention: both sides scaled by the fourth root, log_softmax
import torch


def fix_scaled_attention(query, key, value):
    fourth = query.shape[-1] ** 0.25
    scores = torch.matmul(query / fourth, (key / fourth).mT)
    weights = scores.log_softmax(dim=-1).exp()
    return torch.matmul(weights, value), weights


# %% fix_attention_weights: softmax over the last axis
import math

import torch


def fix_attention_weights(query, key):
    return torch.softmax(query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1]), dim=-1)


# %% fix_attention_weights: einsum, exponentials divided by their sum
import torch


def fix_attention_weights(query, key):
    scores = torch.einsum("...id,...jd->...ij", query, key) / query.shape[-1] ** 0.5
    e = (scores - scores.amax(dim=-1, keepdim=True)).exp()
    return e / e.sum(dim=-1, keepdim=True)


# %% fix_attention_weights: batch flattened, bmm, softmax over dim 2
import torch


def fix_attention_weights(query, key):
    shape = (*query.shape[:-1], key.shape[-2])
    q = query.reshape(-1, *query.shape[-2:])
    k = key.reshape(-1, *key.shape[-2:])
    scores = torch.bmm(q, k.transpose(1, 2)) / q.shape[2] ** 0.5
    return scores.softmax(dim=2).reshape(shape)


# %% fix_attention_weights: a product of expanded axes, log_softmax
import torch


def fix_attention_weights(query, key):
    scores = (query[..., :, None, :] * key[..., None, :, :]).sum(dim=-1)
    return torch.log_softmax(scores / query.shape[-1] ** 0.5, dim=-1).exp()


# %% fix_attention_weights: keys first, softmax over the second axis from the end, turned back
import torch


def fix_attention_weights(query, key):
    scores = key @ query.mT
    return torch.softmax(scores * query.shape[-1] ** -0.5, dim=-2).mT


# %% fix_masked_softmax: minus infinity, empty rows rescued before softmax
import torch


def fix_masked_softmax(scores, mask):
    some = mask.any(dim=-1, keepdim=True)
    hidden = scores.masked_fill(~mask & some, float("-inf"))
    return torch.softmax(hidden, dim=-1).masked_fill(~mask, 0.0)


# %% fix_masked_softmax: the lowest number of the dtype, weights set to zero
import torch


def fix_masked_softmax(scores, mask):
    mask = mask.expand(scores.shape)
    low = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    weights = torch.softmax(low, dim=-1)
    return torch.where(mask, weights, torch.zeros_like(weights))


# %% fix_masked_softmax: exponentials by hand, the sum of an empty row replaced by one
import torch


def fix_masked_softmax(scores, mask):
    wide = scores.double()
    top = wide.detach().masked_fill(~mask, float("-inf")).amax(-1, keepdim=True)
    top = top.masked_fill(top == float("-inf"), 0.0)
    e = torch.exp((wide - top).masked_fill(~mask, -torch.inf))
    total = e.sum(dim=-1, keepdim=True)
    return (e / total.masked_fill(total == 0, 1.0)).to(scores.dtype)


# %% fix_masked_softmax: row by row, on the keys that may be attended to
import torch


def fix_masked_softmax(scores, mask):
    width = scores.shape[-1]
    rows = scores.reshape(-1, width)
    masks = mask.expand(scores.shape).reshape(-1, width)
    result = []
    for row, may in zip(rows, masks):
        weights = row * 0
        if may.any():
            weights = weights.masked_scatter(may, torch.softmax(row[may], dim=0))
        result.append(weights)
    return torch.stack(result).reshape(scores.shape)


# %% fix_masked_softmax: a clone in float32 or wider, filled in place
import torch


def fix_masked_softmax(scores, mask):
    kind = scores.dtype
    copy = scores.clone() if kind == torch.float64 else scores.to(torch.float32, copy=True)
    copy.masked_fill_(~mask, -1e30)
    weights = copy.softmax(-1) * mask
    return weights.to(kind)


# %% fix_padding_mask: a bool mask for fused attention
import torch
import torch.nn.functional as F


def fix_padding_mask(query, key, value, real):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=real.to(torch.bool)[:, None, None, :])


# %% fix_padding_mask: zeros and minus infinities added by fused attention
import torch
import torch.nn.functional as F


def fix_padding_mask(query, key, value, real):
    bias = torch.zeros(real.shape, dtype=query.dtype, device=query.device)
    bias = bias.masked_fill(real == 0, float("-inf"))
    return F.scaled_dot_product_attention(query, key, value, attn_mask=bias.unsqueeze(1).unsqueeze(1))


# %% fix_padding_mask: by hand with masked_fill
import math

import torch


def fix_padding_mask(query, key, value, real):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    scores = scores.masked_fill((real < 0.5).view(len(real), 1, 1, -1), -math.inf)
    return torch.softmax(scores, dim=-1) @ value


# %% fix_padding_mask: each sequence with its real keys only
import torch
import torch.nn.functional as F


def fix_padding_mask(query, key, value, real):
    outputs = []
    for q, k, v, r in zip(query, key, value, real):
        kept = r.nonzero().squeeze(-1)
        outputs.append(F.scaled_dot_product_attention(q, k[:, kept], v[:, kept]))
    return torch.stack(outputs)


# %% fix_padding_mask: exponentials times zeros and ones
import torch


def fix_padding_mask(query, key, value, real):
    kept = real.to(query.dtype)[:, None, None, :]
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) / query.shape[-1] ** 0.5
    lowest = scores.detach().amin(-1, keepdim=True)
    top = torch.where(kept > 0, scores.detach(), lowest).amax(-1, keepdim=True)
    # a padded key may have a higher score: it must not overflow before it is dropped
    e = torch.exp(torch.where(kept > 0, scores - top, 0)) * kept
    return torch.einsum("bhqk,bhkv->bhqv", e / e.sum(-1, keepdim=True), value)


# %% fix_cached_attention: tril with the offset of the queries
import torch
import torch.nn.functional as F


def fix_cached_attention(query, key, value):
    n, m = query.shape[-2], key.shape[-2]
    mask = torch.ones(n, m, dtype=torch.bool, device=query.device).tril(diagonal=m - n)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


# %% fix_cached_attention: positions compared, by hand
import math

import torch


def fix_cached_attention(query, key, value):
    len_q, len_k = query.size(-2), key.size(-2)
    positions = torch.arange(len_k, device=query.device)
    future = positions[None, :] > positions[len_k - len_q :, None]
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    return scores.masked_fill(future, float("-inf")).softmax(dim=-1) @ value


# %% fix_cached_attention: each query with its part of the cache
import torch
import torch.nn.functional as F


def fix_cached_attention(query, key, value):
    before = key.shape[-2] - query.shape[-2]
    outputs = []
    for i in range(query.shape[-2]):
        known = before + i + 1
        outputs.append(
            F.scaled_dot_product_attention(query[..., i : i + 1, :], key[..., :known, :], value[..., :known, :])
        )
    return torch.cat(outputs, dim=-2)


# %% fix_cached_attention: empty queries in front make it square
import torch.nn.functional as F


def fix_cached_attention(query, key, value):
    new = query.shape[-2]
    missing = key.shape[-2] - new
    square = F.pad(query, (0, 0, missing, 0))
    return F.scaled_dot_product_attention(square, key, value, is_causal=True)[..., missing:, :]


# %% fix_cached_attention: minus infinity above the shifted diagonal, added
import torch


def fix_cached_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    n, m = query.shape[-2], key.shape[-2]
    bias = torch.full((n, m), float("-inf"), dtype=query.dtype, device=query.device).triu(m - n + 1)
    scores = torch.einsum("...qd,...kd->...qk", query, key) * query.shape[-1] ** -0.5 + bias
    return torch.einsum("...qk,...kv->...qv", scores.softmax(-1), value)


# %% fix_layer_norm: mean and biased variance
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, keepdim=True, unbiased=False)
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias


# %% fix_layer_norm: biased standard deviation, eps joined to it under the root
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    centred = x - torch.mean(x, dim=-1, keepdim=True)
    length = x.shape[-1]
    variance = torch.einsum("...d,...d->...", centred, centred).unsqueeze(-1) / length
    return torch.lerp(torch.zeros_like(x), centred / (variance + eps).sqrt(), gain) + bias


# %% fix_layer_norm: mean square of the centred values, rsqrt
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    scale = torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)
    return centred * scale * gain + bias


# %% fix_layer_norm: var_mean with the correction set to zero
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return torch.addcmul(bias, (x - mean) * (variance + eps).pow(-0.5), gain)


# %% fix_layer_norm: the unbiased variance put right by (n - 1) / n
import torch


def fix_layer_norm(x: torch.Tensor, gain: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    n = x.shape[-1]
    biased = x.var(dim=-1, keepdim=True) * (n - 1) / n
    return (x - x.sum(-1, keepdim=True) / n) / (biased + eps) ** 0.5 * gain + bias
