"""Mistakes in `previous_token_score`: other measures, averages and axes."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.inspection.previous_token_score import previous_token_score
from course_lib.exercises.inspection.previous_token_score_mistakes.parts import diagonal, score

mistake = Mistakes()


@mistake
def share_of_the_past(weights):
    """Each weight is divided by the weight on all earlier tokens together. The weight itself is averaged: a head
    that attends elsewhere should have a low score."""
    return score(combine=lambda taken, weights: (taken / weights.tril(-1).sum(-1)[..., 1:]).mean(-1))(weights)


@mistake
def share_of_past_and_present(weights):
    """Each weight is divided by the weight on the query and all tokens before it. The weight itself is averaged."""
    return score(combine=lambda taken, weights: (taken / weights.tril().sum(-1)[..., 1:]).mean(-1))(weights)


@mistake
def share_of_the_others(weights):
    """Each weight is divided by the weight on all tokens but the query's own. The weight itself is averaged."""
    return score(combine=lambda taken, weights: (taken / (1 - diagonal(weights, 0)[..., 1:])).mean(-1))(weights)


@mistake
def share_of_the_largest(weights):
    """Each weight is divided by the largest weight of its query. The weight itself is averaged."""
    return score(combine=lambda taken, weights: (taken / weights[..., 1:, :].amax(-1)).mean(-1))(weights)


@mistake
def geometric_mean(weights):
    """This is the geometric mean, with logarithms. The plain mean is wanted, in which one small weight does not ruin
    the score."""
    return score(combine=lambda taken, weights: taken.log().mean(-1).exp())(weights)


@mistake
def smallest_of_all(weights):
    """This is the smallest weight on any previous token. The score is the mean over all queries that have one."""
    return score(combine=lambda taken, weights: taken.amin(-1))(weights)


@mistake
def how_often_above_a_half(weights):
    """This is how often the weight on the previous token is more than one half. The mean of the weights themselves
    is wanted."""
    return score(combine=lambda taken, weights: (taken > 0.5).to(taken.dtype).mean(-1))(weights)


@mistake
def mean_distance(weights):
    """This is the mean distance between query and key, weighted by attention. The weight at the distance 1 is
    wanted."""
    return (weights * (torch.arange(weights.shape[-1])[:, None] - torch.arange(weights.shape[-1]))).sum(-1).mean(-1)


@mistake
def mean_of_squares(weights):
    """The weights are squared before they are averaged. The plain mean is wanted."""
    return score(combine=lambda taken, weights: taken.square().mean(-1))(weights)


@mistake
def one_minus(weights):
    """This is 1 minus the score: the weight that does *not* go to the previous token."""
    return score(combine=lambda taken, weights: 1 - taken.mean(-1))(weights)


@mistake
def first_query_counted(weights):
    """The sum is divided by L, but only L − 1 queries have a previous token."""
    return score(combine=lambda taken, weights: taken.sum(-1) / weights.shape[-1])(weights)


@mistake
def divided_by_one_less(weights):
    """The sum is divided by L − 2. Of the L queries, only the first has no previous token, so L − 1 remain."""
    return score(combine=lambda taken, weights: taken.sum(-1) / (weights.shape[-1] - 2))(weights)


@mistake
def summed(weights):
    """The weights are summed, not averaged, so the score grows with the length of the sentence."""
    return score(combine=lambda taken, weights: taken.sum(-1))(weights)


@mistake
def mean_of_the_map(weights):
    """The sum is divided by the number of all entries of the map, as if it had been set to zero elsewhere and
    averaged. Only the L − 1 weights on previous tokens are averaged."""
    return score(combine=lambda taken, weights: taken.sum(-1) / weights.shape[-1] ** 2)(weights)


@mistake
def median(weights):
    """This is the median of the weights on the previous tokens; the mean is wanted."""
    return score(combine=lambda taken, weights: taken.median(-1).values)(weights)


@mistake
def largest_of_all(weights):
    """This is the largest weight on any previous token. The score is the mean over all queries that have one."""
    return score(combine=lambda taken, weights: taken.amax(-1))(weights)


@mistake
def not_averaged(weights):
    """These are the weights on the previous tokens, one per query. The score is their mean."""
    return score(combine=lambda taken, weights: taken)(weights)


@mistake
def one_number(weights):
    """The batch dimensions are averaged too, so there is one number for all maps. Each map has its own score."""
    return score(combine=lambda taken, weights: taken.mean())(weights)


@mistake
def axis_kept(weights):
    """The averaged axis is still there, with length 1. There is one score per map, `(...)`."""
    return score(combine=lambda taken, weights: taken.mean(-1, keepdim=True))(weights)


@mistake
def first_two_axes(weights):
    """The diagonal is taken in the first two axes, as `diagonal` does unless told otherwise. With a batch, queries
    and keys are the *last* two axes."""
    return score(lambda weights: weights.diagonal(-1))(weights)


@mistake
def batch_averaged(weights):
    """The mean runs over the first axis, which is that of the batch if there is one. The axis of the queries is to
    be averaged."""
    return score(combine=lambda taken, weights: taken.mean(0))(weights)


@mistake
def only_two_axes(weights):
    """`torch.diag` takes a single matrix. With batch dimensions, it has to be told which two axes are meant."""
    return torch.diag(weights, -1).mean()


@mistake
def rows_indexed_in_the_first_axis(weights):
    """The indices of query and key are applied to the first two axes. With a batch, queries and keys are the *last*
    two axes."""
    return sum(weights[i, i - 1] for i in range(1, weights.shape[-1])) / (weights.shape[-1] - 1)


@mistake
def float32_inside(weights):
    """Somewhere inside, the weights become float32, so float64 input loses half of its digits."""
    return score(combine=lambda taken, weights: taken.float().mean(-1).to(weights.dtype))(weights)


@mistake
def compared_with_equal_weights(weights):
    """1/L, the score of equal weights, is subtracted. The score itself is wanted."""
    return previous_token_score(weights) - 1 / weights.shape[-1]


@mistake
def multiple_of_equal_weights(weights):
    """The score is divided by 1/L, the score of equal weights. The score itself is wanted."""
    return previous_token_score(weights) * weights.shape[-1]


@mistake
def only_where_largest(weights):
    """A weight counts only where the previous token has the largest weight of the row. Every weight on a previous
    token counts, be it large or small."""
    return (weights.diagonal(-1, -2, -1) * (weights[..., 1:, :].amax(-1) == weights.diagonal(-1, -2, -1))).mean(-1)


@mistake
def lower_triangle_averaged(weights):
    """All weights on earlier tokens are averaged. Only those on the token directly before the query count."""
    return weights.tril(-1).sum((-1, -2)) / (weights.shape[-1] * (weights.shape[-1] - 1) / 2)


@mistake
def all_before_over_all_queries(weights):
    """All the weight on earlier tokens is counted, and divided by L. Only the token directly before the query is
    wanted, and L − 1 queries have one."""
    return weights.tril(-1).sum((-1, -2)) / weights.shape[-1]


@mistake
def next_token_over_all_queries(weights):
    """This is the sum of the weights on the *next* token, divided by L. The previous token is wanted, which L − 1
    queries have."""
    return weights.diagonal(1, -2, -1).sum(-1) / weights.shape[-1]


@mistake
def next_token_wrapped_around(weights):
    """This is the mean weight on the *next* token, and the last query is counted with the first key. The previous
    token is wanted."""
    return weights.roll(-1, -1).diagonal(0, -2, -1).mean(-1)


@mistake
def squeezed(weights):
    """Axes of length 1 are squeezed away. With a batch of one, that removes the batch axis."""
    return previous_token_score(weights).squeeze()


@mistake
def two_back_over_two_fewer(weights):
    """The diagonal is the right one, but it is divided by the number of tokens plus one."""
    return weights.diagonal(-1, -2, -1).sum(-1) / (weights.shape[-1] + 1)
