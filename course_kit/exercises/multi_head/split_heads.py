"""Exercise `split_heads`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises.multi_head.sizes import HEADS_AND_WIDTHS
from course_lib.multi_head import split_heads

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=10,
    stub='''\
def split_heads(x, num_heads):
    """(..., L, d_model) -> (..., num_heads, L, d_model // num_heads)."""
    raise NotImplementedError
''',
    reference=split_heads,
    shapes={"x": "... length d_model"},
    returns=("heads",),
    read_next="multi_head: Splitting features",
)


def _features(draw: Draw, pair, batch, dtype=torch.float32):
    num_heads, d_head = pair
    (length,) = draw.sizes(1, but=(*batch, *pair, num_heads * d_head))
    return draw.normal(*batch, length, num_heads * d_head, dtype=dtype), num_heads


@exercise.holds("Head h holds the h-th contiguous slice of the features, position by position", weight=2)
def _(draw):
    x = torch.tensor([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    yield Case(
        args=(x, 2), note="two positions of four features", degenerate_because="the smallest case, to be read by eye"
    )
    for pair in HEADS_AND_WIDTHS:
        yield Case(args=_features(draw, pair, ()))


@exercise.holds("It works with zero, one or two batch dimensions, in float32 and float64", weight=2)
def _(draw):
    for batch, pair in zip(draw.batches(but=(2, 3, 4, 6, 8)), HEADS_AND_WIDTHS, strict=False):
        for dtype in (torch.float64, torch.float32):
            yield Case(args=_features(draw, pair, batch, dtype), note=f"batch dimensions: {len(batch)}")
    x = draw.normal(2, 1, 3, 5, 8)
    yield Case(args=(x, 4), note="batch dimensions: 3", degenerate_because="a batch dimension of length one")
    yield Case(args=(draw.normal(7, 6, 5).mT, 2), note="a tensor that is transposed in memory")


@exercise.holds(
    "One head takes all features, d_model heads take one each; a number that does not divide is a ValueError"
)
def _(draw):
    for batch in draw.batches(but=(6,)):
        (length,) = draw.sizes(1, but=(*batch, 6))
        x = draw.normal(*batch, length, 6)
        yield Case(args=(x, 1 if batch else 6), note="one head" if batch else "as many heads as features")
        for num_heads in (4, 12):
            yield Case(args=(x, num_heads), raises=ValueError, note=f"{num_heads} heads for 6 features")
    yield Case(
        args=(draw.normal(1, 3, 4), 2), note="a batch of one", degenerate_because="an axis of length one on purpose"
    )
