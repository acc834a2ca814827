"""Exercise `padding_mask`: metadata, stub and cases."""

import torch

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises.masking.padded_tokens import padded_tokens
from course_lib.masking import padding_mask

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=1,
    minutes=5,
    stub='''\
def padding_mask(tokens, pad_id):
    """Bool (B, 1, 1, L): True where the key is not padding."""
    raise NotImplementedError
''',
    reference=padding_mask,
    shapes={"tokens": "batch length"},
    returns=("mask",),
    read_next="masking: Padding mask",
    differentiable=False,
)


@exercise.holds("A key may be attended to if it is not padding; the shape is (B, 1, 1, L)", weight=2)
def _(draw):
    yield Case(args=(torch.tensor([[5, 8, 0]]), 0), degenerate_because="the smallest case, to be read by eye")
    for _ in range(2):
        yield Case(args=(padded_tokens(draw, 0), 0), note="padding at the end, pad_id 0")


@exercise.holds("pad_id decides which tokens are padding, whatever its value")
def _(draw):
    for pad_id in (1, 4, -1):
        yield Case(args=(padded_tokens(draw, pad_id), pad_id), note=f"pad_id {pad_id}")


@exercise.holds("Padding is found anywhere in the sequence")
def _(draw):
    for where in ("start", "middle"):
        yield Case(args=(padded_tokens(draw, 2, where), 2), note=f"padding at the {where}, pad_id 2")
    tokens = padded_tokens(draw, 0)
    tokens[1] = 0
    yield Case(args=(tokens, 0), note="a sequence of padding only")
    yield Case(
        args=(torch.tensor([[0], [4], [7]], dtype=torch.int32), 0),
        note="one token, int32",
        degenerate_because="length one",
    )
    yield Case(args=(padded_tokens(draw, 0).T.contiguous().T, 0), note="tokens that are transposed in memory")
