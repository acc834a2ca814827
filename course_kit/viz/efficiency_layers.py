"""A view of the chapter `efficiency`: what attention, recurrence and convolution cost against the length."""

from __future__ import annotations

import math
from collections.abc import Callable

from course_kit._checks import check_whole
from course_kit.costs import formulas
from course_kit.costs.layers import KERNEL, KINDS
from course_kit.viz.view import View
from course_kit.viz.view_elements import button, choice, controls, drawing, element, panels, words
from course_kit.viz.view_numbers import fixed

__all__ = ["layer_costs"]

Costs = Callable[[int], list[int]]  # from the length to what each of the five layers costs

LENGTHS = [2**n for n in range(4, 15)]
WIDTHS = [2**n for n in range(5, 12)]
QUANTITIES = {"operations": (4, 13), "sequential steps": (0, 5), "longest path": (0, 5), "numbers kept": (2, 9)}
_NAMES = ("self-attention", "restricted attention", "recurrent", "convolution", "dilated convolution")
_LOOKS = (
    ("--weight", None),
    ("--weight", "6 4"),
    ("--ink", "2 4"),
    ("--muted", None),
    ("--muted", "9 3 2 3"),
)  # by colour and by dashes: two attentions, two convolutions, and what is recurrent
_LEFT, _RIGHT, _TOP, _BOTTOM = 34, 312, 22, 206  # of the diagram


def layer_costs(length: int = 512, d_model: int = 512, *, window: int = 64, projections: bool = False) -> View:
    """What five causal layers cost against the length: curves with the points where they cross, and exact numbers.

    The layers are those of `course_kit.costs`, with 4 · d_model² parameters each, and so are the formulas of the four
    quantities: operations, sequential steps, longest path, and the numbers kept for the backward pass.

    Args:
        length: at which the numbers are written first, a power of two from 16 to 16,384.
        d_model: width at first, a power of two from 32 to 2,048.
        window: positions that restricted attention may attend to, 2 or more.
        projections: whether the four projections of attention count at first; table 1 of the paper leaves them out.

    Raises:
        TypeError: a size is not a whole number.
        ValueError: length or d_model is not one of these powers, or window is less than 2.

    Source: Vaswani et al. (2017), table 1.
    """
    check_whole(length=length, d_model=d_model)
    check_whole(window=window, least=2)
    _check_power(LENGTHS, length=length)
    _check_power(WIDTHS, d_model=d_model)
    quantity = "operations"
    costs = _costs(quantity, d_model, window, projections=bool(projections))
    return View(
        kind="layer_costs",
        title="What a layer costs",
        description=f"{_said(quantity, length, d_model, costs)} In table 1 of the paper, operations grow with L² for "
        f"self-attention and with L for the others; sequential steps grow with L for a recurrent layer only; the "
        f"longest path is 1 for self-attention, grows with the logarithm of L for dilated convolutions and with L for "
        f"the others.",
        body=controls(
            choice("quantity", "quantity", [(name, name) for name in QUANTITIES], quantity),
            _slider("length", "length", LENGTHS, length),
            _slider("width", "width", WIDTHS, d_model),
            button("projections", "count the projections", pressed=bool(projections)),
        )
        + panels(_diagram(quantity, length, costs), _table(length, costs)),
        data={
            "window": window,
            "kernel": KERNEL,
            "lengths": LENGTHS,
            "widths": WIDTHS,
            "quantities": {name: [*ends, _grid(name), *map(_power, ends)] for name, ends in QUANTITIES.items()},
            "box": [_LEFT, _RIGHT, _TOP, _BOTTOM],
        },
        hint="Predict where the curves of self-attention and the recurrent layer cross when the width doubles, and "
        "whether they still do when the projections of attention count. Then try both.",
        status=_said(quantity, length, d_model, costs),
        note=f"Both axes are logarithmic, and curves may coincide. Each layer has 4 · width² parameters; restricted "
        f"attention has a window of {window:,} positions, convolutions a kernel of {KERNEL}. Circles mark where "
        f"self-attention begins to cost more than another layer. A multiply-add counts as two operations; the "
        f"operations of the projections count only while the button is pressed. A path is how often information is "
        f"handed on; numbers are kept for the backward pass.",
    )  # fmt: skip


def _costs(quantity: str, d: int, window: int, *, projections: bool) -> Costs:
    """What the formulas say; the script computes the same."""
    of = {
        "operations": lambda kind, n: formulas.operations(kind, n, d, window=window, projections=projections),
        "sequential steps": formulas.sequential_steps,
        "longest path": lambda kind, n: formulas.longest_path(kind, n, window=window),
        "numbers kept": lambda kind, n: formulas.kept_numbers(kind, n, d, window=window),
    }[quantity]
    return lambda length: [of(kind, length) for kind in KINDS]


def _crossings(costs: Costs) -> list[tuple[int, int]]:
    """Number of each layer whose curve that of self-attention crosses, and up to which length it costs no more."""
    found = []
    for other in range(1, len(_NAMES)):
        low, high = LENGTHS[0], LENGTHS[-1]
        if costs(low)[0] > costs(low)[other] or costs(high)[0] <= costs(high)[other]:
            continue
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if costs(middle)[0] > costs(middle)[other] else (middle, high)
        found.append((other, low))
    return found


def _said(quantity: str, length: int, d: int, costs: Costs) -> str:
    attention, _, recurrent, *_ = costs(length)
    crossed = dict(_crossings(costs)).get(2)
    return f"Length {length:,}, width {d:,}, {quantity}: self-attention {attention:,}, recurrent {recurrent:,}; " + (
        f"the two curves cross at length {crossed:,}." if crossed else "the two curves do not cross."
    )


def _x(length: float) -> float:
    share = math.log2(length / LENGTHS[0]) / math.log2(LENGTHS[-1] / LENGTHS[0])
    return _LEFT + (_RIGHT - _LEFT) * share


def _y(quantity: str, cost: float) -> float:
    low, high = QUANTITIES[quantity]
    return _BOTTOM - (_BOTTOM - _TOP) * (math.log10(cost) - low) / (high - low)


def _grid(quantity: str) -> str:
    low, high = QUANTITIES[quantity]
    return "".join(f"M{_LEFT} {_y(quantity, 10.0**n):.1f}H{_RIGHT}" for n in range(low, high + 1))


def _diagram(quantity: str, length: int, costs: Costs) -> str:
    low, high = QUANTITIES[quantity]
    marks = [*sorted({at for _, at in _crossings(costs)}), None, None][:2]
    parts = [
        element("path", d=_grid(quantity), stroke="var(--grid)", fill="none", data_k="grid"),
        words(2, 9, quantity, key="name", class_="start small"),
        words(_LEFT - 4, _BOTTOM, _power(low), key="low", class_="end small"),
        words(_LEFT - 4, _TOP, _power(high), key="high", class_="end small"),
        *(words(_x(n), _BOTTOM + 14, f"{n:,}", class_="small") for n in (16, 256, 4096)),
        words(_RIGHT, _BOTTOM + 30, "length", class_="end small"),
        element(
            "path", d=f"M0 {_TOP}V{_BOTTOM}", transform=f"translate({_x(length):.1f})", class_="line", data_k="here"
        ),
    ]
    for i in (3, 4, 2, 0, 1):  # where curves coincide, dots are drawn over lines
        colour, dashes = _LOOKS[i]
        points = " ".join(f"{_x(n):.1f},{_y(quantity, costs(n)[i]):.1f}" for n in LENGTHS)
        parts.append(
            element(
                "polyline", points=points, fill="none", stroke=f"var({colour})", stroke_width=2.5,
                stroke_dasharray=dashes, data_k=f"curve{i}",
            )
        )  # fmt: skip
    for i, mark in enumerate(marks):
        place = f"translate({_x(mark):.1f} {_y(quantity, costs(mark)[0]):.1f})" if mark else None
        parts.append(
            element(
                "g", element("circle", r=6, fill="none", stroke="var(--output)", stroke_width=2.5),
                words(0, -14, f"{mark:,}" if mark else "", class_="output small"),
                transform=place, visibility="visible" if mark else "hidden", data_k=f"mark{i}",
            )
        )  # fmt: skip
    return drawing(320, 242, *parts, label="Cost of each layer against the length")


def _table(length: int, costs: Costs) -> str:
    rows, values = [], costs(length)
    for i, ((colour, dashes), name, cost) in enumerate(zip(_LOOKS, _NAMES, values, strict=True)):
        y = 14 + 46 * i
        rows += [
            element("path", d=f"M2 {y}h36", stroke=f"var({colour})", stroke_width=2.5, stroke_dasharray=dashes),
            words(46, y, name, class_="start"),
            words(46, y + 20, f"{cost:,}", key=f"cost{i}", class_="start small"),
            words(318, y + 20, f"× {fixed(cost / values[0])}", key=f"times{i}", class_="end small"),
        ]
    return drawing(320, 226, *rows, label="Cost of each layer, and how many times that of self-attention")


def _slider(key: str, label: str, sizes: list[int], size: int) -> str:
    place = sizes.index(size)
    return element(
        "label", f"{label} ",
        f'<input type="range" data-k="{key}" min="0" max="{len(sizes) - 1}" step="1" value="{place}" '
        f'aria-valuetext="{size:,}">',
        " ", element("output", f"{size:,}", data_k=f"{key}-value"),
    )  # fmt: skip


def _power(exponent: int) -> str:
    return "10" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(exponent))


def _check_power(sizes: list[int], **given: int) -> None:
    for name, size in given.items():
        if size not in sizes:
            raise ValueError(
                f"{name} must be a power of two from {sizes[0]:,} to {sizes[-1]:,}, got {size:,}; the slider moves in "
                f"such steps"
            )
