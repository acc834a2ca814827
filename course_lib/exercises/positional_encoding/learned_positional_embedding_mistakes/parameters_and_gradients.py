"""Mistakes in `LearnedPositionalEmbedding`: parameters, gradients and changes in place."""

from __future__ import annotations

import torch
from torch import nn

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.positional_encoding.learned_positional_embedding import LearnedPositionalEmbedding
from course_lib.exercises.positional_encoding.learned_positional_embedding_mistakes.parts import checked, first

mistake = Mistakes()


@mistake
class TableTurnedRound(LearnedPositionalEmbedding):
    """The table has d_model rows and max_length columns. `nn.Embedding` takes the number of rows first: how many
    positions, then how wide."""

    def __init__(self, max_length, d_model):
        super().__init__(d_model, max_length)


@mistake
class BareParameter(nn.Module):
    """The table is an `nn.Parameter`. It has to be an `nn.Embedding`, so that its weights have the expected name when
    they are loaded."""

    def __init__(self, max_length, d_model):
        super().__init__()
        self.embedding = nn.Parameter(torch.zeros(max_length, d_model))

    def forward(self, x):
        return x + self.embedding[: x.shape[1]]


@mistake
class NoParameters(nn.Module):
    """There is a table, but it is not registered: a plain tensor, or a layer in a local variable. It would never be
    trained, and no weights can be loaded into it."""

    def __init__(self, max_length, d_model):
        super().__init__()
        self.table = torch.zeros(max_length, d_model)

    def forward(self, x):
        return x + self.table[: x.shape[1]]


@mistake
class OneRowMore(LearnedPositionalEmbedding):
    """The table has one row more than there are positions. Positions 0 to max_length − 1 need max_length rows."""

    def __init__(self, max_length, d_model):
        super().__init__(max_length + 1, d_model)


@mistake
class SuperInitMissing(LearnedPositionalEmbedding):
    """`super().__init__()` is missing, so `nn.Module` cannot register the embedding."""

    def __init__(self, max_length, d_model):
        self.embedding = nn.Embedding(max_length, d_model)


@mistake
class Dropout(LearnedPositionalEmbedding):
    """There is a dropout, which the contract does not ask for, so train and eval mode differ."""

    def forward(self, x):
        return nn.functional.dropout(super().forward(x), 0.1, self.training)


@mistake
class PaddingIndex(LearnedPositionalEmbedding):
    """The values are right, but row 0 of the table never learns: `padding_idx` freezes it. Position 0 is not
    padding."""

    def __init__(self, max_length, d_model):
        super().__init__(max_length, d_model)
        self.embedding = nn.Embedding(max_length, d_model, padding_idx=0)


@mistake.built
def table_detached():
    """The values are right, but no gradient reaches the table, so the positions are never learned. Either its
    weights are frozen (`requires_grad_(False)`), or they are detached by `.data`, `.detach()` or `no_grad`."""
    return checked(lambda embedding, x: x + embedding.weight.detach()[: x.shape[1]])


@mistake.built
def x_detached():
    """The values are right, but no gradient reaches x, so nothing before this module can learn."""
    return checked(lambda embedding, x: x.detach() + first(embedding, x.shape[1]))


@mistake.built
def all_detached():
    """The values are right, but no gradient flows at all: the sum is computed without a graph, or detached from it."""
    return checked(lambda embedding, x: (x + first(embedding, x.shape[1])).detach())


@mistake(by=checked)
def in_place(embedding, x):
    """`+=` and `add_` change x itself, which belongs to the caller. Make a new tensor."""
    x += first(embedding, x.shape[1])
    return x


@mistake.built
def float32_result():
    """The result is float32 whatever x is. Where does a dtype get lost, or set by hand?"""
    return checked(lambda embedding, x: x.float() + first(embedding, x.shape[1]).float())
