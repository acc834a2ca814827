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
