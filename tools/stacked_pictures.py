"""Figures for a phone: the panels of a wide figure below each other, so that its text can be read.

A column of text is 358 pixels wide on a phone of 390. There, a figure is narrow enough, or its panels are stacked in a
second picture. What is still too wide keeps the width that its smallest text needs, and its frame scrolls sideways.
"""

from __future__ import annotations

import math

import numpy as np
from PIL import Image

from tools.figure_panels import ENTRIES, Panel, Row, find_panels, runs

COLUMN = 358  # pixels for a figure on a phone of 390
LEGIBLE = 10  # pixels from line to line that text needs at least
PAPER = 245  # what is paler is paper
MARGIN, BETWEEN = 6, 18  # pixels around the stacked picture, and between its pieces
WORTH = 0.85  # a stacked picture is at most this wide, as a share of the figure
LABEL = 9  # how far a label of the vertical axis may reach beyond the axis' ends


def least_width(width: int, points: float, dpi: float) -> int:
    """Pixels that a picture of this width needs for its smallest text to be legible."""
    return math.ceil(width * LEGIBLE / (points / 72 * dpi))


def stacked(picture: Image.Image, points: float, dpi: float) -> Image.Image | None:
    """The figure with its panels stacked; None if it is narrow enough, has one panel only, or cannot be taken apart.

    Args:
        picture: the figure on white.
        points: size of its smallest text.
        dpi: pixels per inch.
    """
    if least_width(picture.width, points, dpi) <= COLUMN:
        return None
    pixels = np.asarray(picture.convert("RGB"))
    rows = find_panels(_ink(pixels))
    if rows is None:
        return None
    fits = int(COLUMN * (points / 72 * dpi) / LEGIBLE) - 2 * MARGIN
    pieces = [_trimmed(piece) for row in rows for piece in (_beside if row.panels else _wrapped)(pixels, row, fits)]
    width = max(piece.shape[1] for piece in pieces) + 2 * MARGIN
    if width > WORTH * picture.width:
        return None
    height = sum(len(piece) + BETWEEN for piece in pieces) - BETWEEN + 2 * MARGIN
    sheet, top = np.full((height, width, 3), 255, np.uint8), MARGIN
    for piece in pieces:
        sheet[top : top + len(piece), MARGIN : MARGIN + piece.shape[1]] = piece
        top += len(piece) + BETWEEN
    return Image.fromarray(sheet)


def _ink(pixels: np.ndarray) -> np.ndarray:
    red, green, blue = np.moveaxis(pixels, 2, 0)
    return np.minimum(np.minimum(red, green), blue) < PAPER


def _trimmed(piece: np.ndarray) -> np.ndarray:
    """A piece without blank rows above and below."""
    ((start, stop),) = runs(_ink(piece).any(axis=1), len(piece))
    return piece[start:stop]


def _beside(pixels: np.ndarray, row: Row, fits: int) -> list[np.ndarray]:
    """A row of panels in as few pieces as fit, of one panel or several."""
    count = len(row.panels)
    for pieces in range(1, count + 1):
        each = math.ceil(count / pieces)
        cut = [_piece(pixels, row, row.panels[i : i + each]) for i in range(0, count, each)]
        if max(piece.shape[1] for piece in cut) <= fits:
            break
    return cut


def _piece(pixels: np.ndarray, row: Row, panels: tuple[Panel, ...]) -> np.ndarray:
    """Panels cut out, with the labels of the vertical axis where only another panel of the row has them."""
    first = panels[0]
    columns = slice(first.columns[0], panels[-1].columns[1])
    cut = pixels[slice(*row.rows), columns]
    if row.below:
        cut = np.concatenate([cut, pixels[slice(*row.below), columns]])
    source = next((panel for panel in row.panels if first.shares(panel)), None)
    if source is None:
        return cut
    width, overhang = source.axis - source.columns[0], first.axis - first.columns[0]
    piece = np.full((len(cut), max(width - overhang, 0) + cut.shape[1], 3), 255, np.uint8)
    piece[:, max(width - overhang, 0) :] = cut
    top, bottom = max(source.height[0] - LABEL, row.rows[0]), min(source.height[1] + LABEL, row.rows[1])
    labels = pixels[top:bottom, source.columns[0] : source.axis - LABEL + 2]
    left = max(overhang - width, 0)
    place = piece[top - row.rows[0] : bottom - row.rows[0], left : left + labels.shape[1]]
    np.minimum(place, labels, out=place)
    return piece


def _wrapped(pixels: np.ndarray, strip: Row, fits: int) -> list[np.ndarray]:
    """A title or legend in as many lines as it needs; entries stay whole."""
    band = pixels[slice(*strip.rows)]
    lines: list[list[int]] = []
    for start, stop in runs(_ink(band).any(axis=0), ENTRIES // 2 + 1):
        if lines and stop - lines[-1][0] <= fits:
            lines[-1][1] = stop
        else:
            lines.append([start, stop])
    return [band[:, start:stop] for start, stop in lines]
