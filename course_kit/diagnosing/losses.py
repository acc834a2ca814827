"""What the logits are worth: their range, the loss at the start, and whether one batch can be learnt by heart."""

from __future__ import annotations

import math

import torch
from torch import nn

from course_kit.diagnosing.gradients import batch_loss, step
from course_kit.diagnosing.report import Finding
from course_kit.diagnosing.subject import Subject
from course_lib.debugging import start_loss

__all__ = ["logit_values", "one_batch", "starting_loss"]

_EXCESS = (
    1.0  # nats above log V: logits of standard deviation s start at about s² / 2, and s is up to 1.4 in usual ones
)
_STEPS = 20
_RATES = (1e-3, 1e-2)  # of Adam; the second one where the first is too slow for a small model
_FALL = 0.1  # of the loss at the start


def logit_values(subject: Subject) -> Finding:
    """Are the logits finite, and scores rather than probabilities?"""
    name, logits = "logits", subject.logits.float()
    missing = (~logits.isfinite()).double().mean().item()
    if missing:
        message = (
            "There are NaN or infinite logits. A softmax over a row that is masked completely gives NaN (is the "
            "mask the right way round?), and so does the logarithm or the square root of a number that is not positive."
        )
        return Finding(name, "wrong", message, missing, "share that is not finite")
    sums = logits.sum(dim=-1)
    if logits.shape[-1] > 1 and logits.min() >= 0 and (sums - 1).abs().max() < 1e-3:
        message = (
            "The logits are probabilities: they sum to one at each position. Cross-entropy applies the softmax itself, "
            "so the loss cannot come close to zero. Return the scores before the softmax."
        )
        return Finding(name, "wrong", message, sums.mean().item(), "mean sum over the vocabulary")
    message = "All logits are finite, and they are not probabilities."
    return Finding(name, "fine", message, logits.abs().max().item(), "largest logit")


def starting_loss(subject: Subject) -> Finding:
    """Is the loss close to log V, that of a guess at random?"""
    name = "start loss"
    if subject.targets is None:
        return Finding(name, "not checked", "There is no target; pass targets.")
    with torch.no_grad():
        loss, chance = start_loss(subject.logits.float(), subject.targets.to(subject.logits.device), -100)
    measured = f"nats per target, log V is {chance:.3f}"
    if not math.isfinite(loss):
        return Finding(name, "wrong", "The loss is not finite.", loss, measured)
    if loss > chance + _EXCESS:
        message = (
            f"The loss ({subject.aligned}) is far above log V, so the model is sure of wrong answers. The logits are "
            f"too large (an embedding with variance 1 as output projection, a missing scale), or the targets are not "
            f"those that the model was trained for."
        )
        return Finding(name, "wrong" if loss > 2 * chance + _EXCESS else "suspicious", message, loss, measured)
    if loss < chance - _EXCESS:
        message = (
            f"The loss ({subject.aligned}) is far below log V. The model has been trained, or it sees the answer: then "
            f"causality is not fine."
        )
        return Finding(name, "fine", message, loss, measured)
    message = (
        f"The loss ({subject.aligned}) is within {_EXCESS:g} nat of log V, as before training; logits with standard "
        f"deviation s add about s² / 2."
    )
    return Finding(name, "fine", message, loss, measured)


def one_batch(subject: Subject) -> Finding:
    """Does the loss on this batch fall when a copy is trained on nothing else?"""
    name, measured = "one batch", f"loss after {_STEPS} steps as a share of the loss at the start"
    if subject.targets is None:
        return Finding(name, "not checked", "There is no target; pass targets.")
    best, start = math.inf, math.nan
    for rate in _RATES:
        losses = _fit(subject, rate)
        if not losses:
            return Finding(name, "not checked", "The loss has no gradient.")
        start, best = losses[0], min(best, losses[-1])
        if best < (1 - _FALL) * start:
            break
    share = best / start if start else 0.0
    if not math.isfinite(share):
        message = "The loss becomes NaN or infinite while the model is trained on this batch."
        return Finding(name, "wrong", message, share, measured)
    if share < 1 - _FALL or start < 0.1:
        return Finding(name, "fine", "The model can learn this batch.", share, measured)
    message = (
        "The loss hardly falls although the model is trained on this one batch only, which every model should learn by "
        "heart. Its layers are not trained, its output is limited, or the targets do not follow from the inputs."
    )
    return Finding(name, "wrong" if share > 0.99 else "suspicious", message, share, measured)


def _fit(subject: Subject, rate: float) -> list[float]:
    model = subject.trained_copy()
    for module in model.modules():
        if isinstance(module, nn.RNNBase) and not module.dropout:
            module.train()  # cuDNN has no backward pass for a recurrent layer in eval mode
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        return []
    optimizer = torch.optim.Adam(parameters, lr=rate, foreach=False)
    losses: list[float] = []
    for _ in range(_STEPS + 1):
        loss = batch_loss(subject, model)
        losses.append(loss.item())
        if not loss.requires_grad:
            return []
        step(optimizer, parameters, loss)
    return losses
