"""A view of the chapter `efficiency`: attention computed tile by tile, with an online softmax."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp

import torch
from torch import Tensor

from course_kit._checks import check_floats, check_whole
from course_kit.viz.view import View
from course_kit.viz.view_elements import button, cell, controls, drawing, element, panels, slider, words
from course_kit.viz.view_numbers import check_drawable, fixed
from course_lib.efficiency import online_softmax_step

__all__ = ["tile_walk"]

_CELL, _HEIGHT, _LEFT, _TOP = 26, 30, 26, 22  # units of a cell, and where the first one is
_MOST_QUERIES, _MOST_KEYS, _LARGEST = 6, 12, 9.9
# The maximum of one query changes in the first block for the last time, that of the next in the second, and so on.
_SCORES = (
    (2.5, 0.3, 1.0, -0.5, 1.8, 0.7, -1.2, 0.0, 1.4, 0.6, -0.4, 2.2),
    (0.5, 1.2, -0.3, 2.0, 0.1, -1.0, 0.4, 1.1, -0.6, 0.9, 1.5, 0.2),
    (-1.0, 0.2, 0.4, 0.9, -0.7, 0.3, 1.6, 0.8, -0.2, 1.1, 0.5, -1.5),
    (-0.8, 0.1, -1.6, 0.6, 1.3, 0.0, 1.7, -0.9, 0.2, 0.4, 3.0, 1.0),
)
_VALUES = (1.0, -2.0, 3.0, 0.0, 2.0, -1.0, 4.0, 1.0, -3.0, 2.0, 0.0, 1.0)
_COLUMNS = ("maximum", "factor", "total", "output", "ratio", "softmax")
_RIGHT = (72, 126, 180, 236, 288, 340)  # where the columns end

_TILE_STYLE = """<style>
attention-view svg :is(.cell,.score) text{font-size:11px}
attention-view .past text{fill:var(--muted)}
attention-view .best rect{stroke:var(--key);stroke-width:3}
attention-view .tile{fill:none;stroke:var(--output);stroke-width:3}
</style>"""


def tile_walk(
    scores: Tensor | None = None,
    value: Tensor | None = None,
    block_size: int = 3,
    *,
    queries_per_tile: int | None = None,
) -> View:
    """Attention computed tile by tile: the running maximum, total and output of each query after each tile.

    A slider goes through the tiles, from left to right in one row of tiles after the other. Each tile is a step of
    `online_softmax_step`: a larger maximum multiplies the total and the output so far by exp(m_old − m_new). After the
    last tile, output ÷ total is the same as softmax attention over all keys at once.

    Args:
        scores: `(L_q, L_k)`, already scaled; at most 6 queries and 12 keys. They are shown with one decimal. An example
            of 4 queries and 12 keys if not given.
        value: `(L_k,)`, one number per key; those of the example if not given.
        block_size: keys per tile.
        queries_per_tile: queries per tile; all of them if not given, as in `tiled_attention`.

    Raises:
        TypeError: scores or value is not a floating-point tensor, or a size of the tiles is not a whole number.
        ValueError: shapes that do not fit, too many queries or keys, entries that are not finite or beyond 9.9, or
            tiles larger than the matrix.
    """
    scores = torch.tensor(_SCORES) if scores is None else scores
    value = torch.tensor(_VALUES) if value is None else value
    _check(scores, value)
    check_whole(block_size=block_size, most=scores.shape[1], hint="; a tile lies within the keys")
    rows = len(scores) if queries_per_tile is None else queries_per_tile
    check_whole(queries_per_tile=rows, most=len(scores), hint="; a tile lies within the queries")
    scores, value = scores.detach().cpu().double(), value.detach().cpu().double()
    whole = [fixed(x) for x in (scores.softmax(dim=-1) @ value).tolist()]
    states = _states(scores, value, block_size, rows)
    num_queries, num_keys = scores.shape
    listed = ", ".join(f"q{i} {x}" for i, x in enumerate(whole))
    return View(
        kind="tile_walk",
        title="Attention, one tile at a time",
        description=f"{num_queries} × {num_keys} scores in {len(states) - 1} tiles of at most {rows} × {block_size}. "
        "For each query, a maximum, a total and an output are updated tile by tile. "
        f"At the end, output ÷ total is that of softmax attention: {listed}.",
        body=_TILE_STYLE
        + controls(slider("step", "tile", 0, len(states) - 1, 0), button("next", "next tile"))
        + panels(_matrix(scores, value), _table(states[0]["texts"], whole)),
        data={"states": states},
        hint="Go from tile to tile, and watch when an earlier sum has to be corrected.",
        status=states[0]["said"],
        note="Frame: the tile in memory; the stronger its colour, the larger exp(score − maximum). Grey scores have "
        "been discarded. Marked cell: the largest score so far. Factor: what the earlier total and output are "
        "multiplied by, exp(old maximum − new maximum). Ratio: output ÷ total. Softmax: over all keys at once.",
    )


def _check(scores: Tensor, value: Tensor) -> None:
    check_floats(scores=scores, value=value)
    check_drawable(scores=scores, value=value)
    if scores.dim() != 2 or not (1 <= scores.shape[0] <= _MOST_QUERIES and 1 <= scores.shape[1] <= _MOST_KEYS):
        raise ValueError(
            f"scores must be (L_q, L_k) with 1 to {_MOST_QUERIES} queries and 1 to {_MOST_KEYS} keys, got "
            f"{tuple(scores.shape)}; choose a part of the matrix"
        )
    if value.shape != scores.shape[1:]:
        raise ValueError(
            f"value must be ({scores.shape[1]},), one number per key, got {tuple(value.shape)}; choose one feature"
        )
    for name, tensor in (("scores", scores), ("value", value)):
        if (largest := tensor.abs().max().item()) > _LARGEST:
            raise ValueError(f"{name} must be at most {_LARGEST} in size, got {largest:g}; scale the tensor down")


def _states(scores: Tensor, value: Tensor, block_size: int, rows: int) -> list[dict]:
    """What is shown before the first tile and after each: numbers of all queries, cells of the tile, what is said."""
    num_queries, num_keys = scores.shape
    names = [f"q{i}" for i in range(num_queries)]
    maximum, total, output = scores.new_full((num_queries,), -torch.inf), *scores.new_zeros(2, num_queries)
    texts = [["−∞", "", fixed(0.0), fixed(0.0), ""] for _ in names]
    best, past = [-1] * num_queries, []  # places of cells, counted row by row
    states = [
        {
            "texts": [list(row) for row in texts],
            "said": "Before the first tile: each maximum is −∞, and total and output are 0.",
        }
    ]
    tiles = [(top, left) for top in range(0, num_queries, rows) for left in range(0, num_keys, block_size)]
    for number, (top, left) in enumerate(tiles, start=1):
        queries, keys = slice(top, min(top + rows, num_queries)), slice(left, min(left + block_size, num_keys))
        old = maximum[queries].tolist()
        maximum[queries], total[queries], sums = online_softmax_step(
            maximum[queries], total[queries], output[queries, None], scores[queries, keys], value[keys, None]
        )
        output[queries] = sums[:, 0]
        factors, cells = {}, {}
        for i, before in enumerate(old, start=top):
            after = maximum[i].item()
            if after > before:
                factors[names[i]] = fixed(exp(before - after))
                best[i] = i * num_keys + left + scores[i, keys].argmax().item()
            for j in range(left, keys.stop):
                cells[i * num_keys + j] = exp(scores[i, j].item() - after)
            ratio = (output[i] / total[i]).item()
            texts[i] = [fixed(x) for x in (after, exp(before - after), total[i].item(), output[i].item(), ratio)]
        said = f"Tile {number} of {len(tiles)}: {_told(factors, first=left == 0)}"
        if keys.stop == num_keys:
            said += f" For {_joined(names[queries])}, output ÷ total is now softmax attention over all keys."
        states.append(
            {
                "texts": [list(row) for row in texts],
                "said": said,
                "cells": cells,
                "past": list(past),
                "best": [place for place in best if place >= 0],
                "tile": [
                    *(_LEFT + _CELL * left, _TOP + _HEIGHT * top),
                    *(_CELL * (keys.stop - left), _HEIGHT * (queries.stop - top)),
                ],
            }
        )
        past += cells
    return states


def _told(factors: dict[str, str], *, first: bool) -> str:
    """Which queries have a new maximum, and what becomes of their sums."""
    if first:
        return f"the first maximum of {_joined(list(factors))}."
    if not factors:
        return "no larger maximum, so the earlier sums stay as they are."
    names, numbers = _joined(list(factors)), _joined(list(factors.values()))
    return f"a larger maximum of {names}, so the earlier total and output are multiplied by {numbers}."


def _joined(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _matrix(scores: Tensor, value: Tensor) -> str:
    """The scores, queries on rows and keys on columns, and the values of the keys below them."""
    num_queries, num_keys = scores.shape
    bottom = _TOP + _HEIGHT * num_queries
    parts = [words(_LEFT + _CELL * (j + 0.5), 10, f"k{j}", class_="small key") for j in range(num_keys)]
    for i, row in enumerate(scores.tolist()):
        y = _TOP + _HEIGHT * i
        parts.append(words(_LEFT - 6, y + _HEIGHT / 2, f"q{i}", class_="small end query"))
        for j, score in enumerate(row):
            parts.append(cell(_LEFT + _CELL * j, y, _CELL, _HEIGHT, 0.0, fixed(score, 1), key=f"c{i * num_keys + j}"))
    parts += [
        element("g", words(_LEFT + _CELL * (j + 0.5), bottom + 16, fixed(x, 1), class_="value"), class_="score")
        for j, x in enumerate(value.tolist())
    ]
    parts += [
        words(_LEFT - 6, bottom + 16, "v", class_="small end value"),
        element("rect", x=_LEFT, y=_TOP, width=0, height=0, class_="tile", data_k="tile"),
    ]
    width = _LEFT + _CELL * _MOST_KEYS + 4
    return drawing(width, bottom + 30, *parts, label="The scores, and the value of each key")


def _table(texts: Sequence[Sequence[str]], whole: Sequence[str]) -> str:
    """A line per query: maximum, correction, total, output, their ratio, and softmax attention to compare with."""
    parts = [words(x, 10, name, class_="small end") for x, name in zip(_RIGHT, _COLUMNS, strict=True)]
    for i, row in enumerate(texts):
        y = _TOP + _HEIGHT * (i + 0.5)
        parts.append(words(0, y, f"q{i}", class_="small start query"))
        parts += [
            words(x, y, text, key=f"t{i}{j}", class_="small end")
            for j, (x, text) in enumerate(zip(_RIGHT[:-1], row, strict=True))
        ]
        parts.append(words(_RIGHT[-1], y, whole[i], class_="small end output"))
    height = _TOP + _HEIGHT * len(texts) + 8
    return drawing(_RIGHT[-1] + 2, height, *parts, label="Maximum, correction, total and output of each query")
