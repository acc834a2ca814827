"""Mistakes in `LearnedPositionalEmbedding`: what is added, and which positions."""

from __future__ import annotations

import torch
from torch import nn

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.positional_encoding.learned_positional_embedding_mistakes.parts import checked, first

mistake = Mistakes()


@mistake.built
def embedding_only():
    """Only the embeddings are returned. They have to be added to x, which holds the tokens."""
    return checked(lambda embedding, x: first(embedding, x.shape[1]).expand_as(x))


@mistake.built
def embedding_only_without_batch():
    """Only the embeddings are returned, `(L, d_model)`. They have to be added to x, which holds the tokens and has the
    batch axis."""
    return checked(lambda embedding, x: first(embedding, x.shape[1]))


@mistake.built
def x_unchanged():
    """x is returned unchanged: the embeddings are not used."""
    return checked(lambda embedding, x: x.clone())


@mistake.built
def multiplied():
    """x is multiplied by the embeddings. They should be added."""
    return checked(lambda embedding, x: x * first(embedding, x.shape[1]))


@mistake.built
def concatenated():
    """The embeddings are concatenated to x, which makes it twice as wide. They should be added, which keeps the
    width."""
    return checked(lambda embedding, x: torch.cat((x, first(embedding, x.shape[1]).expand_as(x)), dim=-1))


@mistake.built
def x_scaled():
    """x is multiplied by the root of d_model first. That belongs to the token embedding of the paper, not here."""
    return checked(lambda embedding, x: x * x.shape[-1] ** 0.5 + first(embedding, x.shape[1]))


@mistake.built
def embedding_scaled():
    """The embeddings are multiplied by the root of d_model. They should be added as they are."""
    return checked(lambda embedding, x: x + first(embedding, x.shape[1]) * x.shape[-1] ** 0.5)


@mistake.built
def subtracted():
    """The embeddings are subtracted from x. They should be added."""
    return checked(lambda embedding, x: x - first(embedding, x.shape[1]))


@mistake.built
def normalised():
    """The sum goes through a layer norm. That may follow elsewhere; this module only adds."""
    return checked(lambda embedding, x: nn.functional.layer_norm(x + first(embedding, x.shape[1]), x.shape[-1:]))


@mistake.built
def positions_from_one():
    """The positions are counted from 1: row 0 of the table is never read, and the longest sequence runs past its
    end. Which is the first position?"""
    return checked(lambda embedding, x: x + embedding(torch.arange(1, x.shape[1] + 1)))


@mistake.built
def same_vector_everywhere():
    """Every position gets the same vector. Is the table read with the length as its index, instead of with all
    numbers below it?"""
    return checked(lambda embedding, x: x + embedding(torch.tensor(x.shape[1] - 1)))


@mistake.built
def length_as_index():
    """The table is read at the single index L, so every position gets the same vector. The positions are all the
    numbers below L."""
    return checked(lambda embedding, x: x + embedding(torch.tensor(x.shape[1])))


@mistake.built
def first_vector_everywhere():
    """Every position gets the vector of position 0. The indices have to run along the sequence."""
    return checked(lambda embedding, x: x + embedding.weight[0])


@mistake.built
def a_vector_a_sequence():
    """Each sequence of the batch gets a single vector for all its positions, because the indices run along the wrong
    axis of x."""
    return checked(lambda embedding, x: x + embedding(torch.arange(x.shape[0]))[:, None])


@mistake.built
def counts_the_batch():
    """The indices are counted along the batch: `x.shape[0]` and `len(x)` are B. Which axis is the sequence?"""
    return checked(lambda embedding, x: x + embedding(torch.arange(len(x))))


@mistake.built
def counts_the_features():
    """The indices are counted along the features: `x.shape[-1]` is d_model. Which axis is the sequence?"""
    return checked(lambda embedding, x: x + embedding(torch.arange(x.shape[-1])))


@mistake.built
def whole_table():
    """The whole table is added, whatever the length of x. A shorter x needs only the first L rows."""
    return checked(lambda embedding, x: x + embedding.weight)


@mistake.built
def last_rows():
    """The last L rows of the table are used. Position 0 has row 0."""
    return checked(lambda embedding, x: x + embedding.weight[embedding.num_embeddings - x.shape[1] :])


@mistake.built
def reversed():
    """The positions are in reverse order: the last one gets row 0."""
    return checked(lambda embedding, x: x + first(embedding, x.shape[1]).flip(0))


@mistake.built
def reads_the_table_with_x_as_integers():
    """The table is read with x, converted to integers. x holds features, not row numbers; the row numbers are the
    positions."""
    return checked(lambda embedding, x: x + embedding(x.long()))


@mistake.built
def indices_are_floats():
    """The table is read with floating-point numbers: positions in a floating dtype, or x itself. Row numbers are
    integers, and here they are the positions."""
    return checked(lambda embedding, x: x + embedding(torch.arange(x.shape[1], dtype=x.dtype)))


@mistake.built
def batch_axis_in_the_wrong_place():
    """The embeddings get their new axis after the positions, (L, 1, d_model), so positions are lined up with the batch.
    Where is the batch axis of x?"""
    return checked(lambda embedding, x: x + first(embedding, x.shape[1])[:, None])
