"""The building blocks of the mistakes in `layer_norm`."""

from __future__ import annotations

__all__ = ["mean", "norm"]


def mean(x):
    return x.mean(-1, keepdim=True)


def norm(centre=mean, power=lambda x: x.var(-1, keepdim=True, correction=0), root=None, apply=None, default=1e-5):
    """Layer norm with one step replaced."""

    def norm(x, gain, bias, eps=default):
        centred = x - centre(x)
        variance = power(x)
        y = centred / ((variance + eps).sqrt() if root is None else root(variance, eps))
        return y * gain + bias if apply is None else apply(y, gain, bias)

    return norm
