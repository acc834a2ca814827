"""The building blocks of the mistakes in `apply_rotary`."""

from __future__ import annotations

import torch

__all__ = ["behind", "beside", "neighbours", "rotary", "rotary_angle", "split", "turned_pair"]


def turned_pair(even, odd, cos, sin):
    return even * cos - odd * sin, even * sin + odd * cos


def neighbours(x):
    return x[..., 0::2], x[..., 1::2]


def split(x):
    return x.chunk(2, dim=-1)


def beside(first, second):
    return torch.stack((first, second), dim=-1).flatten(-2)


def behind(first, second):
    return torch.cat((first, second), dim=-1)


def rotary_angle(position, two_i, d, base):
    return position * base ** (-two_i / d)


def rotary(angle=rotary_angle, turn=turned_pair, split=neighbours, join=beside):
    """The rotation with one step replaced; `position` is (L, 1), in float64."""

    def rotary(x, positions, base=10000.0):
        two_i = torch.arange(0, x.shape[-1], 2, dtype=torch.float64)
        a = angle(positions[:, None].double(), two_i, x.shape[-1], base)
        return join(*turn(*split(x), a.cos().to(x.dtype), a.sin().to(x.dtype)))

    return rotary
