"""Views of the chapter `transformer`: a token on its way through the blocks, three attentions side by side, pre- and
post-norm, and where the parameters are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from course_lib.viz.view import (
    View,
    button,
    cell,
    choice,
    controls,
    drawing,
    element,
    fixed,
    labels_for,
    number_box,
    numbers,
    panels,
    slider,
    text_of,
    words,
)

__all__ = ["block_stepper", "norm_switch", "parameter_calculator", "three_attentions"]

_SIDE = 320


def block_stepper(
    states: Mapping[str, Tensor], *, code: Mapping[str, str] | None = None, tokens: Sequence[str] | None = None
) -> View:
    """One token stepped through the blocks: its features after each step, the step's code and the shape of all.

    Args:
        states: name of each step → what comes out of it, `(L, d_model)`, in the order of the computation. The steps may
            have different widths, such as the inside of a feed-forward network.
        code: name of a step → the line of code that computes it.
        tokens: a label for each of the L tokens.

    Raises:
        TypeError: a state is not a tensor.
        ValueError: no steps, steps that are not matrices of equal length, more than 14 steps, 16 tokens or 64 features,
            code for an unknown step, or entries that are not finite.
    """
    if not 1 <= len(states) <= 14:
        raise ValueError(f"expected 1 to 14 steps, got {len(states)}")
    for name, state in states.items():
        if not isinstance(state, Tensor):
            raise TypeError(f"{name} must be a tensor (L, d_model), got {type(state).__name__}")
        if state.dim() != 2:
            raise ValueError(f"{name} must be (L, d_model), got {tuple(state.shape)}; choose one sentence, state[0]")
    lengths = {len(state) for state in states.values()}
    if len(lengths) > 1 or not 1 <= next(iter(lengths)) <= 16:
        raise ValueError(f"expected all steps to have the same 1 to 16 tokens, got {sorted(lengths)}")
    widest = max(state.shape[1] for state in states.values())
    if not 1 <= min(state.shape[1] for state in states.values()) <= widest <= 64:
        raise ValueError(f"expected 1 to 64 features, got {widest}; show a part of them, state[:, :64]")
    code = dict(code or {})
    if unknown := set(code) - set(states):
        raise ValueError(f"code is given for {sorted(unknown)}, which are no steps; there are {list(states)}")
    names = labels_for(tokens, next(iter(lengths)), "tokens")
    steps = [
        {
            "name": name,
            "state": numbers(state),
            "code": code.get(name, ""),
            "shape": f"({len(state)}, {state.shape[1]})",
        }
        for name, state in states.items()
    ]
    top = max(1e-9, *(state.abs().max().item() for state in states.values()))
    first = next(iter(states.values()))[0]
    boxes = [cell(0, 26 * i, _SIDE, 22, 0.75 if i == 0 else 0.08, name, key=f"box{i}") for i, name in enumerate(states)]
    path = drawing(_SIDE, 26 * len(states), *boxes, label=f"The steps: {', '.join(states)}")
    width = _SIDE / len(first)
    bars = [
        element(
            "rect", x=width * (i + 0.1), width=0.8 * width, data_k=f"bar{i}", fill="var(--output)",
            y=70 - 60 * max(x, 0.0) / top, height=60 * abs(x) / top,
        )
        for i, x in enumerate([*first.tolist(), *[0.0] * (widest - len(first))])
    ]  # fmt: skip
    chart = drawing(
        _SIDE, 176, element("path", d="M0 70H320", class_="line"), *bars,
        words(2, 150, f"shape of all tokens {steps[0]['shape']}", key="shape", class_="start"),
        words(2, 168, f"length of this vector {fixed(first.norm().item())}", key="norm", class_="start"),
        label="The features of the chosen token after the chosen step",
    )  # fmt: skip
    listed = ", ".join(f"{step['name']} {step['shape']}" for step in steps)
    line = element(
        "pre", text_of(steps[0]["code"]), data_k="code", style="white-space:pre-wrap;min-height:1.4em;margin:0"
    )
    return View(
        kind="block_stepper",
        title="One token on its way",
        description=f"{len(states)} steps: {listed}. Bars show the features "
        f"of one token after each; token {names[0]} has length {fixed(first.norm().item())} after {steps[0]['name']}.",
        body=controls(
            slider("step", "step", 1, len(states), 1),
            choice("token", "token", [(str(i), n) for i, n in enumerate(names)]),
        )
        + panels(path, element("div", line, chart)),
        data={"steps": steps, "top": top, "tokens": names},
        hint="Bars upwards are positive features, downwards negative ones; all steps share one scale.",
    )


_MAPS = (("encoder", "encoder: source looks at source"), ("decoder", "decoder: target looks at target"),
         ("cross", "cross-attention: target looks at source"))  # fmt: skip


def three_attentions(
    encoder: Tensor | None, decoder: Tensor | None, cross: Tensor | None, source: Sequence[str], target: Sequence[str]
) -> View:
    """Encoder, decoder and cross attention of one layer in one view, linked by their words.

    Labels count from 1, as the text does: head 1 is `encoder[0]`, `decoder[0]` and `cross[0]`.

    Args:
        encoder: `(H, L_source, L_source)`, weights of the encoder's self-attention.
        decoder: `(H, L_target, L_target)`, weights of the decoder's self-attention.
        cross: `(H, L_target, L_source)`, weights of the decoder's attention to the encoder's output.
        source: a label for each source token, at most 14.
        target: a label for each target token, at most 14.

    Raises:
        TypeError: something other than a tensor.
        ValueError: None instead of weights, shapes that do not fit, weights outside [0, 1] or not finite.
    """
    sizes = {"source": len(source), "target": len(target)}
    if not all(1 <= size <= 14 for size in sizes.values()):
        raise ValueError(f"expected 1 to 14 source and target tokens, got {sizes['source']} and {sizes['target']}")
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
        numbers(weights)  # says what is not finite
        if not ((weights >= -1e-3) & (weights <= 1 + 1e-3)).all():
            raise ValueError(f"{name} must lie in [0, 1]; are these scores? Apply a softmax")
    data = {name: numbers(weights.float()) for name, (weights, *_) in given.items()}
    pictures = []
    best = cross.float().mean(0).argmax(-1).tolist()
    for name, title in _MAPS:
        weights, rows, columns = given[name]
        pictures.append(_map(name, title, weights.float().mean(0), rows, columns, best[0] if name == "encoder" else 0))
    return View(
        kind="three_attentions",
        title="Three attentions",
        description=f"{heads} heads, averaged. In cross-attention "
        + ", ".join(f"“{word}” looks most at “{source[j]}”" for word, j in zip(target, best, strict=True))
        + ".",
        body=controls(
            choice("head", "show", [("-1", "average of the heads"), *((str(h), f"head {h + 1}") for h in range(heads))])
        )
        + panels(*pictures),
        data={**data, "source": list(map(str, source)), "target": list(map(str, target))},
        hint="Point at a cell, or walk with the arrow keys. Rows are queries, columns are keys.",
    )


def _map(name: str, title: str, weights: Tensor, rows: Sequence[str], columns: Sequence[str], framed: int) -> str:
    """A small map with its words; a frame shows the row that is looked at."""
    left, top = 62, 62
    size = min(30.0, (_SIDE - left) / len(columns))
    parts = [words(0, 8, title, class_="start")]
    for j, word in enumerate(columns):
        x = left + size * (j + 0.5)
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
    parts.append(
        element(
            "rect", x=left, y=top + size * framed, width=size * len(columns), height=size, class_="line",
            data_k=f"{name}-row", stroke_width=2, style="pointer-events:none;stroke:var(--query)",
        )
    )  # fmt: skip
    return drawing(_SIDE, top + size * len(rows) + 8, *parts, label=title)


def norm_switch(post: Tensor, pre: Tensor, *, what: str = "gradient of the layer's weights") -> View:
    """The two places of the layer norm: their data flow, and something that was measured in each layer of both.

    Args:
        post: `(num_layers,)`, measured in a stack with the norm after each sum.
        pre: `(num_layers,)`, measured in a stack with the norm at the beginning of each branch.
        what: was measured.

    Raises:
        TypeError: post or pre is not a tensor.
        ValueError: not two lists of the same 1 to 24 positive numbers.
    """
    for name, measured in (("post", post), ("pre", pre)):
        if not isinstance(measured, Tensor):
            raise TypeError(f"{name} must be a tensor (num_layers,), got {type(measured).__name__}")
    if post.dim() != 1 or post.shape != pre.shape or not 1 <= len(post) <= 24:
        raise ValueError(
            f"post and pre must be (num_layers,) with the same 1 to 24 layers, "
            f"got {tuple(post.shape)}, {tuple(pre.shape)}"
        )
    data = {"post": numbers(post), "pre": numbers(pre), "what": what}
    if not (torch.cat([post, pre]) > 0).all():
        raise ValueError("post and pre must be positive, since they are drawn on a logarithmic scale")
    low, high = (f(torch.cat([post, pre]).double().log10().tolist()) for f in (min, max))
    span = max(high - low, 1e-9)
    step = _SIDE / len(post)
    drawn = {"low": low, "span": span}
    charts = {}
    for name, measured in (("post", post), ("pre", pre)):
        bars = []
        for i, x in enumerate(measured.double().log10().tolist()):
            height = 10 + 110 * (x - low) / span
            bars.append(
                element(
                    "rect", x=step * (i + 0.1), width=0.8 * step, y=130 - height, height=height, fill="var(--weight)",
                    fill_opacity=1 if i == 0 else 0.35, data_k=f"{name}{i}",
                )
            )  # fmt: skip
        chart = drawing(
            _SIDE, 160, *bars, element("path", d="M0 130H320", class_="line"),
            words(2, 148, f"first layer {fixed(measured[0].item())}", class_="start small"),
            words(318, 148, f"last layer {fixed(measured[-1].item())}", class_="end small"),
            label=f"{name}-norm: {what} in each layer, logarithmic",
        )  # fmt: skip
        charts[name] = element("div", _wiring(name), chart, data_k=f"{name}-panel")
    return View(
        kind="norm_switch",
        title="Pre-norm and post-norm",
        description=f"Two stacks of {len(post)} layers; {what}, first to last layer. Post-norm: "
        f"{', '.join(fixed(x) for x in post.tolist())}. Pre-norm: {', '.join(fixed(x) for x in pre.tolist())}.",
        body=controls(
            choice("shown", "show", [("both", "both"), ("post", "post-norm"), ("pre", "pre-norm")]),
            slider("layer", "layer", 1, len(post), 1),
        )
        + panels(*charts.values()),
        data={**data, **drawn},
        hint=f"Bars: {what}, on one logarithmic scale for both.",
    )


def _wiring(name: str) -> str:
    """x → sublayer → + → norm, or x → norm → sublayer → +, with the residual branch above."""
    order = ("sublayer", "+", "norm") if name == "post" else ("norm", "sublayer", "+")
    places = {"sublayer": 76, "norm": 54, "+": 24}
    x, parts = 30.0, [words(8, 60, "x", class_="start"), element("path", d="M20 60H312", class_="line")]
    starts = {}
    for part in order:
        width = places[part]
        x += 22
        starts[part] = (x, width)
        parts += [
            element(
                "rect", x=x, y=46.0, width=float(width), height=28.0, rx=6, style="fill:var(--grid)", class_="line"
            ),
            words(x + width / 2, 60, part, class_="small"),
        ]
        x += width
    plus = starts["+"][0] + starts["+"][1] / 2
    parts.append(element("path", d=f"M30 60V22H{plus:g}V46", class_="line"))
    parts.append(
        words(160, 10, "post-norm: norm(x + sublayer(x))" if name == "post" else "pre-norm: x + sublayer(norm(x))")
    )
    return drawing(_SIDE, 84, *parts, label=f"{name}-norm: the path of x")


_TERMS = (
    ("embedding", "embeddings"),
    ("encoder_attention", "encoder: attention"),
    ("encoder_feed_forward", "encoder: feed-forward"),
    ("decoder_attention", "decoder: both attentions"),
    ("decoder_feed_forward", "decoder: feed-forward"),
    ("norms", "layer norms"),
)


def parameter_calculator(
    vocab_size: int = 37_000, d_model: int = 512, num_layers: int = 6, d_ff: int = 2048, *, tied: bool = True
) -> View:
    """Where the parameters of an encoder–decoder are, with sizes to change.

    Counted as in `transformer_parameter_count`: biases in every projection, no final norm, positions without
    parameters. `tied` says whether source, target and output share one matrix of embeddings.

    Raises:
        ValueError: a size that is no positive whole number.
    """
    sizes = {"vocab_size": vocab_size, "d_model": d_model, "num_layers": num_layers, "d_ff": d_ff}
    for name, size in sizes.items():
        if type(size) is not int or size < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {size!r}")
    terms = _terms(vocab_size, d_model, num_layers, d_ff, tied=tied)
    total, largest = sum(terms), max(terms)
    rows = []
    for i, ((key, label), count) in enumerate(zip(_TERMS, terms, strict=True)):
        y = 20 + 40 * i
        rows += [
            words(2, y, label, class_="start"),
            words(318, y, f"{count:,}", key=key, class_="end"),
            element("rect", x=2.0, y=y + 9.0, height=10.0, width=316 * count / largest, fill="var(--weight)",
                    data_k=f"{key}-bar"),
        ]  # fmt: skip
    rows += [
        words(2, 262, "all", class_="start output"),
        words(318, 262, f"{total:,}", key="total", class_="end output"),
    ]
    table = drawing(_SIDE, 276, *rows, label="Parameters of each part")
    style = "display:flex;justify-content:space-between;gap:.6rem;margin:.25rem 0"
    fields = "".join(
        element("label", text_of(name), " ", number_box(name, name, size, 1), style=style)
        for name, size in sizes.items()
    )  # fmt: skip
    return View(
        kind="parameter_calculator",
        title="Where the parameters are",
        description="Parameters: "
        + ", ".join(f"{label} {count:,}" for (_, label), count in zip(_TERMS, terms, strict=True))
        + f"; all {total:,}.",
        body=panels(
            element("div", fields, controls(button("tied", "one matrix for all embeddings", pressed=tied))), table
        ),
        data={"keys": [key for key, _ in _TERMS], "tied": tied},
        hint="The number of heads is missing, since it changes nothing.",
    )


def _terms(vocab_size: int, d_model: int, num_layers: int, d_ff: int, *, tied: bool) -> list[int]:
    attention, feed_forward = 4 * d_model * (d_model + 1), 2 * d_model * d_ff + d_ff + d_model
    return [
        vocab_size * d_model * (1 if tied else 3), num_layers * attention, num_layers * feed_forward,
        num_layers * 2 * attention, num_layers * feed_forward, num_layers * 10 * d_model,
    ]  # fmt: skip
