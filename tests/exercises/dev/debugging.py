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
