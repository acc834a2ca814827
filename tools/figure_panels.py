"""Find the panels of a figure: axes, and the labels, titles and legends around them, from the blank space between.

A figure is an array of ink: True where a pixel differs from the paper. Axes are recognised by their lines, a long one
across and a long one down. Everything else (a label, a colour bar, a legend) belongs to the axes beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

GAP = 3  # blank lines of pixels that separate two things
MIN_PART = 0.08  # axes take at least this share of the figure's width and height
MIN_AXES = 0.45  # and at least this share of their panel's width
MIN_PANEL = 0.15  # panels are at least this wide, as a share of the figure; what is narrower is a cell or a box
TICK, REACH = 3, 7  # a tick is found at the first distance from its axis, labels lie beyond the second
APART = 6  # what belongs to different axes is at least this many pixels apart
WORDS, ENTRIES = 12, 33  # pixels between two words, and between two entries of a legend, at most
Span = tuple[int, int]  # first, and one past the last


@dataclass(frozen=True)
class Panel:
    """Axes with what belongs to them.

    Args:
        columns: from its labels on the left to its last ink on the right.
        axis: column of the vertical axis.
        height: rows of the vertical axis.
        ticks: rows of the ticks of the vertical axis.
        labelled: whether anything is written to the left of the axis.
        width: of the axes without their labels.
        filled: whether the axes are coloured from the axis on, as a heat map is.
    """

    columns: Span
    axis: int
    height: Span
    ticks: tuple[int, ...]
    labelled: bool
    width: int
    filled: bool

    def shares(self, other: Panel) -> bool:
        """Whether its vertical axis is that of `other`, which has the labels."""
        if self.labelled or not other.labelled or len(self.ticks) != len(other.ticks):
            return False
        same_height = all(abs(a - b) <= 2 for a, b in zip(self.height, other.height, strict=True))
        alike = bool(self.ticks) or self.filled or abs(self.width - other.width) <= 3
        return same_height and alike


@dataclass(frozen=True)
class Row:
    """Panels beside each other, with the rows of pixels that they fill. Without panels: a title or legend of several.

    `below` are the rows with the labels of its horizontal axes, where they are written below a later row only.
    """

    rows: Span
    panels: tuple[Panel, ...] = ()
    below: Span | None = None


def runs(line: np.ndarray, gap: int = 1) -> list[Span]:
    """Where `line` is True, as spans; blanks shorter than `gap` do not separate two of them."""
    places = np.flatnonzero(line)
    if not places.size:
        return []
    breaks = np.flatnonzero(np.diff(places) > gap)
    starts, stops = places[np.r_[0, breaks + 1]], places[np.r_[breaks, places.size - 1]] + 1
    return list(zip(starts.tolist(), stops.tolist(), strict=True))


def longest(ink: np.ndarray) -> np.ndarray:
    """Length of the longest unbroken vertical line in each column."""
    places = np.arange(1, len(ink) + 1, dtype=np.int16)[:, None]
    last_blank = np.maximum.accumulate(np.where(ink, np.int16(0), places), axis=0)
    return (places - last_blank).max(axis=0, initial=0)


def find_panels(ink: np.ndarray) -> list[Row] | None:
    """The rows of panels of a figure, from top to bottom; None if there are not several, or in doubt."""
    bands = runs(ink.any(axis=1), GAP)
    cores = {}  # the bands that hold axes
    for number, band in enumerate(bands):
        if band[1] - band[0] >= MIN_PART * len(ink) and (panels := _panels(ink, band)):
            cores[number] = panels
    if max(map(len, cores.values()), default=0) < 2:
        return None
    rows: list[Row] = []
    bounds = [
        0,
        *(_bound(ink, bands, a, b, cores[b]) for a, b in pairwise(cores)),
        len(bands),
    ]
    for (core, panels), first, last in zip(cores.items(), bounds, bounds[1:], strict=False):
        rows += _with_labels(ink, bands, core, panels, range(first, last))
    rows = _with_shared_labels(rows)
    return rows if _is_plausible(rows, ink.shape[1]) else None


def _bound(ink: np.ndarray, bands: list[Span], above: int, below: int, panels: tuple[Panel, ...]) -> int:
    """The first band of a row: its title, which begins where an axis does, or else what follows the widest gap."""
    title = below
    while title > above + 1:
        starts = [start for start, _ in runs(ink[slice(*bands[title - 1])].any(axis=0), ENTRIES)]
        if not all(any(abs(start - panel.axis) <= 6 for panel in panels) for start in starts):
            break
        title -= 1
    if title < below:
        return title
    return above + 1 + int(np.argmax([bands[i + 1][0] - bands[i][1] for i in range(above, below)]))


def _with_labels(ink: np.ndarray, bands: list[Span], core: int, panels: tuple[Panel, ...], own: range) -> list[Row]:
    """The axes of band `core` with the bands of labels that keep the panels apart; others stay by themselves."""
    low, high = core, core + 1
    while low > own.start and (more := _panels(ink, (bands[low - 1][0], bands[high - 1][1]), like=panels)):
        if _spans(ink[slice(*bands[low - 1])], more, WORDS):
            break
        low, panels = low - 1, more
    while high < own.stop and (more := _panels(ink, (bands[low][0], bands[high][1]), like=panels)):
        if high > core + 1 and _spans(ink[slice(*bands[high])], more, ENTRIES):  # the first has the ticks' labels
            break
        high, panels = high + 1, more
    strips = [Row(bands[i]) for i in own if not low <= i < high]
    row = Row((bands[low][0], bands[high - 1][1]), panels)
    return [*(s for s in strips if s.rows < row.rows), row, *(s for s in strips if s.rows > row.rows)]


def _spans(ink: np.ndarray, panels: tuple[Panel, ...], gap: int) -> bool:
    """Whether something in a band goes on from one panel to the next, as the title or legend of several does."""
    parts = runs(ink.any(axis=0), gap)
    return any(start < panel.columns[1] < stop for start, stop in parts for panel in panels[:-1])


def _panels(ink: np.ndarray, rows: Span, like: tuple[Panel, ...] = ()) -> tuple[Panel, ...] | None:
    """The panels in some rows, from left to right; None where there are none, or not as many as in `like`."""
    part = ink[slice(*rows)]
    pieces, tall = runs(part.any(axis=0), GAP), longest(part)
    axes = [i for i, (a, b) in enumerate(pieces) if _is_axes(part[:, a:b], tall[a:b], ink.shape[1])]
    if not axes or (like and len(axes) != len(like)):
        return None
    cuts = [pieces[0][0]]
    for left, right in pairwise(axes):
        bars = [i for i in range(left + 1, right) if _is_bar(tall[slice(*pieces[i])], tall[slice(*pieces[left])])]
        after = bars[-1] if bars else left  # a colour bar belongs to the axes before it
        blanks = [pieces[i + 1][0] - pieces[i][1] for i in range(after, right)]
        wide = [i for i, blank in enumerate(blanks) if blank >= APART and not bars]
        cuts.append(pieces[after + 1 + (wide[0] if wide else int(np.argmax(blanks)))][0])
    stops = [max(stop for start, stop in pieces if start < cut) for cut in [*cuts[1:], ink.shape[1]]]
    return tuple(_panel(part, tall, span, pieces[i], rows[0]) for *span, i in zip(cuts, stops, axes, strict=True))


def _is_axes(ink: np.ndarray, tall: np.ndarray, width: int) -> bool:
    if ink.shape[1] < MIN_PART * width:
        return False
    places = np.flatnonzero(ink.any(axis=1))
    return bool(tall.max() >= 0.35 * (places[-1] - places[0] + 1) and _has_line(ink))


def _has_line(ink: np.ndarray) -> bool:
    """Whether a line runs across at least half of the piece; only rows with that much ink are looked at."""
    full = ink[ink.sum(axis=1) >= 0.5 * ink.shape[1]]
    return bool(len(full)) and longest(full.T).max() >= 0.5 * ink.shape[1]


def _is_bar(tall: np.ndarray, axes: np.ndarray) -> bool:
    """Whether a narrow piece is a colour bar: a box nearly as high as the axes."""
    return bool(len(tall) >= 8 and tall.max() >= 0.5 * axes.max())


def _panel(ink: np.ndarray, tall: np.ndarray, span: list[int], axes: Span, top: int) -> Panel:
    inside = tall[axes[0] : axes[1]]
    axis = axes[0] + int(np.argmax(inside >= 0.8 * inside.max()))
    first, last = max(runs(ink[:, axis]), key=lambda run: run[1] - run[0])
    beside = ink[max(first - 2, 0) : last + 2, axis - TICK] if axis - TICK >= span[0] else np.zeros(0, bool)
    labelled = bool(ink[first : last - 12, span[0] : max(axis - REACH, span[0])].any())
    ticks = tuple(top + first + start for start, _ in runs(beside))
    filled = bool(ink[first:last, axis + TICK : axis + REACH].mean() > 0.3)
    return Panel((span[0], span[1]), axis, (top + first, top + last), ticks, labelled, axes[1] - axis, filled)


def _with_shared_labels(rows: list[Row]) -> list[Row]:
    """Rows with nothing below their axes get the labels of the row below, if that has as many panels."""
    found: list[Row] = []
    for row in reversed(rows):
        if found and len(row.panels) == len(found[0].panels) > 1 and _end(row) >= row.rows[1] - REACH:
            labels = found[0].below or (_end(found[0]) + TICK, found[0].rows[1])
            row = replace(row, below=labels)
        found.insert(0, row)
    return found


def _end(row: Row) -> int:
    return max(panel.height[1] for panel in row.panels)


def _is_plausible(rows: list[Row], width: int) -> bool:
    counts = [len(row.panels) for row in rows]
    panels = [panel for row in rows for panel in row.panels]
    widths = [panel.columns[1] - panel.columns[0] for panel in panels]
    axes_only = [count for count in counts if count]
    return (
        max(counts) > 1
        and axes_only == sorted(axes_only, reverse=True)  # a first row with fewer panels is a diagram
        and 0 not in np.trim_zeros(counts)  # what spans several panels is above or below all of them
        and any(panel.labelled for panel in panels)
        and float(np.median(widths)) >= MIN_PANEL * width
        and all(panel.width >= MIN_AXES * wide for panel, wide in zip(panels, widths, strict=True))
    )
