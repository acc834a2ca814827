"""`label_smoothing_loss` for training: the same number and gradient in less time, on a CPU and on a GPU.

On a CPU: with a vocabulary of thousands, the loss of a batch reads and writes arrays of tens of megabytes again and
again, and half of a small model's step goes there. In `chunked_label_smoothing_loss` a few rows at a time pass through
all of it while they are in the processor's cache, and their gradient is computed on the way, since it needs the same
exponentials.

On a GPU: to select the targets that count, the host would have to wait until their number is known. In
`masked_label_smoothing_loss` no shape depends on it.
"""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor

from course_lib._checks import checked
from course_lib._typing import Bounds, Float, Int
from course_lib.training import check_targets

__all__ = ["chunked_label_smoothing_loss", "masked_label_smoothing_loss"]

ROWS = 64  # of a vocabulary of 6,000 in float32: 1.5 MB


@checked(count="flatten both, with logits.flatten(0, 1) and targets.flatten()")
def chunked_label_smoothing_loss(
    logits: Float[Tensor, "count vocab"],
    targets: Int[Tensor, " count"],
    smoothing: Annotated[float, Bounds(0, 1)],
    pad_id: int,
) -> Float[Tensor, ""]:
    """`course_lib.training.label_smoothing_loss`, computed by rows; arguments as there.

    The gradient of a row is softmax(logits) − (1 − ε) · [k = target] − ε / V, divided by the number of targets that
    count. It is kept in the dtype of the logits; sums are float32 or better.

    Returns:
        A scalar in float32 (float64 for float64 logits).

    Raises:
        ValueError: every target is padding, or one is not a class.
    """
    check_targets(targets, logits.shape[1], pad_id)
    return _ChunkedLoss.apply(logits, targets, smoothing, pad_id)


@checked(count="flatten both, with logits.flatten(0, 1) and targets.flatten()")
def masked_label_smoothing_loss(
    logits: Float[Tensor, "count vocab"],
    targets: Int[Tensor, " count"],
    smoothing: Annotated[float, Bounds(0, 1)],
    pad_id: int,
) -> Float[Tensor, ""]:
    """`course_lib.training.label_smoothing_loss` without a wait for the GPU; arguments as there.

    Raises:
        ValueError: the targets are on the CPU, and every one is padding, or one is not a class. On a GPU this is not
            checked, since the check would have to wait; if every target is padding, the loss is then NaN.
    """
    if targets.device.type == "cpu":
        check_targets(targets, logits.shape[1], pad_id)
    real = targets != pad_id  # (N,)
    classes = targets.long().masked_fill(~real, 0)  # a padded position may name no class; what it picks is thrown away
    log_probs = torch.log_softmax(logits, dim=-1)  # (N, V)
    log_prob_of_target = log_probs.gather(1, classes[:, None])[:, 0]  # (N,)
    loss = -(1 - smoothing) * log_prob_of_target  # (N,)
    if smoothing > 0:
        # A sum and a division of (N,), not a mean: backwards, a mean would divide all (N, V) entries.
        loss = loss - smoothing / log_probs.shape[1] * log_probs.sum(dim=1)  # (N,)
    return loss.masked_fill(~real, 0.0).sum() / real.sum()


class _ChunkedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits: Tensor, targets: Tensor, smoothing: float, pad_id: int) -> Tensor:
        counted = targets != pad_id  # (N,)
        classes = targets.masked_fill(~counted, 0)
        dtype = torch.promote_types(logits.dtype, torch.float32)
        share = counted.to(dtype) / counted.sum()  # (N,), what a row has of the mean
        grad = torch.empty_like(logits)
        loss = torch.zeros((), dtype=dtype, device=logits.device)
        for start in range(0, len(logits), ROWS):
            rows = slice(start, start + ROWS)
            x, row_share, target = logits[rows].to(dtype, copy=True), share[rows, None], classes[rows, None]
            x -= x.amax(dim=1, keepdim=True)  # softmax does not change, exp cannot overflow
            of_target, mean = x.gather(1, target)[:, 0], x.mean(dim=1)  # (n,)
            x.exp_()
            total = x.sum(dim=1, keepdim=True)  # (n, 1)
            losses = total.log()[:, 0] - (1 - smoothing) * of_target  # (n,)
            if smoothing:  # 0 · ∞, of a class that is ruled out, would be NaN
                losses -= smoothing * mean
            loss += (losses * row_share[:, 0]).sum()
            x *= row_share / total
            x -= row_share * (smoothing / x.shape[1])
            x.scatter_add_(1, target, -(1 - smoothing) * row_share)
            grad[rows] = x
        ctx.save_for_backward(grad)
        return loss

    @staticmethod
    def backward(ctx, outer: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = ctx.saved_tensors
        return grad * outer.to(grad.dtype), None, None, None
