"""The weights of all heads of one attention side by side, on one scale."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from torch import Tensor

from course_kit._checks import check_whole
from course_kit.viz.attention_map import MOST_VALUES, carry, draw
from course_kit.viz.describing import checked, sentences

__all__ = ["heads_map"]

WIDTH = 7.6  # inches of the whole figure: the book's column


def heads_map(
    weights: Tensor,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    *,
    columns: int | None = None,
) -> np.ndarray:
    """Draw the weights of every head, each as `attention_map` does, with one scale for all.

    Labels count from 1, as the text does: head 1 is `weights[0]`.

    Args:
        weights: `(H, L_q, L_k)`, each in [0, 1].
        queries: a label a row; positions if not given.
        keys: a label a column; positions if not given.
        columns: maps in a row; as many as fit the page if not given.

    Returns:
        An array of H axes; `axes[h]` shows `weights[h]` and has the title of head h + 1: "head 1" is `axes[0]`.

    Raises:
        TypeError: weights is no tensor, or columns is not a whole number.
        ValueError: weights has another shape, no entries, NaN, or entries outside [0, 1], the labels do not fit, or
            columns is less than 1.
    """
    array = checked(weights, queries, keys, heads=True)
    num_heads, len_q, len_k = array.shape
    with_values = max(len_q, len_k) <= MOST_VALUES
    panel = 0.5 + 0.3 * max(len_k, 3) if with_values else 1.8
    if columns is None:
        columns = min(num_heads, max(1, int(WIDTH / panel)))
    check_whole(columns=columns, most=1000, hint="; leave it out to fill the page's width")
    rows = -(-num_heads // columns)
    height = 0.5 + (panel - 0.5) * min(max(len_q / len_k, 0.3), 3.0)
    figure, grid = plt.subplots(
        rows, columns, figsize=(panel * columns + 0.6, height * rows + 0.4), squeeze=False, layout="constrained"
    )
    axes = grid.ravel()
    for ax in axes[num_heads:]:
        ax.remove()
    axes = axes[:num_heads]
    for head, ax in enumerate(axes):
        mesh = draw(array[head], queries, keys, ax, fontsize=7, most_labels=MOST_VALUES if with_values else 6)
        ax.tick_params(labelsize=7.5)
        ax.set_title(f"head {head + 1}", fontsize=9)
        if head % columns:
            ax.set(ylabel="", yticks=[])
        if head + columns < num_heads:
            ax.set(xlabel="", xticks=[])
        if head == 0:
            first = mesh
    if not with_values:
        figure.colorbar(first, ax=list(axes), ticks=[0, 0.5, 1], label="weight", shrink=0.8)
    carry(first, sentences(weights, queries, keys), axes=list(axes))
    return axes
