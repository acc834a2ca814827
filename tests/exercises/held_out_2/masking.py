# %% padding_mask: True where the token is padding, the wrong way round
def padding_mask(tokens, pad_id):
    return (tokens == pad_id).unsqueeze(1).unsqueeze(2)

# %% padding_mask: the two axes of length one are not added, the shape is (B, L)
import torch
def padding_mask(tokens, pad_id):
    return torch.ne(tokens, pad_id)

# %% padding_mask: the mask lies on the query axis, (B, 1, L, 1)
def padding_mask(tokens, pad_id):
    keep = tokens != pad_id
    return keep[:, None, :, None]

# %% padding_mask: compares with 0 instead of pad_id
def padding_mask(tokens, pad_id):
    B, L = tokens.shape
    return tokens.bool().view(B, 1, 1, L)

# %% padding_mask: greater than instead of unequal, so ids below pad_id are masked too
def padding_mask(tokens, pad_id):
    mask = tokens > pad_id
    return mask.reshape(mask.shape[0], 1, 1, -1)

# %% padding_mask: comes back as a float mask of ones and zeros
import torch

def padding_mask(tokens, pad_id):
    ones = torch.ones_like(tokens, dtype=torch.float32)
    mask = ones.masked_fill(tokens == pad_id, 0.0)
    return mask[:, None, None, :]

# %% padding_mask: one axis only is added, (B, 1, L)
def padding_mask(tokens, pad_id):
    return (tokens != pad_id).unsqueeze(-2)

# %% padding_mask: the outer product of the mask with itself, (B, 1, L, L), so padded queries are masked too
def padding_mask(tokens, pad_id):
    real = tokens.ne(pad_id)
    pairs = real.unsqueeze(1) & real.unsqueeze(2)
    return pairs.unsqueeze(1)

# %% causal_mask: the upper triangle, every position sees itself and the future
import torch
def causal_mask(length):
    return torch.triu(torch.ones(length, length, dtype=torch.bool))

# %% causal_mask: the diagonal is left out, so no position sees itself
import torch

def causal_mask(length):
    return torch.ones(length, length).tril(diagonal=-1).bool()

# %% causal_mask: a float tensor of ones and zeros instead of bool
import torch
def causal_mask(length):
    mask = torch.zeros(length, length)
    for i in range(length):
        mask[i, : i + 1] = 1
    return mask

# %% causal_mask: True marks the forbidden places, as in the Annotated Transformer before the == 0
import torch

def causal_mask(length):
    forbidden = torch.triu(torch.ones((length, length)), diagonal=1)
    return forbidden == 1

# %% causal_mask: an extra leading axis, (1, L, L)
import torch

def causal_mask(length):
    i = torch.arange(length)
    return (i[None, None, :] <= i[None, :, None])

# %% causal_mask: the diagonal above is included too, one position into the future
import torch
def causal_mask(length):
    return torch.tril(torch.ones(length, length, dtype=torch.bool), 1)

# %% causal_mask: the additive form with 0 and -inf
import torch

def causal_mask(length):
    full = torch.full((length, length), float("-inf"))
    return torch.triu(full, diagonal=1)

# %% causal_mask: torch.ones is given one size only, so tril raises
import torch

def causal_mask(length):
    return torch.tril(torch.ones(length, dtype=torch.bool))

# %% decoder_mask: joined with or instead of and
import torch

def decoder_mask(tokens, pad_id):
    L = tokens.shape[1]
    causal = torch.ones(L, L, dtype=torch.bool, device=tokens.device).tril()
    pad = (tokens != pad_id)[:, None, None, :]
    return causal | pad

# %% decoder_mask: the rows of padded queries are masked as well
import torch

def decoder_mask(tokens, pad_id):
    ok = tokens != pad_id
    B, L = ok.shape
    idx = torch.arange(L, device=tokens.device)
    causal = idx.view(L, 1) >= idx.view(1, L)
    return (causal & ok[:, None, :] & ok[:, :, None]).unsqueeze(1)

# %% decoder_mask: the head axis is missing, (B, L, L)
import torch
def decoder_mask(tokens, pad_id):
    length = tokens.size(-1)
    subsequent = torch.triu(torch.ones(1, length, length), diagonal=1) == 0
    return (tokens != pad_id).unsqueeze(-2) & subsequent.to(tokens.device)

# %% decoder_mask: the padding lies on the query axis, so padded keys stay open
import torch

def decoder_mask(tokens, pad_id):
    n = tokens.shape[1]
    tri = torch.tril(torch.ones(n, n, dtype=torch.bool, device=tokens.device))
    return tri[None, None] & (tokens != pad_id)[:, None, :, None]

# %% decoder_mask: the padding has the wrong polarity, only padded keys are open
import torch

def decoder_mask(tokens, pad_id):
    pad = tokens.eq(pad_id).unsqueeze(1).unsqueeze(1)
    causal = torch.ones((tokens.size(1),) * 2, device=tokens.device).tril().bool()
    return torch.logical_and(pad, causal)

# %% decoder_mask: pad_id is ignored in favour of 0, and the triangle is the upper one
import torch

def decoder_mask(tokens, pad_id):
    B, L = tokens.shape
    mask = torch.zeros(B, 1, L, L, dtype=torch.bool)
    for b in range(B):
        for i in range(L):
            for j in range(i, L):
                mask[b, 0, i, j] = tokens[b, j] != 0
    return mask

# %% decoder_mask: the diagonal is opened again, so a padded token still sees itself
import torch

def decoder_mask(tokens, pad_id):
    L = tokens.shape[1]
    causal = torch.tril(torch.ones(L, L, dtype=torch.bool, device=tokens.device))
    m = causal & (tokens != pad_id)[:, None, None, :]
    # avoid rows without any key
    return m | torch.eye(L, dtype=torch.bool, device=tokens.device)

# %% decoder_mask: added instead of anded, the sum of the two masks comes back as integers
import torch

def decoder_mask(tokens, pad_id):
    L = tokens.shape[1]
    causal = torch.ones(L, L, dtype=torch.long, device=tokens.device).tril()
    keep = (tokens != pad_id).long().view(-1, 1, 1, L)
    return causal + keep

# %% masked_softmax: -1e9 as filler, which float16 cannot hold, and a fully masked row becomes uniform
import torch

def masked_softmax(scores, mask):
    scores = scores.masked_fill(~mask, -1e9)
    return torch.softmax(scores, dim=-1)

# %% masked_softmax: an additive mask of -inf and nan_to_num after the softmax, so the gradient of a fully masked row is nan
import torch

def masked_softmax(scores, mask):
    bias = torch.zeros(mask.shape, dtype=scores.dtype, device=scores.device)
    bias = bias.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores + bias, dim=-1)
    return torch.nan_to_num(weights, nan=0.0)

# %% masked_softmax: the weights are masked after the softmax and not normalised again
import torch

def masked_softmax(scores, mask):
    w = scores.softmax(dim=-1)
    return w * mask.to(w.dtype)

# %% masked_softmax: the maximum is taken over masked entries too, so a large masked score makes the allowed ones underflow
import torch

def masked_softmax(scores, mask):
    m = scores.amax(dim=-1, keepdim=True).detach()
    e = torch.exp(scores - m) * mask
    total = e.sum(dim=-1, keepdim=True)
    safe = torch.where(total == 0, torch.ones_like(total), total)
    return e / safe

# %% masked_softmax: the mask is read the wrong way round
import torch

def masked_softmax(scores, mask):
    s = scores.masked_fill(mask, torch.finfo(scores.dtype).min)
    w = torch.softmax(s, dim=-1)
    return w.masked_fill(mask, 0.0)

# %% masked_softmax: finfo.min as filler and nothing after it, so a fully masked row becomes uniform instead of zero
import torch
import torch.nn.functional as F

def masked_softmax(scores, mask):
    lowest = torch.finfo(scores.dtype).min
    return F.softmax(torch.where(mask, scores, torch.full_like(scores, lowest)), dim=-1)

# %% masked_softmax: computes in float32 and does not return to the dtype of the scores
import torch

def masked_softmax(scores, mask):
    s = scores.float().masked_fill(~mask, torch.finfo(torch.float32).min)
    w = s.softmax(-1)
    w = w.masked_fill(~mask, 0)
    return w

# %% masked_softmax: writes -inf into scores itself (and the row that is all -inf gives nan)
import torch

def masked_softmax(scores, mask):
    scores.masked_fill_(mask.logical_not(), float("-inf"))
    scores = scores - scores.max(dim=-1, keepdim=True).values
    e = scores.exp()
    return e / e.sum(dim=-1, keepdim=True)

# %% sliding_window_mask: i - j <= window, one key too many
import torch
def sliding_window_mask(length, window):
    i = torch.arange(length).unsqueeze(1)
    j = torch.arange(length).unsqueeze(0)
    return (i - j >= 0) & (i - j <= window)

# %% sliding_window_mask: the window is symmetric, |i - j| < window, so the future is seen
import torch

def sliding_window_mask(length, window):
    idx = torch.arange(length)
    return (idx[:, None] - idx[None, :]).abs() < window

# %% sliding_window_mask: the difference is j - i, so the window looks into the future
import torch
def sliding_window_mask(length, window):
    rows, cols = torch.meshgrid(torch.arange(length), torch.arange(length), indexing="xy")
    diff = rows - cols
    return (diff >= 0) & (diff < window)

# %% sliding_window_mask: only the lower limit is there, the causal half is missing
import torch

def sliding_window_mask(length, window):
    ones = torch.ones(length, length, dtype=torch.bool)
    return ones.triu(diagonal=-(window - 1))

# %% sliding_window_mask: the position itself is left out
import torch

def sliding_window_mask(length, window):
    pos = torch.arange(length)
    distance = pos.view(-1, 1) - pos
    return (0 < distance) & (distance < window)

# %% sliding_window_mask: the start of the slice becomes negative in the first rows and counts from the end
import torch

def sliding_window_mask(length, window):
    mask = torch.zeros(length, length, dtype=torch.bool)
    for i in range(length):
        mask[i, i - window + 1:i + 1] = True
    return mask

# %% sliding_window_mask: blocks of window positions instead of a window that slides
import torch

def sliding_window_mask(length, window):
    block = torch.arange(length) // window
    same = block[:, None] == block[None, :]
    return same & torch.ones(length, length, dtype=torch.bool).tril()

# %% sliding_window_mask: chained comparison of tensors, 0 <= d < window, which raises
import torch

def sliding_window_mask(length, window):
    i = torch.arange(length)[:, None]
    j = torch.arange(length)[None, :]
    d = i - j
    return 0 <= d < window
