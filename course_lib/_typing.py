"""Annotations that say what an argument has to be. `course_lib._checks.checked` checks each call against them.

    Float[Tensor, "*batch len_q d_k"]     floating-point, any number of axes and then two more
    Int[Tensor, "batch length"]           whole numbers
    Mask["*batch len_q len_k"]            bool, True = may attend, broadcasts to that shape
    Size, Count                           whole numbers >= 1, >= 0
    Probability, NotNegative, Positive    numbers in [0, 1), >= 0, > 0

A name stands for the same length wherever it occurs in a call, `...` for any axes, a number for itself. The tests
import jaxtyping before `course_lib` and so have what is returned checked, too; without jaxtyping, `Float[Tensor, "a"]`
is a `Tensor` with a note.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Annotated

from torch import Tensor

__all__ = ["Bool", "Bounds", "Count", "Float", "Int", "Mask", "NotNegative", "Positive", "Probability", "Shape", "Size"]


@dataclass(unsafe_hash=True)
class Shape:
    """What a tensor has to be; its `names` of axes are those before and after the `star`, `*batch` or `...`.

    Args:
        kind: "floating-point", "integer" or "bool".
        axes: their names, separated by spaces.
        broadcast: whether the tensor may have any shape that broadcasts to this one, which begins with the star then.
    """

    kind: str
    axes: str
    broadcast: bool = False

    def __post_init__(self):
        before, self.star, after = re.fullmatch(r"([\w\s]*)(\*\w+|\.\.\.|)([\w\s]*)", self.axes).groups()
        self.before, self.names = len(before.split()), (*before.split(), *after.split())
        written = [*before.split(), *["..."][: len(self.star)], *after.split()]
        self.shown = f"({', '.join(written)}{',' * (len(written) == 1 and not self.star)})"


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
Mask = _Broadcasting()

Size = Annotated[int, Bounds(1)]
Count = Annotated[int, Bounds(0)]
Probability = Annotated[float, Bounds(0, 1, without_high=True)]
Positive = Annotated[float, Bounds(0, without_low=True, without_high=True)]
NotNegative = Annotated[float, Bounds(0, without_high=True)]
