"""The look of the book: one colour a role, wherever the role appears.

The colours of query, key and value are Okabe and Ito's, which stay apart for the colour-blind. Figures are drawn on
white; in dark mode the book turns their lightness round and keeps their hue.
"""

from __future__ import annotations

import matplotlib as mpl
from matplotlib.colors import LinearSegmentedColormap

__all__ = ["DARK", "PALETTE", "SERIES", "WEIGHTS", "use_style"]

PALETTE = {
    "query": "#0072b2",  # blue: what is looked for
    "key": "#c04f00",  # vermilion, darkened until it reads as text on white
    "value": "#00795a",  # green, darkened likewise
    "output": "#8a3f9e",  # purple: the average that comes out
    "ink": "#1b2330",
    "muted": "#667085",
    "grid": "#dfe3ea",
}

INVERT = 0.93  # in dark mode white paper becomes nearly the page's dark grey


def dark(colour: str) -> str:
    """What the CSS filter of dark pages, `invert(0.93) hue-rotate(180deg)`, makes of a colour "#rrggbb".

    Source: Filter Effects Module Level 1.
    """
    red, green, blue = (INVERT - int(colour[i : i + 2], 16) / 255 * (2 * INVERT - 1) for i in (1, 3, 5))
    turned = (
        -0.574 * red + 1.430 * green + 0.144 * blue,
        0.426 * red + 0.430 * green + 0.144 * blue,
        0.426 * red + 1.430 * green - 0.856 * blue,
    )
    return "#" + "".join(f"{round(255 * min(max(c, 0.0), 1.0)):02x}" for c in turned)


# The same roles on a dark page: what the filter makes of a figure, so that words, figures and views agree.
DARK = {role: dark(colour) for role, colour in PALETTE.items()}

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
            "figure.hooks": ["course_kit.viz.attention_map:carried_by"],
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
