"""Mistakes in `grouped_query_attention`: the attention of one head, and what is returned."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._headings import DIVIDE_BY_ROOT
from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.grouped_query_attention_mistakes.parts import grouped, interleaved

mistake = Mistakes()


@mistake(look=DIVIDE_BY_ROOT)
def scores_not_scaled(query, key, value):
    """The scores are not scaled. Within a head this is the same attention as always, including the factor 1/√d."""
    return grouped(scale=lambda query, key: 1.0)(query, key, value)


@mistake(look=DIVIDE_BY_ROOT)
def divided_by_d(query, key, value):
    """The scores are divided by d, and not by its root."""
    return grouped(scale=lambda query, key: query.shape[-1])(query, key, value)


@mistake(look=DIVIDE_BY_ROOT)
def multiplied_by_the_root(query, key, value):
    """The scores are multiplied by √d. They should be divided by it."""
    return grouped(scale=lambda query, key: 1 / math.sqrt(query.shape[-1]))(query, key, value)


@mistake(look=DIVIDE_BY_ROOT)
def root_of_all_features(query, key, value):
    """The scores are divided by the root of H · d, the width of all query heads. A dot product sums over the d features
    of one head."""
    return grouped(scale=lambda query, key: math.sqrt(query.shape[1] * query.shape[-1]))(query, key, value)


@mistake(look=DIVIDE_BY_ROOT)
def root_of_the_features_of_the_keys(query, key, value):
    """The scores are divided by the root of G · d, the width of all heads of the keys. A dot product sums over the d
    features of one head."""
    return grouped(scale=lambda query, key: math.sqrt(key.shape[1] * key.shape[-1]))(query, key, value)


@mistake(look=DIVIDE_BY_ROOT)
def root_of_the_features_of_a_group(query, key, value):
    """The scores are divided by the root of d · H/G. That several heads share their keys does not make the vectors
    longer: a dot product sums over d features."""
    return grouped(scale=lambda query, key: math.sqrt(query.shape[1] // key.shape[1] * query.shape[-1]))(
        query, key, value
    )


@mistake(look=DIVIDE_BY_ROOT)
def root_of_the_heads(query, key, value):
    """The scores are divided by the root of the number of query heads. The divisor is the root of d, the last axis."""
    return grouped(scale=lambda query, key: math.sqrt(query.shape[1]))(query, key, value)


@mistake
def softmax_over_the_heads(query, key, value):
    """The softmax runs over the heads. It should run over the keys, the last axis of the scores."""
    return grouped(softmax=lambda scores: scores.softmax(1))(query, key, value)


@mistake
def softmax_over_a_group(query, key, value):
    """The query heads of a group share one softmax over all their scores. They share keys and values, but each of them
    has its own weights, which sum to one."""

    def softmax(scores):
        apart = scores.unflatten(1, (key.shape[1], -1))  # (B, G, H / G, L_q, L_k)
        rows = apart.transpose(2, 3).flatten(-2).softmax(-1)
        return rows.unflatten(-1, (apart.shape[2], -1)).transpose(2, 3).flatten(1, 2)

    return grouped(softmax=softmax)(query, key, value)


@mistake(look="masking: Causal mask")
def causal_mask_added(query, key, value):
    """Later keys are hidden by a causal mask. There is no mask in this exercise: every query attends to all keys."""

    def softmax(scores):
        past = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        return scores.masked_fill(~past, -math.inf).softmax(-1)

    return grouped(softmax=softmax)(query, key, value)


@mistake
def divided_by_the_group(query, key, value):
    """The outputs are divided by the number of query heads in a group. The weights of each head sum to one already, so
    nothing is left to divide by."""
    return grouped(finish=lambda output, query, key: output * key.shape[1] / query.shape[1])(query, key, value)


@mistake
def heads_merged(query, key, value):
    """The heads are merged into `(B, L_q, H · d)`. That is a later step; here the output is `(B, H, L_q, d)`."""
    return grouped(finish=lambda output, query, key: output.transpose(1, 2).flatten(2))(query, key, value)


@mistake
def heads_after_positions(query, key, value):
    """Heads and positions are exchanged in the output. It should be `(B, H, L_q, d)`."""
    return grouped(finish=lambda output, query, key: output.transpose(1, 2))(query, key, value)


@mistake
def weights_returned_too(query, key, value):
    """The weights are returned as well. The contract asks for the output alone: does the function that you called
    return a pair?"""
    weights = []

    def softmax(scores):
        weights.append(scores.softmax(-1))
        return weights[0]

    return grouped(softmax=softmax)(query, key, value), weights[0]


@mistake
def single_axes_squeezed(query, key, value):
    """`squeeze()` removes every axis of length one from the output, including that of a single sequence or query."""
    return grouped(finish=lambda output, query, key: output.squeeze())(query, key, value)


mistake.two_at_once(
    {
        "turns": (
            "the query heads take turns, and a group is not consecutive",
            {"keys": interleaved, "values": interleaved},
        ),
        "averages": (
            "keys and values are averaged over their heads",
            {"keys": lambda x, heads: x.mean(1, keepdim=True), "values": lambda x, heads: x.mean(1, keepdim=True)},
        ),
        "unscaled": ("the scores are not scaled", {"scale": lambda query, key: 1.0}),
        "by_d": ("the scores are divided by d and not by its root", {"scale": lambda query, key: query.shape[-1]}),
    },
    grouped,
)
