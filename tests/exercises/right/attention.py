# %% softmax: textbook, largest score subtracted
import torch


def softmax(scores, dim=-1):
    shifted = scores - scores.max(dim=dim, keepdim=True).values
    e = torch.exp(shifted)
    return e / e.sum(dim=dim, keepdim=True)


# %% softmax: float64 inside, warns and prints
import warnings

import torch


def softmax(scores: torch.Tensor, dim: int = -1) -> torch.Tensor:
    warnings.warn("softmax: computing in double precision", stacklevel=2)
    print("scores", tuple(scores.shape), "dim", dim)
    s = scores.double()
    top = torch.amax(s, dim, keepdim=True)
    e = (s - top).exp()
    return (e / e.sum(dim, keepdim=True)).to(scores.dtype)


# %% softmax: exp of score minus logsumexp, a lambda
import torch

softmax = lambda scores, dim=-1: torch.exp(scores - torch.logsumexp(scores, dim=dim, keepdim=True))  # noqa: E731


# %% softmax: Python loops over rows and entries, the axis moved to the end
import torch


def _one_row(row):
    biggest = row[0]
    for entry in row:
        if entry.item() > biggest.item():
            biggest = entry
    parts = []
    total = 0.0
    for entry in row:
        part = torch.exp(entry - biggest)
        parts.append(part)
        total = total + part
    return torch.stack([part / total for part in parts])


def softmax(scores, dim=-1):
    moved = scores.movedim(dim, -1)
    rows = [_one_row(row) for row in moved.reshape(-1, moved.shape[-1])]
    return torch.stack(rows).reshape(moved.shape).movedim(-1, dim)


# %% softmax: pairwise differences, 1 / sum of exp(s_l - s_j), clamped
import torch

TOO_BIG = 80.0


def softmax(scores, dim=-1):
    s = scores.transpose(dim, -1)
    differences = s.unsqueeze(-2) - s.unsqueeze(-1)  # [..., j, l] = s_l - s_j
    # exp(80) still fits into float32, and 1 / exp(80) is nothing
    odds = differences.clamp(max=TOO_BIG).exp().sum(-1)
    return odds.reciprocal().transpose(dim, -1)


# %% softmax: one pass with a running maximum, instance of a callable class
import torch


class OnlineSoftmax:
    """Keeps a running maximum and a running sum, as the fused kernels do."""

    def __init__(self, axis=-1):
        self.axis = axis

    def __call__(self, scores, dim=None):
        dim = self.axis if dim is None else dim
        top, total = None, None
        for s in scores.unbind(dim):
            if top is None:
                top, total = s, torch.ones_like(s)
                continue
            new_top = torch.maximum(top, s).detach()
            total = total * torch.exp(top - new_top) + torch.exp(s - new_top)
            top = new_top
        return torch.exp(scores - top.unsqueeze(dim)) / total.unsqueeze(dim)


softmax = OnlineSoftmax()


# %% softmax: an autograd.Function with a backward of its own
import torch


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, dim):
        e = (scores - scores.amax(dim, True)).exp_()
        w = e / e.sum(dim, True)
        ctx.save_for_backward(w)
        ctx.dim = dim
        return w

    @staticmethod
    def backward(ctx, grad):
        (w,) = ctx.saved_tensors
        return w * (grad - (w * grad).sum(ctx.dim, True)), None


def softmax(scores, dim=-1):
    return _Softmax.apply(scores, dim)


# %% softmax: the gradient of logsumexp, by torch.func.grad
import torch
from torch.func import grad


def softmax(scores, dim=-1):
    # d/ds_j log sum_l exp(s_l) is just the softmax
    return grad(lambda s: torch.logsumexp(s, dim).sum())(scores)


# %% softmax: recursion, two halves weighed by a sigmoid
import torch


def _halves(s, log_sum=torch.logsumexp):
    n = s.shape[-1]
    if n == 1:
        return torch.exp(s - s)
    left, right = s[..., : n // 2], s[..., n // 2 :]
    gate = torch.sigmoid(log_sum(left, -1, True) - log_sum(right, -1, True))
    return torch.cat([gate * _halves(left), (1 - gate) * _halves(right)], -1)


def softmax(scores, dim=-1):
    return _halves(scores.movedim(dim, -1)).movedim(-1, dim)


# %% softmax: vmap of a function of one vector, wrapped by a decorator
import functools

import torch


def along(axis_name):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(scores, **kw):
            moved = torch.movedim(scores, kw.get(axis_name, -1), -1)
            flat = moved.flatten(0, -2) if moved.dim() > 1 else moved[None]
            return torch.vmap(function)(flat).view(moved.shape).movedim(-1, kw.get(axis_name, -1))

        return wrapper

    return decorate


@along("dim")
def _vector_softmax(s):
    e = torch.exp(s - s.max())
    return e / e.sum()


def softmax(scores, dim=-1):
    return _vector_softmax(scores, dim=dim)


# %% additive_score: broadcasting
import torch


def additive_score(query, key, w_query, w_key, v):
    q = query @ w_query.transpose(0, 1)
    k = key @ w_key.transpose(0, 1)
    hidden = torch.tanh(q[..., :, None, :] + k[..., None, :, :])
    return hidden @ v


# %% additive_score: Python loops over queries and keys
import torch


def additive_score(query, key, w_query, w_key, v):
    rows = []
    for i in range(query.shape[-2]):
        row = []
        for j in range(key.shape[-2]):
            a = (w_query * query[..., i, :].unsqueeze(-2)).sum(-1)
            b = (w_key * key[..., j, :].unsqueeze(-2)).sum(-1)
            row.append((v * torch.tanh(a + b)).sum(-1))
        rows.append(torch.stack(row, dim=-1))
    return torch.stack(rows, dim=-2)


# %% additive_score: einsum, float64 inside
import torch
from torch import Tensor, einsum


def additive_score(query: Tensor, key: Tensor, w_query: Tensor, w_key: Tensor, v: Tensor) -> Tensor:
    query64, key64, w_query64, w_key64, v64 = (t.to(torch.float64) for t in (query, key, w_query, w_key, v))
    q = einsum("...id,ad->...ia", query64, w_query64).unsqueeze(-2)
    k = einsum("...jd,ad->...ja", key64, w_key64).unsqueeze(-3)
    return einsum("...ija,a->...ij", (q + k).tanh(), v64).to(query.dtype)


# %% additive_score: functional.linear on concatenated pairs, *args and **kwargs
import inspect

import torch
import torch.nn.functional as F


def additive_score(*args, **kwargs):
    def names(query, key, w_query, w_key, v):
        return query, key, w_query, w_key, v

    query, key, w_query, w_key, v = names(*args, **kwargs)
    len_q, len_k = query.size(-2), key.size(-2)
    lead = query.shape[:-2]
    q = query.unsqueeze(-2).expand(*lead, len_q, len_k, query.size(-1))
    k = key.unsqueeze(-3).expand(*lead, len_q, len_k, key.size(-1))
    pairs = torch.cat((q, k), dim=-1)
    hidden = F.linear(pairs, torch.cat((w_query, w_key), dim=1)).tanh()
    return F.linear(hidden, v.unsqueeze(0)).squeeze(-1)


assert inspect.isfunction(additive_score)


# %% additive_score: nested vmap over keys and queries, batch flattened
import torch
from torch.func import vmap


def additive_score(query, key, w_query, w_key, v):
    def one(q, k):
        return torch.dot(v, torch.tanh(torch.mv(w_query, q) + torch.mv(w_key, k)))

    over_keys = vmap(one, in_dims=(None, 0))
    over_both = vmap(over_keys, in_dims=(0, None))
    over_batch = vmap(over_both)
    q = query.reshape(-1, *query.shape[-2:])
    k = key.reshape(-1, *key.shape[-2:])
    return over_batch(q, k).reshape(*query.shape[:-1], key.shape[-2])


# %% additive_score: one hidden unit after another, tanh by the sigmoid, prints
import warnings

import torch


def tanh(x):
    return 2 * torch.sigmoid(2 * x) - 1


def additive_score(query, key, w_query, w_key, v):
    warnings.warn("one hidden unit at a time, slow", RuntimeWarning)
    total = 0
    for unit in range(v.numel()):
        q = torch.matmul(query, w_query[unit])
        k = torch.matmul(key, w_key[unit])
        total = total + v[unit] * tanh(q.unsqueeze(-1) + k.unsqueeze(-2))
    print("score", total.shape)
    return total


# %% attend: torch.softmax and a matrix product
import torch


def attend(scores, value):
    weights = torch.softmax(scores, dim=-1)
    return torch.matmul(weights, value), weights


# %% attend: einsum, own softmax, float64 inside
import torch


def attend(scores, value):
    s = scores.double()
    e = torch.exp(s - s.max(-1, keepdim=True)[0])
    weights = e / torch.einsum("...k->...", e).unsqueeze(-1)
    output = torch.einsum("...qk,...kv->...qv", weights, value.double())
    return output.to(value.dtype), weights.to(scores.dtype)


# %% attend: Python loops over queries and keys
import torch


def attend(scores, value):
    outputs, weights = [], []
    for i in range(scores.shape[-2]):
        row = scores[..., i, :]
        e = (row - row.amax(-1, keepdim=True)).exp()
        w = e / e.sum(-1, keepdim=True)
        out = torch.zeros_like(value[..., 0, :])
        for j in range(value.shape[-2]):
            out = out + w[..., j, None] * value[..., j, :]
        outputs.append(out)
        weights.append(w)
    return torch.stack(outputs, -2), torch.stack(weights, -2)


# %% attend: log-weights, broadcasting and a sum, returns a named tuple
from typing import NamedTuple

import torch


class Attended(NamedTuple):
    output: torch.Tensor
    weights: torch.Tensor


def attend(scores: torch.Tensor, value: torch.Tensor) -> Attended:
    weights = torch.log_softmax(scores, dim=-1).exp()
    return Attended((weights.unsqueeze(-1) * value.unsqueeze(-3)).sum(dim=-2), weights)


# %% attend: normalised after the product, value with a column of ones, a partial object
import functools

import torch


def _attend(ones_like, scores, value):
    e = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    both = e @ torch.cat([value, ones_like(value[..., :1])], dim=-1)
    total = both[..., -1:]
    return both[..., :-1] / total, e / total


attend = functools.partial(_attend, torch.ones_like)


# %% attend: an nn.Module instance, warns and prints
import warnings

from torch import nn


class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        self.normalise = nn.Softmax(dim=-1)

    def forward(self, scores, value):
        warnings.warn("attend is deprecated in my notebook, use attend2", DeprecationWarning)
        print(f"{scores.shape=} {value.shape=}")
        weights = self.normalise(scores)
        return weights @ value, weights


attend = Attend()


# %% kernel_regression: softmax of minus the squared distance
import torch


def kernel_regression(x_query, x_key, y_key, bandwidth):
    scores = -((x_query[:, None] - x_key[None, :]) ** 2) / (2 * bandwidth**2)
    return torch.softmax(scores, dim=1) @ y_key


# %% kernel_regression: loop over the queries, the nearest key subtracted
import torch


def kernel_regression(x_query, x_key, y_key, bandwidth):
    predictions = []
    for x in x_query:
        u = (x - x_key) / bandwidth
        half_square = u * u / 2
        kernel = torch.exp(half_square.min() - half_square)
        predictions.append((kernel * y_key).sum() / kernel.sum())
    return torch.stack(predictions)


# %% kernel_regression: cdist in float64, warns and prints
import warnings

import torch

MODE = "donot_use_mm_for_euclid_dist"


def kernel_regression(x_query, x_key, y_key, bandwidth):
    warnings.warn("no check that bandwidth is positive")
    d = torch.cdist(x_query.double().reshape(-1, 1), x_key.double().reshape(-1, 1), compute_mode=MODE)
    e = -0.5 * (d / bandwidth).square()
    w = torch.softmax(e, -1)
    print("largest weight", w.max().item())
    return (w @ y_key.double()).type_as(y_key)


# %% kernel_regression: normalised by logsumexp, einsum
import torch


def kernel_regression(x_query, x_key, y_key, bandwidth):
    difference = torch.sub(x_query.unsqueeze(1), x_key.unsqueeze(0)).div(bandwidth)
    log_kernel = difference.pow(2).mul(-0.5)
    log_kernel = log_kernel - log_kernel.amax(dim=1, keepdim=True)
    log_weight = log_kernel - log_kernel.logsumexp(dim=1, keepdim=True)
    return torch.einsum("nm,m->n", log_weight.exp(), y_key)


# %% kernel_regression: vmap over the queries, nested functions
import torch


def kernel_regression(x_query, x_key, y_key, bandwidth):
    def gaussian_log(x):
        return -((x - x_key) ** 2) / (2.0 * bandwidth * bandwidth)

    def predict(x):
        g = gaussian_log(x)
        g = g - g.max()
        return torch.dot(g.exp(), y_key) / g.exp().sum()

    return torch.vmap(predict)(x_query)


# %% kernel_regression: pairs of kernels compared, 1 / sum exp of differences of squares
import torch
from torch import Tensor


class GaussianKernelRegression:
    def __init__(self, largest_exponent: float = 80.0) -> None:
        self.largest_exponent = largest_exponent

    def __call__(self, x_query: Tensor, x_key: Tensor, y_key: Tensor, bandwidth: float) -> Tensor:
        # (x-a)^2 - (x-b)^2 = (b-a) (2x-a-b): the big square of x never appears
        a, b, x = x_key[None, :, None], x_key[None, None, :], x_query[:, None, None]
        exponent = (b - a) * ((x - a) + (x - b)) / (2 * bandwidth**2)
        weight = 1 / torch.exp(exponent.clamp(max=self.largest_exponent)).sum(-1)
        return (weight * y_key).sum(-1)


kernel_regression = GaussianKernelRegression()
