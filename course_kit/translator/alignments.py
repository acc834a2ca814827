"""Which words of a translation belong to which of the source, and how often an attention map is right about it."""

from __future__ import annotations

from collections.abc import Collection
from numbers import Integral

import torch
from torch import Tensor

from course_kit._checks import check_floats, check_ids
from course_lib._typing import Float, Int

__all__ = ["Links", "alignment_counts", "alignment_error_rate", "attention_alignment"]

Links = Collection[tuple[int, int]]  # (source word, target word), counted from 0


def attention_alignment(weights: Float[Tensor, "words_target words_source"]) -> set[tuple[int, int]]:
    """Align each target word with the source word on which it puts the most weight.

    Args:
        weights: cross-attention between words, `(target words, source words)`; `attention_between_words` makes it from
            that between tokens.

    Returns:
        Pairs (source word, target word), one per target word.

    Raises:
        TypeError: weights is not a floating-point tensor.
        ValueError: weights is not `(target words, source words)`, or there is no source word.

    Source: Koehn & Knowles (2017), section 3.5.
    """
    check_floats(weights=weights)
    if weights.dim() != 2 or weights.shape[1] == 0:
        raise ValueError(
            f"weights must be (target words, source words) with at least one source word, got {tuple(weights.shape)}; "
            f"choose a head, or average them"
        )
    return {(source, target) for target, source in enumerate(weights.argmax(-1).tolist())}


def alignment_counts(predicted: Links, sure: Links, possible: Links | None = None) -> Int[Tensor, " 4"]:
    """What `alignment_error_rate` needs to know of one sentence: |A ∩ S|, |A ∩ P|, |A| and |S|.

    Args:
        predicted: A, pairs (source word, target word).
        sure: S, pairs that must be found.
        possible: P, pairs that may be found; the sure ones count among them. Not given, P = S.

    Raises:
        TypeError: a link is not a pair of whole numbers.
    """
    _check_links(predicted=predicted, sure=sure, possible=possible or ())
    found, sure = set(predicted), set(sure)
    possible = sure | set(possible or ())
    return torch.tensor([len(found & sure), len(found & possible), len(found), len(sure)])


def alignment_error_rate(counts: Int[Tensor, "*sentences 4"]) -> Float[Tensor, ""]:
    """Share of alignment links that are wrong or missing, over all sentences together.

    AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|). Where all links are sure (P = S), this is 1 − F1 of the links.

    Args:
        counts: `alignment_counts` of each sentence, stacked, `(..., 4)`.

    Returns:
        A number from 0 (as given) to 1 (no link in common), `()`.

    Raises:
        TypeError: counts is not a tensor of integers.
        ValueError: counts is not `(..., 4)`, or nothing is predicted and nothing is sure, so that there is no rate.

    Source: Och & Ney (2003), section 5.
    """
    check_ids(counts=counts)
    if counts.shape[-1:] != (4,):
        raise ValueError(f"counts must be (..., 4), got {tuple(counts.shape)}; stack what alignment_counts returns")
    in_sure, in_possible, predicted, sure = counts.reshape(-1, 4).sum(0).tolist()
    if predicted + sure == 0:
        raise ValueError("counts must have a predicted or sure link in all sentences together, got none; add sentences")
    return torch.tensor(1 - (in_sure + in_possible) / (predicted + sure))


def _check_links(**links: Links) -> None:
    for name, pairs in links.items():
        if isinstance(pairs, str) or not isinstance(pairs, Collection):
            raise TypeError(f"{name} must be pairs (source word, target word), got {pairs!r:.40}; pass a list or a set")
        for pair in pairs:
            if not isinstance(pair, tuple) or len(pair) != 2 or not all(isinstance(word, Integral) for word in pair):
                raise TypeError(
                    f"{name} must be pairs (source word, target word) of numbers, got {pair!r:.40} among them"
                )
