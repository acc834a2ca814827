"""A view of the chapter `transformer`: one token on its way through the blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from course_kit._checks import check_floats, check_instance, check_texts
from course_kit.viz.view import View
from course_kit.viz.view_elements import button, choice, controls, drawing, element, labels_for, panels, text_of, words
from course_kit.viz.view_numbers import check_drawable, fixed, numbers

__all__ = ["block_stepper"]

_SIDE = 320


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
            data_k=f"box{i}", aria_pressed=i == 0, tabindex=-1 if i else 0,
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
