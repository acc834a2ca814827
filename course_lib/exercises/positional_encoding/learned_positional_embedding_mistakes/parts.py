"""The building blocks of the mistakes in `LearnedPositionalEmbedding`."""

from __future__ import annotations

import torch

from course_lib.exercises.positional_encoding.learned_positional_embedding import LearnedPositionalEmbedding

__all__ = ["checked", "first", "module"]


def module(add):
    """The module with `add(embedding, x)` instead of the whole forward pass."""

    class Variant(LearnedPositionalEmbedding):
        def forward(self, x):
            return add(self.embedding, x)

    return Variant


def checked(add):
    """The same, after the check of the length."""

    def forward(embedding, x):
        if x.shape[1] > embedding.num_embeddings:
            raise ValueError("too long")
        return add(embedding, x)

    return module(forward)


def first(embedding, length):
    return embedding(torch.arange(length))
