"""A view of the logit lens: the token that each layer would predict at each position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from course_kit._checks import check_ids, check_sequence, check_whole
from course_kit.viz.describing import cut, joined
from course_kit.viz.inspection_cells import MOST_CELLS, Cell, cell_map, check_cells
from course_kit.viz.inspection_inputs import thousandths
from course_kit.viz.view import View
from course_kit.viz.view_elements import drawing, labels_for, panels, sentence, words
from course_kit.viz.view_numbers import fixed

__all__ = ["logit_lens_view"]

WIDTH, ROW, TOP = 340, 24, 36
BARS, BAR = 150, 128  # where bars begin, and how long a probability of one is
BEST = 5
LONGEST = 16  # characters of a token beside its bar

_STYLE = """<style>
attention-view .bar{fill:var(--weight)}
attention-view .frame{fill:none;stroke:var(--output);stroke-width:2}
</style>"""


def logit_lens_view(
    logits: Tensor,
    tokens: Sequence[str] | None = None,
    vocabulary: Sequence[str] | None = None,
    *,
    targets: Sequence[int] | Tensor | None = None,
    layers: Sequence[str] | None = None,
    layer: int = -1,
    position: int = 0,
) -> View:
    """The most probable token after each layer at each position; for the chosen cell the five best, and the rank and
    probability that one token has after every layer.

    That token is the target of the position, or, without targets, the most probable one after the last layer. Cells in
    which it comes first are bold. A rank counts the tokens that are more probable, plus one; of equally probable
    tokens, the first in the vocabulary comes first.

    Args:
        logits: `(num_layers + 1, L, V)` or `(num_layers + 1, 1, L, V)`, as `logit_lens` returns them; or their softmax.
            Entries of 0 or more whose rows all sum to 1 are taken as probabilities.
        tokens: the L tokens that the model reads; positions if not given.
        vocabulary: a label for each of the V tokens; their ids if not given.
        targets: `(L,)`, for each position the id of the token to be followed, such as that of the reference.
        layers: names of the first axis; "input", "layer 1", … if not given.
        layer: index of the layer to begin with; negative from the end.
        position: index of the position to begin with.

    Raises:
        TypeError: logits is not a tensor, or the targets are not whole numbers.
        ValueError: another shape, several sentences, NaN or infinity, labels or targets that do not fit, more than
            1,024 cells or 128 positions, or a layer or position that does not exist.
    """
    logits, goals = _checked(logits, targets)
    num_layers, length, size = logits.shape
    default = ["input", *(f"layer {n}" for n in range(1, num_layers))]
    rows = default if layers is None else labels_for(layers, num_layers, "layers")
    read = labels_for(tokens, length, "tokens")
    names = labels_for(vocabulary, size, "vocabulary")
    check_cells(rows, read)
    check_whole(layer=layer, least=-num_layers, most=num_layers - 1)
    check_whole(position=position, least=0, most=length - 1)
    layer %= num_layers
    lens = _lens(logits, goals)
    followed = [names[g] for g in lens.goals]
    what = f"the top token of {rows[-1]}" if targets is None else "the target"
    numbered = {g: n for n, g in enumerate(sorted({*lens.best.flatten().tolist()}))}  # only the tokens that are shown
    chances = torch.tensor(thousandths(lens.chances)).view_as(lens.best)
    own = torch.tensor(thousandths(lens.own)).view_as(lens.own)
    cells = [
        [
            Cell(names[token], chance, f"“{names[token]}” {fixed(chance)}", strong=token == goal)
            for token, chance, goal in zip(
                lens.best[n, :, 0].tolist(), lens.chances[n, :, 0].tolist(), lens.goals, strict=True
            )
        ]
        for n in range(num_layers)
    ]
    return View(
        kind="logit_lens_view",
        title="Logit lens",
        description=_description(lens, rows, read, names, what, position),
        body=_STYLE
        + cell_map(
            cells, rows, read, (layer, position), label="The most probable token after each layer", below="read",
            above=None if targets is None else ("target", followed),
        )
        + panels(
            _best_picture(lens, names, layer, position, f"{rows[layer]} at “{cut(read[position], LONGEST)}”"),
            _rise_picture(lens, rows, layer, position, f"“{cut(followed[position], LONGEST)}”, {what}"),
        ),
        data={
            "names": [names[g] for g in numbered],
            "best": [
                [[[numbered[g], c] for g, c in zip(*pair, strict=True)] for pair in zip(*both, strict=True)]
                for both in zip(lens.best.tolist(), chances.tolist(), strict=True)
            ],
            "rank": lens.ranks.tolist(),
            "own": own.tolist(),
            "rows": rows,
            "read": read,
            "goals": followed,
            "what": what,
        },
        hint=f"Choose a cell to see its most probable tokens, and the rank of {what} in each layer.",
        status=_status(lens, rows[layer], read[position], names, what, layer, position),
        reset=False,
        note=f"The stronger a cell's shade, the more probable its token; bold marks {what}. A wide map scrolls "
        "sideways. With the keyboard: Tab to the map, arrow keys between cells.",
    )  # fmt: skip


def _status(lens: _Lens, row: str, token: str, names: list[str], what: str, layer: int, position: int) -> str:
    """What the script says of the chosen cell."""
    best = zip(lens.best[layer, position].tolist(), thousandths(lens.chances[layer, position]), strict=True)
    listed = ", ".join(f"“{names[n]}” {fixed(chance / 1000)}" for n, chance in best)
    own = fixed(thousandths(lens.own[layer, position])[0] / 1000)
    return (
        f"{sentence(row)} at “{token}”: {listed}. “{names[lens.goals[position]]}”, {what}, has rank "
        f"{lens.ranks[layer, position].item()} and probability {own} here."
    )


@dataclass(frozen=True)
class _Lens:
    """Of each layer and position: the best ids `(layers, L, ≤ 5)` with their probabilities; of the token that is
    followed at each position its id, and its rank and probability after each layer `(layers, L)`."""

    best: Tensor
    chances: Tensor
    goals: list[int]
    ranks: Tensor
    own: Tensor


def _checked(logits: Tensor, targets: Sequence[int] | Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Logits of one sentence, `(layers, L, V)`, and the targets as ids."""
    if not isinstance(logits, Tensor):
        raise TypeError(
            f"logits must be a tensor (num_layers + 1, L, V), got {type(logits).__name__}; pass what "
            f"logit_lens(model, ids) returns"
        )
    if logits.dim() == 4 and logits.shape[1] != 1:
        raise ValueError(
            f"logits must be of one sentence, (num_layers + 1, 1, L, V), got {tuple(logits.shape)}; choose one, "
            f"logits[:, i]"
        )
    logits = logits.detach().cpu()
    logits = logits[:, 0] if logits.dim() == 4 else logits
    if logits.dim() != 3 or 0 in logits.shape or not logits.is_floating_point():
        raise ValueError(
            f"logits must be floating-point numbers (num_layers + 1, L, V), got {logits.dtype} "
            f"{tuple(logits.shape)}; pass what logit_lens(model, ids) returns"
        )
    if logits.shape[0] * logits.shape[1] > MOST_CELLS:
        raise ValueError(
            f"expected at most {MOST_CELLS} cells, got {logits.shape[0]} layers × {logits.shape[1]} positions; pass "
            f"some of the layers or positions"
        )
    if not torch.isfinite(logits).all():
        raise ValueError("logits must be finite, got NaN or infinity; pass them as they are before any filter")
    if targets is None:
        return logits, None
    if not isinstance(targets, Tensor):
        check_sequence(targets=targets)
        for target in targets:
            check_whole(targets=target, least=0, most=logits.shape[2] - 1)
        targets = torch.tensor(targets, dtype=torch.long)
    check_ids(targets=targets)
    goals = targets.detach().cpu()
    if goals.shape != logits.shape[1:2] or not ((goals >= 0) & (goals < logits.shape[2])).all():
        raise ValueError(
            f"targets must be one id per position, {logits.shape[1]} of them, each from 0 to {logits.shape[2] - 1}, "
            f"got {goals.tolist() if goals.numel() <= 12 else tuple(goals.shape)}"
        )
    return logits, goals.long()


def _lens(logits: Tensor, goals: Tensor | None) -> _Lens:
    """Layer by layer, since all of them in double precision may be large."""
    is_softmax = bool((logits >= 0).all()) and bool(((logits.sum(-1, dtype=torch.float64) - 1).abs() < 1e-3).all())
    goals = logits[-1].sort(descending=True, stable=True).indices[:, 0] if goals is None else goals
    found = []
    for layer in logits:
        order = layer.sort(descending=True, stable=True).indices  # (L, V)
        chances = layer.double() if is_softmax else layer.double().softmax(-1)
        best = order[:, :BEST]
        rank = (order == goals[:, None]).int().argmax(-1) + 1
        found.append((best, chances.gather(1, best), rank, chances.gather(1, goals[:, None])[:, 0]))
    best, chances, ranks, own = (torch.stack(parts) for parts in zip(*found, strict=True))
    return _Lens(best, chances, goals.tolist(), ranks, own)


def _description(lens: _Lens, rows: list[str], read: list[str], names: list[str], what: str, position: int) -> str:
    length = len(read)
    first = (lens.ranks == 1).sum(1).tolist()
    counts = ", ".join(f"{row}: {n}" for row, n in zip(rows, first, strict=True))
    column = [
        f"{rows[n]}: “{names[lens.best[n, position, 0]]}” {fixed(lens.chances[n, position, 0].item())}"
        for n in range(len(rows))
    ]
    goal = [
        f"{rows[n]}: {lens.ranks[n, position].item()} ({fixed(lens.own[n, position].item())})" for n in range(len(rows))
    ]
    return joined(
        [
            f"{len(rows)} layer{'s' * (len(rows) > 1)} and {length} position{'s' * (length > 1)}.",
            f"Positions at which {what} comes first: {counts}.",
            f"Most probable token at “{read[position]}”: {', '.join(column)}.",
            f"Rank and probability of “{names[lens.goals[position]]}” there: {', '.join(goal)}.",
        ]
    )


def _best_picture(lens: _Lens, names: list[str], layer: int, position: int, title: str) -> str:
    """The best tokens of the chosen cell as bars."""
    drawn = [words(2, 12, title, key="at", class_="start")]
    best = zip(lens.best[layer, position].tolist(), lens.chances[layer, position].tolist(), strict=True)
    for n, (token, chance) in enumerate(best):
        y = TOP + ROW * (n + 0.5)
        drawn += [
            words(2, y, cut(names[token], LONGEST), key=f"name{n}", class_="start small"),
            *_bar(y, chance, f"best{n}"),
        ]
    return drawing(WIDTH, TOP + ROW * BEST + 4, *drawn, label="The most probable tokens of the chosen cell")


def _rise_picture(lens: _Lens, rows: list[str], layer: int, position: int, title: str) -> str:
    """Rank and probability of the token that is followed, after each layer; the first layer at the bottom."""
    drawn = [words(2, 12, title, key="goal", class_="start")]
    for n, row in enumerate(rows):
        y = TOP + ROW * (len(rows) - n - 0.5)
        drawn += [
            words(4, y, cut(row, LONGEST), class_="start small"),
            words(BARS - 6, y, f"rank {lens.ranks[n, position].item()}", key=f"rank{n}", class_="end small"),
            *_bar(y, lens.own[n, position].item(), f"own{n}"),
        ]
    y = TOP + ROW * (len(rows) - 1 - layer)
    frame = f'<rect class="frame" data-k="frame" x="0" y="{y + 1}" width="{WIDTH}" height="{ROW - 2}" rx="3"/>'
    label = "Rank and probability of the token that is followed, after each layer"
    return drawing(WIDTH, TOP + ROW * len(rows) + 4, *drawn, frame, label=label)


def _bar(y: float, chance: float, key: str) -> list[str]:
    return [
        f'<rect class="bar" data-k="{key}" x="{BARS}" y="{y - 8:g}" width="{BAR * chance:.4g}" height="16"/>',
        words(WIDTH - 4, y, fixed(chance), key=f"{key}-value", class_="end small"),
    ]
