"""Exercise `layer_norm`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises._headings import RESIDUALS
from course_lib.transformer import layer_norm

exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=10,
    stub='''\
def layer_norm(x, gain, bias, eps=1e-5):
    """Mean 0 and variance 1 over the last axis of x, then times gain, plus bias."""
    raise NotImplementedError
''',
    reference=layer_norm,
    shapes={"x": "... d", "gain": "d", "bias": "d"},
    read_next=RESIDUALS,
    forbidden=(
        "layer_norm",
        "native_layer_norm",
        "group_norm",
        "native_group_norm",
        "instance_norm",
        "batch_norm",
        "native_batch_norm",
        "_native_batch_norm_legit",
    ),
)


def _vectors(draw: Draw, batch=(), dtype=torch.float32, scale=1.0):
    (width,) = draw.sizes(1, 3, 8, but=batch)
    return (
        draw.normal(*batch, width, dtype=dtype, scale=scale),
        draw.normal(width, dtype=dtype),
        draw.normal(width, dtype=dtype),
    )


@exercise.holds("Each vector gets mean 0 and variance 1 over its own features, then gain and bias", weight=3)
def _(draw):
    yield Case(
        args=(torch.tensor([1.0, 3.0]), torch.tensor([1.0, 2.0]), torch.tensor([0.0, 10.0])),
        degenerate_because="the smallest case, to be read by eye: mean 2, variance 1",
        note="mean 2, variance 1",
    )
    for batch in draw.batches():
        rows = draw.sizes(1, but=batch)
        yield Case(args=_vectors(draw, (*batch, *rows)))


@exercise.holds("It works for a single vector and for any number of axes before the last, in float32 and float64")
def _(draw):
    for batch in draw.batches():
        for dtype in (torch.float64, torch.float32):
            yield Case(args=_vectors(draw, batch, dtype), note=f"{len(batch)} axes before the last")


@exercise.holds("eps is added to the variance, under the root", weight=2)
def _(draw):
    rows = draw.sizes(1)
    for dtype in (torch.float32, torch.float64):
        yield Case(args=_vectors(draw, rows, dtype, scale=2e-3), note="a variance as small as eps")
    yield Case(args=(*_vectors(draw, rows, torch.float64), 0.5), note="eps = 0.5")
    yield Case(args=(*_vectors(draw, rows), 1e-2), note="eps = 0.01")
    yield Case(args=(*_vectors(draw, rows, scale=2e-3), 0.0), note="eps = 0")
    x, gain, bias = _vectors(draw, rows, torch.float64)
    x[0] = 3.0
    yield Case(args=(x, gain, bias), note="one vector of equal features")


@exercise.holds("A large mean does not spoil the variance")
def _(draw):
    for batch in ((4,), (2, 3)):
        x, gain, bias = _vectors(draw, batch)
        x = x / x.std(-1, keepdim=True)
        signs = torch.tensor([1.0, -1.0] * (x.shape[:-1].numel() // 2)).view(*batch, 1)
        yield Case(args=(x + 1000 * signs, gain, bias), note="means of ±1000", tolerance=50, gradients=False)
