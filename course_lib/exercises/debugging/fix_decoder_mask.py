"""Exercise `fix_decoder_mask`: metadata, stub and cases."""

from __future__ import annotations

import torch

from course_lib.exercises._exercise import Case, Exercise
from course_lib.exercises._files import beside

__all__ = ["exercise", "fix_decoder_mask"]


def fix_decoder_mask(tokens, pad_id):
    length = tokens.shape[1]
    past = torch.ones(length, length, dtype=torch.bool, device=tokens.device).tril()  # (L, L)
    real = (tokens != pad_id)[:, None, None, :]  # (B, 1, 1, L)
    return past & real  # (B, 1, L, L)


exercise = Exercise(
    **beside(__file__),
    name="fix_decoder_mask",
    chapter="debugging",
    repair=True,
    difficulty=1,
    minutes=5,
    stub='''\
def fix_decoder_mask(tokens, pad_id):
    """Bool (B, 1, L, L), True = may attend: no future, no padding."""
    raise NotImplementedError  # delete this line once you have decided
    length = tokens.shape[1]
    ones = torch.ones(length, length, dtype=torch.bool, device=tokens.device)
    future = ones.triu(diagonal=1)  # (L, L)
    padding = (tokens == pad_id)[:, None, None, :]  # (B, 1, 1, L)
    return future | padding  # (B, 1, L, L)
''',
    reference=fix_decoder_mask,
    shapes={"tokens": "batch length"},
    look="debugging: Changing one token",
    returns=("mask",),
    differentiable=False,
)


@exercise.holds("The result is right")
def _(draw):
    for _ in range(3):
        batch, length = draw.sizes(2, 3, 7)
        tokens = torch.tensor([[draw.integer(1, 9) for _ in range(length)] for _ in range(batch)])
        tokens[0, -2:] = 0
        yield Case(args=(tokens, 0))
