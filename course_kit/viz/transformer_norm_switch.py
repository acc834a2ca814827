"""Pre-norm and post-norm of several depths, before and during training: predict which learns, then let them train."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from torch import Tensor

from course_kit._checks import check_finite, check_floats, check_instance, check_whole
from course_kit.viz.view import View
from course_kit.viz.view_elements import button, choice, controls, drawing, element, panels, slider, words
from course_kit.viz.view_numbers import check_drawable, fixed, rounded

__all__ = ["norm_switch"]

_SIDE = 320
_LEARNED = (("none", "neither learns"), ("post", "only post-norm learns"), ("pre", "only pre-norm learns"),
            ("both", "both learn"))  # fmt: skip


def norm_switch(
    post: Mapping[int, tuple[Tensor, Tensor]],
    pre: Mapping[int, tuple[Tensor, Tensor]],
    *,
    steps: Sequence[int] = (0,),
    guessing: float = 1.0,
    what: str = "gradient of the layer's weights",
) -> View:
    """Pre-norm and post-norm at several depths, before and during training: the reader predicts which of the two
    learns, lets them train, and compares.

    A stack has learned when its last loss is below half of the loss of guessing.

    Args:
        post: depth → (measured, loss) of a stack with the norm after each sum: `(len(steps), depth)`, something
            positive in each layer after each of these numbers of training steps, and `(len(steps),)`, its loss.
        pre: the same for a stack with the norm at the beginning of each branch, at the same depths.
        steps: numbers of training steps after which all was measured, rising.
        guessing: loss of a stack that has learned nothing.
        what: was measured.

    Raises:
        TypeError: post or pre is not a mapping to pairs of tensors, or steps holds something else than whole numbers.
        ValueError: other depths in post than in pre, more than 6 depths, 24 layers or 12 steps, shapes that do not fit,
            or numbers that are not positive.
    """
    check_instance(str, what=what)
    check_instance(Mapping, post=post, pre=pre)
    check_finite("guessing", guessing)
    if not 0 < guessing < 1000:
        raise ValueError(f"guessing must be above 0 and below 1000, got {guessing}; it is a loss: log(vocab_size)")
    if not isinstance(steps, Sequence) or isinstance(steps, str):
        raise TypeError(f"steps must be a list of numbers of training steps, got {steps!r:.40}")
    for step in steps:
        check_whole(steps=step, least=0)
    if not 1 <= len(steps) <= 12 or list(steps) != sorted(set(steps)):
        raise ValueError(f"steps must be 1 to 12 rising numbers of training steps, got {list(steps)}")
    if list(post) != list(pre) or not 1 <= len(post) <= 6:
        raise ValueError(f"post and pre must have the same 1 to 6 depths, got {list(post)} and {list(pre)}")
    for depth in post:
        check_whole(depth=depth, most=24)
    kept = {name: [_measured(name, depth, pair, len(steps)) for depth, pair in given.items()]
            for name, given in (("post", post), ("pre", pre))}  # fmt: skip
    everything = [x for stacks in kept.values() for stack in stacks for row in stack["layers"] for x in row]
    low, high = (math.log10(f(everything)) for f in (min, max))
    depths, at = list(post), len(post) - 1
    losses = [x for stacks in kept.values() for stack in stacks for x in stack["loss"]]
    drawn = {"low": low, "span": max(high - low, 1e-9), "top": max(guessing, *losses)}
    sentences = []
    for name, stacks in kept.items():
        ends = ", ".join(f"{depth} layers {fixed(s['loss'][-1], 2)}" for depth, s in zip(depths, stacks, strict=True))
        sentences.append(f"{name.capitalize()}-norm, loss after {steps[-1]} steps: {ends}.")
    return View(
        kind="norm_switch",
        title="Pre-norm and post-norm, trained",
        description=f"Stacks of {', '.join(map(str, depths))} layers, and the {what} in each layer after "
        f"{', '.join(map(str, steps))} steps of training. The loss of guessing is {fixed(guessing, 2)}. "
        + " ".join(sentences),
        body=controls(
            slider("depth", "layers", 0, at, at).replace(f">{at}</output>", f">{depths[at]}</output>"),
            choice("guess", "I expect:", [("", "choose …"), *_LEARNED]),
            button("train", "train", pressed=False),
            element("strong", data_k="verdict"),
            slider("step", "training steps", 0, len(steps) - 1, 0)
            .replace("<input ", "<input disabled ")
            .replace(">0</output>", f">{steps[0]}</output>"),
        )
        + panels(*(_stack(name, stacks[at], depths, drawn, guessing, what) for name, stacks in kept.items())),
        data={**kept, **drawn, "depths": depths, "steps": list(steps), "guessing": guessing,
              "said": dict(_LEARNED)},
        hint="Choose how many layers, say which of the two will learn, then press “train”.",
        status=f"{depths[at]} layers, {steps[0]} training steps: "
        + ", ".join(f"{name}-norm loss {fixed(stacks[at]['loss'][0], 2)}" for name, stacks in kept.items()) + ".",
        note="Afterwards the slider of the training steps moves. "
        f"Upper bars: {what}, one per layer, logarithmic. Lower bar: the loss.",
    )  # fmt: skip


def _measured(name: str, depth: int, pair: tuple[Tensor, Tensor], count: int) -> dict[str, list]:
    """What is shown of one stack: three digits of each layer, two decimals of the loss, so that the view is the same
    on every processor."""
    if not isinstance(pair, tuple) or len(pair) != 2:
        raise TypeError(f"{name}[{depth}] must be a pair (measured, loss), got {type(pair).__name__}")
    layers, loss = pair
    check_floats(**{f"{name}[{depth}], measured": layers, f"{name}[{depth}], loss": loss})
    check_drawable(**{f"{name}[{depth}], measured": layers, f"{name}[{depth}], loss": loss})
    if layers.shape != (count, depth) or loss.shape != (count,):
        raise ValueError(
            f"{name}[{depth}] must be ({count}, {depth}) and ({count},), a row and a loss for each of the steps, got "
            f"{tuple(layers.shape)} and {tuple(loss.shape)}"
        )
    if not (layers > 0).all() or (loss < 0).any():
        raise ValueError(f"{name}[{depth}] must be positive, got {layers.min().item():g}; its scale is logarithmic")
    return {
        "layers": [[float(f"{x:.3g}") for x in row] for row in layers.tolist()],
        "loss": [rounded(x, 2) for x in loss.tolist()],
    }


def _stack(
    name: str, stack: Mapping[str, list], depths: Sequence[int], drawn: Mapping[str, float], guessing: float, what: str
) -> str:
    """The wiring, a bar for each layer and the loss, before training."""
    row, loss = stack["layers"][0], stack["loss"][0]
    step = _SIDE / len(row)
    bars = []
    for i in range(max(depths)):
        height = 10 + 90 * (math.log10(row[i]) - drawn["low"]) / drawn["span"] if i < len(row) else 0.0
        bars.append(
            element(
                "rect", x=step * (i + 0.1), width=0.8 * step, y=110 - height, height=height, fill="var(--weight)",
                data_k=f"{name}-bar{i}",
            )
        )  # fmt: skip
    mark = 318 * guessing / drawn["top"]
    chart = drawing(
        _SIDE, 196, *bars, element("path", d="M0 110H320", class_="line"),
        words(2, 126, f"first layer {_small(row[0])}", key=f"{name}-first", class_="start small"),
        words(318, 126, f"last layer {_small(row[-1])}", key=f"{name}-last", class_="end small"),
        words(2, 152, f"loss {fixed(loss, 2)}", key=f"{name}-loss", class_="start output"),
        element("rect", x=0.0, y=162.0, height=12.0, width=318 * loss / drawn["top"], fill="var(--output)",
                data_k=f"{name}-loss-bar"),
        element("path", d=f"M{mark:g} 157v22", class_="line", stroke_width=2),
        words(mark, 188, "guessing", class_="end small"),
        label=f"{name}-norm: {what} in each layer, logarithmic, and the loss",
    )  # fmt: skip
    return element("div", _wiring(name), chart)


def _small(x: float) -> str:
    return "under 0.001" if x < 0.001 else fixed(x)


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
