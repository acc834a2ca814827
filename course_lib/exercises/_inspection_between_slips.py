"""Mistakes in attention between words: sums and averages, tokens that are left out, and the numbers of words."""

from __future__ import annotations

import torch

from course_lib.exercises._exercise import Exercise

__all__ = ["add_slips"]


def _average(pieces):
    return pieces / pieces.sum(0)


def _add(pieces):
    return pieces


def _pieces(words, like, number=None):
    """1 where a token is a piece of a word, `(L, number of words)`."""
    number = int(words.max()) + 1 if number is None else number
    return (words[:, None] == torch.arange(number)).to(like.dtype)


def _between(rows=_average, columns=_add, after=lambda merged: merged, pieces=_pieces, words=lambda words: words):
    """Attention between words with other factors on the rows or the columns, or other words."""

    def attention_between_words(weights, query_words, key_words):
        queries, keys = pieces(words(query_words), weights), pieces(words(key_words), weights)
        return after(rows(queries).T @ weights @ columns(keys))

    return attention_between_words


def _one_piece(which):
    """Where the first or the last piece of each word is."""
    return lambda words: torch.stack([(words == n).nonzero()[which, 0] for n in range(int(words.max()) + 1)])


def _largest(weights, words, axis):
    parts = [weights.movedim(axis, 0)[words == n].amax(0) for n in range(int(words.max()) + 1)]
    return torch.stack(parts).movedim(0, axis)


def add_slips(exercise: Exercise) -> None:
    """Add the mistakes to the exercise `attention_between_words`."""
    _add_sums(exercise)
    _add_single_pieces(exercise)
    _add_left_out(exercise)
    _add_left_out_on_one_side(exercise)
    _add_errors(exercise)
    _add_numbers(exercise)
    _add_conduct(exercise)


def _add_sums(exercise: Exercise) -> None:
    exercise.misconception(
        "added_on_both_sides",
        "The weights *from* the pieces of a word are added as well, so the row of a word of three pieces sums to "
        "three. The weights of each piece sum to one already, and those of the word should, too.",
    )(_between(rows=_add))
    exercise.misconception(
        "averaged_on_both_sides",
        "The weights *to* the pieces of a word are averaged as well. A word would then receive less attention the "
        "more pieces it is split into, and the rows would no longer sum to one.",
    )(_between(columns=_average))
    exercise.misconception(
        "the_wrong_way_round",
        "The two are exchanged: weights *to* the pieces of a word are added, weights *from* its pieces averaged.",
    )(_between(rows=_add, columns=_average))
    exercise.misconception(
        "averaged_over_all_queries",
        "The sum over the pieces of a query word is divided by the number of all queries. It should be divided by the "
        "number of pieces of that word.",
    )(_between(rows=lambda pieces: pieces / len(pieces)))
    exercise.misconception(
        "rows_scaled_to_one",
        "Each row is scaled to sum to one. The weight on special tokens should be dropped, not shared out: otherwise a "
        "head that attends to [SEP] nearly all the time would seem to attend to words.",
    )(_between(after=lambda merged: merged / merged.sum(-1, keepdim=True)))
    exercise.misconception(
        "softmax_again",
        "The result goes through a softmax. It consists of weights already, not of scores, and a softmax evens them "
        "out.",
    )(_between(after=lambda merged: merged.softmax(-1)))
    exercise.misconception(
        "transposed",
        "The result is transposed: rows are query words, columns are key words.",
    )(_between(after=lambda merged: merged.mT))


def _add_single_pieces(exercise: Exercise) -> None:
    for key, which, name in (("first", 0, "first"), ("last", -1, "last")):
        place = _one_piece(which)
        exercise.misconception(
            f"{key}_piece_for_the_word",
            f"Only the {name} piece of each word is used, for queries and keys. All pieces count.",
        )(
            lambda weights, query_words, key_words, place=place: weights[..., place(query_words), :][
                ..., place(key_words)
            ]
        )
        exercise.misconception(
            f"{key}_piece_of_the_query",
            f"The weights to the pieces of a word are added, but on the side of the queries only the {name} piece of "
            f"each word is used. The weights from all its pieces are averaged.",
        )(
            lambda weights, query_words, key_words, place=place: (
                weights[..., place(query_words), :] @ _pieces(key_words, weights)
            )
        )
        exercise.misconception(
            f"{key}_piece_of_the_key",
            f"The weights from the pieces of a word are averaged, but on the side of the keys only the {name} piece of "
            f"each word is used. The weights to all its pieces are added.",
        )(
            lambda weights, query_words, key_words, place=place: (
                _average(_pieces(query_words, weights)).T @ weights[..., place(key_words)]
            )
        )
    exercise.misconception(
        "largest_over_the_keys",
        "Of the weights to the pieces of a word, only the largest is used. Together they are what the word receives, "
        "so they are added.",
    )(
        lambda weights, query_words, key_words: (
            _average(_pieces(query_words, weights)).T @ _largest(weights, key_words, -1)
        )
    )
    exercise.misconception(
        "largest_over_the_queries",
        "Of the weights from the pieces of a word, only the largest is used. They should be averaged.",
    )(lambda weights, query_words, key_words: _largest(weights @ _pieces(key_words, weights), query_words, -2))
    exercise.misconception(
        "largest_on_both_sides",
        "For each pair of words, only the largest weight between their pieces is used. Weights to pieces are added, "
        "weights from pieces averaged.",
    )(lambda weights, query_words, key_words: _largest(_largest(weights, key_words, -1), query_words, -2))


def _add_left_out(exercise: Exercise) -> None:
    exercise.misconception(
        "left_out_join_the_last_word",
        "Tokens with the number −1 are counted as pieces of the *last* word: as an index, −1 counts from the end. They "
        "belong to no word.",
    )(_between(words=lambda words: torch.where(words < 0, words.max(), words)))
    exercise.misconception(
        "left_out_join_the_first_word",
        "Tokens with the number −1 are counted as pieces of word 0. They belong to no word.",
    )(_between(words=lambda words: words.clamp(min=0)))
    exercise.misconception(
        "left_out_as_a_word",
        "The tokens with the number −1 are treated as a word of their own, with a row and a column. They are left out.",
    )(_between(words=lambda words: words - words.min()))
    exercise.misconception(
        "left_out_as_the_last_word",
        "The number −1 is counted as one of the words, so there is a row or column too many, without any token. The "
        "number of words is the highest number plus one.",
    )(_between(pieces=lambda words, like: _pieces(words, like, len(words.unique()))))
    exercise.misconception(
        "left_out_still_counted",
        "Tokens with the number −1 still count in the number of pieces by which the average is taken. Divide by the "
        "pieces of the word itself.",
    )(
        lambda weights, query_words, key_words: (
            (_pieces(query_words, weights) / (_pieces(query_words, weights).sum(0) + (query_words < 0).sum())).T
            @ weights
            @ _pieces(key_words, weights)
        )
    )


def _add_left_out_on_one_side(exercise: Exercise) -> None:
    joined = {
        "last": (lambda words: torch.where(words < 0, words.max(), words), "the last word, as an index of −1 does"),
        "first": (lambda words: words.clamp(min=0), "word 0"),
    }
    for key, (join, what) in joined.items():
        exercise.misconception(
            f"left_out_queries_join_the_{key}_word",
            f"Among the queries, tokens with the number −1 are counted as pieces of {what}. They belong to no word.",
        )(lambda weights, query_words, key_words, join=join: exercise.reference(weights, join(query_words), key_words))
        exercise.misconception(
            f"left_out_keys_join_the_{key}_word",
            f"Among the keys, tokens with the number −1 are counted as pieces of {what}. They belong to no word.",
        )(lambda weights, query_words, key_words, join=join: exercise.reference(weights, query_words, join(key_words)))
    exercise.misconception(
        "left_out_queries_as_a_word",
        "Among the queries, the tokens with the number −1 are treated as a word of their own. They are left out.",
    )(lambda weights, query_words, key_words: exercise.reference(weights, query_words - query_words.min(), key_words))
    exercise.misconception(
        "left_out_keys_as_a_word",
        "Among the keys, the tokens with the number −1 are treated as a word of their own. They are left out.",
    )(lambda weights, query_words, key_words: exercise.reference(weights, query_words, key_words - key_words.min()))
    exercise.misconception(
        "pieces_scaled_to_one",
        "The weights of each piece are scaled to sum to one over the tokens that are not left out. The weight on "
        "special tokens should be dropped, not shared out among the words.",
    )(
        lambda weights, query_words, key_words: exercise.reference(
            weights * (key_words >= 0) / (weights * (key_words >= 0)).sum(-1, keepdim=True), query_words, key_words
        )
    )
    exercise.misconception(
        "only_tokens_at_the_ends",
        "The first and the last token are left out, whatever their number is. Those with the number −1 should be.",
    )(
        lambda weights, query_words, key_words: exercise.reference(
            weights[..., 1:-1, 1:-1], query_words[1:-1], key_words[1:-1]
        )
    )


def _add_errors(exercise: Exercise) -> None:
    exercise.misconception(
        "one_hot_of_minus_one",
        "`one_hot` takes no negative numbers, so a token with the number −1 ends in an error. Such tokens have to be "
        "set aside first.",
    )(_between(pieces=lambda words, like: torch.nn.functional.one_hot(words).to(like.dtype)))

    @exercise.misconception(
        "added_at_minus_one",
        "The weights are added at the place that the number of the word gives, and −1 is no such place, so tokens "
        "that are left out end in an error. They have to be set aside first.",
    )
    def _(weights, query_words, key_words):
        columns = weights.new_zeros(*weights.shape[:-1], int(key_words.max()) + 1).index_add(-1, key_words, weights)
        rows = columns.new_zeros(*weights.shape[:-2], int(query_words.max()) + 1, columns.shape[-1])
        return rows.index_add(-2, query_words, columns) / query_words.bincount()[:, None]

    @exercise.misconception(
        "no_place_for_the_last_word",
        "There is no place for the last word. Words are numbered from 0, so there is one more than the highest number.",
    )
    def _(weights, query_words, key_words):
        result = weights.new_zeros(*weights.shape[:-2], int(query_words.max()), int(key_words.max()))
        for u in range(int(query_words.max()) + 1):
            for v in range(int(key_words.max()) + 1):
                block = weights[..., query_words == u, :][..., key_words == v]
                result[..., u, v] = block.sum(-1).mean(-1)
        return result

    exercise.misconception(
        "true_and_false_multiplied",
        "The matrix that says which token belongs to which word holds True and False. It has to be made of numbers, of "
        "the dtype of `weights`, before it can be multiplied.",
    )(lambda weights, query_words, key_words: weights @ (key_words[:, None] == torch.arange(int(key_words.max()) + 1)))


def _add_numbers(exercise: Exercise) -> None:
    exercise.misconception(
        "square_root_of_the_pieces",
        "The weights from the pieces of a word are divided by the root of their number. For a mean, divide by the "
        "number itself.",
    )(_between(rows=lambda pieces: pieces / pieces.sum(0).sqrt()))
    exercise.misconception(
        "summed_over_the_queries_divided_by_the_words",
        "The sum over the pieces of a query word is divided by the number of words. It should be divided by the number "
        "of pieces of that word.",
    )(_between(rows=lambda pieces: pieces / pieces.shape[1]))
    exercise.misconception(
        "divided_by_the_pieces_of_both",
        "The sum of a block is divided by the *sum* of the numbers of pieces on both sides. Only the number of pieces "
        "of the query word divides it.",
    )(
        lambda weights, query_words, key_words: (
            (_pieces(query_words, weights).T @ weights @ _pieces(key_words, weights))
            / (_pieces(query_words, weights).sum(0)[:, None] + _pieces(key_words, weights).sum(0))
        )
    )
    exercise.misconception(
        "columns_scaled_to_one",
        "The columns of the result are made to sum to one. Rows are queries, and nothing is scaled.",
    )(_between(after=lambda merged: merged / merged.sum(-2, keepdim=True)))
    exercise.misconception(
        "last_word_lost",
        "The last word is missing on both sides. Words are numbered from 0, so there is one more than the highest "
        "number.",
    )(_between(pieces=lambda words, like: _pieces(words, like, int(words.max()))))
    exercise.misconception(
        "as_many_key_words_as_query_words",
        "The result has as many columns as there are *query* words. Queries and keys have their own words, and the "
        "numbers of words may differ.",
    )(
        lambda weights, query_words, key_words: (
            _average(_pieces(query_words, weights)).T
            @ weights
            @ _pieces(key_words, weights, int(query_words.max()) + 1)
        )
    )
    exercise.misconception(
        "key_words_for_the_queries",
        "The words of the keys are used for the queries as well. The two sides have their own words.",
    )(lambda weights, query_words, key_words: exercise.reference(weights, key_words, key_words))
    exercise.misconception(
        "query_words_for_the_keys",
        "The words of the queries are used for the keys as well. The two sides have their own words.",
    )(lambda weights, query_words, key_words: exercise.reference(weights, query_words, query_words))
    exercise.misconception(
        "sides_exchanged",
        "The words of the queries are applied to the columns and those of the keys to the rows. Rows are queries, "
        "columns are keys.",
    )(lambda weights, query_words, key_words: exercise.reference(weights, key_words, query_words))
    exercise.misconception(
        "only_keys_merged",
        "The keys are combined into words, but each query is still a single token.",
    )(lambda weights, query_words, key_words: weights @ _pieces(key_words, weights))
    exercise.misconception(
        "only_queries_merged",
        "The queries are combined into words, but each key is still a single token.",
    )(lambda weights, query_words, key_words: _average(_pieces(query_words, weights)).T @ weights)


def _add_conduct(exercise: Exercise) -> None:
    exercise.misconception(
        "membership_in_float32",
        "The matrix that says which token belongs to which word is float32, whatever `weights` is. A matrix product "
        "needs two factors of the same dtype, so float64 weights end in an error.",
    )(_between(pieces=lambda words, like: _pieces(words, like).float()))
    exercise.misconception(
        "float32_inside",
        "Somewhere inside, the weights become float32, so float64 input loses half of its digits.",
    )(
        lambda weights, query_words, key_words: exercise.reference(weights.float(), query_words, key_words).to(
            weights.dtype
        )
    )

    @exercise.misconception(
        "caller_changed",
        "The result is right, but the caller's weights are changed: those of the tokens that are left out are "
        "overwritten. An assignment to a part of a tensor works in place.",
    )
    def _(weights, query_words, key_words):
        weights[..., key_words < 0] = 0
        return exercise.reference(weights, query_words, key_words)

    @exercise.misconception(
        "caller_changed_rows",
        "The result is right, but rows of the caller's weights are overwritten, those of the queries that are left "
        "out. An assignment to a part of a tensor works in place.",
    )
    def _(weights, query_words, key_words):
        weights[..., query_words < 0, :] = 0
        return exercise.reference(weights, query_words, key_words)
