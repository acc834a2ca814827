"""`MultiHeadAttention` against `nn.MultiheadAttention`: self-attention with the same weights, float32."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import nn

from benchmarks.timing import compare
from course_kit.nn import MultiHeadAttention

SHAPES = ((32, 32, 256, 4), (8, 128, 512, 8), (2, 512, 512, 8))  # batch, length, d_model, heads


def rows() -> Iterator[tuple[str, float, tuple[float, float]]]:
    """What was compared, the median ratio, and its quartiles."""
    for batch, length, d_model, num_heads in SHAPES:
        ours = MultiHeadAttention(d_model, num_heads)
        theirs = ours.to_torch()
        x = torch.randn(batch, length, d_model)
        for path, our_options, their_options in (
            ("fused", {"need_weights": False}, {"need_weights": False}),
            ("explicit", {"need_weights": True}, {"need_weights": True, "average_attn_weights": False}),
        ):
            for name, run in (("forward", _forward), ("forward + backward", _training)):
                result = compare(run(ours, x, our_options), run(theirs, x, their_options))
                shape = f"batch {batch}, length {length}, d_model {d_model}, {num_heads} heads"
                yield f"{path:8} {name:18} {shape}", result.ratio, result.spread


def _forward(module: nn.Module, x: torch.Tensor, options: dict) -> Callable[[], None]:
    def run() -> None:
        # Training mode, so that PyTorch's module takes the path that it takes in training; no graph is kept.
        with torch.no_grad():
            module(x, x, x, **options)

    return run


def _training(module: nn.Module, x: torch.Tensor, options: dict) -> Callable[[], None]:
    x = x.clone().requires_grad_()

    def run() -> None:
        module.zero_grad()
        x.grad = None
        module(x, x, x, **options)[0].sum().backward()

    return run
