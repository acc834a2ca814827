"""Views of the chapter `attention`: a query among keys in the plane, and an alignment with linked words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from course_lib.viz.describing import checked, describe, shortened
from course_lib.viz.view import (
    View,
    button,
    controls,
    drawing,
    element,
    fixed,
    labels_for,
    numbers,
    panels,
    text_of,
    words,
)

__all__ = ["alignment", "query_plane"]

_SIDE, _MARGIN = 320, 16
_MOST_KEYS = 12


def _got(given: object) -> str:
    return str(tuple(given.shape)) if isinstance(given, Tensor) else type(given).__name__


def query_plane(
    key: Tensor, value: Tensor, query: Tensor | None = None, *, labels: Sequence[str] | None = None
) -> View:
    """A query that can be dragged among keys in the plane; weights and output follow.

    The score is the dot product, and the weights are the softmax of the scores, or all to the best key ("hard").

    Args:
        key: `(L_k, 2)`, the place of each key.
        value: `(L_k,)`, a number filed under each key.
        query: `(2,)`, where the query is at first; near the first key if not given.
        labels: a word for each key; k0, k1, … if not given.

    Raises:
        ValueError: shapes that do not fit, more than 12 keys, or entries that are not finite.
    """
    if not isinstance(key, Tensor) or key.dim() != 2 or key.shape[1] != 2 or not 1 <= len(key) <= _MOST_KEYS:
        raise ValueError(
            f"key must be a tensor (L_k, 2) with 1 to {_MOST_KEYS} keys, to be drawn in a plane, got {_got(key)}; "
            f"choose two features and {_MOST_KEYS} keys at most"
        )
    if not isinstance(value, Tensor) or value.shape != key.shape[:1]:
        raise ValueError(f"value must be a tensor ({len(key)},), one number for each key, got {_got(value)}")
    query = 0.6 * key[0] if query is None else query
    if not isinstance(query, Tensor) or query.shape != (2,):
        raise ValueError(f"query must be a tensor (2,), a place in the plane of the keys, got {_got(query)}")
    names = [shortened(name) for name in labels_for(labels, len(key), "labels", "k")]
    reach = 1.15 * max(1e-6, *key.abs().flatten().tolist(), *query.abs().tolist())
    scale = (_SIDE / 2 - _MARGIN) / reach
    data = {"key": numbers(key), "value": numbers(value), "query": numbers(query), "names": names, "scale": scale}

    weights = torch.softmax(key.double() @ query.double(), 0)
    output = (weights @ value.double()).item()
    middle = _SIDE / 2
    parts = [
        element("path", d=f"M0 {middle}H{_SIDE}M{middle} 0V{_SIDE}", class_="line", stroke_opacity=0.4),
    ]
    for i, (place, name, weight) in enumerate(zip(key.tolist(), names, weights.tolist(), strict=True)):
        x, y = middle + scale * place[0], middle - scale * place[1]
        parts.append(
            element("circle", cx=x, cy=y, r=4.0 + 22 * weight**0.5, class_="key", fill_opacity=0.35, data_k=f"disc{i}")
        )
        parts.append(element("circle", cx=x, cy=y, r=4.0, class_="key"))
        parts.append(words(x, y - 14, name, class_="key small"))
    x, y = middle + scale * query[0].item(), middle - scale * query[1].item()
    parts.append(element("path", d=f"M{middle} {middle}L{x:.6g} {y:.6g}", class_="line", data_k="arrow"))
    parts.append(
        element(
            "g", element("circle", cx=x, cy=y, r=13.0, class_="query"), data_drag="", data_k="query", tabindex=0,
            role="slider", aria_label="query: drag it, or move it with the arrow keys", aria_valuenow=0,
            aria_valuetext=f"query at {fixed(query[0].item(), 2)}, {fixed(query[1].item(), 2)}",
        )
    )  # fmt: skip
    plane = drawing(_SIDE, _SIDE, *parts, label="Keys in a plane, and the query among them")
    rows = []
    for i, (name, weight, filed) in enumerate(zip(names, weights.tolist(), value.tolist(), strict=True)):
        top = 34 + 23 * i
        rows += [
            words(4, top, name, class_="start small key"),
            words(156, top, fixed(weight), key=f"weight{i}", class_="end"),
            element(
                "rect", x=164.0, y=top - 7.0, height=14.0, width=100 * weight, fill="var(--weight)", data_k=f"bar{i}"
            ),
            words(316, top, fixed(filed, 2), class_="end value"),
        ]
    bottom = 42 + 23 * len(names)
    rows += [
        words(4, 12, "key", class_="start small"),
        words(156, 12, "weight", class_="end small"),
        words(316, 12, "value", class_="end small"),
        words(4, bottom, "output", class_="start output"),
        words(316, bottom, fixed(output), key="output", class_="end output"),
    ]
    table = drawing(_SIDE, bottom + 20, *rows, label="The weight and the value of each key, and the output")
    at = f"{fixed(query[0].item(), 2)}, {fixed(query[1].item(), 2)}"
    described = ", ".join(f"{name} {fixed(weight)}" for name, weight in zip(names, weights.tolist(), strict=True))
    return View(
        kind="query_plane",
        title="A query among keys",
        description=f"{len(names)} {'key' if len(names) == 1 else 'keys'} in a plane. The query at {at} gives "
        f"{described}. The output, the average of the values with these weights, is {fixed(output)}.",
        body=controls(button("hard", "hard: all to the best key", pressed=False)) + panels(plane, table),
        data=data,
        hint="Drag the blue disc, or move it with the arrow keys. The disc round a key grows with its weight.",
    )


_MOST_WORDS = 40  # a row of the picture for each
_PITCH, _TOP = 26, 38  # from row to row, and the middle of the first
_MOST_VALUES = 8  # rows or columns up to which the weights are printed into the cells
_FAINT = 0.01  # weights below this get no line: it would be hardly thicker than a tenth of a unit


def alignment(
    weights: Tensor,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    *,
    title: str = "Alignment",
) -> View:
    """Words joined by lines as thick as the weights, beside the heat map; a word or a cell shows its row of weights.

    Args:
        weights: `(L_q, L_k)`, each in [0, 1], 1 to 40 of either. Rows need not sum to one; the description names those
            that do not.
        queries: a word a row; q0, q1, … if not given.
        keys: a word a column; k0, k1, … if not given.
        title: what the picture is called.

    Raises:
        TypeError: weights is not a tensor: None (the fused path computes none), or a pair (output, weights).
        ValueError: weights is no matrix, is empty, has over 40 rows or columns, NaN or entries outside [0, 1], or the
            words do not fit.
    """
    array = checked(weights, queries, keys)
    if max(array.shape) > _MOST_WORDS:
        raise ValueError(
            f"weights must have at most {_MOST_WORDS} rows and columns, each of which gets a line of its own, got "
            f"{array.shape}; show a part, weights[:{_MOST_WORDS}, :{_MOST_WORDS}], or all of it with attention_map"
        )
    rows = [[min(max(weight, 0.0), 1.0) for weight in row] for row in array.tolist()]
    query_names = [shortened(name) for name in labels_for(queries, len(rows), "queries", "q")]
    key_names = [shortened(name) for name in labels_for(keys, len(rows[0]), "keys", "k")]
    left = 16 + 7 * max(4, *map(len, query_names))  # where the cells of the map begin
    width = min(40, (316 - left) / len(key_names))
    return View(
        kind="alignment",
        title=title,
        description=describe(weights, queries, keys),
        body=panels(_joined(rows, query_names, key_names), _heat_map(rows, query_names, key_names, left, width)),
        data={
            "weights": [[float(fixed(weight)) for weight in row] for row in rows],
            "queries": query_names,
            "keys": key_names,
            "x": left,
            "y": _TOP - _PITCH / 2,
            "width": width,
            "height": _PITCH,
        },
        hint="Point at, tap, or reach with Tab and the arrow keys: a word on the left, or a cell of the map.",
    )


def _middle(row: int) -> float:
    """The height of a row's middle."""
    return float(_TOP + _PITCH * row)


def _joined(rows: list[list[float]], queries: list[str], keys: list[str]) -> str:
    """Two columns of words, with lines as thick as the weights."""
    left, right = (8 + 8 * max(5, *map(len, names)) for names in (queries, keys))
    right = 320 - right
    parts = [words(left, 10, "query", class_="query small end"), words(right, 10, "key", class_="key small start")]
    for i, row in enumerate(rows):
        lines = [
            element(
                "path", d=f"M{left + 6} {_middle(i):g}L{right - 6} {_middle(j):g}", stroke_width=f"{12 * weight:.2f}"
            )
            for j, weight in enumerate(row)
            if weight >= _FAINT
        ]
        parts.append(element("g", *lines, stroke="var(--weight)", opacity=0.45, data_k=f"l{i}"))
    for i, name in enumerate(queries):
        top = _middle(i) - _PITCH / 2 + 1
        box = element("rect", x=0.0, y=top, width=left + 4.0, height=_PITCH - 2.0, rx=4, fill_opacity=0)
        label = words(left, _middle(i), name, class_="end")
        parts.append(element("g", box, label, data_k=f"q{i}", role="button", aria_label=f"query {name}"))
    parts += [words(right, _middle(j), name, class_="start") for j, name in enumerate(keys)]
    height = _TOP + _PITCH * max(len(queries), len(keys)) - 6
    return drawing(320, height, *parts, label="Queries joined to keys by lines, thick where the weight is large")


def _heat_map(rows: list[list[float]], queries: list[str], keys: list[str], left: int, width: float) -> str:
    """The map of the weights; its rows lie level with the words."""
    parts = [words(left - 8, 10, "query", class_="query small end"), words(left, 10, "key", class_="key small start")]
    with_values = max(len(rows), len(keys)) <= _MOST_VALUES
    for i, (name, row) in enumerate(zip(queries, rows, strict=True)):
        top = _middle(i) - _PITCH / 2
        parts.append(words(left - 8, _middle(i), name, class_="small end"))
        cells = [
            element("rect", x=left + width * j, y=top, width=width, height=_PITCH, fill_opacity=f"{weight:.3f}")
            for j, weight in enumerate(row)
        ]
        parts.append(element("g", *cells, class_="cell", data_k=f"r{i}"))
        for high in (False, True) if with_values else ():
            texts = [
                words(left + width * (j + 0.5), _middle(i), fixed(weight, 2), class_="small")
                for j, weight in enumerate(row)
                if (weight > 0.5) == high
            ]
            parts.append(element("g", *texts, class_="cell high" if high else "cell", pointer_events="none"))
    below = _middle(len(rows)) - _PITCH / 2
    longest = max(map(len, keys))
    level = 7.5 * longest < width
    for j in range(0, len(keys), 1 if level else math.ceil(14 / width)):
        x = left + width * (j + 0.5)
        if level:
            parts.append(words(x, below + 12, keys[j], class_="small"))
        else:
            turned = f"translate({x + 3:.4g} {below + 11:.4g})rotate(-45)"
            parts.append(element("text", text_of(keys[j]), transform=turned, class_="small end"))
    parts.append(
        element(
            "rect", height=_PITCH, data_k="frame", fill="none", stroke="var(--output)", stroke_width=3,
            pointer_events="none",
        )
    )  # fmt: skip
    height = below + (22 if level else 16 + 5 * longest)
    return drawing(320, height, *parts, label="Heat map of the weights, queries on rows, keys on columns")
