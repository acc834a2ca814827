"""Points: exact fractions from the weights of properties to the totals, rounded once, where they are shown."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction

__all__ = ["allotted", "exact", "percent", "plain_number", "shown"]

_WRITTEN = re.compile(r"\d{1,9}(\.\d{1,9})?|\d{1,9}/0*[1-9]\d{0,8}")


def exact(number: float | str | Fraction) -> Fraction:
    """A number as it is written: 0.1 is one tenth, and "1/3" a third.

    Raises:
        ValueError: it is not a finite number, or text that is neither a decimal nor a fraction of whole numbers.
    """
    if isinstance(number, bool) or not isinstance(number, int | float | str | Fraction):
        raise ValueError(f"expected a number such as 2, 0.5 or 1/3, got {number!r}")
    if isinstance(number, Fraction | int):
        return Fraction(number)
    if isinstance(number, str):
        if not _WRITTEN.fullmatch(number.strip()):
            raise ValueError(f"expected a number such as 2, 0.5 or 1/3, got {number!r}")
        return Fraction(number.strip())
    return Fraction(repr(float(number)))


def shown(number: Fraction) -> Fraction:
    """A number rounded to hundredths, halves away from zero, as it is shown everywhere."""
    hundredths = math.floor(abs(number) * 100 + Fraction(1, 2))
    return Fraction(hundredths if number >= 0 else -hundredths, 100)


def plain_number(number: Fraction) -> int | float:
    """A number of points as a table or a file shows it: rounded, and without decimals where there are none."""
    rounded = shown(number)
    return int(rounded) if rounded.denominator == 1 else float(rounded)


def percent(share: Fraction) -> str:
    """A share such as 1/8 as "12.5%"."""
    return f"{plain_number(share * 100)}%"


def allotted(parts: Sequence[Fraction]) -> list[Fraction]:
    """The parts in hundredths, such that they sum to what is shown of their total: largest remainders first.

    Each part is its exact value rounded up or down to a hundredth. Among equal remainders the first part gets more.
    """
    cents = [math.floor(part * 100) for part in parts]
    missing = int(shown(sum(parts, Fraction())) * 100) - sum(cents)
    by_remainder = sorted(range(len(parts)), key=lambda place: cents[place] - parts[place] * 100)
    for place in by_remainder[:missing]:
        cents[place] += 1
    return [Fraction(cent, 100) for cent in cents]
