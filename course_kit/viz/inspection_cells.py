"""The map that two views share: parts of a model as rows, positions as columns, and one cell that is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from course_kit.viz.view_elements import element, text_of

__all__ = ["MOST_CELLS", "Cell", "cell_map", "check_cells"]

MOST_CELLS, MOST_COLUMNS = 1024, 128

# The shade is a colour of medium lightness, at most 74 % of it, so that dark text on white paper and light text on dark
# paper both keep a contrast of 4.5.
_STYLE = """<style>
attention-view .cells{display:flex;gap:.5rem;font-size:.82rem;line-height:1.2;margin:.5rem 0}
attention-view .cells div{box-sizing:border-box}
attention-view .places{padding:3px 0;white-space:nowrap}
attention-view .places>div{height:30px;margin:3px 0;display:flex;align-items:center;justify-content:end}
attention-view .cells .ends{height:2.6em;color:var(--muted)}
attention-view .scroll{overflow-x:auto;min-width:0;flex:1}
attention-view [role=grid]{padding:3px;min-width:max-content;max-width:calc(var(--n)*92px)}
attention-view [role=row]{display:grid;grid-template-columns:repeat(var(--n),minmax(52px,1fr));gap:3px;margin:3px 0}
attention-view [role=row]>div{display:flex;align-items:center;justify-content:center;text-align:center;min-width:0}
attention-view [role=row]>div>span{overflow:hidden;text-overflow:ellipsis;white-space:pre;padding:0 2px}
attention-view [role=gridcell]{height:30px;border:1px solid var(--grid);border-radius:3px}
attention-view [role=gridcell]{background:color-mix(in srgb,oklch(.52 .15 285) calc(74%*var(--p)),transparent)}
attention-view [role=gridcell].below{background:color-mix(in srgb,oklch(.52 .13 165) calc(74%*var(--p)),transparent)}
attention-view [role=gridcell]:is(:focus-visible,[aria-selected=true]){position:relative;outline-offset:0}
attention-view .wide{flex-wrap:wrap}
attention-view .wide::before{content:"scrolls sideways \\2194\\FE0E"/"";flex:0 0 100%;color:var(--muted)}
attention-view [role=gridcell].strong{font-weight:700}
attention-view [role=gridcell][aria-selected=true]{box-shadow:0 0 0 2px var(--output);border-color:var(--output)}
</style>"""


@dataclass(frozen=True)
class Cell:
    """One cell.

    Args:
        text: what is written in it.
        shade: in [-1, 1]; from nothing to purple, below 0 to green.
        told: what it holds in words; the names of row and column are put before it.
        strong: whether the text is bold.
    """

    text: str
    shade: float
    told: str
    strong: bool = False


def check_cells(rows: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse a map that is too large.

    Raises:
        ValueError: there are too many cells.
    """
    if len(rows) * len(columns) > MOST_CELLS or len(columns) > MOST_COLUMNS:
        raise ValueError(
            f"expected at most {MOST_CELLS} cells and {MOST_COLUMNS} positions, got {len(rows)} × {len(columns)}; show "
            f"fewer rows or a part of the positions"
        )


def cell_map(
    cells: Sequence[Sequence[Cell]],
    rows: Sequence[str],
    columns: Sequence[str],
    chosen: tuple[int, int],
    *,
    label: str,
    below: str,
    above: tuple[str, Sequence[str]] | None = None,
) -> str:
    """The map as HTML; the first row is at the bottom, where the model begins. Wide maps scroll beside the rows' names.

    Args:
        cells: one sequence per row.
        rows: names of the rows.
        columns: names of the columns, written below; a name may have two lines.
        chosen: row and column of the cell that is marked.
        label: name of the map for screen readers.
        below: what the names of the columns are.
        above: what else is written above the columns: a name, and one word per column.
    """
    lines = [_line(f"{rows[i]} at", cells[i], columns, chosen[1] if i == chosen[0] else -1) for i in range(len(rows))]
    names = [element("div", text_of(name)) for name in rows]
    ends = [_headers(columns)]
    end_names = [element("div", text_of(below), class_="ends")]
    if above:
        ends.append(_headers(above[1]))
        end_names.append(element("div", text_of(above[0]), class_="ends"))
    grid = element(
        "div", *ends[1:], *lines[::-1], ends[0], role="grid", aria_label=label, style=f"--n:{len(columns)}"
    )  # fmt: skip
    return _STYLE + element(
        "div",
        element("div", *end_names[1:], *names[::-1], end_names[0], class_="places", aria_hidden="true"),
        element("div", grid, class_="scroll"),
        class_="cells",
    )


def _line(row: str, cells: Sequence[Cell], columns: Sequence[str], marked: int) -> str:
    drawn = [
        element(
            "div", element("span", text_of(cell.text)), role="gridcell",
            class_=" ".join(["below"] * (cell.shade < 0) + ["strong"] * cell.strong) or None,
            style=f"--p:{min(abs(cell.shade), 1):.3g}", tabindex=0 if j == marked else -1,
            aria_label=f"{row} {columns[j].replace(chr(10), '/')}: {cell.told}",
            aria_selected=str(j == marked).lower(),
        )
        for j, cell in enumerate(cells)
    ]  # fmt: skip
    return element("div", *drawn, role="row")


def _headers(names: Sequence[str]) -> str:
    cells = [element("div", element("span", text_of(name)), role="columnheader", class_="ends") for name in names]
    return element("div", *cells, role="row")
