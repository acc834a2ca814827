"""Annotations that say what an argument has to be. `course_lib._checks.checked` checks each call against them.

    Float[Tensor, "*batch len_q d_k"]     floating-point, any number of axes and then two more
    Int[Tensor, "batch length"]           whole numbers
    Mask["*batch len_q len_k"]            bool, True = may attend, broadcasts to that shape
    Size, Count, Probability, Positive    numbers with bounds: >= 1, >= 0, in [0, 1), > 0

A name stands for the same length wherever it occurs in a call. The tests import jaxtyping before `course_lib` and so
have what is returned checked, too; without jaxtyping, `Float[Tensor, "..."]` is a `Tensor` with a note.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated

from torch import Tensor

__all__ = ["Bool", "Bounds", "Count", "Float", "Int", "Mask", "Positive", "Probability", "Shape", "Size"]


@dataclass(frozen=True)
class Shape:
    """What a tensor has to be.

    Args:
        kind: "floating-point", "integer" or "bool".
        axes: their names, separated by spaces; `*name` stands for any number of axes, `...` for some without a name.
        broadcast: whether the tensor may have any shape that broadcasts to this one.
    """

    kind: str
    axes: str
    broadcast: bool = False


@dataclass(frozen=True)
class Bounds:
    """What a number has to be: `low ≤ number ≤ high`, or `low < number < high` where they are left out."""

    low: float
    high: float = float("inf")
    without_low: bool = False
    without_high: bool = False


class _Annotation:
    kind = ""

    def __class_getitem__(cls, item: tuple[type, str]):
        if "jaxtyping" in sys.modules:
            return Annotated[getattr(sys.modules["jaxtyping"], cls.__name__)[item], Shape(cls.kind, item[1])]
        return Annotated[item[0], Shape(cls.kind, item[1])]


class Bool(_Annotation):
    """A tensor of bool."""

    kind = "bool"


class Float(_Annotation):
    """A tensor of floating-point numbers."""

    kind = "floating-point"


class Int(_Annotation):
    """A tensor of integers."""

    kind = "integer"


class Mask:
    """A bool tensor that broadcasts to a shape, True = may attend."""

    def __class_getitem__(cls, axes: str):
        return Annotated[Bool[Tensor, "..."], Shape("bool", axes, broadcast=True)]


Size = Annotated[int, Bounds(1)]
Count = Annotated[int, Bounds(0)]
Probability = Annotated[float, Bounds(0, 1, without_high=True)]
Positive = Annotated[float, Bounds(0, without_low=True, without_high=True)]
