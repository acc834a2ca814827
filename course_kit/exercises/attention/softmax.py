"""Exercise `softmax`: metadata, stub and cases."""

import math

import torch

from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises.attention.shifted_rows import shifted_rows
from course_lib.attention import softmax

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=10,
    stub='''\
def softmax(scores, dim=-1):
    """Positive weights that sum to one along `dim`; same shape as the scores."""
    raise NotImplementedError
''',
    reference=softmax,
    shapes={"scores": "... length"},
    returns=("weights",),
    read_next="attention: The softmax turns scores into weights",
    forbidden=(
        "softmax",
        "special_softmax",
        "_softmax",
        "_safe_softmax",
        "softmin",
        "log_softmax",
        "_log_softmax",
        "gumbel_softmax",
        "scaled_dot_product_attention",
        "_sparse_softmax",
        "_sparse_log_softmax",
        "torch.masked.softmax",
        "torch.masked.log_softmax",
        "torch.masked.softmin",
        "scipy.softmax",
        "scipy.log_softmax",
    ),
)


@exercise.holds("Each weight is the score's exponential, divided by the sum along the last axis", weight=2)
def _(draw):
    yield Case(args=(torch.tensor([0.0, math.log(3.0)]),), degenerate_because="the smallest case, to be read by eye")
    yield Case(args=(torch.tensor([[0.0, math.log(3.0)], [0.0, -math.log(4.0)], [math.log(2.0), math.log(2.0)]]),))
    for batch in draw.batches():
        (length,) = draw.sizes(1, but=batch)
        for dtype in (torch.float32, torch.float64):
            yield Case(args=(draw.normal(*batch, length, dtype=dtype, scale=2.0),))


@exercise.holds("`dim` names the axis that sums to one, from either end", weight=2)
def _(draw):
    for axes, dim in ((2, 0), (3, 1), (3, 0), (3, -2), (4, 1), (4, -3), (2, 1), (1, 0), (3, -1)):
        dtype = torch.float64 if dim < 0 else torch.float32
        yield Case(args=(draw.normal(*draw.sizes(axes), dtype=dtype, scale=2.0), dim), note=f"{axes} axes, dim={dim}")
    x = draw.normal(2, 1, 3, 4, 2, scale=2.0)
    yield Case(args=(x, 2), note="5 axes, dim=2", degenerate_because="an axis of length one")
    yield Case(
        args=(draw.normal(3, 1), 1),
        note="an axis of one score, which gets all the weight",
        degenerate_because="length one",
    )
    yield Case(args=(draw.normal(2, 5, 3).mT,), note="a tensor that is transposed in memory")


@exercise.holds("Scores up to ±10,000 give finite and right weights", weight=2)
def _(draw):
    note = "scores around ±1e4"
    for dtype in (torch.float32, torch.float64):
        (length,) = draw.sizes(1, but=(3,))
        yield Case(args=(shifted_rows(draw, length, dtype),), note=note, tolerance=50)
    yield Case(args=(shifted_rows(draw, length).T.contiguous(), 0), note=note, tolerance=50)
    rows, length = draw.sizes(2)
    spread = draw.uniform(rows, length, low=-1e4, high=1e4)
    spread[0, :2] = torch.tensor([-1e4, 1e4])
    yield Case(args=(spread,), note="scores between -1e4 and 1e4", tolerance=50)
    yield Case(args=(draw.normal(rows, length, scale=100.0),), note="scores of some hundreds", tolerance=50)
    high, low = torch.tensor([1000.0, 1001.0, 1003.0, 1000.0]), torch.tensor([-997.0, -1000.0, -999.0, -1000.0])
    yield Case(args=(high,), degenerate_because="to be read by eye", note="scores near 1000")
    yield Case(args=(low,), degenerate_because="to be read by eye", note="scores near -1000")
