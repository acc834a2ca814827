"""What attention costs, and the ways round it: tiles, smaller caches, linear attention, speculative sampling."""

from __future__ import annotations

import math
from functools import reduce

import torch
from torch import Tensor

from course_kit._checks import check_axes, check_dtypes, check_whole
from course_lib._typing import Float
from course_lib.attention import dot_product_score
from course_lib.scaled_dot_product import check_attention_shapes

__all__ = [
    "cache_bytes",
    "convolution_layers",
    "grouped_query_attention",
    "linear_attention",
    "online_softmax_step",
    "speculative_acceptance",
    "tiled_attention",
]


def convolution_layers(length: int, kernel_size: int, dilated: bool = False) -> int:
    """How many causal convolutions it takes until the last of `length` positions depends on the first.

    A kernel of k positions reaches k − 1 positions further back in each layer. If layer i (from 0) is dilated by kⁱ,
    n layers reach kⁿ − 1 positions back.

    Args:
        length: positions in the sequence, 1 or more.
        kernel_size: positions that one output depends on, 2 or more.
        dilated: whether layer i leaves gaps of kⁱ positions, for i = 0, 1, 2, …

    Returns:
        The smallest n with n · (k − 1) ≥ length − 1, or kⁿ ≥ length if dilated; 0 for a single position.

    Raises:
        TypeError: length or kernel_size is not a whole number.
        ValueError: length is less than 1, or kernel_size less than 2.

    Source: Vaswani et al. (2017), table 1 and section 4; the dilation is that of van den Oord et al. (2016).
    """
    check_whole(length=length)
    check_whole(kernel_size=kernel_size, least=2)
    layers, reach = 0, 1  # positions, the last one included
    while reach < length:
        reach = reach * kernel_size if dilated else reach + kernel_size - 1
        layers += 1
    return layers


def online_softmax_step(
    maximum: Float[Tensor, "*batch len_q"],
    total: Float[Tensor, "*batch len_q"],
    output: Float[Tensor, "*batch len_q d_v"],
    scores: Float[Tensor, "*batch len_q block"],
    value: Float[Tensor, "*batch block d_v"],
) -> tuple[Float[Tensor, "*batch len_q"], Float[Tensor, "*batch len_q"], Float[Tensor, "*batch len_q d_v"]]:
    """Take one more block of keys into account, without knowing the blocks to come.

    With m the largest score so far, `total` is Σ exp(s_j − m) and `output` is Σ exp(s_j − m) v_j, over the keys so far.
    A larger m multiplies both by exp(m_old − m). At the end, `output / total` is softmax(scores) V.

    Args:
        maximum: `(..., L_q)`, the largest score of each query so far; −inf before the first block.
        total: `(..., L_q)`, 0 before the first block.
        output: `(..., L_q, d_v)`, not divided by `total`; 0 before the first block.
        scores: `(..., L_q, block)`, finite scores of the new keys.
        value: `(..., block, d_v)`, the values of the new keys.

    Returns:
        `(maximum, total, output)` with the new block included; same shapes.

    Raises:
        TypeError: the arguments are not tensors of one floating-point dtype.
        ValueError: their shapes do not fit together, or the block is empty.

    Source: Milakov and Gimelshein (2018), algorithm 3, with the values as in Dao et al. (2022), section 3.1.
    """
    check_dtypes(maximum=maximum, total=total, output=output, scores=scores, value=value)
    check_axes(scores=scores, value=value, output=output)
    _check_block(maximum, total, output, scores, value)
    larger = torch.maximum(maximum, scores.amax(dim=-1))  # (..., L_q)
    correction = torch.exp(maximum - larger)
    weights = torch.exp(scores - larger[..., None])  # (..., L_q, block), not normalised
    total = total * correction + weights.sum(dim=-1)
    output = output * correction[..., None] + weights @ value  # (..., L_q, d_v)
    return larger, total, output


def tiled_attention(
    query: Float[Tensor, "*batch len_q d_k"],
    key: Float[Tensor, "*batch len_k d_k"],
    value: Float[Tensor, "*batch len_k d_v"],
    block_size: int,
) -> Float[Tensor, "*batch len_q d_v"]:
    """Scaled dot-product attention that never holds scores for more than `block_size` keys.

    `output = softmax(Q Kᵀ / √d_k) V`, block by block with `online_softmax_step`. The result equals that of
    `scaled_dot_product_attention` up to rounding; L_q · block_size scores are in memory instead of L_q · L_k. With
    gradients, PyTorch keeps the scores of all blocks for the backward pass.

    Args:
        query: `(..., L_q, d_k)`.
        key: `(..., L_k, d_k)`.
        value: `(..., L_k, d_v)`.
        block_size: keys per block, 1 or more; the last block may be smaller.

    Returns:
        `(..., L_q, d_v)`.

    Raises:
        TypeError: query, key and value are not of one floating-point dtype, or block_size is not a whole number.
        ValueError: shapes do not fit together (the message says which), or block_size is less than 1.

    Source: Dao et al. (2022), algorithm 1, with all queries at once.
    """
    check_attention_shapes(query, key, value)
    check_whole(block_size=block_size)
    dtype = query.dtype
    query, key, value = (x.to(dtype_of_sums(dtype)) for x in (query, key, value))
    query = query / math.sqrt(query.shape[-1])
    maximum = query.new_full(query.shape[:-1], -math.inf)  # (..., L_q)
    total = torch.zeros_like(maximum)
    output = query.new_zeros(*query.shape[:-1], value.shape[-1])  # (..., L_q, d_v)
    if not key.shape[-2]:
        return output.to(dtype)  # nothing to attend to
    for keys, values in zip(key.split(block_size, dim=-2), value.split(block_size, dim=-2), strict=True):
        scores = dot_product_score(query, keys)  # (..., L_q, block)
        maximum, total, output = online_softmax_step(maximum, total, output, scores, values)
    return (output / total[..., None]).to(dtype)


def grouped_query_attention(
    query: Float[Tensor, "batch heads len_q d"],
    key: Float[Tensor, "batch groups len_k d"],
    value: Float[Tensor, "batch groups len_k d"],
) -> Float[Tensor, "batch heads len_q d"]:
    """Attention in which several consecutive query heads share one head of keys and values.

    Query head h uses the keys and values of head ⌊h / (H / G)⌋. G = H is multi-head attention, G = 1 multi-query
    attention. Keys and values are not copied.

    Args:
        query: `(B, H, L_q, d)`.
        key: `(B, G, L_k, d)`, G divides H.
        value: `(B, G, L_k, d)`.

    Returns:
        `(B, H, L_q, d)`.

    Raises:
        TypeError: query, key and value are not of one floating-point dtype.
        ValueError: they do not have four axes, their shapes do not fit together, or G does not divide H.

    Source: Ainslie et al. (2023); with one group, Shazeer (2019).
    """
    check_dtypes(query=query, key=key, value=value)
    _check_groups(query, key, value)
    groups = key.shape[1]
    query = query.unflatten(1, (groups, -1))  # (B, G, H / G, L_q, d)
    query = query / math.sqrt(query.shape[-1])
    scores = query @ key[:, :, None].transpose(-2, -1)  # (B, G, H / G, L_q, L_k)
    output = torch.softmax(scores, dim=-1) @ value[:, :, None]  # (B, G, H / G, L_q, d)
    return output.flatten(1, 2)  # (B, H, L_q, d)


def cache_bytes(
    num_layers: int,
    num_kv_heads: int,
    d_head: int,
    length: int,
    batch_size: int = 1,
    bytes_per_number: int = 2,
) -> int:
    """The memory of a key–value cache in bytes: a key and a value per layer, head, token and sequence.

    `2 · num_layers · num_kv_heads · d_head · length · batch_size · bytes_per_number`

    Args:
        num_layers: layers with self-attention.
        num_kv_heads: heads of keys and values, which may be fewer than those of the queries.
        d_head: features of a key, and of a value.
        length: tokens in the cache.
        batch_size: sequences.
        bytes_per_number: 2 in half precision, 4 in float32.

    Raises:
        TypeError: an argument is not a whole number.
        ValueError: an argument is less than 1; length may be 0.
    """
    check_whole(length=length, least=0)
    check_whole(num_layers=num_layers, num_kv_heads=num_kv_heads, d_head=d_head)
    check_whole(batch_size=batch_size, bytes_per_number=bytes_per_number)
    return 2 * num_layers * num_kv_heads * d_head * length * batch_size * bytes_per_number


def linear_attention(
    query: Float[Tensor, "*batch length d_k"],
    key: Float[Tensor, "*batch length d_k"],
    value: Float[Tensor, "*batch length d_v"],
    *,
    chunk_size: int = 64,
) -> Float[Tensor, "*batch length d_v"]:
    """Causal attention whose cost grows in proportion to the length, because exp(q · k) becomes φ(q) · φ(k).

    `output_i = φ(q_i)ᵀ S_i / (φ(q_i)ᵀ z_i)` with `S_i = Σ_{j ≤ i} φ(k_j) v_jᵀ`, `z_i = Σ_{j ≤ i} φ(k_j)` and
    `φ(x) = elu(x) + 1`. The state (S, z) has d_k · (d_v + 1) numbers, whatever the length. The positions of a chunk
    attend to each other through a masked matrix, and to all earlier chunks through the state; chunk_size 1 is the
    recurrent form, and a chunk as long as the sequence is the parallel one. All of them compute the same.

    Args:
        query: `(..., L, d_k)`, not scaled.
        key: `(..., L, d_k)`.
        value: `(..., L, d_v)`.
        chunk_size: positions computed side by side, 1 or more.

    Returns:
        `(..., L, d_v)`.

    Raises:
        TypeError: query, key and value are not of one floating-point dtype, or chunk_size is not a whole number.
        ValueError: shapes do not fit together (the message says which), the queries are not as many as the keys, or
            chunk_size is less than 1.

    Source: Katharopoulos et al. (2020), equations 7 to 20. The chunks are those of Hua et al.
        (2022), who use another similarity inside them.
    """
    check_attention_shapes(query, key, value)
    check_whole(chunk_size=chunk_size)
    if query.shape[-2] != key.shape[-2]:
        raise ValueError(
            f"causal linear attention needs one query per key, got {query.shape[-2]} queries and {key.shape[-2]} keys"
        )
    dtype = query.dtype
    query, key, value = (x.to(dtype_of_sums(dtype)) for x in (query, key, value))
    query, key = _positive(query), _positive(key)
    # A further value of 1 for each key: its weighted sum is the sum of the weights, φ(q_i)ᵀ z_i.
    value = torch.cat((value, torch.ones_like(value[..., :1])), dim=-1)  # (..., L, d_v + 1)
    state = query.new_zeros(*query.shape[:-2], key.shape[-1], value.shape[-1])  # (..., d_k, d_v + 1)
    outputs = []
    for queries, keys, values in zip(*(x.split(chunk_size, dim=-2) for x in (query, key, value)), strict=True):
        inside = dot_product_score(queries, keys).tril()  # (..., chunk, chunk)
        outputs.append(inside @ values + queries @ state)  # (..., chunk, d_v + 1)
        state = state + keys.transpose(-2, -1) @ values
    sums = torch.cat(outputs, dim=-2)  # (..., L, d_v + 1)
    return (sums[..., :-1] / sums[..., -1:]).to(dtype)


def speculative_acceptance(
    target: Float[Tensor, "*batch vocab"], draft: Float[Tensor, "*batch vocab"]
) -> tuple[Float[Tensor, "*batch vocab"], Float[Tensor, "*batch vocab"]]:
    """What to do with a token drawn from `draft` so that the result is distributed as `target`.

    A drawn token x is kept with probability `accept(x) = min(1, target(x) / draft(x))`. If it is not kept, another
    one is drawn from `residual = max(target − draft, 0) / Σ max(target − draft, 0)`.

    Args:
        target: `(..., V)`, probabilities of the large model; rows sum to one.
        draft: `(..., V)`, probabilities of the small model; rows sum to one.

    Returns:
        `(accept, residual)`, `(..., V)` each. A token that the draft model never draws gets accept = 1. Where both
        distributions are the same, every token is kept, and residual is the target.

    Raises:
        TypeError: the arguments are not of one floating-point dtype.
        ValueError: their shapes differ, or a row is not a distribution.

    Source: Leviathan et al. (2023), section 2.3; Chen et al. (2023), algorithm 2.
    """
    check_dtypes(target=target, draft=draft)
    _check_distributions(target, draft)
    never = draft == 0
    accept = (target / draft.masked_fill(never, 1.0)).clamp(max=1.0).masked_fill(never, 1.0)
    excess = (target - draft).clamp(min=0.0)
    total = excess.sum(dim=-1, keepdim=True)
    same = total == 0
    residual = torch.where(same, target, excess / total.masked_fill(same, 1.0))
    return accept, residual


def dtype_of_sums(*dtypes: torch.dtype) -> torch.dtype:
    """In what to add up many numbers of these dtypes: at least float32, since long sums do not fit half precision."""
    return reduce(torch.promote_types, dtypes, torch.float32)


def _positive(x: Tensor) -> Tensor:
    """The feature map: elu(x) + 1 is x + 1 for positive x and exp(x) otherwise, without cancellation."""
    return torch.where(x > 0, x + 1, x.clamp(max=0.0).exp())


def _check_block(maximum: Tensor, total: Tensor, output: Tensor, scores: Tensor, value: Tensor) -> None:
    rows = scores.shape[:-1]  # (..., L_q)
    if maximum.shape != rows or total.shape != rows:
        raise ValueError(
            f"maximum and total must have one number per query, {tuple(rows)}, got {tuple(maximum.shape)} and "
            f"{tuple(total.shape)}; leave out the last axis of the scores"
        )
    if output.shape != (*rows, value.shape[-1]):
        raise ValueError(
            f"output must be (..., L_q, d_v) = {(*rows, value.shape[-1])} for these scores and this value, got "
            f"{tuple(output.shape)}; begin with zeros"
        )
    if scores.shape[-1] != value.shape[-2] or not scores.shape[-1]:
        raise ValueError(
            f"expected one score per value and at least one, got scores {tuple(scores.shape)} and value "
            f"{tuple(value.shape)}; cut both at the same keys"
        )


def _check_groups(query: Tensor, key: Tensor, value: Tensor) -> None:
    if query.dim() != 4 or key.dim() != 4 or value.shape != key.shape:
        raise ValueError(
            f"expected query (B, H, L_q, d) and key and value (B, G, L_k, d), got {tuple(query.shape)}, "
            f"{tuple(key.shape)} and {tuple(value.shape)}"
        )
    if len(query) != len(key) or query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"query and key must be of the same batch and have the same number of features, got {tuple(query.shape)} "
            f"and {tuple(key.shape)}"
        )
    if not key.shape[1] or query.shape[1] % key.shape[1]:
        raise ValueError(
            f"the heads of the queries must be a multiple of those of the keys, got {query.shape[1]} and "
            f"{key.shape[1]}; each head of keys is shared by equally many query heads"
        )


def _check_distributions(target: Tensor, draft: Tensor) -> None:
    if target.shape != draft.shape or not target.dim():
        raise ValueError(
            f"target and draft must be (..., V) alike, got {tuple(target.shape)} and {tuple(draft.shape)}; both are "
            f"probabilities of the same vocabulary"
        )
    for name, given in (("target", target), ("draft", draft)):
        sums = given.sum(dim=-1)
        if (given < 0).any() or not torch.allclose(sums, torch.ones_like(sums), atol=1e-3):
            raise ValueError(
                f"{name} must be probabilities, with rows that sum to one; got entries from {given.min():.3g} to "
                f"{given.max():.3g} and sums from {sums.min():.3g} to {sums.max():.3g}; apply a softmax to logits"
            )
