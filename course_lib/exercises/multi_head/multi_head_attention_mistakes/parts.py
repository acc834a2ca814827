"""The building blocks of the mistakes in `MultiHeadAttention`."""

from __future__ import annotations

import math

import torch
from torch import nn

from course_lib.exercises.multi_head.merge_heads import merge_heads
from course_lib.exercises.multi_head.multi_head_attention import MultiHeadAttention
from course_lib.exercises.multi_head.wrong_splits import unchecked

__all__ = ["Unchecked", "attend_with", "attending", "each_by_its_own", "fill_hidden", "variant"]


def attend_with(scale=None, dim=-1, hide=None, softmax=None):
    """Attention with one step replaced: the divisor of the scores, the softmax, or how a mask is applied."""

    def attention(q, k, v, mask=None):
        scores = q @ k.transpose(-2, -1) / (math.sqrt(q.shape[-1]) if scale is None else scale(q, k))
        if mask is not None:
            scores = fill_hidden(scores, mask) if hide is None else hide(scores, mask)
        weights = (softmax or torch.softmax)(scores, dim)
        return weights @ v, weights

    return attention


def fill_hidden(scores, mask):
    return scores.masked_fill(~mask, float("-inf"))


def each_by_its_own(self, query, key, value):
    return self.q_proj(query), self.k_proj(key), self.v_proj(value)


class _Linear(nn.Linear):
    """A Linear without initial values: each case sets its own, and drawing them would be most of the cost of a wrong
    variant."""

    def reset_parameters(self):
        pass


class _Empty(MultiHeadAttention):
    def __init__(self, d_model, num_heads):
        nn.Module.__init__(self)
        if d_model % num_heads != 0:
            raise ValueError("num_heads must divide d_model")
        self.num_heads = num_heads
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(self, name, _Linear(d_model, d_model))


def variant(
    *, project=each_by_its_own, split=unchecked, attend=None, merge=merge_heads, out=None, finish=None, mask_as=None
):
    """The module with one step replaced."""
    attend = attend or attend_with()

    class Variant(_Empty):
        def forward(self, query, key, value, mask=None):
            q, k, v = (split(x, self.num_heads) for x in project(self, query, key, value))
            if mask is not None and mask_as is not None:
                mask = mask_as(mask)
            heads, weights = attend(q, k, v, mask)
            merged = merge(heads)
            output = self.out_proj(merged) if out is None else out(self, merged, query)
            return (output, weights) if finish is None else finish(output, weights)

    return Variant


def attending(attend):
    return variant(attend=attend)


class Unchecked(nn.Module):
    """The reference without the check in the constructor."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_model, d_model)
        self.v_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    forward = MultiHeadAttention.forward
