"""Exercise `fix_scaled_attention`: metadata, stub and cases."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._exercise import Case, Exercise
from course_lib.exercises._files import beside

__all__ = ["exercise", "fix_scaled_attention"]


def fix_scaled_attention(query, key, value):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (..., L_q, L_k)
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights  # (..., L_q, d_v)


exercise = Exercise(
    **beside(__file__),
    name="fix_scaled_attention",
    chapter="debugging",
    repair=True,
    difficulty=1,
    minutes=5,
    stub='''\
def fix_scaled_attention(query, key, value):
    """softmax(Q K^T / sqrt(d_k)) V and the weights."""
    raise NotImplementedError  # delete this line once you have decided
    d_k = query.shape[-1]
    scores = query @ key.transpose(-2, -1)  # (..., L_q, L_k)
    scaled_scores = scores / math.sqrt(d_k)
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights  # (..., L_q, d_v)
''',
    reference=fix_scaled_attention,
    shapes={"query": "... len_q d_k", "key": "... len_k d_k", "value": "... len_k d_v"},
    look="deeper/attention_bugs: TODO",
    returns=("output", "weights"),
)


@exercise.holds("The result is right")
def _(draw):
    for batch in draw.batches():
        len_q, len_k, d_k, d_v = draw.sizes(4, 2, 8, but=batch)
        yield Case(
            args=(draw.normal(*batch, len_q, d_k), draw.normal(*batch, len_k, d_k), draw.normal(*batch, len_k, d_v))
        )
