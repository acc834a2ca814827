"""Mistakes in `attention_entropy`: logarithms, and small numbers in them."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.inspection.attention_entropy_mistakes.parts import entropy, safe_log, terms

mistake = Mistakes()


@mistake
def nan_for_zero(weights):
    """A weight of zero gives NaN: log 0 is −∞, and 0 · (−∞) is not a number. The convention 0 · log 0 = 0 has to be
    programmed; it does not happen by itself."""
    return entropy(torch.log)(weights)


@mistake
def nan_replaced_too_late(weights):
    """The NaN is replaced after the sum over the keys. By then one zero weight has spoilt the whole query, so a
    query with any masked key gets an entropy of 0."""
    return entropy(torch.log, lambda terms: terms.sum(-1).nan_to_num(0.0))(weights)


@mistake
def sign_lost(weights):
    """The result is negative. The logarithm of a weight is at most zero, so the sum needs a minus sign in front."""
    return entropy(combine=lambda terms: -terms.sum(-1))(weights)


@mistake
def absolute_value_twice(weights):
    """The minus sign is there twice: once in front of the sum and once inside, or a logarithm of 1/w with a minus
    sign. And the weight is missing from each term."""
    return safe_log(weights).sum(-1)


@mistake
def in_bits(weights):
    """The logarithm has base 2, so the entropy is in bits. In nats it is the natural logarithm."""
    return entropy(lambda w: torch.where(w > 0, w, 1).log2())(weights)


@mistake
def in_base_ten(weights):
    """The logarithm has base 10. In nats it is the natural logarithm."""
    return entropy(lambda w: torch.where(w > 0, w, 1).log10())(weights)


@mistake
def log_softmax_of_weights(weights):
    """The logarithms are those of a softmax of the weights. The weights are the output of a softmax already, so
    their own logarithm is needed."""
    return entropy(lambda w: w.log_softmax(-1))(weights)


for small in (1e-3, 1e-6, 1e-8, 1e-9, 1e-10):
    exponent = round(math.log10(small))
    seen = "every entropy" if small >= 1e-3 else "the entropy, which shows in float64 or with many keys"
    mistake.named(
        f"added_inside_the_log_1e{exponent}",
        f"A number as small as 1e{exponent} is added inside the logarithm. It prevents NaN at a zero weight, but "
        f"it also changes {seen}. Treat the zero weights separately, and leave the others as they are.",
    )(entropy(lambda w, small=small: (w + small).log()))


for small in (1e-6, 1e-8, 1e-9):
    exponent = round(math.log10(small))
    mistake.named(
        f"added_to_the_weights_1e{exponent}",
        f"A number as small as 1e{exponent} is added to the weights, and they no longer sum to one. It prevents "
        f"NaN at a zero weight, but it changes the entropy, which shows in float64 or with many keys.",
    )(lambda weights, small=small: terms(weights + small).sum(-1))
    mistake.named(
        f"weights_clamped_1e{exponent}",
        f"Zero weights are raised to a number such as 1e{exponent} in the logarithm and in front of it. Then each "
        f"masked key adds a little to the entropy, where it should add exactly nothing.",
    )(lambda weights, small=small: terms(weights.clamp(min=small)).sum(-1))
