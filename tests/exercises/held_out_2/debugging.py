# %% fix_loss: logits of padding are zeroed before the cross-entropy, so each padded position still adds log V
import torch
import torch.nn.functional as F


def fix_loss(logits, targets, pad_id):
    keep = (targets != pad_id).unsqueeze(-1)
    logits = torch.where(keep, logits, torch.zeros_like(logits))
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


# %% fix_loss: the logarithm of the sum of exponentials is taken without a maximum and overflows
import torch


def fix_loss(logits, targets, pad_id):
    log_z = logits.exp().sum(dim=-1).log()
    chosen = logits.gather(2, targets.unsqueeze(2)).squeeze(2)
    nll = log_z - chosen
    return nll[targets != pad_id].mean()


# %% fix_loss: the sum over the real targets is divided by the number of sequences
import torch.nn.functional as F


def fix_loss(logits, targets, pad_id):
    total = F.cross_entropy(logits.permute(0, 2, 1), targets, ignore_index=pad_id, reduction="sum")
    return total / targets.shape[0]


# %% fix_loss: the classes are brought to axis 1 by a reshape, which scrambles positions and vocabulary
import torch.nn.functional as F


def fix_loss(logits, targets, pad_id):
    B, L, V = logits.shape
    return F.cross_entropy(logits.reshape(B, V, L), targets, ignore_index=pad_id)


# %% fix_loss: the mean is right, but it is passed on as a plain number wrapped anew, without a gradient
import torch
import torch.nn.functional as F


def fix_loss(logits, targets, pad_id):
    mask = targets != pad_id
    loss = F.cross_entropy(logits[mask], targets[mask])
    return torch.tensor(loss.item(), dtype=logits.dtype, device=logits.device)


# %% fix_loss: nothing tells the cross-entropy of pad_id, so padding counts like any other target
import torch.nn.functional as F


def fix_loss(logits, targets, pad_id):
    flat_logits = logits.reshape(-1, logits.shape[-1])
    flat_targets = targets.reshape(-1)
    return F.cross_entropy(flat_logits, flat_targets)


# %% fix_loss: the mask is built with a fixed 0 instead of pad_id
import torch


def fix_loss(logits, targets, pad_id):
    log_probs = logits.log_softmax(dim=-1)
    picked = log_probs.gather(-1, targets[..., None])[..., 0]
    real = (targets != 0).to(logits.dtype)
    return -(picked * real).sum() / real.sum().clamp(min=1.0)


# %% fix_decoder_mask: the triangle is turned round by transposing it, so a query sees itself and the future
import torch


def fix_decoder_mask(tokens, pad_id):
    L = tokens.shape[1]
    causal = torch.ones(L, L, device=tokens.device).tril().bool().transpose(0, 1)
    return causal[None, None] & (tokens != pad_id)[:, None, None, :]


# %% fix_decoder_mask: only the padding is left of the mask; nothing hides the future
import torch


def fix_decoder_mask(tokens, pad_id):
    length = tokens.shape[1]
    real = tokens != pad_id
    return real[:, None, None, :].expand(-1, 1, length, -1)


# %% fix_decoder_mask: the diagonal is always allowed so that no row is fully masked, and a padded token sees itself
import torch


def fix_decoder_mask(tokens, pad_id):
    n = tokens.shape[1]
    causal = torch.tril(torch.ones(n, n, dtype=torch.bool, device=tokens.device))
    mask = causal & tokens.ne(pad_id)[:, None, None, :]
    return mask | torch.eye(n, dtype=torch.bool, device=tokens.device)


# %% fix_decoder_mask: ones and zeros of integers are returned in place of True and False
import torch


def fix_decoder_mask(tokens, pad_id):
    L = tokens.size(1)
    blocked = torch.triu(torch.ones(L, L, dtype=torch.long, device=tokens.device), diagonal=1)
    blocked = torch.maximum(blocked, (tokens == pad_id).long()[:, None, None, :])
    return 1 - blocked


# %% fix_decoder_mask: the real tokens are counted and taken for a prefix, so padding in front is allowed
import torch


def fix_decoder_mask(tokens, pad_id):
    L = tokens.shape[1]
    position = torch.arange(L, device=tokens.device)
    lengths = (tokens != pad_id).sum(dim=1)
    within = position < lengths[:, None]
    causal = position[:, None] >= position
    return causal & within[:, None, None, :]


# %% fix_decoder_mask: every token above 0 is taken for real, whatever pad_id is
import torch


def fix_decoder_mask(tokens, pad_id):
    size = tokens.shape[1]
    real = (tokens > 0)[:, None, None, :]
    return real & torch.ones(size, size, dtype=torch.bool, device=tokens.device).tril()


# %% fix_decoder_mask: the padding is put on the axis of the queries instead of the keys
import torch


def fix_decoder_mask(tokens, pad_id):
    B, L = tokens.shape
    causal = torch.ones(B, 1, L, L, dtype=torch.bool, device=tokens.device).tril()
    padded = (tokens == pad_id).reshape(B, 1, L, 1)
    return causal.masked_fill(padded, False)


# %% fix_decoder_attention: the memory's mask arrives as numbers that are added to the scores, one more for a real key
import torch.nn.functional as F


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    y = x + F.scaled_dot_product_attention(x, x, x, attn_mask=self_mask)
    bias = memory_mask.to(y.dtype)
    return y + F.scaled_dot_product_attention(y, memory, memory, attn_mask=bias)


# %% fix_decoder_attention: the weights of padded memory are zeroed after the softmax and the rest is not renormalised
import math

import torch
import torch.nn.functional as F


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    y = x + F.scaled_dot_product_attention(x, x, x, attn_mask=self_mask)
    weights = torch.softmax(y @ memory.transpose(1, 2) / math.sqrt(y.shape[-1]), dim=-1)
    weights = weights * memory_mask
    return y + weights @ memory


# %% fix_decoder_attention: the first sequence's padding mask is used for the whole batch
import torch.nn.functional as F


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    y = x + F.scaled_dot_product_attention(x, x, x, attn_mask=self_mask)
    y = y + F.scaled_dot_product_attention(y, memory, memory, attn_mask=memory_mask[0])
    return y


# %% fix_decoder_attention: the memory is cut to where any sequence is real, so shorter ones still see padding
import torch.nn.functional as F


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    some_real = memory_mask[:, 0].any(dim=0)
    memory = memory[:, some_real]
    y = x + F.scaled_dot_product_attention(x, x, x, attn_mask=self_mask)
    return y + F.scaled_dot_product_attention(y, memory, memory)


# %% fix_decoder_attention: a layer norm follows each residual connection, as in the whole decoder
import torch.nn.functional as F


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    y = F.layer_norm(x + F.scaled_dot_product_attention(x, x, x, attn_mask=self_mask), x.shape[-1:])
    z = y + F.scaled_dot_product_attention(y, memory, memory, attn_mask=memory_mask)
    return F.layer_norm(z, z.shape[-1:])


# %% fix_decoder_attention: both sums are taken in place and change the caller's x
import torch.nn.functional as F


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    x += F.scaled_dot_product_attention(x, x, x, attn_mask=self_mask)
    x += F.scaled_dot_product_attention(x, memory, memory, attn_mask=memory_mask)
    return x


# %% fix_decoder_attention: written out with both masks, but the scores are never scaled
import torch


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    def attend(q, k, mask):
        scores = torch.einsum("bqd,bkd->bqk", q, k)
        scores = torch.where(mask, scores, -torch.inf)
        return torch.softmax(scores, dim=-1) @ k

    y = x + attend(x, x, self_mask)
    return y + attend(y, memory, memory_mask)


# %% fix_layer_stack: a plain list, and parameters() is overridden so that at least the optimiser finds the layers
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = [nn.Linear(d_model, d_model) for _ in range(num_layers)]

    def parameters(self, recurse=True):
        for layer in self.layers:
            yield from layer.parameters(recurse)

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x).relu()
        return x


# %% fix_layer_stack: the list has become a tuple, which is no more registered than a list
import torch
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = tuple(nn.Linear(d_model, d_model) for _ in range(num_layers))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return x


# %% fix_layer_stack: a ModuleDict gives the weights other names than layers.0.weight
import torch
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleDict({f"layer_{i}": nn.Linear(d_model, d_model) for i in range(num_layers)})

    def forward(self, x):
        for layer in self.layers.values():
            x = x + torch.relu(layer(x))
        return x


# %% fix_layer_stack: each layer is wrapped in a Sequential with its ReLU, so the weights sit at layers.0.0.weight
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(d_model, d_model), nn.ReLU()) for _ in range(num_layers))

    def forward(self, x):
        for block in self.layers:
            x = x + block(x)
        return x


# %% fix_layer_stack: the layers are registered, but made without a bias
import torch.nn.functional as F
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(d_model, d_model, bias=False) for _ in range(num_layers)])

    def forward(self, x):
        for layer in self.layers:
            x = x + F.relu(layer(x))
        return x


# %% fix_layer_stack: the ReLU was dropped together with the list
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(num_layers))

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x


# %% fix_layer_stack: the residual connection was dropped, each layer only sees the ReLU of the one before
import torch
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList()
        self.layers.extend(nn.Linear(d_model, d_model) for _ in range(num_layers))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


# %% fix_head_split: x is unpacked into batch, length and width, which needs exactly one batch dimension
def fix_head_split(x, num_heads):
    batch, length, d_model = x.shape
    return x.view(batch, length, num_heads, d_model // num_heads).permute(0, 2, 1, 3)


# %% fix_head_split: split() is given the number of heads, which is taken for the width of each piece
import torch


def fix_head_split(x, num_heads):
    pieces = x.split(num_heads, dim=-1)
    return torch.stack(pieces, dim=-3)


# %% fix_head_split: the heads are stacked in front of the batch dimensions
import torch


def fix_head_split(x, num_heads):
    return torch.stack(torch.chunk(x, num_heads, dim=-1), dim=0)


# %% fix_head_split: the heads' slices overlap, since head h starts at feature h instead of h * d_head
import torch


def fix_head_split(x, num_heads):
    d_head = x.shape[-1] // num_heads
    heads = [x[..., h : h + d_head] for h in range(num_heads)]
    return torch.stack(heads, dim=-3)


# %% fix_head_split: a transpose follows the wrong reshape, and a second reshape only mends the shape
def fix_head_split(x, num_heads):
    *lead, length, d_model = x.shape
    d_head = d_model // num_heads
    x = x.reshape(*lead, num_heads, length, d_head).transpose(-3, -2)
    return x.reshape(*lead, num_heads, length, d_head)


# %% fix_head_split: all batch dimensions are flattened into one, which also appears where there was none
def fix_head_split(x, num_heads):
    length, d_model = x.shape[-2:]
    heads = x.reshape(-1, length, num_heads, d_model // num_heads)
    return heads.transpose(1, 2)


# %% fix_softmax: the scores are clamped to 50 in place of a maximum, so large ones cannot be told apart
import torch


def fix_softmax(scores, dim=-1):
    weights = torch.exp(scores.clamp(-50.0, 50.0))
    return weights / weights.sum(dim=dim, keepdim=True)


# %% fix_softmax: the denominator is detached like the maximum, so the gradient is not that of a softmax
import torch


def fix_softmax(scores, dim=-1):
    maximum = scores.max(dim=dim, keepdim=True).values.detach()
    exponentials = torch.exp(scores - maximum)
    total = exponentials.sum(dim=dim, keepdim=True).detach()
    return exponentials / total


# %% fix_softmax: the mean is subtracted instead of the maximum, which overflows for one very large score
import torch


def fix_softmax(scores, dim=-1):
    shifted = scores - scores.mean(dim=dim, keepdim=True)
    e = shifted.exp()
    return e / e.sum(dim=dim, keepdim=True)


# %% fix_softmax: the maximum of the absolute values is subtracted, so large negative rows become 0 / 0
import torch


def fix_softmax(scores, dim=-1):
    largest = scores.detach().abs().amax(dim=dim, keepdim=True)
    e = torch.exp(scores - largest)
    return e / torch.sum(e, dim=dim, keepdim=True)


# %% fix_softmax: the scores are divided by their largest absolute value instead of shifted by their maximum
import torch


def fix_softmax(scores, dim=-1):
    maximum = scores.abs().amax(dim=dim, keepdim=True).clamp(min=1.0).detach()
    exp = torch.exp(scores / maximum)
    return exp / exp.sum(dim=dim, keepdim=True)


# %% fix_softmax: the work is done in float32 and float64 scores do not come back as float64
import torch


def fix_softmax(scores, dim=-1):
    s = scores.float()
    s = s - s.amax(dim=dim, keepdim=True)
    weights = s.exp()
    return weights / weights.sum(dim=dim, keepdim=True)


# %% fix_softmax: the maximum is always that of the last axis, only the sum runs over dim
import torch


def fix_softmax(scores, dim=-1):
    exponentials = torch.exp(scores - scores.max(dim=-1, keepdim=True)[0].detach())
    return exponentials / exponentials.sum(dim=dim, keepdim=True)


# %% fix_scaled_attention: the output is scaled instead of the scores
import math

import torch


def fix_scaled_attention(query, key, value):
    scores = query @ key.transpose(-2, -1)
    weights = torch.softmax(scores, dim=-1)
    output = (weights @ value) / math.sqrt(query.shape[-1])
    return output, weights


# %% fix_scaled_attention: the softmax runs over the queries
import math

import torch


def fix_scaled_attention(query, key, value):
    scores = query @ key.transpose(-2, -1)
    scores = scores / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-2)
    return weights @ value, weights


# %% fix_scaled_attention: weights and output are returned in the wrong order
import math

import torch


def fix_scaled_attention(query, key, value):
    scaled = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scaled, dim=-1)
    return weights, torch.matmul(weights, value)


# %% fix_scaled_attention: the scores are multiplied by the root of d_k
import torch


def fix_scaled_attention(query, key, value):
    scale = query.shape[-1] ** 0.5
    weights = torch.softmax(scale * (query @ key.mT), dim=-1)
    return weights @ value, weights


# %% fix_scaled_attention: the query is scaled in place, in the caller's tensor
import torch


def fix_scaled_attention(query, key, value):
    query /= query.shape[-1] ** 0.5
    weights = torch.softmax(query @ key.transpose(-2, -1), dim=-1)
    return weights @ value, weights


# %% fix_scaled_attention: the scaled scores themselves are returned as weights; the softmax is only used for the output
import math

import torch


def fix_scaled_attention(query, key, value):
    scaled = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    output = torch.softmax(scaled, dim=-1) @ value
    return output, scaled


# %% fix_scaled_attention: d_k is read from axis 1, which is the length as soon as there is a batch
import math

import torch


def fix_scaled_attention(query, key, value):
    d_k = query.shape[1]
    scores = query @ key.transpose(-2, -1)
    scaled = scores / math.sqrt(d_k)
    weights = scaled.softmax(dim=-1)
    return weights @ value, weights


# %% fix_attention_weights: no dim is given at all, and PyTorch picks axis 0 or 1 according to the number of axes
import math

import torch.nn.functional as F


def fix_attention_weights(query, key):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    return F.softmax(scores)


# %% fix_attention_weights: written out over the last axis, but without a maximum, so large scores overflow
import torch


def fix_attention_weights(query, key):
    e = torch.exp(query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5)
    return e / e.sum(dim=-1, keepdim=True)


# %% fix_attention_weights: the softmax is over the keys now, but the division by the root of d_k got lost
import torch


def fix_attention_weights(query, key):
    return torch.softmax(torch.einsum("...qd,...kd->...qk", query, key), dim=-1)


# %% fix_attention_weights: a batch of one is squeezed away
import math

import torch


def fix_attention_weights(query, key):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights.squeeze(0)


# %% fix_attention_weights: the key is reshaped to (d_k, L_k) instead of transposed
import math

import torch


def fix_attention_weights(query, key):
    *lead, n, d = key.shape
    scores = query @ key.reshape(*lead, d, n) / math.sqrt(d)
    return torch.softmax(scores, dim=-1)


# %% fix_attention_weights: dim=1 is kept inside a loop over the first axis, which has to be the only batch dimension
import math

import torch


def fix_attention_weights(query, key):
    rows = []
    for q, k in zip(query, key):
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        rows.append(torch.softmax(scores, dim=1))
    return torch.stack(rows)


# %% fix_masked_softmax: the scores are multiplied by the mask, and a score of 0 is not a weight of 0
import torch


def fix_masked_softmax(scores, mask):
    weights = torch.softmax(scores * mask, dim=-1)
    return torch.where(mask.any(dim=-1, keepdim=True), weights, torch.zeros_like(weights))


# %% fix_masked_softmax: masked weights are zeroed after the softmax, and the rows are not brought back to one
import torch


def fix_masked_softmax(scores, mask):
    return torch.softmax(scores, dim=-1).masked_fill(~mask, 0.0)


# %% fix_masked_softmax: masked only after the softmax and renormalised; a high masked score leaves nothing to renormalise
import torch


def fix_masked_softmax(scores, mask):
    weights = torch.softmax(scores, dim=-1) * mask
    total = weights.sum(dim=-1, keepdim=True)
    return weights / torch.where(total > 0, total, torch.ones_like(total))


# %% fix_masked_softmax: the caller's scores are protected by a copy that is detached, so the gradient is gone
import torch


def fix_masked_softmax(scores, mask):
    own = scores.detach().clone()
    own.masked_fill_(~mask, float("-inf"))
    weights = torch.softmax(own, dim=-1)
    return weights.masked_fill(~mask, 0.0)


# %% fix_masked_softmax: everything is computed in float32 and stays there, so the dtype of the scores is lost
import torch


def fix_masked_softmax(scores, mask):
    wide = scores.to(torch.float32).masked_fill(~mask, -torch.inf)
    return wide.softmax(dim=-1).masked_fill(~mask, 0.0)


# %% fix_masked_softmax: the softmax's own result is zeroed in place, and backward needs it as it was
import torch


def fix_masked_softmax(scores, mask):
    masked = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = torch.softmax(masked, dim=-1)
    weights.masked_fill_(~mask, 0.0)
    return weights


# %% fix_masked_softmax: a second name for the scores is taken for a copy, so the caller's are overwritten all the same
import torch


def fix_masked_softmax(scores, mask):
    masked = scores
    masked[~mask.expand_as(masked)] = torch.finfo(scores.dtype).min
    weights = torch.softmax(masked, dim=-1)
    return weights * mask


# %% fix_masked_softmax: -100 fits every dtype, but it is no zero in float64 and gives a fully masked row uniform weights
import torch


def fix_masked_softmax(scores, mask):
    masked = torch.where(mask, scores, torch.full_like(scores, -100.0))
    return torch.softmax(masked, dim=-1)


# %% fix_padding_mask: ~ turns the bits of an integer, not true and false, so every key counts as padding
import math

import torch


def fix_padding_mask(query, key, value, real):
    padding = (~real.long()).bool()[:, None, None, :]
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(padding, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, dim=-1) @ value


# %% fix_padding_mask: bool now, but with one axis too few, so sequences line up with heads
import torch.nn.functional as F


def fix_padding_mask(query, key, value, real):
    return F.scaled_dot_product_attention(query, key, value, attn_mask=real.bool()[:, None, :])


# %% fix_padding_mask: the mask blocks rows of queries instead of columns of keys
import math

import torch


def fix_padding_mask(query, key, value, real):
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(real.eq(0)[:, None, :, None], -1e9)
    return torch.matmul(scores.softmax(dim=-1), value)


# %% fix_padding_mask: the mask multiplies the weights after the softmax, and their sum stays below one
import math

import torch


def fix_padding_mask(query, key, value, real):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1) * real[:, None, None, :].to(query.dtype)
    return weights @ value


# %% fix_padding_mask: the keys are cut to the longest sequence of the batch; the padding of the others stays
import torch.nn.functional as F


def fix_padding_mask(query, key, value, real):
    longest = int(real.sum(dim=-1).max())
    return F.scaled_dot_product_attention(query, key[:, :, :longest], value[:, :, :longest])


# %% fix_padding_mask: the mask is bool now, and causal as well, which nobody asked for
import torch
import torch.nn.functional as F


def fix_padding_mask(query, key, value, real):
    mask = real.to(torch.bool)[:, None, None, :]
    causal = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device).tril()
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask & causal)


# %% fix_padding_mask: the caller's mask is turned into an additive one in place
import torch
import torch.nn.functional as F


def fix_padding_mask(query, key, value, real):
    real[real == 0] = -1_000_000
    mask = real[:, None, None, :].to(query.dtype)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


# %% fix_cached_attention: only the single query is repaired, for several the mask still lies at the top left
import torch.nn.functional as F


def fix_cached_attention(query, key, value):
    several = query.shape[-2] > 1
    return F.scaled_dot_product_attention(query, key, value, is_causal=several)


# %% fix_cached_attention: the mask is well aligned and marks what is blocked, where fused attention reads True as allowed
import torch
import torch.nn.functional as F


def fix_cached_attention(query, key, value):
    n, total = query.shape[-2], key.shape[-2]
    future = torch.ones(n, total, dtype=torch.bool, device=query.device).triu(diagonal=total - n + 1)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=future)


# %% fix_cached_attention: position is compared with "less", so no query sees its own token
import math

import torch


def fix_cached_attention(query, key, value):
    L_q, L_k = query.shape[-2], key.shape[-2]
    key_position = torch.arange(L_k, device=query.device)
    query_position = torch.arange(L_k - L_q, L_k, device=query.device)
    allowed = key_position[None, :] < query_position[:, None]
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, dim=-1) @ value


# %% fix_cached_attention: the triangle is one of floats, which are added to the scores
import torch
import torch.nn.functional as F


def fix_cached_attention(query, key, value):
    L_q, L_k = query.shape[-2], key.shape[-2]
    mask = torch.tril(torch.ones(L_q, L_k, dtype=query.dtype, device=query.device), diagonal=L_k - L_q)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


# %% fix_cached_attention: the lengths are read from axis 1, which holds them with one batch dimension only
import torch
import torch.nn.functional as F


def fix_cached_attention(query, key, value):
    L_q, L_k = query.shape[1], key.shape[1]
    mask = torch.ones(L_q, L_k, device=query.device).tril(L_k - L_q).bool()
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


# %% fix_cached_attention: the diagonal is shifted by a fixed 1, as if exactly one token were in the cache
import torch
import torch.nn.functional as F


def fix_cached_attention(query, key, value):
    mask = torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool, device=query.device)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask.tril(diagonal=1))


# %% fix_cached_attention: a new token sees the cache and itself, but not the new tokens before it
import torch
import torch.nn.functional as F


def fix_cached_attention(query, key, value):
    new, total = query.shape[-2], key.shape[-2]
    cached = torch.ones(new, total - new, dtype=torch.bool, device=query.device)
    itself = torch.eye(new, dtype=torch.bool, device=query.device)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=torch.cat([cached, itself], dim=1))


# %% fix_layer_norm: PyTorch's function is called without passing eps on, so it is 1e-5 always
import torch.nn.functional as F


def fix_layer_norm(x, gain, bias, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], gain, bias)


# %% fix_layer_norm: the mean of the squares is taken without subtracting the mean first
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    var = x.pow(2).mean(dim=-1, keepdim=True)
    return gain * (x - mean) / torch.sqrt(var + eps) + bias


# %% fix_layer_norm: mean and variance are those of positions and features together
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    axes = tuple(range(-min(x.dim(), 2), 0))
    mean = x.mean(dim=axes, keepdim=True)
    var = x.var(dim=axes, unbiased=False, keepdim=True)
    return gain * (x - mean) / torch.sqrt(var + eps) + bias


# %% fix_layer_norm: the mean is subtracted in place, from the caller's x
def fix_layer_norm(x, gain, bias, eps=1e-5):
    x -= x.mean(dim=-1, keepdim=True)
    var = (x * x).mean(dim=-1, keepdim=True)
    return x * (var + eps).rsqrt() * gain + bias


# %% fix_layer_norm: the standard deviation has become the mean absolute deviation
def fix_layer_norm(x, gain, bias, eps=1e-5):
    centred = x - x.mean(-1, keepdim=True)
    deviation = centred.abs().mean(-1, keepdim=True)
    return gain * centred / (deviation**2 + eps) ** 0.5 + bias


# %% fix_layer_norm: eps is only a lower bound of the deviation and not added to the variance
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    std = x.std(-1, keepdim=True, correction=0)
    return (x - mean) / std.clamp(min=eps) * gain + bias


# %% fix_layer_norm: the root is taken of the standard deviation plus eps, not of the variance
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    mean = torch.mean(x, dim=-1, keepdim=True)
    std = torch.std(x, dim=-1, keepdim=True, unbiased=False)
    normalised = (x - mean) / torch.sqrt(std + eps)
    return normalised * gain + bias
