"""Whether a value is as expected, and if not, how it differs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from course_kit.checker.observing import Foreign, Sequence, leaves
from course_kit.checker.shortening import shortened
from course_kit.exercises import Case

__all__ = ["TOLERANCE", "Finding", "as_shown", "compare", "differs", "in_words", "worst_of"]

# How far a careful computation may be from the exact value: times (1 + its size).
TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be.

    Args:
        facet: "problem", "structure", "shape", "value", or a key of `CONDUCT`.
        text: what was expected and what was returned.
        where: which returned value or gradient it is about.
        index: of the worst entry of a tensor.
    """

    facet: str
    text: str
    where: str = ""
    index: tuple[int, ...] | None = None


def compare(expected: Any, actual: Any, case: Case, names: tuple[str, ...]) -> list[Finding]:
    """How a returned value differs from the expected one; a dtype of lower precision is judged at that precision."""
    if isinstance(expected, Sequence) and len(names) > 1:
        if not isinstance(actual, Sequence) or len(actual.items) != len(expected.items):
            wanted = f"{len(expected.items)} values, ({', '.join(names)})"
            return [Finding("structure", f"expected {wanted}, got {in_words(actual)}")]
        found = []
        for name, wanted, got in zip(names, expected.items, actual.items, strict=True):
            found += _compare_one(wanted, got, case, name)
        return found
    return _compare_one(expected, actual, case, names[0])


def _compare_one(expected: Any, actual: Any, case: Case, name: str) -> list[Finding]:
    if isinstance(expected, Sequence):
        return _compare_sequence(expected, actual, case, name)
    if not isinstance(expected, Tensor):
        return _compare_number(expected, actual, name)
    if not isinstance(actual, Tensor):
        return [Finding("structure", f"expected a tensor, got {in_words(actual)}", name)]
    if actual.shape != expected.shape:
        text = f"expected shape {tuple(expected.shape)}, got {tuple(actual.shape)}"
        return [Finding("shape", text, name)]
    found = []
    wanted = (case.dtype or torch.float32) if expected.is_floating_point() else expected.dtype
    if actual.dtype != wanted:
        found.append(Finding("dtype", f"expected {_short(wanted)}, got {_short(actual.dtype)}", name))
        if not expected.is_floating_point() or not actual.is_floating_point():  # another kind of number altogether
            return [Finding("structure", found[0].text, name)]
    if actual.numel() == 0:
        return found
    wrong = differs(expected, actual, case.tolerance, wanted)
    if wrong is not None and wrong.any():
        index = worst_of(expected, actual, wrong)
        text = "expected {}, got {}".format(*as_shown(expected[index], actual[index]))
        found.append(Finding("value", text, name, index))
    return found


def differs(expected: Tensor, actual: Tensor, tolerance: float, dtype: torch.dtype) -> Tensor:
    """Which entries differ by more than a careful computation in this dtype (or the less precise one of `actual`)
    can."""
    if not expected.is_floating_point():
        return expected != actual
    # Where a result came in a coarser dtype, that is a fault of its own; its values are judged as coarsely, up to a
    # point.
    loose = max(TOLERANCE.get(dtype, 1e-9) * tolerance, min(TOLERANCE.get(actual.dtype, 0.0), TOLERANCE[torch.float16]))
    expected, actual = expected.double(), actual.double()
    near = (expected - actual).abs() <= loose * (1 + expected.abs())
    return ~((expected == actual) | (near & expected.isfinite()))  # NaN is never the same


def worst_of(expected: Tensor, actual: Tensor, wrong: Tensor) -> tuple[int, ...]:
    """The index of the entry that is furthest off, among those that are wrong."""
    return _index_of(int(_badness(expected, actual).masked_fill(~wrong, -1.0).argmax()), expected.shape)


def _badness(expected: Tensor, actual: Tensor) -> Tensor:
    if not expected.is_floating_point():
        return (expected != actual).double()
    return (expected.double() - actual.double()).abs().nan_to_num(nan=1e300, posinf=1e299)


def _index_of(flat: int, shape: Iterable[int]) -> tuple[int, ...]:
    """The index of an entry by its place in memory order; `torch.unravel_index` takes a hundred times as long."""
    index = []
    for size in reversed(tuple(shape)):
        flat, place = divmod(flat, size)
        index.append(place)
    return tuple(reversed(index))


def _compare_sequence(expected: Sequence, actual: Any, case: Case, name: str) -> list[Finding]:
    if expected.type == "list":  # of numbers: one value, to be read as a whole
        if _listed(expected) == _listed(actual):
            return []
        numbers_only = not any(isinstance(item, Tensor | Foreign) for item in leaves(actual))
        is_list = isinstance(actual, Sequence) and actual.type == "list" and numbers_only
        text = f"expected {_listed(expected)}, got {_listed(actual)}"
        return [Finding("value" if is_list else "structure", text, name)]
    if not isinstance(actual, Sequence) or len(actual.items) != len(expected.items):
        return [Finding("structure", f"expected {len(expected.items)} values, got {in_words(actual)}", name)]
    found = []
    for number, (wanted, got) in enumerate(zip(expected.items, actual.items, strict=True)):
        found += _compare_one(wanted, got, case, f"{name}[{number}]")
    return found


def _listed(value: Any) -> str:
    """A list of numbers as it is written in code; other values as `describe` gives them."""
    if isinstance(value, Sequence):
        inside = ", ".join(map(_listed, value.items))
        return f"[{inside}]" if value.type == "list" else f"({inside}{',' * (len(value.items) == 1)})"
    return repr(value) if type(value) in (int, float, bool, str) else in_words(value)


def _compare_number(expected: Any, actual: Any, name: str) -> list[Finding]:
    if type(expected) is int and type(actual) is float and actual == expected:
        return [Finding("structure", f"expected the int {expected}, got the float {actual}", name)]
    if type(expected) is float and type(actual) is int:
        actual = float(actual)  # 0 for 0.0 is not a mistake
    if type(actual) is not type(expected):
        return [Finding("structure", f"expected {in_words(expected)}, got {in_words(actual)}", name)]
    # In proportion, since a rate may be a millionth; a result of 0.0 is exact.
    near = abs(expected - actual) <= 1e-5 * abs(expected) + 1e-12 if type(expected) is float else expected == actual
    return [] if near else [Finding("value", f"expected {expected}, got {actual}", name)]


def in_words(value: Any) -> str:
    """A returned value in a few words."""
    if isinstance(value, Tensor):
        return f"a {_short(value.dtype)} tensor of shape {tuple(value.shape)}"
    if isinstance(value, Sequence):
        return f"a {value.type} of {len(value.items)} values"
    if isinstance(value, Foreign):
        return f"an object of type {value.type}"
    if value is None:
        return "None (is there a return?)"
    return shortened(f"the {type(value).__name__} {value!r}", 100)


def as_shown(expected: Any, actual: Any) -> tuple[str, str]:
    """Two numbers as a report shows them, with enough decimals to show that they differ."""
    pair = [x.item() if isinstance(x, Tensor) else x for x in (expected, actual)]
    if not all(type(x) is float for x in pair):
        return str(pair[0]), str(pair[1])
    for digits in range(3, 13):
        forms = [_in_digits(x, digits) for x in pair]
        if forms[0] != forms[1]:
            break
    return forms[0], forms[1]


def _in_digits(x: float, digits: int) -> str:
    form = f"{x:.{digits}f}" if abs(x) < 1e6 else f"{x:.{digits}e}"
    return form.lstrip("-") if float(form) == 0 else form  # -0.000 makes a learner look for a sign


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
