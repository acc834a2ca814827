"""Mistakes in `attention_between_words`: sums and averages over the pieces of a word."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.inspection.attention_between_words_mistakes.parts import add, average, between, membership

mistake = Mistakes()


def _one_piece(which):
    """Where the first or the last piece of each word is."""
    return lambda words: torch.stack([(words == n).nonzero()[which, 0] for n in range(int(words.max()) + 1)])


def _largest(weights, words, axis):
    parts = [weights.movedim(axis, 0)[words == n].amax(0) for n in range(int(words.max()) + 1)]
    return torch.stack(parts).movedim(0, axis)


@mistake
def added_on_both_sides(weights, query_words, key_words):
    """The weights *from* the pieces of a word are added as well, so the row of a word of three pieces sums to three.
    The weights of each piece sum to one already, and those of the word should, too."""
    return between(rows=add)(weights, query_words, key_words)


@mistake
def averaged_on_both_sides(weights, query_words, key_words):
    """The weights *to* the pieces of a word are averaged as well. A word would then receive less attention the more
    pieces it is split into, and the rows would no longer sum to one."""
    return between(columns=average)(weights, query_words, key_words)


@mistake
def the_wrong_way_round(weights, query_words, key_words):
    """Adding and averaging are exchanged. The weights *to* the pieces of a word are the ones to add, and the weights
    *from* its pieces the ones to average."""
    return between(rows=add, columns=average)(weights, query_words, key_words)


@mistake
def averaged_over_all_queries(weights, query_words, key_words):
    """The sum over the pieces of a query word is divided by the number of all queries. It should be divided by the
    number of pieces of that word."""
    return between(rows=lambda pieces: pieces / len(pieces))(weights, query_words, key_words)


@mistake
def rows_scaled_to_one(weights, query_words, key_words):
    """Each row is scaled to sum to one. The weight on special tokens should be dropped, not shared out: otherwise a
    head that attends to [SEP] nearly all the time would seem to attend to words."""
    return between(after=lambda merged: merged / merged.sum(-1, keepdim=True))(weights, query_words, key_words)


@mistake
def softmax_again(weights, query_words, key_words):
    """The result goes through a softmax. It consists of weights already, not of scores, and a softmax evens them
    out."""
    return between(after=lambda merged: merged.softmax(-1))(weights, query_words, key_words)


@mistake
def transposed(weights, query_words, key_words):
    """The result is transposed: rows are query words, columns are key words."""
    return between(after=lambda merged: merged.mT)(weights, query_words, key_words)


for key, which, name in (("first", 0, "first"), ("last", -1, "last")):
    place = _one_piece(which)
    mistake.named(
        f"{key}_piece_for_the_word",
        f"Only the {name} piece of each word is used, for queries and keys. All pieces count.",
    )(lambda weights, query_words, key_words, place=place: weights[..., place(query_words), :][..., place(key_words)])
    mistake.named(
        f"{key}_piece_of_the_query",
        f"The weights to the pieces of a word are added, but on the side of the queries only the {name} piece of "
        f"each word is used. The weights from all its pieces are averaged.",
    )(
        lambda weights, query_words, key_words, place=place: (
            weights[..., place(query_words), :] @ membership(key_words, weights)
        )
    )
    mistake.named(
        f"{key}_piece_of_the_key",
        f"The weights from the pieces of a word are averaged, but on the side of the keys only the {name} piece of "
        f"each word is used. The weights to all its pieces are added.",
    )(
        lambda weights, query_words, key_words, place=place: (
            average(membership(query_words, weights)).T @ weights[..., place(key_words)]
        )
    )


@mistake
def largest_over_the_keys(weights, query_words, key_words):
    """Of the weights to the pieces of a word, only the largest is used. Together they are what the word receives, so
    they are added."""
    return average(membership(query_words, weights)).T @ _largest(weights, key_words, -1)


@mistake
def largest_over_the_queries(weights, query_words, key_words):
    """Of the weights from the pieces of a word, only the largest is used. They should be averaged."""
    return _largest(weights @ membership(key_words, weights), query_words, -2)


@mistake
def largest_on_both_sides(weights, query_words, key_words):
    """For each pair of words, only the largest weight between their pieces is used. Weights to pieces are added,
    weights from pieces averaged."""
    return _largest(_largest(weights, key_words, -1), query_words, -2)
