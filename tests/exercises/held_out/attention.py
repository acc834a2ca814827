# %% softmax: The largest score is not subtracted, so exp overflows and large scores give NaN.
import torch


def softmax(scores, dim=-1):
    exps = torch.exp(scores)
    return exps / exps.sum(dim=dim, keepdim=True)


# %% softmax: The argument dim is ignored; it always normalises over the last axis.
import torch


def softmax(scores, dim=-1):
    biggest, _ = torch.max(scores, dim=-1, keepdim=True)
    e = torch.exp(scores - biggest)
    return e / torch.sum(e, dim=-1, keepdim=True)


# %% softmax: The sum lacks keepdim, so the division crashes or broadcasts along the wrong axis.
import torch


def softmax(scores, dim=-1):
    m = scores.max(dim=dim, keepdim=True).values
    numerator = (scores - m).exp()
    denominator = numerator.sum(dim)
    return numerator / denominator


# %% softmax: The largest entry of the whole tensor is subtracted, so rows far below it underflow to 0/0.
import torch


def stable_exp(t):
    return torch.exp(t - t.max())


def softmax(scores, dim=-1):
    z = stable_exp(scores)
    total = z.sum(dim, keepdim=True)
    return torch.div(z, total)


# %% softmax: The shift is done in place and changes the caller's scores.
import torch


def softmax(scores, dim=-1):
    scores -= scores.amax(dim=dim, keepdim=True).detach()
    weights = torch.exp(scores)
    norm = weights.sum(dim=dim, keepdim=True)
    weights = weights / norm
    return weights


# %% softmax: A small constant is added to the denominator, so the weights do not sum to one in float64.
import torch


def softmax(scores, dim=-1, eps=1e-6):
    top = torch.amax(scores, dim, keepdim=True)
    unnormalised = torch.exp(scores - top)
    partition = unnormalised.sum(dim, True) + eps
    return unnormalised * partition.reciprocal()


# %% additive_score: The tanh is taken after the product with v instead of before it.
import torch


def additive_score(query, key, w_query, w_key, v):
    q = query @ w_query.T
    k = key @ w_key.T
    hidden = q.unsqueeze(-2) + k.unsqueeze(-3)
    return torch.tanh(hidden @ v)


# %% additive_score: Queries and keys are expanded on the wrong axes, so the scores come out transposed (L_k, L_q).
import torch
import torch.nn.functional as F


def additive_score(query, key, w_query, w_key, v):
    proj_q = F.linear(query, w_query)
    proj_k = F.linear(key, w_key)
    features = torch.tanh(proj_q[..., None, :, :] + proj_k[..., :, None, :])
    return torch.matmul(features, v)


# %% additive_score: The weight matrices are multiplied without a transpose, although they are (d_attn, d_in).
import torch


def additive_score(query, key, w_query, w_key, v):
    a = torch.matmul(query, w_query).unsqueeze(-2)
    b = torch.matmul(key, w_key).unsqueeze(-3)
    e = torch.tanh(a + b)
    return (e * v).sum(-1)


# %% additive_score: The axes are counted from the left for one batch dimension; without or with two it fails.
import torch


def additive_score(query, key, w_query, w_key, v):
    query = torch.nn.functional.linear(query, w_query)
    key = torch.nn.functional.linear(key, w_key)
    query = query.unsqueeze(2)
    key = key.unsqueeze(1)
    scores = torch.tanh(query + key) * v
    return scores.sum(dim=-1)


# %% additive_score: A softmax is applied at the end, so weights come back instead of scores.
import torch


def additive_score(query, key, w_query, w_key, v):
    q_hidden = torch.einsum("...qi,ai->...qa", query, w_query)
    k_hidden = torch.einsum("...kj,aj->...ka", key, w_key)
    energy = torch.tanh(q_hidden[..., :, None, :] + k_hidden[..., None, :, :])
    energy = torch.einsum("...qka,a->...qk", energy, v)
    return torch.softmax(energy, dim=-1)


# %% additive_score: The result is collected in a float32 tensor whatever the dtype of the inputs.
import torch


def additive_score(query, key, w_query, w_key, v):
    n_q, n_k = query.shape[-2], key.shape[-2]
    result = torch.zeros(*query.shape[:-2], n_q, n_k)
    for i in range(n_q):
        for j in range(n_k):
            hidden = query[..., i, :] @ w_query.t() + key[..., j, :] @ w_key.t()
            result[..., i, j] = hidden.tanh() @ v
    return result


# %% attend: The softmax runs over the queries (axis -2) instead of the keys.
import torch


def attend(scores, value):
    weights = torch.softmax(scores, dim=-2)
    output = torch.matmul(weights, value)
    return output, weights


# %% attend: The softmax is written out without subtracting the maximum and overflows for large scores.
import torch


def attend(scores, value):
    unnorm = scores.exp()
    alpha = unnorm / unnorm.sum(-1, keepdim=True)
    return alpha @ value, alpha


# %% attend: The softmax has no dim, so PyTorch picks an axis by the number of dimensions.
import torch.nn as nn


def attend(scores, value):
    normalise = nn.Softmax()
    attention_weights = normalise(scores)
    context = attention_weights @ value
    return context, attention_weights


# %% attend: bmm takes exactly one batch dimension and fails without one or with two.
import torch
import torch.nn.functional as F


def attend(scores, value):
    attn = F.softmax(scores, dim=-1)
    out = torch.bmm(attn, value)
    return out, attn


# %% attend: The scores are divided by the root of the width once more, though they are given finished.
import math

import torch


def attend(scores, value):
    d = value.size(-1)
    p_attn = (scores / math.sqrt(d)).softmax(dim=-1)
    return torch.einsum("...qk,...kd->...qd", p_attn, value), p_attn


# %% attend: The second result is the raw scores, not the weights.
import torch


def attend(scores, value):
    shifted = scores - scores.max(dim=-1, keepdim=True)[0]
    e = torch.exp(shifted)
    probs = e / e.sum(dim=-1, keepdim=True)
    result = torch.matmul(probs, value)
    return result, scores


# %% kernel_regression: The bandwidth in the exponent is not squared.
import torch


def kernel_regression(x_query, x_key, y_key, bandwidth):
    diff = x_query[:, None] - x_key[None, :]
    weights = torch.softmax(-(diff**2) / (2 * bandwidth), dim=1)
    return weights @ y_key


# %% kernel_regression: The kernel values are divided by their plain sum, which is 0/0 far from every key.
import torch


def gaussian(u, h):
    return torch.exp(-(u**2) / (2 * h**2))


def kernel_regression(x_query, x_key, y_key, bandwidth):
    k = gaussian(x_query.unsqueeze(1) - x_key, bandwidth)
    return (k * y_key).sum(dim=1) / k.sum(dim=1)


# %% kernel_regression: The weights are normalised over the queries instead of over the keys.
import torch
import torch.nn.functional as F


def kernel_regression(x_query, x_key, y_key, bandwidth):
    distances = x_query.reshape(-1, 1) - x_key.reshape(1, -1)
    scores = -0.5 * (distances / bandwidth).pow(2)
    attn = F.softmax(scores, dim=0)
    return torch.matmul(attn, y_key)


# %% kernel_regression: The factor 2 in the denominator of the exponent is missing.
import torch


def kernel_regression(x_query, x_key, y_key, bandwidth):
    predictions = []
    for x in x_query:
        log_kernel = -((x - x_key) / bandwidth).square()
        w = (log_kernel - log_kernel.max()).exp()
        predictions.append((w * y_key).sum() / w.sum())
    return torch.stack(predictions)


# %% kernel_regression: A small constant keeps the denominator from zero, so a far query is pulled to 0.
import torch


def kernel_regression(x_query, x_key, y_key, bandwidth):
    sq_dist = (x_query.unsqueeze(-1) - x_key.unsqueeze(0)) ** 2
    kernel = torch.exp(-sq_dist / (2 * bandwidth**2))
    norm = kernel.sum(-1) + 1e-8
    return torch.mv(kernel, y_key) / norm


# %% kernel_regression: The result keeps a last axis of length one: (n, 1) instead of (n,).
import torch


def kernel_regression(x_query, x_key, y_key, bandwidth):
    q = x_query.view(-1, 1)
    k = x_key.view(1, -1)
    v = y_key.view(-1, 1)
    scores = -((q - k) ** 2) / (2.0 * bandwidth**2)
    return torch.softmax(scores, -1) @ v
