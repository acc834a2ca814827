# %% padding_mask: True marks the padding instead of the tokens that may be attended to.
def padding_mask(tokens, pad_id):
    return (tokens == pad_id).unsqueeze(1).unsqueeze(2)


# %% padding_mask: One axis is missing: the result is (B, 1, L).
def padding_mask(tokens, pad_id):
    is_real = tokens != pad_id
    return is_real.unsqueeze(1)


# %% padding_mask: The mask is a tensor of ones and zeros in float, not bool.
def padding_mask(tokens, pad_id):
    batch, length = tokens.shape
    mask = (tokens != pad_id).float()
    return mask.view(batch, 1, 1, length)


# %% padding_mask: The new axis is on the wrong side, so padded queries are masked: (B, 1, L, 1).
def padding_mask(tokens, pad_id):
    keep = tokens.ne(pad_id)
    return keep[:, None, :, None]


# %% padding_mask: The argument pad_id is ignored; 0 is taken for padding.
def padding_mask(tokens, pad_id):
    mask = tokens.bool()
    return mask[:, None, None]


# %% padding_mask: Tokens are counted and assumed to stand first, so left padding is masked in the wrong place.
import torch


def padding_mask(tokens, pad_id):
    lengths = (tokens != pad_id).sum(dim=1)
    positions = torch.arange(tokens.shape[1], device=tokens.device)
    mask = positions[None, :] < lengths[:, None]
    return mask.reshape(tokens.shape[0], 1, 1, -1)


# %% causal_mask: True marks the future, that is, what may not be attended to.
import torch


def causal_mask(length):
    return torch.triu(torch.ones(length, length), diagonal=1).bool()


# %% causal_mask: The diagonal is excluded, so no position sees itself.
import torch


def causal_mask(length):
    mask = torch.zeros(length, length, dtype=torch.bool)
    for i in range(length):
        for j in range(length):
            if j < i:
                mask[i, j] = True
    return mask


# %% causal_mask: The mask is a float tensor of ones and zeros, not bool.
import torch


def causal_mask(length):
    return torch.tril(torch.ones(length, length))


# %% causal_mask: A batch axis is put in front: (1, L, L).
import numpy as np
import torch


def causal_mask(length):
    upper = np.triu(np.ones((1, length, length)), k=1).astype("uint8")
    return torch.from_numpy(upper) == 0


# %% causal_mask: Rows and columns are exchanged: each position sees itself and the future.
import torch


def causal_mask(length):
    idx = torch.arange(length)
    return idx[:, None] <= idx[None, :]


# %% causal_mask: Off by one: each position sees the next one as well.
import torch


def causal_mask(length):
    full = torch.ones((length, length), dtype=torch.bool)
    return full.tril(diagonal=1)


# %% decoder_mask: The two masks are joined by "or" instead of "and".
import torch


def decoder_mask(tokens, pad_id):
    L = tokens.size(1)
    pad = (tokens != pad_id).unsqueeze(1).unsqueeze(2)
    causal = torch.tril(torch.ones(L, L, dtype=torch.bool, device=tokens.device))
    return pad | causal


# %% decoder_mask: The padding part is turned round: only padded keys stay allowed.
import torch


def decoder_mask(tokens, pad_id):
    length = tokens.shape[-1]
    no_peek = torch.ones(length, length, device=tokens.device).tril().bool()
    padding = (tokens == pad_id)[:, None, None, :]
    return no_peek & padding


# %% decoder_mask: The padding is applied to the queries and not to the keys.
import torch


def decoder_mask(tokens, pad_id):
    positions = torch.arange(tokens.shape[1], device=tokens.device)
    past = positions.unsqueeze(0) <= positions.unsqueeze(1)
    valid = tokens.ne(pad_id).unsqueeze(1).unsqueeze(3)
    return torch.logical_and(past, valid)


# %% decoder_mask: The rows of padded queries are closed as well, so they are fully masked.
import torch


def decoder_mask(tokens, pad_id):
    real = tokens != pad_id
    pairs = real[:, None, :, None] & real[:, None, None, :]
    size = tokens.shape[1]
    future = torch.triu(torch.ones(size, size, dtype=torch.bool, device=tokens.device), 1)
    return pairs & ~future


# %% decoder_mask: The axis for the heads is missing: the result is (B, L, L).
import torch


def make_causal(n, device):
    return torch.ones(n, n, dtype=torch.bool, device=device).tril()


def decoder_mask(tokens, pad_id):
    key_ok = (tokens != pad_id).unsqueeze(-2)
    return key_ok & make_causal(tokens.shape[1], tokens.device)


# %% decoder_mask: The masks are multiplied as numbers, so the result is float and not bool.
import torch


def decoder_mask(tokens, pad_id):
    batch, n = tokens.shape
    pad_part = (tokens != pad_id).view(batch, 1, 1, n)
    causal_part = torch.tril(torch.ones(1, 1, n, n, device=tokens.device))
    return pad_part * causal_part


# %% masked_softmax: A fully masked row is a softmax over nothing but -inf and comes out as NaN.
import torch


def masked_softmax(scores, mask):
    scores = scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, dim=-1)


# %% masked_softmax: Masked scores are filled with -1e9: an error in float16, and a fully masked row is uniform.
import torch.nn.functional as F


def masked_softmax(scores, mask):
    filled = scores.masked_fill(mask == 0, -1e9)
    weights = F.softmax(filled, dim=-1)
    return weights


# %% masked_softmax: The weights are zeroed after the softmax without renormalising, so rows do not sum to one.
import torch


def masked_softmax(scores, mask):
    weights = scores.softmax(-1)
    return torch.where(mask, weights, torch.zeros_like(weights))


# %% masked_softmax: masked_fill_ works in place and changes the caller's scores.
import torch


def masked_softmax(scores, mask):
    mask = mask.expand(scores.shape)
    lowest = torch.finfo(scores.dtype).min
    scores.masked_fill_(mask.logical_not(), lowest)
    weights = torch.softmax(scores, dim=-1)
    return weights.masked_fill(mask.logical_not(), 0.0)


# %% masked_softmax: NaN is replaced only after the softmax, so the gradient of a fully masked row is still NaN.
import torch


def masked_softmax(scores, mask):
    bias = torch.zeros(mask.shape, dtype=scores.dtype, device=scores.device)
    bias = bias.masked_fill(~mask, float("-inf"))
    attn = torch.softmax(scores + bias, dim=-1)
    return torch.nan_to_num(attn, nan=0.0)


# %% masked_softmax: The maximum is taken over masked keys too, so allowed keys far below one underflow to zero.
import torch


def masked_softmax(scores, mask):
    e = torch.exp(scores - scores.amax(dim=-1, keepdim=True).detach())
    e = e * mask
    total = e.sum(dim=-1, keepdim=True)
    safe_total = torch.where(total > 0, total, torch.ones_like(total))
    return e / safe_total


# %% sliding_window_mask: Off by one: the window also takes in the key at distance window.
import torch


def sliding_window_mask(length, window):
    i = torch.arange(length).unsqueeze(1)
    j = torch.arange(length).unsqueeze(0)
    return (j <= i) & (i - j <= window)


# %% sliding_window_mask: The window is symmetric and lets the future in.
import torch


def sliding_window_mask(length, window):
    pos = torch.arange(length)
    distance = (pos[:, None] - pos[None, :]).abs()
    return distance < window


# %% sliding_window_mask: The start of the slice is negative for the first rows, which then come out wrong.
import torch


def sliding_window_mask(length, window):
    mask = torch.zeros(length, length, dtype=torch.bool)
    for row in range(length):
        mask[row, row - window + 1 : row + 1] = True
    return mask


# %% sliding_window_mask: The condition 0 <= i - j is missing, so the whole future is allowed.
import torch


def sliding_window_mask(length, window):
    return torch.ones(length, length, dtype=torch.bool).triu(diagonal=-window + 1)


# %% sliding_window_mask: The mask comes out as a float tensor, because two triangles are subtracted.
import torch


def sliding_window_mask(length, window):
    ones = torch.ones(length, length)
    lower = torch.tril(ones)
    too_old = torch.tril(ones, diagonal=-window)
    return lower - too_old


# %% sliding_window_mask: Rows and columns are exchanged: each position sees the window ahead of it.
import torch


def sliding_window_mask(length, window):
    rows, cols = torch.meshgrid(torch.arange(length), torch.arange(length), indexing="ij")
    delta = cols - rows
    return torch.logical_and(delta >= 0, delta < window)
