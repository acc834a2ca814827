"""Exercise `fix_masked_softmax`: metadata, stub and cases."""

from __future__ import annotations

import torch

from course_lib.exercises._exercise import Case, Exercise
from course_lib.exercises._files import beside

__all__ = ["exercise", "fix_masked_softmax"]


def fix_masked_softmax(scores, mask):
    mask = mask.expand_as(scores)
    nothing = ~mask.any(dim=-1, keepdim=True)  # rows in which every key is masked
    hidden = scores.masked_fill(~mask, float("-inf")).masked_fill(nothing, 0.0)
    return torch.softmax(hidden, dim=-1).masked_fill(nothing, 0.0)


exercise = Exercise(
    **beside(__file__),
    name="fix_masked_softmax",
    chapter="debugging",
    repair=True,
    difficulty=1,
    minutes=5,
    stub='''\
def fix_masked_softmax(scores, mask):
    """Weights 0 where mask is False; a row without any True is all zeros."""
    raise NotImplementedError  # delete this line once you have decided
    scores.masked_fill_(~mask, -1e9)
    return torch.softmax(scores, dim=-1)
''',
    reference=fix_masked_softmax,
    shapes={"scores": "... len_q len_k", "mask": "#"},
    look="deeper/mask_bugs: TODO",
    returns=("weights",),
)


@exercise.holds("The result is right")
def _(draw):
    for batch in draw.batches():
        len_q, len_k = draw.sizes(2, 2, 8, but=batch)
        yield Case(args=(draw.normal(*batch, len_q, len_k), draw.mask(*batch, len_q, len_k)))
