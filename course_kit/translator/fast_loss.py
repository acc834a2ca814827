"""`label_smoothing_loss` for training: the same number and gradient in less time, on a CPU and on a GPU.

On a CPU: with a vocabulary of thousands, the loss of a batch reads and writes arrays of tens of megabytes again and
again, and half of a small model's step goes there. In `chunked_label_smoothing_loss` a few rows at a time pass through
all of it while they are in the processor's cache, and their gradient is computed on the way, since it needs the same
exponentials.

`r_drop_loss` is the loss of two passes over the same batch, which dropout made different, and of how far they disagree.

On a GPU: to select the targets that count, the host would have to wait until their number is known. In
`masked_label_smoothing_loss` no shape depends on it.
"""

from __future__ import annotations

import math
from typing import Annotated

import torch
from torch import Tensor

from course_kit._checks import check_number
from course_lib._checks import checked
from course_lib._typing import Bounds, Float, Int
from course_lib.training import check_targets

__all__ = ["check_weight", "chunked_label_smoothing_loss", "masked_label_smoothing_loss", "r_drop_loss"]

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


@checked(count="flatten both passes, with logits.flatten(1, 2) and targets.flatten()")
def r_drop_loss(
    logits: Float[Tensor, "2 count vocab"],
    targets: Int[Tensor, " count"],
    smoothing: Annotated[float, Bounds(0, 1)],
    pad_id: int,
    r_drop: float,
) -> Float[Tensor, ""]:
    """The mean loss of two passes, plus `r_drop / 4` times the divergence of one from the other, in both directions.

        loss = ½ (L₁ + L₂) + r_drop / 4 · (KL(p₁ ‖ p₂) + KL(p₂ ‖ p₁)),  each a mean over the targets that count

    This is half of the loss in the paper, whose α is `r_drop`; 0 leaves the mean of the two losses.
    Computed by rows, like `chunked_label_smoothing_loss`.

    Args:
        logits: of two passes with different dropout, `(2, N, V)`.
        targets, smoothing, pad_id: as in `course_lib.training.label_smoothing_loss`, the same for both passes.
        r_drop: weight of the disagreement, 0 or more.

    Returns:
        A scalar in float32 (float64 for float64 logits).

    Raises:
        ValueError: every target is padding, one is not a class, or r_drop is negative.

    Source: Liang et al. (2021), R-Drop, section 2.
    """
    check_targets(targets, logits.shape[2], pad_id)
    check_weight(r_drop)
    return _RDropLoss.apply(logits, targets, smoothing, pad_id, r_drop)


def check_weight(r_drop: float) -> None:
    """Refuse what is not a weight of R-Drop.

    Raises:
        TypeError: it is not a number.
        ValueError: it is negative or not finite.
    """
    check_number("r_drop", r_drop)
    if not 0 <= r_drop < math.inf:
        raise ValueError(f"r_drop must be finite and not negative, got {r_drop}")


class _RDropLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits: Tensor, targets: Tensor, smoothing: float, pad_id: int, r_drop: float) -> Tensor:
        counted = targets != pad_id  # (N,)
        classes = targets.masked_fill(~counted, 0)
        dtype = torch.promote_types(logits.dtype, torch.float32)
        share = counted.to(dtype) / (2 * counted.sum())  # (N,), what a row of one pass has of the mean
        grad = torch.empty_like(logits)
        loss = torch.zeros((), dtype=dtype, device=logits.device)
        for start in range(0, len(targets), ROWS // 2):
            rows = slice(start, start + ROWS // 2)
            row_share = share[rows, None]  # (n, 1)
            target = classes[rows, None].expand(2, -1, 1)  # (2, n, 1)
            log_p = torch.log_softmax(logits[:, rows].to(dtype), dim=-1)  # (2, n, V)
            p = log_p.exp()
            losses = -(1 - smoothing) * log_p.gather(2, target)  # (2, n, 1)
            if smoothing:
                losses -= smoothing * log_p.mean(dim=2, keepdim=True)
            apart = log_p - log_p.flip(0)  # (2, n, V), how far each pass lies above the other
            divergence = (p * apart).sum(dim=2, keepdim=True)  # (2, n, 1)
            loss += ((losses + r_drop / 2 * divergence) * row_share).sum()
            # The divergence from the other pass, and that of the other pass from this one, by these logits.
            x = apart.sub_(divergence).mul_(p).add_(p).sub_(p.flip(0)).mul_(r_drop / 2)
            x += p - smoothing / p.shape[2]
            x.scatter_add_(2, target, torch.full_like(losses, smoothing - 1))
            grad[:, rows] = x * row_share
        ctx.save_for_backward(grad)
        return loss

    @staticmethod
    def backward(ctx, outer: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = ctx.saved_tensors
        return grad * outer.to(grad.dtype), None, None, None, None


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
