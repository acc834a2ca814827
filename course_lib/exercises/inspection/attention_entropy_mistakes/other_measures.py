"""Mistakes in `attention_entropy`: other measures, dtypes, and what is changed."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.inspection.attention_entropy import attention_entropy
from course_lib.exercises.inspection.attention_entropy_mistakes.parts import entropy, terms

mistake = Mistakes()


@mistake
def normalised_and_turned_round(weights):
    """This is 1 − H / log L_k: 1 for a sharp head and 0 for equal weights. The entropy itself is wanted."""
    return 1 - terms(weights).sum(-1) / math.log(max(weights.shape[-1], 2))


@mistake
def divided_by_the_number_of_keys_in_use(weights):
    """The entropy is divided by the logarithm of the number of keys with a positive weight. The entropy in nats is
    not divided by anything."""
    return terms(weights).sum(-1) / (weights > 0).sum(-1).clamp(min=2).to(weights.dtype).log()


@mistake
def binary_entropy(weights):
    """The entropy of an event with probability w is added up for each key: −w log w − (1 − w) log(1 − w). A query
    has a single distribution over all keys, so only the first of the two terms counts."""
    return (terms(weights) + terms(1 - weights)).sum(-1)


@mistake
def log_of_one_plus_w(weights):
    """The logarithm is that of 1 + w. It avoids the NaN, but it is another function: log w itself is wanted where
    the weight is positive."""
    return entropy(torch.log1p)(weights)


@mistake
def power_of_two(weights):
    """This is 2 to the power of an entropy in nats. Besides, the entropy itself is wanted."""
    return 2 ** terms(weights).sum(-1)


@mistake
def square_root_of_the_variance(weights):
    """This is the standard deviation of the weights of a query. It is large for a *sharp* head; the entropy is −Σ w
    log w."""
    return weights.std(-1)


@mistake
def variance(weights):
    """This is the variance of the weights of a query. It is large for a *sharp* head; the entropy is −Σ w log w."""
    return weights.var(-1)


@mistake
def largest_term(weights):
    """Of the terms −w log w, only the largest is returned. The entropy is their sum."""
    return entropy(combine=lambda terms: terms.amax(-1))(weights)


for small in (1e-2, 1e-3):
    mistake.named(
        f"weights_below_{small}_dropped",
        f"Weights below {small} are treated like masked ones. Small weights count as well; only a weight of "
        f"exactly 0 needs care.",
    )(lambda weights, small=small: (terms(weights) * (weights > small)).sum(-1))


@mistake
def normalised(weights):
    """The entropy is divided by log L_k, so that it lies between 0 and 1. That helps when sentences of different
    lengths are compared, but it is not the entropy in nats."""
    return terms(weights).sum(-1) / math.log(max(weights.shape[-1], 2))


@mistake
def perplexity(weights):
    """This is the exponential of the entropy: roughly, how many keys the query attends to. The entropy itself is
    wanted."""
    return terms(weights).sum(-1).exp()


@mistake
def distance_from_equal_weights(weights):
    """This is log L_k − H, which measures how far the weights are from equal ones. It is large for a sharp head,
    while the entropy is small."""
    return math.log(weights.shape[-1]) - terms(weights).sum(-1)


@mistake
def sum_of_squares(weights):
    """This is 1 − Σ w², the probability that two keys drawn at random differ. It also measures how widely the
    weights are spread, but the entropy uses logarithms."""
    return 1 - weights.square().sum(-1)


@mistake
def log_of_the_sum_of_squares(weights):
    """This is −log Σ w², a relative of the entropy. Here each weight has its own logarithm, and the sum comes last."""
    return -weights.square().sum(-1).log()


@mistake
def log_of_the_largest(weights):
    """This is −log of the largest weight only. All keys count in the entropy."""
    return -weights.amax(-1).log()


@mistake
def softmax_again(weights):
    """The weights go through another softmax first. They are the output of one already, and a second softmax makes
    them nearly equal."""
    return terms(weights.softmax(-1)).sum(-1)


@mistake
def softmax_over_queries(weights):
    """The weights go through another softmax, along the axis of the queries. They are the output of a softmax over
    the keys already and need no other."""
    return terms(weights.softmax(-2)).sum(-1)


@mistake
def float32_inside(weights):
    """Somewhere inside, the weights become float32, so float64 input loses half of its digits."""
    return terms(weights.float()).sum(-1).to(weights.dtype)


@mistake
def caller_changed(weights):
    """The entropy is right, but the zero weights of the caller are overwritten: an assignment to a part of a tensor,
    or a method whose name ends in `_`, works in place."""
    weights[weights == 0] = 1
    return -(weights * weights.log()).sum(-1)


@mistake
def keys_dropped(weights):
    """The positive weights are picked out with a mask, which gives one long row of numbers: it is lost which query
    each of them belongs to, and the sum is a single number."""
    positive = weights[weights > 0]
    return -(positive * positive.log()).sum(0, keepdim=True)


@mistake
def share_of_the_keys(weights):
    """This is the exponential of the entropy, divided by the number of keys: roughly, which share of the keys the
    query attends to. The entropy itself is wanted."""
    return attention_entropy(weights).exp() / weights.shape[-1]


@mistake
def entropy_of_the_mean_query(weights):
    """The weights are averaged over the queries first, so there is one entropy per map, that of the mean. Each query
    has its own entropy."""
    return attention_entropy(weights.mean(-2, keepdim=True))[..., 0]


@mistake
def first_key_left_out(weights):
    """The first key is left out of the sum. All keys count, special tokens included."""
    return attention_entropy(weights[..., 1:])


@mistake
def last_key_left_out(weights):
    """The last key is left out of the sum. All keys count."""
    return attention_entropy(weights[..., :-1])


@mistake
def half_the_entropy(weights):
    """The result is half of the entropy. There is no factor in front of the sum except −1."""
    return attention_entropy(weights) / 2


for small in ("1e-3", "1e-4", "1e-5", "1e-6"):
    mistake.named(
        f"log_of_at_least_{small}",
        f"Inside the logarithm, weights below {small} are raised to it. This prevents NaN, but small positive "
        f"weights get a wrong logarithm. Only a weight of exactly 0 needs care.",
    )(lambda weights, small=float(small): -(weights * weights.clamp(min=small).log()).sum(-1))


for small in ("1e-2", "1e-4", "1e-5", "1e-7"):
    mistake.named(
        f"added_in_the_log_{small}",
        f"A number near {small} is added inside the logarithm. It prevents NaN at a zero weight, but it also "
        f"changes the entropy. Treat the zero weights separately, and leave the others as they are.",
    )(lambda weights, small=float(small): -(weights * (weights + small).log()).sum(-1))


@mistake
def both_factors_with_one_minus_w(weights):
    """The terms are those of 1 − w, the weight on all *other* keys. The terms of the entropy are −w log w."""
    return attention_entropy(1 - weights)
