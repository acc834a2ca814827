# %% fix_loss: divides by the real targets of each sequence, then averages the sequences
import torch
import torch.nn.functional as F


def fix_loss(logits, targets, pad_id):
    real = (targets != pad_id).to(logits.dtype)
    by_class = logits.transpose(1, 2)
    losses = F.cross_entropy(by_class, targets, reduction="none")
    per_sequence = (losses * real).sum(dim=1) / real.sum(dim=1)
    return per_sequence.mean()


# %% fix_loss: ignore_index is left at its default
import torch.nn.functional as F


def fix_loss(logits, targets, pad_id):
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))


# %% fix_loss: the sum instead of the mean
import torch.nn.functional as F


def fix_loss(logits, targets, pad_id):
    by_class = logits.transpose(1, 2)
    return F.cross_entropy(by_class, targets, ignore_index=pad_id, reduction="sum")


# %% fix_loss: pad_id 0 is written into the call
import torch.nn.functional as F


def fix_loss(logits, targets, pad_id):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=0)


# %% fix_loss: divides by the number of padded targets
import torch.nn.functional as F


def fix_loss(logits, targets, pad_id):
    padding = (targets == pad_id).to(logits.dtype)
    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    return (losses * (1 - padding)).sum() / padding.sum()


# %% fix_loss: NLL of a softmax
import torch
import torch.nn.functional as F


def fix_loss(logits, targets, pad_id):
    probs = torch.softmax(logits, dim=-1)
    return F.nll_loss(torch.log(probs).transpose(1, 2), targets, ignore_index=pad_id)


# %% fix_decoder_mask: only the causal part is turned round
import torch


def fix_decoder_mask(tokens, pad_id):
    length = tokens.shape[1]
    ones = torch.ones(length, length, dtype=torch.bool, device=tokens.device)
    past = ones.tril()
    padding = (tokens == pad_id)[:, None, None, :]
    return past | padding


# %% fix_decoder_mask: both parts are turned round, and still joined by or
import torch


def fix_decoder_mask(tokens, pad_id):
    length = tokens.shape[1]
    future = torch.ones(length, length, dtype=torch.bool).triu(diagonal=1)
    padding = (tokens == pad_id)[:, None, None, :]
    return ~future | ~padding


# %% fix_decoder_mask: turned round with the wrong diagonal
import torch


def fix_decoder_mask(tokens, pad_id):
    length = tokens.shape[1]
    future = torch.ones(length, length, dtype=torch.bool).triu()
    padding = (tokens == pad_id)[:, None, None, :]
    return ~(future | padding)


# %% fix_decoder_mask: masks the queries that are padding as well
import torch


def fix_decoder_mask(tokens, pad_id):
    length = tokens.shape[1]
    future = torch.ones(length, length, dtype=torch.bool).triu(diagonal=1)
    padding = tokens == pad_id
    blocked = future | padding[:, None, None, :] | padding[:, None, :, None]
    return ~blocked


# %% fix_decoder_mask: an additive mask of floats
import torch


def fix_decoder_mask(tokens, pad_id):
    length = tokens.shape[1]
    future = torch.ones(length, length, dtype=torch.bool).triu(diagonal=1)
    padding = (tokens == pad_id)[:, None, None, :]
    blocked = future | padding
    return torch.zeros(blocked.shape).masked_fill(blocked, float("-inf"))


# %% fix_decoder_attention: the self mask is used for the memory
import torch.nn.functional as F


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    x = x + F.scaled_dot_product_attention(x, x, x, attn_mask=self_mask)
    return x + F.scaled_dot_product_attention(x, memory, memory, attn_mask=self_mask)


# %% fix_decoder_attention: the padded memory is zeroed instead of hidden
import torch.nn.functional as F


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    memory = memory.masked_fill(~memory_mask.transpose(1, 2), 0.0)
    x = x + F.scaled_dot_product_attention(x, x, x, attn_mask=self_mask)
    return x + F.scaled_dot_product_attention(x, memory, memory)


# %% fix_decoder_attention: the mask is negated, as nn.MultiheadAttention wants it
import torch.nn.functional as F


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    x = x + F.scaled_dot_product_attention(x, x, x, attn_mask=self_mask)
    return x + F.scaled_dot_product_attention(x, memory, memory, attn_mask=~memory_mask)


# %% fix_decoder_attention: the memory is multiplied by its mask only as value
import torch.nn.functional as F


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    x = x + F.scaled_dot_product_attention(x, x, x, attn_mask=self_mask)
    value = memory * memory_mask.transpose(-2, -1)
    return x + F.scaled_dot_product_attention(x, memory, value)


# %% fix_decoder_attention: the queries are the x from before the self-attention
import torch.nn.functional as F


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    y = x + F.scaled_dot_product_attention(x, x, x, attn_mask=self_mask)
    return y + F.scaled_dot_product_attention(x, memory, memory, attn_mask=memory_mask)


# %% fix_decoder_attention: the mask is a float, 0 and 1
import torch.nn.functional as F


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    x = x + F.scaled_dot_product_attention(x, x, x, attn_mask=self_mask)
    keep = memory_mask.to(x.dtype)
    return x + F.scaled_dot_product_attention(x, memory, memory, attn_mask=keep)


# %% fix_layer_stack: a tuple in place of the list
import torch
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = tuple(nn.Linear(d_model, d_model) for _ in range(num_layers))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return x


# %% fix_layer_stack: one layer, many times in a ModuleList
import torch
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(d_model, d_model)] * num_layers)

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return x


# %% fix_layer_stack: an nn.Sequential that is called, without the residual
import torch
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(d_model, d_model) for _ in range(num_layers)])

    def forward(self, x):
        return x + torch.relu(self.layers(x))


# %% fix_layer_stack: registered one by one under names of their own
import torch
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = []
        for i in range(num_layers):
            layer = nn.Linear(d_model, d_model)
            setattr(self, f"linear{i}", layer)
            self.layers.append(layer)

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return x


# %% fix_layer_stack: a ModuleList, and the sum inside the ReLU
import torch
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(num_layers)])

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(x + layer(x))
        return x


# %% fix_head_split: cut correctly, axes not exchanged
def fix_head_split(x, num_heads):
    *batch, length, d_model = x.shape
    return x.reshape(*batch, length, num_heads, d_model // num_heads)


# %% fix_head_split: transposed after the straight reshape
def fix_head_split(x, num_heads):
    *batch, length, d_model = x.shape
    x = x.reshape(*batch, num_heads, length, d_model // num_heads)
    return x.transpose(-3, -2)


# %% fix_head_split: transpose(1, 2)
def fix_head_split(x, num_heads):
    *batch, length, d_model = x.shape
    return x.reshape(*batch, length, num_heads, d_model // num_heads).transpose(1, 2)


# %% fix_head_split: cut into d_head pieces of num_heads
def fix_head_split(x, num_heads):
    *batch, length, d_model = x.shape
    return x.reshape(*batch, length, d_model // num_heads, num_heads).transpose(-3, -2)


# %% fix_head_split: heads dealt in turn
def fix_head_split(x, num_heads):
    *batch, length, d_model = x.shape
    x = x.reshape(*batch, length, d_model // num_heads, num_heads)
    return x.movedim(-1, -3)


# %% fix_softmax: the maximum of all scores
import torch


def fix_softmax(scores, dim=-1):
    powers = torch.exp(scores - scores.max())
    return powers / powers.sum(dim=dim, keepdim=True)


# %% fix_softmax: the maximum is taken out, since it is not in the formula
import torch


def fix_softmax(scores, dim=-1):
    powers = torch.exp(scores)
    return powers / powers.sum(dim=dim, keepdim=True)


# %% fix_softmax: an epsilon in the denominator
import torch


def fix_softmax(scores, dim=-1):
    largest = scores.max(dim=dim, keepdim=True).values
    powers = torch.exp(scores - largest)
    return powers / (powers.sum(dim=dim, keepdim=True) + 1e-6)


# %% fix_softmax: the pair that max returns
import torch


def fix_softmax(scores, dim=-1):
    largest = scores.max(dim=dim, keepdim=True)
    powers = torch.exp(scores - largest)
    return powers / powers.sum(dim=dim, keepdim=True)


# %% fix_softmax: computed in float32
import torch


def fix_softmax(scores, dim=-1):
    wide = scores.float()
    powers = torch.exp(wide - wide.max(dim=dim, keepdim=True).values)
    return (powers / powers.sum(dim=dim, keepdim=True)).to(scores.dtype)


# %% fix_softmax: the denominator is detached too
import torch


def fix_softmax(scores, dim=-1):
    largest = scores.max(dim=dim, keepdim=True).values.detach()
    powers = torch.exp(scores - largest)
    return powers / powers.sum(dim=dim, keepdim=True).detach()


# %% fix_scaled_attention: nothing found, only the line deleted
import math

import torch


def fix_scaled_attention(query, key, value):
    d_k = query.shape[-1]
    scores = query @ key.transpose(-2, -1)
    scaled_scores = scores / math.sqrt(d_k)
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights


# %% fix_scaled_attention: the scaled scores are scaled once more
import math

import torch


def fix_scaled_attention(query, key, value):
    d_k = query.shape[-1]
    scores = query @ key.transpose(-2, -1) / math.sqrt(d_k)
    scaled_scores = scores / math.sqrt(d_k)
    weights = torch.softmax(scaled_scores, dim=-1)
    return weights @ value, weights


# %% fix_scaled_attention: the scaled scores are returned with the output of the raw ones
import math

import torch


def fix_scaled_attention(query, key, value):
    scores = query @ key.transpose(-2, -1)
    scaled_scores = scores / math.sqrt(query.shape[-1])
    output = torch.softmax(scores, dim=-1) @ value
    return output, torch.softmax(scaled_scores, dim=-1)


# %% fix_scaled_attention: the root of the wrong length
import torch


def fix_scaled_attention(query, key, value):
    scores = query @ key.transpose(-2, -1)
    weights = torch.softmax(scores / key.size(-2) ** 0.5, dim=-1)
    return weights @ value, weights


# %% fix_scaled_attention: the root rounded down
import math

import torch


def fix_scaled_attention(query, key, value):
    scores = torch.matmul(query, key.mT)
    scaled_scores = scores / int(math.sqrt(query.shape[-1]))
    weights = torch.softmax(scaled_scores, dim=-1)
    return weights @ value, weights


# %% fix_attention_weights: dim=2, tried with one batch dimension
import math

import torch


def fix_attention_weights(query, key):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    return torch.softmax(scores, dim=2)


# %% fix_attention_weights: over the queries
import math

import torch


def fix_attention_weights(query, key):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    return torch.softmax(scores, dim=-2)


# %% fix_attention_weights: the rows are made to sum to one afterwards
import math

import torch


def fix_attention_weights(query, key):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=1)
    return weights / weights.sum(dim=-1, keepdim=True)


# %% fix_attention_weights: dim=3, for several heads
import math

import torch


def fix_attention_weights(query, key):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    return torch.softmax(scores, dim=3)


# %% fix_masked_softmax: nothing found, only the line deleted
import torch


def fix_masked_softmax(scores, mask):
    scores.masked_fill_(~mask, -1e9)
    return torch.softmax(scores, dim=-1)


# %% fix_masked_softmax: the copy alone
import torch


def fix_masked_softmax(scores, mask):
    scores = scores.masked_fill(~mask, -1e9)
    return torch.softmax(scores, dim=-1)


# %% fix_masked_softmax: minus infinity, in place, and nan
import torch


def fix_masked_softmax(scores, mask):
    scores.masked_fill_(~mask, float("-inf"))
    return torch.softmax(scores, dim=-1)


# %% fix_masked_softmax: a copy with the lowest number, whose empty rows are uniform
import torch


def fix_masked_softmax(scores, mask):
    hidden = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return torch.softmax(hidden, dim=-1)


# %% fix_masked_softmax: right weights, but the scores are still filled in place
import torch


def fix_masked_softmax(scores, mask):
    empty = ~mask.any(dim=-1, keepdim=True)
    scores.masked_fill_(~mask, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, dim=-1).masked_fill(empty, 0.0)


# %% fix_masked_softmax: in float32, and not back
import torch


def fix_masked_softmax(scores, mask):
    hidden = scores.float().masked_fill(~mask, float("-inf"))
    return torch.softmax(hidden, dim=-1).nan_to_num(0.0)


# %% fix_masked_softmax: -1e4, because that fits float16
import torch


def fix_masked_softmax(scores, mask):
    empty = ~mask.any(dim=-1, keepdim=True)
    hidden = scores.masked_fill(~mask, -1e4)
    return torch.softmax(hidden, dim=-1).masked_fill(empty, 0.0)


# %% fix_padding_mask: 1 - real, added
import torch.nn.functional as F


def fix_padding_mask(query, key, value, real):
    keep = (1 - real).to(query.dtype)[:, None, None, :]
    return F.scaled_dot_product_attention(query, key, value, attn_mask=keep)


# %% fix_padding_mask: bool, but of the padding
import torch.nn.functional as F


def fix_padding_mask(query, key, value, real):
    padding = (real == 0)[:, None, None, :]
    return F.scaled_dot_product_attention(query, key, value, attn_mask=padding)


# %% fix_padding_mask: -1e4 for padding
import torch.nn.functional as F


def fix_padding_mask(query, key, value, real):
    bias = (1.0 - real.to(query.dtype)) * -1e4
    return F.scaled_dot_product_attention(query, key, value, attn_mask=bias[:, None, None, :])


# %% fix_padding_mask: only integers are made bool
import torch.nn.functional as F


def fix_padding_mask(query, key, value, real):
    keep = real[:, None, None, :]
    if not keep.is_floating_point():
        keep = keep.bool()
    return F.scaled_dot_product_attention(query, key, value, attn_mask=keep)


# %% fix_padding_mask: the padded values are set to zero
import torch.nn.functional as F


def fix_padding_mask(query, key, value, real):
    value = value * real.to(value.dtype)[:, None, :, None]
    return F.scaled_dot_product_attention(query, key, value)


# %% fix_padding_mask: bool without the two axes
import torch.nn.functional as F


def fix_padding_mask(query, key, value, real):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=real.bool())


# %% fix_cached_attention: causal only if there are several queries
import torch.nn.functional as F


def fix_cached_attention(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, is_causal=query.shape[-2] > 1)


# %% fix_cached_attention: causal only without a cache
import torch.nn.functional as F


def fix_cached_attention(query, key, value):
    causal = query.shape[-2] == key.shape[-2]
    return F.scaled_dot_product_attention(query, key, value, is_causal=causal)


# %% fix_cached_attention: a mask of one's own, aligned at the same corner
import torch
import torch.nn.functional as F


def fix_cached_attention(query, key, value):
    mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool).tril()
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


# %% fix_cached_attention: the diagonal is one too high
import torch
import torch.nn.functional as F


def fix_cached_attention(query, key, value):
    len_q, len_k = query.shape[-2], key.shape[-2]
    mask = torch.ones(len_q, len_k, dtype=torch.bool).tril(diagonal=len_k - len_q + 1)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


# %% fix_cached_attention: the future is marked, and taken for what may be attended to
import torch
import torch.nn.functional as F


def fix_cached_attention(query, key, value):
    len_q, len_k = query.shape[-2], key.shape[-2]
    mask = torch.ones(len_q, len_k, dtype=torch.bool).triu(len_k - len_q + 1)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


# %% fix_cached_attention: the keys are cut to the length of the queries
import torch.nn.functional as F


def fix_cached_attention(query, key, value):
    n = query.shape[-2]
    return F.scaled_dot_product_attention(query, key[..., -n:, :], value[..., -n:, :], is_causal=True)


# %% fix_layer_norm: eps under the root of the unbiased variance
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, keepdim=True)
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias


# %% fix_layer_norm: the biased deviation, and eps beside it
def fix_layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    deviation = x.std(dim=-1, keepdim=True, unbiased=False)
    return gain * (x - mean) / (deviation + eps) + bias


# %% fix_layer_norm: nothing found, only the line deleted
def fix_layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    deviation = x.std(dim=-1, keepdim=True)
    return gain * (x - mean) / (deviation + eps) + bias


# %% fix_layer_norm: the deviation is corrected without its root
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    d = x.shape[-1]
    mean = x.mean(dim=-1, keepdim=True)
    deviation = x.std(dim=-1, keepdim=True) * (d - 1) / d
    return gain * (x - mean) / torch.sqrt(deviation**2 + eps) + bias


# %% fix_layer_norm: eps is added under the root and beside it
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return gain * (x - mean) / (torch.sqrt(variance + eps) + eps) + bias


# %% fix_layer_norm: the deviation goes under the root
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    deviation = x.std(dim=-1, keepdim=True, correction=0)
    return gain * (x - mean) / torch.sqrt(deviation + eps) + bias
