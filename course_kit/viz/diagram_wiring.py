"""The wiring of the diagrams: for each class of block, the boxes, what feeds each box, and its place.

Classes are known by name; `WIRING` has one function per class, which turns a recorded call into nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from torch import Tensor, nn

__all__ = ["WIRING", "Node", "Record"]

Axes = tuple[str, ...]


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


@dataclass
class Record:
    """What the hooks saw: direct children in the order in which they ended, and the shapes that they took and gave."""

    inputs: tuple[Tensor, ...]
    options: dict
    order: list[str] = field(default_factory=list)
    taken: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    given: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    output: tuple[Tensor | None, ...] = ()


# The wiring of each class: what is drawn, what feeds it, and where it stands.

Wired = tuple[str, list[Node]]
_FIRST, _SECOND, _THIRD = (0, 0), (1, 1), (2, 2)


def _feed_forward(module: nn.Module, record: Record) -> Wired:
    rank = record.inputs[0].dim()
    lead = (*("B", *(f"N{i}" for i in range(rank - 3)))[: rank - 2], "L")[: rank - 1] if rank > 1 else ()
    narrow, wide = (*lead, "d_model"), (*lead, "d_ff")
    column = _Column(record)
    column.put("x", "input", narrow, shape=tuple(record.inputs[0].shape))
    column.put("linear1", "module", wide)
    activation = module.activation.__name__ if hasattr(module, "activation") else "relu"
    column.put(activation, "function", wide, shape=record.taken["linear2"][0])
    if hasattr(module, "dropout"):
        column.put("dropout", "module", wide, note=f"p = {module.dropout.p:g}")
    column.put("linear2", "module", narrow)
    column.put("output", "output", narrow, shape=tuple(record.output[0].shape))
    return type(module).__name__, column.nodes


def _multi_head(module: nn.Module, record: Record) -> Wired:
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
    has_position = getattr(module, "position", None) is not None
    if has_position:
        row += 1
        for role, letter, length, column in flows[:2]:
            name, shape = f"position.rotate {letter}", next(n.shape for n in nodes if n.name == fed[letter])
            axes, title = ("B", "H", length, "d_head"), "rotate"
            nodes.append(Node(name, "function", ((fed[letter], ""),), axes, column, row, role, title, shape=shape))
            fed[letter] = name
    scores, shape = ("B", "H", "L_q", "L_k"), tuple(record.output[1].shape)
    bias = " + bias" if has_position else ""
    masked = len(record.inputs) > 3 or record.options.get("mask") is not None
    softmax = "= masked_softmax(scores, mask)" if masked else "= softmax(scores)"
    attended = next(n.shape for n in nodes if n.name == "split_heads q")
    merged, out = record.taken["out_proj"][0], ("B", "L_q", "d_model")
    wide, given, gives = (0, 2), record.given["out_proj"][0], tuple(record.output[0].shape)
    nodes += [
        Node("scores", "function", ((fed["q"], ""), (fed["k"], "")), scores, (0, 1), row + 1,
             note=f"= q kᵀ / √d_head{bias}", shape=shape),
        Node("weights", "function", (("scores", ""),), scores, (0, 1), row + 2, note=softmax, shape=shape),
        Node("heads", "function", (("weights", ""), ("split_heads v", "")), ("B", "H", "L_q", "d_head"), wide, row + 3,
             "output", note="= weights · v", shape=attended),
        Node("merge_heads", "function", (("heads", ""),), out, wide, row + 4, "output", shape=merged),
        Node("out_proj", "module", (("merge_heads", ""),), out, wide, row + 5, "output", shape=given),
        Node("output", "output", (("out_proj", ""),), out, wide, row + 6, "output", shape=gives),
    ]  # fmt: skip
    return type(module).__name__, nodes


def _layer(sublayers: Sequence[tuple[str, str]]) -> Callable[[nn.Module, Record], Wired]:
    """An encoder or decoder layer: its sub-layers, each as (name, what it gets as q, k and v)."""

    def wire(module: nn.Module, record: Record) -> Wired:
        pre = hasattr(module, "residual") and module.residual.norm_first
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


def _transformer(module: nn.Module, record: Record) -> Wired:
    nodes = []
    for name, column, x in (("source", _FIRST, record.inputs[0]), ("target", _SECOND, record.inputs[1])):
        nodes.append(Node(name, "input", (), ("B", f"L_{name}"), column, 0, shape=tuple(x.shape)))
    for side, stack, column in (("source", "encoder", _FIRST), ("target", "decoder", _SECOND)):
        axes, embedding = ("B", f"L_{side}", "d_model"), f"{side}_embedding"
        nodes.append(Node(embedding, "module", ((side, ""),), axes, column, 1, shape=record.given[embedding][0]))
        layers = getattr(module, stack).layers
        sources = ((embedding, ""),) if stack == "encoder" else ((embedding, ""), ("encoder", "memory"))
        note = f"{len(layers)} × {type(layers[0]).__name__}"
        nodes.append(Node(stack, "module", sources, axes, column, 2, note=note, shape=record.given[stack][0]))
    axes, shape = ("B", "L_target", "vocab"), tuple(record.output[0].shape)
    nodes.append(Node("output", "module", (("decoder", ""),), axes, _SECOND, 3, shape=record.given["output"][0]))
    nodes.append(Node("logits", "output", (("output", ""),), axes, _SECOND, 4, "output", shape=shape))
    return f"{type(module).__name__}, {module.config.norm}-norm", nodes


WIRING: dict[str, Callable[[nn.Module, Record], Wired]] = {
    "FeedForward": _feed_forward,
    "MultiHeadAttention": _multi_head,
    "EncoderLayer": _layer((("self_attention", "q, k, v"), ("feed_forward", ""))),
    "DecoderLayer": _layer((("self_attention", "q, k, v"), ("cross_attention", "q"), ("feed_forward", ""))),
    "Transformer": _transformer,
}


class _Column:
    """Boxes below one another in the first column, each fed by the one above."""

    def __init__(self, record: Record):
        self.nodes: list[Node] = []
        self.record = record
        self.row = 0
        self.last = ""

    def put(
        self, name: str, kind: str, axes: Axes, *, shape: tuple[int, ...] | None = None, label: str = "",
        extra: tuple[tuple[str, str], ...] = (), skip: str = "", note: str = "",
    ) -> None:  # fmt: skip
        sources = ((self.last, label),) if self.last else ()
        sources += ((skip, ""),) if skip else extra
        shape = self.record.given[name][0] if shape is None else shape
        role = "output" if kind == "output" else ""
        self.nodes.append(Node(name, kind, sources, axes, _FIRST, self.row, role, skip=skip, note=note, shape=shape))
        self.row, self.last = self.row + 1, name
