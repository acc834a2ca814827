"""Exercise `fix_attention_weights`: metadata, stub and cases."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._exercise import Case, Exercise
from course_lib.exercises._files import beside

__all__ = ["exercise", "fix_attention_weights"]


def fix_attention_weights(query, key):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (..., L_q, L_k)
    return torch.softmax(scores, dim=-1)


exercise = Exercise(
    **beside(__file__),
    name="fix_attention_weights",
    chapter="debugging",
    repair=True,
    difficulty=1,
    minutes=5,
    stub='''\
def fix_attention_weights(query, key):
    """softmax(Q K^T / sqrt(d_k)), (..., L_q, L_k): each query's weights sum to one."""
    raise NotImplementedError  # delete this line once you have decided
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (..., L_q, L_k)
    return torch.softmax(scores, dim=1)
''',
    reference=fix_attention_weights,
    shapes={"query": "... len_q d_k", "key": "... len_k d_k"},
    look="deeper/attention_bugs: TODO",
    returns=("weights",),
)


@exercise.holds("The result is right")
def _(draw):
    for batch in draw.batches():
        len_q, len_k, d_k = draw.sizes(3, 2, 8, but=batch)
        yield Case(args=(draw.normal(*batch, len_q, d_k), draw.normal(*batch, len_k, d_k)))
