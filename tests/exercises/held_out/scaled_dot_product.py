# %% scaled_dot_product_attention: The root of d_k is computed and never applied to the scores.
import math

import torch


def scaled_dot_product_attention(query, key, value, mask=None):
    d_k = query.size(-1)
    scale = 1.0 / math.sqrt(d_k)
    scores = torch.matmul(query, key.transpose(-2, -1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return torch.matmul(weights, value), weights


# %% scaled_dot_product_attention: The mask is read the wrong way round: the allowed keys are removed.
import torch
import torch.nn.functional as F


def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.mT / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask, torch.finfo(scores.dtype).min)
    attn = F.softmax(scores, dim=-1)
    return attn @ value, attn


# %% scaled_dot_product_attention: The mask is multiplied in after the softmax, so the rows do not sum to one.
import math

import torch


def scaled_dot_product_attention(query, key, value, mask=None):
    logits = torch.einsum("...id,...jd->...ij", query, key) / math.sqrt(key.shape[-1])
    weights = logits.softmax(-1)
    if mask is not None:
        weights = weights * mask.to(weights.dtype)
    return torch.einsum("...ij,...jd->...id", weights, value), weights


# %% scaled_dot_product_attention: Masked scores are set to 1e-9 instead of a very negative number.
import torch
from torch import nn


def scaled_dot_product_attention(query, key, value, mask=None):
    dk = torch.tensor(query.size(-1), dtype=query.dtype, device=query.device)
    attn_scores = (query @ key.transpose(-1, -2)) / torch.sqrt(dk)
    if mask is not None:
        attn_scores = attn_scores.masked_fill(mask == False, 1e-9)  # noqa: E712
    attn_probs = nn.functional.softmax(attn_scores, dim=-1)
    output = attn_probs @ value
    return output, attn_probs


# %% scaled_dot_product_attention: `if mask:` raises for a mask with more than one element.
import math

import torch


def apply_mask(scores, mask):
    return scores.masked_fill(~mask, -torch.inf)


def scaled_dot_product_attention(query, key, value, mask=None):
    s = torch.matmul(query / math.sqrt(query.size(-1)), key.transpose(-2, -1))
    if mask:
        s = apply_mask(s, mask)
    a = torch.softmax(s, dim=-1)
    o = torch.matmul(a, value)
    return o, a


# %% scaled_dot_product_attention: The key is transposed on axes 1 and 2, which fits one batch dimension only.
import torch


def scaled_dot_product_attention(query, key, value, mask=None):
    temperature = query.shape[-1] ** -0.5
    similarity = torch.matmul(query, key.transpose(1, 2)) * temperature
    if mask is not None:
        lowest = torch.full_like(similarity, float("-inf"))
        similarity = torch.where(mask, similarity, lowest)
    weights = torch.softmax(similarity, dim=-1)
    return torch.matmul(weights, value), weights


# %% softmax_backward: Only the diagonal of the Jacobian is used, as for a sigmoid.
def softmax_backward(weights, grad_weights):
    local_gradient = weights * (1 - weights)
    return local_gradient * grad_weights


# %% softmax_backward: The plain sum of the gradient is subtracted, not the sum weighted with the weights.
import torch


def softmax_backward(weights, grad_weights):
    total = torch.sum(grad_weights, dim=-1, keepdim=True)
    return weights * (grad_weights - total)


# %% softmax_backward: The sum over the last axis lacks keepdim and lines up with the wrong axis.
def softmax_backward(weights, grad_weights):
    dot = (weights * grad_weights).sum(dim=-1)
    grad_scores = weights * grad_weights - weights * dot
    return grad_scores


# %% softmax_backward: The sign is turned round: it returns minus the gradient.
import torch


def softmax_backward(weights, grad_weights):
    inner = torch.einsum("...i,...i->...", weights, grad_weights).unsqueeze(-1)
    return weights * (inner - grad_weights)


# %% softmax_backward: The Jacobian is built with diag and outer, which work for a single vector only.
import torch


def softmax_backward(weights, grad_weights):
    jacobian = torch.diag(weights) - torch.outer(weights, weights)
    return jacobian @ grad_weights


# %% softmax_backward: The incoming gradient is changed in place.
def softmax_backward(weights, grad_weights):
    mean_grad = (weights * grad_weights).sum(-1, keepdim=True)
    grad_weights -= mean_grad
    return grad_weights * weights


# %% attention_flops: A multiply-add is counted as one operation.
def attention_flops(len_q, len_k, d_k, d_v):
    scores = len_q * len_k * d_k
    output = len_q * len_k * d_v
    return scores + output


# %% attention_flops: Both products are counted with d_k, as if the values had the same width.
def attention_flops(len_q, len_k, d_k, d_v):
    one_product = 2 * len_q * len_k * d_k
    return 2 * one_product


# %% attention_flops: The cost of the softmax is added to that of the two products.
def attention_flops(len_q, len_k, d_k, d_v):
    qk = 2 * len_q * d_k * len_k
    softmax = 3 * len_q * len_k
    av = 2 * len_q * len_k * d_v
    return qk + softmax + av


# %% attention_flops: Self-attention is assumed: the number of queries is used for the keys as well.
def matmul_flops(n, m, p):
    return 2 * n * m * p


def attention_flops(len_q, len_k, d_k, d_v):
    first = matmul_flops(len_q, d_k, len_q)
    second = matmul_flops(len_q, len_q, d_v)
    return first + second


# %% attention_flops: Each dot product is counted with n multiplications and n - 1 additions.
def attention_flops(len_q, len_k, d_k, d_v):
    total = 0
    for rows, inner, columns in [(len_q, d_k, len_k), (len_q, len_k, d_v)]:
        multiplications = rows * columns * inner
        additions = rows * columns * (inner - 1)
        total += multiplications + additions
    return total


# %% attention_flops: The factor 2 is applied to the first product only.
def attention_flops(len_q, len_k, d_k, d_v):
    return 2 * len_q * len_k * d_k + len_q * len_k * d_v


# %% self_attention: The keys are projected with w_q.
import math

import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    q = x @ w_q
    k = x @ w_q
    v = x @ w_v
    scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    attn = torch.softmax(scores, dim=-1)
    return attn @ v, attn


# %% self_attention: The scores are divided by the root of d_model.
import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    d_model = x.size(-1)
    q, k, v = torch.matmul(x, w_q), torch.matmul(x, w_k), torch.matmul(x, w_v)
    scores = torch.matmul(q, k.mT) / d_model**0.5
    if mask is not None:
        scores[..., :, :] = torch.where(mask, scores, torch.tensor(float("-inf"), dtype=x.dtype))
    attn = scores.softmax(-1)
    return torch.matmul(attn, v), attn


# %% self_attention: The weights average x, and w_v is not used.
import math

import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    q, k = x @ w_q, x @ w_k
    logits = torch.einsum("...qd,...kd->...qk", q, k) / math.sqrt(w_k.shape[1])
    if mask is not None:
        logits = logits.masked_fill(mask.logical_not(), -math.inf)
    weights = logits.softmax(-1)
    return torch.einsum("...qk,...kd->...qd", weights, x), weights


# %% self_attention: The scale is missing.
import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    query, key, value = (x @ w for w in (w_q, w_k, w_v))
    scores = query @ key.transpose(-1, -2)
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = torch.softmax(scores, -1)
    return weights @ value, weights


# %% self_attention: The mask is read the wrong way round.
import math

import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask, float("-inf"))
    weights = torch.softmax(scores, -1)
    return weights @ v, weights


# %% self_attention: The softmax runs over the queries.
import math

import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-2)
    return weights @ v, weights
