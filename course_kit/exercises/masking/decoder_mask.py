"""Exercise `decoder_mask`: metadata, stub and cases."""

import torch

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises.masking.padded_tokens import padded_tokens
from course_lib.masking import decoder_mask

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=10,
    stub='''\
def decoder_mask(tokens, pad_id):
    """Bool (B, 1, L, L): True where key <= query and the key is not padding."""
    raise NotImplementedError
''',
    reference=decoder_mask,
    shapes={"tokens": "batch length"},
    returns=("mask",),
    read_next="masking: Decoder mask",
    differentiable=False,
)


@exercise.holds(
    "A key is allowed if it is not later than the query and not padding; the shape is (B, 1, L, L)", weight=3
)
def _(draw):
    yield Case(args=(torch.tensor([[5, 8, 0]]), 0), degenerate_because="the smallest case, to be read by eye")
    for _ in range(3):
        yield Case(args=(padded_tokens(draw, 0), 0), note="padding at the end, pad_id 0")


@exercise.holds("pad_id decides which tokens are padding, whatever its value")
def _(draw):
    for pad_id in (1, 4, -1):
        yield Case(args=(padded_tokens(draw, pad_id), pad_id), note=f"pad_id {pad_id}")
    long = draw.integers(1, 300, low=0, high=9)
    yield Case(args=(long, 6), note="300 tokens, pad_id 6", degenerate_because="one sequence on purpose")


@exercise.holds("Only keys are masked: rows of padded queries stay as they are, even those without any key", weight=2)
def _(draw):
    for where in ("start", "middle"):
        yield Case(args=(padded_tokens(draw, 2, where), 2), note=f"padding at the {where}, pad_id 2")
    tokens = padded_tokens(draw, 0)
    tokens[1] = 0
    yield Case(args=(tokens, 0), note="a sequence of padding only")
    yield Case(args=(padded_tokens(draw, 0).T.contiguous().T, 0), note="tokens that are transposed in memory")


@exercise.holds("Without padding, it is the causal mask for every sequence")
def _(draw):
    for _ in range(2):
        tokens = padded_tokens(draw, 0)
        yield Case(args=(tokens, 11), note="no padding")
