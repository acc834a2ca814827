"""Mistakes in `attention_between_words`: numbers of words, axes, dtypes, and what is changed."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.inspection.attention_between_words import attention_between_words
from course_lib.exercises.inspection.attention_between_words_mistakes.parts import average, between, membership

mistake = Mistakes()


def _counted(words):
    """The number of pieces of each word; tokens that are left out do not count."""
    return torch.bincount(words[words >= 0], minlength=int(words.max()) + 1)


def _added_one_by_one(weights, query_words, key_words):
    shape = *weights.shape[:-2], int(query_words.max()) + 1, int(key_words.max()) + 1
    between = torch.zeros(shape, dtype=weights.dtype)
    for i, query in enumerate(query_words.tolist()):
        for j, key in enumerate(key_words.tolist()):
            between[..., query, key] += weights[..., i, j]  # −1 is the last word
    return between / _counted(query_words)[:, None]


def _written_once(weights, query_words, key_words):
    kept = weights[..., query_words >= 0, :][..., key_words >= 0]
    query_words, key_words = query_words[query_words >= 0], key_words[key_words >= 0]
    summed = torch.zeros(*kept.shape[:-1], int(key_words.max()) + 1, dtype=weights.dtype)
    summed[..., key_words] += kept
    total = torch.zeros(*kept.shape[:-2], int(query_words.max()) + 1, summed.shape[-1], dtype=weights.dtype)
    total[..., query_words, :] += summed
    return total / _counted(query_words)[:, None]


@mistake
def square_root_of_the_pieces(weights, query_words, key_words):
    """The weights from the pieces of a word are divided by the root of their number. For a mean, divide by the
    number itself."""
    return between(rows=lambda pieces: pieces / pieces.sum(0).sqrt())(weights, query_words, key_words)


@mistake
def summed_over_the_queries_divided_by_the_words(weights, query_words, key_words):
    """The sum over the pieces of a query word is divided by the number of words. It should be divided by the number
    of pieces of that word."""
    return between(rows=lambda pieces: pieces / pieces.shape[1])(weights, query_words, key_words)


@mistake
def divided_by_the_pieces_of_both(weights, query_words, key_words):
    """The sum of a block is divided by the *sum* of the numbers of pieces on both sides. Only the number of pieces
    of the query word divides it."""
    return (membership(query_words, weights).T @ weights @ membership(key_words, weights)) / (
        membership(query_words, weights).sum(0)[:, None] + membership(key_words, weights).sum(0)
    )


@mistake
def columns_scaled_to_one(weights, query_words, key_words):
    """The columns of the result are made to sum to one. Rows are queries, and nothing is scaled."""
    return between(after=lambda merged: merged / merged.sum(-2, keepdim=True))(weights, query_words, key_words)


@mistake
def last_word_lost(weights, query_words, key_words):
    """The last word is missing on both sides. Words are numbered from 0, so there is one more than the highest
    number."""
    return between(pieces=lambda words, like: membership(words, like, int(words.max())))(
        weights, query_words, key_words
    )


@mistake
def as_many_key_words_as_query_words(weights, query_words, key_words):
    """The result has as many columns as there are *query* words. Queries and keys have their own words, and the
    numbers of words may differ."""
    return (
        average(membership(query_words, weights)).T
        @ weights
        @ membership(key_words, weights, int(query_words.max()) + 1)
    )


@mistake
def key_words_for_the_queries(weights, query_words, key_words):
    """The words of the keys are used for the queries as well. The two sides have their own words."""
    return attention_between_words(weights, key_words, key_words)


@mistake
def query_words_for_the_keys(weights, query_words, key_words):
    """The words of the queries are used for the keys as well. The two sides have their own words."""
    return attention_between_words(weights, query_words, query_words)


@mistake
def sides_exchanged(weights, query_words, key_words):
    """The words of the queries are applied to the columns and those of the keys to the rows. Rows are queries,
    columns are keys."""
    return attention_between_words(weights, key_words, query_words)


@mistake
def only_keys_merged(weights, query_words, key_words):
    """The keys are combined into words, but each query is still a single token."""
    return weights @ membership(key_words, weights)


@mistake
def only_queries_merged(weights, query_words, key_words):
    """The queries are combined into words, but each key is still a single token."""
    return average(membership(query_words, weights)).T @ weights


@mistake
def membership_in_float32(weights, query_words, key_words):
    """The matrix that says which token belongs to which word is float32, whatever `weights` is. A matrix product
    needs two factors of the same dtype, so float64 weights end in an error."""
    return between(pieces=lambda words, like: membership(words, like).float())(weights, query_words, key_words)


@mistake
def float32_inside(weights, query_words, key_words):
    """Somewhere inside, the weights become float32, so float64 input loses half of its digits."""
    return attention_between_words(weights.float(), query_words, key_words).to(weights.dtype)


@mistake
def caller_changed(weights, query_words, key_words):
    """The result is right, but the caller's weights are changed: those of the tokens that are left out are
    overwritten. An assignment to a part of a tensor works in place."""
    weights[..., key_words < 0] = 0
    return attention_between_words(weights, query_words, key_words)


@mistake
def caller_changed_rows(weights, query_words, key_words):
    """The result is right, but rows of the caller's weights are overwritten, those of the queries that are left out.
    An assignment to a part of a tensor works in place."""
    weights[..., query_words < 0, :] = 0
    return attention_between_words(weights, query_words, key_words)


@mistake
def first_word_lost(weights, query_words, key_words):
    """Word 0 is missing on both sides. Words are numbered from 0."""
    return attention_between_words(weights, query_words, key_words)[..., 1:, 1:]


@mistake
def word_zero_left_out(weights, query_words, key_words):
    """Word 0 is treated like the tokens that are left out: 0 counts as False in Python, and −1 as True. Ask whether
    a number is at least 0."""
    return attention_between_words(weights * ((query_words > 0)[:, None] & (key_words > 0)), query_words, key_words)


@mistake
def dropped_weight_spread_evenly(weights, query_words, key_words):
    """The weight on tokens that are left out is spread over all words. It should be dropped."""
    return (merged := attention_between_words(weights, query_words, key_words)) + (
        1 - merged.sum(-1, keepdim=True)
    ) / merged.shape[-1]


@mistake
def averaged_two_at_a_time(weights, query_words, key_words):
    """The mean over the pieces of a query word is built as (mean so far + next) / 2, so the last piece counts half,
    and the earlier ones less and less. All pieces count the same."""
    columns = attention_between_words(weights, torch.arange(len(query_words)), key_words)
    rows = []
    for word in range(int(query_words.max()) + 1):
        first, *others = (query_words == word).nonzero().flatten().tolist()
        mean = columns[..., first, :]
        for piece in others:
            mean = (mean + columns[..., piece, :]) / 2
        rows.append(mean)
    return torch.stack(rows, -2)


@mistake
def symmetric(weights, query_words, key_words):
    """The attention in both directions is averaged. From word u to word v, only the weights from u to v count."""
    return (
        attention_between_words(weights, query_words, key_words)
        + attention_between_words(weights, query_words, key_words).mT
    ) / 2


@mistake
def batch_averaged(weights, query_words, key_words):
    """The first batch dimension is averaged. Each map has a result of its own."""
    return attention_between_words(weights, query_words, key_words).mean(0)


@mistake
def squeezed(weights, query_words, key_words):
    """Axes of length 1 are squeezed away: a batch of one, or a single word, loses its axis."""
    return attention_between_words(weights, query_words, key_words).squeeze()


@mistake
def divided_by_the_pieces_of_the_key_as_well_as_all(weights, query_words, key_words):
    """The whole result is divided by its sum. Nothing is scaled: the rows sum to one where no token is left out."""
    return (merged := attention_between_words(weights, query_words, key_words)) / merged.sum((-1, -2), keepdim=True)


@mistake
def minus_one_is_the_last_word(weights, query_words, key_words):
    """The number −1 is used as an index. In Python it counts from the end, so the weights of the tokens that are to
    be left out are added to the *last* word. Skip these tokens."""
    return _added_one_by_one(weights, query_words, key_words)


@mistake
def written_once(weights, query_words, key_words):
    """An assignment such as `out[..., words] += w` writes each place only once, even where an index occurs several
    times, so of a word's pieces only one counts. `index_add` adds them all, and so does a matrix product."""
    return _written_once(weights, query_words, key_words)
