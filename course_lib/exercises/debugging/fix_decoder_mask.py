"""Exercise `fix_decoder_mask`: metadata, stub and cases."""

from __future__ import annotations

import torch

from course_lib.exercises._exercise import Case, Exercise
from course_lib.exercises._files import beside
from course_lib.exercises.masking.padded_tokens import padded_tokens

__all__ = ["exercise", "fix_decoder_mask"]


def fix_decoder_mask(tokens, pad_id):
    length = tokens.shape[1]
    ones = torch.ones(length, length, dtype=torch.bool, device=tokens.device)
    past = ones.tril()  # (L, L)
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


@exercise.holds("Changing a later token changes nothing before it: a query attends to itself and the past", weight=2)
def _(draw):
    yield Case(args=(torch.tensor([[5, 8, 3]]), 0), note="no padding", edge="the smallest case, to be read by eye")
    for _ in range(2):
        yield Case(args=(padded_tokens(draw, 0), 11), note="no padding")
    yield Case(args=(torch.tensor([[4], [7], [2], [5]]), 0), note="one token", edge="one token")


@exercise.holds("Adding padding changes nothing for the real tokens: no query attends to a padded key", weight=2)
def _(draw):
    yield Case(args=(torch.tensor([[5, 8, 0]]), 0), note="one padded token", edge="to be read by eye")
    for _ in range(2):
        yield Case(args=(padded_tokens(draw, 0), 0), note="padding at the end, pad_id 0")
    yield Case(args=(padded_tokens(draw, 0).T.contiguous().T, 0), note="tokens that are transposed in memory")


@exercise.holds("The rows of padded queries follow the same rule as all others", weight=2)
def _(draw):
    for where in ("start", "middle"):
        yield Case(args=(padded_tokens(draw, 2, where), 2), note=f"padding at the {where}, pad_id 2")
    tokens = padded_tokens(draw, 0)
    tokens[1] = 0
    yield Case(args=(tokens, 0), note="a sequence of padding only")


@exercise.holds("pad_id decides which tokens are padding, whatever its value and the int dtype")
def _(draw):
    for pad_id in (1, 4, -1):
        yield Case(args=(padded_tokens(draw, pad_id), pad_id), note=f"pad_id {pad_id}")
    yield Case(args=(padded_tokens(draw, 3).int(), 3), note="int32 tokens, pad_id 3")
