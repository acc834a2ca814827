"""What decoding returns: hypotheses, and how they compete."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Hypotheses", "Hypothesis", "can_win", "hypotheses"]


@dataclass(frozen=True)
class Hypotheses:
    """What was written for each source: lists over sources of lists over hypotheses, the best first.

    Attributes:
        tokens: ids, without those that begin and end a sentence.
        log_probs: sum of the model's log-probabilities of the tokens, that of the end included.
        scores: what the hypotheses are ranked by, log_prob / n^length_penalty, n = tokens with the end.
        finished: whether the model ended the sentence; otherwise it was cut at max_length.
    """

    tokens: list[list[list[int]]]
    log_probs: list[list[float]]
    scores: list[list[float]]
    finished: list[list[bool]]


@dataclass(frozen=True)
class Hypothesis:
    """One hypothesis for one source, while others are still being written."""

    tokens: list[int]  # with the end
    total: float
    score: float


def hypotheses(each: list[list[Hypothesis]], eos_id: int) -> Hypotheses:
    """Those of each source, the best first, with their ends taken off."""
    return Hypotheses(
        tokens=[[h.tokens[:-1] if h.tokens[-1] == eos_id else h.tokens for h in those] for those in each],
        log_probs=[[h.total for h in those] for those in each],
        scores=[[h.score for h in those] for those in each],
        finished=[[h.tokens[-1] == eos_id for h in those] for those in each],
    )


def can_win(found: list[Hypothesis], num_best: int, hope: float) -> bool:
    """Whether a score of `hope` would still be among the `num_best`; of equal ones the earlier counts as better."""
    return sum(h.score >= hope for h in found) < num_best
