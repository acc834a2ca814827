"""The mistakes in `alibi_bias`."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.positional_encoding.alibi_bias import alibi_bias

mistake = Mistakes()


def _bias(slope=None, distance=None, join=None):
    """The bias with one step replaced: slope(h + 1, H, L) and distance(i − j)."""

    def bias(num_heads, length):
        head, position = torch.arange(1, num_heads + 1).double(), torch.arange(length).double()
        slopes = 2 ** (-8 * head / num_heads) if slope is None else slope(head, num_heads, length)
        difference = position[:, None] - position
        distances = difference.abs() if distance is None else distance(difference)
        if join is not None:
            return join(slopes, distances).float()
        return (-slopes[:, None, None] * distances).float()

    return bias


@mistake
def future_masked(num_heads, length):
    """The future is −∞: a causal mask is built in. The contract asks for the penalty only; a mask is applied
    separately."""
    return _bias(distance=lambda difference: difference.masked_fill(difference < 0, float("inf")))(num_heads, length)


@mistake
def plus(num_heads, length):
    """The scores rise with the distance: the minus is missing. Which keys should get less weight?"""
    return _bias(distance=lambda difference: -difference.abs())(num_heads, length)


@mistake
def signed_distance(num_heads, length):
    """The distance has a sign, so the scores on one side of the query are lowered and those on the other raised. A
    distance is never negative."""
    return _bias(distance=lambda difference: difference)(num_heads, length)


@mistake
def signed_distance_other_way(num_heads, length):
    """The distance has a sign: scores of the past are raised, those of the future lowered. A distance is never
    negative."""
    return _bias(distance=lambda difference: -difference)(num_heads, length)


@mistake
def future_not_lowered(num_heads, length):
    """The future is left at 0, as if a causal mask came after it anyway. Here both sides of the diagonal are the
    same."""
    return _bias(distance=lambda difference: difference.clamp(min=0))(num_heads, length)


@mistake
def past_not_lowered(num_heads, length):
    """The past is left at 0, and only the future is lowered. Here both sides of the diagonal are the same."""
    return _bias(distance=lambda difference: (-difference).clamp(min=0))(num_heads, length)


@mistake
def distance_to_the_first(num_heads, length):
    """Each key is lowered by its own position, for every query. Its distance from the query should count."""
    return _bias(distance=lambda difference: -difference[:1].expand_as(difference))(num_heads, length)


@mistake
def distance_to_the_last(num_heads, length):
    """Each key is lowered by its distance from the last position, for every query. Its distance from the query should
    count."""
    return _bias(distance=lambda difference: difference[-1:].expand_as(difference))(num_heads, length)


@mistake
def position_of_the_key_added(num_heads, length):
    """Each key is raised by its own position. With a causal mask, a softmax would give the same weights; but the
    contract asks for −slope times |i − j|."""
    return _bias(distance=lambda difference: difference[:1].expand_as(difference))(num_heads, length)


@mistake
def distance_squared(num_heads, length):
    """The penalty grows with the square of the distance. It should be proportional to the distance."""
    return _bias(distance=lambda difference: difference**2)(num_heads, length)


@mistake
def distance_plus_one(num_heads, length):
    """The distance is one too large everywhere. How far is a token from itself?"""
    return _bias(distance=lambda difference: difference.abs() + 1)(num_heads, length)


@mistake
def distance_by_length(num_heads, length):
    """The distance is divided by the length, so the penalty depends on the length of the sequence. The distance is a
    number of tokens."""
    return _bias(distance=lambda difference: difference.abs() / len(difference))(num_heads, length)


@mistake
def heads_from_zero(num_heads, length):
    """The exponents are counted from 0, so the first head has slope 1. The formula has h + 1."""
    return _bias(lambda head, num_heads, length: 2 ** (-8 * (head - 1) / num_heads))(num_heads, length)


@mistake
def slopes_of_eight_heads(num_heads, length):
    """The slopes are 1/2, 1/4, 1/8, … for any number of heads. That is right for 8 heads only: the last slope is always
    1/256."""
    return _bias(lambda head, num_heads, length: 2**-head)(num_heads, length)


@mistake
def eight_missing(num_heads, length):
    """The 8 of the exponent is missing: the last slope should be 1/256."""
    return _bias(lambda head, num_heads, length: 2 ** (-head / num_heads))(num_heads, length)


@mistake
def heads_reversed(num_heads, length):
    """The slopes are in the opposite order: the first head has the gentlest. It should have the steepest."""
    return _bias(lambda head, num_heads, length: (2 ** (-8 * head / num_heads)).flip(0))(num_heads, length)


@mistake
def slopes_in_even_steps(num_heads, length):
    """The slopes rise in even steps, (h + 1) / H. They should be powers of 2, each a fixed factor below the one
    before."""
    return _bias(lambda head, num_heads, length: head / num_heads)(num_heads, length)


@mistake
def multiples_of_the_first_slope(num_heads, length):
    """The slopes are multiples of the first one. They should be its *powers*: the exponent grows from head to head."""
    return _bias(lambda head, num_heads, length: head * 2 ** (-8 / num_heads))(num_heads, length)


@mistake
def exponent_positive(num_heads, length):
    """The slopes grow from head to head, far beyond 1: the exponent has lost its minus, or the distance is divided
    by the slope."""
    return _bias(lambda head, num_heads, length: 2 ** (8 * head / num_heads))(num_heads, length)


@mistake
def exponent_over_heads(num_heads, length):
    """The number of the head is in the denominator, as in 8 / (h + 1), so the slopes rise. It belongs in the numerator,
    with H in the denominator."""
    return _bias(lambda head, num_heads, length: 2 ** (-8 / head))(num_heads, length)


@mistake
def power_of_minus_eight_only(num_heads, length):
    """`**` binds more tightly than `*`: 2 is raised to −8, and the result is multiplied by (h + 1) / H. What belongs in
    the exponent needs brackets."""
    return _bias(lambda head, num_heads, length: 2**-8 * head / num_heads)(num_heads, length)


@mistake
def power_before_division(num_heads, length):
    """`**` binds more tightly than `/`: 2 is raised to −8 (h + 1), and the power is divided by H. What belongs in
    the exponent needs brackets."""
    return _bias(lambda head, num_heads, length: 2 ** (-8 * head) / num_heads)(num_heads, length)


@mistake
def exponent_rounded_down(num_heads, length):
    """The exponents are rounded to whole numbers by `//`. With 16 heads, every other exponent is a half-integer."""
    return _bias(lambda head, num_heads, length: 2 ** (-8 * head // num_heads))(num_heads, length)


@mistake
def eight_by_heads_rounded_down(num_heads, length):
    """8 // H is 0 for more than 8 heads, so all slopes are 1."""
    return _bias(lambda head, num_heads, length: 2 ** (-(8 // num_heads) * head))(num_heads, length)


@mistake
def base_e(num_heads, length):
    """The slopes are powers of e. They should be powers of 2."""
    return _bias(lambda head, num_heads, length: torch.exp(-8 * head / num_heads))(num_heads, length)


@mistake
def same_slope(num_heads, length):
    """All heads have the same slope. Each has its own; the number of the head belongs in the exponent."""
    return _bias(lambda head, num_heads, length: 2 ** (-8 / num_heads) + 0 * head)(num_heads, length)


@mistake
def slope_one(num_heads, length):
    """The distances are not multiplied by a slope."""
    return _bias(lambda head, num_heads, length: 1 + 0 * head)(num_heads, length)


@mistake
def slope_by_length(num_heads, length):
    """The exponent is divided by the length of the sequence. It should be divided by the number of heads."""
    return _bias(lambda head, num_heads, length: 2 ** (-8 * head / length))(num_heads, length)


@mistake
def sum_of_positions(num_heads, length):
    """The penalty grows with the sum of the two positions. It should grow with the distance between them."""
    return _bias(distance=lambda difference: difference[:, :1] - difference[:1])(num_heads, length)


@mistake
def base_and_exponent_exchanged(num_heads, length):
    """Base and exponent are exchanged: 8 is raised to a power of 2. The slopes are powers of 2, with the 8 in
    the exponent."""
    return _bias(lambda head, num_heads, length: 8 ** (-2 * head / num_heads))(num_heads, length)


@mistake
def plus_and_heads_from_zero(num_heads, length):
    """Two things: the minus is missing, so the scores rise with the distance; and the exponents are counted from 0."""
    return _bias(lambda head, num_heads, length: -(2 ** (-8 * (head - 1) / num_heads)))(num_heads, length)


@mistake
def signed_and_heads_from_zero(num_heads, length):
    """Two things: the distance has a sign, so one side of the diagonal is raised; and the exponents are counted from
    0."""
    return _bias(lambda head, num_heads, length: 2 ** (-8 * (head - 1) / num_heads), lambda difference: difference)(
        num_heads, length
    )


@mistake
def future_masked_and_heads_from_zero(num_heads, length):
    """Two things: a causal mask is built in, and the exponents are counted from 0."""
    return _bias(
        lambda head, num_heads, length: 2 ** (-8 * (head - 1) / num_heads),
        lambda difference: difference.abs().masked_fill(difference < 0, float("inf")),
    )(num_heads, length)


@mistake
def exponential(num_heads, length):
    """The bias is a factor between 0 and 1, the exponential of the penalty. The penalty itself should be added to the
    scores."""
    return _bias(join=lambda slopes, distances: torch.exp(-slopes[:, None, None] * distances))(num_heads, length)


@mistake
def heads_last(num_heads, length):
    """The heads are the last axis. Scores are (B, H, L, L), so the heads come first."""
    return _bias(join=lambda slopes, distances: -slopes * distances[..., None])(num_heads, length)


@mistake
def heads_in_the_middle(num_heads, length):
    """The axis of the heads is between the two positions. Scores are (B, H, L, L), so the heads come first."""
    return _bias(join=lambda slopes, distances: -slopes[:, None] * distances[:, None, :])(num_heads, length)


@mistake
def batch_axis(num_heads, length):
    """There is a batch axis in front, (1, H, L, L). The bias broadcasts without one."""
    return _bias(join=lambda slopes, distances: -slopes[None, :, None, None] * distances)(num_heads, length)


@mistake
def one_row(num_heads, length):
    """There is one row for all queries, (H, 1, L). The distance of a key depends on the query, so each query needs its
    own row."""
    return _bias(join=lambda slopes, distances: -slopes[:, None, None] * distances[:1])(num_heads, length)


@mistake
def one_row_rising(num_heads, length):
    """There is one row for all queries, (H, 1, L), in which keys are raised by their position. With a causal mask, a
    softmax would give the same weights; but the contract asks for −slope times |i − j|, with one row per query."""
    return _bias(join=lambda slopes, distances: slopes[:, None, None] * distances[:1])(num_heads, length)


@mistake
def one_row_of_the_last_query(num_heads, length):
    """There is one row for all queries, (H, 1, L), and it belongs to the last one. The distance of a key depends on the
    query, so each query needs its own row."""
    return _bias(join=lambda slopes, distances: -slopes[:, None, None] * distances[-1:])(num_heads, length)


@mistake
def slopes_not_spread(num_heads, length):
    """The slopes are multiplied along the wrong axis of the distances: `(H,)` lines up with the last axis of `(L, L)`,
    the keys. They need axes for queries and keys."""
    return _bias(join=lambda slopes, distances: -slopes * distances)(num_heads, length)


@mistake
def one_head(num_heads, length):
    """The heads are summed, or only one is left: the result is (L, L). Each head has a bias of its own."""
    return _bias(join=lambda slopes, distances: -slopes[0] * distances)(num_heads, length)


@mistake
def integer_power(num_heads, length):
    """An integer tensor cannot hold 2 to a negative power. Convert the numbers of the heads to floating point first."""
    slope = 2 ** (-8 * torch.arange(1, num_heads + 1) // num_heads)
    return -slope[:, None, None] * (torch.arange(length)[:, None] - torch.arange(length)).abs()


@mistake
def other_dtype(num_heads, length):
    """The values are right, but the dtype is not: the bias should be float32. A float64 bias, added to float32 scores,
    makes everything after it float64."""
    return alibi_bias(num_heads, length).double()


@mistake
def integer_result(num_heads, length):
    """The bias is a tensor of integers, so the slopes are truncated. It should be float32."""
    return alibi_bias(num_heads, length).long()


@mistake
def numpy_result(num_heads, length):
    """A NumPy array is returned. It has to be a float32 tensor."""
    return alibi_bias(num_heads, length).numpy()
