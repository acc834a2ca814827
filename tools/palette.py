"""Write the book's colours from the figures' palette, so that text, diagrams and figures agree.

    python -m tools.palette     writes book/_static/palette.css

In dark mode the book turns the lightness of figures round with the CSS filter below. The dark colours are what that
filter makes of the light ones, so a word coloured as a query has the colour that queries have in the figure beside it.
"""

from __future__ import annotations

from course_kit.viz.style import DARK, INVERT, PALETTE
from tools.publisher import ROOT

TARGET = ROOT / "book/_static/palette.css"


def stylesheet() -> str:
    """The contents of palette.css."""
    light = "".join(f"  --{role}: {colour};\n" for role, colour in PALETTE.items())
    darkened = "".join(f"  --{role}: {colour};\n" for role, colour in DARK.items())
    return (
        "/* Written by `python -m tools.palette` from course_kit/viz/style.py; edit it there. */\n"
        f":root {{\n{light}  --figure-filter: none;\n}}\n"
        f'html[data-theme="dark"] {{\n{darkened}  --figure-filter: invert({INVERT}) hue-rotate(180deg);\n}}\n'
    )


if __name__ == "__main__":
    TARGET.write_text(stylesheet(), encoding="utf-8")
    print(f"{TARGET.relative_to(ROOT)} written")
