"""Mistakes in the entropy of attention weights: the logarithm, zero weights, the axis, and other measures."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._exercise import Exercise

__all__ = ["add_slips"]


def _safe_log(weights):
    return torch.where(weights > 0, weights, 1).log()


def _terms(weights):
    return -weights * _safe_log(weights)


def _entropy(log=_safe_log, combine=lambda terms: terms.sum(-1)):
    """The entropy with another logarithm, or other sums."""
    return lambda weights: combine(-weights * log(weights))


def add_slips(exercise: Exercise) -> None:
    """Add the mistakes to the exercise `attention_entropy`."""
    _add_logarithms(exercise)
    _add_small_numbers(exercise)
    _add_sums(exercise)
    _add_other_measures(exercise)
    _add_conduct(exercise)


def _add_logarithms(exercise: Exercise) -> None:
    exercise.misconception(
        "nan_for_zero",
        "A weight of zero gives NaN: log 0 is −∞, and 0 · (−∞) is not a number. The convention 0 · log 0 = 0 has to be "
        "programmed; it does not happen by itself.",
    )(_entropy(torch.log))
    exercise.misconception(
        "nan_replaced_too_late",
        "The NaN is replaced after the sum over the keys. By then one zero weight has spoilt the whole query, so a "
        "query with any masked key gets an entropy of 0.",
    )(_entropy(torch.log, lambda terms: terms.sum(-1).nan_to_num(0.0)))
    exercise.misconception(
        "sign_lost",
        "The result is negative. The logarithm of a weight is at most zero, so the sum needs a minus sign in front.",
    )(_entropy(combine=lambda terms: -terms.sum(-1)))
    exercise.misconception(
        "absolute_value_twice",
        "The minus sign is there twice: once in front of the sum and once inside, or a logarithm of 1/w with a minus "
        "sign. And the weight is missing from each term.",
    )(lambda weights: _safe_log(weights).sum(-1))
    exercise.misconception(
        "in_bits",
        "The logarithm has base 2, so the entropy is in bits. In nats it is the natural logarithm.",
    )(_entropy(lambda w: torch.where(w > 0, w, 1).log2()))
    exercise.misconception(
        "in_base_ten",
        "The logarithm has base 10. In nats it is the natural logarithm.",
    )(_entropy(lambda w: torch.where(w > 0, w, 1).log10()))
    exercise.misconception(
        "log_softmax_of_weights",
        "The logarithms are those of a softmax of the weights. The weights are the output of a softmax already, so "
        "their own logarithm is needed.",
    )(_entropy(lambda w: w.log_softmax(-1)))


def _add_small_numbers(exercise: Exercise) -> None:
    for small in (1e-3, 1e-6, 1e-8, 1e-9, 1e-10):
        exponent = round(math.log10(small))
        seen = "every entropy" if small >= 1e-3 else "the entropy, which shows in float64 or with many keys"
        exercise.misconception(
            f"added_inside_the_log_1e{exponent}",
            f"A number as small as 1e{exponent} is added inside the logarithm. It prevents NaN at a zero weight, but "
            f"it also changes {seen}. Treat the zero weights separately, and leave the others as they are.",
        )(_entropy(lambda w, small=small: (w + small).log()))
    for small in (1e-6, 1e-8, 1e-9):
        exponent = round(math.log10(small))
        exercise.misconception(
            f"added_to_the_weights_1e{exponent}",
            f"A number as small as 1e{exponent} is added to the weights, and they no longer sum to one. It prevents "
            f"NaN at a zero weight, but it changes the entropy, which shows in float64 or with many keys.",
        )(lambda weights, small=small: _terms(weights + small).sum(-1))
        exercise.misconception(
            f"weights_clamped_1e{exponent}",
            f"Zero weights are raised to a number such as 1e{exponent} in the logarithm and in front of it. Then each "
            f"masked key adds a little to the entropy, where it should add exactly nothing.",
        )(lambda weights, small=small: _terms(weights.clamp(min=small)).sum(-1))


def _add_sums(exercise: Exercise) -> None:
    exercise.misconception(
        "over_the_queries",
        "The sum runs over the queries. Each query has a distribution over the keys, which are the last axis.",
    )(_entropy(combine=lambda terms: terms.sum(-2)))
    exercise.misconception(
        "axis_from_the_left",
        "The sum runs over axis 1, which is the axis of the keys only if there is no batch dimension. Count from the "
        "right.",
    )(_entropy(combine=lambda terms: terms.sum(1)))
    exercise.misconception(
        "first_axis",
        "The sum runs over axis 0: the queries, or the batch. The keys are the last axis.",
    )(_entropy(combine=lambda terms: terms.sum(0)))
    exercise.misconception(
        "mean_over_keys",
        "The terms are averaged over the keys instead of summed, so the result is too small by a factor of L_k. The "
        "weights inside the sum already make it an average, that of −log w.",
    )(_entropy(combine=lambda terms: terms.mean(-1)))
    exercise.misconception(
        "one_number",
        "Everything is summed into a single number. Each query has its own entropy, so only the axis of the keys "
        "disappears.",
    )(_entropy(combine=lambda terms: terms.sum()))
    exercise.misconception(
        "averaged_over_queries",
        "The entropies of the queries are averaged into one number per map. The entropy of each query is wanted.",
    )(_entropy(combine=lambda terms: terms.sum(-1).mean(-1)))
    exercise.misconception(
        "average_of_everything",
        "There is one number for all maps: the mean over queries and batch. The entropy of each query is wanted.",
    )(_entropy(combine=lambda terms: terms.sum(-1).mean()))
    exercise.misconception(
        "summed_over_queries_too",
        "The sum runs over queries and keys, so there is one number per map. Each query has its own entropy.",
    )(_entropy(combine=lambda terms: terms.sum((-1, -2))))
    exercise.misconception(
        "squeezed",
        "Axes of length 1 are squeezed away. A batch of one sequence, or a single query, loses its axis.",
    )(_entropy(combine=lambda terms: terms.sum(-1).squeeze()))
    exercise.misconception(
        "batch_flattened",
        "The batch dimensions are flattened into one axis with the queries. The result is `(..., L_q)`.",
    )(_entropy(combine=lambda terms: terms.sum(-1).flatten()))
    exercise.misconception(
        "averaged_over_the_axis_before",
        "The entropies are averaged over the first axis, such as the batch. The entropy of each query is wanted, in "
        "every map.",
    )(_entropy(combine=lambda terms: terms.sum(-1).mean(0)))
    exercise.misconception(
        "axis_kept",
        "The axis of the keys is still there, with length 1. The result is `(..., L_q)`.",
    )(_entropy(combine=lambda terms: terms.sum(-1, keepdim=True)))
    exercise.misconception(
        "not_summed",
        "These are the terms −w log w of the single keys. The entropy of a query is their sum over the keys.",
    )(_entropy(combine=lambda terms: terms))
    exercise.misconception(
        "weight_missing",
        "The logarithms are summed without the weights in front. The entropy is the average of −log w *under the "
        "weights*, so keys with a large weight count more.",
    )(lambda weights: -_safe_log(weights).sum(-1))
    exercise.misconception(
        "plain_mean_of_logs",
        "The logarithms are averaged as if all keys had the same weight. The entropy is the average of −log w *under "
        "the weights*.",
    )(lambda weights: -_safe_log(weights).mean(-1))


def _add_other_measures(exercise: Exercise) -> None:
    exercise.misconception(
        "normalised_and_turned_round",
        "This is 1 − H / log L_k: 1 for a sharp head and 0 for equal weights. The entropy itself is wanted.",
    )(lambda weights: 1 - _terms(weights).sum(-1) / math.log(max(weights.shape[-1], 2)))
    exercise.misconception(
        "divided_by_the_number_of_keys_in_use",
        "The entropy is divided by the logarithm of the number of keys with a positive weight. The entropy in nats is "
        "not divided by anything.",
    )(lambda weights: _terms(weights).sum(-1) / (weights > 0).sum(-1).clamp(min=2).to(weights.dtype).log())
    exercise.misconception(
        "binary_entropy",
        "The entropy of an event with probability w is added up for each key: −w log w − (1 − w) log(1 − w). A query "
        "has a single distribution over all keys, so only the first of the two terms counts.",
    )(lambda weights: (_terms(weights) + _terms(1 - weights)).sum(-1))
    exercise.misconception(
        "log_of_one_plus_w",
        "The logarithm is that of 1 + w. It avoids the NaN, but it is another function: log w itself is wanted where "
        "the weight is positive.",
    )(_entropy(torch.log1p))
    exercise.misconception(
        "power_of_two",
        "This is 2 to the power of an entropy in nats. Besides, the entropy itself is wanted.",
    )(lambda weights: 2 ** _terms(weights).sum(-1))
    exercise.misconception(
        "square_root_of_the_variance",
        "This is the standard deviation of the weights of a query. It is large for a *sharp* head; the entropy is "
        "−Σ w log w.",
    )(lambda weights: weights.std(-1))
    exercise.misconception(
        "variance",
        "This is the variance of the weights of a query. It is large for a *sharp* head; the entropy is −Σ w log w.",
    )(lambda weights: weights.var(-1))
    exercise.misconception(
        "largest_term",
        "Of the terms −w log w, only the largest is returned. The entropy is their sum.",
    )(_entropy(combine=lambda terms: terms.amax(-1)))
    for small in (1e-2, 1e-3):
        exercise.misconception(
            f"weights_below_{small}_dropped",
            f"Weights below {small} are treated like masked ones. Small weights count as well; only a weight of "
            f"exactly 0 needs care.",
        )(lambda weights, small=small: (_terms(weights) * (weights > small)).sum(-1))
    exercise.misconception(
        "normalised",
        "The entropy is divided by log L_k, so that it lies between 0 and 1. That helps when sentences of different "
        "lengths are compared, but it is not the entropy in nats.",
    )(lambda weights: _terms(weights).sum(-1) / math.log(max(weights.shape[-1], 2)))
    exercise.misconception(
        "perplexity",
        "This is the exponential of the entropy: roughly, how many keys the query attends to. The entropy itself is "
        "wanted.",
    )(lambda weights: _terms(weights).sum(-1).exp())
    exercise.misconception(
        "distance_from_equal_weights",
        "This is log L_k − H, which measures how far the weights are from equal ones. It is large for a sharp head, "
        "while the entropy is small.",
    )(lambda weights: math.log(weights.shape[-1]) - _terms(weights).sum(-1))
    exercise.misconception(
        "sum_of_squares",
        "This is 1 − Σ w², the probability that two keys drawn at random differ. It also measures how widely the "
        "weights are spread, but the entropy uses logarithms.",
    )(lambda weights: 1 - weights.square().sum(-1))
    exercise.misconception(
        "log_of_the_sum_of_squares",
        "This is −log Σ w², a relative of the entropy. Here each weight has its own logarithm, and the sum comes last.",
    )(lambda weights: -weights.square().sum(-1).log())
    exercise.misconception(
        "log_of_the_largest",
        "This is −log of the largest weight only. All keys count in the entropy.",
    )(lambda weights: -weights.amax(-1).log())
    exercise.misconception(
        "softmax_again",
        "The weights go through another softmax first. They are the output of one already, and a second softmax makes "
        "them nearly equal.",
    )(lambda weights: _terms(weights.softmax(-1)).sum(-1))
    exercise.misconception(
        "softmax_over_queries",
        "The weights go through another softmax, along the axis of the queries. They are the output of a softmax over "
        "the keys already and need no other.",
    )(lambda weights: _terms(weights.softmax(-2)).sum(-1))


def _add_conduct(exercise: Exercise) -> None:
    exercise.misconception(
        "float32_inside",
        "Somewhere inside, the weights become float32, so float64 input loses half of its digits.",
    )(lambda weights: _terms(weights.float()).sum(-1).to(weights.dtype))

    @exercise.misconception(
        "caller_changed",
        "The entropy is right, but the zero weights of the caller are overwritten: an assignment to a part of a "
        "tensor, or a method whose name ends in `_`, works in place.",
    )
    def _(weights):
        weights[weights == 0] = 1
        return -(weights * weights.log()).sum(-1)

    @exercise.misconception(
        "keys_dropped",
        "The positive weights are picked out with a mask, which gives one long row of numbers: it is lost which query "
        "each of them belongs to, and the sum is a single number.",
    )
    def _(weights):
        positive = weights[weights > 0]
        return -(positive * positive.log()).sum(0, keepdim=True)
