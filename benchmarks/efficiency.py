"""Attention explicit, in tiles and linear against PyTorch's fused attention, in float32."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks.timing import compare
from course_kit.chunked_linear_attention import chunked_linear_attention
from course_kit.flash_attention import flash_attention
from course_lib import scaled_dot_product_attention, tiled_attention
from course_lib.masking import causal_mask

LENGTHS = (256, 1024, 4096)
HEADS, D, BLOCK, PAIRS = 4, 64, 128, 5


def rows() -> Iterator[tuple[str, float, tuple[float, float]]]:
    """What was compared, the median ratio, and its quartiles. Where ours has no mask, PyTorch's has none either."""
    for length in LENGTHS:
        mask = causal_mask(length)
        for name, ours, causal in (
            ("explicit", lambda q, k, v: scaled_dot_product_attention(q, k, v)[0], False),
            ("explicit, causal", lambda q, k, v, mask=mask: scaled_dot_product_attention(q, k, v, mask)[0], True),
            (f"tiled_attention, blocks of {BLOCK}", lambda q, k, v: tiled_attention(q, k, v, BLOCK), False),
            (f"flash_attention, blocks of {BLOCK}", lambda q, k, v: flash_attention(q, k, v, BLOCK), False),
            ("flash_attention, causal", lambda q, k, v: flash_attention(q, k, v, BLOCK, causal=True), True),
            ("chunked_linear_attention", chunked_linear_attention, True),
        ):
            for way, run in (("forward", _forward), ("forward + backward", _training)):
                inputs = torch.randn(3, 1, HEADS, length, D)
                result = compare(run(ours, inputs), run(_fused(causal), inputs), warm_up=1, pairs=PAIRS)
                yield f"{name:36} {way:18} length {length:4}, {HEADS} heads of {D}", result.ratio, result.spread


def _fused(causal: bool) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def _forward(attention: Callable[..., Tensor], inputs: Tensor) -> Callable[[], None]:
    def run() -> None:
        with torch.no_grad():
            attention(*inputs)

    return run


def _training(attention: Callable[..., Tensor], inputs: Tensor) -> Callable[[], None]:
    def run() -> None:
        leaves = [x.clone().requires_grad_() for x in inputs]
        attention(*leaves).sum().backward()

    return run
