"""Exercise `previous_token_score`: metadata, stub and cases."""

import torch

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.inspection import previous_token_score

__all__ = ["exercise", "previous_token_score"]


exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=1,
    minutes=10,
    stub='''\
def previous_token_score(weights):
    """Mean weight on the previous token: (..., L, L) to (...)."""
    raise NotImplementedError
''',
    reference=previous_token_score,
    shapes={"weights": "... length length"},
    returns=("score",),
    read_next="inspection: What heads do",
    single_sign_args=("weights",),
)


@exercise.holds("The score is the mean weight on the previous token, over the queries that have one", weight=2)
def _(draw):
    weights = torch.tensor([[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.2, 0.5, 0.3]])
    yield Case(args=(weights,), note="(0.9 + 0.5) / 2", degenerate_because="to be read by eye")
    for length, dtype in zip(draw.sizes(3, 4, 9), (torch.float32, torch.float64, torch.float32), strict=True):
        yield Case(args=(draw.weights(length, length, dtype=dtype),), note=f"{length} tokens")


@exercise.holds("It works with zero, one or two batch dimensions, in float32 and float64")
def _(draw):
    for batch in draw.batches(but=(6,)):
        for dtype in (torch.float32, torch.float64):
            yield Case(args=(draw.weights(*batch, 6, 6, dtype=dtype),), note=f"batch dimensions: {len(batch)}")
    yield Case(args=(draw.weights(2, 1, 3, 5, 5),), note="batch dimensions: 3", degenerate_because="some are short")
    turned = draw.weights(3, 5, 5).mT
    yield Case(args=(turned / turned.sum(-1, keepdim=True),), note="transposed in memory")


@exercise.holds("A head that always attends to the previous token scores 1, and one that never does scores 0")
def _(draw):
    length = draw.integer(4, 8)
    back = torch.eye(length).roll(-1, -1)
    back[0] = torch.eye(length)[0]
    yield Case(args=(back,), note="always the previous token; the first query attends to itself")
    yield Case(args=(back.T.contiguous(),), note="always the next token; the last query attends to itself")
    yield Case(
        args=(torch.tensor([[0.25, 0.75], [0.5, 0.5]]),), note="two tokens", degenerate_because="to be read by eye"
    )
