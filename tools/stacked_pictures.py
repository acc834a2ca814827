"""Figures for a phone: the panels of a wide figure below each other, so that its text can be read.

A column of text is 358 pixels wide on a phone of 390. There, a figure is narrow enough, or its panels are stacked in a
second picture. What is still too wide keeps the width that its smallest text needs, and its frame scrolls sideways.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PIL import Image

COLUMN = 358  # pixels for a figure on a phone of 390
LEGIBLE = 10  # pixels from line to line that text needs at least
PAPER = 245  # what is paler is paper
MARGIN, BETWEEN = 6, 18  # pixels around the stacked picture, and between its pieces
WORTH = 0.85  # a stacked picture is at most this wide, as a share of the figure
SLACK = 3  # pixels around a box: its numbers are rounded, and lines are smoothed
Panel = Sequence[Sequence[float]]  # boxes, as `layout_of` of course_kit/viz/panels.py describes them


def least_width(width: int, points: float, dpi: float) -> int:
    """Pixels that a picture of this width needs for its smallest text to be legible."""
    return math.ceil(width * LEGIBLE / (points / 72 * dpi))


def stacked(
    picture: Image.Image, points: float, dpi: float, panels: Sequence[Sequence[Panel]] = ()
) -> Image.Image | None:
    """The figure with its panels stacked; None if it is narrow enough, would remain too wide, or has one panel only.

    Args:
        picture: the figure on white.
        points: size of its smallest text.
        dpi: pixels per inch.
        panels: rows of panels, as the picture's metadata have them.
    """
    if not panels or least_width(picture.width, points, dpi) <= COLUMN:
        return None
    pixels = np.asarray(picture.convert("RGB"))
    fits = int(COLUMN * (points / 72 * dpi) / LEGIBLE) - 2 * MARGIN
    pieces = [piece for row in panels for piece in _lines(pixels, row, fits)]
    width = max(piece.shape[1] for piece in pieces) + 2 * MARGIN
    if width > WORTH * picture.width:
        return None
    height = sum(len(piece) + BETWEEN for piece in pieces) - BETWEEN + 2 * MARGIN
    sheet, top = np.full((height, width, 3), 255, np.uint8), MARGIN
    for piece in pieces:
        sheet[top : top + len(piece), MARGIN : MARGIN + piece.shape[1]] = piece
        top += len(piece) + BETWEEN
    return Image.fromarray(sheet)


def _lines(pixels: np.ndarray, row: Sequence[Panel], fits: int) -> list[np.ndarray]:
    """A row of panels in as few pieces as fit, of one panel or several."""
    for count in range(1, len(row) + 1):
        each = math.ceil(len(row) / count)
        pieces = [_piece(pixels, row[i : i + each]) for i in range(0, len(row), each)]
        if max(piece.shape[1] for piece in pieces) <= fits:
            break
    return pieces


def _piece(pixels: np.ndarray, panels: Sequence[Panel]) -> np.ndarray:
    """Panels cut out, with labels from elsewhere; those of a vertical axis are for the first panel only."""
    height, width, _ = pixels.shape
    moved = []
    for number, panel in enumerate(panels):
        for left, top, right, bottom, dx, dy in ((*box, 0, 0)[:6] for box in panel):
            if dx and number:
                continue
            x, y = max(math.floor(left * width) - SLACK, 0), max(math.floor(top * height) - SLACK, 0)
            cut = pixels[y : math.ceil(bottom * height) + SLACK, x : math.ceil(right * width) + SLACK]
            moved.append((cut, x + round(dx * width), y + round(dy * height)))
    left, top = min(x for _, x, _ in moved), min(y for _, _, y in moved)
    right, bottom = (max(place[1 + i] + place[0].shape[1 - i] for place in moved) for i in (0, 1))
    piece = np.full((bottom - top, right - left, 3), 255, np.uint8)
    for cut, x, y in moved:
        place = piece[y - top : y - top + cut.shape[0], x - left : x - left + cut.shape[1]]
        np.minimum(place, cut, out=place)
    ink = piece.min(axis=2) < PAPER
    rows, columns = np.flatnonzero(ink.any(axis=1)), np.flatnonzero(ink.any(axis=0))
    return piece[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] if rows.size else piece
