"""The mistakes in `merge_heads`."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.multi_head.merge_heads import merge_heads

mistake = Mistakes()


@mistake(look="view_transpose_contiguous: What view and transpose do to memory")
def not_transposed(x):
    """The shape is right, but the numbers are not: heads and positions are still in their original order, so a position
    gets the features of one head at several positions. Which axes have to be next to each other before they are
    merged?"""
    return x.reshape(*x.shape[:-3], x.shape[-2], x.shape[-3] * x.shape[-1])


@mistake
def positions_and_features_merged(x):
    """The last two axes as they come are merged, positions and features of a head, so the result still has one row per
    head. It should have one row per position, and the axis of the heads should disappear into the features."""
    return x.flatten(-2)


@mistake
def features_and_positions_merged(x):
    """Positions and features of a head are exchanged and then merged, so the result still has one row per head. It
    should have one row per position, and the axis of the heads should disappear into the features."""
    return x.transpose(-2, -1).flatten(-2)


@mistake
def rows_of_features(x):
    """Heads and features of a head are exchanged, and positions are merged with heads, so the result has one row per
    feature of a head. It should have one row per position."""
    return x.transpose(-3, -1).flatten(-2)


@mistake
def heads_reversed(x):
    """The heads come in the opposite order: a position begins with the features of the last head. It should begin with
    those of head 0."""
    return merge_heads(x.flip(-3))


@mistake
def heads_interleaved(x):
    """The features are interleaved: the first feature of every head, then the second of every head. Each head's
    features stay together."""
    return x.movedim(-3, -1).flatten(-2)


@mistake
def wrong_axes_exchanged(x):
    """Positions and features of a head are exchanged before the reshape. The heads have to move next to their features
    instead."""
    return x.transpose(-2, -1).reshape(*x.shape[:-3], x.shape[-2], -1)


@mistake
def features_and_positions_exchanged(x):
    """The result has one row per feature and one column per position: the last two axes are exchanged."""
    return x.transpose(-2, -1).flatten(-3, -2)


@mistake
def heads_and_features_exchanged(x):
    """Heads and features of a head are exchanged, which leaves the positions where they were, between them."""
    return x.transpose(-3, -1).reshape(*x.shape[:-3], x.shape[-2], -1)


@mistake
def heads_averaged(x):
    """The heads are averaged. Each head contributes features of its own, so keep them all, side by side."""
    return x.mean(-3)


@mistake
def averaged_over_axis_1(x):
    """The result is averaged over axis 1. Each head contributes features of its own, so keep them all, side by side.
    Besides, counted from the left, axis 1 is not always that of the heads."""
    return x.mean(1)


@mistake
def heads_summed(x):
    """The heads are added up. Each head contributes features of its own, so keep them all, side by side."""
    return x.sum(-3)


@mistake
def heads_one_after_the_other(x):
    """The heads are placed one after the other along the positions. A position should get wider, not appear H times."""
    return x.flatten(-3, -2)


@mistake
def positions_times_heads(x):
    """Positions and heads end up in one axis. The heads belong to the features: which two axes should be merged?"""
    return x.transpose(-3, -2).flatten(-3, -2)


@mistake
def only_transposed(x):
    """The heads have moved next to their features, but these are still two axes: (..., L, H, d_head)."""
    return x.transpose(-3, -2)


@mistake
def everything_flattened(x):
    """Position and feature end up in one axis together. Every position should keep a row of its own."""
    return x.transpose(-3, -2).flatten(-3)


@mistake
def transposes_axes_1_and_2(x):
    """`transpose(1, 2)` counts axes from the left and works only with exactly one batch dimension. Counted from the
    right, the axes fit any number."""
    return x.transpose(1, 2).flatten(-2)


@mistake
def transposes_axes_0_and_1(x):
    """`transpose(0, 1)` exchanges heads and positions only without a batch. Count axes from the right."""
    return x.transpose(0, 1).flatten(-2)


@mistake
def flattens_from_axis_2(x):
    """Axes from axis 2 on are merged, counted from the left. That works only with exactly one batch dimension."""
    return x.transpose(-3, -2).flatten(2)


@mistake
def axes_from_the_left(x):
    """Both steps count axes from the left, so they work only with exactly one batch dimension. Counted from the right,
    −3, −2 and −1 are always heads, positions and features."""
    return x.transpose(1, 2).flatten(2)


@mistake
def permutes_four_axes(x):
    """`permute` with four numbers needs a tensor of four axes, so it works with one batch dimension only. Exchange just
    two axes, counted from the right."""
    return x.permute(0, 2, 1, 3).flatten(-2)


@mistake
def first_axis_is_heads(x):
    """The slices along the first axis are treated as the heads. With a batch, that axis is the batch."""
    return torch.cat(list(x), -1)


@mistake
def second_axis_is_heads(x):
    """The slices along axis 1 are treated as the heads. That is right only with one batch dimension; which axis is it,
    counted from the right?"""
    return torch.cat(x.unbind(1), -1)


@mistake(look="view_transpose_contiguous: What view and transpose do to memory")
def view_of_transposed(x):
    """`view` never copies, so it cannot merge axes that a transpose has separated in memory. Which
    relatives of `view` copy where they have to?"""
    return x.transpose(-3, -2).view(*x.shape[:-3], x.shape[-2], -1)


@mistake
def batch_flattened(x):
    """All batch dimensions are merged into one. That is right only if there is exactly one; otherwise all of them have
    to be kept."""
    return x.transpose(-3, -2).reshape(-1, x.shape[-2], x.shape[-3] * x.shape[-1])


@mistake
def batch_times_positions(x):
    """Batch and positions end up in one axis. Only the heads and their features should be merged."""
    return x.transpose(-3, -2).reshape(-1, x.shape[-3] * x.shape[-1])


@mistake
def squeezed(x):
    """`squeeze` removes every axis of length one, including that of a single sequence or position. Only the axis of the
    heads should disappear, by being merged."""
    return merge_heads(x).squeeze()


@mistake(look="view_transpose_contiguous: What view and transpose do to memory")
def axes_0_and_2_not_transposed(x):
    """Batch and length are read off axes 0 and 2, which works only with one batch dimension; and the axes are merged in
    their original order, with the positions between the heads and their features."""
    return x.reshape(x.shape[0], x.shape[2], -1)


@mistake
def hstack(x):
    """`hstack` concatenates tensors along axis 1, whatever their shape. With a batch, the features are another axis."""
    return torch.hstack(x.unbind(-3))


@mistake
def heads_joined_on_axis_2(x):
    """The heads are joined along axis 2, counted from the left. That is the axis of the features only with one batch
    dimension."""
    return torch.cat(x.unbind(-3), 2)


@mistake
def heads_stacked(x):
    """The heads are stacked along a new axis, which is still there. They should be side by side along the axis of the
    features."""
    return torch.stack(x.unbind(-3), -1)


@mistake
def four_axes_unpacked(x):
    """The shape is unpacked into four names, so exactly one batch dimension works. The contract allows any number,
    including none: which operations need only the last three axes?"""
    batch, num_heads, length, d_head = x.shape
    return x.transpose(1, 2).reshape(batch, length, num_heads * d_head)


@mistake
def four_axes_unpacked_interleaved(x):
    """Two things: the shape is unpacked into four names, so only one batch dimension works; and the features are
    interleaved, the first one of every head, then the second. Each head's features stay together."""
    batch, num_heads, length, d_head = x.shape
    return x.permute(0, 2, 3, 1).reshape(batch, length, num_heads * d_head)


@mistake(look="view_transpose_contiguous: What view and transpose do to memory")
def four_axes_unpacked_not_transposed(x):
    """Two things: the shape is unpacked into four names, so only one batch dimension works; and the axes are merged in
    their original order, with the positions between the heads and their features."""
    batch, num_heads, length, d_head = x.shape
    return x.reshape(batch, length, num_heads * d_head)
