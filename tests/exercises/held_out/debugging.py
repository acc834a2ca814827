# %% fix_loss: The padding's losses are zeroed, but the mean still divides by all positions.
import torch
import torch.nn.functional as F


def fix_loss(logits, targets, pad_id):
    vocabulary = logits.shape[-1]
    losses = F.cross_entropy(logits.reshape(-1, vocabulary), targets.reshape(-1), ignore_index=pad_id, reduction="none")
    return losses.mean()


# %% fix_loss: Each sequence gets a mean of its own and these are averaged, so a short sequence counts as much as a long one.
import torch
import torch.nn.functional as F


def fix_loss(logits, targets, pad_id):
    real = (targets != pad_id).to(logits.dtype)
    losses = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    per_sequence = (losses * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
    return per_sequence.mean()


# %% fix_loss: The sum over the real targets is returned without dividing it by anything.
import torch.nn.functional as F


def fix_loss(logits, targets, pad_id):
    B, L, V = logits.shape
    return F.cross_entropy(logits.view(B * L, V), targets.view(B * L), ignore_index=pad_id, reduction="sum")


# %% fix_loss: The denominator counts the padding instead of what is not padding.
import torch


def fix_loss(logits, targets, pad_id):
    padding = targets == pad_id
    log_probs = torch.log_softmax(logits, dim=-1)
    nll = -log_probs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    nll = nll.masked_fill(padding, 0.0)
    return nll.sum() / padding.sum().clamp(min=1)


# %% fix_loss: The logarithm of the softmax is kept finite by adding 1e-9, so large losses stop at about 20.7.
import torch


def fix_loss(logits, targets, pad_id):
    probs = torch.softmax(logits, dim=-1)
    p_target = torch.gather(probs, 2, targets[:, :, None])[:, :, 0]
    keep = targets != pad_id
    return -torch.log(p_target[keep] + 1e-9).mean()


# %% fix_loss: The denominator is the length of the longest sequence times the size of the batch.
import torch
import torch.nn.functional as F


def fix_loss(logits, targets, pad_id):
    real = targets != pad_id
    total = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    total = (total * real.flatten()).sum()
    longest = real.sum(dim=1).max()
    return total / (longest * targets.shape[0])


# %% fix_loss: The padding is overwritten with -100 in the caller's targets.
import torch.nn.functional as F


def fix_loss(logits, targets, pad_id):
    targets[targets == pad_id] = -100
    return F.cross_entropy(logits.reshape(-1, logits.size(-1)), targets.reshape(-1))


# %% fix_decoder_mask: The polarity is left as it was: True still means blocked.
import torch


def fix_decoder_mask(tokens, pad_id):
    length = tokens.shape[1]
    future = torch.ones(length, length, dtype=torch.bool, device=tokens.device).triu(diagonal=1)
    padding = (tokens == pad_id)[:, None, None, :]
    return future | padding


# %% fix_decoder_mask: Both parts are turned round but still joined by "or", so one permission is enough.
import torch


def fix_decoder_mask(tokens, pad_id):
    L = tokens.shape[-1]
    past = torch.tril(torch.ones((L, L), dtype=torch.bool, device=tokens.device))
    real = (tokens != pad_id).unsqueeze(1).unsqueeze(2)
    return past | real


# %% fix_decoder_mask: Only the causal part is turned round; the padding is still marked True and so allowed.
import torch


def fix_decoder_mask(tokens, pad_id):
    batch, length = tokens.shape
    causal = torch.ones(length, length, device=tokens.device).tril().bool()
    pad = tokens.eq(pad_id).view(batch, 1, 1, length)
    return causal & pad


# %% fix_decoder_mask: The rows of padded queries are blocked too.
import torch


def fix_decoder_mask(tokens, pad_id):
    real = tokens != pad_id
    L = tokens.shape[1]
    causal = torch.tril(torch.ones(L, L, dtype=torch.bool, device=tokens.device))
    pairs = real[:, :, None] & real[:, None, :]
    return (causal & pairs).unsqueeze(1)


# %% fix_decoder_mask: The axis for the heads got lost, the result is (B, L, L).
import torch


def fix_decoder_mask(tokens, pad_id):
    L = tokens.shape[1]
    i = torch.arange(L, device=tokens.device)
    allowed = i[None, :] <= i[:, None]
    return allowed[None] & (tokens != pad_id)[:, None, :]


# %% fix_decoder_mask: When the triangle was turned round, its diagonal was lost: no position sees itself.
import torch


def fix_decoder_mask(tokens, pad_id):
    n = tokens.size(1)
    blocked = torch.ones(n, n, dtype=torch.bool, device=tokens.device).triu()
    blocked = blocked | (tokens == pad_id)[:, None, None, :]
    return ~blocked


# %% fix_decoder_mask: A float mask of 0 and minus infinity is returned instead of a bool one.
import torch


def fix_decoder_mask(tokens, pad_id):
    size = tokens.shape[1]
    future = torch.triu(torch.ones(size, size, dtype=torch.bool, device=tokens.device), diagonal=1)
    blocked = future | (tokens == pad_id)[:, None, None, :]
    return torch.zeros(blocked.shape, device=tokens.device).masked_fill(blocked, float("-inf"))


# %% fix_decoder_attention: The memory's padding mask is still forgotten.
import torch.nn.functional as F


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    y = x + F.scaled_dot_product_attention(x, x, x, attn_mask=self_mask)
    return y + F.scaled_dot_product_attention(y, memory, memory)


# %% fix_decoder_attention: The memory's mask is passed on turned round, so only the padding is attended to.
import torch
import torch.nn.functional as F


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    attend = F.scaled_dot_product_attention
    y = x + attend(x, x, x, attn_mask=self_mask)
    return y + attend(y, memory, memory, attn_mask=~memory_mask)


# %% fix_decoder_attention: The padded memory is set to zero instead of masked, so it keeps a score of 0 and a weight.
import torch.nn.functional as F


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    memory = memory * memory_mask.transpose(1, 2).to(memory.dtype)
    y = x + F.scaled_dot_product_attention(x, x, x, self_mask)
    z = F.scaled_dot_product_attention(y, memory, memory)
    return y + z


# %% fix_decoder_attention: The residual connection around the second attention is missing.
from torch.nn.functional import scaled_dot_product_attention


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    x = x + scaled_dot_product_attention(x, x, x, attn_mask=self_mask)
    x = scaled_dot_product_attention(x, memory, memory, attn_mask=memory_mask)
    return x


# %% fix_decoder_attention: The memory is queried with x, not with the result of the self-attention.
import torch
import torch.nn.functional as F


def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    scores = scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    y = x + attention(x, x, x, self_mask)
    return y + attention(x, memory, memory, memory_mask)


# %% fix_decoder_attention: The memory is masked now, but the self-attention lost its mask.
import torch.nn.functional as F


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    self_attention = F.scaled_dot_product_attention(x, x, x)
    y = x + self_attention
    cross_attention = F.scaled_dot_product_attention(y, memory, memory, attn_mask=memory_mask)
    return y + cross_attention


# %% fix_decoder_attention: The second residual adds x instead of y, so the self-attention's output is left out of the sum.
import torch.nn.functional as F


def fix_decoder_attention(x, memory, self_mask, memory_mask):
    y = x + F.scaled_dot_product_attention(x, x, x, attn_mask=self_mask)
    m = memory_mask.expand(-1, x.shape[1], -1)
    return x + F.scaled_dot_product_attention(y, memory, memory, attn_mask=m)


# %% fix_layer_stack: The layers are still in a plain list.
import torch
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = [nn.Linear(d_model, d_model) for _ in range(num_layers)]

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return x


# %% fix_layer_stack: One and the same layer is registered num_layers times.
import torch
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(d_model, d_model)] * num_layers)

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(x))
        return x


# %% fix_layer_stack: The Sequential registers the layers and runs them without residual connection and ReLU.
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(d_model, d_model) for _ in range(num_layers)))

    def forward(self, x):
        return self.layers(x)


# %% fix_layer_stack: The layers are registered under names of their own, layer0 and so on, beside the plain list.
import torch.nn.functional as F
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = []
        for i in range(num_layers):
            layer = nn.Linear(d_model, d_model)
            self.add_module(f"layer{i}", layer)
            self.layers.append(layer)

    def forward(self, x):
        for layer in self.layers:
            x = x + F.relu(layer(x))
        return x


# %% fix_layer_stack: The ReLU is taken of the sum, not of the layer's output alone.
import torch.nn.functional as F
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(num_layers):
            self.layers.append(nn.Linear(d_model, d_model))

    def forward(self, x):
        h = x
        for layer in self.layers:
            h = F.relu(h + layer(h))
        return h


# %% fix_layer_stack: Each residual connection starts at the input of the whole stack.
import torch
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(num_layers))

    def forward(self, x):
        out = x
        for layer in self.layers:
            out = x + torch.relu(layer(out))
        return out


# %% fix_layer_stack: The sum is taken in place, which changes the caller's x.
import torch
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(d_model, d_model) for _ in range(num_layers)])

    def forward(self, x):
        for layer in self.layers:
            x += torch.relu(layer(x))
        return x


# %% fix_layer_stack: Only the last layer is registered, since an attribute is overwritten in the loop.
import torch
from torch import nn


class fix_layer_stack(nn.Module):
    def __init__(self, d_model, num_layers):
        super().__init__()
        self.layers = []
        for _ in range(num_layers):
            self.layer = nn.Linear(d_model, d_model)
            self.layers.append(self.layer)

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x).clamp(min=0)
        return x


# %% fix_head_split: The features are reshaped without exchanging positions and heads.
def fix_head_split(x, num_heads):
    *batch, length, d_model = x.shape
    return x.reshape(*batch, num_heads, length, d_model // num_heads)


# %% fix_head_split: Axes 1 and 2 are exchanged whatever the number of batch dimensions.
def fix_head_split(x, num_heads):
    d_head = x.shape[-1] // num_heads
    x = x.reshape(*x.shape[:-1], num_heads, d_head)
    return x.transpose(1, 2)


# %% fix_head_split: Each head takes every num_heads-th feature instead of a contiguous slice.
def fix_head_split(x, num_heads):
    *lead, L, d = x.shape
    x = x.reshape(*lead, L, d // num_heads, num_heads)
    return x.movedim(-1, -3)


# %% fix_head_split: The transpose comes before the reshape, and between the wrong axes.
def fix_head_split(x, num_heads):
    length, d_model = x.shape[-2:]
    swapped = x.transpose(-2, -1)
    return swapped.reshape(*x.shape[:-2], num_heads, length, d_model // num_heads)


# %% fix_head_split: The features are split, but positions still stand before the heads.
def fix_head_split(x, num_heads):
    d_head = x.shape[-1] // num_heads
    return x.unflatten(-1, (num_heads, d_head))


# %% fix_head_split: The heads are collected in a buffer of PyTorch's default dtype, so float64 is lost.
import torch


def fix_head_split(x, num_heads):
    *lead, length, d_model = x.shape
    d_head = d_model // num_heads
    heads = torch.zeros(*lead, num_heads, length, d_head, device=x.device)
    for h in range(num_heads):
        heads[..., h, :, :] = x[..., h * d_head : (h + 1) * d_head]
    return heads


# %% fix_softmax: The maximum is taken over the whole tensor, so a row far below it becomes 0 / 0.
import torch


def fix_softmax(scores, dim=-1):
    exp = torch.exp(scores - scores.max())
    return exp / exp.sum(dim=dim, keepdim=True)


# %% fix_softmax: The suspicious maximum is removed, so large scores overflow.
import torch


def fix_softmax(scores, dim=-1):
    weights = torch.exp(scores)
    return weights / weights.sum(dim=dim, keepdim=True)


# %% fix_softmax: 1e-6 is added to the denominator "against a division by zero", so the sum stays below one.
import torch


def fix_softmax(scores, dim=-1):
    maximum = scores.amax(dim=dim, keepdim=True).detach()
    exponentials = torch.exp(scores - maximum)
    return exponentials / (exponentials.sum(dim=dim, keepdim=True) + 1e-6)


# %% fix_softmax: The argument dim is ignored in favour of the last axis.
import torch


def fix_softmax(scores, dim=-1):
    m = scores.amax(dim=-1, keepdim=True)
    e = (scores - m).exp()
    return e / e.sum(-1, keepdim=True)


# %% fix_softmax: The maximum is subtracted in place, from the caller's scores.
import torch


def fix_softmax(scores, dim=-1):
    scores -= scores.max(dim=dim, keepdim=True).values.detach()
    numerator = scores.exp()
    return numerator / numerator.sum(dim=dim, keepdim=True)


# %% fix_softmax: The detach is moved to the scores themselves, so no gradient arrives.
import torch


def fix_softmax(scores, dim=-1):
    maximum = scores.max(dim=dim, keepdim=True).values
    exp = torch.exp(scores.detach() - maximum.detach())
    return exp / exp.sum(dim=dim, keepdim=True)


# %% fix_softmax: The sum is taken without keepdim, so rows and columns are mixed up.
import torch


def fix_softmax(scores, dim=-1):
    shifted = scores - scores.amax(dim=dim, keepdim=True)
    exponentials = shifted.exp()
    return exponentials / exponentials.sum(dim=dim)


# %% fix_scaled_attention: The scaled scores are still computed and not used.
import math

import torch


def fix_scaled_attention(query, key, value):
    scores = query @ key.transpose(-2, -1)
    scaled = scores / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights


# %% fix_scaled_attention: The scores are divided by d_k, not by its root.
import torch


def fix_scaled_attention(query, key, value):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-1, -2)) / d_k
    weights = scores.softmax(dim=-1)
    return torch.matmul(weights, value), weights


# %% fix_scaled_attention: The width for the scale is the values', d_v instead of d_k.
import math

import torch


def fix_scaled_attention(query, key, value):
    scores = torch.einsum("...qd,...kd->...qk", query, key)
    scores = scores / math.sqrt(value.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights


# %% fix_scaled_attention: The weights are scaled after the softmax, so their rows no longer sum to one.
import torch


def fix_scaled_attention(query, key, value):
    scores = query @ key.mT
    weights = torch.softmax(scores, dim=-1) / query.shape[-1] ** 0.5
    output = weights @ value
    return output, weights


# %% fix_scaled_attention: The output comes from the scaled scores, the weights that are returned from the unscaled ones.
import math

import torch


def fix_scaled_attention(query, key, value):
    scores = query @ key.transpose(-2, -1)
    weights = torch.softmax(scores, dim=-1)
    scaled = scores / math.sqrt(key.shape[-1])
    output = torch.softmax(scaled, dim=-1) @ value
    return output, weights


# %% fix_scaled_attention: The scores are divided by the root of the number of keys.
def fix_scaled_attention(query, key, value):
    root = key.shape[-2] ** 0.5
    scaled = query @ key.transpose(-1, -2) / root
    weights = scaled.softmax(-1)
    return weights @ value, weights


# %% fix_scaled_attention: The root is a float32 tensor, so float64 is right to seven digits only.
import torch


def fix_scaled_attention(query, key, value):
    d_k = torch.tensor(query.shape[-1], device=query.device)
    scaled = query @ key.transpose(-2, -1) / torch.sqrt(d_k)
    weights = torch.softmax(scaled, dim=-1)
    return weights @ value, weights


# %% fix_attention_weights: The softmax still runs over dim=1.
import math

import torch


def fix_attention_weights(query, key):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    return torch.softmax(scores, dim=1)


# %% fix_attention_weights: dim=2 instead of dim=1, which is right with one batch dimension at most.
import math

import torch


def fix_attention_weights(query, key):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    return torch.softmax(scores, dim=2 if scores.dim() > 2 else 1)


# %% fix_attention_weights: The softmax runs over the queries, so the columns sum to one.
import torch.nn.functional as F


def fix_attention_weights(query, key):
    d_k = key.shape[-1]
    logits = (query @ key.mT) * d_k**-0.5
    return F.softmax(logits, dim=-2)


# %% fix_attention_weights: One softmax over all pairs of query and key together.
import torch


def fix_attention_weights(query, key):
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    flat = scores.flatten(start_dim=-2)
    return torch.softmax(flat, dim=-1).reshape(scores.shape)


# %% fix_attention_weights: The softmax over dim=1 is kept, and its rows are divided by their sum.
import math

import torch


def fix_attention_weights(query, key):
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=1)
    return weights / weights.sum(dim=-1, keepdim=True)


# %% fix_attention_weights: Softmax over the last axis now, but the keys are transposed by fixed axes 1 and 2.
import torch


def fix_attention_weights(query, key):
    scores = torch.matmul(query, key.transpose(1, 2)) / query.shape[-1] ** 0.5
    return torch.softmax(scores, dim=-1)


# %% fix_masked_softmax: Both faults are left: -1e9, written into the caller's scores.
import torch


def fix_masked_softmax(scores, mask):
    scores.masked_fill_(~mask, -1e9)
    return torch.softmax(scores, dim=-1)


# %% fix_masked_softmax: The caller's scores are spared, but -1e9 is left.
import torch


def fix_masked_softmax(scores, mask):
    masked = scores.masked_fill(~mask, -1e9)
    return torch.softmax(masked, dim=-1)


# %% fix_masked_softmax: Only -1e9 is repaired; the scores are still filled in place.
import torch


def fix_masked_softmax(scores, mask):
    scores.masked_fill_(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return torch.nan_to_num(weights, nan=0.0)


# %% fix_masked_softmax: Minus infinity without anything for the fully masked row, which becomes NaN.
import torch


def fix_masked_softmax(scores, mask):
    return torch.softmax(scores.masked_fill(torch.logical_not(mask), -torch.inf), dim=-1)


# %% fix_masked_softmax: Minus infinity is added and NaN replaced at the end; the gradient of a fully masked row stays NaN.
import torch


def fix_masked_softmax(scores, mask):
    bias = torch.zeros(mask.shape, dtype=scores.dtype, device=scores.device)
    bias = bias.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores + bias, dim=-1)
    return torch.where(mask.any(dim=-1, keepdim=True), weights, 0.0)


# %% fix_masked_softmax: The dtype's own minimum fits float16, but a fully masked row still has uniform weights.
import torch


def fix_masked_softmax(scores, mask):
    lowest = torch.finfo(scores.dtype).min
    masked = torch.where(mask, scores, torch.full_like(scores, lowest))
    return torch.softmax(masked, dim=-1)


# %% fix_masked_softmax: The polarity is turned round: True is blocked.
import torch


def fix_masked_softmax(scores, mask):
    filled = scores.masked_fill(mask, float("-inf"))
    filled = filled.masked_fill(mask.all(dim=-1, keepdim=True), 0.0)
    return torch.softmax(filled, dim=-1).masked_fill(mask, 0.0)


# %% fix_padding_mask: The zeros and ones are still added to the scores.
import torch.nn.functional as F


def fix_padding_mask(query, key, value, real):
    mask = real[:, None, None, :].to(query.dtype)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


# %% fix_padding_mask: The scores are multiplied by zeros and ones; a score of 0 still has a weight.
import math

import torch


def fix_padding_mask(query, key, value, real):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    scores = scores * real[:, None, None, :].to(scores.dtype)
    return torch.softmax(scores, dim=-1) @ value


# %% fix_padding_mask: The bool mask marks the padding, and to fused attention True is what may be attended to.
import torch.nn.functional as F


def fix_padding_mask(query, key, value, real):
    padding = (real == 0).unsqueeze(1).unsqueeze(2)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=padding)


# %% fix_padding_mask: Minus infinity is multiplied by 1 - real, and 0 times infinity is NaN.
import math

import torch


def fix_padding_mask(query, key, value, real):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    scores = scores + (1 - real[:, None, None, :].to(scores.dtype)) * float("-inf")
    return torch.softmax(scores, dim=-1) @ value


# %% fix_padding_mask: Keys and values are multiplied by the mask, and a padded key keeps its weight for a score of 0.
import torch.nn.functional as F


def fix_padding_mask(query, key, value, real):
    keep = real[:, None, :, None].to(key.dtype)
    return F.scaled_dot_product_attention(query, key * keep, value * keep)


# %% fix_padding_mask: An integer mask is turned into bool, a floating one is still added.
import torch
import torch.nn.functional as F


def fix_padding_mask(query, key, value, real):
    mask = real[:, None, None, :]
    if not torch.is_floating_point(mask):
        mask = mask.bool()
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


# %% fix_padding_mask: The real tokens are counted and taken for the first ones, so padding on the left is not seen.
import torch
import torch.nn.functional as F


def fix_padding_mask(query, key, value, real):
    lengths = real.sum(dim=1, keepdim=True)
    allowed = torch.arange(key.shape[-2], device=key.device) < lengths
    return F.scaled_dot_product_attention(query, key, value, attn_mask=allowed[:, None, None, :])


# %% fix_cached_attention: is_causal=True is left, which lines queries and keys up at the top left.
import torch.nn.functional as F


def fix_cached_attention(query, key, value):
    return F.scaled_dot_product_attention(query, key, value, is_causal=True)


# %% fix_cached_attention: The diagonal is shifted by one too many, so each query sees one token of the future.
import torch
import torch.nn.functional as F


def fix_cached_attention(query, key, value):
    n_q, n_k = query.shape[-2], key.shape[-2]
    mask = torch.ones(n_q, n_k, dtype=torch.bool, device=query.device).tril(diagonal=n_k - n_q + 1)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


# %% fix_cached_attention: The mask is dropped altogether, as if there were never more than one new query.
import torch.nn.functional as F


def fix_cached_attention(query, key, value):
    return F.scaled_dot_product_attention(query, key, value)


# %% fix_cached_attention: The shift of the diagonal has the wrong sign, L_q - L_k.
import math

import torch


def fix_cached_attention(query, key, value):
    L_q, L_k = query.size(-2), key.size(-2)
    causal = torch.tril(torch.ones(L_q, L_k, dtype=torch.bool, device=query.device), diagonal=L_q - L_k)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.size(-1))
    scores = scores.masked_fill(~causal, torch.finfo(scores.dtype).min)
    return scores.softmax(-1) @ value


# %% fix_cached_attention: Keys and values are cut to the last L_q, so the cached ones are never read.
import torch.nn.functional as F


def fix_cached_attention(query, key, value):
    new = query.shape[-2]
    return F.scaled_dot_product_attention(query, key[..., -new:, :], value[..., -new:, :], is_causal=True)


# %% fix_cached_attention: Causal only where L_q equals L_k; with a cache there is no mask.
import torch.nn.functional as F


def fix_cached_attention(query, key, value):
    same = query.shape[-2] == key.shape[-2]
    return F.scaled_dot_product_attention(query, key, value, is_causal=same)


# %% fix_cached_attention: The queries are filled up to L_k positions, but behind instead of in front.
import torch
import torch.nn.functional as F


def fix_cached_attention(query, key, value):
    L_q, L_k = query.shape[-2], key.shape[-2]
    full = F.pad(query, (0, 0, 0, L_k - L_q))
    output = F.scaled_dot_product_attention(full, key, value, is_causal=True)
    return output[..., L_k - L_q :, :]


# %% fix_layer_norm: Both faults are left: the unbiased deviation, and eps outside the root.
def fix_layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    std = x.std(dim=-1, keepdim=True)
    return gain * (x - mean) / (std + eps) + bias


# %% fix_layer_norm: The deviation is the biased one now, but eps is still added to it, outside the root.
def fix_layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    std = x.std(dim=-1, keepdim=True, unbiased=False)
    return gain * (x - mean) / (std + eps) + bias


# %% fix_layer_norm: eps has moved under the root, but the variance is still the unbiased one.
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    mu = x.mean(-1, keepdim=True)
    var = x.var(-1, keepdim=True)
    return (x - mu) / torch.sqrt(var + eps) * gain + bias


# %% fix_layer_norm: The root is missing: the deviation from the mean is divided by the variance.
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    var, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return gain * ((x - mean) / (var + eps)) + bias


# %% fix_layer_norm: eps is gone, so a constant row is 0 / 0.
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    centred = x - x.mean(dim=-1, keepdim=True)
    variance = (centred**2).mean(dim=-1, keepdim=True)
    return gain * centred / torch.sqrt(variance) + bias


# %% fix_layer_norm: Mean and variance are computed without gradient, as the maximum of a softmax may be.
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    with torch.no_grad():
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, unbiased=False, keepdim=True)
    return (x - mean) * torch.rsqrt(var + eps) * gain + bias


# %% fix_layer_norm: The gain multiplies the bias as well.
import torch


def fix_layer_norm(x, gain, bias, eps=1e-5):
    d = x.shape[-1]
    mean = x.sum(-1, keepdim=True) / d
    var = ((x - mean) ** 2).sum(-1, keepdim=True) / d
    normalised = (x - mean) / (var + eps).sqrt()
    return gain * (normalised + bias)
