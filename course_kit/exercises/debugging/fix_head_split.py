"""Exercise `fix_head_split`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to

__all__ = ["exercise", "fix_head_split"]


def fix_head_split(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2)  # (..., H, L, d_head)


exercise = Exercise(
    **texts_next_to(__file__),
    repair=True,
    difficulty=1,
    minutes=5,
    stub='''\
def fix_head_split(x, num_heads):
    """(..., L, d_model) to (..., num_heads, L, d_head), by slices of features."""
    raise NotImplementedError  # delete this line once you have decided
    *batch, length, d_model = x.shape
    return x.reshape(*batch, num_heads, length, d_model // num_heads)
''',
    reference=fix_head_split,
    shapes={"x": "... length d_model"},
    returns=("heads",),
    read_next="debugging: Shapes with different primes",
    forbidden=("course_lib.split_heads",),
)

HEADS_OF_ALL_WIDTHS = ((2, 3), (3, 2), (2, 5), (4, 2), (5, 3))


def _positions_of_features(draw: Draw, pair, batch=(), dtype=torch.float32):
    num_heads, d_head = pair
    (length,) = draw.sizes(1, but=(*batch, *pair, num_heads * d_head))
    return draw.normal(*batch, length, num_heads * d_head, dtype=dtype), num_heads


@exercise.holds(
    "Each position of a head depends on the same position of the input only, on its slice of features", weight=3
)
def _(draw):
    x = torch.arange(10.0, 50.0, 10.0)[:, None] + torch.arange(1.0, 7.0)  # 11 to 16, 21 to 26, …
    note = "four positions of six features"
    yield Case(args=(x, 2), note=note, degenerate_because="one sign: position and feature, to be read by eye")
    for pair in HEADS_OF_ALL_WIDTHS:
        yield Case(args=_positions_of_features(draw, pair), note=f"{pair[0]} heads of {pair[1]} features")


@exercise.holds(
    "It works with any number of batch dimensions, in float32 and float64, and any layout in memory", weight=2
)
def _(draw):
    for batch, pair in zip(draw.batches(but=(2, 3, 4, 5, 6, 8, 10)), HEADS_OF_ALL_WIDTHS, strict=False):
        for dtype in (torch.float64, torch.float32):
            yield Case(args=_positions_of_features(draw, pair, batch, dtype), note=f"batch dimensions: {len(batch)}")
    yield Case(
        args=(draw.normal(2, 1, 3, 5, 8), 4),
        note="batch dimensions: 3",
        degenerate_because="a batch dimension of length one",
    )
    yield Case(args=(draw.normal(3, 6, 5).mT, 2), note="a tensor that is transposed in memory")
    yield Case(args=(draw.normal(1, 5, 6), 3), note="a batch of one", degenerate_because="a batch of one")


@exercise.holds("One head takes all features, and d_model heads take one each")
def _(draw):
    for batch in draw.batches(but=(6,)):
        (length,) = draw.sizes(1, but=(*batch, 6))
        x = draw.normal(*batch, length, 6)
        yield Case(args=(x, 1), note="one head")
        yield Case(args=(x, 6), note="as many heads as features")
    yield Case(args=(draw.normal(1, 6), 3), note="one position", degenerate_because="one position")
    yield Case(
        args=(draw.normal(2, 4, 4), 2), note="as many positions as features", degenerate_because="axes of one length"
    )
