"""Exercise `lora`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.language_model import lora

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=10,
    stub='''\
def lora(x, weight, a, b, alpha):
    """x (..., d_in) times weight (d_out, d_in) plus its update, to (..., d_out)."""
    raise NotImplementedError
''',
    reference=lora,
    shapes={"x": "... d_in", "weight": "d_out d_in", "a": "rank d_in", "b": "d_out rank"},
    returns=("y",),
    read_next="lora: The update as two thin matrices",
)


def _adapted(draw: Draw, batch=(), dtype=torch.float32, rank: int | None = None, *, square=False):
    """x, weight, a and b, of four different sizes, or with d_in and d_out equal."""
    d_in, d_out, drawn = draw.sizes(3, 2, 11, but=(*batch, rank or 0))
    d_out = d_in if square else d_out
    r = rank or drawn
    shapes = ((*batch, d_in), (d_out, d_in), (r, d_in), (d_out, r))
    return tuple(draw.normal(*shape, dtype=dtype) for shape in shapes)


@exercise.holds("The update is added to the product with the weight; with alpha = r its factor is 1", weight=2)
def _(draw):
    x, weight = torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 0.0], [0.0, -1.0], [2.0, 1.0]])
    a, b = torch.tensor([[3.0, 1.0]]), torch.tensor([[1.0], [-2.0], [0.0]])
    edge = "rank 1, to be read by eye: A x is 5, so y is (1 + 5, −2 − 10, 4)"
    yield Case(args=(x, weight, a, b, 1.0), note="rank 1, alpha 1", degenerate_because=edge)
    for dtype in (torch.float32, torch.float64):
        args = _adapted(draw, (13,), dtype)
        rank = len(args[2])
        yield Case(args=(*args, float(rank)), note=f"rank {rank}, alpha {rank}")


@exercise.holds("The update is multiplied by alpha and divided by the rank, and nothing else is", weight=2)
def _(draw):
    for rank, alpha, dtype in ((2, 5.0, torch.float32), (3, 16.0, torch.float64), (7, 0.5, torch.float32)):
        yield Case(args=(*_adapted(draw, (13,), dtype, rank), alpha), note=f"rank {rank}, alpha {alpha:g}")
    edge = "rank 1"
    yield Case(args=(*_adapted(draw, (13,), rank=1), 4.0), note="rank 1, alpha 4", degenerate_because=edge)


@exercise.holds("It works with zero, one or two batch dimensions, in float32 and float64")
def _(draw):
    for batch in ((), (13,), (17, 13)):
        for dtype in (torch.float32, torch.float64):
            args = _adapted(draw, batch, dtype)
            yield Case(args=(*args, float(len(args[2]))), note=f"batch dimensions: {len(batch)}")
    x, *matrices = _adapted(draw, (13,))
    args = (x.mT.contiguous().mT, *(m.mT.contiguous().mT for m in matrices), float(len(matrices[1])))
    yield Case(args=args, note="transposed in memory")
    square = "d_in and d_out are equal, as they often are in a model"
    args = _adapted(draw, (13,), rank=2, square=True)
    yield Case(args=(*args, 3.0), note="a square weight", degenerate_because=square)


@exercise.holds("With b zero, as at the start of training, it is the product with the weight alone")
def _(draw):
    for batch in ((), (13,)):
        x, weight, a, b = _adapted(draw, batch)
        yield Case(args=(x, weight, a, 0 * b, 3.0), note="b zero", degenerate_because="b is zero on purpose")
