"""A view of the chapter `transformer`: the attention maps of encoder, decoder and cross-attention, linked."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from course_kit._checks import check_instance, check_texts
from course_kit.viz.labels import readable_labels
from course_kit.viz.view import View
from course_kit.viz.view_elements import button, cell, choice, controls, drawing, element, text_of, words
from course_kit.viz.view_numbers import check_drawable, fixed, numbers, rounded

__all__ = ["three_attentions"]

_SIDE = 320
_NAMED = 3  # target words whose source word is named

_MAPS = (("encoder", "encoder: source → source"), ("decoder", "decoder: target → target"),
         ("cross", "cross-attention: target → source"))  # fmt: skip
_PATTERNS = ("forwards", "backwards", "neither way")
_FINGER = 25.0  # side of a cell that a finger can hit
_THREE_STYLE = """<style>
attention-view .three{gap:.6rem}
attention-view .covered .cell{visibility:hidden}
</style>"""


def three_attentions(
    encoder: Tensor | None,
    decoder: Tensor | None,
    cross: Tensor | None,
    source: Sequence[str],
    target: Sequence[str],
    *,
    predict: bool = False,
) -> View:
    """Encoder, decoder and cross attention of one layer in one view, linked by their words.

    Labels count from 1, as the text does: head 1 is `encoder[0]`, `decoder[0]` and `cross[0]`.

    Args:
        encoder: `(H, L_source, L_source)`, weights of the encoder's self-attention.
        decoder: `(H, L_target, L_target)`, weights of the decoder's self-attention.
        cross: `(H, L_target, L_source)`, weights of the decoder's attention to the encoder's output.
        source: a label for each source token, at most 14.
        target: a label for each target token, at most 14.
        predict: whether cross-attention stays covered until the reader has said which way it will move along the
            source.

    Raises:
        TypeError: something other than a tensor, or predict is not a bool.
        ValueError: None instead of weights, shapes that do not fit, weights outside [0, 1] or not finite.
    """
    check_instance(bool, predict=predict)
    source, target = readable_labels(check_texts(source=source)), readable_labels(check_texts(target=target))
    if not all(1 <= len(side) <= 14 for side in (source, target)):
        raise ValueError(
            f"source and target must have 1 to 14 tokens, got {len(source)} and {len(target)}; take a short pair"
        )
    given = {
        "encoder": (encoder, source, source),
        "decoder": (decoder, target, target),
        "cross": (cross, target, source),
    }
    heads = None
    for name, (weights, rows, columns) in given.items():
        if weights is None:
            raise ValueError(f"{name} is None: the fused path returns no weights; ask for them with need_weights=True")
        if not isinstance(weights, Tensor):
            raise TypeError(f"{name} must be a tensor (H, {len(rows)}, {len(columns)}), got {type(weights).__name__}")
        heads = heads or (len(weights) if weights.dim() == 3 else None)
        if not heads or weights.shape != (heads, len(rows), len(columns)):
            raise ValueError(
                f"{name} must be (H, {len(rows)}, {len(columns)}) with one H for all, got {tuple(weights.shape)}; "
                f"choose one sentence and one layer"
            )
        check_drawable(**{name: weights})
        if not ((weights >= -1e-3) & (weights <= 1 + 1e-3)).all():
            low, high = weights.min().item(), weights.max().item()
            raise ValueError(f"{name} must lie in [0, 1], got {low:g} … {high:g}; are these scores? Apply a softmax")
    data = {name: numbers(weights.float()) for name, (weights, *_) in given.items()}
    pictures = []
    best = cross.float().mean(0).argmax(-1).tolist()
    for name, title in _MAPS:
        weights, rows, columns = given[name]
        pictures.append(
            _map(
                name, title, weights.float().mean(0), rows, columns, best[0] if name == "encoder" and not predict else 0
            )
        )
    return View(
        kind="three_attentions",
        title="Three attentions",
        description=f"{heads} heads, averaged. In cross-attention "
        + ", ".join(f"“{word}” looks most at “{source[j]}”" for word, j in zip(target, best, strict=True))
        + ".",
        body=_THREE_STYLE
        + (controls("Cross-attention will move", *(button(f"guess{n}", name, pressed=False)
                                                   for n, name in enumerate(_PATTERNS))) if predict else "")
        + controls(
            choice("head", "show", [("-1", "average of the heads"), *((str(h), f"head {h + 1}") for h in range(heads))])
        )
        + element("div", *pictures, class_="panels three"),
        data={**data, "source": source, "target": target,
              "guesses": list(_PATTERNS) * predict, "pattern": _PATTERNS.index(_pattern(best))},
        hint=("First choose which way cross-attention will move along the source; then choose cells and heads."
              if predict
              else "Choose a cell to see which rows of the other two maps belong to it; then choose a head."),
        note="Rows are queries, columns are keys. Point at a cell, tap it, or walk with the arrow keys.",
        status="The map of cross-attention stays covered until you have chosen what you expect." if predict
        else "In the average of the heads of cross-attention, "
        f"{_most(cross.detach().double().mean(0), source, target)}.",
    )  # fmt: skip


def _pattern(best: Sequence[int]) -> str:
    """Which way the largest weight moves along the source, from row to row, over all pairs of rows."""
    pairs = [(b > a) - (b < a) for i, a in enumerate(best) for b in best[i + 1 :]]
    moved = sum(pairs) / max(len(pairs), 1)
    return _PATTERNS[0] if moved > 0.5 else _PATTERNS[1] if moved < -0.5 else _PATTERNS[2]


def _most(weights: Tensor, source: Sequence[str], target: Sequence[str]) -> str:
    """Where target words look most: the three that look there most, as the script says it."""
    rows = zip(target, weights.tolist(), strict=True)
    best = [(rounded(max(row)), row.index(max(row)), word) for word, row in rows]
    best.sort(key=lambda told: -told[0])
    return ", ".join(f"“{word}” looks most at “{source[j]}” ({fixed(x)})" for x, j, word in best[:_NAMED])


def _map(name: str, title: str, weights: Tensor, rows: Sequence[str], columns: Sequence[str], framed: int) -> str:
    """A small map with its words; a frame shows the row that is looked at, another one the cell that is chosen."""
    left = min(62, 14 + 7 * max(map(len, rows)))
    size = min(_FINGER, (_SIDE - left) / len(columns))
    longest = 7 * max(map(len, columns))
    level = longest < size
    top = 36.0 if level else min(62.0, 26 + 0.87 * longest)
    width = max(190.0, left + size * len(columns) + 2)  # room for the title
    parts = [words(0, 8, title, class_="start small")]
    for j, word in enumerate(columns):
        x = left + size * (j + 0.5)
        if level:
            parts.append(words(x, top - 9, word, class_="key small"))
            continue
        parts.append(
            element(
                "text", text_of(word), x=x, y=top - 6.0, class_="key small", transform=f"rotate(-60 {x:.6g} {top - 6})",
                style="text-anchor:start",
            )
        )  # fmt: skip
    for i, (word, row) in enumerate(zip(rows, weights.tolist(), strict=True)):
        parts.append(words(left - 6, top + size * (i + 0.5), word, class_="query small end"))
        parts += [
            cell(left + size * j, top + size * i, size, size, weight, key=f"{name}{i},{j}", role="img", label="weight")
            for j, weight in enumerate(row)
        ]
    for what, y, length, colour in (
        ("row", top + size * framed, size * len(columns), "query"),
        ("cell", 0, 0, "output"),
    ):
        parts.append(
            element(
                "rect", x=left, y=y, width=length, height=size, class_="line", data_k=f"{name}-{what}", stroke_width=3,
                style=f"pointer-events:none;stroke:var(--{colour})",
            )
        )  # fmt: skip
    picture = drawing(width, top + size * len(rows) + 6, *parts, label=title, class_=name)
    return element("div", picture, style=f"flex:1 1 {0.92 * width:.0f}px;max-width:{width:g}px")
