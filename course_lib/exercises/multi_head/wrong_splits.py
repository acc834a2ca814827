"""Splitting heads without a check, and wrong ways to split, for the mistakes of several exercises."""

from __future__ import annotations

import torch

__all__ = ["cut_straight", "every_hth", "exchanged", "overlapping", "unchecked"]


def unchecked(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2)


def cut_straight(x, num_heads):
    return x.reshape(*x.shape[:-2], num_heads, x.shape[-2], x.shape[-1] // num_heads)


def every_hth(x, num_heads):
    return x.unflatten(-1, (-1, num_heads)).movedim(-1, -3)


def exchanged(x, num_heads):
    return x.unflatten(-1, (-1, num_heads)).transpose(-3, -2)


def overlapping(x, num_heads):
    d_head = x.shape[-1] // num_heads
    return torch.stack([x[..., h : h + d_head] for h in range(num_heads)], -3)
