"""Exercise `induction_score`: metadata, stub and cases."""

import torch
from torch import Tensor

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.language_model import induction_score

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=10,
    stub='''\
def induction_score(weights, period):
    """Mean weight on what followed a token's last occurrence: (..., L, L) to (...)."""
    raise NotImplementedError
''',
    reference=induction_score,
    shapes={"weights": "... length length"},
    returns=("score",),
    read_next="language_model: Induction heads",
    single_sign_args=("weights",),
)


def _first_copy_of_six() -> Tensor:
    """Weights of six tokens, three of them twice; the later queries attend to several keys."""
    return torch.tensor(
        [
            [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [0.5, 0.5, 0.0, 0.0, 0.0, 0.0],
            [0.3, 0.6, 0.1, 0.0, 0.0, 0.0],
            [0.2, 0.7, 0.1, 0.0, 0.0, 0.0],
            [0.1, 0.1, 0.4, 0.0, 0.4, 0.0],
            [0.0, 0.2, 0.2, 0.1, 0.3, 0.2],
        ]
    )


@exercise.holds("The score is the mean weight on the token after the first copy of the query's own", weight=2)
def _(draw):
    edge = "to be read by eye"
    yield Case(args=(_first_copy_of_six(), 3), note="(0.7 + 0.4 + 0.1) / 3", degenerate_because=edge)
    for period, dtype in zip(draw.sizes(3, 3, 7), (torch.float32, torch.float64, torch.float32), strict=True):
        weights = draw.weights(2 * period, 2 * period, dtype=dtype)
        yield Case(args=(weights, period), note=f"{period} tokens, twice")


@exercise.holds("Tokens before the two copies do not count", weight=2)
def _(draw):
    for period, before, dtype in ((3, 1, torch.float32), (4, 3, torch.float64), (2, 7, torch.float32)):
        length = 2 * period + before
        note = f"{before} other token{'s' * (before > 1)}, then {period} tokens twice"
        yield Case(args=(draw.weights(length, length, dtype=dtype), period), note=note)


@exercise.holds("It works with zero, one or two batch dimensions, in float32 and float64")
def _(draw):
    period = draw.integer(3, 5)
    length = 2 * period
    for batch in draw.batches(but=(length,)):
        for dtype in (torch.float32, torch.float64):
            weights = draw.weights(*batch, length, length, dtype=dtype)
            yield Case(args=(weights, period), note=f"batch dimensions: {len(batch)}")
    edge = "some are short"
    yield Case(args=(draw.weights(2, 1, 3, 4, 4), 2), note="batch dimensions: 3", degenerate_because=edge)
    turned = draw.weights(3, 10, 10).mT
    yield Case(args=(turned / turned.sum(-1, keepdim=True), 5), note="transposed in memory")


@exercise.holds("A perfect induction head scores 1, and a head that attends elsewhere scores 0")
def _(draw):
    period = draw.integer(3, 6)
    here = torch.arange(2 * period)
    for name, key in (
        ("a perfect induction head", (here - period + 1).clamp(min=0)),
        ("each query attends to the copy of its own token", (here - period).clamp(min=0)),
        ("each query attends to the token before the copy of its own", (here - period - 1).clamp(min=0)),
        ("each query attends to itself", here),
    ):
        weights = torch.zeros(2 * period, 2 * period)
        weights[here, key] = 1.0
        edge = "symmetric" if name.endswith("itself") else ""
        yield Case(args=(weights, period), note=name, degenerate_because=edge)
    yield Case(
        args=(torch.tensor([[0.75, 0.25], [0.625, 0.375]]), 1),
        note="a single token, twice: the token after its first copy is the second copy",
        degenerate_because="the smallest case",
    )
