"""Mistakes in `label_smoothing_loss`: softmax and logarithm."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.training.label_smoothing_loss_mistakes.parts import by_label, smoothed

mistake = Mistakes()


def _with_log_probs(transform):
    return by_label(smoothed, transform)


@mistake
def softmax_over_positions(logits, targets, smoothing, pad_id):
    """The softmax runs over the positions. Each position shares out one unit of probability among the classes."""
    return _with_log_probs(lambda logits: logits.log_softmax(0))(logits, targets, smoothing, pad_id)


@mistake
def no_softmax(logits, targets, smoothing, pad_id):
    """The logits are used as if they were log-probabilities. Their exponentials do not sum to one yet."""
    return _with_log_probs(lambda logits: logits)(logits, targets, smoothing, pad_id)


@mistake
def probabilities(logits, targets, smoothing, pad_id):
    """Probabilities are used instead of their logarithms."""
    return _with_log_probs(lambda logits: logits.softmax(-1))(logits, targets, smoothing, pad_id)


@mistake
def softmax_twice(logits, targets, smoothing, pad_id):
    """The softmax is applied twice: the output of the first lies between 0 and 1, and the second turns it into nearly
    uniform probabilities."""
    return _with_log_probs(lambda logits: logits.softmax(-1).log_softmax(-1))(logits, targets, smoothing, pad_id)


@mistake
def sigmoid(logits, targets, smoothing, pad_id):
    """A sigmoid is applied to each class separately. The classes have to compete: their probabilities sum to one."""
    return _with_log_probs(lambda logits: torch.nn.functional.logsigmoid(logits))(logits, targets, smoothing, pad_id)


@mistake
def binary_logarithm(logits, targets, smoothing, pad_id):
    """The logarithm has base 2: the loss is in bits, off by a factor of log 2. Use the natural logarithm."""
    return _with_log_probs(lambda logits: logits.log_softmax(-1) / math.log(2))(logits, targets, smoothing, pad_id)


@mistake(look="training: The loss")
def logarithm_of_softmax(logits, targets, smoothing, pad_id):
    """The softmax gives 0 for a logit far below the others, and then the logarithm is −∞. There is one function that
    does both steps at once, from the logits."""
    return _with_log_probs(lambda logits: logits.softmax(-1).log())(logits, targets, smoothing, pad_id)


@mistake(look="attention: The softmax turns scores into weights")
def exponential_overflows(logits, targets, smoothing, pad_id):
    """Large logits overflow: e¹⁰⁰ is more than a float32 can hold. What can be subtracted from all logits of a row
    without changing the probabilities?"""
    return _with_log_probs(lambda logits: logits - logits.exp().sum(-1, keepdim=True).log())(
        logits, targets, smoothing, pad_id
    )


@mistake(look="attention: The softmax turns scores into weights")
def exponential_over_sum(logits, targets, smoothing, pad_id):
    """The exponentials of the logits are divided by their sum before the logarithm: for large logits that is ∞ / ∞.
    What can be subtracted from all logits of a row without changing the probabilities?"""
    return _with_log_probs(lambda logits: (logits.exp() / logits.exp().sum(-1, keepdim=True)).log())(
        logits, targets, smoothing, pad_id
    )


for digits in (5, 6, 7, 8, 9, 10, 12, 15, 16, 20):
    mistake.named(
        f"small_number_in_log_{digits}",
        f"A small number, 1e-{digits}, keeps the logarithm from −∞, but falsifies the result: the log-probability of "
        f"an "
        f"unlikely class is −10,000 here, not {math.log(10**-digits):.0f}. It can be computed exactly from the logits.",
        look="training: The loss",
    )(_with_log_probs(lambda logits, epsilon=10**-digits: (logits.softmax(-1) + epsilon).log()))


for digits in (5, 6, 7, 8, 9, 10):
    mistake.named(
        f"clamped_probability_{digits}",
        f"Probabilities below 1e-{digits} are clipped, which falsifies the result: the log-probability of an unlikely "
        f"class is −10,000 here, not {math.log(10**-digits):.0f}. It can be computed exactly from the logits.",
        look="training: The loss",
    )(_with_log_probs(lambda logits, epsilon=10**-digits: logits.softmax(-1).clamp(min=epsilon).log()))
