"""The mistakes in `sliding_window_mask`."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.masking.parts_of_masks import square
from course_lib.exercises.masking.sliding_window_mask import sliding_window_mask

mistake = Mistakes()


def _by_distance(test):
    """True where a condition on distance i − j, window, i, j and length holds."""

    def mask(length, window):
        position = torch.arange(length)
        i, j = position[:, None], position[None, :]
        return test(i - j, window, i, j, length)

    return mask


@mistake
def one_key_too_many(length, window):
    """A query can attend to `window` keys *besides* itself. Itself counts: the bound of the distance is off by one."""
    return _by_distance(lambda d, w, i, j, n: (d >= 0) & (d <= w))(length, window)


@mistake
def one_key_too_few(length, window):
    """A query can attend to one key fewer than the window has: the bound of the distance is off by one."""
    return _by_distance(lambda d, w, i, j, n: (d >= 0) & (d < w - 1))(length, window)


@mistake
def without_itself(length, window):
    """A query cannot attend to itself. The distance 0 belongs to the window."""
    return _by_distance(lambda d, w, i, j, n: (d > 0) & (d < w))(length, window)


@mistake
def window_before_itself(length, window):
    """A query can attend to `window` keys before it, but not to itself: the whole window is shifted by one."""
    return _by_distance(lambda d, w, i, j, n: (d > 0) & (d <= w))(length, window)


@mistake
def both_sides(length, window):
    """The window reaches as far ahead as it reaches back. Here it only looks back: future keys stay hidden."""
    return _by_distance(lambda d, w, i, j, n: d.abs() < w)(length, window)


@mistake
def both_sides_one_too_many(length, window):
    """The window reaches ahead as well as back, and one key too far. Here it only looks back, and the query itself
    counts."""
    return _by_distance(lambda d, w, i, j, n: d.abs() <= w)(length, window)


@mistake
def centred(length, window):
    """The window is centred on the query, half of it ahead. Here all of it lies in the past."""
    return _by_distance(lambda d, w, i, j, n: d.abs() <= w // 2)(length, window)


@mistake
def looks_ahead(length, window):
    """The window is in the future: each query can attend to itself and the keys *after* it. Rows are queries, columns
    are keys."""
    return _by_distance(lambda d, w, i, j, n: (d <= 0) & (-d < w))(length, window)


@mistake
def future_open(length, window):
    """The past is limited to the window, but the future is not limited at all: the second condition is missing."""
    return _by_distance(lambda d, w, i, j, n: d < w)(length, window)


@mistake
def future_open_one_too_many(length, window):
    """The past is limited to one key too many, and the future is not limited at all."""
    return _by_distance(lambda d, w, i, j, n: d <= w)(length, window)


@mistake
def window_ignored(length, window):
    """The whole past can be attended to: `window` has no effect."""
    return _by_distance(lambda d, w, i, j, n: d >= 0)(length, window)


@mistake
def everything_allowed(length, window):
    """Every key can be attended to. A pair must meet both conditions, not just one of them."""
    return _by_distance(lambda d, w, i, j, n: (d >= 0) | (d < w))(length, window)


@mistake
def outside_the_window(length, window):
    """In the past, exactly the keys *outside* the window can be attended to. It should be those inside."""
    return _by_distance(lambda d, w, i, j, n: d >= w)(length, window)


@mistake
def outside_the_window_one_nearer(length, window):
    """In the past, the far keys can be attended to and the near ones cannot: the inequality of the window points the
    wrong way."""
    return _by_distance(lambda d, w, i, j, n: d >= w - 1)(length, window)


@mistake
def outside_the_window_one_farther(length, window):
    """In the past, keys *more* than a window away can be attended to, and those inside it cannot: the inequality of the
    window points the wrong way."""
    return _by_distance(lambda d, w, i, j, n: d > w)(length, window)


@mistake(look="notation: Conventions")
def turned_round(length, window):
    """True and False are exchanged: True marks what is forbidden. Here True means *may attend*."""
    return _by_distance(lambda d, w, i, j, n: ~((d >= 0) & (d < w)))(length, window)


@mistake
def blocks(length, window):
    """The sequence is cut into blocks of the window's length, and no query can attend across a block boundary. A window
    moves with the query."""
    return _by_distance(lambda d, w, i, j, n: (d >= 0) & (i // w == j // w))(length, window)


@mistake
def blocks_both_sides(length, window):
    """The sequence is cut into blocks in which every query can attend to every key. A window moves with the query, and
    only looks back."""
    return _by_distance(lambda d, w, i, j, n: i // w == j // w)(length, window)


@mistake
def first_keys(length, window):
    """Every query can attend to the first `window` keys of the sequence, if they are in the past. The window should
    move with the query."""
    return _by_distance(lambda d, w, i, j, n: (d >= 0) & (j < w))(length, window)


@mistake
def last_keys(length, window):
    """Only the last `window` keys of the sequence can be attended to. The window should move with the query."""
    return _by_distance(lambda d, w, i, j, n: (d >= 0) & (j >= n - w))(length, window)


@mistake
def wraps_around(length, window):
    """The window of the first queries continues at the end of the sequence: rolled diagonals re-enter on the other
    side, which is the future."""
    return _by_distance(lambda d, w, i, j, n: d % n < w)(length, window)


@mistake
def only_the_farthest(length, window):
    """Only the key at the far end of the window can be attended to; those between it and the query belong to the window
    too."""
    return _by_distance(lambda d, w, i, j, n: d == w - 1)(length, window)


@mistake
def triangles_apart(length, window):
    """The two triangles overlap only in a corner, or not at all: the second one is on the wrong side of the diagonal.
    In `tril` and `triu`, a negative number moves down."""
    return _by_distance(lambda d, w, i, j, n: (d >= 0) & (d <= -w))(length, window)


@mistake
def triangles_apart_by_one_less(length, window):
    """The two triangles overlap only for a window of one: the second one is above the diagonal. In `tril` and `triu`, a
    negative number moves down."""
    return _by_distance(lambda d, w, i, j, n: (d >= 0) & (d <= 1 - w))(length, window)


@mistake
def floats(length, window):
    """The mask holds the floats 1.0 and 0.0, with the right places. A mask here is bool."""
    return sliding_window_mask(length, window).float()


@mistake
def ones_and_zeros(length, window):
    """The mask holds the ints 1 and 0, in the right places. The contract asks for bool: `~` of the int 1 is −2, and
    `masked_fill` does not accept an int mask."""
    return sliding_window_mask(length, window).long()


@mistake
def zero_and_minus_infinity(length, window):
    """The mask holds 0 and −∞, to be added to scores. The contract asks for a bool mask, True = may attend."""
    return torch.zeros(length, length).masked_fill(~sliding_window_mask(length, window), -math.inf)


@mistake
def batch_and_head_axes_added(length, window):
    """The mask has two axes too many: `(1, 1, L, L)`. Two axes broadcast against scores with any number of axes, and
    the contract asks for `(L, L)`."""
    return sliding_window_mask(length, window)[None, None]


@mistake
def batch_axis_added(length, window):
    """The mask has one axis too many: `(1, L, L)`. The contract asks for `(L, L)`."""
    return sliding_window_mask(length, window)[None]


@mistake
def band_only(length, window):
    """The mask is as wide as the window, `(L, window)`. The keys are all positions of the sequence: `(L, L)`."""
    return torch.ones(length, window, dtype=torch.bool)


@mistake
def bools_subtracted(length, window):
    """A bool mask cannot be subtracted from another. Write the condition in words: in the large triangle, and *not* in
    the small one."""
    return square(length).tril() - square(length).tril(-window)


@mistake
def one_row(length, window):
    """The result has one axis: all positions minus themselves. One of the two has to be a column, so that every query
    meets every key."""
    return torch.zeros(length) < window


@mistake
def negative_start(length, window):
    """The first queries can attend to too few keys: their window starts before the sequence, and a negative index in a
    slice counts from the end."""
    mask = torch.zeros(length, length, dtype=torch.bool)
    for query in range(length):
        mask[query, query - window + 1 : query + 1] = True
    return mask


@mistake
def chained_comparison(length, window):
    """Two comparisons in a chain, `a <= b < c`, are joined with `and`, which needs one truth value for a whole tensor.
    (`&` without parentheses makes such a chain, too.) Write two comparisons, and join them entry by entry."""
    position = torch.arange(length)
    return 0 <= position[:, None] - position < window


@mistake
def loop_with_a_border(length, window):
    """Rows whose window would start before the sequence are left empty. The first queries should attend to the keys
    that there are."""
    mask = torch.zeros(length, length, dtype=torch.bool)
    for query in range(window - 1, length):
        mask[query, query - window + 1 : query + 1] = True
    return mask
