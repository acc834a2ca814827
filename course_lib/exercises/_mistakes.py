"""The usual mistakes of an exercise, as they are written: one wrong variant per function, its docstring the message."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterator

from course_lib.exercises._exercise import Exercise, Misconception

__all__ = ["Mistakes"]


class Mistakes:
    """The mistakes of one file, in the order in which they are written.

        mistake = Mistakes()


        @mistake(look="notation: Conventions")
        def upper_triangle(length):
            \"""Every query sees the future, and not the past.\"""
            return square(length).triu()

    The name of a function is the mistake's key, of a class the same in lower case with underscores (`ParamsSwapped` is
    `params_swapped`). The docstring is what a learner is told, in one line.

    Args:
        parts: modules that hold the mistakes of one theme each, as `mistake`.
    """

    def __init__(self, *parts) -> None:
        self._found: list[Misconception] = [found for part in parts for found in part.mistake]

    def __iter__(self) -> Iterator[Misconception]:
        return iter(self._found)

    def __call__(
        self,
        solution: Callable | None = None,
        *,
        look: str = "",
        key: str = "",
        by: Callable[[Callable], Callable] | None = None,
    ) -> Callable:
        """Decorator of a wrong function or class.

        Args:
            solution: it, where the decorator stands without arguments.
            look: what to look at next, as "page: heading", if other than the exercise's own.
            key: where the name cannot be the key, because it means something else in the file.
            by: what makes the solution from the function: a class from one of its methods, for instance.

        Raises:
            ValueError: there is no docstring, or the key is taken.
        """

        def add(written: Callable) -> Callable:
            name = key or _key_of(written)
            if not written.__doc__:
                raise ValueError(f"expected a docstring in the mistake {name!r}: it is what a learner is told")
            self.named(name, written.__doc__, look=look)(by(written) if by else written)
            return written

        return add if solution is None else add(solution)

    def built(self, build: Callable | None = None, *, look: str = "", key: str = "") -> Callable:
        """Decorator of a function without arguments that builds the wrong variant, such as a class."""
        return self(build, look=look, key=key, by=lambda build: build())

    def named(self, key: str, says: str, *, look: str = "") -> Callable:
        """Decorator of a wrong variant whose key and message are worked out: in a loop, or from a table."""

        def add(solution: Callable) -> Callable:
            if any(found.key == key for found in self._found):
                raise ValueError(f"two mistakes are called {key!r}")
            self._found.append(Misconception(key, " ".join(says.split()), solution, look))
            return solution

        return add

    def two_at_once(
        self, common: dict[str, tuple[str, dict]], build: Callable[..., Callable], hidden: Collection[set[str]] = ()
    ) -> None:
        """Add each pair of common mistakes that lie in different parts of the computation.

        Args:
            common: for a mistake's key what to say of it ("the penalty has no effect") and which parts it exchanges.
            build: makes a solution in which the given parts are exchanged.
            hidden: pairs of keys that are left out, since one of the two hides the other.
        """
        for (a, (first, one)), (b, (second, other)) in itertools.combinations(common.items(), 2):
            if not one.keys() & other.keys() and {a, b} not in hidden:
                says = f"There are two mistakes here: {first}, and {second}. Correct them one at a time."
                self.named(f"{a}+{b}", says)(build(**one, **other))

    def contains(self, part: Exercise, build: Callable[[Callable], Callable], **options) -> None:
        """Inherit the mistakes of an exercise that this one is built from; see `Exercise.inherited`."""
        self._found += part.inherited(build, **options)


def _key_of(written: Callable) -> str:
    """The name of a function; of a class, in lower case with underscores."""
    name = written.__name__
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() if isinstance(written, type) else name
