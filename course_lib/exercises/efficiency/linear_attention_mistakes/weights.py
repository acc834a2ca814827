"""Mistakes in `linear_attention`: the weights, and what the sum of the values is divided by."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.linear_attention_mistakes.parts import linear_with, positive

mistake = Mistakes()


def _softmax_attention(divisor):
    """Quadratic attention with a softmax and a causal mask."""

    def solution(query, key, value):
        scores = query @ key.transpose(-2, -1) / divisor(query)
        past = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        return scores.masked_fill(~past, -math.inf).softmax(-1) @ value

    return solution


@mistake
def softmax_attention(query, key, value):
    """This is ordinary causal attention with a softmax. In linear attention, φ(q) · φ(k) takes the place of exp(q · k /
    √d_k)."""
    return _softmax_attention(lambda query: math.sqrt(query.shape[-1]))(query, key, value)


@mistake
def softmax_attention_unscaled(query, key, value):
    """This is causal attention with a softmax of unscaled scores. In linear attention, φ(q) · φ(k) takes the place of
    exp(q · k)."""
    return _softmax_attention(lambda query: 1.0)(query, key, value)


@mistake
def softmax_of_the_features_products(query, key, value):
    """The products φ(q) · φ(k) go through a softmax. They are positive already; dividing by their sum makes weights of
    them."""
    return _softmax_attention(lambda query: 1.0)(positive(query), positive(key), value)


@mistake
def softmax_of_the_scaled_products(query, key, value):
    """The products φ(q) · φ(k) are divided by √d_k and go through a softmax. They are positive already; dividing by
    their sum makes weights of them."""
    return _softmax_attention(lambda query: math.sqrt(query.shape[-1]))(positive(query), positive(key), value)


@mistake
def normaliser_forgotten(query, key, value):
    """The numerator is returned without being divided. The weights of a position have to sum to one."""
    return linear_with(divisor=lambda weights, scores, query, key: 1)(query, key, value)


@mistake
def normaliser_over_all_positions(query, key, value):
    """The denominator sums over the whole sequence, while the numerator stops at the position itself. Both sums run
    over j ≤ i."""
    return linear_with(divisor=lambda weights, scores, query, key: scores.sum(-1, keepdim=True))(query, key, value)


@mistake
def numerator_over_all_positions(query, key, value):
    """The numerator sums over the whole sequence, while the denominator stops at the position itself. Both sums run
    over j ≤ i."""
    return linear_with(
        past=lambda scores: scores,
        divisor=lambda weights, scores, query, key: scores.tril().sum(-1, keepdim=True),
    )(query, key, value)


@mistake
def normaliser_without_the_query(query, key, value):
    """The denominator is the sum of all features of the keys so far. It has to contain the query too, because the
    weights do."""
    return linear_with(divisor=lambda weights, scores, query, key: key.cumsum(-2).sum(-1, keepdim=True))(
        query, key, value
    )


@mistake
def divided_by_the_number_of_positions(query, key, value):
    """The numerator is divided by the number of positions so far. The weights differ, so their own sum has to be the
    divisor."""
    return linear_with(
        divisor=lambda weights, scores, query, key: torch.arange(
            1, weights.shape[-1] + 1, dtype=weights.dtype, device=weights.device
        )[:, None]
    )(query, key, value)


@mistake
def divided_by_the_length(query, key, value):
    """The numerator is divided by the length of the sequence. The divisor is the sum of the weights up to i."""
    return linear_with(divisor=lambda weights, scores, query, key: weights.shape[-1])(query, key, value)


@mistake
def divided_by_the_root(query, key, value):
    """The numerator is divided by √d_k, and by nothing else. The divisor is the sum of the weights up to i."""
    return linear_with(divisor=lambda weights, scores, query, key: math.sqrt(query.shape[-1]))(query, key, value)


@mistake
def divided_by_the_root_too(query, key, value):
    """Besides the sum of the weights, the output is divided by √d_k. Nothing is scaled here."""
    return linear_with(
        divisor=lambda weights, scores, query, key: weights.sum(-1, keepdim=True) * math.sqrt(query.shape[-1])
    )(query, key, value)


@mistake
def normalised_twice(query, key, value):
    """The output is divided twice by the sum of the weights. Once is enough for them to sum to one."""
    return linear_with(divisor=lambda weights, scores, query, key: weights.sum(-1, keepdim=True) ** 2)(
        query, key, value
    )


@mistake
def normalised_over_the_queries(query, key, value):
    """The weights of each *key* sum to one. A position divides by the sum of its own weights, over the keys."""
    return linear_with(past=lambda scores: scores.tril() / scores.tril().sum(-2, keepdim=True))(query, key, value)


@mistake
def axis_of_the_sum_dropped(query, key, value):
    """The sum of the weights has lost its axis, so the division lines it up with the features of the values. A sum can
    keep its axis."""
    return linear_with(divisor=lambda weights, scores, query, key: weights.sum(-1))(query, key, value)


for small in ("1e-3", "1e-5", "1e-6", "1e-8"):
    seen = "every output" if small == "1e-3" else "the output, which shows in float64"
    mistake.named(
        f"small_number_in_the_divisor_{small}",
        f"A number near {small} is added to the denominator. φ is positive, so the sum cannot be zero, and the "
        f"addition changes {seen}.",
    )(
        linear_with(
            divisor=lambda weights, scores, query, key, small=float(small): weights.sum(-1, keepdim=True) + small,
        )
    )


@mistake
def queries_and_keys_exchanged(query, key, value):
    """Queries and keys are exchanged: the state is built from the queries, and multiplied with the keys. Or the matrix
    of weights has one row per key, where it needs one per query."""
    return linear_with()(key, query, value)


@mistake
def queries_with_queries(query, key, value):
    """The state is built from the queries. It is made of keys and values."""
    return linear_with()(query, query, value)


@mistake
def keys_with_keys(query, key, value):
    """The keys are multiplied with the state. The query of a position should be."""
    return linear_with()(key, key, value)


@mistake
def keys_averaged(query, key, value):
    """The keys are averaged instead of the values."""
    return linear_with()(query, key, key)


@mistake
def running_mean(query, key, value):
    """This is the mean of the values up to each position, whatever queries and keys are. What multiplies a value in the
    sum?"""
    return linear_with(of_query=torch.zeros_like, compare=lambda q, k: q @ k.transpose(-2, -1) + 1)(query, key, value)
