"""The building blocks of the mistakes in `attention_between_words`."""

from __future__ import annotations

import torch

__all__ = ["add", "average", "between", "membership"]


def average(pieces):
    return pieces / pieces.sum(0)


def add(pieces):
    return pieces


def membership(words, like, number=None):
    """1 where a token is a piece of a word, `(L, number of words)`."""
    number = int(words.max()) + 1 if number is None else number
    return (words[:, None] == torch.arange(number)).to(like.dtype)


def between(rows=average, columns=add, after=lambda merged: merged, pieces=membership, words=lambda words: words):
    """Attention between words with other factors on the rows or the columns, or other words."""

    def attention_between_words(weights, query_words, key_words):
        queries, keys = pieces(words(query_words), weights), pieces(words(key_words), weights)
        return after(rows(queries).T @ weights @ columns(keys))

    return attention_between_words
