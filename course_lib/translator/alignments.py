"""Which words of a translation belong to which of the source, and how often an attention map is right about it."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor

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

    Source: Koehn & Knowles (2017), section 3.5.
    """
    return {(source, target) for target, source in enumerate(weights.argmax(-1).tolist())}


def alignment_counts(predicted: Links, sure: Links, possible: Links | None = None) -> Int[Tensor, " 4"]:
    """What `alignment_error_rate` needs to know of one sentence: |A ∩ S|, |A ∩ P|, |A| and |S|.

    Args:
        predicted: A, pairs (source word, target word).
        sure: S, pairs that must be found.
        possible: P, pairs that may be found; the sure ones count among them. Not given, P = S.
    """
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
        ValueError: nothing is predicted and nothing is sure, so that there is no rate.

    Source: Och & Ney (2003), section 5.
    """
    in_sure, in_possible, predicted, sure = counts.reshape(-1, 4).sum(0).tolist()
    if predicted + sure == 0:
        raise ValueError("expected at least one predicted or sure link in all sentences together, got none")
    return torch.tensor(1 - (in_sure + in_possible) / (predicted + sure))
