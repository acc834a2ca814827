"""A view of the chapter `masking`: what a changed token moves, and what it must not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from course_kit._checks import check_finite, check_whole
from course_kit.viz.describing import cut
from course_kit.viz.map_axes import WIDTH, axis_labels, frame, short
from course_kit.viz.masking_painter import MOST, ROW, mask_of
from course_kit.viz.view import View
from course_kit.viz.view_elements import button, cell, choice, controls, drawing, element, labels_for, panels, words
from course_kit.viz.view_numbers import check_drawable, fixed

__all__ = ["leak_detector"]

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
    may = mask_of("allowed", allowed, shape) if allowed is not None else torch.ones(shape, dtype=torch.bool).tril()
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
                aria_label=f"choose “{name}”", aria_pressed=j == token, tabindex=-1 if j else 0,
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
                class_="guess", role="button", aria_label=f"output “{name}” will move", aria_pressed=False,
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
