"""Attention in tiles of queries and keys, with a backward pass that computes the tiles again: FlashAttention."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import nullcontext
from functools import reduce
from itertools import groupby
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor

from course_lib._checks import checked
from course_lib._typing import Float, Size
from course_lib.attention import dot_product_score
from course_lib.efficiency import online_softmax_step

__all__ = ["TiledAttention", "flash_attention"]


@checked(d_k="project one of them to the width of the other", len_k="each key has one value")
def flash_attention(
    query: Float[Tensor, "*batch len_q d_k"],
    key: Float[Tensor, "*batch len_k d_k"],
    value: Float[Tensor, "*batch len_k d_v"],
    block_size: Size = 128,
    *,
    causal: bool = False,
) -> Float[Tensor, "*batch len_q d_v"]:
    """Scaled dot-product attention whose memory grows in proportion to the length, in training too.

    `output = softmax(Q Kᵀ / √d_k) V`, one tile of at most block_size queries × block_size keys at a time. For the
    gradients, only the inputs, the output and one number per query are kept; `TiledAttention` has the formulas. Tiles
    above the diagonal of a causal mask are not computed at all. The gradients cannot be differentiated again.

    Args:
        query: `(..., L_q, d_k)`.
        key: `(..., L_k, d_k)`.
        value: `(..., L_k, d_v)`.
        block_size: queries and keys per tile, 1 or more; the last tiles may be smaller.
        causal: whether the *last* query may attend to all keys, the one before it to all but the last key, and so on.
            This is the alignment at the bottom right, which suits a cache of keys; the diagonal of
            `torch.nn.functional.scaled_dot_product_attention` begins at the top left. The two are the same if
            L_q = L_k. With more queries than keys, the first L_q − L_k queries may attend to nothing and get an output
            of zeros.

    Returns:
        `(..., L_q, d_v)`, in the dtype of the query. Sums are at least in float32.

    Raises:
        RuntimeError: in the backward pass, with `create_graph=True`.

    Source: Dao et al. (2022), algorithms 1 and 4; the tiles are taken in the order of Dao (2024), algorithms 1 and 2.
    """
    batch = torch.broadcast_shapes(*(x.shape[:-2] for x in (query, key, value)))
    query, key, value = (x.expand(*batch, *x.shape[-2:]) for x in (query, key, value))
    device = query.device.type
    # The backward pass runs outside of autocast, and must compute the same scores.
    with torch.autocast(device, enabled=False) if torch.amp.is_autocast_available(device) else nullcontext():
        return TiledAttention.apply(query, key, value, block_size, causal)


class TiledAttention(torch.autograd.Function):
    """The forward and the backward pass of `flash_attention`, which checks what they are called with.

    The forward pass saves `logsumexp_i = log Σ_j exp(s_ij)` for each query i. With it, the weights of a tile are
    `P_ij = exp(s_ij − logsumexp_i)` without a second pass over the row, and the gradient of a loss is

        dV_j = Σ_i P_ij dO_i
        dS_ij = P_ij (dO_i · V_j − D_i)  with  D_i = Σ_j P_ij (dO_i · V_j) = dO_i · O_i
        dQ_i = Σ_j dS_ij K_j / √d_k  and  dK_j = Σ_i dS_ij Q_i / √d_k

    Source: Dao et al. (2022), appendix B.2 and algorithm 4.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, block_size: int, causal: bool) -> Tensor:
        """Output `(..., L_q, d_v)`; query, key, value, output and logsumexp `(..., L_q)` are saved."""
        wide = _dtype_of_sums(query, key, value)
        output = query.new_zeros(*query.shape[:-1], value.shape[-1])  # (..., L_q, d_v)
        logsumexp = query.new_full(query.shape[:-1], -math.inf, dtype=wide)  # (..., L_q)
        for rows, tiles in groupby(_tiles(query.shape[-2], key.shape[-2], block_size, causal), key=itemgetter(0)):
            queries = _scaled(query[..., rows, :], wide)  # (..., block, d_k)
            maximum = queries.new_full(queries.shape[:-1], -math.inf)  # (..., block)
            total, sums = torch.zeros_like(maximum), queries.new_zeros(*queries.shape[:-1], value.shape[-1])
            for _, columns, diagonal in tiles:
                scores = _scores(queries, key[..., columns, :].to(wide), diagonal)  # (..., block, block)
                values = value[..., columns, :].to(wide)
                maximum, total, sums = online_softmax_step(maximum, total, sums, scores, values)
            output[..., rows, :] = (sums / total[..., None]).to(output.dtype)
            logsumexp[..., rows] = maximum + total.log()
        ctx.save_for_backward(query, key, value, output, logsumexp)
        ctx.block_size, ctx.causal = block_size, causal
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of query, key and value, from `grad_output` `(..., L_q, d_v)`.

        Raises:
            RuntimeError: the gradients are to be differentiated again.
        """
        if torch.is_grad_enabled():
            raise RuntimeError(
                "flash_attention has first derivatives only, got create_graph=True; leave it out, or use "
                "scaled_dot_product_attention for second derivatives"
            )
        query, key, value, output, logsumexp = ctx.saved_tensors
        wide = logsumexp.dtype
        grad_query, grad_key, grad_value = (torch.zeros_like(x, dtype=wide) for x in (query, key, value))
        mean = (grad_output.to(wide) * output).sum(dim=-1, keepdim=True)  # (..., L_q, 1)
        by_columns = sorted(_tiles(query.shape[-2], key.shape[-2], ctx.block_size, ctx.causal), key=_first_key)
        for columns, tiles in groupby(by_columns, key=itemgetter(1)):
            keys, values = _scaled(key[..., columns, :], wide), value[..., columns, :].to(wide)
            grad_keys, grad_values = torch.zeros_like(keys), torch.zeros_like(values)  # (..., block, d)
            for rows, _, diagonal in tiles:
                queries, grads = query[..., rows, :].to(wide), grad_output[..., rows, :].to(wide)
                scores = _scores(queries, keys, diagonal)  # (..., block, block)
                weights = torch.exp(scores - logsumexp[..., rows, None])
                grad_scores = weights * (dot_product_score(grads, values) - mean[..., rows, :])
                grad_values += weights.transpose(-2, -1) @ grads
                grad_keys += grad_scores.transpose(-2, -1) @ queries
                grad_query[..., rows, :].add_(grad_scores @ keys)
            grad_key[..., columns, :] = grad_keys / math.sqrt(query.shape[-1])
            grad_value[..., columns, :] = grad_values
        return grad_query.to(query.dtype), grad_key.to(key.dtype), grad_value.to(value.dtype), None, None


def _tiles(len_q: int, len_k: int, block_size: int, causal: bool) -> Iterator[tuple[slice, slice, int | None]]:
    """The queries and the keys of each tile, from left to right in one row of tiles after the other.

    The third entry is the diagonal of the tile's mask (as `torch.triu` counts it), or None where every query may attend
    to every key. Tiles in which no query may attend to any key are left out.
    """
    offset = len_k - len_q  # query i may attend to the keys up to i + offset
    for top in range(max(-offset, 0) if causal else 0, len_q, block_size):  # earlier queries have no key
        bottom = min(top + block_size, len_q)
        for left in range(0, min(len_k, bottom + offset) if causal else len_k, block_size):
            right = min(left + block_size, len_k)
            crossed = causal and right > top + offset + 1  # the first query must not attend to the last key
            yield slice(top, bottom), slice(left, right), top + offset - left + 1 if crossed else None


def _first_key(tile: tuple[slice, slice, int | None]) -> int:
    """Where the keys of a tile begin."""
    return tile[1].start


def _scores(queries: Tensor, keys: Tensor, diagonal: int | None) -> Tensor:
    """The scores of a tile, −∞ from the diagonal on."""
    scores = dot_product_score(queries, keys)  # (..., block, block)
    if diagonal is None:
        return scores
    above = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(diagonal)
    return scores.masked_fill(above, -math.inf)


def _dtype_of_sums(*tensors: Tensor) -> torch.dtype:
    """In what to add up many numbers of these tensors: at least float32, since half precision holds no long sums."""
    return reduce(torch.promote_types, (x.dtype for x in tensors), torch.float32)


def _scaled(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Queries or keys, divided by √d_k: their product with the other ones is scaled with them."""
    return x.to(dtype) / math.sqrt(x.shape[-1])
