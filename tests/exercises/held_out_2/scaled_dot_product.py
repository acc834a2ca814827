# %% scaled_dot_product_attention: scales by the root of the value size d_v instead of d_k
import math
import torch

def scaled_dot_product_attention(query, key, value, mask=None):
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(value.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return torch.matmul(weights, value), weights

# %% scaled_dot_product_attention: divides by d_k instead of its square root
import torch
import torch.nn.functional as F

def scaled_dot_product_attention(query, key, value, mask=None):
    d_k = key.size(-1)
    logits = torch.einsum("...qd,...kd->...qk", query, key) / d_k
    if mask is not None:
        logits = torch.where(mask, logits, float("-inf"))
    attn = F.softmax(logits, dim=-1)
    return torch.einsum("...qk,...kd->...qd", attn, value), attn

# %% scaled_dot_product_attention: the mask is read as True = forbidden, and softmax runs over the queries
import torch

def scaled_dot_product_attention(query, key, value, mask=None):
    s = query @ key.mT
    s = s * query.shape[-1] ** -0.5
    if mask is not None:
        s = s.masked_fill(mask, -1e9)
    w = s.softmax(dim=-2)
    return w @ value, w

# %% scaled_dot_product_attention: the mask multiplies the weights after the softmax, and the rows are not normalised again
import torch

def scaled_dot_product_attention(query, key, value, mask=None):
    scale = 1.0 / (query.shape[-1] ** 0.5)
    weights = torch.softmax((query * scale) @ key.transpose(-1, -2), dim=-1)
    if mask is not None:
        weights = weights * mask
    output = weights @ value
    return output, weights

# %% scaled_dot_product_attention: softmax by hand without subtracting the maximum, which overflows for large scores
import torch

def _softmax(z):
    e = torch.exp(z)
    return e / e.sum(dim=-1, keepdim=True)

def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / query.size(-1) ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), float("-inf"))
    weights = _softmax(scores)
    return weights @ value, weights

# %% scaled_dot_product_attention: masked scores are filled with 1e-9 below zero (-1e-9, a slip for -1e9), so masked keys keep weight
import math
import torch
from torch import nn

class DotProductAttention(nn.Module):
    def forward(self, q, k, v, mask):
        scores = torch.matmul(q, torch.swapaxes(k, -1, -2)) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e-9)
        p_attn = nn.functional.softmax(scores, dim=-1)
        return p_attn @ v, p_attn

def scaled_dot_product_attention(query, key, value, mask=None):
    return DotProductAttention()(query, key, value, mask)

# %% scaled_dot_product_attention: the query is divided in place, so the argument is changed
import torch

def scaled_dot_product_attention(query, key, value, mask=None):
    query /= query.shape[-1] ** 0.5
    scores = query @ key.transpose(-2, -1)
    if mask is not None:
        scores[~mask.expand_as(scores)] = float("-inf")
    weights = scores.softmax(-1)
    return weights @ value, weights

# %% scaled_dot_product_attention: the mask is always given an extra axis at 1 "for the heads"
import torch

def scaled_dot_product_attention(query, key, value, mask=None):
    d_k = query.shape[-1]
    scores = torch.matmul(query, key.transpose(-2, -1)) / d_k ** 0.5
    if mask is not None:
        mask = mask.unsqueeze(1)
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.nn.functional.softmax(scores, dim=-1)
    return torch.matmul(weights, value), weights

# %% softmax_backward: only the diagonal of the Jacobian, w (1 - w) g, as for a sigmoid
def softmax_backward(weights, grad_weights):
    return grad_weights * weights * (1 - weights)

# %% softmax_backward: the sign is turned round, w (sum(w g) - g)
import torch

def softmax_backward(weights, grad_weights):
    inner = torch.einsum("...i,...i->...", weights, grad_weights)
    return weights * (inner[..., None] - grad_weights)

# %% softmax_backward: the row sum has no keepdim, so it is broadcast along the wrong axis
import torch

def softmax_backward(weights, grad_weights):
    dot = (weights * grad_weights).sum(-1)
    return weights * (grad_weights - dot)

# %% softmax_backward: the second term is not multiplied with the weights, w g - sum(w g)
def softmax_backward(weights, grad_weights):
    wg = weights * grad_weights
    return wg - wg.sum(dim=-1, keepdim=True)

# %% softmax_backward: the rule of log-softmax, g - w sum(g), instead of softmax
import torch
def softmax_backward(weights, grad_weights):
    total = torch.sum(grad_weights, dim=-1, keepdim=True)
    return grad_weights - weights * total

# %% softmax_backward: writes the centred gradient into grad_weights and so changes the argument
def softmax_backward(weights, grad_weights):
    mean = (grad_weights * weights).sum(dim=-1).unsqueeze(-1)
    grad_weights -= mean
    grad_weights *= weights
    return grad_weights

# %% softmax_backward: subtracts the plain mean of the gradient instead of its mean under the weights
import torch

def softmax_backward(weights, grad_weights):
    centred = grad_weights - grad_weights.mean(dim=-1, keepdim=True)
    return weights * centred

# %% softmax_backward: in the full Jacobian the outer product is added instead of subtracted
import torch

def softmax_backward(weights, grad_weights):
    diag = torch.diag_embed(weights)
    outer = weights.unsqueeze(-1) * weights.unsqueeze(-2)
    jacobian = diag + outer
    return (jacobian @ grad_weights.unsqueeze(-1)).squeeze(-1)

# %% attention_flops: a multiply-add is counted as one operation
def attention_flops(len_q, len_k, d_k, d_v):
    scores = len_q * len_k * d_k
    output = len_q * len_k * d_v
    return scores + output

# %% attention_flops: len_q is used for both lengths, as in self-attention
def attention_flops(len_q, len_k, d_k, d_v):
    return 2 * len_q ** 2 * d_k + 2 * len_q ** 2 * d_v

# %% attention_flops: the second product is counted with d_k as well
def attention_flops(len_q, len_k, d_k, d_v):
    one_product = 2 * len_q * len_k * d_k
    return 2 * one_product

# %% attention_flops: the softmax is counted on top of the two products
def attention_flops(len_q, len_k, d_k, d_v):
    matmul = lambda n, m, p: 2 * n * m * p
    qk = matmul(len_q, d_k, len_k)
    softmax = 3 * len_q * len_k
    wv = matmul(len_q, len_k, d_v)
    return qk + softmax + wv

# %% attention_flops: returns a float, and the 2 is applied to the first product only
def attention_flops(len_q, len_k, d_k, d_v):
    total = 2.0 * len_q * len_k * d_k + len_q * len_k * d_v
    return total

# %% attention_flops: the sizes d_k and d_v are multiplied instead of added
def attention_flops(len_q, len_k, d_k, d_v):
    per_pair = d_k * d_v
    return 2 * len_q * len_k * per_pair

# %% attention_flops: the additions are counted exactly as one fewer than the multiplications
def attention_flops(len_q, len_k, d_k, d_v):
    # a dot product of length n: n multiplications and n - 1 additions
    dot = lambda n: n + (n - 1)
    return len_q * len_k * dot(d_k) + len_q * d_v * dot(len_k)

# %% attention_flops: in the second product the output rows are counted as len_k instead of len_q
def attention_flops(len_q, len_k, d_k, d_v):
    shapes = [(len_q, d_k, len_k), (len_k, len_k, d_v)]
    return sum(2 * a * b * c for a, b, c in shapes)


# %% self_attention: x itself serves as query and key, only the values are projected
import math

import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    scores = x @ x.mT / math.sqrt(x.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, -1)
    return weights @ (x @ w_v), weights


# %% self_attention: the matrices are transposed as if they were weights of nn.Linear
import math

import torch
import torch.nn.functional as F


def self_attention(x, w_q, w_k, w_v, mask=None):
    q, k, v = F.linear(x, w_q), F.linear(x, w_k), F.linear(x, w_v)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, -1)
    return weights @ v, weights


# %% self_attention: w_q and w_k are exchanged
import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    key, query, value = x @ w_q, x @ w_k, x @ w_v
    scores = torch.matmul(query, key.transpose(-2, -1)) * query.size(-1) ** -0.5
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    attn = scores.softmax(dim=-1)
    return attn @ value, attn


# %% self_attention: the weights are multiplied by the mask after the softmax
import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    query, key, value = x @ w_q, x @ w_k, x @ w_v
    attn = torch.softmax(query @ key.mT / key.shape[-1] ** 0.5, -1)
    if mask is not None:
        attn = attn * mask
    return attn @ value, attn


# %% self_attention: divides by d_k, not by its root
import torch


def self_attention(x, w_q, w_k, w_v, mask=None):
    query, key, value = x @ w_q, x @ w_k, x @ w_v
    scores = query @ key.mT / key.shape[-1]
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf)
    attn = torch.softmax(scores, -1)
    return attn @ value, attn
