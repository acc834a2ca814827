"""Where a map of weights stands in a panel, and the labels of its rows and columns."""

from __future__ import annotations

from collections.abc import Sequence

from course_kit.viz.describing import cut, shortened
from course_kit.viz.view_elements import element, text_of, words

__all__ = ["WIDTH", "axis_labels", "frame", "short"]

WIDTH = 340  # units of a panel


def frame(
    queries: Sequence[str], keys: Sequence[str], most: float = 46.0, titled: bool = False
) -> tuple[float, float, float]:
    """Where a map begins (left, top) and how large its cells are, so that it fits a panel with its labels; `titled`
    leaves room for the titles "query" and "key" of its axes."""
    left = 12 + 6.6 * max(len(short(name)) for name in [*queries, *["query"] * titled])
    size = min(most, (WIDTH - left - 3) / len(keys), 300 / len(queries))
    longest = 6.6 * max(len(short(name)) for name in keys)
    return left, 22 + 16 * titled + (18 if longest < size - 2 else longest + 8), size


def axis_labels(
    queries: Sequence[str], keys: Sequence[str], left: float, top: float, size: float, role: str = "query"
) -> list[str]:
    """The labels of a map's rows and columns; keys are written upwards where they would overlap."""
    every = next(n for n in (1, 2, 5, 10, 20, 50) if n * size >= 12)
    rows = [
        words(left - 6, top + size * (i + 0.5), short(queries[i]), class_=f"end small {role}")
        for i in range(0, len(queries), every)
    ]
    if 6.6 * max(len(short(name)) for name in keys) < size - 2:
        return rows + [
            words(left + size * (j + 0.5), top - 10, short(name), class_="small key") for j, name in enumerate(keys)
        ]
    columns = []
    for j in range(0, len(keys), every):
        x, y = left + size * (j + 0.5), top - 5
        columns.append(
            element(
                "text", text_of(short(keys[j])), x=float(x), y=float(y), class_="start small key",
                transform=f"rotate(-90 {x:.5g} {y:.5g})",
            )
        )  # fmt: skip
    return rows + columns


def short(name: str, most: int = 9) -> str:
    """A label of one line that fits beside a row."""
    return cut(shortened(name), most)
