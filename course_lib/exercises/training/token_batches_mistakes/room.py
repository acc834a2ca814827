"""Mistakes in `token_batches`: what counts against the bound."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.training.token_batches import area
from course_lib.exercises.training.token_batches_mistakes.parts import greedy

mistake = Mistakes()


@mistake
def padding_not_counted(lengths, max_tokens):
    """The lengths of a batch are added up. The batch is a rectangle: every sentence takes as much room as the longest
    one."""
    return greedy(lambda batch, length, longest, room, lengths: sum(lengths[i] for i in batch) + length <= room)(
        lengths, max_tokens
    )


@mistake
def sentences_counted(lengths, max_tokens):
    """The number of sentences is compared with max_tokens. The bound is on sentences times the longest length."""
    return greedy(lambda batch, length, longest, room, lengths: len(batch) + 1 <= room)(lengths, max_tokens)


@mistake
def overflows_by_one(lengths, max_tokens):
    """A batch is closed only after it has exceeded the bound, and contains the sentence that did not fit."""
    return greedy(lambda batch, length, longest, room, lengths: area(batch, lengths) < room)(lengths, max_tokens)


@mistake
def newcomer_not_counted(lengths, max_tokens):
    """The rectangle is measured with the length of the new sentence, but without its row, so a batch gets one sentence
    too many."""
    return greedy(lambda batch, length, longest, room, lengths: len(batch) * longest <= room)(lengths, max_tokens)


@mistake
def old_longest(lengths, max_tokens):
    """The rectangle is measured with the longest sentence *before* the new one. In rising order, which is the longest
    afterwards?"""
    return greedy(
        lambda batch, length, longest, room, lengths: (len(batch) + 1) * max(lengths[i] for i in batch) <= room
    )(lengths, max_tokens)


@mistake
def area_plus_length(lengths, max_tokens):
    """The new sentence is added to the rectangle with its own length. It also widens the rectangle for all sentences
    already in it."""
    return greedy(lambda batch, length, longest, room, lengths: area(batch, lengths) + length <= room)(
        lengths, max_tokens
    )


@mistake
def bound_never_reached(lengths, max_tokens):
    """A batch that would be exactly full is rejected: the bound is *at most* max_tokens."""
    return greedy(lambda batch, length, longest, room, lengths: (len(batch) + 1) * longest < room)(lengths, max_tokens)


@mistake
def one_row_too_careful(lengths, max_tokens):
    """One row too many is reserved: the new sentence is counted twice."""
    return greedy(lambda batch, length, longest, room, lengths: (len(batch) + 2) * longest <= room)(lengths, max_tokens)


@mistake
def shortest_counted(lengths, max_tokens):
    """The width of the rectangle is taken from its shortest sentence. All are padded to the longest."""
    return greedy(lambda batch, length, longest, room, lengths: (len(batch) + 1) * lengths[batch[0]] <= room)(
        lengths, max_tokens
    )
