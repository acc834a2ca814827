"""Mistakes in `label_smoothing_loss`: other formulas, and parts of the formula."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.training.label_smoothing_loss import label_smoothing_loss
from course_lib.exercises.training.label_smoothing_loss_mistakes.parts import by_label, column, real_positions, smoothed

mistake = Mistakes()


def _picked(log_probs, targets):
    return log_probs.gather(1, targets[:, None])[:, 0]


@mistake(look="training: The loss")
def zero_is_padding(logits, targets, smoothing, pad_id):
    """Targets of 0 are left out, whatever `pad_id` says."""
    return by_label(smoothed)(logits, targets, smoothing, 0)


@mistake(look="training: The loss")
def padding_in_the_spread_term(logits, targets, smoothing, pad_id):
    """The target term excludes padding, but the smoothing term averages over all positions. A padded position should
    count in neither."""
    log_probs = logits.log_softmax(-1)
    return (
        -(1 - smoothing) * _picked(log_probs, targets)[real_positions(targets, pad_id)].mean()
        - smoothing * log_probs.mean()
    )


@mistake
def divergence(logits, targets, smoothing, pad_id):
    """This is the Kullback–Leibler divergence: the entropy of the smoothed label has been subtracted. The gradients are
    the same, but the value is not the cross-entropy."""
    vocab = logits.shape[1]
    one_hot = torch.nn.functional.one_hot(targets, vocab).to(logits.dtype)
    q = smoothed(one_hot, vocab, smoothing, pad_id)
    each = (torch.xlogy(q, q) - q * logits.log_softmax(-1)).sum(-1)
    return each[real_positions(targets, pad_id)].mean()


@mistake
def divergence_other_convention(logits, targets, smoothing, pad_id):
    """This is a Kullback–Leibler divergence, with the mass on the V − 2 classes that are neither target nor padding.
    Here the loss is the cross-entropy, and the mass goes to all V."""
    vocab = logits.shape[1]
    one_hot = torch.nn.functional.one_hot(targets, vocab).to(logits.dtype)
    others = (1 - one_hot) * (1 - column(vocab, pad_id, one_hot))
    q = (1 - smoothing) * one_hot + smoothing / (vocab - 2) * others
    each = (torch.xlogy(q, q) - q * logits.log_softmax(-1)).sum(-1)
    return each[real_positions(targets, pad_id)].mean()


@mistake
def padding_taken_out_of_the_classes(logits, targets, smoothing, pad_id):
    """The logit of padding is removed, so the other classes share its probability. Padded *positions* are excluded, but
    the class stays."""
    kept = [k for k in range(logits.shape[1]) if k != pad_id]
    log_probs = logits[:, kept].log_softmax(-1)
    real = real_positions(targets, pad_id)
    own = targets - (targets > pad_id).to(targets.dtype)
    own = own.clamp(max=len(kept) - 1)
    return (-(1 - smoothing) * _picked(log_probs, own) - smoothing * log_probs.mean(-1))[real].mean()


@mistake
def logits_overwritten(logits, targets, smoothing, pad_id):
    """The largest logit is subtracted in place, although `logits` belongs to the caller and is needed for the gradient.
    Use an operation that creates a new tensor."""
    logits -= logits.max(-1, keepdim=True).values
    return label_smoothing_loss(logits, targets, smoothing, pad_id)
