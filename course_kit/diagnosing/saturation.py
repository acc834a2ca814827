"""Are the attention weights saturated, with nearly all the weight of each query on a single key?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from course_kit.diagnosing.report import Finding
from course_kit.diagnosing.subject import Subject, seeded

__all__ = ["attention_weights"]

_LARGEST = 0.999  # weight on one key, from which on the gradients of the row's scores are below 0.001
_SHARE = 0.9  # of the queries of a layer
_MASKED = -5e3  # scores below this are those of masked keys: masks of −10,000 are in use
_SOFTMAX = {torch.ops.aten._softmax.default, torch.ops.aten._safe_softmax.default}


def attention_weights(subject: Subject) -> Finding:
    """Is there a layer in which nearly every query attends to one key only?"""
    name, measured = "attention weights", f"largest share in a layer of queries with a weight above {_LARGEST}"
    recorder = _Recorder({subject.batch.inputs[stream].shape[1] for stream in subject.batch.streams}, subject.logits)
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad(), seeded(0), sdpa_kernel(SDPBackend.MATH), recorder:
            subject.batch.logits(subject.copied())
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
    shares = recorder.shares
    if not shares:
        message = "No softmax over the keys was seen: the model has no attention, or computes it in another way."
        return Finding(name, "not checked", message)
    saturated = sum(share > _SHARE for share in shares)
    if not saturated:
        message = "The attention weights are not saturated."
        return Finding(name, "fine", message, max(shares), measured)
    message = (
        f"The softmax is saturated in {saturated} of {len(shares)} attention layers: nearly every query gives all its "
        f"weight to one key, so that hardly any gradient reaches the query and key projections. Look for scores that "
        f"are not divided by √d_k, and for weights or embeddings that are too large. (A trained model may attend like "
        f"this on purpose.)"
    )
    return Finding(name, "suspicious", message, max(shares), measured)


class _Recorder(TorchDispatchMode):
    """For each softmax over keys `(..., L_q, L_k)`: the share of queries that attend to one of several keys only.

    Args:
        lengths: that L_q and L_k may have.
        logits: a softmax of their shape is taken for the output's.
    """

    def __init__(self, lengths: set[int], logits: Tensor):
        super().__init__()
        self.lengths, self.output = lengths, logits.shape
        self.shares: list[float] = []

    def __torch_dispatch__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in _SOFTMAX and args[1] in (-1, result.dim() - 1) and self._is_attention(result):
            several = (args[0] > _MASKED).sum(dim=-1) > 1  # (..., L_q)
            if several.any():
                self.shares.append((result.amax(dim=-1)[several] > _LARGEST).double().mean().item())
        return result

    def _is_attention(self, weights: Tensor) -> bool:
        return weights.dim() > 2 and {*weights.shape[-2:]} <= {1, *self.lengths} and weights.shape != self.output
