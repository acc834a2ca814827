"""Views of the chapter `positional_encoding`: a table of sines and cosines to probe, and a rotary pair to turn."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from course_kit._checks import check_finite, check_floats, check_whole
from course_kit.viz.view import View
from course_kit.viz.view_elements import button, controls, drawing, element, panels, slider, words
from course_kit.viz.view_numbers import check_drawable, check_pair, fixed, numbers

__all__ = ["rotary_pair", "sinusoid_probe"]

_SIDE = 320
_LEVELS = 12  # shades in which the table is drawn; numbers are shown exactly
_MOST_ROWS, _MOST_COLUMNS = 64, 32
_MOST_CLOCKS = 6  # in a row


def sinusoid_probe(encoding: Tensor, *, position: int = 3, column: int = 0, base: float = 10000.0) -> View:
    """A table of positions to probe: the sine or cosine behind a cell, the clock hands of a row, and how similar the
    row is to the others. At first the hands are a riddle: which position do they show?

    Args:
        encoding: `(length, d_model)`, the table; your own, or `sinusoidal_encoding(length, d_model)`. Where an entry is
            not what the formula of sines and cosines gives, the view says so.
        position: the one that the hands show at first, and that is to be found; the row chosen at first is the top one.
        column: the column probed at first.
        base: of the wavelengths in the formula.

    Raises:
        TypeError: encoding is not a tensor, or position or column not a whole number.
        ValueError: no table, one that is too large to be drawn, entries that are not finite, or a place outside.
    """
    if not isinstance(encoding, Tensor):
        raise TypeError(f"encoding must be a tensor (length, d_model), got {type(encoding).__name__}")
    check_finite("base", base)
    if encoding.dim() != 2 or not (1 <= len(encoding) <= _MOST_ROWS and 2 <= encoding.shape[1] <= _MOST_COLUMNS):
        raise ValueError(
            f"encoding must be (length, d_model) with at most {_MOST_ROWS} positions and 2 to {_MOST_COLUMNS} columns, "
            f"got {tuple(encoding.shape)}; show a part of it, encoding[:64, :32]"
        )
    length, d_model = encoding.shape
    check_whole(position=position, least=0, most=length - 1)
    check_whole(column=column, least=0, most=d_model - 1)
    check_drawable(encoding=encoding)
    if not base > 0:
        raise ValueError(f"base must be above 0, got {base}")
    table = encoding.detach().cpu().double()
    pairs = (d_model + 1) // 2
    left = 24
    width, height = (_SIDE - left) / d_model, min(16.0, _SIDE / length)
    bottom = height * length
    rows, columns = (
        range(0, count, next(n for n in (1, 2, 5, 10) if n * size >= 14))
        for count, size in ((length, height), (d_model, width))
    )
    picture = drawing(
        _SIDE,
        bottom + 38,
        *(words(left - 5, height * (row + 0.5), row, class_="end small") for row in rows),
        *(words(left + width * (c + 0.5), bottom + 11, c, class_="small") for c in columns),
        element(
            "g",
            element("g", *_shades(table, width, height), data_k="cells", style="cursor:crosshair"),
            element("rect", x=0, y=0, width=_SIDE - left, height=height, class_="line", stroke_width=1.5, data_k="row"),
            element(
                "rect", x=column * width, y=0, width=width, height=height, fill="none",
                stroke="var(--output)", stroke_width=3, data_k="mark",
            ),
            transform=f"translate({left} 0)",
        ),
        words(0, bottom + 29, "↓ position", class_="start small"),
        words(_SIDE, bottom + 29, "column →", class_="end small"),
        label=f"Table of {length} positions in {d_model} columns",
    )  # fmt: skip
    angles = [math.degrees(position * base ** (-2 * pair / d_model)) for pair in range(pairs)]
    curve = drawing(
        _SIDE, 156,
        words(0, 12, "how similar the framed row is to each row", class_="start small"),
        element("path", d="M0 136H320M0 86H320M0 36H320", class_="line", stroke_opacity=0.35),
        element("path", d=_curve(table, 0), class_="line", style="stroke:var(--weight);stroke-width:2",
                data_k="curve", transform="translate(0 26)"),
        words(2, 45, "1: the same direction", class_="start small"), words(2, 94, "0", class_="start small"),
        words(160, 149, "earlier rows ← framed row → later rows", class_="small"),
        label="Cosine similarity of the chosen position with every other, against their distance",
    )  # fmt: skip
    value = fixed(table[0, column].item())
    return View(
        kind="sinusoid_probe",
        title="A table of positions",
        description=f"{length} positions in {d_model} columns; faint is −1, full is 1. Position 0, column {column} is "
        f"{value}: {_formula(0, column, d_model, base)}. Beside it, a clock hand for each of the {pairs} pairs of "
        "columns, all at the position that is to be found; clockwise from the top they have turned by "
        f"{', '.join(f'{fixed(angle % 360, 0)}°' for angle in angles)}. Below, the cosine similarity of the chosen "
        "position with every other.",
        body=controls(
            slider("position", "position", 0, length - 1, 0),
            button("compare", "compare"),
            button("next", "another riddle"),
            button("follow", "let the hands follow", pressed=False),
        )
        + panels(
            element("div", _clocks(angles, column), curve),
            element("div", controls(slider("column", "column", 0, d_model - 1, column)), picture),
        ),
        data={"table": numbers(encoding), "base": base, "position": position},
        hint="Which position do the hands show? Choose it with the slider, then press “compare”.",
        status=_status(table, column, base),
        note="Hands point up at position 0 and turn clockwise; dashed are those of your choice, and below is how far "
        "they are off. The clock of the chosen column is thick. In the table, a faint cell is −1 and a full one is "
        "1; a click or a tap chooses a cell. The curve is the cosine similarity.",
    )


def _clocks(angles: list[float], column: int) -> str:
    """A clock for each pair of columns, in rows as equal as can be, with room below for how far its hand is off."""
    lines = math.ceil(len(angles) / _MOST_CLOCKS)
    across = math.ceil(len(angles) / lines)
    room = min(_SIDE / across, 80.0)
    radius, below = 0.42 * room, 18
    hands = []
    for pair, angle in enumerate(angles):
        x, y = room * (pair % across + 0.5), (room + below) * (pair // across) + room / 2
        hands += [
            element(
                "circle", cx=x, cy=y, r=radius, class_="line", data_k=f"clock{pair}",
                stroke_width=4 if pair == column // 2 else 1,
            ),
            element(
                "g",
                element(
                    "path", d=f"M0 0v-{radius:.6g}", stroke="var(--output)", stroke_width=3, data_k=f"hand{pair}",
                    transform=f"rotate({angle:.6g})",
                ),
                element(
                    "path", d=f"M0 0v-{radius:.6g}", stroke="var(--key)", stroke_width=3, stroke_dasharray="4 3",
                    data_k=f"guess{pair}", style="display:none",
                ),
                transform=f"translate({x:.6g} {y:.6g})",
            ),
            words(x, y + room / 2 + below / 2, "", key=f"off{pair}", class_="small"),
        ]  # fmt: skip
    return drawing(_SIDE, (room + below) * lines, *hands, label="A clock hand for each pair of columns")


def _formula(position: int, column: int, d_model: int, base: float) -> str:
    name = "cos" if column % 2 else "sin"
    return f"{name}({position} / {base:g}^({column - column % 2}/{d_model}))"


def _status(table: Tensor, column: int, base: float) -> str:
    """What the script says of the top row."""
    name, wanted, got = ("cos", 1.0, table[0, column].item()) if column % 2 else ("sin", 0.0, table[0, column].item())
    formula = _formula(0, column, table.shape[1], base)
    shown = f"Position 0, column {column}: {formula} = {name}(0.000) = {fixed(wanted)}. "
    return shown + (f"The table has {fixed(got)} there. " if abs(wanted - got) >= 1e-3 else "") + _QUESTION


_QUESTION = "Do the hands show it? Compare."


def _shades(table: Tensor, width: float, height: float) -> list[str]:
    """The table as one path a shade, from −1 (nothing) to 1 (full)."""
    top = max(1.0, table.abs().max().item())
    levels = ((table / top + 1) / 2 * (_LEVELS - 1)).round().long().tolist()
    paths: dict[int, list[str]] = {}
    for i, row in enumerate(levels):
        for j, level in enumerate(row):
            paths.setdefault(level, []).append(
                f"M{j * width:.5g} {i * height:.5g}h{width:.5g}v{height:.5g}h-{width:.5g}z"
            )
    return [
        element("path", d="".join(d), fill="var(--weight)", fill_opacity=level / (_LEVELS - 1), stroke="none")
        for level, d in sorted(paths.items())
    ]


def _curve(table: Tensor, position: int) -> str:
    """Cosine similarity with every position, as a path; the chosen position is in the middle."""
    length = len(table)
    similarity = torch.cosine_similarity(table[position], table, dim=-1).tolist()
    step = _SIDE / (2 * length)
    return "".join(
        f"{'L' if other else 'M'}{160 + step * (other - position):.6g} {60 - 50 * s:.6g}"
        for other, s in enumerate(similarity)
    )


def rotary_pair(
    query: Tensor, key: Tensor, *, angle: float = 0.3, positions: tuple[int, int] = (6, 2), longest: int = 24
) -> View:
    """A pair of query features and a pair of key features, turned by their positions as rotary encoding turns them.

    Args:
        query: `(2,)`, before it is turned.
        key: `(2,)`, before it is turned.
        angle: radians per position; for pair i of d features it is base^(−2i/d).
        positions: of the query and of the key at first.
        longest: the last position that can be chosen.

    Raises:
        TypeError: query or key is not a floating-point tensor, or a position is not a whole number.
        ValueError: shapes that are not (2,), two zero vectors, entries or an angle that are not finite, or positions
            outside.
    """
    check_finite("angle", angle, -1e9, 1e9)
    check_floats(query=query, key=key)
    for name, pair in (("query", query), ("key", key)):
        if pair.shape != (2,):
            raise ValueError(f"{name} must be (2,), one pair of features, got {tuple(pair.shape)}")
    check_drawable(query=query, key=key)
    reach = max(query.norm().item(), key.norm().item())
    if not reach > 0:
        raise ValueError("query and key must not both be zero, got nothing to turn; pass a pair of another length")
    check_whole(longest=longest, least=0, most=10_000)
    check_pair(positions=positions, most=(longest, longest), hint=f", as longest is {longest}")
    scale = 140 / reach
    turned, shapes = {}, [element("path", d="M0 160H320M160 0V320", class_="line", stroke_opacity=0.4)]
    for name, pair, position in (("query", query, positions[0]), ("key", key, positions[1])):
        x, y = pair.double().tolist()
        cos, sin = math.cos(angle * position), math.sin(angle * position)
        turned[name] = (x * cos - y * sin, x * sin + y * cos)
        shapes.append(_arrow(x, y, scale, f"var(--{name})", key=f"{name}-before"))
        shapes.append(_arrow(x, y, scale, f"var(--{name})", key=name, turned_by=math.degrees(angle * position)))
    for name, pair in (("query", query), ("key", key)):
        x, y = turned[name]
        before = ", ".join(fixed(feature, 2) for feature in pair.tolist())
        shapes.append(
            element(
                "g", element("circle", r=11.0, class_=name), data_drag="", data_k=f"{name}-tip", tabindex=0,
                role="slider", aria_label=f"{name}: drag it, or move it with the arrow keys", aria_valuenow=0,
                aria_valuetext=f"{name} {before} before the turn",
                transform=f"translate({160 + scale * x:.6g} {160 - scale * y:.6g})",
            )
        )  # fmt: skip
    picture = drawing(_SIDE, _SIDE, *shapes, label="Query and key before they are turned, dashed, and after")
    angles = [f"{position} · {angle:g} = {fixed(angle * position)}" for position in positions]
    score = sum(a * b for a, b in zip(turned["query"], turned["key"], strict=True))
    offset = fixed(positions[0] - positions[1], 0)
    lines = drawing(
        _SIDE, 130,
        *(
            part
            for row, (label, class_, name, text) in enumerate(
                (
                    ("query turned by", "query", "query-turn", angles[0]),
                    ("key turned by", "key", "key-turn", angles[1]),
                    ("query minus key", None, "offset", offset),
                    ("score of the turned pair", "output", "score", fixed(score)),
                )
            )
            for part in (
                words(2, 16 + 30 * row, label, class_=f"start {class_ or ''}".strip()),
                words(316, 16 + 30 * row, text, key=name, class_=f"end {class_ or ''}".strip()),
            )
        ),
        label="Angles, difference of positions, and score",
    )  # fmt: skip
    return View(
        kind="rotary_pair",
        title="A rotary pair",
        description=f"A query pair at position {positions[0]} and a key pair at position {positions[1]}, each turned "
        f"by {angle:g} radians per position. Their score is {fixed(score)}; it depends only on the difference "
        f"{offset}, query minus key.",
        body=controls(
            slider("m", "position of the query", 0, longest, positions[0]),
            slider("n", "position of the key", 0, longest, positions[1]),
            button("both", "move both on by one"),
        )
        + panels(picture, lines),
        data={"query": numbers(query), "key": numbers(key), "angle": angle, "scale": scale},
        hint="Move both on by one position, and watch the score; then drag the arrows by their discs.",
        note="Dashed: before the turn. Arrow keys move a disc too.",
        status=f"Query at position {positions[0]}, key at {positions[1]}, difference {offset}: the score is "
        f"{fixed(score)}.",
    )


def _arrow(x: float, y: float, scale: float, colour: str, *, key: str, turned_by: float | None = None) -> str:
    """A vector from the middle: dashed, or thick where it is turned."""
    turned = turned_by is not None
    return element(
        "path", d=f"M160 160L{160 + scale * x:.6g} {160 - scale * y:.6g}", stroke=colour, fill="none", data_k=key,
        stroke_width=5 if turned else 2, stroke_dasharray=None if turned else "5 5", stroke_linecap="round",
        transform=f"rotate({-turned_by:.6g} 160 160)" if turned else None,
    )  # fmt: skip
