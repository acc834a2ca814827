"""Views of the chapter `transformer`: a token on its way through the blocks, three attentions side by side, and where
the parameters are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from course_lib._checks import check_floats, check_instance, check_texts, check_whole
from course_lib.viz.labels import readable_labels
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
    number_box,
    numbers,
    panels,
    rounded,
    text_of,
    words,
)

__all__ = ["block_stepper", "parameter_calculator", "three_attentions"]

_SIDE = 320
_NAMED = 3  # target words whose source word is named


def block_stepper(
    states: Mapping[str, Tensor], *, code: Mapping[str, str] | None = None, tokens: Sequence[str] | None = None
) -> View:
    """One token stepped through the blocks: its features after each step, the step's code, and the lengths of all
    tokens after the steps that were looked at.

    Args:
        states: name of each step → what comes out of it, `(L, d_model)`, in the order of the computation. The steps may
            have different widths, such as the inside of a feed-forward network.
        code: name of a step → the line of code that computes it.
        tokens: a label for each of the L tokens.

    Raises:
        TypeError: a state is not a floating-point tensor, or names or code are not texts.
        ValueError: no steps, steps that are not matrices of equal length, more than 14 steps, 16 tokens or 64 features,
            code for an unknown step, or entries that are not finite.
    """
    code = {} if code is None else code
    check_instance(Mapping, states=states, code=code)
    check_texts(states=states), check_texts(code=code), check_texts(code=code.values())
    if not 1 <= len(states) <= 14:
        raise ValueError(f"states must be 1 to 14 steps, got {len(states)}; show a part of the computation")
    check_floats(**states)
    check_drawable(**states)
    for name, state in states.items():
        if state.dim() != 2:
            raise ValueError(f"{name} must be (L, d_model), got {tuple(state.shape)}; choose one sentence, state[0]")
    lengths = {len(state) for state in states.values()}
    if len(lengths) > 1 or not 1 <= next(iter(lengths)) <= 16:
        raise ValueError(f"states must all have the same 1 to 16 tokens, got {sorted(lengths)}; take one sentence")
    widest = max(state.shape[1] for state in states.values())
    if not 1 <= min(state.shape[1] for state in states.values()) <= widest <= 64:
        raise ValueError(f"states must have 1 to 64 features, got {widest}; show a part of them, state[:, :64]")
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
    sizes = {name: state.detach().cpu().double().norm(dim=-1).tolist() for name, state in states.items()}
    longest = max(1e-9, *(max(size) for size in sizes.values()))
    first = next(iter(states.values()))[0]
    boxes = [
        element(
            "button", text_of(f"{i + 1}. {step['name']}"), _lengths(size, longest, shown=i == 0), type="button",
            data_k=f"box{i}", aria_pressed=str(i == 0).lower(), tabindex=-1 if i else 0,
            style="display:flex;justify-content:space-between;align-items:center;gap:.5rem;text-align:left",
        )
        for i, (step, size) in enumerate(zip(steps, sizes.values(), strict=True))
    ]  # fmt: skip
    path = element(
        "div", *boxes, role="group", aria_label="The steps", style="display:flex;flex-direction:column;gap:4px"
    )
    width = _SIDE / len(first)
    bars = [
        element(
            "rect", x=width * (i + 0.1), width=0.8 * width, data_k=f"bar{i}", fill="var(--output)",
            y=70 - 60 * max(x, 0.0) / top, height=60 * abs(x) / top,
        )
        for i, x in enumerate([*first.tolist(), *[0.0] * (widest - len(first))])
    ]  # fmt: skip
    chart = drawing(
        _SIDE, 196, element("path", d="M0 70H320", class_="line"), *bars,
        words(2, 150, f"shape of all tokens {steps[0]['shape']}", key="shape", class_="start"),
        words(2, 169, f"length of this vector {fixed(first.norm().item())}", key="norm", class_="start"),
        words(2, 188, _few(first.tolist()), key="numbers", class_="start"),
        label="The features of the chosen token after the chosen step",
    )  # fmt: skip
    listed = ", ".join(f"{step['name']} {step['shape']}" for step in steps)
    said = _told([fixed(size) for size in next(iter(sizes.values()))], names[0])
    line = element(
        "pre", text_of(steps[0]["code"]), data_k="code", style="white-space:pre-wrap;min-height:1.4em;margin:0"
    )
    return View(
        kind="block_stepper",
        title="One token on its way",
        description=f"{len(states)} steps: {listed}. Bars show the features "
        f"of one token after each; token {names[0]} has length {fixed(first.norm().item())} after {steps[0]['name']}.",
        body=controls(
            choice("token", "token", [(str(i), n) for i, n in enumerate(names)]),
            button("play", "go through all steps", pressed=False),
        )
        + panels(path, element("div", line, chart)),
        data={"steps": steps, "top": top, "tokens": names},
        hint="Press each step, and compare the lengths of all tokens, the small bars.",
        status=f"Step 1, {steps[0]['name']}: {said}.",
        note="Small bars: the length of each token's vector, the chosen token in full colour. Large bars: the features "
        "of the chosen token, positive ones upwards. Each kind has one scale for all steps.",
    )


def _lengths(lengths: Sequence[float], longest: float, *, shown: bool) -> str:
    """A small bar for each token, as long as its vector is; seen once the step is looked at."""
    width, height = 9 * len(lengths), 28
    bars = [
        element(
            "rect", x=9 * t + 1, y=height * (1 - length / longest), width=7, height=height * length / longest, data_t=t,
            fill="currentColor", fill_opacity=0.4 if t else 1,
        )
        for t, length in enumerate(lengths)
    ]  # fmt: skip
    style = f"width:{width}px;flex:none" + ("" if shown else ";visibility:hidden")
    return element("svg", *bars, viewBox=f"0 0 {width} {height}", aria_hidden="true", style=style)


def _told(lengths: Sequence[str], token: str) -> str:
    """The lengths of all tokens in words, as the script says them."""
    smallest, largest = min(lengths, key=float), max(lengths, key=float)
    if smallest == largest:
        return f"all tokens have length {largest}"
    return f"lengths go from {smallest} to {largest}, and “{token}” has {lengths[0]}"


def _few(row: Sequence[float]) -> str:
    """The first features of a vector."""
    return f"[{', '.join(fixed(x, 2) for x in row[:4])}{', …' if len(row) > 4 else ''}]"


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


_TERMS = (
    ("embedding", "embeddings"),
    ("encoder_attention", "encoder: attention"),
    ("encoder_feed_forward", "encoder: feed-forward"),
    ("decoder_attention", "decoder: both attentions"),
    ("decoder_feed_forward", "decoder: feed-forward"),
    ("norms", "layer norms"),
)
_LONGEST = 256  # units that the longest bar may have
_ROOM = 3  # a bar can grow to so many times the largest of the first ones before all of them shrink


def parameter_calculator(
    vocab_size: int = 37_000, d_model: int = 512, num_layers: int = 6, d_ff: int = 2048, *, tied: bool = True
) -> View:
    """Where the parameters of an encoder–decoder are, with sizes to change.

    Counted as in `transformer_parameter_count`: biases in every projection, no final norm, positions without
    parameters. `tied` says whether source, target and output share one matrix of embeddings.

    Raises:
        TypeError: a size is not a whole number.
        ValueError: a size is below 1.
    """
    sizes = {"vocab_size": vocab_size, "d_model": d_model, "num_layers": num_layers, "d_ff": d_ff}
    check_whole(**sizes)
    terms = _terms(vocab_size, d_model, num_layers, d_ff, tied=tied)
    total, scale = sum(terms), _ROOM * max(terms)
    rows = []
    for i, ((key, label), count) in enumerate(zip(_TERMS, terms, strict=True)):
        y = 20 + 40 * i
        bar = {"x": 2.0, "width": _LONGEST * count / scale, "fill": "var(--weight)"}
        rows += [
            words(2, y, label, class_="start"),
            words(318, y, f"{count:,}", key=key, class_="end"),
            element("rect", **bar, y=y + 8.0, height=16.0, fill_opacity=0.35, data_k=f"{key}-first"),
            element("rect", **bar, y=y + 12.0, height=8.0, data_k=f"{key}-bar"),
            words(318, y + 16, "× 1.00", key=f"{key}-times", class_="end small"),
        ]
    rows += [
        words(2, 262, "all", class_="start output"),
        words(318, 262, f"{total:,}", key="total", class_="end output"),
        words(318, 282, "1.00 × as many as at first", key="times", class_="end small"),
    ]
    table = drawing(_SIDE, 292, *rows, label="Parameters of each part")
    style = "display:grid;grid-template-columns:6.5rem 1fr;align-items:center;margin:.25rem 0"
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
            element(
                "div",
                fields,
                controls(button("tied", "one matrix for all embeddings", pressed=tied)),
            ),
            table,
        ),
        data={
            "keys": [key for key, _ in _TERMS], "tied": tied, "first": terms, "total": total, "names": list(sizes),
            "scale": scale, "longest": _LONGEST,
        },
        hint="Say by what factor the total will grow when you double a size; then type it.",
        status=f"The model has {total:,} parameters, 1.00 × as many as at first.",
        note="Pale bars are the counts at first; if a bar grows too long, all bars shrink by the same factor. The "
        "number of heads is not among the sizes, because it changes no count.",
    )  # fmt: skip


def _terms(vocab_size: int, d_model: int, num_layers: int, d_ff: int, *, tied: bool) -> list[int]:
    attention, feed_forward = 4 * d_model * (d_model + 1), 2 * d_model * d_ff + d_ff + d_model
    return [
        vocab_size * d_model * (1 if tied else 3), num_layers * attention, num_layers * feed_forward,
        num_layers * 2 * attention, num_layers * feed_forward, num_layers * 10 * d_model,
    ]  # fmt: skip
