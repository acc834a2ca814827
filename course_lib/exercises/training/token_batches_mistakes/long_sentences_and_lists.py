"""Mistakes in `token_batches`: how batches are closed, and sentences that do not fit into any."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.training.token_batches import in_order, token_batches
from course_lib.exercises.training.token_batches_mistakes.parts import checked, shortest_first

mistake = Mistakes()


def _in_chunks(order):
    def batches(lengths, max_tokens):
        size = max_tokens // max(lengths)
        indices = order(lengths)
        return [indices[i : i + size] for i in range(0, len(indices), size)]

    return checked(batches)


@mistake
def equal_batch_sizes(lengths, max_tokens):
    """All batches have as many sentences as fit when they are the longest. Batches of short sentences could take
    more."""
    return _in_chunks(shortest_first)(lengths, max_tokens)


@mistake
def equal_batch_sizes_not_sorted(lengths, max_tokens):
    """All batches have the same number of sentences, in the given order. Put similar lengths together,
    and let batches of short sentences take more."""
    return _in_chunks(lambda lengths: list(range(len(lengths))))(lengths, max_tokens)


def _losing(lengths, max_tokens):
    batches, batch = [], []
    for index in shortest_first(lengths):
        if (len(batch) + 1) * lengths[index] <= max_tokens:
            batch.append(index)
        else:
            batches.append(batch)
            batch = []
    return [*batches, batch]


@mistake
def newcomer_lost(lengths, max_tokens):
    """The sentence that no longer fits closes the batch, but is not put into any batch itself."""
    return checked(_losing)(lengths, max_tokens)


def _cleared(lengths, max_tokens):
    batches = token_batches(lengths, max_tokens)
    return [batches[-1] for _ in batches]


def _cleared_to_empty(lengths, max_tokens):
    return [[] for _ in token_batches(lengths, max_tokens)]


@mistake
def one_list_cleared(lengths, max_tokens):
    """All batches are the same list object: `clear` empties all of them, and the last batch appears everywhere. Create
    a new list for each batch."""
    return checked(_cleared)(lengths, max_tokens)


@mistake
def one_list_cleared_at_the_end(lengths, max_tokens):
    """All batches are the same list object, which is empty at the end. Create a new list for each batch."""
    return checked(_cleared_to_empty)(lengths, max_tokens)


@mistake
def first_fit(lengths, max_tokens):
    """Each sentence goes into the first batch with room, in the given order. That does not put sentences of similar
    length together."""
    return checked(lambda lengths, max_tokens: _first_fit(lengths, max_tokens, range(len(lengths))))(
        lengths, max_tokens
    )


def _first_fit(lengths, max_tokens, order):
    batches: list[list[int]] = []
    for index in order:
        for batch in batches:
            if (len(batch) + 1) * max(lengths[i] for i in (*batch, index)) <= max_tokens:
                batch.append(index)
                break
        else:
            batches.append([index])
    return batches


@mistake
def long_sentences_let_in(lengths, max_tokens):
    """A sentence longer than max_tokens gets a batch of its own, which exceeds the bound. The contract asks for a
    `ValueError`."""
    return in_order(lengths, max_tokens, shortest_first(lengths))


@mistake
def long_sentences_dropped(lengths, max_tokens):
    """Sentences longer than max_tokens are silently dropped. The contract asks for a `ValueError`, so that the caller
    can decide."""
    return in_order(lengths, max_tokens, [i for i in shortest_first(lengths) if lengths[i] <= max_tokens])


@mistake
def as_long_as_max_tokens_refused(lengths, max_tokens):
    """A sentence of exactly max_tokens tokens is rejected. It fits into a batch by itself."""
    return _strict(lengths, max_tokens)


def _strict(lengths, max_tokens):
    if max(lengths) >= max_tokens:
        raise ValueError("a sentence is too long")
    return token_batches(lengths, max_tokens)


@mistake
def another_error(lengths, max_tokens):
    """A long sentence is detected, but with a different error from the one in the contract: an `assert` raises an
    `AssertionError`."""
    return _asserting(lengths, max_tokens)


def _asserting(lengths, max_tokens):
    assert max(lengths) <= max_tokens
    return token_batches(lengths, max_tokens)


@mistake
def lengths_sorted_in_place(lengths, max_tokens):
    """`lengths.sort()` changes the caller's list, so the indices no longer refer to the caller's sentences."""
    lengths.sort()
    return token_batches(lengths, max_tokens)
