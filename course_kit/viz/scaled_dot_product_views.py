"""Views of the chapter `scaled_dot_product`: a calculator that shows every step, and scores as the width grows."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

from course_kit.viz.describing import count
from course_kit.viz.view import View
from course_kit.viz.view_elements import HIGH, drawing, element, number_box, panels, slider, text_of, words
from course_kit.viz.view_numbers import check_drawable, fixed, numbers

__all__ = ["attention_calculator", "scale_explorer"]

_MOST = 4  # tokens and features of the calculator
_LARGEST = 10.0  # size of a number in it, so that the results fit their cells
_CELL, _ROW, _LEFT, _TOP = 48, 30, 18, 24  # width and height of a cell, and where the first begins
_STEPS = ("Score", "Scaled score", "Weight", "Output")
# Only here: fields so narrow that the arrows of a number field would cover the number.
_CSS = (
    "attention-view .steps{display:flex;flex-wrap:wrap;gap:.6rem .7rem;margin-bottom:.8rem}"
    "attention-view .numbers{display:grid;gap:4px;align-items:center}"
    "attention-view .numbers input{width:100%;box-sizing:border-box;padding:2px;font-size:.88em;text-align:center;"
    "appearance:textfield}"
    "attention-view .changed rect{stroke:var(--output);stroke-width:2.5}"
    "attention-view .numbers input::-webkit-inner-spin-button{appearance:none;margin:0}"
)


def attention_calculator(query: Tensor, key: Tensor, value: Tensor) -> View:
    """Attention on numbers that can be changed: scores, division, softmax and average follow, each with its formula.

    Args:
        query: `(L_q, d_k)`.
        key: `(L_k, d_k)`.
        value: `(L_k, d_v)`. Each of the four sizes is 1 to 4, each number between −10 and 10.

    Raises:
        ValueError: shapes that do not fit, more than four tokens or features, numbers too large or not finite.
    """
    given = {"query": query, "key": key, "value": value}
    for name, tensor in given.items():
        shape = tuple(tensor.shape) if isinstance(tensor, Tensor) else type(tensor).__name__
        if not isinstance(tensor, Tensor) or tensor.dim() != 2 or not all(1 <= size <= _MOST for size in shape):
            raise ValueError(
                f"{name} must be a tensor (tokens, features) with 1 to {_MOST} of each, so that all can be shown, "
                f"got {shape}; choose a part of it, such as {name}[:{_MOST}, :{_MOST}]"
            )
    for name, other, axis, why in (
        ("query", query, 1, "as many features as a query"),
        ("value", value, 0, "as many rows as there are values"),
    ):
        if key.shape[axis] != other.shape[axis]:
            raise ValueError(f"key must have {why}, got key {tuple(key.shape)} and {name} {tuple(other.shape)}")
    check_drawable(**given)
    for name, tensor in given.items():
        if tensor.abs().max() > _LARGEST:
            raise ValueError(
                f"{name} must lie between -{_LARGEST:g} and {_LARGEST:g}, got a number of size "
                f"{tensor.abs().max().item():.6g}; scale it down"
            )
    q, k, v = (tensor.detach().cpu().double() for tensor in given.values())
    scores = q @ k.T
    scaled = scores / math.sqrt(k.shape[1])
    weights = scaled.softmax(-1)
    output = weights @ v
    steps = (
        ("score q·k", scores, "key"),
        (f"÷ √{k.shape[1]}", scaled, "key"),
        ("weight (softmax)", weights, "key"),
        ("output Σ weight·v", output, "feature"),
    )
    return View(
        kind="attention_calculator",
        title="Attention, number by number",
        description=f"{count(len(q), 'query', 'queries')} of {count(q.shape[1], 'feature')}, {count(len(k), 'key')}. "
        + " ".join(_in_words(name, step) for name, step, _ in steps),
        body=element("style", _CSS)
        + element("div", *(_fields(name, tensor) for name, tensor in given.items()), class_="steps")
        + element("div", *(_step(i, *step) for i, step in enumerate(steps)), class_="steps"),
        data={"query": numbers(query), "key": numbers(key), "value": numbers(value.T)},
        hint="Change a number of query, key or value, then choose a number below to see how it comes about.",
        note="Framed cells have just changed. "
        f"Numbers from −{_LARGEST:g} to {_LARGEST:g}. Point at a result, tap it, or reach it with Tab and the "
        "arrow keys.",
        status=f"{_STEPS[0]} q1,k1 = {_products(q[0].tolist(), k[0].tolist())} = {fixed(scores[0, 0].item())}",
    )


def _products(a: list[float], b: list[float]) -> str:
    """A dot product as the script writes it."""
    factors = [[f"({_plain(x)})" if x < 0 else _plain(x) for x in vector] for vector in (a, b)]
    return " + ".join("·".join(pair) for pair in zip(*factors, strict=True))


def _plain(x: float) -> str:
    """A number without the zeros at its end."""
    return fixed(x).rstrip("0").rstrip(".")


def _in_words(name: str, step: Tensor) -> str:
    rows = "; ".join(" ".join(fixed(x, 2) for x in row) for row in step.tolist())
    return f"{name}: {rows}."


def _fields(name: str, tensor: Tensor) -> str:
    """A small table of fields, one for each number."""
    fields = []
    for i, row in enumerate(tensor.tolist()):
        fields.append(element("span", f"{name[0]}{i + 1}", style=f"color:var(--{name})"))
        for j, number in enumerate(row):
            place = f"{j} {i}" if name == "value" else f"{i} {j}"  # the script has the values as columns
            fields.append(number_box(f"{name} {place}", f"{name} {i + 1}, feature {j + 1}", round(number, 3)))
    head = element("div", text_of(name), style=f"color:var(--{name})")
    columns = f"grid-template-columns:1.4rem repeat({tensor.shape[1]},3.35rem)"
    return element("div", head, element("div", *fields, class_="numbers", style=columns))


def _step(number: int, title: str, step: Tensor, below: str) -> str:
    """One of the four matrices, its cells named by step, row and column."""
    parts = [words(_LEFT, 9, title, class_="start output" if number == 3 else "start")]
    label = (lambda j: f"k{j + 1}") if below == "key" else (lambda j: f"{j + 1}")
    for i, row in enumerate(step.tolist()):
        parts.append(words(7, _TOP + _ROW * (i + 0.5), f"q{i + 1}", class_="small query"))
        for j, result in enumerate(row):
            shade = result if number == 2 else 0.0
            x, y = float(_LEFT + _CELL * j), float(_TOP + _ROW * i)
            parts.append(
                element(
                    "g", element("rect", x=x, y=y, width=_CELL, height=_ROW, fill_opacity=shade),
                    words(x + _CELL / 2, y + _ROW / 2, fixed(result), class_="small"),
                    class_="cell high" if shade > HIGH else "cell", data_k=f"c{i}", role="button",
                    aria_label=f"{_STEPS[number]} q{i + 1},{label(j)}: {fixed(result)}",
                )
            )  # fmt: skip
    for j in range(step.shape[1]):
        x = _LEFT + _CELL * (j + 0.5)
        parts.append(
            words(x, _TOP + _ROW * len(step) + 10, label(j), class_="small key" if below == "key" else "small")
        )
    width, height = _LEFT + _CELL * step.shape[1] + 2, _TOP + _ROW * len(step) + 20
    return element("div", drawing(width, height, *parts, label=title), style=f"flex:0 1 {width}px")


_LEAST_WIDTH = 4
_BARS = 160  # bars of a histogram
_HEIGHT = 110  # of its highest bar
_WIDE = 320


def scale_explorer(query: Tensor, key: Tensor) -> View:
    """What dot products do as the number of features grows, with and without the division by √d.

    For d = 4, 8, 16, … the first d features of the given queries and keys make the scores. Shown are their histogram,
    on one ruler for all d, their standard deviation, the keys in use (exponential of the entropy of the weights, mean
    over the queries), and the size of the softmax's derivative (root of the sum of squares of its matrix, median over
    the queries).

    Args:
        query: `(n, d_max)`, with d_max of 4 or more.
        key: `(n, L_k, d_max)`, keys for each query, or `(L_k, d_max)`, the same for all. The division brings
            the standard deviation to 1 if features are independent, with mean 0 and variance 1.

    Raises:
        ValueError: shapes that do not fit, fewer than 4 features, fewer than 2 keys, or numbers that are not finite.
    """
    for name, tensor in (("query", query), ("key", key)):
        if not isinstance(tensor, Tensor) or not tensor.is_floating_point() or not torch.isfinite(tensor).all():
            raise ValueError(
                f"{name} must be a tensor of finite numbers with a decimal point, got "
                f"{tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__}; for instance torch.randn(…)"
            )
    fits = query.dim() == 2 and key.dim() in (2, 3) and key.shape[-1] == query.shape[-1]
    if not fits or len(query) < 1 or key.shape[-2] < 2 or (key.dim() == 3 and len(key) != len(query)):
        raise ValueError(
            f"query must be (n, d) and key (n, L_k, d) or (L_k, d) with two keys or more, got query "
            f"{tuple(query.shape)} and key {tuple(key.shape)}; choose one batch and one head"
        )
    check_drawable(query=query, key=key)
    if query.shape[-1] < _LEAST_WIDTH:
        raise ValueError(f"query must have {_LEAST_WIDTH} features or more, got {query.shape[-1]}; d starts there")
    q, k = query.detach().cpu().double(), key.detach().cpu().double()
    widths = [2**power for power in range(2, q.shape[-1].bit_length())]
    scores = {d: torch.einsum("nd,kd->nk" if k.dim() == 2 else "nd,nkd->nk", q[:, :d], k[..., :d]) for d in widths}
    reach = _round_up(max(3 * _spread(s) for s in scores.values()))
    states = [[_state(s / scale, reach) for s, scale in ((scores[d], 1.0), (scores[d], math.sqrt(d)))] for d in widths]
    start = len(widths) // 2
    beyond = [max(s.abs().max().item() / d ** (0.5 * which) for d, s in scores.items()) > reach for which in range(2)]
    full = (max(float(state[1]) for pair in states for state in pair) or 1.0, k.shape[-2], 0.5)
    return View(
        kind="scale_explorer",
        title="Scores as the number of features grows",
        description=_described(widths, states),
        body=slider("d", "features d", 0, len(widths) - 1, start)
        .replace("<input ", '<input style="width:12rem;margin-left:.6rem" ')
        .replace(f">{start}</output>", f">{widths[start]}</output>")
        + panels(
            *(
                _panel(which, name, states[start][which], reach, beyond[which], full)
                for which, name in enumerate(("without: score q·k", "with: score q·k ÷ √d"))
            )
        ),
        data={"widths": widths, "states": states, "full": full},
        hint="Say what the spread will be with four times as many features, then move the slider.",
        status=f"With {widths[start]} features, the spread is {states[start][0][1]} without the division and "
        f"{states[start][1][1]} with it.",
        note="The outermost bars, marked ≤ and ≥, hold all the scores beyond the ruler." if any(beyond) else "",
    )


def _round_up(number: float) -> float:
    """The next of 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, …, so that the ruler ends at a plain number."""
    power = 10.0 ** math.floor(math.log10(max(number, 1e-6)))
    return next(step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * power >= number * (1 - 1e-9))


def _state(scores: Tensor, reach: float) -> list[object]:
    """Path of the histogram, and spread, keys in use and derivative as text."""
    counts = torch.histc(scores.clamp(-reach, reach), _BARS, -reach, reach)
    heights = (counts / counts.max() * _HEIGHT).round().int().tolist()
    step = _WIDE // _BARS
    bars = "".join(f"V{_HEIGHT - height}h{step * len(list(same))}" for height, same in itertools.groupby(heights))
    path = f"M0 {_HEIGHT}{bars}V{_HEIGHT}"
    weights = scores.softmax(-1)
    in_use = torch.special.entr(weights).sum(-1).exp().mean().item()
    return [path, fixed(_spread(scores)), fixed(in_use), fixed(_derivative(weights).median().item(), 5)]


def _spread(scores: Tensor) -> float:
    return scores.std(correction=0).item()


def _derivative(weights: Tensor) -> Tensor:
    """Root of the sum of squares of diag(a) − a aᵀ for each row a of the weights."""
    squares, cubes = weights.square().sum(-1), weights.pow(3).sum(-1)
    return (squares - 2 * cubes + squares.square()).clamp(min=0).sqrt()


def _panel(which: int, title: str, state: list, reach: float, beyond: bool, full: tuple[float, ...]) -> str:
    """A histogram, and three numbers with a bar each."""
    base = 26 + _HEIGHT
    parts = [
        words(0, 10, title, class_="start"),
        element(
            "g", element("path", d=state[0], fill="var(--weight)", data_k=f"path{which}"), transform="translate(0 26)"
        ),
        element("path", d=f"M0 {base}H{_WIDE}M{_WIDE // 2} {base}v5M1 {base}v5M{_WIDE - 1} {base}v5", class_="line"),
        words(0, base + 15, f"{'≤ ' if beyond else ''}−{reach:g}", class_="small start"),
        words(_WIDE / 2, base + 15, "0", class_="small"),
        words(_WIDE, base + 15, f"{'≥ ' if beyond else ''}{reach:g}", class_="small end"),
    ]
    for row, (name, shown) in enumerate(
        zip(("spread of scores", f"keys in use, of {full[1]}", "derivative, median"), state[1:], strict=True)
    ):
        y = base + 44 + 25 * row
        parts += [
            words(0, y, name, class_="small start"),
            words(202, y, shown, key=f"text{which}{row}", class_="end"),
            element(
                "rect", x=210.0, y=y - 7.0, height=14.0, width=110 * float(shown) / full[row], fill="var(--weight)",
                data_k=f"bar{which}{row}",
            ),
        ]  # fmt: skip
    return drawing(
        _WIDE, base + 112, *parts, label=f"{title}: histogram of the scores, spread, keys in use, derivative"
    )


def _described(widths: list[int], states: list) -> str:
    ends = []
    for d, pair in ((widths[0], states[0]), (widths[-1], states[-1])):
        without, divided = (
            f"spread {state[1]}, keys in use {state[2]}, derivative {fixed(float(state[3]))}" for state in pair
        )
        ends.append(f"{d} features: without division {without}; with it {divided}.")
    return "Scores of queries and keys, without and with the division by √d. " + " ".join(ends)
