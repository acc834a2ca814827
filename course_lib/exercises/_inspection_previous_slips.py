"""Mistakes in the score of a previous-token head: which weights are taken, and how they are averaged."""

from __future__ import annotations

import torch

from course_lib.exercises._exercise import Exercise

__all__ = ["add_slips"]


def _diagonal(weights, offset=-1):
    return weights.diagonal(offset, -2, -1)


def _score(take=_diagonal, combine=lambda taken, weights: taken.mean(-1)):
    """The score with other weights taken, or another average."""
    return lambda weights: combine(take(weights), weights)


def add_slips(exercise: Exercise) -> None:
    """Add the mistakes to the exercise `previous_token_score`."""
    _add_other_weights(exercise)
    _add_further_weights(exercise)
    _add_other_measures(exercise)
    _add_averages(exercise)
    _add_axes(exercise)


def _add_other_weights(exercise: Exercise) -> None:
    exercise.misconception(
        "next_token",
        "This is the mean weight on the *next* token. Rows are queries, so the weight of query i on key i − 1 lies "
        "below the main diagonal.",
    )(_score(lambda weights: _diagonal(weights, 1)))
    exercise.misconception(
        "own_token",
        "This is the mean weight of each query on its own position, the main diagonal. The previous token is one key "
        "further to the left.",
    )(_score(lambda weights: _diagonal(weights, 0)))
    exercise.misconception(
        "two_back",
        "This is the weight on the token two positions back. The previous token is one position back.",
    )(_score(lambda weights: _diagonal(weights, -2)))
    exercise.misconception(
        "wrapped_around",
        "The first query is counted with its weight on the *last* key, because an index of −1 counts from the end. "
        "It has no previous token, so it does not count.",
    )(lambda weights: torch.stack([weights[..., i, i - 1] for i in range(weights.shape[-1])]).mean(0))
    exercise.misconception(
        "first_query_on_itself",
        "The first query is counted with its weight on itself. It has no previous token, so it does not count.",
    )(lambda weights: (weights[..., 0, 0] + _diagonal(weights).sum(-1)) / weights.shape[-1])
    exercise.misconception(
        "all_before",
        "All the weight on earlier tokens is counted. Only the token directly before the query is wanted.",
    )(lambda weights: weights.tril(-1).sum((-1, -2)) / (weights.shape[-1] - 1))
    exercise.misconception(
        "both_neighbours",
        "The weights on the previous *and* the next token are counted. Only the previous token is wanted.",
    )(lambda weights: _diagonal(weights).mean(-1) + _diagonal(weights, 1).mean(-1))
    exercise.misconception(
        "square_block",
        "The last row of keys and the first of queries are left out, and everything that remains is averaged. Only "
        "the pairs of query i and key i − 1 count.",
    )(lambda weights: weights[..., 1:, :-1].mean((-1, -2)))
    exercise.misconception(
        "how_often_largest",
        "This is how often the previous token has the *largest* weight. The mean of the weights themselves is wanted.",
    )(
        lambda weights: (
            (weights[..., 1:, :].argmax(-1) == torch.arange(weights.shape[-1] - 1)).to(weights.dtype).mean(-1)
        )
    )
    exercise.misconception(
        "largest_weight",
        "This is the mean of the largest weight of each query, wherever it is. The weight on the previous token is "
        "wanted, be it large or small.",
    )(lambda weights: weights[..., 1:, :].amax(-1).mean(-1))
    exercise.misconception(
        "last_query_missing",
        "The last query is not counted: `range(1, L - 1)` ends at L − 2.",
    )(_score(lambda weights: _diagonal(weights)[..., :-1]))


def _add_further_weights(exercise: Exercise) -> None:
    exercise.misconception(
        "first_pair_missing",
        "The first pair is not counted: query 1 has a previous token, too, at position 0.",
    )(_score(lambda weights: _diagonal(weights)[..., 1:]))
    exercise.misconception(
        "both_ends_missing",
        "The first and the last pair are not counted, as if special tokens were to be left out. Every query after the "
        "first counts.",
    )(_score(lambda weights: _diagonal(weights)[..., 1:-1]))
    exercise.misconception(
        "last_query_alone",
        "Only the last query is used. The score is the mean over all queries that have a previous token.",
    )(lambda weights: weights[..., -1, -2])
    exercise.misconception(
        "second_query_alone",
        "Only query 1 is used. The score is the mean over all queries that have a previous token.",
    )(lambda weights: weights[..., 1, 0])
    exercise.misconception(
        "own_token_without_the_first",
        "These are the weights of the queries on *themselves*, with the first query left out. Leaving it out is "
        "right, but the key is one position further to the left.",
    )(_score(lambda weights: _diagonal(weights, 0)[..., 1:]))
    exercise.misconception(
        "own_token_without_the_last",
        "These are the weights of the queries on *themselves*, with the last query left out: query and key have been "
        "shifted together.",
    )(_score(lambda weights: _diagonal(weights, 0)[..., :-1]))
    exercise.misconception(
        "first_token",
        "This is the mean weight on the *first* token of the sequence. The token directly before each query is wanted.",
    )(lambda weights: weights[..., 0].mean(-1))
    exercise.misconception(
        "first_token_without_the_first_query",
        "This is the mean weight of the later queries on the *first* token. The token directly before each query is "
        "wanted.",
    )(lambda weights: weights[..., 1:, 0].mean(-1))
    exercise.misconception(
        "other_diagonal",
        "The diagonal runs from the upper right to the lower left. Query i and key i − 1 are next to the diagonal "
        "from the upper left to the lower right.",
    )(lambda weights: _diagonal(weights.flip(-1)).mean(-1))
    exercise.misconception(
        "other_diagonal_in_full",
        "This is the mean of the diagonal from the upper right to the lower left. Query i and key i − 1 are next to "
        "the diagonal from the upper left to the lower right.",
    )(lambda weights: _diagonal(weights.flip(-1), 0).mean(-1))
    exercise.misconception(
        "previous_and_own",
        "The weights on the previous token *and* on the query's own position are counted. Only the previous token is "
        "wanted.",
    )(lambda weights: (_diagonal(weights) + _diagonal(weights, 0)[..., 1:]).mean(-1))
    exercise.misconception(
        "softmax_again",
        "The weights go through another softmax first. They are the output of one already.",
    )(_score(lambda weights: _diagonal(weights.softmax(-1))))


def _add_other_measures(exercise: Exercise) -> None:
    exercise.misconception(
        "share_of_the_past",
        "Each weight is divided by the weight on all earlier tokens together. The weight itself is averaged: a head "
        "that attends elsewhere should have a low score.",
    )(_score(combine=lambda taken, weights: (taken / weights.tril(-1).sum(-1)[..., 1:]).mean(-1)))
    exercise.misconception(
        "share_of_past_and_present",
        "Each weight is divided by the weight on the query and all tokens before it. The weight itself is averaged.",
    )(_score(combine=lambda taken, weights: (taken / weights.tril().sum(-1)[..., 1:]).mean(-1)))
    exercise.misconception(
        "share_of_the_others",
        "Each weight is divided by the weight on all tokens but the query's own. The weight itself is averaged.",
    )(_score(combine=lambda taken, weights: (taken / (1 - _diagonal(weights, 0)[..., 1:])).mean(-1)))
    exercise.misconception(
        "share_of_the_largest",
        "Each weight is divided by the largest weight of its query. The weight itself is averaged.",
    )(_score(combine=lambda taken, weights: (taken / weights[..., 1:, :].amax(-1)).mean(-1)))
    exercise.misconception(
        "geometric_mean",
        "This is the geometric mean, with logarithms. The plain mean is wanted, in which one small weight does not "
        "ruin the score.",
    )(_score(combine=lambda taken, weights: taken.log().mean(-1).exp()))
    exercise.misconception(
        "smallest_of_all",
        "This is the smallest weight on any previous token. The score is the mean over all queries that have one.",
    )(_score(combine=lambda taken, weights: taken.amin(-1)))
    exercise.misconception(
        "how_often_above_a_half",
        "This is how often the weight on the previous token is more than one half. The mean of the weights themselves "
        "is wanted.",
    )(_score(combine=lambda taken, weights: (taken > 0.5).to(taken.dtype).mean(-1)))
    exercise.misconception(
        "mean_distance",
        "This is the mean distance between query and key, weighted by attention. The weight at the distance 1 is "
        "wanted.",
    )(
        lambda weights: (
            (weights * (torch.arange(weights.shape[-1])[:, None] - torch.arange(weights.shape[-1]))).sum(-1).mean(-1)
        )
    )
    exercise.misconception(
        "mean_of_squares",
        "The weights are squared before they are averaged. The plain mean is wanted.",
    )(_score(combine=lambda taken, weights: taken.square().mean(-1)))
    exercise.misconception(
        "one_minus",
        "This is 1 minus the score: the weight that does *not* go to the previous token.",
    )(_score(combine=lambda taken, weights: 1 - taken.mean(-1)))


def _add_averages(exercise: Exercise) -> None:
    exercise.misconception(
        "first_query_counted",
        "The sum is divided by L, but only L − 1 queries have a previous token.",
    )(_score(combine=lambda taken, weights: taken.sum(-1) / weights.shape[-1]))
    exercise.misconception(
        "divided_by_one_less",
        "The sum is divided by L − 2. Of the L queries, only the first has no previous token, so L − 1 remain.",
    )(_score(combine=lambda taken, weights: taken.sum(-1) / (weights.shape[-1] - 2)))
    exercise.misconception(
        "summed",
        "The weights are summed, not averaged, so the score grows with the length of the sentence.",
    )(_score(combine=lambda taken, weights: taken.sum(-1)))
    exercise.misconception(
        "mean_of_the_map",
        "The sum is divided by the number of all entries of the map, as if it had been set to zero elsewhere and "
        "averaged. Only the L − 1 weights on previous tokens are averaged.",
    )(_score(combine=lambda taken, weights: taken.sum(-1) / weights.shape[-1] ** 2))
    exercise.misconception(
        "median",
        "This is the median of the weights on the previous tokens; the mean is wanted.",
    )(_score(combine=lambda taken, weights: taken.median(-1).values))
    exercise.misconception(
        "largest_of_all",
        "This is the largest weight on any previous token. The score is the mean over all queries that have one.",
    )(_score(combine=lambda taken, weights: taken.amax(-1)))
    exercise.misconception(
        "not_averaged",
        "These are the weights on the previous tokens, one per query. The score is their mean.",
    )(_score(combine=lambda taken, weights: taken))


def _add_axes(exercise: Exercise) -> None:
    exercise.misconception(
        "one_number",
        "The batch dimensions are averaged too, so there is one number for all maps. Each map has its own score.",
    )(_score(combine=lambda taken, weights: taken.mean()))
    exercise.misconception(
        "axis_kept",
        "The averaged axis is still there, with length 1. There is one score per map, `(...)`.",
    )(_score(combine=lambda taken, weights: taken.mean(-1, keepdim=True)))
    exercise.misconception(
        "first_two_axes",
        "The diagonal is taken in the first two axes, as `diagonal` does unless told otherwise. With a batch, queries "
        "and keys are the *last* two axes.",
    )(_score(lambda weights: weights.diagonal(-1)))
    exercise.misconception(
        "batch_averaged",
        "The mean runs over the first axis, which is that of the batch if there is one. The axis of the queries is to "
        "be averaged.",
    )(_score(combine=lambda taken, weights: taken.mean(0)))
    exercise.misconception(
        "only_two_axes",
        "`torch.diag` takes a single matrix. With batch dimensions, it has to be told which two axes are meant.",
    )(lambda weights: torch.diag(weights, -1).mean())
    exercise.misconception(
        "rows_indexed_in_the_first_axis",
        "The indices of query and key are applied to the first two axes. With a batch, queries and keys are the "
        "*last* two axes.",
    )(lambda weights: sum(weights[i, i - 1] for i in range(1, weights.shape[-1])) / (weights.shape[-1] - 1))
    exercise.misconception(
        "float32_inside",
        "Somewhere inside, the weights become float32, so float64 input loses half of its digits.",
    )(_score(combine=lambda taken, weights: taken.float().mean(-1).to(weights.dtype)))
