"""Queries, keys and values for the repairs of attention."""

from __future__ import annotations

import torch
from torch import Tensor

from course_kit.exercises._draw import Draw

__all__ = ["queries_keys_values"]


def queries_keys_values(
    draw: Draw, batch: tuple[int, ...] = (), dtype: torch.dtype = torch.float32, *, scale: float = 1.0, sizes=None
) -> tuple[Tensor, Tensor, Tensor]:
    """`(..., L_q, d_k)`, `(..., L_k, d_k)` and `(..., L_k, d_v)`; `sizes` is (L_q, L_k, d_k, d_v), drawn if left out.

    Queries and keys are multiplied by `scale`, and so the scores by its square.
    """
    len_q, len_k, d_k, d_v = sizes or draw.sizes(4, 2, 9, but=batch)
    return (
        draw.normal(*batch, len_q, d_k, dtype=dtype, scale=scale),
        draw.normal(*batch, len_k, d_k, dtype=dtype, scale=scale),
        draw.normal(*batch, len_k, d_v, dtype=dtype),
    )
