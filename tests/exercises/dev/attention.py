# %% softmax: exponentiates the raw scores without subtracting the maximum, so large scores overflow to inf/inf
import torch


def softmax(scores, dim=-1):
    exp_scores = torch.exp(scores)
    return exp_scores / torch.sum(exp_scores, dim=dim, keepdim=True)


# %% softmax: the sum is taken without keepdim, so the division broadcasts against the wrong axis
import torch


def softmax(scores, dim=-1):
    shifted = scores - scores.max(dim=dim, keepdim=True).values
    e = shifted.exp()
    return e / e.sum(dim)


# %% softmax: the argument dim is ignored, it always normalises over the last axis
import torch


def softmax(scores, dim=-1):
    m, _ = torch.max(scores, dim=-1, keepdim=True)
    num = torch.exp(scores - m)
    den = num.sum(dim=-1, keepdim=True)
    return num / den


# %% softmax: subtracts the maximum of the whole tensor, so rows that lie far below it underflow to 0/0
import torch


def softmax(scores, dim=-1):
    scores = scores - torch.max(scores)
    exps = torch.exp(scores)
    return exps / exps.sum(dim=dim, keepdim=True)


# %% softmax: subtracts the maximum in place and so changes the caller's scores
import torch


def softmax(scores, dim=-1):
    scores -= scores.amax(dim=dim, keepdim=True)
    weights = torch.exp(scores)
    return weights / weights.sum(dim=dim, keepdim=True)


# %% softmax: adds a small epsilon to the denominator, so the weights do not sum to one at float64 accuracy
import torch

EPS = 1e-8


def softmax(scores: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """Numerically stable softmax."""
    maximum = torch.amax(scores, dim=dim, keepdim=True)
    exponentials = torch.exp(scores - maximum)
    normaliser = torch.sum(exponentials, dim=dim, keepdim=True)
    return exponentials / (normaliser + EPS)


# %% additive_score: applies tanh to the query part and the key part separately instead of to their sum
import torch


def additive_score(query, key, w_query, w_key, v):
    q = torch.tanh(query @ w_query.transpose(0, 1))
    k = torch.tanh(key @ w_key.transpose(0, 1))
    return (q.unsqueeze(-2) + k.unsqueeze(-3)) @ v


# %% additive_score: multiplies by the weight matrices without transposing them, which fits only square matrices
import torch


def additive_score(query, key, w_query, w_key, v):
    q = torch.matmul(query, w_query)
    k = torch.matmul(key, w_key)
    hidden = torch.tanh(q[..., :, None, :] + k[..., None, :, :])
    return torch.matmul(hidden, v)


# %% additive_score: counts the axes from the front and so works with exactly one batch dimension only
import torch
import torch.nn.functional as F


def additive_score(query, key, w_query, w_key, v):
    proj_query = F.linear(query, w_query)
    proj_key = F.linear(key, w_key)
    features = proj_query.unsqueeze(2) + proj_key.unsqueeze(1)
    features = torch.tanh(features)
    return torch.matmul(features, v)


# %% additive_score: the result comes out transposed, keys by queries
import torch


def additive_score(query, key, w_query, w_key, v):
    q = query @ w_query.T
    k = key @ w_key.T
    e = torch.tanh(q.unsqueeze(-3) + k.unsqueeze(-2))
    return (e * v).sum(dim=-1)


# %% additive_score: adds queries and keys position by position as for a single decoder state, not every pair
import torch


def additive_score(query, key, w_query, w_key, v):
    energy = torch.tanh(query @ w_query.T + key @ w_key.T)
    score = (energy * v).sum(-1)
    return score.unsqueeze(-2)


# %% additive_score: returns attention weights, a softmax has been put on top of the scores
import torch


def additive_score(query, key, w_query, w_key, v):
    q_proj = torch.einsum("...qd,ad->...qa", query, w_query)
    k_proj = torch.einsum("...kd,ad->...ka", key, w_key)
    hidden = torch.tanh(q_proj.unsqueeze(-2) + k_proj.unsqueeze(-3))
    scores = torch.einsum("...qka,a->...qk", hidden, v)
    return torch.softmax(scores, dim=-1)


# %% attend: the softmax runs over the queries instead of the keys
import torch


def attend(scores, value):
    weights = torch.softmax(scores, dim=-2)
    return weights @ value, weights


# %% attend: writes the softmax as exp over sum without shifting, which overflows for large scores
import torch


def attend(scores, value):
    e = torch.exp(scores)
    weights = e / e.sum(-1, keepdim=True)
    output = torch.matmul(weights, value)
    return output, weights


# %% attend: returns the pair in the wrong order, weights before output
import torch


def attend(scores, value):
    attention_weights = torch.softmax(scores, dim=-1)
    context = torch.matmul(attention_weights, value)
    return attention_weights, context


# %% attend: softmax over axis 1, which is the key axis only where there is no batch dimension
import torch
import torch.nn.functional as F


def attend(scores, value):
    w = F.softmax(scores, dim=1)
    out = w @ value
    return out, w


# %% attend: divides the given scores by the root of the feature size although scaling is no part of this function
import math

import torch


def attend(scores, value):
    d = value.shape[-1]
    weights = torch.softmax(scores / math.sqrt(d), dim=-1)
    return torch.matmul(weights, value), weights


# %% attend: torch.bmm accepts exactly one batch dimension, so none or two batch dimensions raise an error
import torch


def attend(scores, value):
    scores = scores - scores.max(dim=-1, keepdim=True)[0]
    weights = scores.exp()
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return torch.bmm(weights, value), weights


# %% kernel_regression: divides by a sum of kernels that underflows to zero for a query far from every key
import torch


def kernel_regression(x_query, x_key, y_key, bandwidth):
    diff = x_query[:, None] - x_key[None, :]
    kernel = torch.exp(-(diff ** 2) / (2 * bandwidth ** 2))
    return (kernel * y_key).sum(dim=1) / kernel.sum(dim=1)


# %% kernel_regression: the factor 2 in the exponent of the Gaussian is missing
import torch


def kernel_regression(x_query, x_key, y_key, bandwidth):
    scaled = (x_query.unsqueeze(1) - x_key.unsqueeze(0)) / bandwidth
    weights = torch.softmax(-scaled.pow(2), dim=1)
    return weights @ y_key


# %% kernel_regression: the bandwidth is not squared in the exponent
import torch


def kernel_regression(x_query, x_key, y_key, bandwidth):
    distance = x_query.reshape(-1, 1) - x_key.reshape(1, -1)
    logits = -distance ** 2 / (2 * bandwidth)
    weights = torch.softmax(logits, dim=-1)
    return torch.mv(weights, y_key)


# %% kernel_regression: the weights are normalised over the queries instead of the keys
import torch


def kernel_regression(x_query, x_key, y_key, bandwidth):
    d2 = (x_query.view(-1, 1) - x_key.view(1, -1)) ** 2
    attention = torch.softmax(-d2 / (2 * bandwidth ** 2), dim=0)
    return attention @ y_key


# %% kernel_regression: an epsilon in the denominator pulls the prediction of far queries to zero
import torch


def kernel_regression(x_query, x_key, y_key, bandwidth):
    diff = x_query.unsqueeze(-1) - x_key
    k = torch.exp(-0.5 * (diff / bandwidth) ** 2)
    weights = k / (k.sum(dim=-1, keepdim=True) + 1e-8)
    return (weights * y_key).sum(dim=-1)


# %% kernel_regression: collects Python numbers in a list, so no gradient flows back
import torch


def kernel_regression(x_query, x_key, y_key, bandwidth):
    predictions = []
    for x in x_query:
        logits = -((x - x_key) ** 2) / (2 * bandwidth ** 2)
        w = torch.softmax(logits, dim=0)
        predictions.append((w * y_key).sum().item())
    return torch.tensor(predictions, dtype=y_key.dtype, device=y_key.device)
