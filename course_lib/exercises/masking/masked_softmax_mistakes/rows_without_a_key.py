"""Mistakes in `masked_softmax`: fully masked rows."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.masking.masked_softmax_mistakes.parts import add, fill, repaired

mistake = Mistakes()


EMPTY = "masking: Rows without a key"


@mistake(look=EMPTY)
def empty_rows_nan(scores, mask):
    """A fully masked row gives `nan`: with all its scores at −∞, the softmax divides 0 by 0. What should such a
    query get, and how can you recognise it?"""
    return fill()(scores, mask)


@mistake(look=EMPTY)
def empty_rows_uniform(scores, mask):
    """A fully masked row becomes uniform: its scores are all equally low, and the softmax depends only on differences.
    A query that may attend to nothing gets zeros."""
    return fill(lambda scores: torch.finfo(scores.dtype).min)(scores, mask)


@mistake(look=EMPTY)
def empty_rows_unmasked(scores, mask):
    """In a fully masked row the weights are those without a mask: the row has been unmasked for the softmax, and its
    weights were not set to zero afterwards."""
    return scores.masked_fill(~(mask | ~mask.any(-1, keepdim=True)), -math.inf).softmax(-1)


@mistake(look=EMPTY)
def empty_rows_ones(scores, mask):
    """A fully masked row is filled with ones. A query that may attend to nothing gets zeros."""
    return fill()(scores, mask).nan_to_num(1.0)


@mistake(look=EMPTY)
def only_if_everything_is_masked(scores, mask):
    """The result is zero when *everything* is masked, but a single fully masked row among others is still `nan`. Test
    each row, not the whole mask."""
    return fill()(scores, mask) if mask.any() else torch.zeros_like(scores)


@mistake(look=EMPTY)
def zeroed_where_one_key_is_masked(scores, mask):
    """Rows are set to zero as soon as *one* of their keys is masked. A row is fully masked only if no key is
    allowed."""
    return fill(then=lambda weights, mask: weights.masked_fill(~mask.all(-1, keepdim=True), 0.0))(scores, mask)


@mistake(look=EMPTY)
def all_zeros_if_one_row_is_empty(scores, mask):
    """One fully masked row makes the whole result zero. The other rows have keys and need their weights."""
    return fill()(scores, mask) if mask.any(-1).all() else torch.zeros_like(scores)


@mistake(look=EMPTY)
def row_axis_dropped(scores, mask):
    """The reduction over the keys has lost its axis, so one value per *query* is lined up with the *keys*."""
    return fill(then=lambda weights, mask: weights.masked_fill(~mask.any(-1), 0.0))(scores, mask)


@mistake(look=EMPTY)
def nan_in_the_gradient(scores, mask):
    """The result is right, but its gradient is `nan` in fully masked rows: a `nan` occurred on the way and was replaced
    at the end, but the backward pass still goes through the step where it occurred."""
    return add(lambda scores, mask: torch.zeros_like(scores).masked_fill(~mask, -math.inf), repaired)(scores, mask)


@mistake(look=EMPTY)
def weights_changed_in_place(scores, mask):
    """The weights are changed in place after the softmax, but their gradient is computed from them, so autograd raises
    an error. Create a new tensor instead."""
    return fill(then=lambda weights, mask: weights.masked_fill_(~mask.any(-1, keepdim=True), 0.0))(scores, mask)
