"""Ways to put a sub-layer, its norm and its residual connection together, and what is said of the wrong ones."""

from __future__ import annotations

from torch import nn

from course_lib.exercises._headings import PRE_OR_POST, RESIDUALS

__all__ = ["add_ways", "inside", "post", "pre", "without_norm", "without_shortcut"]


# Ways to put a sub-layer f, its norm and its residual connection together; the first is the right one.
def post(x, norm, f):
    return norm(x + f(x))


def pre(x, norm, f):
    return x + f(norm(x))


def _pre_without_shortcut(x, norm, f):
    return f(norm(x))


def _from_normed(x, norm, f):
    return norm(x) + f(norm(x))


def inside(x, norm, f):
    return x + norm(f(x))


def _shortcut_normed(x, norm, f):
    return norm(x) + f(x)


def _both(x, norm, f):
    return norm(x + f(norm(x)))


def without_shortcut(x, norm, f):
    return norm(f(x))


def _doubled(x, norm, f):
    return norm(2 * f(x))


def _shortcut_twice(x, norm, f):
    return norm(2 * x + f(x))


def without_norm(x, norm, f):
    return x + f(x)


def _bare(x, norm, f):
    return f(x)


def _without_sublayer(x, norm, f):
    return norm(x)


def _skipped(x, norm, f):
    return x


def _multiplied(x, norm, f):
    return norm(x * f(x))


def _activated(x, norm, f):
    return norm(x + f(x).relu())


def _dropped(x, norm, f):
    return norm(x + nn.functional.dropout(f(x), 0.1, norm.training))


def _normed_twice(x, norm, f):
    return norm(x + norm(f(x)))


# What is said of a wrong way for all sub-layers, and of one for one of them.
EVERYWHERE = {
    "pre_norm": (
        pre,
        "This is pre-norm: each norm is applied to what goes into its sub-layer. In the paper, and here, it is applied "
        "to the sum that comes out.",
        PRE_OR_POST,
    ),
    "pre_norm_from_normed": (
        _from_normed,
        "Each norm is applied first, and the residual connection starts after it. Here the residual connection starts "
        "at x, and the norm comes after the sum.",
        PRE_OR_POST,
    ),
    "pre_norm_without_residual": (
        _pre_without_shortcut,
        "Each norm stands before its sub-layer, and there is no residual connection. Here x is added to what the "
        "sub-layer makes of it, and the sum is normed.",
        PRE_OR_POST,
    ),
    "norm_inside_residual": (
        inside,
        "The norm is applied to the output of the sub-layer alone, and x is added after it. Which comes first, sum or "
        "norm?",
        PRE_OR_POST,
    ),
    "shortcut_normed": (
        _shortcut_normed,
        "The norm is applied to x alone, and the output of the sub-layer is added after it. What is normed is the sum.",
        PRE_OR_POST,
    ),
    "pre_and_post_norm": (
        _both,
        "Each norm is applied twice, before its sub-layer and after the sum. Post-norm has it after the sum only.",
        PRE_OR_POST,
    ),
    "no_residuals": (
        without_shortcut,
        "There are no residual connections: the output of each sub-layer replaces x, where it should be added to it.",
        RESIDUALS,
    ),
    "no_norms": (without_norm, "The norms exist and are not used.", RESIDUALS),
    "no_residuals_no_norms": (
        _bare,
        "The sub-layers follow each other bare: no residual connections, no norms.",
        RESIDUALS,
    ),
    "overwritten": (
        _doubled,
        "The output of each sub-layer is added to itself, not to x. A name that is given a new value no longer holds "
        "the old one.",
        RESIDUALS,
    ),
    "multiplied": (
        _multiplied,
        "x and the output of the sub-layer are multiplied. A residual connection is a sum, so that the gradient has a "
        "way past the sub-layer.",
        RESIDUALS,
    ),
    "dropout": (
        _dropped,
        "There is a dropout, which the contract does not ask for, so train and eval mode differ.",
        "",
    ),
    "normed_twice": (
        _normed_twice,
        "The output of each sub-layer is normed, and then the sum as well. Only the sum is normed.",
        PRE_OR_POST,
    ),
    "activation_outside": (
        _activated,
        "A ReLU is applied to the output of each sub-layer. The only one is inside the feed-forward network.",
        "transformer: The feed-forward network",
    ),
}


ONCE = {
    "no_residual": (
        without_shortcut,
        "Around {} there is no residual connection: its output replaces x, where it should be added to it.",
        RESIDUALS,
    ),
    "no_norm": (without_norm, "The sum of x and {} is not normed, though the norm for it is there.", RESIDUALS),
    "bare": (_bare, "{} has neither residual connection nor norm: its output is passed on as it is.", RESIDUALS),
    "unused": (
        _without_sublayer,
        "The result does not depend on {}: its output is lost, or it is never called.",
        "",
    ),
    "skipped": (_skipped, "The step with {} is left out, with its residual connection and its norm.", ""),
    "doubled": (
        _doubled,
        "The output of {} is added to itself, not to x. A name that is given a new value no longer holds the old one.",
        RESIDUALS,
    ),
    "pre": (
        pre,
        "Around {} the layer is pre-norm, elsewhere post-norm. Everywhere the sum is what is normed.",
        PRE_OR_POST,
    ),
    "inside": (
        inside,
        "The output of {} is normed before x is added; the rest of the layer is right. What is normed is the sum.",
        PRE_OR_POST,
    ),
}


def add_ways(mistake, build, sublayers):
    """Misconceptions about residual connections and norms, for an exercise with these sub-layers."""
    count = len(sublayers)
    for key, (way, says, look) in EVERYWHERE.items():
        mistake.named(key, says, look=look)(build(ways=(way,) * count))
    for place, (name, words) in enumerate(sublayers.items()):
        for key, (way, says, look) in ONCE.items():
            ways = tuple(way if i == place else post for i in range(count))
            text = says.format(words)
            mistake.named(f"{key}_{name}", text[0].upper() + text[1:], look=look)(build(ways=ways))
    mistake.named(
        "residual_twice",
        "x is added twice to the output of the feed-forward network: once in the layer, once inside the network. One "
        "residual connection a sub-layer.",
        look=RESIDUALS,
    )(build(ways=(post,) * (count - 1) + (_shortcut_twice,)))
