"""Exercise `swiglu`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.language_model import swiglu

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=8,
    stub='''\
def swiglu(x, w_gate, w_up, w_down):
    """w_down applied to silu(w_gate x) times w_up x, at every position."""
    raise NotImplementedError
''',
    reference=swiglu,
    shapes={"x": "... d_model", "w_gate": "d_ff d_model", "w_up": "d_ff d_model", "w_down": "d_model d_ff"},
    read_next="language_model: A gated feed-forward network",
    forbidden=("course_lib.language_model.SwiGLU", "transformers.LlamaMLP"),
)


def _with_matrices(draw: Draw, batch=(), dtype=torch.float32, scale=1.0):
    """x and the three matrices; projections spread about as much as x."""
    d_model, d_ff = draw.sizes(2, 2, 9, but=batch)

    def matrix(out, into):
        return draw.normal(out, into, dtype=dtype, scale=into**-0.5)

    x = draw.normal(*batch, d_model, dtype=dtype, scale=scale)
    return x, matrix(d_ff, d_model), matrix(d_ff, d_model), matrix(d_model, d_ff)


@exercise.holds("It is w_down applied to the product of silu(w_gate x) and w_up x", weight=3)
def _(draw):
    yield Case(
        args=(
            torch.tensor([[1.0, 2.0]]),
            torch.tensor([[1.0, 0.0], [0.0, -1.0], [2.0, -1.0]]),
            torch.tensor([[0.0, 1.0], [3.0, 0.0], [1.0, 2.0]]),
            torch.tensor([[1.0, 0.0, 1.0], [0.0, -1.0, 0.0]]),
        ),
        degenerate_because="a small case, to be followed with a pencil",
        note="gate features 1, −2, 0 before silu, up features 2, 3, 5",
    )
    for _ in range(3):
        yield Case(args=_with_matrices(draw, draw.sizes(2, 2, 5), scale=2.0))


@exercise.holds("It works for a single position and for any number of axes before the features, in float32 and float64")
def _(draw):
    for batch in draw.batches():
        for dtype in (torch.float64, torch.float32):
            yield Case(args=_with_matrices(draw, batch, dtype), note=f"{len(batch)} axes before the features")
    yield Case(args=_with_matrices(draw, (2, 3, 5)), note="3 axes before the features")
    x, *matrices = _with_matrices(draw, (3, 5))
    turned = [w.T.contiguous().T for w in matrices]
    yield Case(args=(x.mT.contiguous().mT, *turned), note="tensors that are transposed in memory")


@exercise.holds("Large inputs stay finite, and right")
def _(draw):
    for dtype, scale in ((torch.float32, 400.0), (torch.float64, 3000.0)):
        args = _with_matrices(draw, (7, 3), dtype, scale)
        yield Case(args=args, note="gate features of some hundreds", tolerance=50, gradients=False)
