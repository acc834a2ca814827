"""Exercise `fix_softmax`: metadata, stub and cases."""

from __future__ import annotations

import torch

from course_lib.exercises._exercise import Case, Exercise
from course_lib.exercises._files import beside

__all__ = ["exercise", "fix_softmax"]


def fix_softmax(scores, dim=-1):
    largest = scores.amax(dim=dim, keepdim=True)
    powers = torch.exp(scores - largest)
    return powers / powers.sum(dim=dim, keepdim=True)


exercise = Exercise(
    **beside(__file__),
    name="fix_softmax",
    chapter="debugging",
    repair=True,
    difficulty=1,
    minutes=5,
    stub='''\
def fix_softmax(scores, dim=-1):
    """Softmax over `dim`, finite and right for scores up to ±1e4."""
    raise NotImplementedError  # delete this line once you have decided
    largest = scores.max(dim=dim, keepdim=True).values.detach()
    powers = torch.exp(scores - largest)
    return powers / powers.sum(dim=dim, keepdim=True)
''',
    reference=fix_softmax,
    shapes={"scores": "#"},
    look="debugging: float64 against float32",
    returns=("weights",),
    twins=("softmax",),
)


@exercise.holds("The result is right")
def _(draw):
    for batch in draw.batches():
        rows, columns = draw.sizes(2, 2, 7, but=batch)
        yield Case(args=(draw.normal(*batch, rows, columns),))
        yield Case(args=(draw.normal(*batch, rows, columns), -2))
