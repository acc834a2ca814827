"""Write the book's colours from the figures' palette, so that text, diagrams and figures agree.

    python -m tools.palette     writes book/_static/palette.css

In dark mode the book turns the lightness of figures round with the CSS filter below. The dark colours are what that
filter makes of the light ones, so a word coloured as a query has the colour that queries have in the figure beside it.
"""

from __future__ import annotations

from course_lib.viz.style import PALETTE
from tools.publisher import ROOT

TARGET = ROOT / "book/_static/palette.css"
INVERT = 0.93  # white paper becomes nearly the page's dark grey


def dark(colour: str) -> str:
    """What `invert(0.93) hue-rotate(180deg)` makes of a colour "#rrggbb" (Filter Effects Module Level 1)."""
    red, green, blue = (INVERT - int(colour[i : i + 2], 16) / 255 * (2 * INVERT - 1) for i in (1, 3, 5))
    turned = (
        -0.574 * red + 1.430 * green + 0.144 * blue,
        0.426 * red + 0.430 * green + 0.144 * blue,
        0.426 * red + 1.430 * green - 0.856 * blue,
    )
    return "#" + "".join(f"{round(255 * min(max(c, 0.0), 1.0)):02x}" for c in turned)


def stylesheet() -> str:
    """The contents of palette.css."""
    light = "".join(f"  --{role}: {colour};\n" for role, colour in PALETTE.items())
    darkened = "".join(f"  --{role}: {dark(colour)};\n" for role, colour in PALETTE.items())
    return (
        "/* Written by `python -m tools.palette` from course_lib/viz/style.py; edit it there. */\n"
        f":root {{\n{light}  --figure-filter: none;\n}}\n"
        f'html[data-theme="dark"] {{\n{darkened}  --figure-filter: invert({INVERT}) hue-rotate(180deg);\n}}\n'
    )


if __name__ == "__main__":
    TARGET.write_text(stylesheet(), encoding="utf-8")
    print(f"{TARGET.relative_to(ROOT)} written")
