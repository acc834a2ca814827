"""Exercise `fix_layer_norm`: metadata, stub and cases."""

from __future__ import annotations

import torch

from course_lib.exercises._exercise import Case, Exercise
from course_lib.exercises._files import beside

__all__ = ["exercise", "fix_layer_norm"]


def fix_layer_norm(x, gain, bias, eps=1e-5):
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, keepdim=True, correction=0)
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias


exercise = Exercise(
    **beside(__file__),
    name="fix_layer_norm",
    chapter="debugging",
    repair=True,
    difficulty=1,
    minutes=5,
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
    look="deeper/model_bugs: TODO",
    twins=("layer_norm", "torch.nn.LayerNorm"),
)


@exercise.holds("The result is right")
def _(draw):
    for batch in draw.batches():
        (d_model,) = draw.sizes(1, 4, 8, but=batch)
        yield Case(args=(draw.normal(*batch, d_model), draw.normal(d_model), draw.normal(d_model)))
