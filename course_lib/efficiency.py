"""What attention costs, and the ways around it: tiles, smaller caches, linear attention, speculative sampling."""

from __future__ import annotations

import math
from typing import Annotated

import torch
from torch import Tensor

from course_lib._checks import check_that, checked
from course_lib._typing import Bounds, Count, Float, Size
from course_lib.scaled_dot_product import scaled_dot_product_attention

__all__ = [
    "cache_bytes",
    "convolution_layers",
    "grouped_query_attention",
    "linear_attention",
    "online_softmax_step",
    "speculative_acceptance",
    "tiled_attention",
]


@checked
def convolution_layers(length: Size, kernel_size: Annotated[int, Bounds(2)], dilated: bool = False) -> int:
    """How many causal convolutions it takes until the last of `length` positions depends on the first.

    A kernel of k positions reaches k − 1 positions further back in each layer, so the answer is the smallest n with
    `n · (k − 1) ≥ length − 1`. If layer i (from 0) is dilated by kⁱ, n layers reach kⁿ − 1 positions back, and the
    answer is the smallest n with `kⁿ ≥ length`.

    Source: Vaswani et al. (2017), table 1 and section 4; the dilation is that of van den Oord et al. (2016).
    """
    reach = 1  # positions that the last one depends on, itself included
    for layers in range(length):  # each layer adds at least one position, so this always returns
        if reach >= length:
            return layers
        reach = reach * kernel_size if dilated else reach + kernel_size - 1


@checked(block="cut both at the same keys", d_v="begin with an output of zeros, as wide as the values")
def online_softmax_step(
    maximum: Float[Tensor, "*batch len_q"],
    total: Float[Tensor, "*batch len_q"],
    output: Float[Tensor, "*batch len_q d_v"],
    scores: Float[Tensor, "*batch len_q block"],
    value: Float[Tensor, "*batch block d_v"],
) -> tuple[Float[Tensor, "*batch len_q"], Float[Tensor, "*batch len_q"], Float[Tensor, "*batch len_q d_v"]]:
    """Take one more block of keys into account, without knowing the blocks to come: new maximum, total and output.

    With m the largest score so far, `total` is Σ exp(s_j − m) and `output` is Σ exp(s_j − m) v_j, over the keys so far.
    A larger m multiplies both by exp(m_old − m). At the end, `output / total` is softmax(scores) V.

    Before the first block, `maximum` is −inf and the other two are 0. Scores are finite.

    Raises:
        ValueError: the block is empty, or maximum and total differ in shape.

    Source: Milakov & Gimelshein (2018), algorithm 3, with the values as in Dao et al. (2022), section 3.1.
    """
    _check_block(maximum, total, scores)
    larger = torch.maximum(maximum, scores.amax(dim=-1))  # (..., L_q)
    correction = torch.exp(maximum - larger)
    weights = torch.exp(scores - larger[..., None])  # (..., L_q, block), not normalised
    total = total * correction + weights.sum(dim=-1)
    output = output * correction[..., None] + weights @ value  # (..., L_q, d_v)
    return larger, total, output


def _check_block(maximum: Tensor, total: Tensor, scores: Tensor) -> None:
    if maximum.shape != total.shape:
        raise ValueError(
            f"maximum and total must have one number per query each, got {tuple(maximum.shape)} and "
            f"{tuple(total.shape)}; pass what the step before returned"
        )
    if not scores.shape[-1]:
        raise ValueError(f"scores must be those of at least one key, got {tuple(scores.shape)}; leave out empty blocks")


@checked(d_k="project one of them to the width of the other", len_k="each key has one value")
def tiled_attention(
    query: Float[Tensor, "*batch len_q d_k"],
    key: Float[Tensor, "*batch len_k d_k"],
    value: Float[Tensor, "*batch len_k d_v"],
    block_size: Size,
) -> Float[Tensor, "*batch len_q d_v"]:
    """Scaled dot-product attention, computed for one block of `block_size` keys at a time.

    `output = softmax(Q Kᵀ / √d_k) V`, block by block; the last block may be smaller. The result equals that of
    `scaled_dot_product_attention` up to rounding. Without gradients, L_q · block_size scores are in memory instead of
    L_q · L_k; with them, PyTorch keeps those of all blocks for the backward pass. Without keys, the output is zero.

    Source: Dao et al. (2022), algorithm 1, with all queries at once.
    """
    dtype, wide = query.dtype, torch.promote_types(query.dtype, torch.float32)  # half precision holds no long sums
    query, key, value = query.to(wide), key.to(wide), value.to(wide)
    query = query / math.sqrt(query.shape[-1])
    maximum = query.new_full(query.shape[:-1], -math.inf)  # (..., L_q)
    total = torch.zeros_like(maximum)
    output = query.new_zeros(*query.shape[:-1], value.shape[-1])  # (..., L_q, d_v)
    if not key.shape[-2]:
        return (query @ key.transpose(-2, -1) @ value).to(dtype)  # nothing to attend to: zeros
    blocks = zip(key.split(block_size, -2), value.split(block_size, -2), strict=True)
    for keys, values in blocks:
        scores = query @ keys.transpose(-2, -1)  # (..., L_q, block)
        maximum, total, output = online_softmax_step(maximum, total, output, scores, values)
    return (output / total[..., None]).to(dtype)


@checked(groups="keys and values have the same heads", d="queries, keys and values have one width")
def grouped_query_attention(
    query: Float[Tensor, "batch heads len_q d"],
    key: Float[Tensor, "batch groups len_k d"],
    value: Float[Tensor, "batch groups len_k d"],
) -> Float[Tensor, "batch heads len_q d"]:
    """Attention in which several consecutive query heads share one head of keys and values.

    Query head h uses the keys and values of head ⌊h / (H / G)⌋. G = H is multi-head attention, G = 1 multi-query
    attention. Sharing makes a key–value cache smaller. This function saves nothing itself: it repeats keys and values
    for each query head.

    Raises:
        ValueError: G does not divide H.

    Source: Ainslie et al. (2023); with one group, Shazeer (2019).
    """
    _check_groups(query, key)
    heads_per_group = query.shape[1] // key.shape[1]
    key = key.repeat_interleave(heads_per_group, dim=1)  # (B, H, L_k, d)
    value = value.repeat_interleave(heads_per_group, dim=1)
    return scaled_dot_product_attention(query, key, value)[0]  # (B, H, L_q, d)


def _check_groups(query: Tensor, key: Tensor) -> None:
    heads, groups = query.shape[1], key.shape[1]
    if not groups or heads % groups:
        raise ValueError(
            f"the heads of query must be a multiple of those of key, got {heads} and {groups}; each head of keys is "
            f"shared by equally many query heads"
        )


@checked
def cache_bytes(
    num_layers: Size,
    num_kv_heads: Size,
    d_head: Size,
    length: Count,
    batch_size: Size = 1,
    bytes_per_number: Size = 2,
) -> int:
    """The memory of a key–value cache in bytes: a key and a value of `d_head` numbers per layer, head and token.

    `2 · num_layers · num_kv_heads · d_head · length · batch_size · bytes_per_number`, with 2 bytes per number in half
    precision and 4 in float32. Only layers with self-attention count, and only heads of keys and values, which may be
    fewer than those of the queries.
    """
    return 2 * num_layers * num_kv_heads * d_head * length * batch_size * bytes_per_number


@checked(length="causal linear attention has one query per key", d_k="project one of them to the width of the other")
def linear_attention(
    query: Float[Tensor, "*batch length d_k"],
    key: Float[Tensor, "*batch length d_k"],
    value: Float[Tensor, "*batch length d_v"],
) -> Float[Tensor, "*batch length d_v"]:
    """Causal attention whose cost grows in proportion to the length, because φ(q) · φ(k) takes the place of exp(q · k).

    `output_i = φ(q_i)ᵀ S_i / (φ(q_i)ᵀ z_i)` with `S_i = Σ_{j ≤ i} φ(k_j) v_jᵀ`, `z_i = Σ_{j ≤ i} φ(k_j)` and
    `φ(x) = elu(x) + 1`, without scaling. The state (S, z) has d_k · (d_v + 1) numbers, whatever the length. Positions
    come one after another; `course_kit.chunked_linear_attention` computes many of them side by side.

    Raises:
        ValueError: the sequence is empty.

    Source: Katharopoulos et al. (2020), equations 7 to 20.
    """
    check_that(query.shape[-2] > 0, "query must have at least one position", query, "pass a longer sequence")
    dtype, wide = query.dtype, torch.promote_types(query.dtype, torch.float32)  # half precision holds no long sums
    query, key, value = query.to(wide), key.to(wide), value.to(wide)
    # elu(x) + 1 is x + 1 for positive x and exp(x) for others. Written like this, small values are not rounded to 0.
    query, key = (x.relu() + x.clamp(max=0.0).exp() for x in (query, key))
    state, total = 0, 0  # sums over the positions so far
    outputs = []
    for q, k, v in zip(query.unbind(-2), key.unbind(-2), value.unbind(-2), strict=True):
        state = state + k[..., :, None] * v[..., None, :]  # (..., d_k, d_v)
        total = total + k  # (..., d_k)
        outputs.append((q[..., None] * state).sum(-2) / (q * total).sum(-1, keepdim=True))  # (..., d_v)
    return torch.stack(outputs, dim=-2).to(dtype)  # (..., L, d_v)


@checked(vocab="both are probabilities of the same vocabulary")
def speculative_acceptance(
    target: Float[Tensor, "*batch vocab"], draft: Float[Tensor, "*batch vocab"]
) -> tuple[Float[Tensor, "*batch vocab"], Float[Tensor, "*batch vocab"]]:
    """What to do with a token drawn from `draft` so that the result is distributed as `target`: (accept, residual).

    `target` and `draft` are the probabilities of the large and of the small model; rows sum to one. A drawn token x is
    kept with probability `accept(x) = min(1, target(x) / draft(x))`. If it is not kept, another one is drawn from
    `residual = max(target − draft, 0) / Σ max(target − draft, 0)`.

    A token that the draft model never draws gets accept = 1. Where both distributions are the same, every token is
    kept, and residual is the target.

    Raises:
        ValueError: a row is not a distribution.

    Source: Leviathan et al. (2023), section 2.3; Chen et al. (2023), algorithm 2.
    """
    _check_distribution("target", target)
    _check_distribution("draft", draft)
    never = draft == 0
    accept = (target / draft.masked_fill(never, 1.0)).clamp(max=1.0).masked_fill(never, 1.0)
    excess = (target - draft).clamp(min=0.0)
    total = excess.sum(dim=-1, keepdim=True)
    same = total == 0
    return accept, torch.where(same, target, excess / total.masked_fill(same, 1.0))


def _check_distribution(name: str, given: Tensor) -> None:
    check_that(given.shape[-1] > 0, f"{name} must have at least one token", given, "pass some probabilities")
    sums = given.sum(dim=-1)
    if (given < 0).any() or not torch.allclose(sums, torch.ones_like(sums), atol=1e-3):
        raise ValueError(
            f"{name} must be probabilities, with rows that sum to one; got entries from {given.min():.3g} to "
            f"{given.max():.3g} and sums from {sums.min():.3g} to {sums.max():.3g}; apply a softmax to logits"
        )
