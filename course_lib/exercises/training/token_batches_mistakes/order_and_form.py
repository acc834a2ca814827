"""Mistakes in `token_batches`: the order of the sentences, and what comes back."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.training.token_batches import longest_first, token_batches
from course_lib.exercises.training.token_batches_mistakes.parts import checked, greedy, shortest_first

mistake = Mistakes()


@mistake
def only_equal_lengths(lengths, max_tokens):
    """Only sentences of equal length share a batch. There is not padding then, but there are many more batches than
    needed."""
    return greedy(
        lambda batch, length, longest, room, lengths: lengths[batch[0]] == length and (len(batch) + 1) * longest <= room
    )(lengths, max_tokens)


@mistake
def not_sorted(lengths, max_tokens):
    """The sentences are taken in the order in which they come, so short ones are padded to chance neighbours. Which
    order brings sentences of similar length together?"""
    return greedy(order=lambda lengths: list(range(len(lengths))))(lengths, max_tokens)


@mistake
def falling_order(lengths, max_tokens):
    """Valid batches, but with more padding than the greedy way in *rising* order: from the long end, what does not
    fit any more is left over at the short end."""
    return greedy(order=longest_first)(lengths, max_tokens)


@mistake
def positions_in_the_sorted_list(lengths, max_tokens):
    """The indices count places in the *sorted* list. The caller has the list in its own order and would get other
    sentences."""
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
    """The index is looked up by length, and of several sentences of one length that always finds the first. Sort
    indices, and no lookup is needed."""
    return checked(
        lambda lengths, max_tokens: [
            [lengths.index(lengths[i]) for i in batch] for batch in token_batches(lengths, max_tokens)
        ]
    )(lengths, max_tokens)


@mistake
def last_batch_lost(lengths, max_tokens):
    """The batch that is open at the end is lost: nothing follows that would close it."""
    return checked(lambda lengths, max_tokens: token_batches(lengths, max_tokens)[:-1])(lengths, max_tokens)


@mistake
def only_the_last_batch(lengths, max_tokens):
    """Only the last batch comes back: a `return` stands where the batches should be collected."""
    return checked(lambda lengths, max_tokens: token_batches(lengths, max_tokens)[-1:])(lengths, max_tokens)


@mistake
def only_the_first_batch(lengths, max_tokens):
    """Only the first batch comes back: a `return` stands inside the loop."""
    return checked(lambda lengths, max_tokens: token_batches(lengths, max_tokens)[:1])(lengths, max_tokens)


@mistake
def one_batch_flat(lengths, max_tokens):
    """All indices stand in one list. A list of batches is asked for, each a list of its own."""
    return checked(lambda lengths, max_tokens: shortest_first(lengths))(lengths, max_tokens)


@mistake
def one_sentence_a_batch(lengths, max_tokens):
    """Every sentence has a batch of its own. That holds the bound, and wastes what a batch is for."""
    return checked(lambda lengths, max_tokens: [[i] for i in range(len(lengths))])(lengths, max_tokens)


@mistake
def everything_in_one_batch(lengths, max_tokens):
    """All sentences share one batch, whatever its size. What does it cost with its padding?"""
    return checked(lambda lengths, max_tokens: [shortest_first(lengths)])(lengths, max_tokens)


@mistake
def an_empty_batch_first(lengths, max_tokens):
    """An empty batch stands before the others: the list is opened twice before the first sentence is in."""
    return checked(lambda lengths, max_tokens: [[], *token_batches(lengths, max_tokens)])(lengths, max_tokens)
