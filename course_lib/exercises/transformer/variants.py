"""Layers with a part or a mask exchanged, as the mistakes of several exercises use them."""

from __future__ import annotations

import torch
from torch import nn

from course_lib.exercises.multi_head.multi_head_attention import MultiHeadAttention as PlainAttention
from course_lib.exercises.transformer.feed_forward import FeedForward
from course_lib.exercises.transformer.residual_forms import inside, pre, without_norm, without_shortcut

__all__ = [
    "PARTS",
    "WITH_A_MASK_MISTAKE",
    "attended_by",
    "built_with",
    "everywhere",
    "hidden",
    "where_given",
    "with_forward",
]


def hidden(between=torch.relu, before=lambda x: x, after=lambda y, x: y):
    """The network with something else between, before and after its Linears."""

    class Network(FeedForward):
        def forward(self, x):
            return after(self.linear2(between(self.linear1(before(x)))), x)

    return Network


def built_with(base, **parts):
    """A layer some of whose parts are made otherwise: by a function of the constructor's arguments; None, left out."""

    class Layer(base):
        def __init__(self, *sizes):
            nn.Module.__init__(self)
            for name, make in {**PARTS[base.__name__], **parts}.items():
                if make is not None:  # only what is used is built: a check looks at hundreds of layers
                    setattr(self, name, make(*sizes))

    return Layer


# What the constructors build.
PARTS = {
    "FeedForward": {"linear1": lambda d, f: nn.Linear(d, f), "linear2": lambda d, f: nn.Linear(f, d)},
    "EncoderLayer": {
        "self_attention": lambda d, h, f: PlainAttention(d, h),
        "feed_forward": lambda d, h, f: FeedForward(d, f),
        "norm1": lambda d, h, f: nn.LayerNorm(d),
        "norm2": lambda d, h, f: nn.LayerNorm(d),
    },
    "DecoderLayer": {
        "self_attention": lambda d, h, f: PlainAttention(d, h),
        "cross_attention": lambda d, h, f: PlainAttention(d, h),
        "feed_forward": lambda d, h, f: FeedForward(d, f),
        "norm1": lambda d, h, f: nn.LayerNorm(d),
        "norm2": lambda d, h, f: nn.LayerNorm(d),
        "norm3": lambda d, h, f: nn.LayerNorm(d),
    },
}


def where_given(mask, change):
    return None if mask is None else change(mask)


WITH_A_MASK_MISTAKE = (
    ("pre_norm", "this is pre-norm, where the norm belongs after the sum", {"ways": pre}),
    (
        "norm_inside_residual",
        "the norm is applied to the sub-layer's output and not to the sum",
        {"ways": inside},
    ),
    ("no_residuals", "there are no residual connections", {"ways": without_shortcut}),
    ("no_norms", "the norms are not used", {"ways": without_norm}),
    ("only_norm1", "norm1 does the work of all norms", {"norms": 1}),
)


def everywhere(count, changes):
    """The same change at each sub-layer."""
    return {name: (value,) * count for name, value in changes.items()}


def with_forward(base):
    """From a wrong `forward` the layer that has it."""
    return lambda forward: type(base.__name__, (base,), {"forward": forward})


def attended_by(layer, x, mask):
    return layer.self_attention(x, x, x, mask)[0]
