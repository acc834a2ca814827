"""What a definition needs: the statements to run for it, in an order in which they work."""

from __future__ import annotations

import builtins
from bisect import bisect_left
from collections.abc import Callable

from course_grade.submission.statements import Piece, Source

__all__ = ["needed"]

MOST_PIECES = 5000  # statements that one definition may need
LARGEST_SLICE = 2**17  # characters of code that one definition may need; the grader parses them once more
TOO_MANY = f"it needs more than {MOST_PIECES} statements"


def needed(source: Source, name: str) -> list[Piece]:
    """The statements that a definition needs, itself included, in an order in which they run.

    Raises:
        ValueError: it needs more of them than anybody writes.
    """
    if source.slices is not None:
        return source.slices.get(name, [])
    wanted = source.definition(name)
    if wanted is None:
        return []
    slicer = _Slicer(source)
    slicer.add(wanted)
    order = slicer.in_order()
    known = {n for p in order for n in p.binds} | set(dir(builtins))
    open_names = {n for p in order for n in p.now | p.later} - known
    first = [p for p in source.pieces if p.imported and "__future__" in p.code]
    first += [p for p in source.pieces if p.star] if open_names else []
    pieces = list({id(piece): piece for piece in [*first, *order]}.values())
    if len(pieces) > MOST_PIECES:
        raise ValueError(TOO_MANY)
    if sum(len(piece.code) for piece in pieces) > LARGEST_SLICE:
        raise ValueError(f"it needs more than {LARGEST_SLICE // 2**10} KB of code")
    return pieces


class _Slicer:
    """Collects statements: what one needs to run comes before it, what its functions call comes anywhere."""

    def __init__(self, source: Source):
        self.done: dict[int, None] = {}  # places of statements
        self.wanted = -1
        self.pieces = source.pieces
        self.later: dict[int, list[int]] = {}
        self.binders: dict[str, list[int]] = {}
        self.changers: dict[str, list[int]] = {}
        for place, piece in enumerate(source.pieces):
            for name in piece.binds:
                self.binders.setdefault(name, []).append(place)
            for name in piece.changes:
                self.changers.setdefault(name, []).append(place)

    def add(self, wanted: Piece) -> None:
        self.wanted = next(place for place, piece in enumerate(self.pieces) if piece is wanted)
        waiting = [self.wanted]
        while waiting:
            for place in _with_what_runs_before(waiting.pop(), self._needed_at_once, self.done):
                piece = self.pieces[place]
                waiting += [p for n in sorted(piece.later) if (p := self._binder(n)) is not None and p not in self.done]
                # Changes made before the definition that counts were made to another one.
                # What is imported is not changed for the definition's sake: `plt.show()`, `torch.manual_seed(0)`.
                own = () if piece.imported else sorted(piece.binds)
                changes = [p for n in own for p in self.changers.get(n, ()) if p > place]
                waiting += [p for p in changes if p not in self.done]
            if len(self.done) > MOST_PIECES:
                raise ValueError(TOO_MANY)

    def _needed_at_once(self, place: int) -> list[int]:
        found = (self._binder_for(name, place) for name in sorted(self.pieces[place].now))
        return [other for other in found if other is not None]

    def in_order(self) -> list[Piece]:
        """The collected statements, in the order of the file, except that each comes after the ones it needs when it
        runs."""
        emitted: dict[int, None] = {}
        for root in sorted(self.done):
            _with_what_runs_before(root, self._needs, emitted)
        return [self.pieces[place] for place in emitted]

    def _needs(self, place: int) -> list[int]:
        """What has to run before a statement: what it names, and all that functions among that use when called."""
        found: set[int] = set()
        waiting = self._needed_at_once(place)
        while waiting:
            other = waiting.pop()
            if other not in found and other != place:
                found.add(other)
                waiting += self._later(other)
        return sorted(p for p in found if p in self.done)

    def _later(self, place: int) -> list[int]:
        """The statements that define what the functions of a statement use when they are called."""
        if place not in self.later:
            found = (self._binder(name) for name in sorted(self.pieces[place].later))
            self.later[place] = [other for other in found if other is not None]
        return self.later[place]

    def _binder_for(self, name: str, place: int) -> int | None:
        """The statement that defines a name for one that needs it when it runs: the last one, usually.

        `f = fast(f)` needs the f before it. So does `old = f` where a later f, which is the definition that counts,
        is built on `old`.
        """
        piece = self.pieces[place]
        if name in piece.binds | piece.changes:
            return self._binder(name, place)
        last = self._binder(name)
        if last is not None and last == self.wanted > place:
            earlier = self._binder(name, place)
            return last if earlier is None else earlier
        return last

    def _binder(self, name: str, before: int | None = None) -> int | None:
        places = self.binders.get(name, ())
        end = len(places) if before is None else bisect_left(places, before)
        own = next((places[at] for at in range(end - 1, -1, -1) if not self.pieces[places[at]].own), None)
        return own if own is not None else (places[end - 1] if end else None)


def _with_what_runs_before(root: int, needs: Callable[[int], list[int]], done: dict[int, None]) -> list[int]:
    """Adds a statement to those that are done, after the ones that it needs; the places that were added."""
    new: list[int] = []
    stack, entered = [(root, False)], set()
    while stack:
        place, ready = stack.pop()
        if place in done:
            continue
        if ready:
            done[place] = None
            new.append(place)
        elif place not in entered:
            entered.add(place)
            stack.append((place, True))
            stack += [(other, False) for other in reversed(needs(place)) if other not in done]
    return new
