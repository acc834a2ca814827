"""Everything that `course_lib.beam_search` considers on its way, for a view of the search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from torch import Tensor

from course_lib._checks import checked
from course_lib._typing import Bounds, Count, Float, Size

__all__ = ["Candidate", "beam_trace"]


@dataclass(frozen=True)
class Candidate:
    """A hypothesis of a beam search, extended by one token.

    Args:
        tokens: generated ids, eos included, bos not; the hypothesis that was extended is `tokens[:-1]`.
        log_prob: sum of their log-probabilities, by which a beam chooses.
        score: `log_prob / n^length_penalty` with `n = len(tokens)`, by which the winner is chosen.
        survives: whether it is among the beam_size best of its step.
        finished: whether it ends in eos.
    """

    tokens: tuple[int, ...]
    log_prob: float
    score: float
    survives: bool
    finished: bool


@checked(
    next_log_probs="look for NaN in the model's weights, and take the last position of a single sentence",
    beam_size="with 1 the search is greedy",
)
def beam_trace(
    next_log_probs: Callable[[list[int]], Float[Tensor, " vocab"]],
    bos_id: int,
    eos_id: int,
    beam_size: Size,
    max_length: Count,
    length_penalty: Annotated[float, Bounds(-10, 10)] = 0.0,
) -> list[list[Candidate]]:
    """All candidates of each step of a beam search, the best first; arguments as in `course_lib.beam_search`.

    At each step every open hypothesis is extended by every token. Of all these candidates the beam_size with the
    highest sum of log-probabilities survive. Survivors that end in eos are finished, the others are open in the next
    step. The search is over when none is open, or after max_length steps.
    """
    steps: list[list[Candidate]] = []
    hypotheses: list[tuple[tuple[int, ...], float]] = [((), 0.0)]  # generated tokens, sum of log-probabilities
    while hypotheses and len(steps) < max_length:
        extended = [
            ((*tokens, token), total + log_prob)
            for tokens, total in hypotheses
            for token, log_prob in enumerate(next_log_probs([bos_id, *tokens]).tolist())
        ]
        extended.sort(key=lambda candidate: candidate[1], reverse=True)
        steps.append(
            [
                Candidate(
                    tokens=tokens,
                    log_prob=total,
                    score=total / len(tokens) ** length_penalty,
                    survives=rank < beam_size,
                    finished=tokens[-1] == eos_id,
                )
                for rank, (tokens, total) in enumerate(extended)
            ]
        )
        hypotheses = [(c.tokens, c.log_prob) for c in steps[-1] if c.survives and not c.finished]
    return steps
