# %% scaled_dot_product_attention: divides by d_k instead of its square root
import torch


def scaled_dot_product_attention(query, key, value, mask=None):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / d_k
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return torch.matmul(weights, value), weights


# %% scaled_dot_product_attention: scales by the width of the values instead of the width of the keys
import math

import torch


def scaled_dot_product_attention(query, key, value, mask=None):
    d = value.shape[-1]
    scores = query @ key.mT / math.sqrt(d)
    if mask is not None:
        scores = torch.where(mask, scores, torch.full_like(scores, -torch.inf))
    weights = scores.softmax(dim=-1)
    return weights @ value, weights


# %% scaled_dot_product_attention: reads the mask the wrong way round, True is masked out
import math

import torch
import torch.nn.functional as F


def scaled_dot_product_attention(query, key, value, mask=None):
    attn_logits = torch.matmul(query, key.transpose(-2, -1))
    attn_logits = attn_logits / math.sqrt(query.size(-1))
    if mask is not None:
        attn_logits = attn_logits.masked_fill(mask, float("-inf"))
    attention = F.softmax(attn_logits, dim=-1)
    values = torch.matmul(attention, value)
    return values, attention


# %% scaled_dot_product_attention: zeroes the masked weights after the softmax and does not renormalise the rows
import torch


def scaled_dot_product_attention(query, key, value, mask=None):
    scale = key.shape[-1] ** -0.5
    weights = torch.softmax(torch.einsum("...qd,...kd->...qk", query, key) * scale, dim=-1)
    if mask is not None:
        weights = weights * mask
    return torch.einsum("...qk,...kd->...qd", weights, value), weights


# %% scaled_dot_product_attention: fills masked scores with 1e-9 instead of -1e9, so masked keys keep a weight
import math

import torch


def scaled_dot_product_attention(query, key, value, mask=None):
    "Compute 'Scaled Dot Product Attention'"
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, 1e-9)
    p_attn = scores.softmax(dim=-1)
    return torch.matmul(p_attn, value), p_attn


# %% scaled_dot_product_attention: transposes the axes 1 and 2, which is right for exactly one batch dimension
import torch


def scaled_dot_product_attention(query, key, value, mask=None):
    root = torch.sqrt(torch.tensor(query.shape[-1], dtype=query.dtype, device=query.device))
    scores = torch.matmul(query, key.transpose(1, 2)) / root
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), -torch.inf)
    weights = torch.softmax(scores, -1)
    output = torch.matmul(weights, value)
    return output, weights


# %% scaled_dot_product_attention: scales the query in place and so changes the caller's tensor
import math

import torch


def scaled_dot_product_attention(query, key, value, mask=None):
    query /= math.sqrt(query.size(-1))
    scores = query @ key.transpose(-1, -2)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights


# %% scaled_dot_product_attention: own softmax without the maximum, large scores give nan
import torch


def scaled_dot_product_attention(query, key, value, mask=None):
    d_k = key.shape[-1]
    scores = (query @ key.transpose(-2, -1)) / d_k ** 0.5
    exp_scores = torch.exp(scores)
    if mask is not None:
        exp_scores = exp_scores * mask.to(exp_scores.dtype)
    weights = exp_scores / exp_scores.sum(dim=-1, keepdim=True)
    return weights @ value, weights


# %% softmax_backward: uses the sigmoid rule p(1-p) and leaves the off-diagonal entries of the Jacobian out
import torch


def softmax_backward(weights, grad_weights):
    return grad_weights * weights * (1 - weights)


# %% softmax_backward: the row sum loses its axis, so it is subtracted from the wrong entries
import torch


def softmax_backward(weights, grad_weights):
    s = torch.sum(weights * grad_weights, dim=-1)
    return weights * (grad_weights - s)


# %% softmax_backward: builds the Jacobian of a single row with diag and outer and fails with batch dimensions
import torch


def softmax_backward(weights, grad_weights):
    jacobian = torch.diag(weights) - torch.outer(weights, weights)
    return jacobian @ grad_weights


# %% softmax_backward: the second term is not multiplied by the weights
import torch


def softmax_backward(weights, grad_weights):
    product = weights * grad_weights
    return product - product.sum(dim=-1, keepdim=True)


# %% softmax_backward: sums over the whole tensor instead of over each row
import torch


def softmax_backward(weights, grad_weights):
    inner = (weights * grad_weights).sum()
    grad_scores = weights * (grad_weights - inner)
    return grad_scores


# %% softmax_backward: overwrites the incoming gradient
import torch


def softmax_backward(weights, grad_weights):
    correction = (grad_weights * weights).sum(-1, keepdim=True)
    grad_weights -= correction
    return weights * grad_weights


# %% attention_flops: counts a multiply-add as one operation
def attention_flops(len_q, len_k, d_k, d_v):
    scores = len_q * len_k * d_k
    output = len_q * len_k * d_v
    return scores + output


# %% attention_flops: takes d_k for both products and ignores d_v
def attention_flops(len_q, len_k, d_k, d_v):
    return 4 * len_q * len_k * d_k


# %% attention_flops: assumes self-attention, the square of len_q instead of len_q times len_k
def attention_flops(len_q, len_k, d_k, d_v):
    return 2 * len_q ** 2 * d_k + 2 * len_q ** 2 * d_v


# %% attention_flops: counts n - 1 additions for n products instead of 2 for each multiply-add
def attention_flops(len_q, len_k, d_k, d_v):
    qk = len_q * len_k * (2 * d_k - 1)
    av = len_q * d_v * (2 * len_k - 1)
    return qk + av


# %% attention_flops: counts the softmax on top of the two products
def attention_flops(len_q, len_k, d_k, d_v):
    flops = 2 * len_q * len_k * d_k
    flops += 3 * len_q * len_k
    flops += 2 * len_q * len_k * d_v
    return flops


# %% attention_flops: returns a float, not an int
def attention_flops(len_q, len_k, d_k, d_v):
    mean_width = (d_k + d_v) / 2
    return 4 * len_q * len_k * mean_width


# %% self_attention: applies w_v to the output as well
import math

import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, -1)
    return (weights @ v) @ w_v, weights


# %% self_attention: the matrices multiply from the left
import math

import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    q, k, v = w_q @ x, w_k @ x, w_v @ x
    weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
    return weights @ v, weights
