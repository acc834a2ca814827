"""A view of a beam search, to be pruned by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from course_kit._checks import check_finite, check_instance, check_number, check_sequence, check_texts, check_whole
from course_kit.viz.describing import cut
from course_kit.viz.labels import readable_labels
from course_kit.viz.view import View
from course_kit.viz.view_elements import cell, drawing, element, panels, slider, words
from course_kit.viz.view_numbers import fixed

__all__ = ["beam_tree"]

WIDTH = 320  # units of a panel
_MOST_STEPS, _MOST_CANDIDATES, _MOST_BEAMS = 6, 16, 4
_PICK_AT, _PICK, _PICK_ROW = 102, 217, 34  # where candidates begin, their width, and from one to the next
# Columns so wide that two digits before the point fit, and no number touches the next.
_TOKEN_AT, _LOG_AT, _SUM_AT, _TICK_AT = 121, 247, 302, 312

_TREE_STYLE = """<style>
attention-view :where(.pick) rect{fill:var(--weight);fill-opacity:0;stroke:var(--muted)}
attention-view :where(.pick[aria-pressed=true]) rect{stroke:var(--query);stroke-width:3.5}
attention-view .told .won rect{fill-opacity:1}
attention-view .told :is(.won text,text.won){fill:var(--on)}
attention-view .told path.won{stroke-width:3;stroke:var(--weight)}
attention-view .sum{pointer-events:none}
attention-view :is(.pick[aria-pressed=false] .mine,.step:not(.told) .sum){display:none}
/* Steps lie side by side and scroll. Later steps already take up their height, so nothing below the view moves. */
attention-view .panels:has(>.step){flex-wrap:nowrap;gap:0;overflow-x:auto;container-type:inline-size}
attention-view .step{--w:min(320px,94cqw);flex:0 0 var(--w);margin-right:16px}
attention-view .step svg{width:var(--w)}
attention-view .step[hidden]{display:block!important;visibility:hidden;flex-basis:0;margin:0;overflow:hidden}
attention-view .step[hidden]{white-space:nowrap}
attention-view .step[hidden]:last-child{padding-bottom:1.4em}
</style>"""


def beam_tree(
    tokens: Sequence[Sequence[str]],
    parents: Sequence[Sequence[int] | Tensor],
    log_probs: Sequence[Sequence[float] | Tensor],
    beam_size: int,
    *,
    eos: str = "<eos>",
    length_penalty: float = 0.0,
) -> View:
    """A beam search to prune by hand: pick the survivors of each step, then see which ones the search keeps.

    Of all candidates of a step, the `beam_size` with the largest sum of log-probabilities survive; of equal ones those
    that come first. Survivors that are `eos` are finished, the others are extended in the next step. In the end a
    hypothesis scores its sum divided by n^length_penalty, n = its tokens, eos counted, and a slider changes the
    penalty; those that have not ended compete as they stand.

    The three lists hold, for each step, an entry a candidate, in any order. For the survivors to be those of a search
    in the whole vocabulary, give each open hypothesis at least its `beam_size` most probable next tokens.

    Args:
        tokens: what each candidate adds to its parent.
        parents: which candidate of the step before it extends, by its index there; -1 for all of the first step.
        log_probs: log-probability of the token, given the parent.
        beam_size: survivors a step, 1 to 4.
        eos: the token that ends a hypothesis.
        length_penalty: where the slider stands at first, a multiple of 0.05 from 0 to 2.

    Raises:
        TypeError: one of them, or an entry of the lists, is of another type.
        ValueError: the lists do not fit each other, there are more than 6 steps or 16 candidates in one, a parent is no
            open survivor, an open survivor has no candidate, a log-probability is positive or not finite, or beam_size
            or length_penalty is not one of those above.
    """
    check_whole(beam_size=beam_size, most=_MOST_BEAMS, hint="; larger trees are hard to read")
    check_instance(str, eos=eos)
    check_finite("length_penalty", length_penalty, 0, 2)
    check_sequence(tokens=tokens, parents=parents, log_probs=log_probs)
    if abs(length_penalty * 20 - round(length_penalty * 20)) > 1e-9:
        raise ValueError(
            f"length_penalty must be a multiple of 0.05 from 0 to 2, where the slider can stand, got {length_penalty!r}"
        )
    if not 1 <= len(tokens) <= _MOST_STEPS or not len(tokens) == len(parents) == len(log_probs):
        raise ValueError(
            f"tokens, parents and log_probs must have the same 1 to {_MOST_STEPS} steps, "
            f"got {len(tokens)}, {len(parents)} and {len(log_probs)}; show the first steps of a longer search"
        )
    alive: dict[int, tuple[list[str], float]] = {-1: ([], 0.0)}
    steps, ends, told = [], [], []
    for s in range(len(tokens)):
        said, extended, scores = _step_of(f"[{s}]", tokens[s], parents[s], log_probs[s])
        said = readable_labels(said)
        _check_step(s, said, extended, scores, alive)
        sums = [alive[parent][1] + score for parent, score in zip(extended, scores.tolist(), strict=True)]
        best = sorted(range(len(sums)), key=lambda i: -sums[i])[:beam_size]
        steps.append(_step(s, said, extended, scores.tolist(), sums, set(best), alive))
        grown = {i: ([*alive[extended[i]][0], said[i]], sums[i]) for i in sorted(best)}
        told.append(f"Step {s + 1} keeps " + " and ".join(f"“{' '.join(grown[i][0])}”" for i in best) + ".")
        ends += [grown[i] for i in best if said[i] == eos]
        alive = {i: hypothesis for i, hypothesis in grown.items() if said[i] != eos}
    ends += sorted(alive.values(), key=lambda end: -end[1])
    scored = [total / len(said) ** length_penalty for said, total in ends]
    winner = scored.index(max(scored))
    finish = f"Best at length penalty {length_penalty:g}: “{' '.join(ends[winner][0])}”, score {fixed(scored[winner])}."
    last = element(
        "div",
        element("p", "Score: sum ÷ (number of tokens)^penalty"),
        slider("penalty", "length penalty", 0, 2, length_penalty, 0.05),
        _ends(ends, scored, winner),
        class_="step",
    )
    return View(
        kind="beam_tree",
        title="A beam search, pruned by hand",
        description=cut(
            f"Beam search with beam size {beam_size}, {len(steps)} {'step' if len(steps) == 1 else 'steps'}. {finish} "
            + " ".join(told),
        ),
        body=_TREE_STYLE + panels(*steps, last),
        data={"told": told, "ends": [[" ".join(said), len(said), total] for said, total in ends]},
        hint=f"Pick the {beam_size} best candidates of each step, or all if there are fewer; with the last pick, the "
        f"view shows those that the search keeps.",
        note="A blue outline with ● marks what you picked, a filled row with ✓ what the search keeps. The sum of a "
        "candidate is that of its hypothesis, on the left, plus its own log p.",
        status=f"{min(beam_size, len(tokens[0]))} more to pick.",
    )


def _step_of(
    place: str, tokens: Sequence[str], parents: Sequence[int] | Tensor, log_probs: Sequence[float] | Tensor
) -> tuple[list[str], list[int], Tensor]:
    """The candidates of a step, each entry of which is of the right type."""
    parents, log_probs = (x.tolist() if isinstance(x, Tensor) else x for x in (parents, log_probs))
    check_sequence(**{f"parents{place}": parents, f"log_probs{place}": log_probs})
    for parent in parents:
        check_whole(**{f"parents{place}": parent}, least=-1)
    for log_prob in log_probs:
        check_number(f"log_probs{place}", log_prob)
    return check_texts(**{f"tokens{place}": tokens}), list(parents), torch.tensor(log_probs, dtype=torch.float64)


def _check_step(s: int, tokens: Sequence[str], parents: Sequence[int], scores: Tensor, alive: Iterable[int]) -> None:
    if scores.dim() != 1 or not 1 <= len(tokens) <= _MOST_CANDIDATES or not len(tokens) == len(parents) == len(scores):
        raise ValueError(
            f"step {s + 1} must have the same 1 to {_MOST_CANDIDATES} candidates in tokens, parents and log_probs, got "
            f"{len(tokens)}, {len(parents)} and {tuple(scores.shape)}; give each hypothesis its most probable tokens"
        )
    if not (torch.isfinite(scores) & (scores <= 1e-6)).all():
        raise ValueError(
            f"log_probs of step {s + 1} must be finite and at most 0, got {[round(x, 3) for x in scores.tolist()]}; "
            f"log_softmax makes them of logits"
        )
    for token, parent in zip(tokens, parents, strict=True):
        if parent not in alive:
            raise ValueError(
                f"parents: “{token}” of step {s + 1} has parent {parent}, which is not an open survivor, got "
                f"{parents}; possible are {sorted(alive)}, by their places in the step before (-1: the beginning)"
            )
    if lost := sorted(set(alive) - set(parents)):
        raise ValueError(
            f"parents: step {s + 1} has no candidate for the open survivors {lost} of the step before, got {parents}; "
            f"add some"
        )


def _step(
    s: int, tokens: Sequence[str], parents: Sequence[int], scores: list[float], sums: list[float], best: set[int],
    alive: dict[int, tuple[list[str], float]],
) -> str:  # fmt: skip
    """The open hypotheses on the left, their candidates on the right, those that survive marked."""
    order = sorted(range(len(tokens)), key=lambda i: (parents[i], -scores[i]))
    row = {i: 34.0 + _PICK_ROW * place for place, i in enumerate(order)}
    parts = [
        words(0, 8, "hypothesis, sum", class_="small start"),
        words(_TOKEN_AT, 8, "next", class_="small start"),
        words(_LOG_AT, 8, "log p", class_="small end"),
        words(_SUM_AT, 8, "sum", class_="small end sum"),
    ]
    starts = {}
    for parent, (said, total) in alive.items():
        mine = [row[i] for i in order if parents[i] == parent]
        y = starts[parent] = sum(mine) / len(mine)
        parts += [
            words(0, y - 9, _tail(said, 10) if said else "(start)", class_="start"),
            words(0, y + 9, fixed(total), class_="small start"),
        ]
    for i in order:
        token, y, won = tokens[i], row[i], i in best
        after = f" after “{' '.join(alive[parents[i]][0])}”" if s else ""
        box = element("rect", x=_PICK_AT, y=y - 13.0, width=_PICK, height=26.0, rx=5)
        kept, start, x = " won" if won else "", starts[parents[i]], _PICK_AT
        parts += [
            element("path", d=f"M90 {start:g}C99 {start:g} 93 {y:g} {x} {y:g}", class_=f"line{kept}"),
            element(
                "g", box,
                words(x + 10, y, "●", class_="small mine"),
                words(_TOKEN_AT, y, cut(token, 9), class_="start"), " ",  # so that these are two words, when read
                words(_LOG_AT, y, fixed(scores[i]), class_="end small"),
                class_=f"pick{kept}", role="button", aria_pressed="false", tabindex=-1,
                aria_label=f"“{token}” {fixed(scores[i])}, log-probability{after}",
            ),
            words(_SUM_AT, y, fixed(sums[i]), class_=f"end small sum{kept}"),
            words(_TICK_AT, y, "✓", class_="sum won") if won else "",
        ]  # fmt: skip
    height = 34 + _PICK_ROW * len(tokens)
    return element(
        "div",
        element("p", f"Step {s + 1}"),
        drawing(WIDTH, height - 12, *parts, label=f"Step {s + 1}: candidates for the next token"),
        class_="step told",
    )


def _tail(tokens: Sequence[str], most: int) -> str:
    """What a hypothesis said last: as many whole tokens as fit."""
    for first in range(len(tokens)):
        text = ("… " if first else "") + " ".join(tokens[first:])
        if len(text) <= most:
            break
    return cut(text, most)


def _ends(ends: list[tuple[list[str], float]], scored: list[float], winner: int) -> str:
    parts = [words(0, 8, "hypothesis", class_="small start"), words(WIDTH - 36, 8, "score", class_="small output")]
    for i, ((said, total), score) in enumerate(zip(ends, scored, strict=True)):
        y = 38 + 46 * i
        count = f"{len(said)} {'token' if len(said) == 1 else 'tokens'}"
        parts += [
            words(0, y - 8, _tail(said, 30), class_="start"),
            words(0, y + 10, f"{count}, sum {fixed(total)}", class_="small start"),
            cell(WIDTH - 73, y - 16, 72, 32, 1.0 if i == winner else 0.0, fixed(score), key=f"end{i}"),
        ]
    return drawing(WIDTH, 16 + 46 * len(ends), *parts, label="Hypotheses and their scores, the best one marked")
