"""Diagrams of data flow, drawn from a real call: what a block computes, in which order, with the shapes along the way.

`block_diagram(module, *inputs)` runs the module once, records shapes with forward hooks, and lays out boxes and arrows
as SVG. What feeds what is declared for each class in `_WIRING`; a call that does not go the declared way is an error.
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

from course_lib._files import write_whole
from course_lib.viz.style import DARK, PALETTE

__all__ = ["BlockDiagram", "block_diagram"]

Axes = tuple[str, ...]

# Sizes in CSS pixels. A diagram is at most as wide as a phone's text column.
WIDEST = 364
MARGIN, GAP, ROW_GAP, LANE = 4, 8, 24, 22
NAME_SIZE, SHAPE_SIZE = 12.5, 10.5
CHARACTER = 0.612  # width of a monospace character, as part of its size; DejaVu Sans Mono and Courier have 0.602
FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"


@dataclass(frozen=True)
class Node:
    """A box: an input, a sub-module, a function, a sum or the output.

    Args:
        name: as in the code; unique in its diagram.
        kind: "input", "module", "function", "add" or "output".
        sources: (name, label) of each box that feeds this one; the label says as what, such as "q, k, v".
        axes: names of the axes of what comes out.
        column: columns that it spans, first and last.
        row: counted from the top.
        role: "query", "key", "value", "output" or "": its colour.
        title: what is written in the box; the name if empty.
        skip: which of the sources comes along the residual lane.
        note: one more line in the box.
        shape: sizes of the axes in the call that was recorded.
    """

    name: str
    kind: str
    sources: tuple[tuple[str, str], ...]
    axes: Axes
    column: tuple[int, int]
    row: int
    role: str = ""
    title: str = ""
    skip: str = ""
    note: str = ""
    shape: tuple[int, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """What is written in the box."""
        shapes = (f"({', '.join(self.axes)})", f"({', '.join(map(str, self.shape))})")
        return tuple(filter(None, (self.title or self.name.split(" ")[0], self.note, *shapes)))


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
        return {
            "text/html": f'<div class="course-lib-diagram">{self.svg}</div>',
            "text/plain": self.description,
        }

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
    wire = next((_WIRING[cls.__name__] for cls in type(module).__mro__ if cls.__name__ in _WIRING), None)
    if wire is None:
        raise TypeError(
            f"expected one of {', '.join(sorted(_WIRING))}, got {type(module).__name__}; draw its parts one by one, or "
            f"let the class inherit from one of them"
        )
    if not inputs or not all(isinstance(x, Tensor) for x in inputs):
        got = ", ".join(type(x).__name__ for x in inputs) or "none"
        raise TypeError(f"expected the tensors to call {type(module).__name__} with, got {got}; torch.zeros will do")
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


@dataclass
class _Record:
    """What the hooks saw: direct children in the order in which they ended, and the shapes that they took and gave."""

    inputs: tuple[Tensor, ...]
    options: dict
    order: list[str] = field(default_factory=list)
    taken: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    given: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    output: tuple[Tensor | None, ...] = ()


def _call(module: nn.Module, inputs: tuple[Tensor, ...], options: dict) -> _Record:
    # The same tensor three times takes a short cut in which the projections are not called; a copy does not.
    inputs = tuple(x.clone() if any(x is other for other in inputs[:i]) else x for i, x in enumerate(inputs))
    record = _Record(inputs, options)

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


def _agrees(module: nn.Module, nodes: Sequence[Node], record: _Record) -> None:
    """Every part is drawn, parts are drawn in the order of the call, and one name of an axis has one size."""
    drawn = [node.name.split(" ")[0] for node in nodes if node.kind in {"module", "add"}]
    # A residual wrapper ends after the norm that it calls, so its sum is compared by number, the others by order.
    expected, got = ([name for name in names if name != "residual"] for names in (drawn, record.order))
    if expected != got or drawn.count("residual") != record.order.count("residual"):
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


# The wiring of each class: what is drawn, what feeds it, and where it stands.

Wired = tuple[str, list[Node]]
_FIRST, _SECOND, _THIRD = (0, 0), (1, 1), (2, 2)


def _feed_forward(module: nn.Module, record: _Record) -> Wired:
    rank = record.inputs[0].dim()
    lead = (*("B", *(f"N{i}" for i in range(rank - 3)))[: rank - 2], "L")[: rank - 1] if rank > 1 else ()
    narrow, wide = (*lead, "d_model"), (*lead, "d_ff")
    column = _Column(record)
    column.put("x", "input", narrow, shape=tuple(record.inputs[0].shape))
    column.put("linear1", "module", wide)
    column.put(module.activation.__name__, "function", wide, shape=record.taken["dropout"][0])
    column.put("dropout", "module", wide, note=f"p = {module.dropout.p:g}")
    column.put("linear2", "module", narrow)
    column.put("output", "output", narrow, shape=tuple(record.output[0].shape))
    return type(module).__name__, column.nodes


def _multi_head(module: nn.Module, record: _Record) -> Wired:
    if record.output[1] is None:
        raise KeyError("weights; ask for them with need_weights=True")
    heads = module.num_heads
    nodes, row = [], 0
    flows = (("query", "q", "L_q", _FIRST), ("key", "k", "L_k", _SECOND), ("value", "v", "L_k", _THIRD))
    for (role, _, length, column), x in zip(flows, record.inputs, strict=False):
        nodes.append(Node(role, "input", (), ("B", length, "d_model"), column, 0, role, shape=tuple(x.shape)))
    for role, letter, length, column in flows:
        name = f"{letter}_proj"
        shape = record.given[name][0]
        nodes.append(Node(name, "module", ((role, ""),), ("B", length, "d_model"), column, 1, role, shape=shape))
    fed, row = {}, 2
    for role, letter, length, column in flows:
        batch, size, width = record.given[f"{letter}_proj"][0]
        name, axes, shape = f"split_heads {letter}", ("B", "H", length, "d_head"), (batch, heads, size, width // heads)
        nodes.append(Node(name, "function", ((f"{letter}_proj", ""),), axes, column, row, role, shape=shape))
        fed[letter] = name
    if module.position is not None:
        row += 1
        for role, letter, length, column in flows[:2]:
            name, shape = f"position.rotate {letter}", next(n.shape for n in nodes if n.name == fed[letter])
            axes, title = ("B", "H", length, "d_head"), "rotate"
            nodes.append(Node(name, "function", ((fed[letter], ""),), axes, column, row, role, title, shape=shape))
            fed[letter] = name
    scores, shape = ("B", "H", "L_q", "L_k"), tuple(record.output[1].shape)
    bias = " + bias" if module.position is not None else ""
    masked = len(record.inputs) > 3 or record.options.get("mask") is not None
    softmax = "= masked_softmax(scores, mask)" if masked else "= softmax(scores)"
    attended = next(n.shape for n in nodes if n.name == "split_heads q")
    merged, out = record.taken["out_proj"][0], ("B", "L_q", "d_model")
    nodes += [
        Node(
            "scores",
            "function",
            ((fed["q"], ""), (fed["k"], "")),
            scores,
            (0, 1),
            row + 1,
            note=f"= q kᵀ / √d_head{bias}",
            shape=shape,
        ),
        Node("weights", "function", (("scores", ""),), scores, (0, 1), row + 2, note=softmax, shape=shape),
        Node(
            "heads",
            "function",
            (("weights", ""), ("split_heads v", "")),
            ("B", "H", "L_q", "d_head"),
            (0, 2),
            row + 3,
            "output",
            note="= weights · v",
            shape=attended,
        ),
        Node("merge_heads", "function", (("heads", ""),), out, (0, 2), row + 4, "output", shape=merged),
        Node(
            "out_proj",
            "module",
            (("merge_heads", ""),),
            out,
            (0, 2),
            row + 5,
            "output",
            shape=record.given["out_proj"][0],
        ),
        Node(
            "output",
            "output",
            (("out_proj", ""),),
            out,
            (0, 2),
            row + 6,
            "output",
            shape=tuple(record.output[0].shape),
        ),
    ]
    return type(module).__name__, nodes


def _layer(sublayers: Sequence[tuple[str, str]]) -> Callable[[nn.Module, _Record], Wired]:
    """An encoder or decoder layer: its sub-layers, each as (name, what it gets as q, k and v)."""

    def wire(module: nn.Module, record: _Record) -> Wired:
        pre = module.residual.norm_first
        stream = ("B", "L", "d_model")
        column = _Column(record)
        column.put("x", "input", stream, shape=tuple(record.inputs[0].shape))
        for number, (name, label) in enumerate(sublayers, 1):
            norm, before = f"norm{number}", column.last
            if pre:
                column.put(norm, "module", stream)
            extra = ()
            if label == "q":
                axes, shape = ("B", "L_memory", "d_model"), tuple(record.inputs[1].shape)
                column.nodes.append(Node("memory", "input", (), axes, _SECOND, column.row, shape=shape))
                extra = (("memory", "k, v"),)
            column.put(name, "module", stream, label=label, extra=extra)
            # The sum is what the norm takes after the paper, and what the wrapper gives in pre-norm.
            shape = record.given["residual"][number - 1] if pre else record.taken[norm][0]
            column.put(f"residual {number}", "add", stream, skip=before, shape=shape)
            if not pre:
                column.put(norm, "module", stream)
        column.put("output", "output", stream, shape=tuple(record.output[0].shape))
        return f"{type(module).__name__}, {'pre' if pre else 'post'}-norm", column.nodes

    return wire


def _transformer(module: nn.Module, record: _Record) -> Wired:
    nodes = []
    for name, column, x in (("source", _FIRST, record.inputs[0]), ("target", _SECOND, record.inputs[1])):
        nodes.append(Node(name, "input", (), ("B", f"L_{name}"), column, 0, shape=tuple(x.shape)))
    for side, stack, column in (("source", "encoder", _FIRST), ("target", "decoder", _SECOND)):
        axes, embedding = ("B", f"L_{side}", "d_model"), f"{side}_embedding"
        nodes.append(
            Node(embedding, "module", ((side, ""),), axes, column, 1, shape=record.given[embedding][0]),
        )
        layers = getattr(module, stack).layers
        sources = ((embedding, ""),) if stack == "encoder" else ((embedding, ""), ("encoder", "memory"))
        note = f"{len(layers)} × {type(layers[0]).__name__}"
        nodes.append(Node(stack, "module", sources, axes, column, 2, note=note, shape=record.given[stack][0]))
    axes, shape = ("B", "L_target", "vocab"), tuple(record.output[0].shape)
    nodes.append(Node("output", "module", (("decoder", ""),), axes, _SECOND, 3, shape=record.given["output"][0]))
    nodes.append(Node("logits", "output", (("output", ""),), axes, _SECOND, 4, "output", shape=shape))
    return f"{type(module).__name__}, {module.config.norm}-norm", nodes


_WIRING: dict[str, Callable[[nn.Module, _Record], Wired]] = {
    "FeedForward": _feed_forward,
    "MultiHeadAttention": _multi_head,
    "EncoderLayer": _layer((("self_attention", "q, k, v"), ("feed_forward", ""))),
    "DecoderLayer": _layer((("self_attention", "q, k, v"), ("cross_attention", "q"), ("feed_forward", ""))),
    "Transformer": _transformer,
}


class _Column:
    """Boxes below one another in the first column, each fed by the one above."""

    def __init__(self, record: _Record):
        self.nodes: list[Node] = []
        self.record = record
        self.row = 0
        self.last = ""

    def put(
        self,
        name: str,
        kind: str,
        axes: Axes,
        *,
        shape: tuple[int, ...] | None = None,
        label: str = "",
        extra: tuple[tuple[str, str], ...] = (),
        skip: str = "",
        note: str = "",
    ) -> None:
        sources = ((self.last, label),) if self.last else ()
        sources += ((skip, ""),) if skip else extra
        shape = self.record.given[name][0] if shape is None else shape
        role = "output" if kind == "output" else ""
        self.nodes.append(Node(name, kind, sources, axes, _FIRST, self.row, role, skip=skip, note=note, shape=shape))
        self.row, self.last = self.row + 1, name


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
