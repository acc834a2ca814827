"""The mistakes in `split_heads`."""

from __future__ import annotations

import torch

from course_lib.exercises._headings import VIEW_BUG
from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.multi_head.split_heads import split_heads
from course_lib.exercises.multi_head.wrong_splits import cut_straight, every_hth, exchanged, overlapping, unchecked

mistake = Mistakes()


def _checked(function):
    """The same function, but it refuses a number of heads that does not divide the features."""

    def wrapped(x, num_heads):
        if x.shape[-1] % num_heads:
            raise ValueError("num_heads must divide d_model")
        return function(x, num_heads)

    return wrapped


def _slices(x, num_heads):
    d_head = x.shape[-1] // num_heads
    return torch.stack([x[..., h * d_head : (h + 1) * d_head] for h in range(num_heads)], -3)


@mistake(look=VIEW_BUG)
def view_straight(x, num_heads):
    """The shape is right, but the numbers are not: a `view` or `reshape` straight to the final shape only regroups the
    numbers in memory, so a head gets some positions instead of some features. In which order are the numbers of one
    position stored?"""
    return _checked(cut_straight)(x, num_heads)


@mistake
def heads_reversed(x, num_heads):
    """The heads come in the opposite order: head 0 has the last slice of the features. It should have the first."""
    return split_heads(x, num_heads).flip(-3)


@mistake
def not_transposed(x, num_heads):
    """The features are cut correctly, but the heads come after the positions: (..., L, H, d_head). Which two axes
    should be exchanged?"""
    return _checked(lambda x, num_heads: x.unflatten(-1, (num_heads, -1)))(x, num_heads)


@mistake
def every_hth_feature(x, num_heads):
    """Head h takes every num_heads-th feature, like cards dealt in turn. The contract asks for slices: neighbouring
    features stay together."""
    return _checked(every_hth)(x, num_heads)


@mistake
def heads_and_width_exchanged(x, num_heads):
    """The last axis is cut into d_head pieces of num_heads features; it should be num_heads pieces of d_head
    features."""
    return _checked(exchanged)(x, num_heads)


@mistake
def cut_exchanged_not_moved(x, num_heads):
    """The last axis is cut the wrong way round, into (d_head, num_heads), and the heads are left at the end."""
    return _checked(lambda x, num_heads: x.unflatten(-1, (-1, num_heads)))(x, num_heads)


@mistake
def view_straight_exchanged(x, num_heads):
    """The shape has d_head where the number of heads should be, and comes from a `view` straight to the final shape.
    Both have to change: what is cut, and how the axes are put in order."""
    return _checked(lambda x, n: x.reshape(*x.shape[:-2], x.shape[-1] // n, x.shape[-2], n))(x, num_heads)


@mistake
def heads_before_the_batch(x, num_heads):
    """The heads have become the first axis of all. They belong between batch and positions, which is the same only
    without a batch."""
    return _checked(lambda x, num_heads: torch.stack(x.chunk(num_heads, -1)))(x, num_heads)


@mistake
def heads_stacked_last(x, num_heads):
    """The heads have become the last axis. They belong before the positions, third from the right."""
    return _checked(lambda x, num_heads: torch.stack(x.chunk(num_heads, -1), -1))(x, num_heads)


@mistake
def heads_stacked_on_axis_1(x, num_heads):
    """The heads are stacked on axis 1, counted from the left. That is right only with one batch dimension; count from
    the right."""
    return _checked(lambda x, num_heads: torch.stack(x.chunk(num_heads, -1), 1))(x, num_heads)


@mistake
def transposes_axes_1_and_2(x, num_heads):
    """`transpose(1, 2)` counts axes from the left and works only with exactly one batch dimension. Counted from the
    right, the axes fit any number."""
    return _checked(lambda x, num_heads: x.unflatten(-1, (num_heads, -1)).transpose(1, 2))(x, num_heads)


@mistake
def permutes_four_axes(x, num_heads):
    """`permute` with four numbers needs a tensor of four axes, so it works with one batch dimension only. Exchange just
    two axes, counted from the right."""
    return _checked(lambda x, num_heads: x.unflatten(-1, (num_heads, -1)).permute(0, 2, 1, 3))(x, num_heads)


@mistake
def features_before_positions(x, num_heads):
    """Each head is (d_head, L), which is transposed. The key is transposed later, in the scores; here positions come
    first."""
    return _checked(lambda x, num_heads: split_heads(x, num_heads).transpose(-2, -1))(x, num_heads)


@mistake
def batch_and_heads_in_one(x, num_heads):
    """Batch and heads share one axis, as some code does for `torch.bmm`. The contract keeps them apart."""
    return _checked(lambda x, num_heads: split_heads(x, num_heads).flatten(0, -3))(x, num_heads)


@mistake
def slices_overlap(x, num_heads):
    """The slice of head h starts at feature h, so neighbouring heads share features. How many features belong to the
    heads before it?"""
    return _checked(overlapping)(x, num_heads)


@mistake
def tuple_of_heads(x, num_heads):
    """The heads are returned as a tuple or a list of tensors. The contract asks for one tensor with an axis of
    heads."""
    return _checked(lambda x, num_heads: x.chunk(num_heads, -1))(x, num_heads)


@mistake
def positions_cut(x, num_heads):
    """The positions are distributed over the heads. Every head should have all positions and a part of the features."""
    return _checked(lambda x, num_heads: torch.stack(x.tensor_split(num_heads, -2), -3))(x, num_heads)


@mistake
def positions_regrouped(x, num_heads):
    """The last axis is right, but the heads are cut from the wrong one: `reshape` was given the positions in place of
    the heads."""
    return _checked(lambda x, n: x.reshape(*x.shape[:-2], n, x.shape[-2], -1).transpose(-3, -2))(x, num_heads)


@mistake
def transposed_before_the_cut(x, num_heads):
    """Positions and features are exchanged before the axis is cut, so the cut groups the numbers in another order.
    First cut, then exchange."""
    return _checked(lambda x, n: x.transpose(-2, -1).reshape(*x.shape[:-2], n, x.shape[-2], -1))(x, num_heads)


@mistake
def cut_across_positions(x, num_heads):
    """The numbers are cut into (heads, d_head, L) and then transposed, so the cut mixes several positions. Cut only the
    last axis."""
    return _checked(lambda x, n: x.reshape(*x.shape[:-2], n, -1, x.shape[-2]).transpose(-2, -1))(x, num_heads)


@mistake
def width_is_a_float(x, n):
    """`/` gives a float even if the division is exact, and a size has to be an int. Which division of ints gives an
    int?"""
    return x.reshape(*x.shape[:-1], n, x.shape[-1] / n).transpose(-3, -2)


@mistake
def width_is_a_float_in_view(x, n):
    """`/` gives a float even if the division is exact, and `view` needs ints. Which division of ints gives an int?"""
    return x.view(*x.shape[:-1], n, x.shape[-1] / n).transpose(-3, -2)


@mistake
def squeezed(x, num_heads):
    """`squeeze` removes every axis of length one, including that of a single sequence or head. No axis should be
    removed here."""
    return split_heads(x, num_heads).squeeze()


@mistake
def three_axes_unpacked(x, num_heads):
    """The shape is unpacked into three names, so exactly one batch dimension works. The contract allows any number,
    including none: which operations need only the last two axes?"""
    batch, length, d_model = x.shape
    if d_model % num_heads:
        raise ValueError("num_heads must divide d_model")
    return x.reshape(batch, length, num_heads, -1).transpose(1, 2)


@mistake(look=VIEW_BUG)
def three_axes_unpacked_view_straight(x, num_heads):
    """Two things: the shape is unpacked into three names, so only one batch dimension works; and the `view` straight
    to the final shape gives a head some positions instead of some features."""
    batch, length, d_model = x.shape
    if d_model % num_heads:
        raise ValueError("num_heads must divide d_model")
    return x.reshape(batch, num_heads, length, -1)


@mistake(by=_checked)
def axes_0_and_1(x, num_heads):
    """Batch and length are read off axes 0 and 1. That works only with one batch dimension; the last two axes are
    always there."""
    return x.reshape(x.shape[0], x.shape[1], num_heads, x.shape[-1] // num_heads).transpose(1, 2)


@mistake(by=_checked)
def batch_flattened(x, num_heads):
    """All batch dimensions are merged into one. That is right only if there is exactly one; otherwise all of them have
    to be kept."""
    return x.reshape(-1, x.shape[-2], num_heads, x.shape[-1] // num_heads).transpose(1, 2)


NOT_CHECKED = (
    "A number of heads that does not divide the features has to end in a ValueError. Here {}; look at the remainder "
    "first."
)


mistake.named("unflatten_complains", NOT_CHECKED.format("`unflatten` fails with a RuntimeError"))(unchecked)


mistake.named(
    "unflatten_complains_of_sizes",
    NOT_CHECKED.format("`unflatten` is given two sizes whose product is wrong, and fails with a RuntimeError"),
)(lambda x, n: x.unflatten(-1, (n, x.shape[-1] // n)).transpose(-3, -2))


mistake.named("reshape_complains", NOT_CHECKED.format("`view` or `reshape` fails with a RuntimeError"))(
    lambda x, n: x.reshape(*x.shape[:-1], n, x.shape[-1] // n).transpose(-3, -2)
)


mistake.named(
    "reshape_with_minus_one_complains",
    NOT_CHECKED.format("a `view` or `reshape` with −1 fails with a RuntimeError"),
)(lambda x, n: x.reshape(*x.shape[:-1], n, -1).transpose(-3, -2))


mistake.named(
    "stack_complains", NOT_CHECKED.format("the pieces have different sizes, and `stack` fails with a RuntimeError")
)(lambda x, n: torch.stack(x.chunk(n, -1), -3))


mistake.named(
    "remainder_dropped", NOT_CHECKED.format("the remaining features are silently dropped, or heads are empty")
)(_slices)


@mistake
def assertion(x, num_heads):
    """A number of heads that does not divide is detected by an `assert`. That raises an AssertionError, and is skipped
    under `python -O`. The contract asks for a ValueError."""
    if x.shape[-1] % num_heads:
        raise AssertionError
    return split_heads(x, num_heads)


@mistake
def assertion_with_text(x, num_heads):
    """The number of heads is checked by an `assert` with a message. That raises an AssertionError instead of a
    ValueError, and is skipped under `python -O`."""
    if x.shape[-1] % num_heads:
        raise AssertionError("d_model must be divisible by num_heads")
    return split_heads(x, num_heads)


@mistake
def divides_the_other_way_round(x, num_heads):
    """The check is reversed: it tests whether the number of features divides the number of heads. Which of the two has
    to be a multiple of the other?"""
    if num_heads % x.shape[-1] != 0:
        raise ValueError("num_heads must divide d_model")
    return unchecked(x, num_heads)


@mistake
def raises_where_it_divides(x, num_heads):
    """The check is reversed: the ValueError is raised when the number of heads divides the features. What is the
    remainder then?"""
    if x.shape[-1] % num_heads == 0:
        raise ValueError("num_heads must divide d_model")
    return unchecked(x, num_heads)


@mistake
def length_checked(x, num_heads):
    """The check looks at the number of positions. The features are distributed over the heads."""
    if x.shape[-2] % num_heads != 0:
        raise ValueError("num_heads must divide d_model")
    return torch.stack(x.split(x.shape[-1] // num_heads, -1), -3)


@mistake
def error_returned(x, num_heads):
    """The ValueError is created and returned like a result. It has to be raised."""
    return split_heads(x, num_heads) if x.shape[-1] % num_heads == 0 else ValueError()
