"""The building blocks of the mistakes in `head_switched_off`."""

from __future__ import annotations

import torch

__all__ = ["features_zeroed", "output_with", "project", "side_by_side", "without", "zeroed"]


def side_by_side(heads):
    return heads.transpose(1, 2).flatten(2)


def without(heads, off):
    keep = torch.ones(heads.shape[1], dtype=heads.dtype)
    keep[off] = 0
    return heads * keep[:, None, None]


def project(merged, weight, bias):
    return merged @ weight.T + bias


def output_with(silence=without, merge=side_by_side, project=project):
    """The output with another way to switch off, to merge, or to project."""
    return lambda heads, weight, bias, off: project(merge(silence(heads, off)), weight, bias)


def zeroed(heads, index):
    """A copy of the heads with zeros at the index."""
    heads = heads.clone()
    heads[index] = 0
    return heads


def features_zeroed(features):
    """The output with a range of the merged features set to zero; `features` gives it from off, H and d_head."""

    def head_switched_off(heads, weight, bias, off):
        merged = side_by_side(heads).clone()
        merged[..., features(off, heads.shape[1], heads.shape[3])] = 0
        return project(merged, weight, bias)

    return head_switched_off
