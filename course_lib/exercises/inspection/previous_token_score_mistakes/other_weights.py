"""Mistakes in `previous_token_score`: which weights are taken."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.inspection.previous_token_score_mistakes.parts import diagonal, score

mistake = Mistakes()


@mistake
def next_token(weights):
    """This is the mean weight on the *next* token. Rows are queries, so the weight of query i on key i − 1 lies
    below the main diagonal."""
    return score(lambda weights: diagonal(weights, 1))(weights)


@mistake
def own_token(weights):
    """This is the mean weight of each query on its own position, the main diagonal. The previous token is one key
    further to the left."""
    return score(lambda weights: diagonal(weights, 0))(weights)


@mistake
def two_back(weights):
    """This is the weight on the token two positions back. The previous token is one position back."""
    return score(lambda weights: diagonal(weights, -2))(weights)


@mistake
def wrapped_around(weights):
    """The first query is counted with its weight on the *last* key, because an index of −1 counts from the end. It
    has no previous token, so it does not count."""
    return torch.stack([weights[..., i, i - 1] for i in range(weights.shape[-1])]).mean(0)


@mistake
def first_query_on_itself(weights):
    """The first query is counted with its weight on itself. It has no previous token, so it does not count."""
    return (weights[..., 0, 0] + diagonal(weights).sum(-1)) / weights.shape[-1]


@mistake
def all_before(weights):
    """All the weight on earlier tokens is counted. Only the token directly before the query is wanted."""
    return weights.tril(-1).sum((-1, -2)) / (weights.shape[-1] - 1)


@mistake
def both_neighbours(weights):
    """The weights on the previous *and* the next token are counted. Only the previous token is wanted."""
    return diagonal(weights).mean(-1) + diagonal(weights, 1).mean(-1)


@mistake
def square_block(weights):
    """The last row of keys and the first of queries are left out, and everything that remains is averaged. Only the
    pairs of query i and key i − 1 count."""
    return weights[..., 1:, :-1].mean((-1, -2))


@mistake
def how_often_largest(weights):
    """This is how often the previous token has the *largest* weight. The mean of the weights themselves is wanted."""
    return (weights[..., 1:, :].argmax(-1) == torch.arange(weights.shape[-1] - 1)).to(weights.dtype).mean(-1)


@mistake
def largest_weight(weights):
    """This is the mean of the largest weight of each query, wherever it is. The weight on the previous token is
    wanted, be it large or small."""
    return weights[..., 1:, :].amax(-1).mean(-1)


@mistake
def last_query_missing(weights):
    """The last query is not counted: `range(1, L - 1)` ends at L − 2."""
    return score(lambda weights: diagonal(weights)[..., :-1])(weights)


@mistake
def first_pair_missing(weights):
    """The first pair is not counted: query 1 has a previous token, too, at position 0."""
    return score(lambda weights: diagonal(weights)[..., 1:])(weights)


@mistake
def both_ends_missing(weights):
    """The first and the last pair are not counted, as if special tokens were to be left out. Every query after the
    first counts."""
    return score(lambda weights: diagonal(weights)[..., 1:-1])(weights)


@mistake
def last_query_alone(weights):
    """Only the last query is used. The score is the mean over all queries that have a previous token."""
    return weights[..., -1, -2]


@mistake
def second_query_alone(weights):
    """Only query 1 is used. The score is the mean over all queries that have a previous token."""
    return weights[..., 1, 0]


@mistake
def own_token_without_the_first(weights):
    """These are the weights of the queries on *themselves*, with the first query left out. Leaving it out is right,
    but the key is one position further to the left."""
    return score(lambda weights: diagonal(weights, 0)[..., 1:])(weights)


@mistake
def own_token_without_the_last(weights):
    """These are the weights of the queries on *themselves*, with the last query left out: query and key have been
    shifted together."""
    return score(lambda weights: diagonal(weights, 0)[..., :-1])(weights)


@mistake
def first_token(weights):
    """This is the mean weight on the *first* token of the sequence. The token directly before each query is wanted."""
    return weights[..., 0].mean(-1)


@mistake
def first_token_without_the_first_query(weights):
    """This is the mean weight of the later queries on the *first* token. The token directly before each query is
    wanted."""
    return weights[..., 1:, 0].mean(-1)


@mistake
def other_diagonal(weights):
    """The diagonal runs from the upper right to the lower left. Query i and key i − 1 are next to the diagonal from
    the upper left to the lower right."""
    return diagonal(weights.flip(-1)).mean(-1)


@mistake
def other_diagonal_in_full(weights):
    """This is the mean of the diagonal from the upper right to the lower left. Query i and key i − 1 are next to the
    diagonal from the upper left to the lower right."""
    return diagonal(weights.flip(-1), 0).mean(-1)


@mistake
def previous_and_own(weights):
    """The weights on the previous token *and* on the query's own position are counted. Only the previous token is
    wanted."""
    return (diagonal(weights) + diagonal(weights, 0)[..., 1:]).mean(-1)


@mistake
def softmax_again(weights):
    """The weights go through another softmax first. They are the output of one already."""
    return score(lambda weights: diagonal(weights.softmax(-1)))(weights)
