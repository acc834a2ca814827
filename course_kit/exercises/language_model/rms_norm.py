"""Exercise `rms_norm`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.language_model import rms_norm

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=1,
    minutes=5,
    stub='''\
def rms_norm(x, gain, eps=1e-5):
    """Each vector of x divided by its root mean square, times gain."""
    raise NotImplementedError
''',
    reference=rms_norm,
    shapes={"x": "... d", "gain": "d"},
    read_next="language_model: RMS norm",
    forbidden=("rms_norm", "_fused_rms_norm", "torch.nn.RMSNorm", "transformers.LlamaRMSNorm"),
)


def _not_centred(draw: Draw, batch=(), dtype=torch.float32, scale=1.0):
    """Vectors with means far from zero, and a gain."""
    (width,) = draw.sizes(1, 3, 8, but=batch)
    x = draw.normal(*batch, width, dtype=dtype) + draw.normal(*batch, 1, dtype=dtype)
    if bool((x >= 0).all() | (x <= 0).all()):  # both signs are wanted
        x[..., 0] = -x[..., 0]
    return x * scale, draw.normal(width, dtype=dtype)


@exercise.holds("Each vector is divided by the root of the mean of its squares, then multiplied by gain", weight=3)
def _(draw):
    yield Case(
        args=(torch.tensor([1.0, 7.0]), torch.tensor([1.0, 2.0])),
        degenerate_because="the smallest case, to be read by eye: mean square 25",
        note="mean square 25, root 5",
    )
    for batch in draw.batches():
        rows = draw.sizes(1, but=batch)
        yield Case(args=_not_centred(draw, (*batch, *rows)))


@exercise.holds("It works for a single vector and for any number of axes before the last, in float32 and float64")
def _(draw):
    for batch in draw.batches():
        for dtype in (torch.float64, torch.float32):
            # In float64 even the smallest slip with eps would show, which is the next line's subject.
            eps = (0.0,) if dtype == torch.float64 else ()
            yield Case(args=(*_not_centred(draw, batch, dtype), *eps), note=f"{len(batch)} axes before the last")
    yield Case(args=_not_centred(draw, (2, 3, 5)), note="3 axes before the last")


@exercise.holds("eps is added to the mean square, under the root", weight=2)
def _(draw):
    rows = draw.sizes(1)
    for dtype in (torch.float32, torch.float64):
        yield Case(args=_not_centred(draw, rows, dtype, scale=2e-3), note="a mean square as small as eps")
    yield Case(args=(*_not_centred(draw, rows, torch.float64), 0.5), note="eps = 0.5")
    yield Case(args=(*_not_centred(draw, rows), 1e-2), note="eps = 0.01")
    yield Case(args=(*_not_centred(draw, rows, scale=2e-3), 0.0), note="eps = 0")
    x, gain = _not_centred(draw, rows, torch.float64)
    x[0] = 0.0
    yield Case(args=(x, gain), note="one vector of zeros")
