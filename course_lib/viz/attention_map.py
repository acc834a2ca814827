"""A picture of attention weights: queries on rows, keys on columns, always on a scale from 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import seaborn as sns
from matplotlib.axes import Axes
from torch import Tensor

from course_lib.viz.style import PALETTE, WEIGHTS

__all__ = ["attention_map"]

MOST_VALUES = 8  # rows or columns up to which the numbers are printed into the cells


def attention_map(
    weights: Tensor,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    *,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw the weights of one attention as a heat map.

    Args:
        weights: `(L_q, L_k)`, each in [0, 1].
        queries: a label a row; positions if not given.
        keys: a label a column; positions if not given.
        title: text above.
        ax: where to draw; new axes if not given.

    Returns:
        The axes.

    Raises:
        ValueError: weights is not a matrix, has entries outside [0, 1] or not finite, or the labels do not fit it.
    """
    if weights.dim() != 2 or 0 in weights.shape:
        raise ValueError(
            f"weights must be a matrix (L_q, L_k) with at least one entry, got {tuple(weights.shape)}; "
            f"choose one sentence and one head, weights[batch, head]"
        )
    len_q, len_k = weights.shape
    for name, labels, length in (("queries", queries, len_q), ("keys", keys, len_k)):
        if labels is not None and len(labels) != length:
            raise ValueError(f"{name} must have a label for each of the {length}, got {len(labels)}")
    array = weights.detach().cpu().double().numpy()
    slack = 1e-3  # of half precision, whose rounded weights may pass 1 a little
    if not ((array >= -slack) & (array <= 1 + slack)).all():
        raise ValueError(
            f"weights must lie in [0, 1], got {array.min():.3f} … {array.max():.3f}; are these scores? Apply a softmax"
        )
    if ax is None:
        _, ax = plt.subplots(figsize=(1.6 + 0.6 * min(len_k, 12), 1.2 + 0.5 * min(len_q, 12)))
    with_values = max(len_q, len_k) <= MOST_VALUES
    sns.heatmap(
        array,
        ax=ax,
        vmin=0.0,
        vmax=1.0,
        cmap=WEIGHTS,
        cbar=False,
        square=True,
        annot=with_values,
        fmt=".2f",
        annot_kws={"fontsize": 9},
        linewidths=1.0 if with_values else 0.0,
        linecolor=PALETTE["grid"],
        xticklabels=list(keys) if keys is not None else "auto",
        yticklabels=list(queries) if queries is not None else "auto",
    )
    ax.set_xlabel("key", color=PALETTE["key"])
    ax.set_ylabel("query", color=PALETTE["query"])
    ax.tick_params(axis="x", labelrotation=0 if len_k <= 6 else 45, length=0)
    ax.tick_params(axis="y", labelrotation=0, length=0)
    ax.set_title(title)
    return ax
