"""Annotations that describe arguments. `course_lib._checks.checked` compares each call with them.

    Float[Tensor, "*batch len_q d_k"]     floating-point, any number of axes and then two more
    Int[Tensor, "batch length"]           whole numbers; Shaped[Tensor, "batch length"] any dtype
    Mask["*batch len_q len_k"]            bool, True = may attend, broadcasts to that shape
    Size, Count                           whole numbers ≥ 1, ≥ 0
    Probability, NotNegative, Positive    numbers in [0, 1), ≥ 0, > 0

A name stands for the same length wherever it occurs in a call, and a number for a fixed length. `*batch` stands for
any leading axes, which broadcast between arguments; `...` for any axes that are not compared. (A single name is written
with a space before it, `" length"`, so that no linter takes it for a variable.) The tests import jaxtyping before
`course_lib` and so check return values as well; without it, `Float[Tensor, "a b"]` is a `Tensor` with a note.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Annotated

from torch import Tensor


@dataclass(unsafe_hash=True)
class Shape:
    """What a tensor has to be. Its `star` is `*batch`, `...` or "", and its `names` are those of all other axes.

    Args:
        kind: "floating-point", "integer", "bool", or "" for any dtype.
        axes: their names, separated by spaces.
        broadcast: whether any shape is accepted that broadcasts to this one; a star can only stand first then.
    """

    kind: str
    axes: str
    broadcast: bool = False

    def __post_init__(self):
        before, self.star, after = re.fullmatch(r"([\w\s]*)(\*\w+|\.\.\.|)([\w\s]*)", self.axes).groups()
        first, last = before.split(), after.split()
        self.num_before, self.names = len(first), (*first, *last)  # how many names are before the star, and all of them
        self.fixed = {name: int(name) for name in self.names if name.isdigit()}  # an axis `1` has length 1
        self.is_batched = self.star.startswith("*")  # its star has a name
        written = ", ".join([*first, "...", *last] if self.star else self.names)
        self.shown = f"({written},)" if written and written.isidentifier() else f"({written})"  # as Python writes it


@dataclass(frozen=True)
class Bounds:
    """What a number has to be: `low ≤ number ≤ high`, or `low < number < high` where they are left out."""

    low: float
    high: float = float("inf")
    without_low: bool = False
    without_high: bool = False

    def hold(self, number: float) -> bool:
        """Whether the number is within them; NaN is not."""
        low = self.low < number if self.without_low else self.low <= number
        return low and (number < self.high if self.without_high else number <= self.high)

    @property
    def shown(self) -> str:
        """What a number is then: "in [0, 1)"."""
        if self == Positive.__metadata__[0]:
            return "positive and finite"
        return f"in {'[('[self.without_low]}{self.low:g}, {self.high:g}{'])'[self.without_high]}"


class _Annotation:
    def __init__(self, name: str, kind: str):
        self.name, self.kind = name, kind

    def __getitem__(self, item: tuple[type, str]):
        checkable = getattr(sys.modules.get("jaxtyping"), self.name, None)
        return Annotated[checkable[item] if checkable else item[0], Shape(self.kind, item[1])]


class _Broadcasting:
    def __getitem__(self, axes: str):
        return Annotated[Bool[Tensor, "..."], Shape("bool", axes, broadcast=True)]


Bool = _Annotation("Bool", "bool")
Float = _Annotation("Float", "floating-point")
Int = _Annotation("Int", "integer")
Shaped = _Annotation("Shaped", "")
Mask = _Broadcasting()

Size = Annotated[int, Bounds(1)]
Count = Annotated[int, Bounds(0)]
Probability = Annotated[float, Bounds(0, 1, without_high=True)]
Positive = Annotated[float, Bounds(0, without_low=True, without_high=True)]
NotNegative = Annotated[float, Bounds(0, without_high=True)]
