"""A picture of attention weights: queries on rows, keys on columns, always on a scale from 0 to 1."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure, FigureBase
from torch import Tensor

from course_kit._checks import check_instance
from course_kit._files import write_whole
from course_kit.viz.describing import MOST_CHARACTERS, checked, joined, sentences, shortened
from course_kit.viz.labels import readable_labels
from course_kit.viz.panels import layout_of
from course_kit.viz.style import PALETTE, WEIGHTS

__all__ = ["attention_map", "description_of", "save_figure"]

MOST_VALUES = 8  # rows or columns up to which the numbers are printed into the cells
MOST_LABELS = 24  # labels on one axis; of more tokens only every second, fifth, tenth … is named
LONGEST_SIDE_RATIO = 8  # cells are squares unless the map would be a mere line


def attention_map(
    weights: Tensor,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    *,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the weights of one attention as a heat map.

    The figure carries what `describe` says of the weights: notebooks give it to the picture as alternative text,
    `description_of(ax)` returns it, and `save_figure` writes it into the file.

    Args:
        weights: `(L_q, L_k)`, each in [0, 1]. Rows need not sum to one; the description says which do not.
        queries: a label a row; positions if not given.
        keys: a label a column; positions if not given.
        title: text above.
        ax: where to draw; new axes if not given, with a colour bar where the values are too many to be printed.

    Returns:
        The axes.

    Raises:
        TypeError: weights is not a tensor: None (the fused path computes none), or a pair (output, weights).
        ValueError: weights is not a matrix, has no entries, NaN, or entries outside [0, 1], or the labels do not fit.
    """
    check_instance(str, title=title)
    check_instance((Axes, type(None)), ax=ax)
    array = checked(weights, queries, keys)
    len_q, len_k = array.shape
    with_bar = ax is None and max(len_q, len_k) > MOST_VALUES
    if ax is None:
        more = 0.8 if with_bar else 0.0  # for the bar, and for long labels beside a narrow map
        _, ax = plt.subplots(figsize=(1.6 + more + 0.6 * min(len_k, 12), 1.2 + more / 2 + 0.5 * min(len_q, 12)))
    mesh = draw(array, queries, keys, ax)
    ax.set_title(title)
    if with_bar:
        ax.figure.colorbar(mesh, ax=ax, ticks=[0, 0.5, 1], label="weight", shrink=0.8)
    carried_by(mesh.axes.figure.figure).entries.append((mesh, tuple(sentences(weights, queries, keys))))  # the whole's
    return ax


def draw(
    array: np.ndarray,
    queries: Sequence[str] | None,
    keys: Sequence[str] | None,
    ax: Axes,
) -> QuadMesh:
    """The heat map itself, without title, colour bar and description."""
    len_q, len_k = array.shape
    with_values = max(len_q, len_k) <= MOST_VALUES
    sns.heatmap(
        array,
        ax=ax,
        vmin=0.0,
        vmax=1.0,
        cmap=WEIGHTS,
        cbar=False,
        square=max(len_q, len_k) <= LONGEST_SIDE_RATIO * min(len_q, len_k),
        annot=with_values,
        fmt=".2f",
        annot_kws={"fontsize": 9},
        linewidths=1.0 if with_values else 0.0,
        linecolor=PALETTE["grid"],
        xticklabels=False,
        yticklabels=False,
    )
    for spine in ax.spines.values():  # a frame: nearly empty maps have an edge, too
        spine.set(visible=True, color=PALETTE["muted"], linewidth=0.6)
    mesh = ax.collections[-1]
    columns, rows = _named(len_k), _named(len_q)
    column_labels, row_labels = _labels(keys, columns), _labels(queries, rows)
    ax.set_xticks(columns + 0.5, column_labels)
    ax.set_yticks(rows + 0.5, row_labels)
    upright = len(columns) <= 6 or (keys is None and len(columns) * len(column_labels[-1]) <= 30)
    ax.tick_params(axis="x", labelrotation=0 if upright else 45, length=0)
    ax.tick_params(axis="y", labelrotation=0, length=0)
    ax.set_xlabel("key", color=PALETTE["key"])
    ax.set_ylabel("query", color=PALETTE["query"])
    return mesh


def carried_by(figure: Figure) -> _Descriptions:
    """What a figure says of itself, from now on. `use_style` makes matplotlib call this for every new figure."""
    if not isinstance(getattr(figure, "_repr_mimebundle_", None), _Descriptions):
        figure._repr_mimebundle_ = _Descriptions(figure)
    return figure._repr_mimebundle_


class _Descriptions:
    """Descriptions of what is in a figure. As its `_repr_mimebundle_` it adds them, and the layout, to its picture.

    IPython asks an object for `_repr_mimebundle_` before it draws it, and merges what it gets. This one gives no data,
    only the metadata `image/png: {alt: …, points: …, panels: …}`: nbconvert puts the text into its pages, and the book
    stacks the panels for a phone.
    """

    def __init__(self, figure: Figure):
        self.figure = figure
        self.entries: list[tuple[QuadMesh, tuple[str, ...]]] = []  # the most important sentence first

    def __call__(self, include=None, exclude=None) -> tuple[dict, dict]:
        text = self.text()
        return {}, {"image/png": {**({"alt": text} if text else {}), **layout_of(self.figure)}}

    def text(self, ax: Axes | None = None) -> str:
        """What is in one of the axes; or in all of them, each with its title, and shorter the more there are."""
        alive = [entry for entry in self.entries if entry[0].axes is not None]  # None: cleared away since
        if ax is not None:
            return " ".join(joined(said) for mesh, said in alive if ax is mesh.axes)
        most = MOST_CHARACTERS // max(len(alive), 1)
        return " ".join(joined(said, title_of(mesh.axes), most) for mesh, said in alive)


def title_of(ax: Axes) -> str:
    """The title, wherever it is written."""
    return ax.get_title("left") or ax.get_title("center") or ax.get_title("right")


def description_of(drawn: Axes | FigureBase) -> str:
    """What is to be seen in a figure, or in one of its axes, as `attention_map` described it.

    Returns:
        The text; "" where it drew nothing.
    """
    check_instance((Axes, FigureBase), drawn=drawn)
    ax = drawn if isinstance(drawn, Axes) else None
    carried = getattr(drawn.figure.figure, "_repr_mimebundle_", None)
    return carried.text(ax) if isinstance(carried, _Descriptions) else ""


def save_figure(drawn: Axes | FigureBase, path: str | os.PathLike, *, title: str = "") -> Path:
    """Write a figure as PNG or SVG with its description inside, all of it or nothing.

    Args:
        drawn: the figure, or axes in it.
        path: ends in `.png` or `.svg`.
        title: of the file's metadata; the title of the first axes if not given.

    Returns:
        The path.

    Raises:
        TypeError: one of them is of another type.
        ValueError: the path ends otherwise.
    """
    check_instance((Axes, FigureBase), drawn=drawn)
    check_instance((str, os.PathLike), path=path)
    check_instance(str, title=title)
    path = Path(path)
    if path.suffix.lower() not in {".png", ".svg"}:
        raise ValueError(f"path must end in .png or .svg, which can carry a description, got {path.name!r}")
    figure = drawn.figure.figure
    title = title or next(filter(None, map(title_of, figure.axes)), "")
    metadata = {"Title": title or "Attention weights", "Description": description_of(figure)}
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:].lower(), metadata=metadata)
    write_whole(path, content.getvalue())
    return path


def _named(length: int) -> np.ndarray:
    """Positions that get a label: all, or every second, fifth, tenth, … so that no more than 24 do."""
    steps = (digit * 10**power for power in range(12) for digit in (1, 2, 5))
    return np.arange(0, length, next(step for step in steps if -(-length // step) <= MOST_LABELS))


def _labels(labels: Sequence[str] | None, positions: np.ndarray) -> list[str]:
    if labels is None:
        return [str(i) for i in positions]
    names = readable_labels(labels)
    return [shortened(names[i]) for i in positions]
