"""Solutions to `tiled_attention` that break one clause of the contract each."""

import math

import torch
from contract_clauses import breaks

TILES = "tiled_attention"
ROUND = "accurate to about 1e-5 in float32 and 1e-10 in float64"
BATCH = "leading dimensions may be any number of batch dimensions, including none"
SIZES = "block_size need not divide L_k"
SPARING = "never holding scores for more than block_size keys"
FINITE = "finite for scores up to ±1e4"


def tiles(query, key, value, block_size, scale=None):
    root = math.sqrt(query.shape[-1]) if scale is None else scale
    maximum = torch.full_like(query[..., 0], -math.inf)
    total, output = torch.zeros_like(maximum), 0
    for start in range(0, key.shape[-2], block_size):
        keys, values = (x[..., start : start + block_size, :] for x in (key, value))
        scores = query @ keys.mT / root
        larger = torch.maximum(maximum, scores.amax(-1))
        factor, weights = (maximum - larger).exp(), (scores - larger[..., None]).exp()
        total, output = total * factor + weights.sum(-1), output * factor[..., None] + weights @ values
        maximum = larger
    return output / total[..., None]


def whole(query, key, value):
    return (query @ key.mT / math.sqrt(query.shape[-1])).softmax(-1) @ value


@breaks(TILES, SPARING)
def scores_all_at_once(query, key, value, block_size):
    return whole(query, key, value)


@breaks(TILES, SPARING)
def all_keys_for_one_query_at_a_time(query, key, value, block_size):
    return torch.cat([whole(q, key, value) for q in query.split(1, -2)], -2)


@breaks(TILES, SPARING)
def queries_in_blocks(query, key, value, block_size):
    return torch.cat([whole(q, key, value) for q in query.split(block_size, -2)], -2)


@breaks(TILES, SPARING)
def scores_computed_in_blocks_and_collected(query, key, value, block_size):
    scores = torch.cat([query @ keys.mT for keys in key.split(block_size, -2)], -1)
    return (scores / math.sqrt(query.shape[-1])).softmax(-1) @ value


@breaks(TILES, SPARING)
def scores_written_into_a_matrix(query, key, value, block_size):
    scores = query.new_empty(*query.shape[:-1], key.shape[-2])
    parts = []
    for start in range(0, key.shape[-2], block_size):
        parts.append(query @ key[..., start : start + block_size, :].mT)
        scores.detach()[..., start : start + block_size] = parts[-1]
    return ((scores if not query.requires_grad else torch.cat(parts, -1)) / query.shape[-1] ** 0.5).softmax(-1) @ value


@breaks(TILES, SPARING)
def so_many_blocks(query, key, value, block_size):
    return tiles(query, key, value, -(-key.shape[-2] // block_size))


@breaks(TILES, SIZES + ": the last block counts")
def keys_left_over_are_dropped(query, key, value, block_size):
    whole_blocks = max(key.shape[-2] // block_size * block_size, min(block_size, key.shape[-2]))
    return tiles(query, key[..., :whole_blocks, :], value[..., :whole_blocks, :], block_size)


@breaks(TILES, SIZES + ": it is padded, and padding gets no weight")
def padding_gets_weight(query, key, value, block_size):
    missing = -key.shape[-2] % block_size
    key, value = (torch.nn.functional.pad(x, (0, 0, 0, missing)) for x in (key, value))
    return tiles(query, key, value, block_size)


@breaks(TILES, SIZES)
def blocks_must_fit(query, key, value, block_size):
    key, value = (x.unflatten(-2, (-1, min(block_size, x.shape[-2]))).flatten(-3, -2) for x in (key, value))
    return tiles(query, key, value, block_size)


@breaks(TILES, "block_size may exceed L_k")
def blocks_no_larger_than_the_keys(query, key, value, block_size):
    if block_size > key.shape[-2]:
        raise ValueError("a block is larger than the keys")
    return tiles(query, key, value, block_size)


@breaks(TILES, "block_size ≥ 1: a single key per block")
def blocks_of_two_keys_or_more(query, key, value, block_size):
    if block_size > 1:
        return tiles(query, key, value, block_size)
    root = math.sqrt(query.shape[-1])
    return sum(
        query @ keys.mT / root * values for keys, values in zip(key.split(1, -2), value.split(1, -2), strict=True)
    )


@breaks(TILES, "block_size does not change the result")
def average_of_blocks(query, key, value, block_size):
    parts = zip(key.split(block_size, -2), value.split(block_size, -2), strict=True)
    return torch.stack([whole(query, *part) for part in parts]).mean(0)


@breaks(TILES, "scores are divided by √d_k")
def not_scaled(query, key, value, block_size):
    return tiles(query, key, value, block_size, scale=1.0)


@breaks(TILES, "scores are divided by √d_k")
def scaled_by_the_width_of_the_values(query, key, value, block_size):
    return tiles(query, key, value, block_size, scale=math.sqrt(value.shape[-1]))


@breaks(TILES, "without a mask")
def causal(query, key, value, block_size):
    rows = [
        tiles(query[..., i : i + 1, :], key[..., : i + 1, :], value[..., : i + 1, :], block_size)
        for i in range(query.shape[-2])
    ]
    return torch.cat(rows, -2)


@breaks(TILES, BATCH)
def only_with_a_batch(query, key, value, block_size):
    if query.dim() == 2:
        raise IndexError("there is no batch")
    return tiles(query, key, value, block_size)


@breaks(TILES, BATCH)
def at_most_two_batch_dimensions(query, key, value, block_size):
    if query.dim() > 4:
        raise RuntimeError("four axes at most")
    return tiles(query, key, value, block_size)


@breaks(TILES, "output is (..., L_q, d_v), d_v independent of d_k")
def values_as_wide_as_keys(query, key, value, block_size):
    return tiles(query, key, value, block_size).reshape(query.shape)


@breaks(TILES, "L_q and L_k are independent")
def as_many_queries_as_keys(query, key, value, block_size):
    return tiles(query, key, value, block_size).reshape(*key.shape[:-1], value.shape[-1])


@breaks(TILES, "output is (..., L_q, d_v): a single query, too")
def single_query_squeezed(query, key, value, block_size):
    output = tiles(query, key, value, block_size)
    return output.squeeze(-2) if output.dim() > 2 else output


@breaks(TILES, FINITE)
def no_maximum(query, key, value, block_size):
    total = output = 0
    for keys, values in zip(key.split(block_size, -2), value.split(block_size, -2), strict=True):
        weights = (query @ keys.mT / math.sqrt(query.shape[-1])).exp()
        total, output = total + weights.sum(-1, keepdim=True), output + weights @ values
    return output / total


@breaks(TILES, FINITE)
def maximum_of_the_first_block(query, key, value, block_size):
    root = math.sqrt(query.shape[-1])
    maximum = (query @ key[..., :block_size, :].mT / root).amax(-1, keepdim=True)
    total = output = 0
    for keys, values in zip(key.split(block_size, -2), value.split(block_size, -2), strict=True):
        weights = (query @ keys.mT / root - maximum).exp()
        total, output = total + weights.sum(-1, keepdim=True), output + weights @ values
    return output / total


@breaks(TILES, FINITE + ": all scores far below zero")
def a_key_with_score_zero(query, key, value, block_size):
    root, total, output = math.sqrt(query.shape[-1]), 0, 0
    pairs = list(zip(key.split(block_size, -2), value.split(block_size, -2), strict=True))
    tops = [(query @ keys.mT / root).amax(-1, keepdim=True) for keys, _ in pairs]
    maximum = torch.stack(tops).amax(0).clamp(min=0)
    for keys, values in pairs:
        weights = (query @ keys.mT / root - maximum).exp()
        total, output = total + weights.sum(-1, keepdim=True), output + weights @ values
    return output / total


@breaks(TILES, ROUND)
def float32_inside(query, key, value, block_size):
    return tiles(query.float(), key.float(), value.float(), block_size).to(query.dtype)


@breaks(TILES, ROUND)
def number_in_the_sum(query, key, value, block_size):
    return tiles(query, key, value, block_size) * (1 - 1e-6)


@breaks(TILES, "keeps the dtype")
def always_float64(query, key, value, block_size):
    return tiles(query.double(), key.double(), value.double(), block_size)


@breaks(TILES, "a solution leaves its arguments unchanged: query")
def query_changed(query, key, value, block_size):
    result = tiles(query, key, value, block_size)
    query.div_(math.sqrt(query.shape[-1]))
    return result


@breaks(TILES, "a solution leaves its arguments unchanged: value")
def value_changed(query, key, value, block_size):
    result = tiles(query, key, value, block_size)
    value[..., :block_size, :] = 0
    return result


@breaks(TILES, "lets gradients through: query")
def query_detached(query, key, value, block_size):
    return tiles(query.detach(), key, value, block_size)


@breaks(TILES, "lets gradients through: keys of earlier blocks")
def earlier_blocks_detached(query, key, value, block_size):
    old, new = key[..., :-block_size, :].detach(), key[..., -block_size:, :]
    return tiles(query, torch.cat((old, new), -2), value, block_size)


@breaks(TILES, "lets gradients through: value")
def value_detached(query, key, value, block_size):
    return tiles(query, key, value.detach(), block_size)


@breaks(TILES, "returns the output")
def output_and_state(query, key, value, block_size):
    output = tiles(query, key, value, block_size)
    return output, output.amax(-1)
