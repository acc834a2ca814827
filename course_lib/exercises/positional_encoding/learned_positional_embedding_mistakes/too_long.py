"""Mistakes in `LearnedPositionalEmbedding`: sequences that are too long."""

from __future__ import annotations

import torch
from torch import nn

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.positional_encoding.learned_positional_embedding_mistakes.parts import first, module

mistake = Mistakes()


@mistake.built
def no_check():
    """A sequence that is too long causes an IndexError in the table. Check the length before reading the table, and
    raise a ValueError."""
    return module(lambda embedding, x: x + first(embedding, x.shape[1]))


@mistake.built
def no_check_slice():
    """A slice of the table silently ends where the table ends; only the addition fails, and not always. Check the
    length first, and raise a ValueError."""
    return module(lambda embedding, x: x + embedding.weight[: x.shape[1]])


@mistake.built
def cut():
    """A sequence that is too long is silently cut to max_length. The contract asks for a ValueError."""
    return module(
        lambda embedding, x: (
            x[:, : embedding.num_embeddings] + embedding.weight[: min(x.shape[1], len(embedding.weight))]
        )
    )


@mistake.built
def last_vector_repeated():
    """Positions past the end all get the last vector. The contract asks for a ValueError."""
    return module(
        lambda embedding, x: x + embedding(torch.arange(x.shape[1]).clamp(max=embedding.num_embeddings - 1)),
    )


@mistake.built
def starts_again():
    """Positions past the end start again from 0. The contract asks for a ValueError."""
    return module(lambda embedding, x: x + embedding(torch.arange(x.shape[1]) % embedding.num_embeddings))


@mistake.built
def nothing_past_the_end():
    """Positions past the end silently get no vector. The contract asks for a ValueError."""
    return module(
        lambda embedding, x: (
            x
            + nn.functional.pad(
                embedding.weight[: x.shape[1]], (0, 0, 0, max(0, x.shape[1] - embedding.num_embeddings))
            )
        )
    )


@mistake(by=module)
def refuses_the_full_length(embedding, x):
    """A sequence of exactly max_length is refused. There is a vector for each of its positions: with n rows, which
    is the last position?"""
    if x.shape[1] >= embedding.num_embeddings:
        raise ValueError("too long")
    return x + first(embedding, x.shape[1])


@mistake(by=module)
def one_too_long_goes_through(embedding, x):
    """One position more than there are vectors passes the check. Compare L itself with max_length."""
    if x.shape[1] > embedding.num_embeddings + 1:
        raise ValueError("too long")
    return x + first(embedding, x.shape[1])


@mistake(by=module)
def checks_the_batch(embedding, x):
    """The size of the batch is compared with max_length. The number of sequences does not matter; how long are they?"""
    if len(x) > embedding.num_embeddings:
        raise ValueError("too long")
    return x + first(embedding, x.shape[1])


@mistake(by=module)
def checks_the_features(embedding, x):
    """The number of features is compared with max_length, which is a number of positions. Which axis of x counts
    those?"""
    if x.shape[-1] > embedding.num_embeddings:
        raise ValueError("too long")
    return x + first(embedding, x.shape[1])


@mistake(by=module)
def checks_against_the_width(embedding, x):
    """The length is compared with d_model. How many positions have a vector?"""
    if x.shape[1] > embedding.embedding_dim:
        raise ValueError("too long")
    return x + first(embedding, x.shape[1])


@mistake(by=module)
def assert_instead(embedding, x):
    """An AssertionError is raised, but the contract asks for a ValueError. `assert` is for internal checks, and `python
    -O` removes it."""
    assert x.shape[1] <= embedding.num_embeddings
    return x + first(embedding, x.shape[1])


@mistake(by=module)
def error_returned(embedding, x):
    """The ValueError is returned, or created and discarded, instead of raised, so the call continues as if nothing were
    wrong."""
    if x.shape[1] > embedding.num_embeddings:
        return ValueError("too long")
    return x + first(embedding, x.shape[1])


@mistake(by=module)
def another_error(embedding, x):
    """A RuntimeError is raised, but the contract asks for a ValueError. The contract fixes the type, so that a caller
    can distinguish it from other errors."""
    if x.shape[1] > embedding.num_embeddings:
        raise RuntimeError("too long")
    return x + first(embedding, x.shape[1])


@mistake(by=module)
def index_error_raised(embedding, x):
    """An IndexError is raised, but the contract asks for a ValueError. The contract fixes the type, so that a caller
    can distinguish it from other errors."""
    if x.shape[1] > embedding.num_embeddings:
        raise IndexError
    return x + first(embedding, x.shape[1])


@mistake(by=module)
def plain_exception_raised(embedding, x):
    """A plain Exception is raised, but the contract asks for a ValueError. The contract fixes the type, so that a
    caller can distinguish it from other errors."""
    if x.shape[1] > embedding.num_embeddings:
        raise Exception
    return x + first(embedding, x.shape[1])


@mistake(by=module)
def returns_none_for_too_long(embedding, x):
    """A sequence that is too long gives None. A printed message does not stop the program: raise a ValueError."""
    if x.shape[1] > embedding.num_embeddings:
        return None
    return x + first(embedding, x.shape[1])
