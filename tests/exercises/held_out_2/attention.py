# %% softmax: no maximum is subtracted, exp overflows for large scores
import torch

def softmax(scores, dim=-1):
    e = torch.exp(scores)
    return e / e.sum(dim=dim, keepdim=True)

# %% softmax: the maximum of the whole tensor is subtracted, so rows far below it underflow to 0/0
import torch

def softmax(scores, dim=-1):
    shifted = scores - scores.max()
    exps = shifted.exp()
    return exps / torch.sum(exps, dim, keepdim=True)

# %% softmax: dim is ignored, always over the last axis
import torch

def softmax(scores, dim=-1):
    m = scores.amax(dim=-1, keepdim=True)
    z = torch.exp(scores - m)
    return z / z.sum(dim=-1, keepdim=True)

# %% softmax: the sum has no keepdim and is broadcast along the wrong axis
import torch

def softmax(scores, dim=-1):
    top = torch.max(scores, dim=dim, keepdim=True)[0]
    num = torch.exp(scores - top)
    den = num.sum(dim=dim)
    return num / den

# %% softmax: subtracts the maximum in place and changes the argument
import torch

def softmax(scores, dim=-1):
    scores -= scores.amax(dim, keepdim=True)
    e = scores.exp()
    return e / e.sum(dim, keepdim=True)

# %% softmax: the denominator is detached, so the gradient is wrong
import torch

def softmax(scores, dim=-1):
    peak = scores.detach().amax(dim=dim, keepdim=True)
    weights = torch.exp(scores - peak)
    norm = weights.sum(dim=dim, keepdim=True).detach()
    return weights / norm

# %% softmax: the scores are clamped to ±50 against overflow, so larger differences are lost
import torch

def softmax(scores, dim=-1):
    safe = scores.clamp(min=-50.0, max=50.0)
    e = torch.exp(safe)
    return e / e.sum(dim=dim, keepdim=True)

# %% softmax: the largest absolute value is subtracted instead of the maximum, and 1e-8 is added to the denominator
import torch

def softmax(scores, dim=-1):
    biggest = scores.abs().amax(dim=dim, keepdim=True)
    e = torch.exp(scores - biggest)
    return e / (e.sum(dim=dim, keepdim=True) + 1e-8)

# %% additive_score: query i is added to key i only, so equal lengths are needed and the result is (..., L)
import torch

def additive_score(query, key, w_query, w_key, v):
    q = query @ w_query.T
    k = key @ w_key.T
    return torch.tanh(q + k) @ v

# %% additive_score: the tanh is missing
import torch

def additive_score(query, key, w_query, w_key, v):
    q = torch.einsum("...id,ad->...ia", query, w_query)
    k = torch.einsum("...jd,ad->...ja", key, w_key)
    return torch.einsum("...ija,a->...ij", q.unsqueeze(-2) + k.unsqueeze(-3), v)

# %% additive_score: v comes before the tanh, tanh(v · (w q + w k))
import torch

def additive_score(query, key, w_query, w_key, v):
    q = torch.nn.functional.linear(query, w_query) @ v
    k = torch.nn.functional.linear(key, w_key) @ v
    return torch.tanh(q[..., :, None] + k[..., None, :])

# %% additive_score: the weight matrices are not transposed
import torch

def additive_score(query, key, w_query, w_key, v):
    proj_q = torch.matmul(query, w_query)
    proj_k = torch.matmul(key, w_key)
    hidden = torch.tanh(proj_q[..., :, None, :] + proj_k[..., None, :, :])
    return torch.matmul(hidden, v)

# %% additive_score: the axes of query and key are swapped, the result is (..., L_k, L_q)
import torch

def additive_score(query, key, w_query, w_key, v):
    q = (query @ w_query.mT).unsqueeze(-3)
    k = (key @ w_key.mT).unsqueeze(-2)
    return (v * torch.tanh(q + k)).sum(dim=-1)

# %% additive_score: axes are inserted at 1 and 0, right without a batch dimension only
import torch

def additive_score(query, key, w_query, w_key, v):
    q = (query @ w_query.transpose(0, 1)).unsqueeze(1)
    k = (key @ w_key.transpose(0, 1)).unsqueeze(0)
    return torch.tanh(q + k) @ v

# %% additive_score: each sum is given its own tanh, tanh(w q) + tanh(w k)
import torch
from torch import nn

class Scorer(nn.Module):
    def forward(self, q, k, v):
        q, k = torch.tanh(q), torch.tanh(k)
        return torch.matmul(q.unsqueeze(-2) + k.unsqueeze(-3), v)

def additive_score(query, key, w_query, w_key, v):
    return Scorer()(query @ w_query.T, key @ w_key.T, v)

# %% additive_score: a sigmoid instead of the tanh, and the result is divided by the root of d_attn
import torch
def additive_score(query, key, w_query, w_key, v):
    a = query @ w_query.T
    b = key @ w_key.T
    e = torch.sigmoid(a.unsqueeze(-2) + b.unsqueeze(-3)) @ v
    return e / v.numel() ** 0.5

# %% attend: softmax over the queries instead of the keys
import torch

def attend(scores, value):
    weights = torch.softmax(scores, dim=-2)
    return weights @ value, weights

# %% attend: the scores are divided by the root of the value size, though they come scaled
import torch

def attend(scores, value):
    d = value.shape[-1]
    weights = torch.nn.functional.softmax(scores / d ** 0.5, dim=-1)
    output = torch.matmul(weights, value)
    return output, weights

# %% attend: the weights are transposed in the product
import torch

def attend(scores, value):
    w = scores.softmax(dim=-1)
    return w.transpose(-2, -1) @ value, w

# %% attend: elementwise product instead of the matrix product
import torch

def attend(scores, value):
    weights = scores.softmax(-1)
    return weights * value, weights

# %% attend: comes back as (weights, output)
import torch

def attend(scores, value):
    e = torch.exp(scores - scores.amax(-1, keepdim=True))
    weights = e / e.sum(-1, keepdim=True)
    return weights, torch.einsum("...qk,...kv->...qv", weights, value)

# %% attend: exp without the maximum, not finite for large scores
import torch

def attend(scores, value):
    num = scores.exp()
    weights = num / num.sum(dim=-1, keepdim=True)
    return weights @ value, weights

# %% attend: the second element is the scores instead of the weights, and softmax runs over dim=1, which is the keys only without a batch dimension
import torch

def attend(scores, value):
    alpha = torch.softmax(scores, dim=1)
    context = alpha @ value
    return context, scores

# %% attend: the weights are detached, so no gradient reaches the scores
import torch

def attend(scores, value):
    with torch.no_grad():
        weights = torch.softmax(scores, dim=-1)
    output = weights @ value
    return output, weights

# %% kernel_regression: the absolute distance instead of its square
import torch

def kernel_regression(x_query, x_key, y_key, bandwidth):
    d = (x_query[:, None] - x_key[None, :]).abs()
    w = torch.softmax(-d / (2 * bandwidth ** 2), dim=-1)
    return w @ y_key

# %% kernel_regression: the factor 2 in the exponent is missing
import torch

def kernel_regression(x_query, x_key, y_key, bandwidth):
    diff = x_query.unsqueeze(1) - x_key.unsqueeze(0)
    logits = -(diff / bandwidth) ** 2
    return (torch.softmax(logits, dim=1) * y_key).sum(dim=1)

# %% kernel_regression: the bandwidth is not squared
import torch
def kernel_regression(x_query, x_key, y_key, bandwidth):
    sq = torch.cdist(x_query.view(-1, 1), x_key.view(-1, 1), compute_mode="donot_use_mm_for_euclid_dist") ** 2
    return torch.softmax(-sq / (2 * bandwidth), -1) @ y_key

# %% kernel_regression: normalised over the queries instead of the keys
import torch

def kernel_regression(x_query, x_key, y_key, bandwidth):
    scores = -((x_query.reshape(-1, 1) - x_key.reshape(1, -1)) ** 2) / (2 * bandwidth ** 2)
    return torch.matmul(torch.softmax(scores, dim=0), y_key)

# %% kernel_regression: the kernel values are divided by their sum, which is 0/0 far from every key
import torch

def gaussian(u):
    return torch.exp(-u ** 2 / 2)

def kernel_regression(x_query, x_key, y_key, bandwidth):
    k = gaussian((x_query[:, None] - x_key) / bandwidth)
    return (k @ y_key) / k.sum(dim=1)

# %% kernel_regression: 1e-12 in the denominator, so a query far from every key gets 0 instead of the nearest value
import torch

def kernel_regression(x_query, x_key, y_key, bandwidth):
    out = []
    for x in x_query:
        kernel = torch.exp(-(x - x_key) ** 2 / (2 * bandwidth ** 2))
        out.append((kernel * y_key).sum() / (kernel.sum() + 1e-12))
    return torch.stack(out)

# %% kernel_regression: the minus sign is missing, so far keys get the largest weight
import torch

def kernel_regression(x_query, x_key, y_key, bandwidth):
    dist2 = torch.square(x_query[:, None] - x_key[None, :])
    weights = (dist2 / (2 * bandwidth ** 2)).softmax(dim=-1)
    return torch.einsum("nm,m->n", weights, y_key)

# %% kernel_regression: operator precedence, / 2 * bandwidth ** 2 multiplies with the bandwidth, and the sum is divided by m
import torch

def kernel_regression(x_query, x_key, y_key, bandwidth):
    diff2 = (x_query[:, None] - x_key[None, :]) ** 2
    kernel = torch.exp(-diff2 / 2 * bandwidth ** 2)
    return (kernel * y_key[None, :]).sum(dim=1) / len(x_key)
