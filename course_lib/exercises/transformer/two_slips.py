"""Pairs of slips in a count of parameters."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["two_slips"]


# What is counted wrongly: a slip's name, what to say of it, and which terms of the count it changes.
TERMS: dict[str, list[tuple[str, str, dict[str, Any]]]] = {
    "attention": [
        (
            "no_attention_biases",
            "the four projections of an attention are counted without their biases",
            {"attention": lambda d: 4 * d * d},
        ),
        (
            "three_projections",
            "an attention is counted with three projections of its four",
            {"attention": lambda d: 3 * d * d + 3 * d},
        ),
    ],
    "feed_forward": [
        (
            "no_feed_forward_biases",
            "the feed-forward network is counted without its biases",
            {"feed_forward": lambda d, f: 2 * d * f},
        ),
    ],
    "norms": [
        ("no_norms", "the norms are not counted", {"norms": (0, 0)}),
        ("gain_only", "each norm is counted without its bias", {"norm": lambda d: d}),
        ("one_norm_a_layer", "each layer is counted with one norm", {"norms": (1, 1)}),
        ("two_norms_in_decoder", "the third norm of the decoder layer is missing", {"norms": (2, 2)}),
    ],
    "attentions": [
        ("no_cross_attention", "the decoder layer is counted with one attention", {"attentions": (1, 1)}),
    ],
    "embeddings": [
        ("no_embedding", "the embedding is not counted", {"embeddings": 0}),
        ("two_embeddings", "the embedding is counted twice, though all share one", {"embeddings": 2}),
        ("three_embeddings", "the embedding is counted three times, though all share one", {"embeddings": 3}),
    ],
    "more": [
        ("output_bias", "the output projection is counted with a bias", {"more": lambda v, d, n, f: v}),
        ("final_norm", "a norm after the last layer is counted", {"more": lambda v, d, n, f: 2 * d}),
        ("final_norms", "a norm after each stack is counted", {"more": lambda v, d, n, f: 4 * d}),
    ],
}


# Pairs that are a mistake of their own, with a name.
KNOWN = {
    ("no_attention_biases", "no_feed_forward_biases"),
    ("no_attention_biases", "no_norms"),
    ("two_embeddings", "output_bias"),
    ("three_embeddings", "output_bias"),
    ("two_norms_in_decoder", "no_cross_attention"),
}


def two_slips(count: Callable[..., Callable]) -> Iterator[tuple[str, str, Callable]]:
    """Key, message and solution of each pair of slips in two terms of the count.

    Args:
        count: makes a solution in which the given terms are exchanged.
    """
    for one, other in itertools.combinations(TERMS.values(), 2):
        for (a, says_a, changes_a), (b, says_b, changes_b) in itertools.product(one, other):
            if (a, b) not in KNOWN:
                says = f"Two things: {says_a}, and {says_b}."
                yield f"{a}_and_{b}", says, count(**changes_a, **changes_b)
