"""Exercise `fix_softmax`: metadata, stub and cases."""

import math

import torch

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises.attention.shifted_rows import shifted_rows
from course_kit.exercises.attention.softmax import exercise as softmax_exercise

__all__ = ["exercise", "fix_softmax"]


def fix_softmax(scores, dim=-1):
    largest = scores.amax(dim=dim, keepdim=True)
    powers = torch.exp(scores - largest)
    return powers / powers.sum(dim=dim, keepdim=True)


exercise = Exercise(
    **texts_next_to(__file__),
    repair=True,
    difficulty=2,
    minutes=7,
    stub='''\
def fix_softmax(scores, dim=-1):
    """Softmax over `dim`, finite and correct for scores up to ±1e4."""
    raise NotImplementedError  # delete this line once you have decided
    largest = scores.max(dim=dim, keepdim=True).values.detach()
    powers = torch.exp(scores - largest)
    return powers / powers.sum(dim=dim, keepdim=True)
''',
    reference=fix_softmax,
    shapes={"scores": "... length"},
    read_next="debugging: float64 against float32",
    returns=("weights",),
    forbidden=("course_lib.softmax", *softmax_exercise.forbidden),
)


@exercise.remark(
    """Which measurement convinced you? Weights that agree with those of `torch.softmax` say nothing about the
    gradients: it takes a measurement of each."""
)
def _(called):
    return True


@exercise.holds("Weights and gradients are those of the formula, to the precision of the dtype", weight=2)
def _(draw):
    yield Case(
        args=(torch.tensor([0.0, math.log(3.0)]),),
        note="two scores",
        degenerate_because="the smallest case, to be read by eye",
    )
    for batch in draw.batches():
        (length,) = draw.sizes(1, but=batch)
        for dtype in (torch.float32, torch.float64):
            scores = draw.normal(*batch, length, dtype=dtype, scale=2.0)
            yield Case(args=(scores,), note=f"{len(batch) + 1} axes")
    yield Case(args=(draw.normal(2, 5, 3, dtype=torch.float64).mT,), note="a tensor that is transposed in memory")


@exercise.holds("The axis that sums to one is `dim`, counted from either end", weight=2)
def _(draw):
    for axes, dim in ((2, 0), (3, 1), (3, 0), (3, -2), (4, 1), (4, -3), (2, 1), (1, 0), (3, -1)):
        dtype = torch.float64 if dim < 0 else torch.float32
        yield Case(args=(draw.normal(*draw.sizes(axes), dtype=dtype, scale=2.0), dim), note=f"{axes} axes, dim={dim}")
    yield Case(
        args=(draw.normal(2, 1, 3, 4, 2, scale=2.0), 2),
        note="5 axes, dim=2",
        degenerate_because="an axis of length one",
    )
    one = draw.normal(3, 1, dtype=torch.float64)
    yield Case(args=(one, 1), note="an axis of one score, which gets all the weight", degenerate_because="length one")


@exercise.holds("Scores up to ±10,000 give finite and correct weights", weight=2)
def _(draw):
    note = "each row around a level of its own, up to ±1e4"
    for dtype in (torch.float32, torch.float64):
        (length,) = draw.sizes(1, but=(3,))
        yield Case(args=(shifted_rows(draw, length, dtype),), note=note, tolerance=50)
    yield Case(args=(shifted_rows(draw, length).T.contiguous(), 0), note=note, tolerance=50)
    rows, length = draw.sizes(2)
    spread = draw.uniform(rows, length, low=-1e4, high=1e4)
    spread[0, :2] = torch.tensor([-1e4, 1e4])
    yield Case(args=(spread,), note="scores between -1e4 and 1e4", tolerance=50)
    yield Case(args=(draw.normal(rows, length, scale=100.0),), note="scores of some hundreds", tolerance=50)
    yield Case(
        args=(torch.tensor([1000.0, 1001.0, 1003.0]),), degenerate_because="to be read by eye", note="scores near 1000"
    )
    yield Case(
        args=(torch.tensor([-997.0, -1000.0, -999.0]),),
        degenerate_because="to be read by eye",
        note="scores near -1000",
    )
