# %% padding_mask: True at the padding, the opposite convention
import torch


def padding_mask(tokens, pad_id):
    return (tokens == pad_id)[:, None, None, :]


# %% padding_mask: one axis is missing, the shape is (B, 1, L)
import torch


def padding_mask(tokens, pad_id):
    mask = tokens.ne(pad_id)
    return mask.unsqueeze(1)


# %% padding_mask: returns a float mask of ones and zeros instead of bool
import torch


def padding_mask(tokens, pad_id):
    mask = torch.ones_like(tokens, dtype=torch.float32)
    mask[tokens == pad_id] = 0.0
    return mask.view(tokens.shape[0], 1, 1, tokens.shape[1])


# %% padding_mask: takes it for granted that the padding id is 0
import torch


def padding_mask(tokens, pad_id):
    return tokens.bool().unsqueeze(1).unsqueeze(2)


# %% padding_mask: rebuilds the mask from the number of real tokens, wrong where the padding is not at the end
import torch


def padding_mask(tokens, pad_id):
    lengths = (tokens != pad_id).sum(dim=1, keepdim=True)
    positions = torch.arange(tokens.size(1), device=tokens.device)
    return (positions < lengths)[:, None, None, :]


# %% padding_mask: puts the tokens on the query axis, shape (B, 1, L, 1)
import torch


def padding_mask(tokens, pad_id):
    keep = tokens != pad_id
    return keep.unsqueeze(1).unsqueeze(-1)


# %% causal_mask: True above the diagonal, it marks what is forbidden
import torch


def causal_mask(length):
    return torch.triu(torch.ones(length, length), diagonal=1).bool()


# %% causal_mask: a position may not attend to itself
import torch


def causal_mask(length):
    mask = torch.zeros(length, length, dtype=torch.bool)
    for i in range(length):
        for j in range(i):
            mask[i, j] = True
    return mask


# %% causal_mask: returns a float tensor
import torch


def causal_mask(length):
    return torch.tril(torch.ones((length, length)))


# %% causal_mask: returns an additive mask with -inf instead of a bool mask
import torch


def causal_mask(length):
    mask = torch.full((length, length), float("-inf"))
    return torch.triu(mask, diagonal=1)


# %% causal_mask: adds a batch axis, shape (1, L, L)
import numpy as np
import torch


def causal_mask(length):
    attn_shape = (1, length, length)
    subsequent_mask = np.triu(np.ones(attn_shape), k=1).astype("uint8")
    return torch.from_numpy(subsequent_mask) == 0


# %% causal_mask: rows and columns are mixed up, every position sees itself and the future
import torch


def causal_mask(length):
    pos = torch.arange(length)
    return pos.unsqueeze(1) <= pos.unsqueeze(0)


# %% decoder_mask: joins the two masks with "or", so the padding and the future stay visible
import torch


def decoder_mask(tokens, pad_id):
    length = tokens.size(1)
    pad = (tokens != pad_id)[:, None, None, :]
    causal = torch.tril(torch.ones(length, length, dtype=torch.bool, device=tokens.device))
    return pad | causal


# %% decoder_mask: masks the padded queries instead of the padded keys
import torch


def decoder_mask(tokens, pad_id):
    trg_pad_mask = (tokens != pad_id).unsqueeze(1).unsqueeze(3)
    trg_len = tokens.shape[1]
    trg_sub_mask = torch.tril(torch.ones((trg_len, trg_len), device=tokens.device)).bool()
    return trg_pad_mask & trg_sub_mask


# %% decoder_mask: also blanks the rows of padded queries, which should be left as they are
import torch


def decoder_mask(tokens, pad_id):
    real = tokens != pad_id
    both = real.unsqueeze(2) & real.unsqueeze(1)
    causal = torch.ones(tokens.size(1), tokens.size(1), dtype=torch.bool, device=tokens.device).tril()
    return (both & causal).unsqueeze(1)


# %% decoder_mask: the head axis is missing, shape (B, L, L)
import torch


def decoder_mask(tokens, pad_id):
    tgt_mask = (tokens != pad_id).unsqueeze(-2)
    size = tokens.size(-1)
    subsequent = torch.triu(torch.ones(1, size, size, device=tokens.device), diagonal=1) == 0
    return tgt_mask & subsequent


# %% decoder_mask: True marks what is forbidden
import torch


def decoder_mask(tokens, pad_id):
    L = tokens.shape[1]
    future = torch.triu(torch.ones(L, L, dtype=torch.bool, device=tokens.device), diagonal=1)
    is_pad = tokens.eq(pad_id)[:, None, None, :]
    return is_pad | future


# %% decoder_mask: the product of two float masks is not bool
import torch


def decoder_mask(tokens, pad_id):
    batch, length = tokens.shape
    padding = (tokens != pad_id).float().view(batch, 1, 1, length)
    look_back = torch.ones(length, length, device=tokens.device).tril()
    return padding * look_back


# %% decoder_mask: ignores pad_id and treats 0 as the padding
import torch


def decoder_mask(tokens, pad_id):
    positions = torch.arange(tokens.shape[1], device=tokens.device)
    causal = positions[None, :] <= positions[:, None]
    not_padded = tokens != 0
    return causal[None, None] & not_padded[:, None, None]


# %% decoder_mask: opens the diagonal again, so that padded positions attend to themselves
import torch


def decoder_mask(tokens, pad_id):
    length = tokens.size(1)
    mask = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()
    mask = mask[None, None, :, :] & (tokens != pad_id)[:, None, None, :]
    return mask | torch.eye(length, dtype=torch.bool, device=tokens.device)


# %% masked_softmax: a fully masked row is all -inf and becomes nan
import torch


def masked_softmax(scores, mask):
    scores = scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, dim=-1)


# %% masked_softmax: the constant -1e9 does not fit into float16
import torch


def masked_softmax(scores, mask):
    filled = scores.masked_fill(mask == 0, -1e9)
    weights = torch.softmax(filled, dim=-1)
    return weights.masked_fill(mask == 0, 0.0)


# %% masked_softmax: zeroes the masked weights after the softmax without renormalising the row
import torch


def masked_softmax(scores, mask):
    probs = torch.softmax(scores, dim=-1)
    return probs * mask.to(probs.dtype)


# %% masked_softmax: fills with the smallest finite number, a fully masked row gets equal weights instead of zeros
import torch


def masked_softmax(scores, mask):
    lowest = torch.finfo(scores.dtype).min
    return torch.softmax(scores.masked_fill(~mask, lowest), dim=-1)


# %% masked_softmax: adds -inf and repairs the nan afterwards, the gradient of a fully masked row stays nan
import torch


def masked_softmax(scores, mask):
    bias = torch.zeros_like(mask, dtype=scores.dtype).masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores + bias, dim=-1)
    return torch.nan_to_num(weights, nan=0.0)


# %% masked_softmax: the maximum is taken over masked entries too, a large masked score wipes the row out
import torch


def masked_softmax(scores, mask):
    shifted = scores - scores.max(dim=-1, keepdim=True).values
    e = torch.exp(shifted) * mask
    total = e.sum(dim=-1, keepdim=True)
    total = torch.where(total > 0, total, torch.ones_like(total))
    return e / total


# %% masked_softmax: computes in float32 and returns float32 for half-precision scores
import torch


def masked_softmax(scores, mask):
    if scores.dtype in (torch.float16, torch.bfloat16):
        scores = scores.float()
    lowest = torch.finfo(scores.dtype).min
    weights = torch.softmax(scores.masked_fill(~mask, lowest), dim=-1)
    return weights.masked_fill(~mask, 0)


# %% masked_softmax: fills the caller's scores in place
import torch


def masked_softmax(scores, mask):
    scores.masked_fill_(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(scores, dim=-1)
    return torch.where(mask, weights, torch.zeros_like(weights))


# %% sliding_window_mask: the window is one position too wide
import torch


def sliding_window_mask(length, window):
    ones = torch.ones(length, length, dtype=torch.bool)
    return torch.tril(ones) & torch.triu(ones, diagonal=-window)


# %% sliding_window_mask: looks to both sides instead of back only
import torch


def sliding_window_mask(length, window):
    idx = torch.arange(length)
    return (idx[:, None] - idx[None, :]).abs() < window


# %% sliding_window_mask: only the far end of the window is checked, the whole future is visible
import torch


def sliding_window_mask(length, window):
    i = torch.arange(length).view(-1, 1)
    j = torch.arange(length).view(1, -1)
    return i - j < window


# %% sliding_window_mask: rows and columns swapped, the window looks ahead
import torch


def sliding_window_mask(length, window):
    pos = torch.arange(length)
    diff = pos.unsqueeze(0) - pos.unsqueeze(1)
    return (diff >= 0) & (diff < window)


# %% sliding_window_mask: leaves the position itself out, the window covers the positions before it
import torch


def sliding_window_mask(length, window):
    mask = torch.zeros(length, length, dtype=torch.bool)
    for i in range(length):
        mask[i, max(0, i - window):i] = True
    return mask


# %% sliding_window_mask: the difference of two float triangles is not bool
import torch


def sliding_window_mask(length, window):
    ones = torch.ones(length, length)
    return torch.tril(ones) - torch.tril(ones, diagonal=-window)


# %% masked_softmax: exponentials without any constant taken off, only empty rows are looked after
import torch


def masked_softmax(scores, mask):
    powers = torch.exp(scores).masked_fill(~mask, 0)
    total = powers.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, powers / total, torch.zeros_like(powers))
