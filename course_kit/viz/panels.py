"""Where the panels of a figure are, and how small its text is: the book stacks the panels for a phone.

Only matplotlib knows both exactly, and only while it draws. Notebooks keep them in the metadata of the picture.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.transforms import Bbox, BboxBase

__all__ = ["layout_of"]

ALIKE = 2  # pixels: axes that differ by less are as wide or as high as each other
Part = list[float]  # a box, and where what is inside is moved to, if anywhere: [left, top, right, bottom, dx, dy]
Borrowed = tuple[BboxBase, float, float]  # a box of something else, in pixels, and the way from there


def layout_of(figure: Figure) -> dict[str, object]:
    """What a picture of the figure, drawn as notebooks do, says of itself.

    `points` is the size of its smallest text; without it where there is none. `panels` are its rows, from top to
    bottom, each with its panels from left to right; without it where they cannot be taken apart. A panel is a list of
    boxes: its own, then those of labels which only another panel has, each with the way from there to where they
    belong. All numbers are shares of the width and height of the picture, from the top left.
    """
    renderer = _Recorder(*figure.bbox.size, figure.dpi)
    before = [(ax, ax.get_position(original=True), ax.get_in_layout()) for ax in figure.axes]
    figure.draw(renderer)
    said: dict[str, object] = {"points": min(renderer.sizes)} if renderer.sizes else {}
    things = [*_panels(figure, renderer), *_strips(figure, renderer)]
    rows = _rows(things)
    tied = figure.lines or figure.patches or figure.artists or figure.images or figure.subfigs
    counts = [count for row in rows if (count := sum(bool(thing.axes) for thing in row))]
    in_order = counts == sorted(counts, reverse=True)  # a first row with fewer panels is a diagram
    if len(things) > 1 and not tied and in_order and not _overlap([thing.box for thing in things]):
        paper = figure.get_tightbbox(renderer).padded(mpl.rcParams["savefig.pad_inches"])
        paper = Bbox(paper.get_points() * figure.dpi)
        said["panels"] = [
            [[_shares(*part, paper) for part in ((thing.box, 0.0, 0.0), *thing.borrowed)] for thing in row]
            for row in rows
        ]
    for ax, place, in_layout in before:  # where the layout begins decides where it ends
        ax.set_position(place)
        ax.set_in_layout(in_layout)
    return said


class _Recorder(RendererAgg):
    """Draws, and writes down how large text is, in points, instead of writing it."""

    def __init__(self, width: float, height: float, dpi: float):
        super().__init__(width, height, dpi)
        self.sizes: list[float] = []

    def draw_text(self, gc, x, y, s, prop, angle, ismath=False, mtext=None) -> None:
        if s.strip():
            self.sizes.append(round(float(prop.get_size_in_points()), 3))


@dataclass
class _Thing:
    """What stays together: axes with what belongs to them, a title of the figure, or an entry of its legend.

    Args:
        box: in pixels, from the bottom left.
        axes: the axes that are on top of each other.
        borrowed: from elsewhere.
    """

    box: BboxBase
    axes: list[Axes]
    borrowed: list[Borrowed]


def _panels(figure: Figure, renderer: _Recorder) -> list[_Thing]:
    panels: list[_Thing] = []
    bars = []
    for ax in figure.axes:
        box = ax.get_tightbbox(renderer)
        if box is None or not (ax.axison or ax.has_data() or ax.texts or ax.get_legend()):
            continue  # nothing to be seen
        parents = getattr(ax, "_colorbar_info", {}).get("parents", ())
        below = next((panel for panel in panels if _overlap([ax.bbox, panel.axes[0].bbox])), None)
        owner = next((panel for panel in panels if parents and parents[-1] in panel.axes), None)
        if owner and (len(parents) == 1 or ax.bbox.height > ax.bbox.width):  # a bar below several is a panel
            bars.append((ax, box, owner))
        elif below:  # a second axis on the right, for instance
            below.box, below.axes = Bbox.union([below.box, box]), [*below.axes, ax]
        else:
            panels.append(_Thing(box, [ax], []))
    for ax, box, owner in bars:  # a colour bar belongs to its axes, or to the last of them
        if box.height <= owner.box.height:
            owner.box = Bbox.union([owner.box, box])
        else:  # one for several rows
            owner.borrowed.append((box, 0.0, sum(owner.axes[0].bbox.intervaly - ax.bbox.intervaly) / 2))
    for panel in panels:
        panel.borrowed += [*_labels(panel, panels, renderer, 0), *_labels(panel, panels, renderer, 1)]
    return panels


def _labels(panel: _Thing, panels: list[_Thing], renderer: _Recorder, way: int) -> Iterable[Borrowed]:
    """The labels of the axis below (way 0) or on the left (way 1), if only another panel with this axis has them."""
    mine = panel.axes[0]
    if not mine.axison or _written(mine, renderer, way):
        return
    span, limits = _span(mine, way), (mine.get_xlim, mine.get_ylim)[way]()
    for other in reversed(panels):
        ax = other.axes[0]
        labels, same = _written(ax, renderer, way), (ax.get_xlim, ax.get_ylim)[way]() == limits
        fits = all(abs(a - b) < ALIKE for a, b in zip(span, _span(ax, way), strict=True))
        edge = _span(ax, 1 - way)[0]
        if labels and same and fits and labels.get_points()[1, 1 - way] <= edge + ALIKE:
            distance = _span(mine, 1 - way)[0] - edge
            yield (labels, distance, 0.0) if way else (labels, 0.0, distance)
            return


def _span(ax: Axes, way: int) -> np.ndarray:
    return ax.bbox.intervaly if way else ax.bbox.intervalx


def _written(ax: Axes, renderer: _Recorder, way: int) -> BboxBase | None:
    """The box of the labels of an axis."""
    axis: Axis = ax.yaxis if way else ax.xaxis
    texts = (*axis.get_ticklabels(which="both"), axis.label)
    written = ax.axison and any(text.get_visible() and text.get_text() for text in texts)
    return axis.get_tightbbox(renderer) if written else None


def _strips(figure: Figure, renderer: _Recorder) -> list[_Thing]:
    """Titles and legends of the whole figure; a legend in several columns falls into its entries."""
    boxes = [text.get_window_extent(renderer) for text in figure.texts if text.get_visible() and text.get_text()]
    for legend in figure.legends:
        entries = [_entry(legend, text.get_window_extent(renderer)) for text in legend.get_texts()]
        in_columns = len({round(box.x0) for box in entries}) > 1
        boxes += entries if in_columns else [legend.get_window_extent(renderer)]
    return [_Thing(box, [], []) for box in boxes]


def _entry(legend: Legend, text: BboxBase) -> Bbox:
    """The box of a legend's text and of the line or patch before it."""
    points = (legend.handlelength + legend.handletextpad) * legend.get_texts()[0].get_fontsize()
    return Bbox.from_extents(text.x0 - points / 72 * legend.figure.dpi, text.y0, text.x1, text.y1)


def _overlap(boxes: list[BboxBase]) -> bool:
    """Whether two of the boxes have more than a thin edge in common."""
    pairs = ((a, b) for i, a in enumerate(boxes) for b in boxes[:i])
    both = (Bbox.intersection(a, b) for a, b in pairs)
    return any(box is not None and min(box.width, box.height) > ALIKE for box in both)


def _rows(things: list[_Thing]) -> list[list[_Thing]]:
    """Rows in reading order: what stands side by side for more than half its height is in one row."""
    rows: list[list[_Thing]] = []
    for thing in sorted(things, key=lambda thing: -thing.box.y1):
        if rows:
            low, high = min(other.box.y0 for other in rows[-1]), max(other.box.y1 for other in rows[-1])
            shared = min(high, thing.box.y1) - max(low, thing.box.y0)
            if shared > min(thing.box.height, high - low) / 2:
                rows[-1].append(thing)
                continue
        rows.append([thing])
    return [sorted(row, key=lambda thing: (thing.box.x0, -thing.box.y1)) for row in rows]


def _shares(box: BboxBase, dx: float, dy: float, paper: Bbox) -> Part:
    left, right = ((x - paper.x0) / paper.width for x in box.intervalx)
    top, bottom = ((paper.y1 - y) / paper.height for y in (box.y1, box.y0))
    moved = (dx / paper.width, 0.0 - dy / paper.height) if dx or dy else ()
    return [round(float(share), 3) for share in (left, top, right, bottom, *moved)]
