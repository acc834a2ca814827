"""Exercise `apply_rotary`: metadata, stub and cases."""

import torch
from torch import Tensor

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.positional_encoding import apply_rotary

exercise = Exercise(
    **texts_next_to(__file__),
    forbidden=("transformers.apply_rotary_pos_emb", "transformers.apply_rotary_emb"),
    difficulty=3,
    minutes=25,
    stub='''\
def apply_rotary(x, positions, base=10000.0):
    """Each pair of neighbours in x turned by position * base^(-2i / d)."""
    raise NotImplementedError
''',
    reference=apply_rotary,
    shapes={"x": "... length d", "positions": "length"},
    returns=("turned",),
    read_next="positional_encoding: Rotary position embedding (RoPE)",
)


def _rows(draw: Draw, d: int, batch=(), dtype=torch.float32):
    (length,) = draw.sizes(1, 3, 9, but=(d, *batch))
    return draw.normal(*batch, length, d, dtype=dtype)


def _in_order(x: Tensor) -> Tensor:
    return torch.arange(x.shape[-2])


@exercise.holds("Each pair of neighbours (x_2i, x_2i+1) is turned by position · base^(−2i / d)", weight=3)
def _(draw):
    yield Case(
        args=(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 1])),
        degenerate_because="the smallest case, to be read by eye: (1, 0) at position 1 becomes cosine and sine of 1",
    )
    for d in (4, 6, 8):
        x = _rows(draw, d)
        yield Case(args=(x, _in_order(x)), note="positions 0, 1, 2, …")


@exercise.holds("It works with zero, one or two batch dimensions, in float32 and float64")
def _(draw):
    for dtype in (torch.float32, torch.float64):
        d = draw.choice((4, 6))
        for batch in draw.batches(but=(d,)):
            x = _rows(draw, d, batch, dtype)
            yield Case(args=(x, _in_order(x)), note=f"batch dimensions: {len(batch)}")
    x = draw.normal(2, 3, 5, 7, 4)
    yield Case(args=(x, _in_order(x)), note="batch dimensions: 3")


@exercise.holds("The angles depend on the given positions, in any order and starting anywhere", weight=2)
def _(draw):
    for dtype in (torch.float32, torch.float32, torch.float64):
        x = draw.normal(7, 5, 4, dtype=dtype)
        yield Case(args=(x, torch.tensor([11, 2, 7, 3, 5])), note="positions 11, 2, 7, 3, 5")
    x = draw.normal(2, 3, 8)
    yield Case(args=(x, torch.tensor([6, 7, 8])), note="positions 6, 7, 8")
    x = draw.normal(2, 5, 4)
    yield Case(args=(x, torch.tensor([3, 0, 3, 3, 8])), note="positions 3, 0, 3, 3, 8: one of them three times")
    yield Case(
        args=(draw.normal(3, 1, 4), torch.tensor([9])),
        note="one row, at position 9",
        degenerate_because="a length of one on purpose",
    )


@exercise.holds("The given base is used")
def _(draw):
    for base in (100.0, 500_000.0):
        x = _rows(draw, 6, (2,))
        yield Case(args=(x, _in_order(x), base), note=f"base {base:,.0f}")
    x = _rows(draw, 4, dtype=torch.float64)
    yield Case(args=(x, _in_order(x) + 2, 12.5), note="base 12.5")


@exercise.holds("Distant positions are handled correctly, too")
def _(draw):
    x = draw.normal(2, 3, 4)
    yield Case(args=(x, torch.tensor([4999, 5000, 5001])), note="positions about 5,000", tolerance=50)
    x = draw.normal(2, 3, 6)
    yield Case(args=(x, torch.tensor([5000, 70, 600])), note="positions up to 5,000", tolerance=50)
    x = draw.normal(2, 3, 6, dtype=torch.float64)
    yield Case(args=(x, torch.tensor([5000, 70, 100_000])), note="positions up to 100,000, in float64")
