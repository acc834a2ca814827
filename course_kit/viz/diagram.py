"""Diagrams of data flow, drawn from a real call: what a block computes, in which order, with the shapes along the way.

`block_diagram(module, *inputs)` runs the module once, records shapes with forward hooks, and lays out boxes and arrows
as SVG. `diagram_wiring` declares what feeds what for each class; a call that does not go the declared way is an error.
Classes are known by name, so that a learner's own `EncoderLayer` is drawn like the library's.
"""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from course_kit._checks import check_instance
from course_kit._files import write_whole
from course_kit.viz.diagram_wiring import WIRING, Node, Record
from course_kit.viz.style import DARK, PALETTE

__all__ = ["BlockDiagram", "block_diagram"]

# Sizes in CSS pixels. A diagram is at most as wide as a phone's text column.
WIDEST = 364
MARGIN, GAP, ROW_GAP, LANE = 4, 8, 24, 22
NAME_SIZE, SHAPE_SIZE = 12.5, 10.5
CHARACTER = 0.612  # width of a monospace character, as part of its size; DejaVu Sans Mono and Courier have 0.602
FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"


@dataclass(frozen=True)
class Box:
    """Where a node is drawn."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """The x of its centre."""
        return self.x + self.width / 2

    @property
    def bottom(self) -> float:
        """The y of its lower edge."""
        return self.y + self.height

    @property
    def right(self) -> float:
        """The x of its right edge."""
        return self.x + self.width


@dataclass(frozen=True)
class BlockDiagram:
    """The data flow of a module as a picture and as a text.

    A notebook shows it as an SVG that follows the page's light or dark colours; `save` writes a file that stands
    alone.
    """

    title: str
    description: str
    nodes: tuple[_Drawn, ...]
    boxes: dict[str, Box] = field(repr=False)
    arrows: tuple[tuple[tuple[float, float], ...], ...] = field(repr=False)
    size: tuple[float, float]
    _labels: tuple[tuple[float, float, str], ...] = field(repr=False)

    @property
    def svg(self) -> str:
        """The picture as an `<svg>` element for any HTML page. It has no ids, so that any number fit on one page."""
        return self._svg(f"display:block;width:100%;max-width:{self.size[0] * 1.15:.0f}px;height:auto;margin:0 auto")

    def save(self, path: str | os.PathLike) -> Path:
        """Write the picture as an SVG file with colours of its own, all of it or nothing; returns the path.

        Raises:
            ValueError: the path does not end in `.svg`.
        """
        check_instance((str, os.PathLike), path=path)
        path = Path(path)
        if path.suffix.lower() != ".svg":
            raise ValueError(f"path must end in .svg, got {path.name!r}")
        light, night = (
            "".join(f"--{role}:{colour};" for role, colour in palette.items()) + f"color:{palette['ink']}"
            for palette in (PALETTE, DARK)
        )
        style = (
            f"<style>svg{{{light};background:#fff}}"
            f"@media (prefers-color-scheme:dark){{svg{{{night};background:#121212}}}}</style>"
        )
        write_whole(path, '<?xml version="1.0" encoding="UTF-8"?>\n' + self._svg("", style) + "\n")
        return path

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"text/html": f'<div class="course-lib-diagram">{self.svg}</div>', "text/plain": self.description}

    def __repr__(self) -> str:
        return f"BlockDiagram({self.title!r}, {len(self.nodes)} boxes)"

    def _svg(self, css: str, style: str = "") -> str:
        width, height = self.size
        attributes = f'style="{css}"' if css else f'width="{width:g}" height="{height:g}"'
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" {attributes}>',
            f"<title>{html.escape(self.title)}</title><desc>{html.escape(self.description)}</desc>{style}",
            f'<g fill="none" stroke="{_colour("muted")}" stroke-width="1.5" stroke-linejoin="round">',
            *(_arrow(points) for points in self.arrows),
            f'</g><g fill="currentColor" text-anchor="middle" style="font-family:{FONT}">',
            *(_drawn(node, self.boxes[node.name]) for node in self.nodes),
            *(_text(x, y, label, SHAPE_SIZE, anchor="start") for x, y, label in self._labels),
            "</g></svg>",
        ]
        return "".join(parts)


def block_diagram(module: nn.Module, *inputs: Tensor, title: str = "", **options) -> BlockDiagram:
    """Draw the data flow of a block, with the names of its code and the shapes of a real call.

    Known are `FeedForward`, `MultiHeadAttention`, `EncoderLayer`, `DecoderLayer` (post- and pre-norm) and
    `Transformer`, by the name of the class or of one that it inherits from. The module is called once, in eval mode,
    and is left as it was.

    Args:
        module: the block.
        inputs: what to call it with, such as `torch.zeros(2, 5, 8)`.
        title: name of the picture; the class's name if not given.
        options: further arguments of the call, such as `memory_mask=…`.

    Returns:
        The diagram; as the last line of a cell it is shown.

    Raises:
        TypeError: no wiring is known for the module's class, or there are no tensors to call it with.
        ValueError: the order in which the module calls its parts, or a shape, is not that of the wiring.
    """
    check_instance(str, title=title)
    wire = next((WIRING[cls.__name__] for cls in type(module).__mro__ if cls.__name__ in WIRING), None)
    if wire is None:
        raise TypeError(
            f"module must be one of {', '.join(sorted(WIRING))}, got {type(module).__name__}; draw its parts one by "
            f"one, or let the class inherit from one of them"
        )
    if not inputs or not all(isinstance(x, Tensor) for x in inputs):
        got = ", ".join(type(x).__name__ for x in inputs) or "none"
        raise TypeError(f"inputs must be tensors to call {type(module).__name__} with, got {got}; torch.zeros will do")
    record = _call(module, inputs, options)
    try:
        name, nodes = wire(module, record)
    except (KeyError, AttributeError) as error:
        raise ValueError(
            f"expected {type(module).__name__} to have and to call the parts of the course's block of that name, got a "
            f"call without {error}"
        ) from None
    _agrees(module, nodes, record)
    return _laid_out(title or name, nodes)


# The call.


def _call(module: nn.Module, inputs: tuple[Tensor, ...], options: dict) -> Record:
    # The same tensor three times takes a short cut in which the projections are not called; a copy does not.
    inputs = tuple(x.clone() if any(x is other for other in inputs[:i]) else x for i, x in enumerate(inputs))
    record = Record(inputs, options)

    def hook(name: str) -> Callable:
        def keep(_module, args, output):
            record.order.append(name)
            record.taken.setdefault(name, []).append(tuple(args[0].shape))
            record.given.setdefault(name, []).append(tuple(_first(output).shape))

        return keep

    handles = [child.register_forward_hook(hook(name)) for name, child in module.named_children()]
    modes = [(part, part.training) for part in module.modules()]
    try:
        module.eval()
        with torch.no_grad():
            output = module(*inputs, **options)
    finally:
        for part, mode in modes:
            part.training = mode
        for handle in handles:
            handle.remove()
    record.output = output if isinstance(output, tuple) else (output,)
    return record


def _first(output):
    return output[0] if isinstance(output, tuple) else output


def _agrees(module: nn.Module, nodes: Sequence[Node], record: Record) -> None:
    """Every part is drawn, parts are drawn in the order of the call, and one name of an axis has one size."""
    drawn = [node.name.split(" ")[0] for node in nodes if node.kind in {"module", "add"}]
    # A residual wrapper ends after the norm that it calls, so its sum is compared by number, the others by order.
    expected, got = ([name for name in names if name != "residual"] for names in (drawn, record.order))
    wrapped = hasattr(module, "residual")
    if expected != got or (wrapped and drawn.count("residual") != record.order.count("residual")):
        raise ValueError(
            f"expected {type(module).__name__} to call {', '.join(expected)}, got {', '.join(got)}; the diagram is "
            f"made for the course's own block of that name"
        )
    sizes: dict[str, int] = {}
    for node in nodes:
        fits = len(node.axes) == len(node.shape)
        if not fits or any(sizes.setdefault(a, n) != n for a, n in zip(node.axes, node.shape, strict=True)):
            raise ValueError(
                f"expected {node.name} of {type(module).__name__} to give ({', '.join(node.axes)}) with {sizes}, got "
                f"{node.shape}; call it as its documentation says"
            )


# The layout.


def _laid_out(title: str, nodes: list[Node]) -> BlockDiagram:
    """Columns as wide as their widest box, rows one below the other, arrows between them."""
    place = {node.name: node for node in nodes}
    sideways = [label for node in nodes for s, label in node.sources if place[s].row == node.row]
    gap = max([GAP, *(_width(label, SHAPE_SIZE) + 14 for label in sideways)])
    lane = LANE if any(node.skip for node in nodes) else 0
    for tight in (False, True):  # blanks in shapes go where the width is needed
        lines = {node.name: tuple(_tight(line) if tight else line for line in node.lines) for node in nodes}
        widths = _column_widths(nodes, lines, gap)
        total = 2 * MARGIN + lane + sum(widths) + gap * (len(widths) - 1)
        if total <= WIDEST:
            break
    lefts = [MARGIN + lane + sum(widths[:i]) + gap * i for i in range(len(widths))]
    boxes, y = {}, float(MARGIN)
    for row in range(max(node.row for node in nodes) + 1):
        members = [node for node in nodes if node.row == row]
        height = max(_height(node) for node in members)
        for node in members:
            first, last = node.column
            x, width = lefts[first], lefts[last] + widths[last] - lefts[first]
            if node.kind == "add":
                x, width = x + width / 2 - height / 2, height
            boxes[node.name] = Box(x, y, width, height)
        y += height + ROW_GAP
    arrows, labels = [], []
    for node in nodes:
        for source, label in node.sources:
            points, where = _route(boxes[source], boxes[node.name], skip=source == node.skip)
            arrows.append(points)
            if label:
                labels.append((*where(label), label))
        if node.kind == "add":
            box = boxes[node.name]
            labels.append((box.right + 6, box.y + box.height / 2 + SHAPE_SIZE / 3, node.name.split(" ")[0]))
    description = _described(title, nodes)
    size = (round(total, 1), round(y - ROW_GAP + MARGIN, 1))
    drawn = tuple(_Drawn(**{**vars(node), "written": lines[node.name]}) for node in nodes)
    return BlockDiagram(f"Data flow of {title}", description, drawn, boxes, tuple(arrows), size, tuple(labels))


@dataclass(frozen=True)
class _Drawn(Node):
    """A node with its lines as they are written."""

    written: tuple[str, ...] = ()


def _column_widths(nodes: Sequence[Node], lines: dict[str, tuple[str, ...]], gap: float) -> list[float]:
    widths = [96.0] * (1 + max(node.column[1] for node in nodes))
    for node in sorted(nodes, key=lambda node: node.column[1] - node.column[0]):
        first, last = node.column
        name, *rest = lines[node.name]
        if node.kind == "add":
            name, rest = "", [" " * 2 * (len(name) + 2)]  # beside its circle, in half of the column
        needed = max(_width(name, NAME_SIZE), *(_width(line, SHAPE_SIZE) for line in rest)) + 10
        missing = needed - (sum(widths[first : last + 1]) + gap * (last - first))
        widths[last] += max(0.0, missing)
    return [round(width, 1) for width in widths]


def _height(node: Node) -> float:
    return 24.0 if node.kind == "add" else 10 + 16 + 13.0 * (len(node.lines) - 1)


def _width(text: str, size: float) -> float:
    return len(text) * CHARACTER * size


def _tight(line: str) -> str:
    return line.replace(", ", ",") if line.startswith("(") else line


def _route(source: Box, target: Box, *, skip: bool):
    """Corners of an arrow, and a function from a label to where it starts."""
    if skip:  # branches off below its source and comes back from the left
        lane, y = MARGIN + 6.0, target.y + target.height / 2
        start = source.bottom + 7
        return ((source.middle, start), (lane, start), (lane, y), (target.x, y)), None
    if source.y == target.y:  # sideways, to the right or to the left
        y = source.y + min(source.height, target.height) / 2
        ends = (source.right, target.x) if source.x < target.x else (source.x, target.right)
        middle = sum(ends) / 2
        return ((ends[0], y), (ends[1], y)), lambda label: (middle - _width(label, SHAPE_SIZE) / 2, y - 6)
    x = source.middle if target.x <= source.middle <= target.right else target.middle
    return ((x, source.bottom), (x, target.y)), lambda label: (x + 7, (source.bottom + target.y) / 2 + 3)


def _described(title: str, nodes: Sequence[Node]) -> str:
    sentences = [f"Data flow of {title}, from top to bottom."]
    for node in nodes:
        axes, sizes = node.lines[-2:]
        shape = f"{axes} = {sizes}"
        what = node.title or node.name
        if node.note:
            what += f" {node.note}" if node.note.startswith("=") else f" ({node.note})"
        takes = " and ".join(name + (f" as {label}" if label else "") for name, label in node.sources)
        if node.kind == "input":
            sentences.append(f"Input {what}: {shape}.")
        elif node.kind == "add":
            sentences.append(f"{what} adds {takes}: {shape}.")
        elif node.kind == "output":
            sentences.append(f"{what[0].upper()}{what[1:]}: {shape}.")
        else:
            sentences.append(f"{what} takes {takes} and gives {shape}.")
    return " ".join(sentences)


# The drawing.


def _colour(role: str) -> str:
    return f"var(--{role}, {PALETTE[role]})"


def _arrow(points: Sequence[tuple[float, float]]) -> str:
    (x0, y0), (x, y) = points[-2:]
    dx, dy = (x > x0) - (x < x0), (y > y0) - (y < y0)
    line = "L".join(f"{a:g} {b:g}" for a, b in points)
    wings = [(x - 6 * dx + 4 * dy * side, y - 6 * dy + 4 * dx * side) for side in (-1, 1)]
    return f'<path d="M{line}M{wings[0][0]:g} {wings[0][1]:g}L{x:g} {y:g}L{wings[1][0]:g} {wings[1][1]:g}"/>'


def _drawn(node: _Drawn, box: Box) -> str:
    if node.kind == "add":
        x, y, radius = box.middle, box.y + box.height / 2, box.height / 2
        cross = f"M{x - 6:g} {y:g}h12M{x:g} {y - 6:g}v12"
        stroke = 'fill="none" stroke="currentColor" stroke-width="1.5"'
        return f'<g {stroke}><circle cx="{x:g}" cy="{y:g}" r="{radius:g}"/><path d="{cross}"/></g>'
    role = node.role or "muted"
    filled = f'fill="{_colour(node.role)}" fill-opacity="0.1"' if node.role else 'fill="none"'
    radius = 16 if node.kind in {"input", "output"} else 5
    dashes = ' stroke-dasharray="4 3"' if node.kind == "function" else ""
    frame = (
        f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" rx="{radius:g}" {filled} '
        f'stroke="{_colour(role)}" stroke-width="1.6"{dashes}/>'
    )
    name, *rest = node.written
    y = box.y + 5 + 13
    texts = [_text(box.middle, y, name, NAME_SIZE, weight=600)]
    for line in rest:
        y += 13.5
        texts.append(_text(box.middle, y, line, SHAPE_SIZE))
    return frame + "".join(texts)


def _text(x: float, y: float, text: str, size: float, *, weight: int = 400, anchor: str = "") -> str:
    more = (f' font-weight="{weight}"' if weight != 400 else "") + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}"{more}>{html.escape(text)}</text>'
