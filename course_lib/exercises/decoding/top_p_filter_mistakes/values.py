"""Mistakes in `top_p_filter`: what is filled in, and what is returned."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.top_p_filter import top_p_filter
from course_lib.exercises.decoding.top_p_filter_mistakes.parts import filter_with

mistake = Mistakes()


@mistake
def turned_round(logits, p):
    """Exactly the tokens of the set are set to −∞, and the others are kept: the condition is reversed."""
    return filter_with(restore=lambda keep, order: ~keep[order.argsort()])(logits, p)


@mistake
def filled_with_zero(logits, p):
    """The others get the logit 0. A softmax gives that a probability of its own: which logit gives none?"""
    return filter_with(fill=0.0)(logits, p)


@mistake
def filled_with_a_large_number(logits, p):
    """The others get a large negative number. They should get −∞, which is below every logit."""
    return filter_with(fill=-1e9)(logits, p)


@mistake
def filled_with_the_smallest_number(logits, p):
    """The others get the smallest number of the dtype. It should be −∞."""
    return top_p_filter(logits, p).nan_to_num(neginf=torch.finfo(logits.dtype).min)


@mistake
def probabilities_returned(logits, p):
    """Probabilities are returned instead of logits. A softmax is still applied after this filter."""
    return top_p_filter(logits, p).softmax(-1)


@mistake
def probabilities_not_renormalised(logits, p):
    """The old probabilities of the set are returned, with zeros for the others. The contract asks for logits, with −∞
    for the others."""
    return filter_with(of=lambda logits: logits.softmax(-1), fill=0.0)(logits, p)


@mistake
def log_probabilities_returned(logits, p):
    """Log-probabilities are returned instead of the logits. They give the same softmax, but the kept ones should stay
    as they are."""
    return filter_with(of=lambda logits: logits.log_softmax(-1))(logits, p)


@mistake
def new_log_probabilities_returned(logits, p):
    """The log-probabilities of the set are returned. The kept logits should stay as they are."""
    return top_p_filter(logits, p).log_softmax(-1)


@mistake
def only_the_set_returned(logits, p):
    """Only the kept logits are returned, so the information which tokens they belong to is lost. Keep the shape, with
    −∞ for the others."""
    return logits[top_p_filter(logits, p).isfinite()]


@mistake
def mask_returned(logits, p):
    """A mask is returned, with True for the set. The contract asks for logits, with −∞ for the others."""
    return top_p_filter(logits, p).isfinite()


@mistake
def best_alone(logits, p):
    """Only the most probable token is kept. That is greedy search; `p` determines how many more tokens belong to the
    set."""
    return filter_with(keep=lambda sums, probs, p: sums < 0)(logits, p)


@mistake
def softmax_overflows(logits, p):
    """Exponentials of large logits leave the range of the dtype. `torch.softmax` subtracts a constant first."""
    return filter_with(probs=lambda logits: logits.exp() / logits.exp().sum())(logits, p)


@mistake
def without_a_sum_to_one(logits, p):
    """Exponentials are summed that were never divided by their sum: they are not probabilities yet."""
    return filter_with(probs=lambda logits: logits.exp())(logits, p)


@mistake
def logits_overwritten(logits, p):
    """The result is right, but it is written into `logits`, which belongs to the caller. A method whose name ends in
    `_`, or an assignment to a part of a tensor, does that; `masked_fill` and `torch.where` return a new tensor."""
    logits[~top_p_filter(logits, p).isfinite()] = -math.inf
    return logits
