# %% convolution_layers: every layer is said to bring k new positions, though its kernel overlaps the last one by one
import math

def convolution_layers(length, kernel_size, dilated=False):
    if length == 1:
        return 0
    if not dilated:
        return math.ceil((length - 1) / kernel_size)
    layers, reach = 0, 1
    while reach < length:
        reach *= kernel_size
        layers += 1
    return layers

# %% convolution_layers: counts length positions to be bridged instead of the length - 1 steps between them
def convolution_layers(length, kernel_size, dilated=False):
    if length <= 1:
        return 0
    covered = 0
    layers = 0
    while covered < length:
        dilation = kernel_size ** layers if dilated else 1
        covered += (kernel_size - 1) * dilation
        layers += 1
    return layers

# %% convolution_layers: the logarithm is rounded down, so the last, partly needed dilated layer is missing
def convolution_layers(length, kernel_size, dilated=False):
    if dilated:
        n = 0
        while length >= kernel_size:
            length = length // kernel_size
            n += 1
        return n
    return -(-(length - 1) // (kernel_size - 1))

# %% convolution_layers: the dilation doubles from layer to layer whatever the kernel size
def convolution_layers(length, kernel_size, dilated=False):
    field, layers, dilation = 1, 0, 1
    while field < length:
        field += dilation * (kernel_size - 1)
        if dilated:
            dilation *= 2
        layers += 1
    return layers

# %% convolution_layers: the ceiling of a floating-point logarithm, which gives 4 for log_5(125)
import math

def convolution_layers(length, kernel_size, dilated=False):
    if dilated:
        return math.ceil(math.log(length) / math.log(kernel_size))
    return math.ceil((length - 1) / (kernel_size - 1))

# %% online_softmax_step: the sum of exponentials is rescaled to the new maximum, the output is not
import torch

def online_softmax_step(maximum, total, output, scores, value):
    new_maximum = torch.maximum(maximum, scores.max(dim=-1).values)
    p = torch.exp(scores - new_maximum.unsqueeze(-1))
    total = total * torch.exp(maximum - new_maximum) + p.sum(dim=-1)
    output = output + p @ value
    return new_maximum, total, output

# %% online_softmax_step: the new maximum is that of the block alone, the old one is forgotten
import torch

def online_softmax_step(maximum, total, output, scores, value):
    block_max = scores.amax(-1)
    alpha = torch.exp(maximum - block_max)
    weights = torch.exp(scores - block_max[..., None])
    total = alpha * total + weights.sum(-1)
    output = alpha[..., None] * output + weights @ value
    return block_max, total, output

# %% online_softmax_step: the output is divided by the total after every block and the next step does not undo it
import torch

def online_softmax_step(maximum, total, output, scores, value):
    m = torch.maximum(maximum, scores.amax(dim=-1))
    correction = torch.exp(maximum - m)
    e = torch.exp(scores - m.unsqueeze(-1))
    l = correction * total + e.sum(dim=-1)
    o = correction.unsqueeze(-1) * output + torch.matmul(e, value)
    return m, l, o / l.unsqueeze(-1)

# %% online_softmax_step: the state is updated in place, so the caller's total and output change
import torch

def online_softmax_step(maximum, total, output, scores, value):
    new_max = torch.maximum(maximum, scores.amax(dim=-1))
    scale = torch.exp(maximum - new_max)
    p = torch.exp(scores - new_max.unsqueeze(-1))
    total *= scale
    total += p.sum(dim=-1)
    output *= scale.unsqueeze(-1)
    output += p @ value
    return new_max, total, output

# %% online_softmax_step: a maximum of minus infinity is replaced by 0, so scores far below 0 all become 0
import torch

def online_softmax_step(maximum, total, output, scores, value):
    old = torch.nan_to_num(maximum, neginf=0.0)
    new = torch.maximum(old, scores.max(dim=-1)[0])
    factor = torch.exp(old - new)
    exps = torch.exp(scores - new.unsqueeze(-1))
    return (
        new,
        total * factor + exps.sum(dim=-1),
        output * factor.unsqueeze(-1) + exps @ value,
    )

# %% tiled_attention: each block has a softmax of its own and the outputs of the blocks are averaged
import math
import torch

def tiled_attention(query, key, value, block_size):
    outputs = []
    for k, v in zip(key.split(block_size, dim=-2), value.split(block_size, dim=-2)):
        scores = query @ k.transpose(-2, -1) / math.sqrt(query.shape[-1])
        outputs.append(torch.softmax(scores, dim=-1) @ v)
    return torch.stack(outputs).mean(dim=0)

# %% tiled_attention: only whole blocks are visited, the keys left over at the end are dropped
import math
import torch

def tiled_attention(query, key, value, block_size):
    length = key.shape[-2]
    block_size = min(block_size, length)
    m = query.new_full(query.shape[:-1], float("-inf"))
    total = torch.zeros_like(m)
    out = query.new_zeros(*query.shape[:-1], value.shape[-1])
    for b in range(length // block_size):
        k = key[..., b * block_size:(b + 1) * block_size, :]
        v = value[..., b * block_size:(b + 1) * block_size, :]
        s = query @ k.transpose(-2, -1) / math.sqrt(query.shape[-1])
        new_m = torch.maximum(m, s.amax(-1))
        c = torch.exp(m - new_m)
        p = torch.exp(s - new_m[..., None])
        total = total * c + p.sum(-1)
        out = out * c[..., None] + p @ v
        m = new_m
    return out / total[..., None]

# %% tiled_attention: exponentials without subtracting a maximum, which overflow for large scores
import torch

def tiled_attention(query, key, value, block_size):
    numerator = 0
    denominator = 0
    scale = query.shape[-1] ** -0.5
    for start in range(0, key.shape[-2], block_size):
        k = key[..., start:start + block_size, :]
        v = value[..., start:start + block_size, :]
        e = (query @ k.transpose(-2, -1) * scale).exp()
        numerator = numerator + e @ v
        denominator = denominator + e.sum(dim=-1, keepdim=True)
    return numerator / denominator

# %% tiled_attention: the queries are cut into blocks, and each block of them holds the scores for all keys
import math
import torch

def tiled_attention(query, key, value, block_size):
    result = []
    for q in torch.split(query, block_size, dim=-2):
        scores = torch.matmul(q, key.transpose(-2, -1)) / math.sqrt(key.shape[-1])
        result.append(torch.matmul(scores.softmax(dim=-1), value))
    return torch.cat(result, dim=-2)

# %% tiled_attention: each block subtracts its own maximum and the sums are added without being rescaled
import math
import torch

def tiled_attention(query, key, value, block_size):
    d_k = query.size(-1)
    total = query.new_zeros(*query.shape[:-1], 1)
    output = query.new_zeros(*query.shape[:-1], value.size(-1))
    for i in range(0, key.size(-2), block_size):
        scores = query @ key[..., i:i + block_size, :].transpose(-2, -1) / math.sqrt(d_k)
        p = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
        total = total + p.sum(dim=-1, keepdim=True)
        output = output + p @ value[..., i:i + block_size, :]
    return output / total

# %% cache_bytes: counts the keys only, not the values
def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    numbers = num_layers * num_kv_heads * d_head * length * batch_size
    return numbers * bytes_per_number

# %% cache_bytes: the cache is taken to be shared by all sequences of the batch
def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    per_token = 2 * num_layers * num_kv_heads * d_head * bytes_per_number
    return per_token * length

# %% cache_bytes: queries are stored as well, three vectors for each token
def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    qkv = 3 * num_kv_heads * d_head
    return batch_size * length * num_layers * qkv * bytes_per_number

# %% cache_bytes: the matrix of attention scores, length * length, is counted together with keys and values
def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    keys_and_values = 2 * num_kv_heads * length * d_head
    scores = num_kv_heads * length * length
    return num_layers * batch_size * (keys_and_values + scores) * bytes_per_number

# %% cache_bytes: d_head is taken for the width of all heads together, so the heads are not multiplied
def cache_bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    return 2 * num_layers * d_head * length * batch_size * bytes_per_number

# %% grouped_query_attention: key heads are tiled 0, 1, 0, 1 so that neighbouring query heads do not share one
import math
import torch

def grouped_query_attention(query, key, value):
    repeats = query.shape[1] // key.shape[1]
    key = key.repeat(1, repeats, 1, 1)
    value = value.repeat(1, repeats, 1, 1)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    return torch.softmax(scores, dim=-1) @ value

# %% grouped_query_attention: key and value heads are averaged into a single one that all query heads use
import torch.nn.functional as F

def grouped_query_attention(query, key, value):
    k = key.mean(dim=1, keepdim=True).expand(-1, query.shape[1], -1, -1)
    v = value.mean(dim=1, keepdim=True).expand(-1, query.shape[1], -1, -1)
    return F.scaled_dot_product_attention(query, k, v)

# %% grouped_query_attention: keys are shared by neighbouring heads but the values are tiled in the other order
import math
import torch

def grouped_query_attention(query, key, value):
    n = query.shape[1] // key.shape[1]
    k = torch.repeat_interleave(key, n, dim=1)
    v = torch.cat([value] * n, dim=1)
    weights = (query @ k.mT / math.sqrt(k.shape[-1])).softmax(-1)
    return weights @ v

# %% grouped_query_attention: the softmax runs over the queries instead of the keys
import math
import torch

def grouped_query_attention(query, key, value):
    B, H, L, d = query.shape
    G = key.shape[1]
    q = query.reshape(B, G, H // G, L, d)
    scores = torch.einsum("bgrqd,bgkd->bgrqk", q, key) / math.sqrt(d)
    weights = scores.softmax(dim=-2)
    out = torch.einsum("bgrqk,bgkd->bgrqd", weights, value)
    return out.reshape(B, H, L, d)

# %% grouped_query_attention: scores are divided by the root of the whole model width H * d, not of one head's
import torch

def grouped_query_attention(query, key, value):
    batch, heads, length, d_head = query.shape
    group = heads // key.shape[1]
    out = []
    for h in range(heads):
        k, v = key[:, h // group], value[:, h // group]
        s = query[:, h] @ k.transpose(1, 2) / (heads * d_head) ** 0.5
        out.append(s.softmax(dim=-1) @ v)
    return torch.stack(out, dim=1)

# %% linear_attention: the one is added inside the function, elu(x + 1) instead of elu(x) + 1
import torch
import torch.nn.functional as F

def linear_attention(query, key, value):
    q, k = F.elu(query + 1), F.elu(key + 1)
    weights = torch.tril(q @ k.transpose(-2, -1))
    return weights @ value / weights.sum(dim=-1, keepdim=True)

# %% linear_attention: the sums run over all tokens, those after the query too
import torch
import torch.nn.functional as F

def linear_attention(query, key, value):
    q = F.elu(query) + 1
    k = F.elu(key) + 1
    state = k.transpose(-2, -1) @ value
    norm = q @ k.sum(dim=-2).unsqueeze(-1)
    return (q @ state) / norm

# %% linear_attention: the weighted sum of the values is never divided by the sum of the weights
import torch
import torch.nn.functional as F

def linear_attention(query, key, value):
    q = F.elu(query) + 1
    k = F.elu(key) + 1
    states = torch.cumsum(k.unsqueeze(-1) * value.unsqueeze(-2), dim=-3)
    return (q.unsqueeze(-2) @ states).squeeze(-2)

# %% linear_attention: the numerator is causal, the normaliser is summed over the whole sequence
import torch
import torch.nn.functional as F

def linear_attention(query, key, value):
    phi_q = 1 + F.elu(query)
    phi_k = 1 + F.elu(key)
    scores = phi_q @ phi_k.transpose(-2, -1)
    numerator = torch.tril(scores) @ value
    return numerator / scores.sum(dim=-1, keepdim=True)

# %% linear_attention: the products of the features are sent through a causal softmax instead of being weights
import torch
import torch.nn.functional as F

def linear_attention(query, key, value):
    scores = (F.elu(query) + 1) @ (F.elu(key) + 1).transpose(-2, -1)
    length = scores.shape[-1]
    future = torch.ones(length, length, dtype=torch.bool, device=scores.device).triu(1)
    return scores.masked_fill(future, float("-inf")).softmax(dim=-1) @ value

# %% speculative_acceptance: the ratio is upside down, draft / target
import torch

def speculative_acceptance(target, draft):
    ratio = draft / torch.where(target > 0, target, torch.ones_like(target))
    accept = torch.where(target > 0, ratio.clamp(max=1), torch.ones_like(ratio))
    residual = (target - draft).clamp(min=0)
    return accept, residual / residual.sum(dim=-1, keepdim=True)

# %% speculative_acceptance: after a rejection the token is drawn from the target itself
import torch

def speculative_acceptance(target, draft):
    zero = draft == 0
    accept = torch.clamp(target / draft.masked_fill(zero, 1.0), max=1.0)
    accept = accept.masked_fill(zero, 1.0)
    return accept, target.clone()

# %% speculative_acceptance: the residual takes the absolute difference, tokens the draft prefers included
import torch

def speculative_acceptance(target, draft):
    safe = torch.where(draft == 0, torch.ones_like(draft), draft)
    accept = torch.where(draft == 0, torch.ones_like(draft), torch.minimum(target / safe, torch.ones_like(safe)))
    gap = (target - draft).abs()
    return accept, gap / gap.sum(dim=-1, keepdim=True)

# %% speculative_acceptance: the residual is normalised by a softmax, which gives tokens with nothing left a share
import torch

def speculative_acceptance(target, draft):
    has_draft = draft > 0
    ratio = target / torch.where(has_draft, draft, torch.ones_like(draft))
    accept = torch.where(has_draft, ratio.clamp(max=1.0), torch.ones_like(ratio))
    residual = torch.softmax(torch.relu(target - draft), dim=-1)
    return accept, residual

# %% speculative_acceptance: divides without a thought for zeros, so a token that neither model gives has 0 / 0
import torch

def speculative_acceptance(target, draft):
    accept = torch.clamp(target / draft, max=1.0)
    left = torch.clamp(target - draft, min=0.0)
    return accept, left / left.sum(dim=-1, keepdim=True)
