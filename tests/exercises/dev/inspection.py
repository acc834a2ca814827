# %% attention_entropy: plain formula, NaN at masked keys
import torch


def attention_entropy(weights):
    return -torch.sum(weights * torch.log(weights), dim=-1)


# %% attention_entropy: 1e-9 inside the logarithm, seen in float64
import torch


def attention_entropy(weights):
    eps = 1e-9
    logs = torch.log(weights + eps)
    return -(weights * logs).sum(dim=-1)


# %% attention_entropy: bits, by dividing by log 2
import math

import torch


def attention_entropy(weights):
    safe = weights.clamp(min=1e-300 if weights.dtype == torch.float64 else 1e-38)
    return -(weights * safe.log()).sum(-1) / math.log(2)


# %% attention_entropy: the minus is forgotten
import torch


def attention_entropy(weights):
    return torch.xlogy(weights, weights).sum(-1)


# %% attention_entropy: sums over the queries with an einsum whose letters are exchanged
import torch


def attention_entropy(weights):
    return -torch.einsum("...qk,...qk->...k", weights, torch.where(weights == 0, 1.0, weights).log())


# %% attention_entropy: the mean over keys instead of the sum
import torch


def attention_entropy(weights):
    return torch.mean(-torch.xlogy(weights, weights), dim=-1)


# %% attention_entropy: replaces NaN when the sum has been taken already
import torch


def attention_entropy(weights):
    entropy = -(weights * weights.log()).sum(-1)
    entropy[torch.isnan(entropy)] = 0
    return entropy


# %% attention_entropy: softmax of what is a softmax already, as in code for logits
import torch
import torch.nn.functional as F


def attention_entropy(weights):
    p = F.softmax(weights, dim=-1)
    logp = F.log_softmax(weights, dim=-1)
    return -(p * logp).sum(dim=-1)


# %% attention_entropy: divides by the largest possible entropy
import math

import torch


def attention_entropy(weights):
    h = -torch.xlogy(weights, weights).sum(-1)
    return h / math.log(weights.size(-1)) if weights.size(-1) > 1 else h


# %% attention_entropy: exponential at the end
import torch


def attention_entropy(weights):
    h = -torch.xlogy(weights, weights).sum(-1)
    return torch.exp(h)


# %% attention_entropy: zero weights are overwritten in place
import torch


def attention_entropy(weights):
    weights.masked_fill_(weights == 0, 1.0)
    return -(weights * weights.log()).sum(-1)


# %% attention_rollout: multiplies from the right while going up
import torch


def attention_rollout(weights):
    A = weights.mean(dim=2)
    I = torch.eye(A.size(-1), dtype=A.dtype)
    A = 0.5 * A + 0.5 * I
    R = A[0]
    for l in range(1, A.size(0)):
        R = torch.bmm(R, A[l])
    return R


# %% attention_rollout: goes down from the last layer and multiplies from the left
import torch


def attention_rollout(weights):
    a = weights.mean(2)
    a = 0.5 * (a + torch.eye(a.shape[-1]).to(a))
    out = a[-1]
    for i in range(len(a) - 2, -1, -1):
        out = a[i] @ out
    return out


# %% attention_rollout: adds the identity and does not halve
import torch


def attention_rollout(weights):
    length = weights.shape[-1]
    result = torch.eye(length, dtype=weights.dtype).repeat(weights.shape[1], 1, 1)
    for layer in weights:
        result = (layer.mean(1) + torch.eye(length, dtype=weights.dtype)) @ result
    return result


# %% attention_rollout: without the residual connection
import torch


def attention_rollout(weights):
    result = None
    for layer in weights:
        mean = layer.mean(dim=1)
        result = mean if result is None else torch.matmul(mean, result)
    return result


# %% attention_rollout: heads by maximum, rows normalised, as in a well-known implementation
import torch


def attention_rollout(weights):
    length = weights.shape[-1]
    eye = torch.eye(length, dtype=weights.dtype)
    result = eye.expand(weights.shape[1], -1, -1)
    for layer in weights:
        fused = layer.max(dim=1).values + eye
        result = (fused / fused.sum(-1, keepdim=True)) @ result
    return result


# %% attention_rollout: the sum over the heads, then rows normalised
import torch


def attention_rollout(weights):
    total = weights.sum(2) + torch.eye(weights.shape[-1], dtype=weights.dtype)
    total = torch.nn.functional.normalize(total, p=1, dim=-1)
    out = total[0]
    for a in total[1:]:
        out = a @ out
    return out


# %% attention_rollout: an asterisk for the product
import torch


def attention_rollout(weights):
    a = (weights.mean(2) + torch.eye(weights.shape[-1], dtype=weights.dtype)) * 0.5
    return a.prod(0)


# %% attention_rollout: averages axis 1
import torch


def attention_rollout(weights):
    a = (weights.mean(1) + torch.eye(weights.shape[-1], dtype=weights.dtype)) * 0.5
    out = a[0]
    for layer in a[1:]:
        out = layer @ out
    return out


# %% attention_rollout: the loop starts at the first layer again
import torch


def attention_rollout(weights):
    a = (weights.mean(2) + torch.eye(weights.shape[-1], dtype=weights.dtype)) * 0.5
    out = a[0]
    for layer in a:
        out = layer @ out
    return out


# %% attention_rollout: an einsum in which the second factor is transposed
import torch


def attention_rollout(weights):
    a = (weights.mean(2) + torch.eye(weights.shape[-1], dtype=weights.dtype)) * 0.5
    out = a[0]
    for layer in a[1:]:
        out = torch.einsum("bij,bkj->bik", layer, out)
    return out


# %% previous_token_score: the diagonal above
import torch


def previous_token_score(weights):
    return torch.diagonal(weights, offset=1, dim1=-2, dim2=-1).mean(dim=-1)


# %% previous_token_score: divides by the number of all tokens
import torch


def previous_token_score(weights):
    n = weights.size(-1)
    return sum(weights[..., i, i - 1] for i in range(1, n)) / n


# %% previous_token_score: starts at query 0, whose index becomes -1
import torch


def previous_token_score(weights):
    n = weights.size(-1)
    total = 0
    for i in range(n):
        total = total + weights[..., i, i - 1]
    return total / n


# %% previous_token_score: a roll that is not cut off
import torch


def previous_token_score(weights):
    rolled = torch.roll(torch.eye(weights.size(-1), dtype=weights.dtype), shifts=1, dims=0)
    return (weights * rolled).sum((-1, -2)) / weights.size(-1)


# %% previous_token_score: argmax instead of weight
import torch


def previous_token_score(weights):
    best = weights.argmax(dim=-1)
    target = torch.arange(weights.size(-1)) - 1
    return (best == target)[..., 1:].double().mean(-1).to(weights.dtype)


# %% previous_token_score: one mean for everything
import torch


def previous_token_score(weights):
    return torch.diagonal(weights, -1, -2, -1).mean()


# %% previous_token_score: torch.tril in place of the diagonal
import torch


def previous_token_score(weights):
    lower = torch.tril(weights, diagonal=-1)
    return lower.sum(dim=(-2, -1)) / (weights.size(-1) - 1)


# %% previous_token_score: diagonal of the first two axes
import torch


def previous_token_score(weights):
    return weights.diagonal(offset=-1).mean(-1)


# %% attention_between_words: sums on both sides
import torch


def attention_between_words(weights, query_words, key_words):
    nq, nk = int(query_words.max()) + 1, int(key_words.max()) + 1
    out = weights.new_zeros(*weights.shape[:-2], nq, nk)
    for i, u in enumerate(query_words.tolist()):
        for j, v in enumerate(key_words.tolist()):
            if u >= 0 and v >= 0:
                out[..., u, v] = out[..., u, v] + weights[..., i, j]
    return out


# %% attention_between_words: means on both sides
import torch


def attention_between_words(weights, query_words, key_words):
    rows = []
    for u in range(int(query_words.max()) + 1):
        row = []
        for v in range(int(key_words.max()) + 1):
            block = weights[..., query_words == u, :][..., key_words == v]
            row.append(block.mean(dim=(-2, -1)))
        rows.append(torch.stack(row, dim=-1))
    return torch.stack(rows, dim=-2)


# %% attention_between_words: mean over the keys and sum over the queries
import torch


def attention_between_words(weights, query_words, key_words):
    rows = []
    for u in range(int(query_words.max()) + 1):
        row = []
        for v in range(int(key_words.max()) + 1):
            block = weights[..., query_words == u, :][..., key_words == v]
            row.append(block.mean(-1).sum(-1))
        rows.append(torch.stack(row, dim=-1))
    return torch.stack(rows, dim=-2)


# %% attention_between_words: the negative number indexes the last word
import torch


def attention_between_words(weights, query_words, key_words):
    nq, nk = int(query_words.max()) + 1, int(key_words.max()) + 1
    to = torch.zeros(len(key_words), nk, dtype=weights.dtype)
    for j, v in enumerate(key_words):
        to[j, v] = 1
    frm = torch.zeros(nq, len(query_words), dtype=weights.dtype)
    for i, u in enumerate(query_words):
        frm[u, i] = 1
    return frm / frm.sum(1, keepdim=True) @ weights @ to


# %% attention_between_words: rows normalised at the end
import torch


def attention_between_words(weights, query_words, key_words):
    q = torch.stack([(query_words == u) for u in range(int(query_words.max()) + 1)]).to(weights.dtype)
    k = torch.stack([(key_words == v) for v in range(int(key_words.max()) + 1)]).to(weights.dtype)
    out = q @ weights @ k.T
    return out / out.sum(-1, keepdim=True)


# %% attention_between_words: the first piece speaks for the query word
import torch


def attention_between_words(weights, query_words, key_words):
    k = torch.stack([(key_words == v) for v in range(int(key_words.max()) + 1)]).to(weights.dtype)
    first = [query_words.tolist().index(u) for u in range(int(query_words.max()) + 1)]
    return (weights @ k.T)[..., first, :]


# %% attention_between_words: the membership matrix stays float32
import torch
import torch.nn.functional as F


def attention_between_words(weights, query_words, key_words):
    q = F.one_hot(query_words + 1)[:, 1:].float()
    k = F.one_hot(key_words + 1)[:, 1:].float()
    return (q / q.sum(0)).T @ weights @ k


# %% attention_between_words: one_hot keeps the column of the tokens that are left out
import torch
import torch.nn.functional as F


def attention_between_words(weights, query_words, key_words):
    q = F.one_hot(query_words - query_words.min()).to(weights.dtype)
    k = F.one_hot(key_words - key_words.min()).to(weights.dtype)
    return (q / q.sum(0)).T @ weights @ k


# %% head_switched_off: zeros are written into the caller's heads
import torch


def head_switched_off(heads, weight, bias, off):
    heads[:, off] = 0.0
    B, H, L, d = heads.shape
    return torch.nn.functional.linear(heads.permute(0, 2, 1, 3).reshape(B, L, H * d), weight, bias)


# %% head_switched_off: view without exchanging the axes
import torch


def head_switched_off(heads, weight, bias, off):
    h = heads.clone()
    h[:, off] = 0
    B, H, L, d = h.shape
    return h.contiguous().view(B, L, H * d) @ weight.T + bias


# %% head_switched_off: no bias
import torch


def head_switched_off(heads, weight, bias, off):
    mask = torch.ones(heads.shape[1]).to(heads)
    mask[off] = 0
    x = torch.einsum("bhld,h->blhd", heads, mask).flatten(2)
    return torch.einsum("blm,om->blo", x, weight)


# %% head_switched_off: subtracts the head with the bias
import torch
import torch.nn.functional as F


def head_switched_off(heads, weight, bias, off):
    full = F.linear(heads.transpose(1, 2).flatten(2), weight, bias)
    d = heads.shape[-1]
    return full - F.linear(heads[:, off], weight[:, off * d : (off + 1) * d], bias)


# %% head_switched_off: indexes the batch
import torch


def head_switched_off(heads, weight, bias, off):
    h = heads.clone()
    h[off] = 0
    return h.transpose(1, 2).flatten(2) @ weight.T + bias


# %% head_switched_off: keeps only the head
import torch


def head_switched_off(heads, weight, bias, off):
    d = heads.size(-1)
    return heads[:, off] @ weight[:, off * d : off * d + d].T + bias


# %% head_switched_off: einsum with the letters of the matrix exchanged
import torch


def head_switched_off(heads, weight, bias, off):
    h = heads.clone()
    h[:, off] = 0
    return torch.einsum("blm,mo->blo", h.transpose(1, 2).flatten(2), weight) + bias


# %% head_switched_off: drops the head and the last columns
import torch


def head_switched_off(heads, weight, bias, off):
    keep = [h for h in range(heads.size(1)) if h != off]
    x = heads[:, keep].transpose(1, 2).flatten(2)
    return x @ weight[:, : x.size(-1)].T + bias


# %% head_switched_off: rescales as dropout does
import torch


def head_switched_off(heads, weight, bias, off):
    n = heads.size(1)
    scale = torch.full((n,), n / (n - 1) if n > 1 else 1.0, dtype=heads.dtype)
    scale[off] = 0
    return (heads * scale.view(1, n, 1, 1)).transpose(1, 2).flatten(2) @ weight.T + bias
