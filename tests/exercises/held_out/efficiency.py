# %% convolution_layers: Each layer is taken to add k positions to the receptive field instead of k - 1.
def convolution_layers(length, kernel_size, dilated=False):
    layers = 0
    receptive_field = 1
    dilation = 1
    while receptive_field < length:
        receptive_field += kernel_size * dilation
        if dilated:
            dilation *= kernel_size
        layers += 1
    return layers


# %% convolution_layers: The dilation doubles from layer to layer, whatever the kernel size is.
import math


def convolution_layers(length, kernel_size, dilated=False):
    if not dilated:
        return math.ceil((length - 1) / (kernel_size - 1))
    n, reach = 0, 0
    while reach < length - 1:
        reach += (kernel_size - 1) * 2**n
        n += 1
    return n


# %% convolution_layers: The number of dilated layers is rounded down instead of up.
def convolution_layers(length, kernel_size, dilated=False):
    if dilated:
        count, remaining = 0, length
        while remaining >= kernel_size:
            remaining //= kernel_size
            count += 1
        return count
    return -(-(length - 1) // (kernel_size - 1))


# %% convolution_layers: The convolution is taken to be centred, so only half of its kernel counts towards the past.
import math


def convolution_layers(length: int, kernel_size: int, dilated: bool = False) -> int:
    half = (kernel_size - 1) / 2
    if dilated:
        layers = 0
        past = 0.0
        while past < length - 1:
            past += half * kernel_size**layers
            layers += 1
        return layers
    return math.ceil((length - 1) / half)


# %% convolution_layers: The argument `dilated` is ignored.
def convolution_layers(length, kernel_size, dilated=False):
    step = kernel_size - 1
    position = length - 1
    layers = 0
    while position > 0:
        position -= step
        layers += 1
    return layers


# %% convolution_layers: The first dilated layer already has dilation k instead of 1.
def convolution_layers(length, kernel_size, dilated=False):
    field = 1
    n = 0
    while field < length:
        n += 1
        dilation = kernel_size**n if dilated else 1
        field = field + (kernel_size - 1) * dilation
    return n


# %% convolution_layers: A floating-point logarithm is rounded up, so 125 positions with a kernel of 5 need 4 layers.
import math


def convolution_layers(length, kernel_size, dilated=False):
    if dilated:
        return math.ceil(math.log(length) / math.log(kernel_size))
    return math.ceil((length - 1) / (kernel_size - 1))


# %% online_softmax_step: The total is corrected for the new maximum, but the old output is not.
import torch


def online_softmax_step(maximum, total, output, scores, value):
    new_max = torch.maximum(maximum, scores.amax(dim=-1))
    p = torch.exp(scores - new_max.unsqueeze(-1))
    alpha = torch.exp(maximum - new_max)
    total = alpha * total + p.sum(dim=-1)
    output = output + p @ value
    return new_max, total, output


# %% online_softmax_step: The new maximum is that of the block alone, so the correction overflows after high scores.
import torch


def online_softmax_step(maximum, total, output, scores, value):
    m = scores.max(dim=-1).values
    rescale = (maximum - m).exp()
    e = (scores - m[..., None]).exp()
    new_total = total * rescale + e.sum(-1)
    new_output = output * rescale[..., None] + torch.einsum("...qk,...kd->...qd", e, value)
    return m, new_total, new_output


# %% online_softmax_step: The correction is turned round: exp(new - old) instead of exp(old - new).
import torch


def online_softmax_step(maximum, total, output, scores, value):
    block_max, _ = scores.max(-1)
    new_maximum = torch.where(block_max > maximum, block_max, maximum)
    correction = torch.exp(new_maximum - maximum)
    weights = torch.exp(scores - new_maximum.unsqueeze(-1))
    return (
        new_maximum,
        correction * total + weights.sum(dim=-1),
        correction.unsqueeze(-1) * output + torch.matmul(weights, value),
    )


# %% online_softmax_step: The output is divided by the total in every step, and the next step takes it for a sum.
import torch


def online_softmax_step(maximum, total, output, scores, value):
    new_max = torch.max(maximum, scores.max(dim=-1)[0])
    old = torch.exp(maximum - new_max)
    exp_scores = torch.exp(scores - new_max[..., None])
    new_total = old * total + exp_scores.sum(-1)
    new_output = (old[..., None] * output + exp_scores @ value) / new_total[..., None]
    return new_max, new_total, new_output


# %% online_softmax_step: The exponentials of the block refer to its own maximum, not to the new common one.
import torch


def online_softmax_step(maximum, total, output, scores, value):
    local_max = scores.amax(-1, keepdim=True)
    local_exp = torch.exp(scores - local_max)
    local_sum = local_exp.sum(-1)
    local_out = torch.matmul(local_exp, value)

    global_max = torch.maximum(maximum, local_max.squeeze(-1))
    factor = torch.exp(maximum - global_max)
    return global_max, total * factor + local_sum, output * factor.unsqueeze(-1) + local_out


# %% online_softmax_step: The state is updated in place, which changes the arguments.
import torch


def online_softmax_step(maximum, total, output, scores, value):
    new_maximum = torch.maximum(maximum, scores.amax(-1))
    correction = torch.exp(maximum - new_maximum)
    exps = torch.exp(scores - new_maximum[..., None])
    total *= correction
    total += exps.sum(-1)
    output *= correction[..., None]
    output += exps @ value
    return new_maximum, total, output


# %% online_softmax_step: One maximum is taken over all queries, so a query with low scores underflows.
import torch


def online_softmax_step(maximum, total, output, scores, value):
    highest = torch.maximum(maximum, scores.max())
    decay = torch.exp(maximum - highest)
    p = torch.exp(scores - highest.unsqueeze(-1))
    return highest, decay * total + p.sum(dim=-1), decay.unsqueeze(-1) * output + p @ value


# %% tiled_attention: Each block gets a softmax of its own, and the outputs of the blocks are averaged.
import torch


def tiled_attention(query, key, value, block_size):
    outputs = []
    for k, v in zip(key.split(block_size, dim=-2), value.split(block_size, dim=-2)):
        s = query @ k.transpose(-2, -1) / query.shape[-1] ** 0.5
        outputs.append(torch.softmax(s, dim=-1) @ v)
    return torch.stack(outputs).mean(dim=0)


# %% tiled_attention: Only whole blocks are visited: the keys after the last whole block are left out.
import math

import torch


def tiled_attention(query, key, value, block_size):
    num_blocks = key.shape[-2] // block_size
    m = torch.full(query.shape[:-1], -math.inf, dtype=query.dtype, device=query.device)
    l = torch.zeros_like(m)
    o = torch.zeros(*query.shape[:-1], value.shape[-1], dtype=query.dtype, device=query.device)
    for b in range(num_blocks):
        rows = slice(b * block_size, (b + 1) * block_size)
        s = torch.einsum("...id,...jd->...ij", query, key[..., rows, :]) / math.sqrt(query.shape[-1])
        m_new = torch.maximum(m, s.amax(-1))
        p = torch.exp(s - m_new[..., None])
        c = torch.exp(m - m_new)
        l = l * c + p.sum(-1)
        o = o * c[..., None] + p @ value[..., rows, :]
        m = m_new
    return o / l[..., None]


# %% tiled_attention: The last block is padded with zeros, and the padded keys take part in the softmax.
import torch
import torch.nn.functional as F


def tiled_attention(query, key, value, block_size):
    pad = (block_size - key.size(-2) % block_size) % block_size
    key = F.pad(key, (0, 0, 0, pad))
    value = F.pad(value, (0, 0, 0, pad))
    maximum = torch.full_like(query[..., :1], float("-inf"))
    total = torch.zeros_like(maximum)
    out = 0
    for i in range(0, key.size(-2), block_size):
        scores = torch.matmul(query, key[..., i : i + block_size, :].mT) * query.size(-1) ** -0.5
        new = torch.maximum(maximum, scores.max(dim=-1, keepdim=True).values)
        e = (scores - new).exp()
        shrink = (maximum - new).exp()
        total = total * shrink + e.sum(dim=-1, keepdim=True)
        out = out * shrink + e @ value[..., i : i + block_size, :]
        maximum = new
    return out / total


# %% tiled_attention: The scores are divided by the root of the width of the values instead of the keys.
import torch


def step(state, s, v):
    m, t, o = state
    new = torch.maximum(m, s.amax(-1))
    c, e = torch.exp(m - new), torch.exp(s - new.unsqueeze(-1))
    return new, c * t + e.sum(-1), c.unsqueeze(-1) * o + e @ v


def tiled_attention(query, key, value, block_size):
    width = value.shape[-1]
    state = (
        query.new_full(query.shape[:-1], float("-inf")),
        query.new_zeros(query.shape[:-1]),
        query.new_zeros(query.shape[:-1] + (width,)),
    )
    for start in range(0, key.shape[-2], block_size):
        end = start + block_size
        scores = query @ key[..., start:end, :].transpose(-1, -2) / width**0.5
        state = step(state, scores, value[..., start:end, :])
    return state[2] / state[1].unsqueeze(-1)


# %% tiled_attention: The total is not corrected when the maximum changes, only the output is.
import math

import torch


def tiled_attention(query, key, value, block_size):
    q = query / math.sqrt(query.size(-1))
    running_max, running_sum, acc = None, None, None
    for k, v in zip(torch.split(key, block_size, -2), torch.split(value, block_size, -2)):
        s = torch.matmul(q, k.transpose(-1, -2))
        block_max = s.max(dim=-1, keepdim=True)[0]
        if running_max is None:
            running_max = block_max
            p = torch.exp(s - running_max)
            running_sum, acc = p.sum(-1, keepdim=True), p @ v
            continue
        new_max = torch.maximum(running_max, block_max)
        p = torch.exp(s - new_max)
        acc = acc * torch.exp(running_max - new_max) + p @ v
        running_sum = running_sum + p.sum(-1, keepdim=True)
        running_max = new_max
    return acc / running_sum


# %% tiled_attention: The running maximum starts at 0, so scores that are all far below 0 underflow to 0 / 0.
import torch


def tiled_attention(query, key, value, block_size):
    m = torch.zeros_like(query[..., 0])
    l = torch.zeros_like(m)
    out = torch.zeros_like(query[..., :1]) * value[..., :1, :]
    for j in range(0, key.shape[-2], block_size):
        s = torch.einsum("...qd,...kd->...qk", query, key[..., j : j + block_size, :]) * key.shape[-1] ** -0.5
        new_m = torch.maximum(m, s.amax(dim=-1))
        p = torch.exp(s - new_m[..., None])
        scale = torch.exp(m - new_m)
        l = scale * l + torch.einsum("...qk->...q", p)
        out = scale[..., None] * out + torch.einsum("...qk,...kd->...qd", p, value[..., j : j + block_size, :])
        m = new_m
    return out / l[..., None]


# %% tiled_attention: The output is divided by the running total after each block and not only at the end.
import torch


def tiled_attention(query, key, value, block_size):
    d_k = query.shape[-1]
    maximum = torch.full(query.shape[:-1] + (1,), float("-inf")).to(query)
    total = torch.zeros_like(maximum)
    output = torch.zeros(query.shape[:-1] + (value.shape[-1],)).to(query)
    start = 0
    while start < key.shape[-2]:
        k_block = key[..., start : start + block_size, :]
        v_block = value[..., start : start + block_size, :]
        scores = (query @ k_block.transpose(-2, -1)) / d_k**0.5
        new_maximum = torch.maximum(maximum, scores.amax(dim=-1, keepdim=True))
        alpha = torch.exp(maximum - new_maximum)
        weights = torch.exp(scores - new_maximum)
        total = alpha * total + weights.sum(dim=-1, keepdim=True)
        output = (alpha * output + weights @ v_block) / total
        maximum = new_maximum
        start += block_size
    return output


# %% cache_bytes: Only one of keys and values is counted.
def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    d_model = num_kv_heads * d_head
    tokens = batch_size * length
    return num_layers * tokens * d_model * bytes_per_number


# %% cache_bytes: The batch size is left out, as if all sequences shared one cache.
def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    per_token = 2 * num_kv_heads * d_head * bytes_per_number
    return per_token * num_layers * length


# %% cache_bytes: Two bytes per number are built in, and the argument is ignored.
import math


def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    kv_shape = (2, num_layers, batch_size, num_kv_heads, length, d_head)
    return math.prod(kv_shape) * 2


# %% cache_bytes: The queries are counted as well as the keys and the values.
def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    total = 0
    for _ in ("query", "key", "value"):
        total += num_layers * batch_size * num_kv_heads * length * d_head
    return total * bytes_per_number


# %% cache_bytes: d_head is taken for the width of all heads together.
def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    keys = batch_size * length * d_head
    values = batch_size * length * d_head
    return (keys + values) * num_layers * bytes_per_number


# %% cache_bytes: The caches of all the generation steps are added up: 1 + 2 + ... + length tokens.
def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    one_token = 2 * num_layers * num_kv_heads * d_head * batch_size * bytes_per_number
    return sum(one_token * step for step in range(1, length + 1))


# %% cache_bytes: The cache of a single layer is counted.
import torch


def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    k_cache = torch.empty(batch_size, num_kv_heads, length, d_head, device="meta")
    v_cache = torch.empty(batch_size, num_kv_heads, length, d_head, device="meta")
    return (k_cache.numel() + v_cache.numel()) * bytes_per_number


# %% grouped_query_attention: The key heads are repeated as a whole, so query head h uses key head h mod G.
import math

import torch


def grouped_query_attention(query, key, value):
    n_rep = query.shape[1] // key.shape[1]
    k = key.repeat(1, n_rep, 1, 1)
    v = value.repeat(1, n_rep, 1, 1)
    weights = torch.softmax(query @ k.transpose(-2, -1) / math.sqrt(query.shape[-1]), dim=-1)
    return weights @ v


# %% grouped_query_attention: The two axes of the heads are exchanged, so the heads of the output are out of order.
import torch


def grouped_query_attention(query, key, value):
    b, h, l, d = query.shape
    g = key.shape[1]
    q = query.reshape(b, g, h // g, l, d)
    att = torch.einsum("bgrqd,bgkd->brgqk", q, key) / d**0.5
    out = torch.einsum("brgqk,bgkd->brgqd", att.softmax(dim=-1), value)
    return out.reshape(b, h, l, d)


# %% grouped_query_attention: Query head h uses key head h // G instead of h // (H / G).
import torch


def grouped_query_attention(query, key, value):
    num_heads = query.size(1)
    num_groups = key.size(1)
    outputs = []
    for h in range(num_heads):
        g = h // num_groups
        scores = query[:, h] @ key[:, g].transpose(1, 2) / query.size(-1) ** 0.5
        outputs.append(torch.softmax(scores, dim=-1) @ value[:, g])
    return torch.stack(outputs, dim=1)


# %% grouped_query_attention: All query heads use the first key head, as in multi-query attention.
import torch.nn.functional as F


def grouped_query_attention(query, key, value):
    shared_key, shared_value = key[:, :1], value[:, :1]
    scores = query @ shared_key.mT * query.shape[-1] ** -0.5
    return F.softmax(scores, dim=-1) @ shared_value


# %% grouped_query_attention: The keys are interleaved, but the values are repeated as a whole.
import torch
import torch.nn.functional as F


def grouped_query_attention(query, key, value):
    repeats = query.size(1) // key.size(1)
    keys = torch.repeat_interleave(key, repeats, dim=1)
    values = torch.cat([value] * repeats, dim=1)
    return F.scaled_dot_product_attention(query, keys, values)


# %% grouped_query_attention: After the axis for the groups is added, the softmax runs over the queries.
import torch


def grouped_query_attention(query, key, value):
    B, H, Lq, d = query.shape
    G = key.shape[1]
    grouped = query.reshape(B, G, H // G, Lq, d)
    logits = torch.matmul(grouped, key.unsqueeze(2).transpose(-1, -2)) / d**0.5
    weights = torch.softmax(logits, dim=3)
    return torch.matmul(weights, value.unsqueeze(2)).reshape(B, H, Lq, d)


# %% grouped_query_attention: The query heads of a group are averaged before the attention.
import math

import torch


def grouped_query_attention(query, key, value):
    B, H, L_q, d = query.shape
    G = key.size(1)
    pooled = query.reshape(B, G, H // G, L_q, d).mean(dim=2)
    scores = torch.einsum("bgqd,bgkd->bgqk", pooled, key) / math.sqrt(d)
    per_group = torch.einsum("bgqk,bgkd->bgqd", torch.softmax(scores, -1), value)
    return per_group.repeat_interleave(H // G, dim=1)


# %% linear_attention: Not causal: every position sees all the keys.
import torch.nn.functional as F


def linear_attention(query, key, value):
    q = F.elu(query) + 1
    k = F.elu(key) + 1
    kv = k.transpose(-2, -1) @ value
    z = k.sum(dim=-2, keepdim=True)
    return (q @ kv) / (q * z).sum(dim=-1, keepdim=True)


# %% linear_attention: The division by the sum of the weights is missing.
import torch
import torch.nn.functional as F


def linear_attention(query, key, value):
    q, k = F.elu(query) + 1, F.elu(key) + 1
    outer = k.unsqueeze(-1) * value.unsqueeze(-2)
    memory = torch.cumsum(outer, dim=-3)
    return torch.einsum("...ld,...lde->...le", q, memory)


# %% linear_attention: The feature map is elu without the added 1, so weights can be negative.
import torch
from torch import nn


def linear_attention(query, key, value):
    phi = nn.ELU()
    scores = torch.matmul(phi(query), phi(key).transpose(-1, -2))
    scores = torch.tril(scores)
    weights = scores / scores.sum(dim=-1, keepdim=True)
    return torch.matmul(weights, value)


# %% linear_attention: The query is divided by the root of d_k before the feature map.
import math

import torch


def feature(x):
    return torch.nn.functional.elu(x) + 1.0


def linear_attention(query, key, value):
    q = feature(query / math.sqrt(query.size(-1)))
    k = feature(key)
    length = query.size(-2)
    causal = torch.ones(length, length, dtype=torch.bool, device=query.device).tril()
    a = (q @ k.mT).masked_fill(~causal, 0.0)
    return (a @ value) / a.sum(-1, keepdim=True)


# %% linear_attention: The denominator sums over all keys, although the numerator is causal.
import torch
import torch.nn.functional as F


def linear_attention(query, key, value):
    q, k = 1 + F.elu(query), 1 + F.elu(key)
    k_sum = k.sum(dim=-2)
    state = 0
    out = []
    for t in range(query.shape[-2]):
        state = state + torch.einsum("...d,...e->...de", k[..., t, :], value[..., t, :])
        num = torch.einsum("...d,...de->...e", q[..., t, :], state)
        den = torch.einsum("...d,...d->...", q[..., t, :], k_sum)
        out.append(num / den[..., None])
    return torch.stack(out, dim=-2)


# %% linear_attention: The output is read before the current key is added, so the first row is 0 / 0.
import torch
import torch.nn.functional as F


def linear_attention(query, key, value):
    q, k = F.elu(query).add(1), F.elu(key).add(1)
    S = torch.zeros(*key.shape[:-2], key.shape[-1], value.shape[-1], dtype=key.dtype, device=key.device)
    z = torch.zeros_like(key[..., 0, :])
    outputs = []
    for i in range(query.size(-2)):
        q_i = q[..., i, :].unsqueeze(-2)
        outputs.append((q_i @ S) / (q_i @ z.unsqueeze(-1)))
        S = S + k[..., i, :].unsqueeze(-1) @ value[..., i, :].unsqueeze(-2)
        z = z + k[..., i, :]
    return torch.cat(outputs, dim=-2)


# %% linear_attention: The running sums go along axis 1, which is the position with exactly one batch dimension only.
import torch.nn.functional as F


def linear_attention(query, key, value):
    phi_q = F.elu(query) + 1
    phi_k = F.elu(key) + 1
    kv = (phi_k[..., :, None] * value[..., None, :]).cumsum(dim=1)
    k_sum = phi_k.cumsum(dim=1)
    numerator = (phi_q[..., :, None] * kv).sum(dim=-2)
    denominator = (phi_q * k_sum).sum(dim=-1, keepdim=True)
    return numerator / denominator


# %% speculative_acceptance: The ratio is turned round: draft divided by target.
import torch


def speculative_acceptance(target, draft):
    ratio = draft / torch.where(target > 0, target, torch.ones_like(target))
    accept = torch.clamp(ratio, max=1.0)
    accept = torch.where(draft == 0, torch.ones_like(accept), accept)
    diff = torch.relu(target - draft)
    return accept, diff / diff.sum(-1, keepdim=True)


# %% speculative_acceptance: The residual is not normalised.
import torch


def speculative_acceptance(target, draft):
    safe = draft.masked_fill(draft == 0, 1.0)
    accept = torch.minimum(torch.ones_like(target), target / safe)
    accept = accept.masked_fill(draft == 0, 1.0)
    residual = torch.maximum(target - draft, torch.zeros_like(target))
    return accept, residual


# %% speculative_acceptance: After a rejection the token is drawn from the target itself.
import torch


def speculative_acceptance(target, draft):
    one = torch.ones_like(draft)
    drawn = draft > 0
    accept = torch.where(drawn, (target / torch.where(drawn, draft, one)).clamp(max=1), one)
    residual = target / target.sum(dim=-1, keepdim=True)
    return accept, residual


# %% speculative_acceptance: The ratio is not limited to 1.
import torch


def speculative_acceptance(target, draft):
    accept = torch.ones_like(target)
    mask = draft != 0
    accept = torch.where(mask, target / draft.masked_fill(~mask, 1), accept)
    residual = (target - draft).clamp_min(0)
    residual = residual / residual.sum(dim=-1, keepdim=True)
    return accept, residual


# %% speculative_acceptance: A small constant is added to draft, so accept is 0 and not 1 where both models give 0.
import torch
import torch.nn.functional as F


def speculative_acceptance(target, draft):
    accept = (target / (draft + 1e-12)).clamp(max=1.0)
    residual = F.relu(target - draft)
    return accept, residual / residual.sum(-1, keepdim=True)


# %% speculative_acceptance: The residual is divided by its sum over the whole batch, not by that of each row.
import torch


def speculative_acceptance(target, draft):
    no_draft = draft == 0
    accept = torch.where(no_draft, 1.0, target / torch.where(no_draft, 1.0, draft))
    accept = accept.clamp(max=1.0)
    leftover = torch.clamp(target - draft, min=0)
    return accept, leftover / torch.sum(leftover)


# %% speculative_acceptance: The residual takes the absolute difference, so tokens that the draft prefers remain in it.
import torch


def speculative_acceptance(target, draft):
    q = draft + (draft == 0).to(draft.dtype)
    accept = torch.min(target / q, torch.ones_like(q))
    accept[draft == 0] = 1
    gap = torch.abs(target - draft)
    return accept, gap / gap.sum(dim=-1, keepdim=True)
