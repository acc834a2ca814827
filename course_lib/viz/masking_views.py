"""Views of the chapter `masking`: a mask to paint, and what a changed token moves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from course_lib._checks import check_finite, check_whole
from course_lib.viz.describing import cut
from course_lib.viz.map_axes import WIDTH, axis_labels, frame, short
from course_lib.viz.view import (
    View,
    button,
    cell,
    check_drawable,
    choice,
    controls,
    drawing,
    element,
    fixed,
    labels_for,
    numbers,
    panels,
    words,
)

__all__ = ["leak_detector", "mask_painter"]

MOST = 10  # rows and columns: more would be too small to be tapped
ROW = 32

_PAINT_STYLE = """<style>
attention-view svg :focus{outline:none}
attention-view .paint>[aria-pressed=true]>rect{fill-opacity:.35}
attention-view .paint>[aria-pressed=false]>rect{fill-opacity:0}
attention-view .paint>[aria-pressed=true]>.shut,attention-view .paint>[aria-pressed=false]>.score{display:none}
attention-view :is(.paint,.weights) text{font-size:12px}
</style>"""

_LEAK_STYLE = """<style>
attention-view svg :focus{outline:none}
attention-view .input>rect{fill:var(--key);fill-opacity:.1;stroke:var(--key)}
attention-view .input[aria-pressed=true]>rect{fill-opacity:.35;stroke-width:3}
attention-view .guess>rect{fill:var(--output);fill-opacity:.06;stroke:var(--output)}
attention-view .guess[aria-pressed=true]>rect{fill-opacity:.2}
attention-view .guess[aria-pressed=false]>.tick{display:none}
attention-view .told{pointer-events:none}
attention-view path.leak{stroke:var(--leak)}
attention-view text.leak,attention-view .leak text{fill:var(--leak);font-weight:700!important}
attention-view .leak rect{fill:var(--leak);stroke:var(--leak)}
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
    opened = _bool("mask", mask, (len_q, len_k)) if mask is not None else torch.ones(len_q, len_k, dtype=torch.bool)
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
                aria_pressed=str(opened[i, j].item()).lower(),
                aria_label=f"Query “{queries[i]}”, key “{names[j]}”, score {fixed(s)}",
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
            "empty": [
                f"No key is open for “{name}”: its weights are zeros here; torch.softmax, over nothing but −∞, would "
                f"give NaN."
                for name in queries
            ],
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


def _bool(name: str, mask: Tensor, shape: tuple[int, int]) -> Tensor:
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


def leak_detector(
    influence: Tensor | Mapping[str, Tensor],
    allowed: Tensor | None = None,
    *,
    tokens: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    token: int | None = None,
    tolerance: float = 1e-6,
) -> View:
    """Which outputs move when one token is changed? The reader marks them, then compares: an output that moves and must
    not is a leak, which has a colour, an arrow and a mark of its own.

    Args:
        influence: `(L, L)`, how far output i moves when input token j is changed, measured with a model; or several, by
            the name of the model.
        allowed: bool, True = output i may depend on input j, broadcasts to `(L, L)`; causal (j ≤ i) if not given.
        tokens: a label for each input token; positions if not given.
        outputs: a label for each output; those of the tokens if not given.
        token: the token chosen at first; the middle one if not given.
        tolerance: what counts as not moved: rounding.

    Raises:
        TypeError: influence holds something that is not a tensor, allowed is not bool, or token not a whole number.
        ValueError: shapes that do not fit, more than 10 tokens or 6 models, negative or not finite entries, or such a
            tolerance.
    """
    check_finite("tolerance", tolerance, 0)
    models = dict(influence) if isinstance(influence, Mapping) else {"the model": influence}
    shape = _shape_of(models)
    len_q, len_k = shape
    if allowed is None and len_q != len_k:
        raise ValueError(
            f"allowed must be given where outputs and tokens differ in number, got {shape}; True = may depend on"
        )
    may = _bool("allowed", allowed, shape) if allowed is not None else torch.ones(shape, dtype=torch.bool).tril()
    inputs = labels_for(tokens, len_k, "tokens")
    names = labels_for(tokens if outputs is None and len_q == len_k else outputs, len_q, "outputs")
    token = len_k // 2 if token is None else token
    check_whole(token=token, least=0, most=len_k - 1)

    left, top, size = frame(names, inputs, 30)
    height = 44 + ROW * max(len_q, len_k)
    arrows = _boxes(inputs, names, token)
    maps = [
        words(2, 9, "one column per changed token", class_="start"),
        *axis_labels(names, inputs, left, top, size, "output"),
    ]
    for j in range(len_k):
        unknown = [cell(left + size * j, top + size * i, size, size, 0.0, "?") for i in range(len_q)]
        maps.append(element("g", *unknown, data_u=j))
    said, moves = [], []
    for m, matrix in enumerate(models.values()):
        rows = matrix.detach().cpu().double().tolist()
        sentences = []
        for j in range(len_k):
            parts, column, moved, leaks = [], [], [], []
            for i in range(len_q):
                x, y = rows[i][j], 43 + ROW * i
                on = x > tolerance
                leak = on and not may[i, j]
                if on:
                    (leaks if leak else moved).append(names[i])
                    parts += _arrow(43 + ROW * j, y, leak)
                word = "LEAK" if leak else "moves" if on else "still"
                role = "end small leak" if leak else "end small"
                parts.append(
                    words(334, y, f"{word} {_number(x) if on else fixed(x)}", key=f"out{m}.{i}.{j}", class_=role)
                )
                column.append(_mark(left + size * j, top + size * i, size, on, leak))
            arrows.append(_hidden(f"{m}.{j}", *parts))
            maps.append(_hidden(f"{m}.{j}", *column, stays=1))
            sentences.append(_told(inputs[j], moved, leaks, may[:, j].any().item()))
        said.append(sentences)
        moves.append([[row[j] > tolerance for row in rows] for j in range(len_k)])
    maps.append(
        element(
            "rect", x=left + size * token, y=top, width=size, height=size * len_q, fill="none", stroke="var(--key)",
            stroke_width=3, data_k="frame",
        )
    )  # fmt: skip
    counts = [_counts({name: matrix}, may, tolerance) for name, matrix in models.items()]
    return View(
        kind="leak_detector",
        title="Leak detector",
        description=f"{len_k} tokens, {len_q} outputs; models: {', '.join(models)}. "
        + cut(said[0][token], 280) + " " + _counts(models, may, tolerance),
        body=_LEAK_STYLE
        + controls(
            choice("model", "model", [(str(m), name) for m, name in enumerate(models)], "0"),
            button("change", "change the token"),
            button("all", "show the whole map"),
        )
        + panels(
            drawing(WIDTH, height, *arrows, label="The token to be changed, and the outputs to be predicted"),
            drawing(WIDTH, top + size * len_q + 30, *maps,
                    words(2, top + size * len_q + 16, "• moves, allowed; ✗ leak; ? not tried", class_="start small"),
                    label="All outputs (rows) and changed tokens (columns)"),
        ),
        data={"token": token, "said": said, "moves": moves, "counts": counts, "inputs": inputs, "names": names,
              "left": left, "size": size},
        hint="Mark every output that you expect to move, then press “change the token”.",
        status=f"If “{inputs[token]}” is changed, which outputs move? Marked: none.",
        note="Choose another token on the left, or another model. A dashed red arrow marks a leak: an output that "
        "moves and must not. Beside an output, ✓ or ✗ says whether you predicted it. "
        + ("Allowed here is the causal mask: an output may depend on its own token and earlier ones."
           if allowed is None else
           "Every model is judged by the one allowed mask that this view was given, whatever mask the model uses."),
    )  # fmt: skip


def _shape_of(models: Mapping[str, Tensor]) -> tuple[int, int]:
    """The one shape of all influence matrices, after everything that could be wrong with them was looked at."""
    if not 1 <= len(models) <= 6:
        raise ValueError(f"influence must hold 1 to 6 models, got {len(models)}; give those to be compared")
    shape = None
    for name, matrix in models.items():
        if not isinstance(matrix, Tensor):
            raise TypeError(
                f"influence of {name} must be a tensor (L, L), got {type(matrix).__name__}; measure it with the model"
            )
        if (
            matrix.dim() != 2
            or 0 in matrix.shape
            or max(matrix.shape) > MOST
            or matrix.shape != (shape or matrix.shape)
        ):
            raise ValueError(
                f"influence of {name} must be {shape or f'(L, L) with 1 to {MOST} tokens'}, got {tuple(matrix.shape)}; "
                f"row i is the output, column j the changed token; take a short sentence"
            )
        check_drawable(**{f"influence of {name}": matrix})
        if (matrix < 0).any():
            raise ValueError(
                f"influence of {name} must be distances ≥ 0, got {matrix.min().item():g}; take the norm of the "
                f"difference"
            )
        shape = tuple(matrix.shape)
    return shape


def _boxes(inputs: Sequence[str], names: Sequence[str], token: int) -> list[str]:
    """The tokens, one of which is chosen, and the outputs, each with a box to tick."""
    parts = [
        words(2, 12, "token to change", class_="start small key"),
        words(154, 12, "outputs: tick what will move", class_="start small output"),
    ]
    for j, name in enumerate(inputs):
        box = element("rect", x=2.0, y=30 + ROW * j - 1.0, width=78.0, height=ROW - 4.0, rx=5)
        parts.append(
            element(
                "g", box, words(41, 43 + ROW * j, short(name), class_="small"), class_="input", role="button",
                aria_label=f"choose “{name}”", aria_pressed=str(j == token).lower(), tabindex=-1 if j else 0,
            )
        )  # fmt: skip
    for i, name in enumerate(names):
        y = 43 + ROW * i
        parts.append(
            element(
                "g",
                element("rect", x=154.0, y=y - 14.0, width=184.0, height=ROW - 4.0, rx=5),
                element("path", d=f"M160 {y - 7}h14v14h-14z", class_="line"),
                words(167, y, "✓", class_="tick"),
                words(180, y, short(name), class_="start small"),
                words(246, y, "", class_="judged"),
                class_="guess", role="button", aria_label=f"output “{name}” will move", aria_pressed="false",
                tabindex=-1 if i else 0,
            )
        )  # fmt: skip
    return parts


def _arrow(start: float, end: float, leak: bool) -> list[str]:
    """From a token to an output; that of a leak is thick and dashed."""
    angle = math.atan2(end - start, 66)
    head = "".join(
        f"M150 {end}l{-9 * math.cos(angle + turn):.3g} {-9 * math.sin(angle + turn):.3g}" for turn in (-0.5, 0.5)
    )
    width, role = (3.5, "line leak") if leak else (1.5, "line")
    shaft = element(
        "path", d=f"M84 {start}L150 {end}", class_=role, stroke_width=width, stroke_dasharray="7 4" if leak else None
    )
    return [shaft, element("path", d=head, class_=role, stroke_width=width)]


def _mark(x: float, y: float, size: float, on: bool, leak: bool) -> str:
    marked = cell(x, y, size, size, 0.2 if on else 0.0, ("✗" if leak else "•") if on else "")
    return marked.replace('class="cell"', 'class="cell leak"') if leak else marked


def _hidden(state: str, *parts: str, stays: int | None = None) -> str:
    """Parts that are seen once this token was changed in this model: while it is chosen, or from then on (`stays`)."""
    return element("g", *parts, class_="told", data_s=state, data_stays=stays, style="display:none")


def _told(token: str, moved: list[str], leaks: list[str], anything: bool) -> str:
    quoted = [", ".join(f"“{name}”" for name in names) for names in (moved, leaks)]
    may = f"{quoted[0]} may move, and {'does' if len(moved) == 1 else 'do'}"
    may = may if moved else "no output that may move does" if anything else "no output may move"
    if not leaks:
        return f"No leak when “{token}” is changed: {may}."
    return f"Leak: {quoted[1]} must not move when “{token}” is changed, and yet {'does' if len(leaks) == 1 else 'do'}."


def _counts(models: Mapping[str, Tensor], may: Tensor, tolerance: float) -> str:
    forbidden = int((~may).sum())
    found = {name: int(((x.detach().cpu() > tolerance) & ~may).sum()) for name, x in models.items()}
    return f"Of {forbidden} forbidden pairs, " + ", ".join(f"“{name}” leaks in {n}" for name, n in found.items()) + "."


def _number(x: float) -> str:
    return fixed(x) if x >= 0.0005 else "< 0.001"
