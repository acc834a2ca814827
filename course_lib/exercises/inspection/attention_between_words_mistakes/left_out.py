"""Mistakes in `attention_between_words`: pieces that belong to no word."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.inspection.attention_between_words import attention_between_words
from course_lib.exercises.inspection.attention_between_words_mistakes.parts import between, membership

mistake = Mistakes()


@mistake
def left_out_join_the_last_word(weights, query_words, key_words):
    """Tokens with the number −1 are counted as pieces of the *last* word: as an index, −1 counts from the end. They
    belong to no word."""
    return between(words=lambda words: torch.where(words < 0, words.max(), words))(weights, query_words, key_words)


@mistake
def left_out_join_the_first_word(weights, query_words, key_words):
    """Tokens with the number −1 are counted as pieces of word 0. They belong to no word."""
    return between(words=lambda words: words.clamp(min=0))(weights, query_words, key_words)


@mistake
def left_out_as_a_word(weights, query_words, key_words):
    """The tokens with the number −1 are treated as a word of their own, with a row and a column. They are left out."""
    return between(words=lambda words: words - words.min())(weights, query_words, key_words)


@mistake
def left_out_as_the_last_word(weights, query_words, key_words):
    """The number −1 is counted as one of the words, so there is a row or column too many, without any token. The
    number of words is the highest number plus one."""
    return between(pieces=lambda words, like: membership(words, like, len(words.unique())))(
        weights, query_words, key_words
    )


@mistake
def left_out_still_counted(weights, query_words, key_words):
    """Tokens with the number −1 still count in the number of pieces by which the average is taken. Divide by the
    pieces of the word itself."""
    return (
        (membership(query_words, weights) / (membership(query_words, weights).sum(0) + (query_words < 0).sum())).T
        @ weights
        @ membership(key_words, weights)
    )


joined = {
    "last": (lambda words: torch.where(words < 0, words.max(), words), "the last word, as an index of −1 does"),
    "first": (lambda words: words.clamp(min=0), "word 0"),
}


for key, (join, what) in joined.items():
    mistake.named(
        f"left_out_queries_join_the_{key}_word",
        f"Among the queries, tokens with the number −1 are counted as pieces of {what}. They belong to no word.",
    )(lambda weights, query_words, key_words, join=join: attention_between_words(weights, join(query_words), key_words))
    mistake.named(
        f"left_out_keys_join_the_{key}_word",
        f"Among the keys, tokens with the number −1 are counted as pieces of {what}. They belong to no word.",
    )(lambda weights, query_words, key_words, join=join: attention_between_words(weights, query_words, join(key_words)))


@mistake
def left_out_queries_as_a_word(weights, query_words, key_words):
    """Among the queries, the tokens with the number −1 are treated as a word of their own. They are left out."""
    return attention_between_words(weights, query_words - query_words.min(), key_words)


@mistake
def left_out_keys_as_a_word(weights, query_words, key_words):
    """Among the keys, the tokens with the number −1 are treated as a word of their own. They are left out."""
    return attention_between_words(weights, query_words, key_words - key_words.min())


@mistake
def pieces_scaled_to_one(weights, query_words, key_words):
    """The weights of each piece are scaled to sum to one over the tokens that are not left out. The weight on
    special tokens should be dropped, not shared out among the words."""
    return attention_between_words(
        weights * (key_words >= 0) / (weights * (key_words >= 0)).sum(-1, keepdim=True), query_words, key_words
    )


@mistake
def only_tokens_at_the_ends(weights, query_words, key_words):
    """The first and the last token are left out, whatever their number is. Those with the number −1 should be."""
    return attention_between_words(weights[..., 1:-1, 1:-1], query_words[1:-1], key_words[1:-1])


@mistake
def one_hot_of_minus_one(weights, query_words, key_words):
    """`one_hot` takes no negative numbers, so a token with the number −1 ends in an error. Such tokens have to be
    set aside first."""
    return between(pieces=lambda words, like: torch.nn.functional.one_hot(words).to(like.dtype))(
        weights, query_words, key_words
    )


@mistake
def added_at_minus_one(weights, query_words, key_words):
    """The weights are added at the place that the number of the word gives, and −1 is not such a place, so tokens that
    are left out end in an error. They have to be set aside first."""
    columns = weights.new_zeros(*weights.shape[:-1], int(key_words.max()) + 1).index_add(-1, key_words, weights)
    rows = columns.new_zeros(*weights.shape[:-2], int(query_words.max()) + 1, columns.shape[-1])
    return rows.index_add(-2, query_words, columns) / query_words.bincount()[:, None]


@mistake
def no_place_for_the_last_word(weights, query_words, key_words):
    """There is no place for the last word. Words are numbered from 0, so there is one more than the highest number."""
    result = weights.new_zeros(*weights.shape[:-2], int(query_words.max()), int(key_words.max()))
    for u in range(int(query_words.max()) + 1):
        for v in range(int(key_words.max()) + 1):
            block = weights[..., query_words == u, :][..., key_words == v]
            result[..., u, v] = block.sum(-1).mean(-1)
    return result


@mistake
def true_and_false_multiplied(weights, query_words, key_words):
    """The matrix that says which token belongs to which word holds True and False. It has to be made of numbers, of
    the dtype of `weights`, before it can be multiplied."""
    return weights @ (key_words[:, None] == torch.arange(int(key_words.max()) + 1))
