"""Views of the chapter `decoding`: the next token's distribution and its filters, a beam search to prune by hand, and
the work of a decoder with and without a cache."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from course_lib.viz.describing import MOST_CHARACTERS, shortened
from course_lib.viz.view import (
    View,
    button,
    cell,
    controls,
    drawing,
    element,
    fixed,
    labels_for,
    panels,
    slider,
    text_of,
    words,
)

__all__ = ["beam_tree", "cache_work", "next_token_bars"]

_WIDTH = 320


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _tail(tokens: Sequence[str], most: int) -> str:
    """What a hypothesis said last: as many whole tokens as fit."""
    for first in range(len(tokens)):
        text = ("… " if first else "") + " ".join(tokens[first:])
        if len(text) <= most:
            break
    return _cut(text, most)


def _whole(name: str, number: object, least: int, most: int, why: str) -> None:
    if type(number) is not int or not least <= number <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most}, got {number!r}; {why}")


# The next token -------------------------------------------------------------------------------------------------------

_MOST_TOKENS, _MOST_BARS = 10_000, 20
_BAR, _BARS_AT, _BAR_ROW = 140, 118, 24  # units of a probability of one; where bars begin; from bar to bar
_NOTHING = 200.0  # a logit so far below the best has no probability in any digit that is shown, at temperature 2 too

_BARS_STYLE = """<style>
attention-view .token.out text{fill:var(--muted)}
attention-view .token.out text.end:first-child{text-decoration:line-through}
</style>"""


def next_token_bars(
    logits: Tensor, tokens: Sequence[str] | None = None, *, shown: int = 12, title: str = "The next token"
) -> View:
    """Bars of the distribution of the next token, with sliders for temperature, top-k and top-p.

    In this order, which is also that of `transformers`: the logits are divided by the temperature; of these, the k
    largest stay (with all that equal the k-th); of their softmax, the smallest set of most probable tokens whose
    probability reaches p stays; what stays is made to sum to one. Of tokens that are equally probable, the first in the
    vocabulary counts as the more probable one for top-p. A pale bar is the probability before filtering.

    Args:
        logits: `(V,)`, of one position, V of 10,000 or fewer.
        tokens: a label for each of the V tokens; their ids if not given.
        shown: bars, of the most probable tokens; all others share one more bar.
        title: what the picture is called.

    Raises:
        TypeError: logits is not a tensor.
        ValueError: logits is no vector, is empty, has over 10,000 entries or entries that are not finite, the labels do
            not fit, or shown is not a whole number from 1 to 20.
    """
    if not isinstance(logits, Tensor):
        raise TypeError(f"logits must be a tensor (V,), got {type(logits).__name__}; a model's are logits[batch, -1]")
    if logits.dim() != 1 or not 1 <= len(logits) <= _MOST_TOKENS:
        raise ValueError(
            f"logits must be (V,) with 1 to {_MOST_TOKENS:,} tokens, got {tuple(logits.shape)}; take one position, "
            f"logits[batch, -1], and of a larger vocabulary the most probable tokens, logits.topk({_MOST_TOKENS})"
        )
    if not torch.isfinite(logits).all():
        raise ValueError(
            "logits must be finite, got NaN or infinity; give them as they are before a filter such as top_p_filter, "
            "whose -inf the view sets itself"
        )
    _whole("shown", shown, 1, _MOST_BARS, "the other tokens share one more bar")
    vocabulary = len(logits)
    names = [shortened(name) for name in labels_for(tokens, vocabulary, "tokens")]
    exact, order = logits.detach().cpu().double().sort(descending=True, stable=True)
    probabilities = exact.softmax(0)
    entropy = torch.special.entr(probabilities).sum().item()
    shown = min(shown, vocabulary)
    best = [names[i] for i in order[:shown].tolist()]
    heights = probabilities[:shown].tolist()
    if vocabulary > shown:
        best.append(f"all {vocabulary - shown} others")
        heights.append(probabilities[shown:].sum().item())
    rows = [_bar(12 + _BAR_ROW * i, name, p) for i, (name, p) in enumerate(zip(best, heights, strict=True))]
    axis = element("path", d=f"M{_BARS_AT} 0v{_BAR_ROW * len(rows)}", class_="line")
    chart = drawing(
        _WIDTH,
        _BAR_ROW * len(rows),
        *rows,
        axis,
        label="Probability of the most probable next tokens, and of all others",
    )
    remain = f"{vocabulary} of {vocabulary} tokens remain,\nentropy {fixed(entropy)} nats."
    sizes = _sizes(vocabulary)
    top_k = slider("k", "top-k", 0, len(sizes) - 1, len(sizes) - 1)
    top_k = top_k.replace("<input ", '<input aria-valuetext="all tokens" ').replace(
        f">{len(sizes) - 1}</output>", ">all</output>"
    )
    sliders = [slider("t", "temperature", 0.2, 2, 1, 0.1), top_k, slider("p", "top-p", 0.05, 1, 1, 0.05)]
    listed = ", ".join(f"“{name}” {fixed(p)}" for name, p in zip(best[:6], heights[:6], strict=True))
    return View(
        kind="next_token",
        title=title,
        description=_cut(
            f"Probability of the next token at temperature 1, without a filter: {listed}. " + remain.replace("\n", " "),
            MOST_CHARACTERS,
        ),
        body=_BARS_STYLE
        + panels(
            element(
                "div",
                *(element("p", text, style="display:flex;gap:.5rem") for text in map(_in_columns, sliders)),
                element("p", text_of(remain), data_k="remain", style="white-space:pre-line"),
            ),
            chart,
        ),
        data={"gaps": _gaps(exact), "sizes": sizes, "shown": shown},
        hint="Pale: probability at this temperature before a filter. Strong: after it. Struck out: cannot be sampled.",
    )


def _bar(y: float, name: str, probability: float) -> str:
    """A row of four: name, bar before filtering, bar after it, number."""
    pale, strong = (
        element(
            "rect", x=_BARS_AT, y=y - 8.0, height=16.0, width=_BAR * probability, fill="var(--weight)",
            fill_opacity=opacity,
        )
        for opacity in (0.3, 1)
    )  # fmt: skip
    return element(
        "g",
        words(_BARS_AT - 6, y, _cut(name, 15), class_="end"),
        pale,
        strong,
        words(_WIDTH - 2, y, fixed(probability), class_="end"),
        class_="token",
    )


def _in_columns(labelled: str) -> str:
    """A slider's label, its handle and its value, below those of the next."""
    return labelled.replace(
        "<label>", '<label style="display:grid;grid-template-columns:6.2rem 10rem auto;gap:.4rem;align-items:center">'
    )


def _sizes(vocabulary: int) -> list[int | str]:
    """What the slider for k goes through: 1, 2, … up to 20, then 50, 100, 200, 500, …, and the whole vocabulary."""
    sizes = {*range(1, 21), *(step * 10**power for power in (1, 2, 3) for step in (2, 5, 10))}
    return [*sorted(size for size in sizes if size < vocabulary), "all"]


def _gaps(ordered: Tensor) -> list[int]:
    """Falling logits as their distances from one to the next in millionths, which takes half the characters.

    Rounding does not add up, equal logits stay equal, and different ones different.
    """
    logits = ordered.tolist()
    places = [0]
    for before, logit in itertools.pairwise(logits):
        place = round(1e6 * min(logits[0] - logit, _NOTHING))
        places.append(max(place, places[-1] + (logit < before)))
    return [0, *(after - before for before, after in itertools.pairwise(places))]


# Beam search ----------------------------------------------------------------------------------------------------------

_MOST_STEPS, _MOST_CANDIDATES, _MOST_BEAMS = 6, 16, 4
_PICK_AT, _PICK, _PICK_ROW = 106, 213, 30  # where candidates begin, their width, and from one to the next
_TOKEN_AT, _LOG_AT, _SUM_AT, _TICK_AT = 128, 250, 301, 311

_TREE_STYLE = """<style>
attention-view :where(.pick) rect{fill:var(--weight);fill-opacity:0;stroke:var(--muted)}
attention-view :where(.pick[aria-pressed=true]) rect{stroke:var(--query);stroke-width:3.5}
attention-view .told .won rect{fill-opacity:1}
attention-view .told :is(.won text,text.won){fill:var(--on)}
attention-view .told path.won{stroke-width:3;stroke:var(--weight)}
attention-view .sum{pointer-events:none}
attention-view :is(.pick[aria-pressed=false] .mine,.step:not(.told) .sum){display:none}
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
        ValueError: the lists do not fit each other, there are more than 6 steps or 16 candidates in one, a parent is no
            open survivor, an open survivor has no candidate, a log-probability is positive or not finite, or beam_size
            or length_penalty is not one of those above.
    """
    _whole("beam_size", beam_size, 1, _MOST_BEAMS, "larger trees are hard to read")
    if not 0 <= length_penalty <= 2 or abs(length_penalty * 20 - round(length_penalty * 20)) > 1e-9:
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
        scores = torch.as_tensor(log_probs[s], dtype=torch.float64).detach().cpu()
        said, extended = [str(token) for token in tokens[s]], [int(parent) for parent in parents[s]]
        _check_step(s, said, extended, scores, alive)
        sums = [alive[parent][1] + score for parent, score in zip(extended, scores.tolist(), strict=True)]
        best = sorted(range(len(sums)), key=lambda i: -sums[i])[:beam_size]
        steps.append(_step(s, said, extended, scores.tolist(), sums, set(best), alive))
        told.append(f"Step {s + 1} keeps " + ", ".join(f"“{said[i]}” {fixed(sums[i])}" for i in best) + ".")
        grown = {i: ([*alive[extended[i]][0], said[i]], sums[i]) for i in sorted(best)}
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
        description=_cut(
            f"Beam search with beam size {beam_size}, {len(steps)} {'step' if len(steps) == 1 else 'steps'}. {finish} "
            + " ".join(told),
            MOST_CHARACTERS,
        ),
        body=_TREE_STYLE + panels(*steps, last) + controls(button("again", "Start again")),
        data={"told": told, "ends": [[" ".join(said), len(said), total] for said, total in ends]},
        hint=f"A candidate's sum is that of its hypothesis, on the left, plus its own log p. Pick the {beam_size} "
        f"best of each step, or all if there are fewer; with the last pick the search shows its own.",
    )


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
                f"“{token}” of step {s + 1} has parent {parent}, which is no open survivor; possible are "
                f"{sorted(alive)}, by their places in the step before (-1: the beginning)"
            )
    if lost := sorted(set(alive) - set(parents)):
        raise ValueError(f"step {s + 1} has no candidate for the open survivors {lost} of the step before; add some")


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
            words(0, y - 8, _tail(said, 10) if said else "(start)", class_="start"),
            words(0, y + 9, fixed(total), class_="small start"),
        ]
    for i in order:
        token, y, won = tokens[i], row[i], i in best
        after = f" after “{' '.join(alive[parents[i]][0])}”" if s else ""
        box = element("rect", x=_PICK_AT, y=y - 13.0, width=_PICK, height=26.0, rx=5)
        kept, start, x = " won" if won else "", starts[parents[i]], _PICK_AT
        parts += [
            element("path", d=f"M90 {start:g}C102 {start:g} 94 {y:g} {x} {y:g}", class_=f"line{kept}"),
            element(
                "g", box,
                words(x + 11, y, "●", class_="small mine"),
                words(_TOKEN_AT, y, _cut(token, 9), class_="start"),
                words(_LOG_AT, y, fixed(scores[i]), class_="end small"),
                class_=f"pick{kept}", role="button", aria_pressed="false", tabindex=-1,
                aria_label=f"“{token}”{after}, log-probability {fixed(scores[i])}",
            ),
            words(_SUM_AT, y, fixed(sums[i]), class_=f"end sum{kept}"),
            words(_TICK_AT, y, "✓", class_="sum won") if won else "",
        ]  # fmt: skip
    height = 34 + _PICK_ROW * len(tokens)
    return element(
        "div",
        element("p", f"Step {s + 1}"),
        drawing(_WIDTH, height - 12, *parts, label=f"Step {s + 1}: candidates for the next token"),
        class_="step told",
    )


def _ends(ends: list[tuple[list[str], float]], scored: list[float], winner: int) -> str:
    parts = [words(0, 8, "hypothesis", class_="small start"), words(_WIDTH - 36, 8, "score", class_="small output")]
    for i, ((said, total), score) in enumerate(zip(ends, scored, strict=True)):
        y = 38 + 46 * i
        count = f"{len(said)} {'token' if len(said) == 1 else 'tokens'}"
        parts += [
            words(0, y - 8, _tail(said, 30), class_="start"),
            words(0, y + 10, f"{count}, sum {fixed(total)}", class_="small start"),
            cell(_WIDTH - 73, y - 16, 72, 32, 1.0 if i == winner else 0.0, fixed(score), key=f"end{i}"),
        ]
    return drawing(_WIDTH, 16 + 46 * len(ends), *parts, label="Hypotheses and their scores, the best one marked")


# Work with and without a cache ----------------------------------------------------------------------------------------

_MOST_NEW = 40
_GRID_TOP = 36  # of the grids' drawing, above which stand the title and the axes
_WORK_STYLE = """<style>
attention-view :is(.now,.again){stroke:var(--weight)}
attention-view .again{stroke-opacity:.4}
attention-view .reused{stroke:var(--key)}
attention-view .masked{stroke:var(--muted);stroke-dasharray:.1 .15}
attention-view .masked.swatch{stroke-dasharray:1.5 2.5}
attention-view .empty{stroke:var(--grid)}
</style>"""


def cache_work(len_source: int, num_steps: int, d_model: int, num_layers: int, *, d_ff: int | None = None) -> View:
    """The work of a decoder, step by step, with and without a cache of keys and values.

    Counted are the multiply-adds of all matrix products of the decoder's layers. With d = d_model, S = len_source, a
    layer that gets t target positions needs, without a cache,

        self-attention    4 t d² (projections) + 2 t² d (scores and weighted sum, masked ones too)
        cross-attention   2 t d² (query and output) + 2 S d² (keys, values of the source) + 2 t S d
        feed-forward      2 t d d_ff

    With a cache, step t computes one position: 4 d² + 2 t d, 2 d² + 2 S d, 2 d d_ff, and the 2 S d² of the source in
    the first step only. Not counted: embeddings, norms, softmax, biases, the output layer, the encoder. The cache
    holds 2 (t + S) d numbers a layer, for one sentence.

    Args:
        len_source: S, source tokens, padding included.
        num_steps: target tokens that are produced, 1 to 40.
        d_model: features of a position.
        num_layers: decoder layers.
        d_ff: hidden features of the feed-forward network; 4 · d_model if not given.

    Raises:
        ValueError: a size that is no positive whole number, or too large.
    """
    d_ff = 4 * d_model if d_ff is None and type(d_model) is int else d_ff
    sizes = {"len_source": len_source, "d_model": d_model, "num_layers": num_layers, "d_ff": d_ff}
    for name, size in sizes.items():
        _whole(name, size, 1, 100_000, "the sizes of a real decoder fit")
    _whole("num_steps", num_steps, 1, _MOST_NEW, "each step is a row of the picture; the counts grow as they do here")
    states = _states(len_source, num_steps, d_model, num_layers, d_ff)
    start = (num_steps + 1) // 2
    paths, _, *texts = states[start - 1]
    return View(
        kind="cache_work",
        title="Work with and without a cache",
        description=f"A decoder of {num_layers} {'layer' if num_layers == 1 else 'layers'}, d_model {d_model}, d_ff "
        f"{d_ff}, {len_source} source tokens. Step t computes t × t scores in each head without a cache, 1 × t with "
        f"one. {states[-1][1]} The cache then holds {states[-1][-1].replace('; ', ' numbers, ')} MiB in float32.",
        body=_WORK_STYLE
        + slider("step", "step t", 1, num_steps, start).replace("<input ", '<input style="width:12rem" ')
        + panels(
            _grid("without a cache", num_steps, list(enumerate(paths))[:3], texts[:5]),
            _grid("with a cache", num_steps, list(enumerate(paths))[3:], texts[5:]),
        ),
        data={"states": states},
        hint="Counted: multiply-adds of the matrix products of all decoder layers (projections, scores, weighted sums, "
        "cross-attention, feed-forward). Not counted: embeddings, norms, softmax, output layer, encoder.",
    )


_DRAWN = ("again", "masked", "now", "reused", "now")  # kinds of cells, three without a cache, two with one
_LEGEND = {
    "now": "computed: new",
    "again": "computed again",
    "masked": "masked, in vain",
    "reused": "from the cache",
    "empty": "not computed",
}
_COUNTED = (
    *("scores, each head", "positions computed", "multiply-adds", "all steps so far", "times that with a cache"),
    *("scores, each head", "positions computed", "multiply-adds", "all steps so far", "cache, numbers; MiB"),
)


def _states(len_source: int, num_steps: int, d: int, num_layers: int, d_ff: int) -> list[list[list[str] | str]]:
    """For each step the paths of all kinds of cells, what is said, and the text of all numbers."""
    states, without, cached = [], 0, 0
    for t in range(1, num_steps + 1):
        row = 6 * d * d + 2 * len_source * d + 2 * d * d_ff  # each position computed, whatever stands before it
        source = 2 * len_source * d * d
        now = num_layers * (t * row + 2 * t * t * d + source)
        one = num_layers * (row + 2 * t * d + (source if t == 1 else 0))
        without, cached = without + now, cached + one
        kept = 2 * num_layers * (t + len_source) * d
        mebibytes, ratio = fixed(4 * kept / 2**20), fixed(without / cached, 2)
        states.append(
            [
                _paths(t),
                f"Step {t}: {now:,} multiply-adds without a cache, {one:,} with one; so far {ratio} times as many.",
                *(f"{t} × {t} = {t * t}", f"{t}", f"{now:,}", f"{without:,}", ratio),
                *(f"1 × {t} = {t}", "1", f"{one:,}", f"{cached:,}", f"{kept:,}; {mebibytes}"),
            ]
        )
    return states


def _paths(t: int) -> list[str]:
    """Cells of each kind as strokes along their rows, a cell wide; row -2 holds keys and values."""
    new, old = f"M0 {t - 1}h{t}M{t - 1}-2h1", f"M0-2h{t - 1}"
    again = "".join(f"M0 {i}h{i + 1}" for i in range(t - 1))
    masked = "".join(f"M{i + 1} {i}H{t}" for i in range(t - 1))
    return [old + again, masked, new, old, new]


def _grid(title: str, num_steps: int, paths: Sequence[tuple[int, str]], texts: Sequence[str]) -> str:
    """Queries on rows, keys on columns, above them keys and values, in units of a cell; below, the work in numbers."""
    size = 168 / (num_steps + 2)
    left, top, below = 24, 36, 222
    lines = "".join(f"M0 {i}h{num_steps}M{i} 0v{num_steps}" for i in range(num_steps + 1))
    lines += f"M0-2h{num_steps}v1H0z" + "".join(f"M{i}-2v1" for i in range(1, num_steps))
    drawn = [element("path", d=path, class_=_DRAWN[i], data_k=f"path{i}") for i, path in paths]
    grid = element(
        "g",
        element("g", *drawn, transform="translate(0 .5)"),
        element("path", d=lines, stroke="var(--grid)", fill="none", stroke_width=0.6 / size),
        transform=f"translate({left} {top + 2 * size:.6g})scale({size:.6g})",
    )
    side = left + size * num_steps + 12
    parts = [
        words(0, 9, title, class_="start"),
        words(left, 27, "keys and values", class_="start small key"),
        element("text", "queries", class_="small query", transform="translate(10 130)rotate(-90)"),
        grid,
    ]
    kinds = [_DRAWN[i] for i, _ in paths]
    for line, kind in enumerate([*kinds, "empty"]):
        y = top + 2 * size + 14 + 24 * line
        swatch = element("path", d=f"M{side:g} {y:g}h16", class_=f"{kind} swatch", stroke_width=12)
        parts += [swatch, words(side + 22, y, _LEGEND[kind], class_="start small")]
    first = 0 if paths[0][0] == 0 else 5
    for i, text in enumerate(texts):
        y = below + 21 * i
        parts += [
            words(0, y, _COUNTED[first + i], class_="start small"),
            words(_WIDTH - 2, y, text, key=f"text{first + i}", class_="end"),
        ]
    return drawing(_WIDTH, below + 21 * 4 + 12, *parts, label=f"Scores of one head {title}, and the work of the step")
