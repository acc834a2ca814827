"""A view of the chapter `masking`: a mask to paint."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from course_kit.viz.map_axes import WIDTH, axis_labels, frame
from course_kit.viz.view import View
from course_kit.viz.view_elements import button, cell, choice, controls, drawing, element, labels_for, panels, words
from course_kit.viz.view_numbers import check_drawable, fixed, numbers

__all__ = ["mask_painter"]

MOST = 10  # rows and columns: more would be too small to be tapped
ROW = 32

_PAINT_STYLE = """<style>
attention-view svg :focus{outline:none}
attention-view .paint>[aria-pressed=true]>rect{fill-opacity:.35}
attention-view .paint>[aria-pressed=false]>rect{fill-opacity:0}
attention-view .paint>[aria-pressed=true]>.shut,attention-view .paint>[aria-pressed=false]>.score{display:none}
attention-view :is(.paint,.weights) text{font-size:12px}
attention-view [data-k=empty]{min-height:2.8em}
@media(max-width:600px){attention-view [data-k=empty]{min-height:5.6em}}
</style>"""


def mask_painter(
    scores: Tensor,
    mask: Tensor | None = None,
    *,
    tokens: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
) -> View:
    """A mask to paint cell by cell; the weights stay hidden until they are asked for, so that one can predict them.

    An open cell is filled and shows its score, a closed one is empty but for a cross, as in the chapter's figures.
    The weights are the softmax of the scores over the keys that are open. A query without an open key gets zeros, and
    the view says what torch.softmax would give.

    Args:
        scores: `(L_q, L_k)`, before masking.
        mask: bool, True = may attend, broadcasts to `(L_q, L_k)`; all open if not given.
        tokens: a label for each query, and for each key too where L_q = L_k; positions if not given.
        keys: a label for each key, if they differ.

    Raises:
        TypeError: scores is not a tensor, or the mask is not bool.
        ValueError: shapes that do not fit, more than 10 rows or columns, or scores that are not finite.
    """
    if not isinstance(scores, Tensor):
        got = "None" if scores is None else type(scores).__name__
        raise TypeError(f"scores must be a tensor (L_q, L_k), got {got}; query @ key.T / d_k**0.5 makes them")
    if scores.dim() != 2 or 0 in scores.shape or max(scores.shape) > MOST:
        raise ValueError(
            f"scores must be (L_q, L_k) with 1 to {MOST} rows and columns, so that the cells can be tapped, got "
            f"{tuple(scores.shape)}; choose one sentence and one head, or a part: scores[0, 0, :{MOST}, :{MOST}]"
        )
    if not torch.isfinite(scores).all():
        raise ValueError(
            "scores must be finite, got NaN or infinity; give the scores before masking, and the mask as mask= "
            "(bool, True = may attend)"
        )
    check_drawable(scores=scores)
    len_q, len_k = scores.shape
    opened = mask_of("mask", mask, (len_q, len_k)) if mask is not None else torch.ones(len_q, len_k, dtype=torch.bool)
    queries = labels_for(tokens, len_q, "tokens")
    names = labels_for(tokens if keys is None and len_q == len_k else keys, len_k, "keys")
    presets = _presets(len_q, len_k)
    start = _bits(opened)
    options = [(_bits(m), name) for name, m in presets]
    own = [] if start in dict(options) else [(start, "as given")]
    digits = 3 if len_k <= 6 else 2

    left, top, size = frame(queries, names, titled=True)
    labels = [
        words(left + size * len_k / 2, 29, "key", class_="small key"),
        words(left - 6, top - 10, "query", class_="end small query"),
        *axis_labels(queries, names, left, top, size),
    ]
    paint, weights = [], []
    for i, row in enumerate(scores.double().tolist()):
        cells = [
            element(
                "g",
                element("rect", x=left + size * j, y=top + size * i, width=size, height=size),
                words(left + size * (j + 0.5), top + size * (i + 0.5), fixed(s, 2 if size > 38 else 1), class_="score"),
                words(left + size * (j + 0.5), top + size * (i + 0.5), "×", class_="shut"),
                class_="cell", role="button", tabindex=-1 if i or j else 0,
                aria_pressed=opened[i, j].item(),
                aria_label=f"Query “{queries[i]}”, key “{names[j]}”, score {fixed(s, 2 if size > 38 else 1)}",
            )
            for j, s in enumerate(row)
        ]  # fmt: skip
        paint.append(element("g", *cells, class_="paint"))
        hidden = [cell(left + size * j, top + size * i, size, size, 0.0, "?") for j in range(len_k)]
        weights.append(element("g", *hidden, class_="weights"))
    height = top + size * len_q + 4
    closed = int((~opened).sum())
    return View(
        kind="mask_painter",
        title="Paint a mask",
        description=f"Scores of {len_q} queries (rows) over {len_k} keys (columns); {closed} of {len_q * len_k} cells "
        f"are closed by the mask: they are empty but for a cross, open ones are filled. Beside it the weights, hidden "
        f"until you ask for them: predict them first.",
        body=_PAINT_STYLE
        + controls(
            choice("rule", "mask", [*own, *options, ("", "my own")], start),
            button("show", "show the weights", pressed=False),
        )
        + panels(
            drawing(WIDTH, height, words(2, 9, "the mask: filled = open (score), × = closed", class_="start"), *labels,
                    *paint, label="The mask, to be painted: queries on rows, keys on columns"),
            drawing(WIDTH, height, words(2, 9, "the weights", class_="start"), *labels, *weights,
                    label="The weights: queries on rows, keys on columns"),
        )
        + '<p data-k="empty"></p>',
        data={
            "scores": numbers(scores),
            "digits": digits,
            "queries": [f"“{name}”" for name in queries],
        },
        hint="Tap a cell to open or close it, predict the weights, and then show them.",
        note="A filled cell is open: its query may attend to its key. A cell with × is closed. With the keyboard, "
        "arrows walk and Space paints.",
        status=f"{closed} of {len_q * len_k} cells are closed.",
    )  # fmt: skip


def _presets(len_q: int, len_k: int) -> list[tuple[str, Tensor]]:
    """Masks with their names. The last query stands at the last key, as with a cache."""
    position = torch.arange(len_q)[:, None] + len_k - len_q
    key = torch.arange(len_k)[None]
    causal = key <= position
    masks = [("all open", torch.ones(len_q, len_k, dtype=torch.bool)), ("causal", causal)]
    for last in range(1, min(3, len_k - 1) + 1):
        kept = (key < len_k - last).expand(len_q, len_k)
        plural = "key" if last == 1 else f"{last} keys"
        masks += [(f"padding: last {plural}", kept), (f"causal and padding: last {plural}", kept & causal)]
    masks += [(f"window of {width}", causal & (key > position - width)) for width in range(2, min(4, len_k - 1) + 1)]
    found: dict[str, tuple[str, Tensor]] = {}
    for name, mask in masks:  # two names of one mask would be one choice
        found.setdefault(_bits(mask), (name, mask))
    return list(found.values())


def _bits(mask: Tensor) -> str:
    return "".join(str(int(x)) for x in mask.flatten().tolist())


def mask_of(name: str, mask: Tensor, shape: tuple[int, int]) -> Tensor:
    """The mask broadcast to `shape`, on the CPU; refused under its `name` if it is not bool or does not fit."""
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        got = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(
            f"{name} must be a bool tensor, True = may attend, got {got}; mask == 0 makes one of zeros and −inf"
        )
    try:
        return mask.detach().cpu().broadcast_to(shape)
    except RuntimeError:
        raise ValueError(
            f"{name} must broadcast to {shape}, got {tuple(mask.shape)}; choose one sentence and one head: mask[0, 0]"
        ) from None
