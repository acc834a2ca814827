"""Draw the map of chapters on the title page.

    python -m tools.chapter_map     writes book/_static/chapters.svg

Chapters that exist are links; the others are named and drawn in grey, so that the map never promises a page that is not
there.
"""

from __future__ import annotations

from pathlib import Path

from course_lib.chapters import CHAPTERS
from tools.pages import all_pages
from tools.publisher import ROOT

TARGET = ROOT / "book/_static/chapters.svg"

COLUMNS = 3
WIDTH, HEIGHT, GAP = 190, 62, 26


def svg() -> str:
    """The map as an SVG element with a title and a description."""
    existing = {Path(page.name).name for page in all_pages()}
    shapes = []
    for number, (stem, name, line) in enumerate(CHAPTERS, 1):
        row, column = divmod(number - 1, COLUMNS)
        x, y = 2 + column * (WIDTH + GAP), 2 + row * (HEIGHT + GAP)
        state = "ready" if stem in existing else "planned"
        box = (
            f'<rect class="box {state}" x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="8"/>'
            f'<text x="{x + 14}" y="{y + 27}">{number}  {name}</text>'
            f'<text class="small" x="{x + 14}" y="{y + 47}">{line if state == "ready" else "being written"}</text>'
        )
        shapes.append(f'<a href="{stem}.html">{box}</a>' if stem in existing else f'<g opacity="0.55">{box}</g>')
        if number == len(CHAPTERS):
            break
        if column < COLUMNS - 1:
            shapes.append(f'<path d="M{x + WIDTH} {y + HEIGHT / 2} h{GAP}"/>')
        else:  # on to the next row
            middle = y + HEIGHT + GAP / 2
            shapes.append(f'<path d="M{x + WIDTH / 2} {y + HEIGHT} V{middle} H{2 + WIDTH / 2} V{y + HEIGHT + GAP}"/>')
    rows = -(-len(CHAPTERS) // COLUMNS)
    width, height = 4 + COLUMNS * WIDTH + (COLUMNS - 1) * GAP, 4 + rows * HEIGHT + (rows - 1) * GAP
    ready = [name for stem, name, *_ in CHAPTERS if stem in existing]
    return (
        f'<div class="chapter-map"><svg viewBox="0 0 {width} {height}" role="group" aria-labelledby="map-t map-d" '
        f'xmlns="http://www.w3.org/2000/svg"><title id="map-t">Map of the chapters</title>'
        f'<desc id="map-d">{len(CHAPTERS)} chapters in reading order. Ready: {", ".join(ready)}.</desc>'
        f"{''.join(shapes)}</svg></div>\n"
    )


if __name__ == "__main__":
    TARGET.write_text(svg(), encoding="utf-8")
    print(f"{TARGET.relative_to(ROOT)} written")
