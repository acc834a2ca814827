"""Mistakes in `token_batches`: the order of the sentences, and what is returned."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.training.token_batches import longest_first, token_batches
from course_lib.exercises.training.token_batches_mistakes.parts import checked, greedy, shortest_first

mistake = Mistakes()


@mistake
def only_equal_lengths(lengths, max_tokens):
    """Only sentences of equal length share a batch. There is then no padding, but there are many more batches than
    needed."""
    return greedy(
        lambda batch, length, longest, room, lengths: lengths[batch[0]] == length and (len(batch) + 1) * longest <= room
    )(lengths, max_tokens)


@mistake
def not_sorted(lengths, max_tokens):
    """The sentences are taken in the given order, so short ones are padded to the length of arbitrary neighbours. Which
    order brings sentences of similar length together?"""
    return greedy(order=lambda lengths: list(range(len(lengths))))(lengths, max_tokens)


@mistake
def falling_order(lengths, max_tokens):
    """Valid batches, but with more padding than the greedy method in *rising* order: starting from the long end, the
    incomplete batch is at the short end."""
    return greedy(order=longest_first)(lengths, max_tokens)


@mistake
def positions_in_the_sorted_list(lengths, max_tokens):
    """The indices count places in the *sorted* list. The caller's list has its own order, so these indices refer to
    other sentences."""
    return checked(lambda lengths, max_tokens: token_batches(sorted(lengths), max_tokens))(lengths, max_tokens)


@mistake
def lengths_returned(lengths, max_tokens):
    """The batches hold lengths. The caller needs to know *which* sentences they are: indices."""
    return checked(
        lambda lengths, max_tokens: [[lengths[i] for i in batch] for batch in token_batches(lengths, max_tokens)]
    )(lengths, max_tokens)


@mistake
def pairs_returned(lengths, max_tokens):
    """The batches hold pairs of index and length. The contract asks for indices alone."""
    return checked(
        lambda lengths, max_tokens: [[(i, lengths[i]) for i in batch] for batch in token_batches(lengths, max_tokens)]
    )(lengths, max_tokens)


@mistake
def first_of_equal_lengths(lengths, max_tokens):
    """The index is looked up by length, which always finds the first of several sentences of that length. Sort the
    indices, and no lookup is needed."""
    return checked(
        lambda lengths, max_tokens: [
            [lengths.index(lengths[i]) for i in batch] for batch in token_batches(lengths, max_tokens)
        ]
    )(lengths, max_tokens)


@mistake
def last_batch_lost(lengths, max_tokens):
    """The batch that is open at the end is lost: no further sentence closes it."""
    return checked(lambda lengths, max_tokens: token_batches(lengths, max_tokens)[:-1])(lengths, max_tokens)


@mistake
def only_the_last_batch(lengths, max_tokens):
    """Only the last batch is returned: there is a `return` where the batches should be collected."""
    return checked(lambda lengths, max_tokens: token_batches(lengths, max_tokens)[-1:])(lengths, max_tokens)


@mistake
def only_the_first_batch(lengths, max_tokens):
    """Only the first batch is returned: there is a `return` inside the loop."""
    return checked(lambda lengths, max_tokens: token_batches(lengths, max_tokens)[:1])(lengths, max_tokens)


@mistake
def one_batch_flat(lengths, max_tokens):
    """All indices are in one list. The contract asks for a list of batches, each a list of its own."""
    return checked(lambda lengths, max_tokens: shortest_first(lengths))(lengths, max_tokens)


@mistake
def one_sentence_a_batch(lengths, max_tokens):
    """Every sentence has a batch of its own. That respects the bound, but gains nothing from batching."""
    return checked(lambda lengths, max_tokens: [[i] for i in range(len(lengths))])(lengths, max_tokens)


@mistake
def everything_in_one_batch(lengths, max_tokens):
    """All sentences share one batch, whatever its size. What does it cost with its padding?"""
    return checked(lambda lengths, max_tokens: [shortest_first(lengths)])(lengths, max_tokens)


@mistake
def an_empty_batch_first(lengths, max_tokens):
    """There is an empty batch before the others: a batch is closed before the first sentence is in it."""
    return checked(lambda lengths, max_tokens: [[], *token_batches(lengths, max_tokens)])(lengths, max_tokens)
