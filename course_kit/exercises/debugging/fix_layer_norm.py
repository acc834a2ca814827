"""Exercise `fix_layer_norm`: metadata, stub and cases."""

import torch

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_kit.exercises.transformer.layer_norm import exercise as layer_norm

__all__ = ["exercise", "fix_layer_norm"]


def fix_layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, keepdim=True, correction=0)
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias


exercise = Exercise(
    **texts_next_to(__file__),
    repair=True,
    difficulty=2,
    minutes=7,
    stub='''\
def fix_layer_norm(x, gain, bias, eps=1e-5):
    """Layer norm over the last axis, as nn.LayerNorm computes it."""
    raise NotImplementedError  # delete this line once you have decided
    mean = x.mean(dim=-1, keepdim=True)
    deviation = x.std(dim=-1, keepdim=True)
    return gain * (x - mean) / (deviation + eps) + bias
''',
    reference=fix_layer_norm,
    shapes={"x": "... d_model", "gain": "d_model", "bias": "d_model"},
    read_next="model_bugs: Layer norm that differs from PyTorch's",
    forbidden=("course_lib.layer_norm", *layer_norm.forbidden),
)


def _vectors_gain_and_bias(draw: Draw, batch=(), dtype=torch.float32, *, width=None, scale=1.0):
    (drawn,) = draw.sizes(1, 3, 9, but=batch)
    d_model = width or drawn
    return (
        draw.normal(*batch, d_model, dtype=dtype, scale=scale),
        draw.normal(d_model, dtype=dtype),
        draw.normal(d_model, dtype=dtype),
    )


@exercise.holds(
    "With eps = 0, each vector has mean 0 and variance 1 before gain and bias, as in nn.LayerNorm", weight=2
)
def _(draw):
    yield Case(
        args=(torch.tensor([1.0, 3.0]), torch.tensor([1.0, 2.0]), torch.tensor([0.0, 10.0]), 0.0),
        note="mean 2, variance 1",
        degenerate_because="the smallest case, to be read by eye",
    )
    for batch in draw.batches():
        for dtype in (torch.float64, torch.float32):
            yield Case(args=(*_vectors_gain_and_bias(draw, batch, dtype), 0.0), note="eps = 0")
    for width in (2, 3, 64):
        yield Case(
            args=(*_vectors_gain_and_bias(draw, (5, 4), width=width), 0.0),
            note=f"{width} features",
            gradients=width < 64,
        )
    x, gain, bias = _vectors_gain_and_bias(draw, (5,), scale=1e3)
    yield Case(args=(x, gain, bias, 0.0), note="features of some thousands", tolerance=50, gradients=False)


# Variances far below eps: the result hardly depends on them, so that only eps and its place count.
@exercise.holds(
    "Vectors whose features are nearly equal are not enlarged more than nn.LayerNorm enlarges them", weight=2
)
def _(draw):
    x, gain, bias = _vectors_gain_and_bias(draw, (5,), torch.float64, scale=1e-6)
    x[0] = 3.0
    yield Case(args=(x, gain, bias), note="one vector of equal features", degenerate_because="equal features")
    for dtype in (torch.float64, torch.float32):
        for batch in draw.batches():
            yield Case(args=_vectors_gain_and_bias(draw, batch, dtype, scale=1e-6), note="features of about 1e-6")
        yield Case(
            args=(*_vectors_gain_and_bias(draw, (5,), dtype, scale=1e-4), 0.5), note="features of about 1e-4, eps = 0.5"
        )


@exercise.holds("With the default eps and with others, the result is that of nn.LayerNorm, whatever the number of axes")
def _(draw):
    for batch in (*draw.batches(), (2, 1, 3)):
        for dtype in (torch.float64, torch.float32):
            edge = "one of them is short" if 1 in batch else ""
            yield Case(
                args=_vectors_gain_and_bias(draw, batch, dtype),
                note=f"{len(batch)} axes before the last",
                degenerate_because=edge,
            )
    for dtype in (torch.float64, torch.float32):
        yield Case(args=_vectors_gain_and_bias(draw, (5,), dtype, scale=2e-3), note="a variance as small as eps")
        for eps in (0.5, 1e-2):
            yield Case(args=(*_vectors_gain_and_bias(draw, (5,), dtype), eps), note=f"eps = {eps}")
    yield Case(
        args=_vectors_gain_and_bias(draw, (4,), width=4),
        note="as many vectors as features",
        degenerate_because="equal on purpose",
    )
