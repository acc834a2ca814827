"""Exercise `token_batches`: metadata, stub and cases."""

from typing import Any

from course_kit.exercises._draw import Draw
from course_kit.exercises._exercise import Case, Exercise
from course_kit.exercises._files import texts_next_to
from course_lib.training import token_batches

__all__ = ["area", "exercise", "in_order", "longest_first", "token_batches"]


def _indices_sorted(value: Any) -> list | None:
    """Batches without the order of batches, and of sentences in a batch; None unless it is a list of lists of ints."""
    if not isinstance(value, list | tuple) or not all(isinstance(batch, list | tuple) for batch in value):
        return None
    if not all(type(index) is int for batch in value for index in batch):
        return None
    return sorted(sorted(batch) for batch in value)


exercise = Exercise(
    **texts_next_to(__file__),
    difficulty=2,
    minutes=20,
    stub='''\
def token_batches(lengths, max_tokens):
    """Lists of indices; with its padding, each batch holds max_tokens at most."""
    raise NotImplementedError
''',
    reference=token_batches,
    returns=("batches",),
    read_next="batches_by_tokens: Sort by length and count tokens",
    differentiable=False,
    canonical_form=_indices_sorted,
)


def area(batch, lengths) -> int:
    return len(batch) * max(lengths[index] for index in batch) if batch else 0


def _padded_cells(batches, lengths) -> int:
    """Cells of all rectangles that hold no token, each index being in one batch."""
    return sum(area(batch, lengths) for batch in batches) - sum(lengths)


def _shown(value: list) -> str:
    text = repr([list(batch) for batch in value])
    return text if len(text) <= 160 else f"{text[:160]} …"


def _kind(value: Any) -> str:
    """What something is that should have been a list, or an index."""
    if value is None:
        return "None (is there a return?)"
    if isinstance(value, list | tuple):
        return f"a {type(value).__name__} of " + (" and ".join(sorted({_kind(item) for item in value})) or "nothing")
    if type(value) in (bool, float, str):
        return f"the {type(value).__name__} {value!r}"[:60]
    if type(value) is int:
        return "an int"
    return value.type if type(value).__name__ == "Foreign" else f"a {type(value).__name__}"


def _not_batches(args: tuple, value: Any) -> str:
    """What is wrong with the batches as such: type, indices, width. The value may be anything."""
    lengths, max_tokens = args
    if not isinstance(value, list | tuple) or not all(isinstance(batch, list | tuple) for batch in value):
        return f"expected a list of lists of indices, got {_kind(value)}"
    indices = [index for batch in value for index in batch]
    if strange := [index for index in indices if type(index) is not int]:
        return f"expected ints as indices, got {_kind(strange[0])}"
    if outside := [index for index in indices if not 0 <= index < len(lengths)]:
        return f"expected indices from 0 to {len(lengths) - 1}, got {str(outside[0])[:20]}: {_shown(value)}"
    for index in range(len(lengths)):
        if indices.count(index) != 1:
            times = {0: "in none"}.get(indices.count(index), f"{indices.count(index)} times")
            return f"expected each index in exactly one batch; index {index} stands {times}: {_shown(value)}"
    for batch in value:
        if area(batch, lengths) > max_tokens:
            longest = max(lengths[index] for index in batch)
            return (
                f"expected at most {max_tokens} tokens a batch, padding counted; {list(batch)} has {len(batch)} "
                f"sentences, the longest {longest}: {area(batch, lengths)}"
            )
    return ""


def _too_many(args: tuple, value: Any) -> str:
    greedy = token_batches(*args)
    if fault := _not_batches(args, value):
        return fault
    if len(value) > len(greedy):
        return f"expected at most {len(greedy)} batches, as the greedy way gives, got {len(value)}: {_shown(value)}"
    return ""


def _too_padded(args: tuple, value: Any) -> str:
    if fault := _too_many(args, value):
        return fault
    most, padding = _padded_cells(token_batches(*args), args[0]), _padded_cells(value, args[0])
    if padding > most:
        return f"expected at most {most} cells of padding, as the greedy way gives, got {padding}: {_shown(value)}"
    return ""


def in_order(lengths, max_tokens, order, fits=None):
    """Greedy batches in another order, or with another test whether a sentence joins an open batch."""
    fits = fits or (lambda batch, index: (len(batch) + 1) * max(lengths[i] for i in (*batch, index)) <= max_tokens)
    batches: list[list[int]] = []
    for index in order:
        if not batches or not fits(batches[-1], index):
            batches.append([])
        batches[-1].append(index)
    return batches


def longest_first(lengths):
    return sorted(range(len(lengths)), key=lambda i: -lengths[i])


def _lengths(draw: Draw, count: int, low: int, high: int) -> list[int]:
    """Lengths in which equal ones are rare, that two other orders batch worse than the rising one."""
    for _ in range(1000):
        lengths, room = draw.sizes(count, low, high), draw.integer(high + 1, 4 * high)
        greedy = token_batches(lengths, room)
        unsorted, falling = (in_order(lengths, room, o) for o in (range(count), longest_first(lengths)))
        if (
            len(unsorted) > len(greedy)
            and _padded_cells(falling, lengths) > _padded_cells(greedy, lengths)
            and len(greedy) > 2
        ):
            return lengths, room
    raise AssertionError("no such lengths were drawn")


@exercise.holds(
    "Every index is in exactly one batch, and no batch holds more than max_tokens, padding included",
    weight=2,
    fault=_not_batches,
)
def _(draw):
    yield Case(args=([5, 2, 4, 3], 8), note="four sentences")
    for count in (6, 9, 24):
        yield Case(args=_lengths(draw, count, 2, 2 * count), note=f"{count} sentences")


@exercise.holds("There are no more batches than with the greedy method", weight=2, fault=_too_many)
def _(draw):
    yield Case(args=([2, 6, 3, 5], 12), note="four sentences")
    for count in (7, 8, 30):
        yield Case(args=_lengths(draw, count, 2, 2 * count), note=f"{count} sentences")
    yield Case(args=([4, 3, 3, 4, 4], 12), note="two batches that are full to the last cell")


@exercise.holds("There is no more padding in total than with the greedy method", weight=2, fault=_too_padded)
def _(draw):
    for count in (6, 7, 8, 40):
        yield Case(args=_lengths(draw, count, 2, 2 * count), note=f"{count} sentences")


@exercise.holds("It works for equal lengths, one sentence, and a sentence of max_tokens tokens", fault=_too_padded)
def _(draw):
    yield Case(args=([4, 4, 4, 4, 4], 12), note="equal lengths")
    yield Case(args=([3, 9, 2, 9, 3], 9), note="sentences as long as max_tokens")
    yield Case(args=([7], 7), note="one sentence, as long as max_tokens")
    yield Case(args=([5, 3, 5, 3, 5, 3, 3], 10), note="two lengths")
    yield Case(args=([1, 2, 1, 1, 3], 3), note="more sentences than max_tokens")


@exercise.holds("A sentence longer than max_tokens is refused")
def _(draw):
    yield Case(args=([3, 9, 4], 8), raises=ValueError, note="a sentence of 9 tokens, max_tokens 8")
    for lengths, which in (([9, 3, 4], "the first"), ([3, 4, 9], "the last"), ([10, 9], "each")):
        yield Case(args=(lengths, 8), raises=ValueError, note=f"{which} sentence has more than 8 tokens")
    lengths, _ = _lengths(draw, 9, 2, 18)
    yield Case(args=(lengths, max(lengths) - 1), raises=ValueError, note="the longest is one token too long")
