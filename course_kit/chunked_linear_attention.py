"""Linear attention that computes the positions of a chunk side by side: the same numbers, in fewer and larger steps."""

from __future__ import annotations

import torch
from torch import Tensor

from course_lib._checks import checked
from course_lib._typing import Float, Size
from course_lib.attention import dot_product_score

__all__ = ["chunked_linear_attention"]


@checked(length="causal linear attention has one query per key", d_k="project one of them to the width of the other")
def chunked_linear_attention(
    query: Float[Tensor, "*batch length d_k"],
    key: Float[Tensor, "*batch length d_k"],
    value: Float[Tensor, "*batch length d_v"],
    *,
    chunk_size: Size = 64,
) -> Float[Tensor, "*batch length d_v"]:
    """What `course_lib.linear_attention` computes, chunk by chunk.

    The positions of a chunk attend to each other through a masked matrix, and to all earlier chunks through the state;
    chunk_size 1 is the recurrent form, and a chunk as long as the sequence is the parallel one.

    Source: Katharopoulos et al. (2020), equations 7 to 20. The chunks are those of Hua et al. (2022), who use another
        similarity inside them.
    """
    dtype, wide = query.dtype, torch.promote_types(query.dtype, torch.float32)  # half precision holds no long sums
    query, key, value = query.to(wide), key.to(wide), value.to(wide)
    query, key = (x.relu() + x.clamp(max=0.0).exp() for x in (query, key))  # elu(x) + 1, never rounded to 0
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
