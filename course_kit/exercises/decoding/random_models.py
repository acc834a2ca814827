"""Random models that propose the next token, as the cases of two exercises have them."""

from __future__ import annotations

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._language_model import NextLogProbs

__all__ = ["CLEAR_LEAD", "random_model"]

CLEAR_LEAD = 0.02  # by how much a decision of a search has to be clear; in float32 sums are off by some 1e-6


def random_model(draw: Draw, vocab: int, max_length: int, *, eos: float = 0.0, long: bool = False) -> NextLogProbs:
    """A random model: a row for each sequence, or 61 rows that sequences of any length share.

    Args:
        eos: added to the score of eos; bos is never probable.
    """
    bos_id, eos_id = draw.sizes(2, 0, vocab - 1)
    rows = 61 if long else sum(vocab**n for n in range(max_length))
    scores = draw.normal(rows, vocab, dtype=torch.float64, scale=1.2)
    scores[:, bos_id] = -7.0
    scores[:, eos_id] += eos
    # As log_softmax does, which uses several threads for this, and takes milliseconds where they wait for each other.
    log_probs = scores - scores.logsumexp(-1, keepdim=True)
    return NextLogProbs(log_probs.float(), bos_id, eos_id, max_length)
