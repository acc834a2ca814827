"""Solutions that break one clause of the contract each: the size of a cache, and groups that share keys and values."""

import math

import torch
from contract_clauses import breaks

ROUND = "accurate to about 1e-5 in float32 and 1e-10 in float64"
UNCHANGED = "a solution leaves its arguments unchanged"
LAYOUT = "a tensor is right in any layout of its memory"
GRADIENTS = "lets gradients through"
DTYPE = "keeps the dtype"

# cache_bytes

CACHE = "cache_bytes"


def _bytes(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    return 2 * num_layers * num_kv_heads * d_head * length * batch_size * bytes_per_number


@breaks(CACHE, "int")
def _(*sizes):
    return float(_bytes(*sizes))


@breaks(CACHE, "int")
def _(*sizes):
    return torch.tensor(_bytes(*sizes))


@breaks(CACHE, "int, exact for large caches")
def _(*sizes):
    return int(math.exp2(1) * _bytes(*sizes)) // 2


@breaks(CACHE, "int, exact for large caches")
def _(*sizes):
    return _bytes(*sizes) % 2**32


@breaks(CACHE, "keys and values")
def _(*sizes):
    return _bytes(*sizes) // 2


@breaks(CACHE, "per layer")
def _(num_layers, *sizes):
    return _bytes(1, *sizes)


@breaks(CACHE, "per kv head")
def _(num_layers, num_kv_heads, *sizes):
    return _bytes(num_layers, 1, *sizes)


@breaks(CACHE, "d_head numbers each")
def _(num_layers, num_kv_heads, d_head, *sizes):
    return _bytes(num_layers, num_kv_heads, 1, *sizes)


@breaks(CACHE, "per token")
def _(num_layers, num_kv_heads, d_head, length, *sizes):
    return _bytes(num_layers, num_kv_heads, d_head, 1, *sizes)


@breaks(CACHE, "per sequence")
def _(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    return _bytes(num_layers, num_kv_heads, d_head, length, 1, bytes_per_number)


@breaks(CACHE, "batch_size=1")
def _(num_layers, num_kv_heads, d_head, length, batch_size=2, bytes_per_number=2):
    return _bytes(num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number)


@breaks(CACHE, "bytes_per_number=2")
def _(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=4):
    return _bytes(num_layers, num_kv_heads, d_head, length, batch_size, bytes_per_number)


@breaks(CACHE, "bytes_per_number is any width")
def _(num_layers, num_kv_heads, d_head, length, batch_size=1, bytes_per_number=2):
    return _bytes(num_layers, num_kv_heads, d_head, length, batch_size, max(bytes_per_number, 2))


# grouped_query_attention

GROUPED = "grouped_query_attention"


def _grouped(query, key, value):
    key, value = (x.repeat_interleave(query.shape[1] // x.shape[1], dim=1) for x in (key, value))
    return _softmax_attention(query, key, value)


def _softmax_attention(query, key, value):
    return (query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])).softmax(-1) @ value


@breaks(GROUPED, "consecutive query heads share a group")
def _(query, key, value):
    key, value = (x.repeat(1, query.shape[1] // x.shape[1], 1, 1) for x in (key, value))
    return _softmax_attention(query, key, value)


@breaks(GROUPED, "consecutive query heads share a group: the values too")
def _(query, key, value):
    copies = query.shape[1] // key.shape[1]
    return _softmax_attention(query, key.repeat_interleave(copies, 1), value.repeat(1, copies, 1, 1))


@breaks(GROUPED, "heads 0 … H/G − 1 use key head 0, and so on")
def _(query, key, value):
    return _grouped(query, key.flip(1), value.flip(1))


@breaks(GROUPED, "G divides H: any such numbers")
def _(query, key, value):
    groups, heads = key.shape[1], query.shape[1]
    which = torch.arange(heads) // min(groups, heads // groups) % groups
    return _softmax_attention(query, key[:, which], value[:, which])


@breaks(GROUPED, "G divides H: one group")
def _(query, key, value):
    if key.shape[1] == 1 and query.shape[1] > 1:
        raise ValueError("one group is multi-query attention")
    return _grouped(query, key, value)


@breaks(GROUPED, "G divides H: as many groups as heads")
def _(query, key, value):
    if key.shape[1] == query.shape[1]:
        return _grouped(query, key.flip(1), value)
    return _grouped(query, key, value)


@breaks(GROUPED, "scores are divided by √d")
def _(query, key, value):
    return _grouped(query * math.sqrt(query.shape[-1]), key, value)


@breaks(GROUPED, "scores are divided by √d, of one head")
def _(query, key, value):
    return _grouped(query / math.sqrt(query.shape[1]), key, value)


@breaks(GROUPED, "no mask")
def _(query, key, value):
    key, value = (x.repeat_interleave(query.shape[1] // x.shape[1], dim=1) for x in (key, value))
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(future, -math.inf).softmax(-1) @ value


@breaks(GROUPED, "the output is (B, H, L_q, d): all heads")
def _(query, key, value):
    return _grouped(query, key, value)[:, : key.shape[1]]


@breaks(GROUPED, "the output is (B, H, L_q, d): heads in the order of the queries")
def _(query, key, value):
    return _grouped(query, key, value).unflatten(1, (key.shape[1], -1)).transpose(1, 2).flatten(1, 2)


@breaks(GROUPED, "the output is (B, H, L_q, d): four axes")
def _(query, key, value):
    return _grouped(query, key, value).unflatten(1, (key.shape[1], -1))


@breaks(GROUPED, "the output is (B, H, L_q, d), for a batch of one too")
def _(query, key, value):
    output = _grouped(query, key, value)
    return output.squeeze(0) if len(output) == 1 else output


@breaks(GROUPED, "the output is (B, H, L_q, d), for one query too")
def _(query, key, value):
    output = _grouped(query, key, value)
    return output.squeeze(2) if output.shape[2] == 1 else output


@breaks(GROUPED, "L_q and L_k are independent")
def _(query, key, value):
    return _grouped(query, key, value)[:, :, : key.shape[2]]


@breaks(GROUPED, LAYOUT)
def _(query, key, value):
    batch, heads, length, d = query.shape
    apart = query.view(batch * heads, length, d)
    return _grouped(apart.view(query.shape), key, value)


@breaks(GROUPED, ROUND)
def _(query, key, value):
    return _grouped(query.float(), key.float(), value.float()).to(query.dtype)


@breaks(GROUPED, ROUND)
def _(query, key, value):
    if query.dtype == torch.float64:
        return _grouped(query, key, value)
    return _grouped(query.bfloat16(), key.bfloat16(), value.bfloat16()).float()


@breaks(GROUPED, DTYPE)
def _(query, key, value):
    return _grouped(query, key, value).float()


@breaks(GROUPED, UNCHANGED + ": query")
def _(query, key, value):
    result = _grouped(query, key, value)
    query.div_(math.sqrt(query.shape[-1]))
    return result


@breaks(GROUPED, UNCHANGED + ": key")
def _(query, key, value):
    result = _grouped(query, key, value)
    key.mul_(2)
    return result


@breaks(GROUPED, UNCHANGED + ": value")
def _(query, key, value):
    result = _grouped(query, key, value)
    value += 1
    return result


@breaks(GROUPED, GRADIENTS + ": query")
def _(query, key, value):
    return _grouped(query.detach(), key, value)


@breaks(GROUPED, GRADIENTS + ": key")
def _(query, key, value):
    return _grouped(query, key.detach(), value)


@breaks(GROUPED, GRADIENTS + ": value, from every query head of a group")
def _(query, key, value):
    copies = query.shape[1] // value.shape[1]
    first = value[:, :, None]
    others = first.detach().expand(-1, -1, copies - 1, -1, -1)
    keys = key.repeat_interleave(copies, dim=1)
    return _softmax_attention(query, keys, torch.cat((first, others), dim=2).flatten(1, 2))
