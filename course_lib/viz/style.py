"""The look of the book: one colour a role, wherever the role appears.

The colours of query, key and value are Okabe and Ito's, which stay apart for the colour-blind. Figures are drawn on
white; in dark mode the book turns their lightness round and keeps their hue.
"""

from __future__ import annotations

import matplotlib as mpl
from matplotlib.colors import LinearSegmentedColormap

__all__ = ["PALETTE", "SERIES", "WEIGHTS", "use_style"]

PALETTE = {
    "query": "#0072b2",  # blue: what is looked for
    "key": "#c04f00",  # vermilion, darkened until it reads as text on white
    "value": "#00795a",  # green, darkened likewise
    "output": "#8a3f9e",  # purple: the average that comes out
    "ink": "#1b2330",
    "muted": "#667085",
    "grid": "#dfe3ea",
}

# For curves that stand for no role: apart in lightness as well as in hue.
SERIES = ("#3b3480", "#c2558e", "#9a7d0a")

# From nothing to all: weights between 0 and 1, in the colour of no role.
WEIGHTS = LinearSegmentedColormap.from_list("weights", ["#ffffff", "#c9c6e6", "#7d76b8", "#3b3480", "#1a1446"])


def use_style() -> None:
    """Set matplotlib's defaults to the style of the book, for all figures after this call."""
    mpl.rcParams.update(
        {
            "figure.figsize": (7.2, 3.4),
            "figure.dpi": 110,
            "figure.facecolor": "white",
            "figure.constrained_layout.use": True,
            "savefig.facecolor": "white",
            "font.family": "DejaVu Sans",  # comes with matplotlib, so it is the same on every machine
            "font.size": 10.5,
            "text.color": PALETTE["ink"],
            "axes.labelcolor": PALETTE["ink"],
            "axes.edgecolor": PALETTE["muted"],
            "axes.titlesize": 11,
            "axes.titlelocation": "left",
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": False,
            "axes.prop_cycle": mpl.cycler(color=SERIES),
            "grid.color": PALETTE["grid"],
            "xtick.color": PALETTE["ink"],
            "ytick.color": PALETTE["ink"],
            "lines.linewidth": 2.0,
            "legend.frameon": False,
        }
    )
