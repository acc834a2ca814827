"""Solutions that break one clause of the contract of `linear_attention` each."""

import math

import torch
import torch.nn.functional as F
from contract_clauses import breaks

ROUND = "accurate to about 1e-5 in float32 and 1e-10 in float64"
UNCHANGED = "a solution leaves its arguments unchanged"
LAYOUT = "a tensor is right in any layout of its memory"
BATCH = "leading dimensions may be any number of batch dimensions, including none"
GRADIENTS = "lets gradients through"
DTYPE = "keeps the dtype"

# linear_attention

LINEAR = "linear_attention"


def _positive(x):
    return F.elu(x) + 1


def _linear(query, key, value, features=_positive):
    weights = (features(query) @ features(key).transpose(-2, -1)).tril()
    return weights @ value / weights.sum(-1, keepdim=True)


@breaks(LINEAR, "causal: j ≤ i, and no later position")
def _(query, key, value):
    weights = _positive(query) @ _positive(key).transpose(-2, -1)
    return weights @ value / weights.sum(-1, keepdim=True)


@breaks(LINEAR, "causal: j ≤ i, the own position included")
def _(query, key, value):
    weights = (_positive(query) @ _positive(key).transpose(-2, -1)).tril(-1)
    return weights @ value / weights.sum(-1, keepdim=True).clamp(min=1e-30)


@breaks(LINEAR, "causal: j ≤ i, however long ago")
def _(query, key, value):
    weights = (_positive(query) @ _positive(key).transpose(-2, -1)).tril().triu(-100)
    return weights @ value / weights.sum(-1, keepdim=True)


@breaks(LINEAR, "the feature map is elu(x) + 1, for negative x")
def _(query, key, value):
    return _linear(query, key, value, lambda x: F.relu(x) + 1)


@breaks(LINEAR, "the feature map is elu(x) + 1, for positive x")
def _(query, key, value):
    return _linear(query, key, value, torch.exp)


@breaks(LINEAR, "the feature map is elu(x) + 1: positive")
def _(query, key, value):
    return _linear(query, key, value, F.elu)


@breaks(LINEAR, "φ(k), too")
def _(query, key, value):
    weights = (_positive(query) @ key.transpose(-2, -1)).tril()
    return weights @ value / weights.sum(-1, keepdim=True)


@breaks(LINEAR, "φ(q), too")
def _(query, key, value):
    weights = (query @ _positive(key).transpose(-2, -1)).tril()
    return weights @ value / weights.sum(-1, keepdim=True)


@breaks(LINEAR, "no scaling")
def _(query, key, value):
    return _linear(query / math.sqrt(query.shape[-1]), key, value)


@breaks(LINEAR, "divided by Σ φ(q) · φ(k)")
def _(query, key, value):
    return (_positive(query) @ _positive(key).transpose(-2, -1)).tril() @ value


@breaks(LINEAR, "divided by Σ φ(q) · φ(k) over j ≤ i")
def _(query, key, value):
    weights = _positive(query) @ _positive(key).transpose(-2, -1)
    return weights.tril() @ value / weights.sum(-1, keepdim=True)


@breaks(LINEAR, "no softmax")
def _(query, key, value):
    future = torch.ones(query.shape[-2], query.shape[-2], dtype=torch.bool).triu(1)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    return scores.masked_fill(future, -math.inf).softmax(-1) @ value


@breaks(LINEAR, BATCH)
def _(query, key, value):
    if query.dim() == 2:
        raise IndexError("there is no batch")
    return _linear(query, key, value)


@breaks(LINEAR, BATCH)
def _(query, key, value):
    if query.dim() > 3:
        raise RuntimeError("batch2 must be a 3D tensor")
    return _linear(query, key, value)


@breaks(LINEAR, BATCH)
def _(query, key, value):
    if query.dim() > 4:
        raise RuntimeError("four axes at most")
    return _linear(query, key, value)


@breaks(LINEAR, "each sequence of a batch by itself")
def _(query, key, value):
    if query.dim() == 2:
        return _linear(query, key, value)
    query, key = _positive(query), _positive(key)
    state = (key[..., :, None] * value[..., None, :]).cumsum(-3).sum(0)
    return (query[..., None] * state).sum(-2) / (query * key.cumsum(-2).sum(0)).sum(-1, keepdim=True)


@breaks(LINEAR, "the output is (..., L, d_v), d_v independent of d_k")
def _(query, key, value):
    return _linear(query, key, value).reshape(query.shape)


@breaks(LINEAR, "the output is (..., L, d_v), for one position too")
def _(query, key, value):
    output = _linear(query, key, value)
    return output.squeeze(-2) if output.shape[-2] == 1 else output


@breaks(LINEAR, "the output is (..., L, d_v), for a batch of one too")
def _(query, key, value):
    return _linear(query, key, value).squeeze(0)


@breaks(LINEAR, LAYOUT)
def _(query, key, value):
    return _linear(query.view(-1).view(query.shape), key, value)


@breaks(LINEAR, ROUND)
def _(query, key, value):
    return _linear(query.float(), key.float(), value.float()).to(query.dtype)


@breaks(LINEAR, ROUND)
def _(query, key, value):
    if query.dtype == torch.float64:
        return _linear(query, key, value)
    return _linear(query.bfloat16(), key.bfloat16(), value.bfloat16()).float()


@breaks(LINEAR, ROUND)
def _(query, key, value):
    weights = (_positive(query) @ _positive(key).transpose(-2, -1)).tril()
    return weights @ value / (weights.sum(-1, keepdim=True) + 1e-6)


@breaks(LINEAR, DTYPE)
def _(query, key, value):
    return _linear(query, key, value).double()


@breaks(LINEAR, UNCHANGED + ": query")
def _(query, key, value):
    result = _linear(query, key, value)
    F.elu_(query)
    return result


@breaks(LINEAR, UNCHANGED + ": key")
def _(query, key, value):
    result = _linear(query, key, value)
    F.elu_(key)
    return result


@breaks(LINEAR, UNCHANGED + ": value")
def _(query, key, value):
    result = _linear(query, key, value)
    value[..., 0, :] = 0
    return result


@breaks(LINEAR, GRADIENTS + ": query")
def _(query, key, value):
    return _linear(query.detach(), key, value)


@breaks(LINEAR, GRADIENTS + ": key")
def _(query, key, value):
    return _linear(query, key.detach(), value)


@breaks(LINEAR, GRADIENTS + ": value")
def _(query, key, value):
    return _linear(query, key, value.detach())


@breaks(LINEAR, GRADIENTS + ": of the denominator, too")
def _(query, key, value):
    weights = (_positive(query) @ _positive(key).transpose(-2, -1)).tril()
    return weights @ value / weights.sum(-1, keepdim=True).detach()
