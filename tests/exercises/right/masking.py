# %% padding_mask: comparison and view
def padding_mask(tokens, pad_id):
    return (tokens != pad_id).unsqueeze(1).unsqueeze(2)


# %% padding_mask: loops over the tokens
import torch


def padding_mask(tokens, pad_id):
    batch, length = tokens.shape
    mask = torch.empty(batch, 1, 1, length, dtype=torch.bool, device=tokens.device)
    for b in range(batch):
        for j in range(length):
            mask[b, 0, 0, j] = tokens[b, j].item() != pad_id
    return mask


# %% padding_mask: numpy
import numpy as np
import torch


def padding_mask(tokens, pad_id):
    array = tokens.cpu().numpy()
    return torch.from_numpy(np.not_equal(array, pad_id)[:, np.newaxis, np.newaxis, :]).to(tokens.device)


# %% padding_mask: not of eq, einops-like view, warns and prints
import warnings

import torch


def padding_mask(tokens: torch.Tensor, pad_id: int) -> torch.Tensor:
    is_pad = torch.eq(tokens, pad_id)
    warnings.warn(f"{int(is_pad.sum())} padded tokens")
    print("padding_mask", list(tokens.shape))
    return is_pad.logical_not().view(tokens.size(0), 1, 1, tokens.size(1))


# %% padding_mask: zero where the difference is zero, a lambda
padding_mask = lambda tokens, pad_id: (tokens.long() - pad_id).bool()[:, None, None]  # noqa: E731


# %% padding_mask: torch.isin in a callable class
import torch


class PaddingMask:
    def __call__(self, tokens, pad_id):
        pad = torch.tensor([pad_id], device=tokens.device)
        return torch.isin(tokens, pad, invert=True).reshape(-1, 1, 1, tokens.shape[-1])


padding_mask = PaddingMask()


# %% causal_mask: tril of ones
import torch


def causal_mask(length):
    return torch.tril(torch.ones(length, length, dtype=torch.bool))


# %% causal_mask: positions compared
import torch


def causal_mask(length, device=None):
    position = torch.arange(length, device=device)
    return position[:, None] >= position[None, :]


# %% causal_mask: list of lists of bool, prints
import warnings

import torch


def causal_mask(length):
    warnings.warn("building a list of lists")
    rows = [[j <= i for j in range(length)] for i in range(length)]
    print(rows[:2])
    return torch.tensor(rows, dtype=torch.bool).reshape(length, length)


# %% causal_mask: cumulative sum of the identity
import torch

causal_mask = lambda length: torch.eye(length).cumsum(dim=0) > 0.5  # noqa: E731


# %% causal_mask: numpy's tri
import numpy
import torch


def causal_mask(length):
    return torch.as_tensor(numpy.tri(length, dtype=bool))


# %% causal_mask: recursion, one row and one column more each time
import torch
import torch.nn.functional as F


def causal_mask(length):
    if length == 0:
        return torch.zeros(0, 0, dtype=torch.bool)
    smaller = causal_mask(length - 1)
    bigger = F.pad(smaller, (0, 1, 0, 1), value=False)
    bigger[-1] = True
    return bigger


# %% causal_mask: bits of a growing integer
import torch


def causal_mask(length):
    mask = torch.zeros((length, length), dtype=torch.bool)
    seen = 0
    for i in range(length):
        seen = seen << 1 | 1
        for j in range(length):
            mask[i, j] = bool(seen >> j & 1)
    return mask


# %% decoder_mask: padding and causal combined
import torch


def decoder_mask(tokens, pad_id):
    length = tokens.size(1)
    causal = torch.ones(length, length, device=tokens.device).tril().bool()
    padding = (tokens != pad_id)[:, None, None, :]
    return padding & causal


# %% decoder_mask: loops over batch, query and key
import torch


def decoder_mask(tokens, pad_id):
    B, L = tokens.shape
    out = [[[[j <= i and int(tokens[b, j]) != pad_id for j in range(L)] for i in range(L)]] for b in range(B)]
    return torch.tensor(out, dtype=torch.bool, device=tokens.device)


# %% decoder_mask: outer product in whole numbers, warns and prints
import warnings

import torch


def decoder_mask(tokens, pad_id):
    warnings.warn("this mask is True where attention is allowed")
    real = tokens.ne(pad_id).long()
    ones = torch.ones_like(real)
    both = torch.einsum("bi,bj->bij", ones, real).tril()
    print(both.sum().item(), "allowed pairs")
    return both.gt(0).unsqueeze(1)


# %% decoder_mask: numpy, forbidden pairs collected and turned round
import numpy as np
import torch


def decoder_mask(tokens, pad_id):
    t = tokens.detach().cpu().numpy()
    i, j = np.indices((t.shape[1], t.shape[1]))
    forbidden = np.logical_or((j > i)[None, None], (t == pad_id)[:, None, None, :])
    return torch.from_numpy(~forbidden).to(tokens.device)


# %% decoder_mask: torch.where on an expanded tensor, masked_fill of the future
import torch


def decoder_mask(tokens, pad_id):
    length = tokens.shape[-1]
    keys = tokens.unsqueeze(-2).expand(-1, length, -1)  # (B, L, L)
    position = torch.arange(length, device=tokens.device)
    future = position.unsqueeze(0) > position.unsqueeze(1)
    allowed = torch.where(keys == pad_id, False, True).masked_fill(future, False)
    return allowed[:, None]


# %% decoder_mask: vmap over the batch with nested functions
import torch


def decoder_mask(tokens, pad_id):
    position = torch.arange(tokens.shape[1], device=tokens.device)

    def one(sequence):
        def row(i):
            return torch.logical_and(position <= i, sequence != pad_id)

        return torch.vmap(row)(position)[None]

    return torch.vmap(one)(tokens)


# %% masked_softmax: minus infinity, then NaN of empty rows to zero
import torch


def masked_softmax(scores, mask):
    weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
    return torch.nan_to_num(weights, nan=0.0)


# %% masked_softmax: empty rows opened before, closed after
import torch


def masked_softmax(scores, mask):
    mask = mask.expand_as(scores)
    empty = ~mask.any(dim=-1, keepdim=True)
    filled = torch.where(mask | empty, scores, torch.full_like(scores, -torch.inf))
    return torch.where(empty, torch.zeros_like(scores), torch.softmax(filled, -1))


# %% masked_softmax: float64 inside, lowest number, warns and prints
import warnings

import torch

LOWEST = torch.finfo(torch.float64).min


def masked_softmax(scores, mask):
    warnings.warn("double precision")
    s = scores.double().masked_fill(~mask, LOWEST)
    w = torch.softmax(s, dim=-1) * mask
    total = w.sum(-1, keepdim=True)
    w = w / torch.where(total == 0, torch.ones_like(total), total)
    print("dtype", scores.dtype)
    return w.to(scores.dtype)


# %% masked_softmax: exponentials times the mask, sum never zero
import torch


def masked_softmax(scores, mask):
    wide = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    kept = torch.where(mask, wide, wide.new_tensor(-torch.inf))
    top = kept.amax(-1, keepdim=True).detach()
    top = torch.where(torch.isinf(top), torch.zeros_like(top), top)
    e = torch.exp(kept - top)  # exactly 0 where masked
    total = e.sum(-1, keepdim=True)
    weights = e / (total + (total == 0))
    return weights.to(scores.dtype)


# %% masked_softmax: loops over rows, only the allowed entries looked at
import torch


def masked_softmax(scores, mask):
    rows = scores.reshape(-1, scores.shape[-1])
    allowed = mask.expand(scores.shape).reshape(-1, scores.shape[-1])
    result = []
    for row, ok in zip(rows, allowed):
        places = ok.nonzero().flatten()
        chosen = row[places]
        if places.numel() > 0:
            e = torch.exp(chosen.double() - chosen.double().max())
            chosen = (e / e.sum()).to(row.dtype)
        result.append(torch.zeros_like(row).index_put((places,), chosen))
    return torch.stack(result).reshape(scores.shape)


# %% masked_softmax: an autograd.Function with a backward of its own
import torch


class MaskedSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, mask):
        s = scores.to(torch.promote_types(scores.dtype, torch.float32))
        s = torch.where(mask, s, -torch.inf)
        shift = s.amax(-1, keepdim=True).nan_to_num(neginf=0.0)
        e = torch.exp(s - shift)
        w = e / e.sum(-1, keepdim=True).clamp(min=0.5)  # the sum is 0 or at least 1
        ctx.save_for_backward(w)
        return w.to(scores.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        (w,) = ctx.saved_tensors
        g = grad_output.to(w.dtype)
        return (w * (g - (w * g).sum(-1, keepdim=True))).to(grad_output.dtype), None


def masked_softmax(scores, mask):
    return MaskedSoftmax.apply(scores, mask)


# %% masked_softmax: logsumexp of the allowed scores, shifted, decorated
import functools

import torch


def at_least_float32(function):
    @functools.wraps(function)
    def wrapper(scores, mask):
        wide = scores.to(torch.float32) if scores.itemsize < 4 else scores
        return function(wide, mask).to(scores.dtype)

    return wrapper


@at_least_float32
def masked_softmax(scores, mask):
    nothing = ~mask.any(-1, keepdim=True) if mask.dim() else ~mask
    s = scores.masked_fill(~(mask | nothing), -torch.inf)
    s = s - s.detach().amax(-1, keepdim=True)
    log_weights = s - torch.logsumexp(s, -1, keepdim=True)
    return log_weights.exp().masked_fill(nothing, 0)


# %% masked_softmax: gathered into groups, scatter-add over flat indices
import torch


def masked_softmax(scores, mask):
    flat = scores.reshape(-1, scores.size(-1)).double()
    open_ = torch.broadcast_to(mask, scores.shape).reshape_as(flat)
    row, column = open_.nonzero(as_tuple=True)
    picked = flat[row, column]
    top = flat.new_full((flat.size(0),), -torch.inf)
    top = top.scatter_reduce(0, row, picked.detach(), "amax")
    e = torch.exp(picked - top[row])
    total = flat.new_zeros(flat.size(0)).index_add(0, row, e)
    weights = torch.zeros_like(flat).index_put((row, column), e / total[row])
    return weights.to(scores.dtype).reshape(scores.shape)


# %% sliding_window_mask: two comparisons
import torch


def sliding_window_mask(length, window):
    i = torch.arange(length).unsqueeze(1)
    j = torch.arange(length).unsqueeze(0)
    return (i - j >= 0) & (i - j < window)


# %% sliding_window_mask: tril and triu of ones
import torch


def sliding_window_mask(length, window):
    return torch.ones(length, length, dtype=torch.bool).tril().triu(1 - window)


# %% sliding_window_mask: list comprehension over positions, warns and prints
import warnings

import torch


def sliding_window_mask(length, window):
    warnings.warn("quadratic in length")
    mask = torch.tensor([[0 <= i - j < window for j in range(length)] for i in range(length)], dtype=torch.bool)
    print(mask.sum())
    return mask


# %% sliding_window_mask: sum of rolled diagonals
import torch


def sliding_window_mask(length, window):
    mask = torch.zeros(length, length, dtype=torch.bool)
    diagonal = torch.eye(length, dtype=torch.bool)
    for step in range(min(window, length)):
        shifted = torch.roll(diagonal, step, dims=0)
        shifted[:step] = False  # what came round from the bottom
        mask = mask | shifted
    return mask


# %% sliding_window_mask: difference of cumulative sums
import torch


def sliding_window_mask(length, window):
    ever = torch.eye(length, dtype=torch.int64).cumsum(0)
    too_old = torch.zeros_like(ever)
    if window < length:
        too_old[window:] = ever[: length - window]
    return (ever - too_old).to(torch.bool)


# %% sliding_window_mask: diagonals filled in a numpy array
import numpy as np
import torch


def sliding_window_mask(length: int, window: int) -> torch.Tensor:
    array = np.zeros((length, length), dtype=np.bool_)
    for i in range(length):
        array[i, max(0, i - window + 1) : i + 1] = True
    return torch.from_numpy(array)


# %% sliding_window_mask: recursion on the window
import torch


def sliding_window_mask(length, window):
    if window <= 0:
        return torch.zeros(length, length, dtype=torch.bool)
    window = min(window, length + 1)
    newest = torch.ones(length, length).diagonal(0).new_ones(max(length - window + 1, 0))
    edge = torch.diag(newest, -(window - 1))[:length, :length].bool() if len(newest) else False
    return sliding_window_mask(length, window - 1) | edge
