"""The mistakes in `fix_head_split`."""

from __future__ import annotations

from course_lib.exercises._headings import VIEW_BUG
from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.multi_head.split_heads import exercise as split_heads

mistake = Mistakes()


@mistake(look=VIEW_BUG)
def as_given(x, num_heads):
    """Changing one position still changes other rows of a head: a head gets all features of some positions instead of
    some features of all positions."""
    return x.reshape(*x.shape[:-2], num_heads, x.shape[-2], -1)


@mistake
def heads_after_the_positions(x, num_heads):
    """The features are cut correctly now, but the axes are in the order (..., L, num_heads, d_head): attention would
    compare the heads of one position with each other, and not the positions of one head."""
    return x.reshape(*x.shape[:-1], num_heads, -1)


@mistake
def exchanged_after_the_straight_cut(x, num_heads):
    """Two axes are exchanged, but after the positions have already been mixed: exchanging axes does not undo a
    cut across positions."""
    return x.reshape(*x.shape[:-2], num_heads, x.shape[-2], -1).transpose(-3, -2)


@mistake
def cut_while_transposed(x, num_heads):
    """The slices are right, but each head is (d_head, L): features and positions are still exchanged."""
    return x.transpose(-2, -1).reshape(*x.shape[:-2], num_heads, -1, x.shape[-2])


@mistake
def heads_in_reverse(x, num_heads):
    """The slices are right, but the heads are in reverse order: head 0 takes the first features."""
    return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2).flip(-3)


@mistake
def one_batch_dimension_only(x, num_heads):
    """The positions are no longer mixed, but the axes are counted from the left, so it works with exactly one batch
    dimension."""
    return x.reshape(*x.shape[:-1], num_heads, -1).transpose(1, 2)


# Whatever else is wrong in a solution to that exercise may be wrong here too.
mistake.contains(
    split_heads,
    lambda wrong: wrong,
    called="head split",
    without=(
        "view_straight",
        "not_transposed",
        "positions_regrouped",
        "features_before_positions",
        "transposes_axes_1_and_2",
        # A number of heads that does not divide is no part of this contract.
        "unflatten_complains",
        "unflatten_complains_of_sizes",
        "reshape_complains",
        "reshape_with_minus_one_complains",
        "stack_complains",
        "remainder_dropped",
        "assertion",
        "assertion_with_text",
        "divides_the_other_way_round",
        "raises_where_it_divides",
        "length_checked",
        "error_returned",
    ),
)
