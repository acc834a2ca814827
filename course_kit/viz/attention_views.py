"""Views of the chapter `attention`: a query among keys in the plane, and an alignment with linked words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from course_kit._checks import check_whole, got
from course_kit.viz.describing import checked, count, describe, shortened
from course_kit.viz.inspection_inputs import DELIMITERS
from course_kit.viz.view import View
from course_kit.viz.view_elements import HIGH, button, controls, drawing, element, labels_for, panels, text_of, words
from course_kit.viz.view_numbers import check_drawable, fixed, numbers, rounded

__all__ = ["alignment", "query_plane"]

_SIDE, _MARGIN = 320, 16
_QUERY = 13.0  # radius of the query's disc
_MOST_KEYS = 12


def query_plane(
    key: Tensor, value: Tensor, query: Tensor | None = None, *, labels: Sequence[str] | None = None
) -> View:
    """A query that can be dragged among keys in the plane; weights and output follow.

    The score is the dot product, and the weights are the softmax of the scores, or all to the best key ("hard").

    Args:
        key: `(L_k, 2)`, the place of each key.
        value: `(L_k,)`, a number filed under each key.
        query: `(2,)`, where the query is at first; if not given, on the way to the first key and clear of every key.
        labels: a word for each key; k0, k1, … if not given.

    Raises:
        ValueError: shapes that do not fit, more than 12 keys, or entries that are not finite.
    """
    if not isinstance(key, Tensor) or key.dim() != 2 or key.shape[1] != 2 or not 1 <= len(key) <= _MOST_KEYS:
        raise ValueError(
            f"key must be a tensor (L_k, 2) with 1 to {_MOST_KEYS} keys, to be drawn in a plane, got {got(key)}; "
            f"choose two features and {_MOST_KEYS} keys at most"
        )
    if not isinstance(value, Tensor) or value.shape != key.shape[:1]:
        raise ValueError(f"value must be a tensor ({len(key)},), one number for each key, got {got(value)}")
    query = _clear_of(key) if query is None else query
    if not isinstance(query, Tensor) or query.shape != (2,):
        raise ValueError(f"query must be a tensor (2,), a place in the plane of the keys, got {got(query)}")
    check_drawable(key=key, value=value, query=query)
    names = [shortened(name) for name in labels_for(labels, len(key), "labels", "k")]
    reach = 1.15 * max(1e-6, *key.abs().flatten().tolist(), *query.abs().tolist())
    scale = (_SIDE / 2 - _MARGIN) / reach
    weights = torch.softmax(key.double() @ query.double(), 0)
    output = (weights @ value.double()).item()
    most = fixed(weights.max().item())
    named = [f"“{name}”" for name, weight in zip(names, weights.tolist(), strict=True) if fixed(weight) == most]
    middle = _SIDE / 2
    parts = [element("path", d=f"M0 {middle}H{_SIDE}M{middle} 0V{_SIDE}", class_="line", stroke_opacity=0.4)]
    for i, (place, name, weight) in enumerate(zip(key.tolist(), names, weights.tolist(), strict=True)):
        x, y = middle + scale * place[0], middle - scale * place[1]
        radius = 4.0 + 22 * weight**0.5
        parts.append(element("circle", cx=x, cy=y, r=radius, class_="key", fill_opacity=0.35, data_k=f"disc{i}"))
        parts.append(element("circle", cx=x, cy=y, r=4.0, class_="key"))
        parts.append(words(x, y - radius - 8, name, key=f"name{i}", class_="key small"))
    x, y = middle + scale * query[0].item(), middle - scale * query[1].item()
    at = f"{fixed(query[0].item(), 2)}, {fixed(query[1].item(), 2)}"
    parts.append(element("path", d=f"M{middle} {middle}L{x:.6g} {y:.6g}", class_="line", data_k="arrow"))
    parts.append(
        element(
            "g",
            # a key below it can be seen through the disc; a finger may miss the disc by a little
            element("circle", cx=x, cy=y, r=_QUERY, class_="query", fill_opacity=0.45, stroke="var(--query)",
                    stroke_width=3),
            element("circle", cx=x, cy=y, r=24.0, fill_opacity=0),
            data_drag="", data_k="query", tabindex=0,
            role="slider", aria_label="query: drag it, or move it with the arrow keys", aria_valuenow=0,
            aria_valuetext=f"query at {at}",
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
    described = ", ".join(f"{name} {fixed(weight)}" for name, weight in zip(names, weights.tolist(), strict=True))
    return View(
        kind="query_plane",
        title="A query among keys",
        description=f"{count(len(names), 'key')} in a plane. The query at {at} gives "
        f"{described}. The output, the average of the values with these weights, is {fixed(output)}.",
        body=controls(button("hard", "hard: all to the best key", pressed=False)) + panels(plane, table),
        data={"key": numbers(key), "value": numbers(value), "query": numbers(query), "names": names, "scale": scale},
        hint="Drag the blue disc, the query: which key gets the weight?",
        status=f"With the query at {at}, {', '.join(named)} {'each get' if len(named) > 1 else 'gets'} {most}, and the "
        f"output is {fixed(output)}.",
        note="The disc round a key grows with its weight. Arrow keys move the query too.",
    )


def _clear_of(key: Tensor) -> Tensor:
    """A place on the ray to the first key that is clear of every key, half-way out if none is."""
    key = key.double()
    reach = 1.15 * max(1e-6, key.abs().max().item())
    clear = 2 * _QUERY * reach / (_SIDE / 2 - _MARGIN)  # two radii of the disc
    for share in (0.6, 0.5, 0.4, 0.7, 0.3, 0.8, 0.2, 0.1):
        if (key - share * key[0]).norm(dim=-1).min() >= clear:
            return share * key[0]
    return 0.5 * key[0]


_MOST_WORDS = 40  # a row of the picture for each
_PITCH, _TOP = 26, 38  # from row to row, and the middle of the first
_MOST_VALUES = 8  # rows or columns up to which the weights are printed into the cells
_NAMED = 3  # keys that are named as the largest of a row
_IDLE, _CHOSEN = 0.1, 0.4  # background of a word
_FAINT = 0.01  # weights below this get no line: it would be hardly thicker than a tenth of a unit


def alignment(
    weights: Tensor,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    *,
    title: str = "Alignment",
    start: int | None = None,
) -> View:
    """Words joined by lines as thick as the weights, beside the heat map; a query shows its row, a key its column.

    Args:
        weights: `(L_q, L_k)`, each in [0, 1], 1 to 40 of either. Rows need not sum to one; the description names those
            that do not.
        queries: a word a row; q0, q1, … if not given.
        keys: a word a column; k0, k1, … if not given.
        title: what the picture is called.
        start: index of the query that is chosen at first. If not given, it is the one whose strong lines cross the
            strongest lines of others; where none cross, the one whose weights are spread most. End tokens come last.

    Raises:
        TypeError: weights is not a tensor: None (the fused path computes none), or a pair (output, weights).
        ValueError: weights is no matrix, is empty, has over 40 rows or columns, NaN or entries outside [0, 1], the
            words do not fit, or there is no such query to start with.
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
    if start is None:
        start = _telling(weights, query_names)
    else:
        check_whole(start=start, least=0, most=len(rows) - 1, hint="; it is the index of a query")
    return View(
        kind="alignment",
        title=title,
        description=describe(weights, queries, keys),
        body=panels(
            _joined(rows, query_names, key_names, start), _heat_map(rows, query_names, key_names, left, width, start)
        ),
        data={
            "weights": [[rounded(weight) for weight in row] for row in rows],
            "queries": query_names,
            "keys": key_names,
            "x": left,
            "y": _TOP - _PITCH / 2,
            "width": width,
            "height": _PITCH,
            "start": start,
        },
        hint="Choose a word on the left to see where it looks, or a word on the right to see which words look at it.",
        note="A cell of the map gives one weight. Point at words and cells, tap them, or reach them with Tab and the "
        "arrow keys.",
        status=_looks(query_names[start], key_names, rows[start]),
        reset=False,
    )


def _telling(weights: Tensor, queries: Sequence[str]) -> int:
    """The query whose lines cross the strongest lines of others; without crossings, the most spread one.

    Weights are squared, so that one clear line counts for more than many faint ones.
    """
    words_only = torch.tensor([[name not in DELIMITERS and any(map(str.isalnum, name))] for name in queries])
    w = weights.detach().cpu().double()
    w = (w * words_only if words_only.any() else w).square()
    after = w.flip(1).cumsum(1).flip(1) - w  # (L_q, L_k), on later keys
    before = w.cumsum(1) - w
    # lines of earlier queries cross those that end before theirs, lines of later queries those that end after theirs
    earlier, later = after.cumsum(0) - after, before.flip(0).cumsum(0).flip(0) - before
    crossed = (w * (earlier + later)).sum(1)
    told = crossed if crossed.max() > _FAINT else torch.special.entr(w.sqrt()).sum(1)
    return int(told.mul(1000).round().argmax())


def _looks(query: str, keys: list[str], row: list[float]) -> str:
    """Where a query looks, as the script says it."""
    shown = [rounded(weight) for weight in row]
    best = sorted(range(len(row)), key=lambda j: -shown[j])[:_NAMED]
    return f"“{query}” looks most at " + ", ".join(f"“{keys[j]}” ({fixed(shown[j])})" for j in best) + "."


def _middle(row: int) -> float:
    """The height of a row's middle."""
    return float(_TOP + _PITCH * row)


def _joined(rows: list[list[float]], queries: list[str], keys: list[str], start: int) -> str:
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
            if rounded(weight) >= _FAINT  # as the script, which has three decimals, finds them
        ]
        parts.append(element("g", *lines, stroke="var(--weight)", opacity=1 if i == start else 0.08, data_k=f"l{i}"))
    for i, name in enumerate(queries):
        parts.append(_word(f"q{i}", f"query {name}", name, 0, left + 4, left, "end", chosen=i == start))
    for j, name in enumerate(keys):
        parts.append(_word(f"k{j}", f"key {name}", name, right - 4, 324 - right, right, "start", chosen=False))
    height = _TOP + _PITCH * max(len(queries), len(keys)) - 6
    return drawing(320, height, *parts, label="Queries joined to keys by lines, thick where the weight is large")


def _word(key: str, label: str, name: str, x: int, width: int, at: int, class_: str, *, chosen: bool) -> str:
    """A word that can be chosen, on a background that shows so."""
    middle = _middle(int(key[1:]))
    box = element(
        "rect", x=float(x), y=middle - _PITCH / 2 + 1, width=float(width), height=_PITCH - 2.0, rx=4,
        fill="var(--muted)", fill_opacity=_CHOSEN if chosen else _IDLE,
    )  # fmt: skip
    return element("g", box, words(at, middle, name, class_=class_), data_k=key, role="button", aria_label=label)


def _heat_map(rows: list[list[float]], queries: list[str], keys: list[str], left: int, width: float, start: int) -> str:
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
                if (weight > HIGH) == high
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
            "rect", x=float(left), y=_middle(start) - _PITCH / 2, width=width * len(keys), height=_PITCH,
            data_k="frame", fill="none", stroke="var(--output)", stroke_width=3, pointer_events="none",
        )
    )  # fmt: skip
    height = below + (22 if level else 16 + 5 * longest)
    return drawing(320, height, *parts, label="Heat map of the weights, queries on rows, keys on columns")
