"""Mistakes in `token_batches`: the loop over the sentences, and two common mistakes at once."""

from __future__ import annotations

from collections.abc import Callable

from course_lib.exercises._mistakes import Mistakes

mistake = Mistakes()


def _rising(lengths):
    return sorted(range(len(lengths)), key=lambda i: lengths[i])


def _falling(lengths):
    return sorted(range(len(lengths)), key=lambda i: -lengths[i])


def _as_given(lengths):
    return list(range(len(lengths)))


def _rectangle(batch, index, lengths, room):
    return (len(batch) + 1) * max(lengths[i] for i in (*batch, index)) <= room


def _batches(
    *,
    fits=_rectangle,
    order=_rising,
    refused=lambda lengths, room: max(lengths) > room,
    error=ValueError,
    end=lambda batches: batches,
    form=lambda batches, lengths: batches,
):
    """Greedy batches with parts replaced; unchanged, it is right.

    Args:
        fits: whether a sentence joins the open batch.
        order: the order in which the sentences are processed.
        refused: whether the lengths are rejected.
        error: raised if they are.
        end: what happens to the batches at the end.
        form: the form of the result.
    """

    def solution(lengths, max_tokens):
        if refused(lengths, max_tokens):
            raise error("a sentence is too long")
        batches: list[list[int]] = []
        for index in order(lengths):
            if not batches or (batches[-1] and not fits(batches[-1], index, lengths, max_tokens)):
                batches.append([])
            batches[-1].append(index)
        return form(end(batches), lengths)

    return solution


def _returned(value):
    def solution(lengths, max_tokens):
        return value if max(lengths) > max_tokens else _batches()(lengths, max_tokens)

    return solution


def _appended_at_every_step(lengths, max_tokens):
    if max(lengths) > max_tokens:
        raise ValueError("a sentence is too long")
    batches, batch = [], []
    for index in _rising(lengths):
        if batch and not _rectangle(batch, index, lengths, max_tokens):
            batches.append(batch)
            batch = []
        batch.append(index)
        batches.append(batch)
    return batches


def _closed_after(full):
    """The new sentence joins, and then the batch is closed if it is full."""

    def solution(lengths, max_tokens):
        if max(lengths) > max_tokens:
            raise ValueError("a sentence is too long")
        batches, batch = [], []
        for index in _rising(lengths):
            batch.append(index)
            if full(len(batch) * lengths[index], max_tokens):
                batches.append(batch)
                batch = []
        return [*batches, batch] if batch else batches

    return solution


def _newcomer_twice(lengths, max_tokens):
    if max(lengths) > max_tokens:
        raise ValueError("a sentence is too long")
    batches, batch = [], []
    for index in _rising(lengths):
        if batch and not _rectangle(batch, index, lengths, max_tokens):
            batches.append([*batch, index])
            batch = []
        batch.append(index)
    return [*batches, batch]


def _after_the_first_sentence(lengths, max_tokens):
    if max(lengths) > max_tokens:
        raise ValueError("a sentence is too long")
    return []


def _width_forgotten(lengths, max_tokens):
    """In the given order; the longest length of a new batch starts at 0 and misses the new sentence."""
    if max(lengths) > max_tokens:
        raise ValueError("a sentence is too long")
    batches, batch, longest = [], [], 0
    for index in range(len(lengths)):
        longest = max(longest, lengths[index])
        if batch and (len(batch) + 1) * longest > max_tokens:
            batches.append(batch)
            batch, longest = [], 0
        batch.append(index)
    return [*batches, batch]


def _width_kept(lengths, max_tokens):
    """In the given order; the longest length is that of all batches so far."""
    if max(lengths) > max_tokens:
        raise ValueError("a sentence is too long")
    batches, batch, longest = [], [], 0
    for index in range(len(lengths)):
        longest = max(longest, lengths[index])
        if batch and (len(batch) + 1) * longest > max_tokens:
            batches.append(batch)
            batch = []
        batch.append(index)
    return [*batches, batch]


def _chunks(size: Callable[[list[int], int], int]):
    def solution(lengths, max_tokens):
        if max(lengths) > max_tokens:
            raise ValueError("a sentence is too long")
        order, step = _rising(lengths), size(lengths, max_tokens)
        return [order[i : i + step] for i in range(0, len(order), step)]

    return solution


def _nested(batches, lengths):
    return [i for batch in batches[:-1] for i in batch] + batches[-1:]


def _sum(batch, index, lengths, room):
    return sum(lengths[i] for i in batch) + lengths[index] <= room


def _no_error(lengths, room):
    return False


_PARTS_OF_THE_LOOP: dict[str, tuple[str, dict]] = {
    "padding_not_counted": ("lengths are added up, without padding", {"fits": _sum}),
    "bound_never_reached": (
        "a batch is never full to the last cell",
        {"fits": lambda batch, index, lengths, room: _rectangle(batch, index, lengths, room - 1)},
    ),
    "newcomer_not_counted": (
        "the row of the new sentence is not counted",
        {"fits": lambda batch, index, lengths, room: len(batch) * max(lengths[i] for i in (*batch, index)) <= room},
    ),
    "not_sorted": ("the sentences are not sorted by length", {"order": _as_given}),
    "falling_order": ("the longest sentences come first", {"order": _falling}),
    "last_batch_lost": ("the last batch is lost", {"end": lambda batches: batches[:-1]}),
    "long_sentences_let_in": ("sentences that are too long are let in", {"refused": _no_error}),
    "lengths_returned": (
        "lengths are returned instead of indices",
        {"form": lambda batches, lengths: [[lengths[i] for i in batch] for batch in batches]},
    ),
    "positions_in_the_sorted_list": (
        "the indices count places in the sorted list",
        {"form": lambda batches, lengths: _places(batches, lengths)},
    ),
}


def _places(batches, lengths):
    place = {index: place for place, index in enumerate(_rising(lengths))}
    return [[place[i] for i in batch] for batch in batches]


@mistake
def sum_without_the_newcomer(lengths, max_tokens):
    """The lengths in the batch are added up, without the new one. A batch is a rectangle, and the new sentence is one
    of its rows."""
    return _batches(fits=lambda batch, index, lengths, room: sum(lengths[i] for i in batch) <= room)(
        lengths, max_tokens
    )


@mistake
def bound_passed_by_one(lengths, max_tokens):
    """A batch may hold one token more than max_tokens here. The bound is max_tokens itself."""
    return _batches(fits=lambda batch, index, lengths, room: (len(batch) + 1) * lengths[index] <= room + 1)(
        lengths, max_tokens
    )


@mistake
def newcomer_is_the_width_in_falling_order(lengths, max_tokens):
    """In falling order, the rectangle is measured with the new sentence, which is the *shortest* of its batch."""
    return _batches(order=_falling, fits=lambda batch, index, lengths, room: (len(batch) + 1) * lengths[index] <= room)(
        lengths, max_tokens
    )


@mistake
def newcomer_is_the_width(lengths, max_tokens):
    """In the given order, the rectangle is measured with the new sentence, which need not be the longest of its
    batch."""
    return _batches(
        order=_as_given, fits=lambda batch, index, lengths, room: (len(batch) + 1) * lengths[index] <= room
    )(lengths, max_tokens)


@mistake
def width_forgotten_in_a_new_batch(lengths, max_tokens):
    """The sentences are not sorted, and a new batch begins with width 0, though its first sentence is in it."""
    return _width_forgotten(lengths, max_tokens)


@mistake
def width_kept_in_a_new_batch(lengths, max_tokens):
    """The sentences are not sorted, and the width of the last batch is carried on into the next one."""
    return _width_kept(lengths, max_tokens)


@mistake
def sorted_as_text(lengths, max_tokens):
    """The lengths are sorted as text, where 10 comes before 9."""
    return _batches(order=lambda lengths: sorted(range(len(lengths)), key=lambda i: str(lengths[i])))(
        lengths, max_tokens
    )


@mistake
def closed_when_over_the_bound(lengths, max_tokens):
    """A batch is closed only after it has exceeded the bound, and contains the sentence that did not fit. Test before
    adding the sentence."""
    return _closed_after(lambda area, room: area > room)(lengths, max_tokens)


@mistake
def appended_at_every_step(lengths, max_tokens):
    """The open batch is put into the result at every sentence, so it appears many times: the last line is indented into
    the loop."""
    return _appended_at_every_step(lengths, max_tokens)


@mistake
def newcomer_in_both(lengths, max_tokens):
    """The sentence that no longer fits is put into the old batch *and* into the new one."""
    return _newcomer_twice(lengths, max_tokens)


@mistake
def nothing_after_one_sentence(lengths, max_tokens):
    """An empty list is returned: there is a `return` inside the loop, or no batch is ever closed."""
    return _after_the_first_sentence(lengths, max_tokens)


@mistake
def counted_from_one(lengths, max_tokens):
    """The indices count from 1. The first sentence has index 0."""
    return _batches(form=lambda batches, lengths: [[i + 1 for i in batch] for batch in batches])(lengths, max_tokens)


@mistake
def extended(lengths, max_tokens):
    """The indices of a closed batch are added to the result one by one: `extend` adds the items, `append` the
    list."""
    return _batches(form=_nested)(lengths, max_tokens)


@mistake
def as_a_dictionary(lengths, max_tokens):
    """A dictionary is returned. The contract asks for a list of lists."""
    return _batches(form=lambda batches, lengths: dict(enumerate(batches)))(lengths, max_tokens)


@mistake
def as_a_generator(lengths, max_tokens):
    """A generator is returned: nothing has been batched yet. The contract asks for a list."""
    return _batches(form=lambda batches, lengths: (batch for batch in batches))(lengths, max_tokens)


@mistake
def batches_as_sets(lengths, max_tokens):
    """The batches are sets. The contract asks for lists."""
    return _batches(form=lambda batches, lengths: [set(batch) for batch in batches])(lengths, max_tokens)


@mistake
def with_the_longest(lengths, max_tokens):
    """Each batch is returned with a number. The contract asks only for the list of indices."""
    return _batches(form=lambda batches, lengths: [(batch, max(lengths[i] for i in batch)) for batch in batches])(
        lengths, max_tokens
    )


@mistake
def indices_as_text(lengths, max_tokens):
    """The indices are strings. They should be ints."""
    return _batches(form=lambda batches, lengths: [[str(i) for i in batch] for batch in batches])(lengths, max_tokens)


@mistake
def size_by_the_mean(lengths, max_tokens):
    """All batches have as many sentences as fit if they are of mean length. The long ones do not fit then."""
    return _chunks(lambda lengths, room: max(1, room // (sum(lengths) // len(lengths))))(lengths, max_tokens)


@mistake
def size_by_the_shortest(lengths, max_tokens):
    """All batches have as many sentences as fit if they are the shortest. Longer ones do not fit then."""
    return _chunks(lambda lengths, room: room // min(lengths))(lengths, max_tokens)


@mistake
def refused_by_their_sum(lengths, max_tokens):
    """An error is raised where all sentences together do not fit into one batch. Only each single sentence has to
    fit."""
    return _batches(refused=lambda lengths, room: sum(lengths) > room)(lengths, max_tokens)


@mistake
def only_the_first_looked_at(lengths, max_tokens):
    """Only the first sentence is tested. Any of them may be too long."""
    return _batches(refused=lambda lengths, room: lengths[0] > room)(lengths, max_tokens)


@mistake
def only_the_last_looked_at(lengths, max_tokens):
    """Only the last sentence is tested. Any of them may be too long."""
    return _batches(refused=lambda lengths, room: lengths[-1] > room)(lengths, max_tokens)


@mistake
def refused_where_all_are_too_long(lengths, max_tokens):
    """An error is raised only where *all* sentences are too long. One is enough."""
    return _batches(refused=lambda lengths, room: min(lengths) > room)(lengths, max_tokens)


@mistake
def empty_list_for_long_sentences(lengths, max_tokens):
    """For a sentence that is too long, an empty list is returned. The contract asks for a `ValueError`."""
    return _returned([])(lengths, max_tokens)


@mistake
def nothing_for_long_sentences(lengths, max_tokens):
    """For a sentence that is too long, None is returned (a printed message does not reach the calling program). The
    contract asks for a `ValueError`."""
    return _returned(None)(lengths, max_tokens)


@mistake
def error_returned(lengths, max_tokens):
    """The error is returned, and not raised."""
    return ValueError("too long") if max(lengths) > max_tokens else _batches()(lengths, max_tokens)


for error in (RuntimeError, IndexError, TypeError, Exception):
    says = f"A long sentence is detected, but with a {error.__name__}. The contract asks for a `ValueError`."
    mistake.named(f"another_error_{error.__name__}", says)(_batches(error=error))


mistake.two_at_once(_PARTS_OF_THE_LOOP, _batches)
