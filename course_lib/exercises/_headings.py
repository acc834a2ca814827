"""Headings of the book that the mistakes of several exercises point to: page, colon, heading."""

from __future__ import annotations

__all__ = [
    "DECODER_LAYER",
    "DIVIDE_BY_ROOT",
    "ENCODER_LAYER",
    "GREEDY_DECODING",
    "PRE_OR_POST",
    "RESIDUALS",
    "VIEW_BUG",
]


VIEW_BUG = "view_transpose_contiguous: The bug"
GREEDY_DECODING = "decoding: Greedy decoding"
DIVIDE_BY_ROOT = "scaled_dot_product: Why divide by the root of d"
RESIDUALS = "transformer: Residual connections and layer norm"
PRE_OR_POST = "pre_norm_post_norm: Pre-norm and post-norm"
ENCODER_LAYER = "transformer: The encoder layer"
DECODER_LAYER = "transformer: The decoder layer"
