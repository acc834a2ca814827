"""A view of the features of all heads: split, attended over, put together again and mixed by W_O."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from course_kit._checks import check_instance, got
from course_kit.viz.describing import cut
from course_kit.viz.map_axes import WIDTH, short
from course_kit.viz.view import View
from course_kit.viz.view_elements import button, choice, controls, drawing, element, labels_for, panels, text_of, words
from course_kit.viz.view_numbers import MINUS, check_drawable, fixed

__all__ = ["head_split"]

MOST_PRODUCTS = 4  # of a sum that are written out

_SPLIT_STYLE = """<style>
attention-view rect[data-h]{stroke:currentColor;cursor:pointer}
attention-view rect[data-h]~text{pointer-events:none}
attention-view [data-z]{fill:none;stroke:var(--key);stroke-width:1.5;stroke-dasharray:4 2;pointer-events:none}
/* The heads stay in sight beside the last table; on a page there may be a bar above them. */
attention-view[kind^=head_split] .controls{position:sticky;top:var(--above,0);z-index:1;background:var(--paper)}
attention-view[kind^=head_split] .controls{gap:.3rem .6rem;padding:.2rem 0}
</style>"""


def head_split(
    features: Tensor,
    heads: Tensor,
    w_o: Tensor,
    bias: Tensor | None = None,
    *,
    tokens: Sequence[str] | None = None,
    name: str = "values (x W_V)",
) -> View:
    """d_model features split into heads, followed through attention and concatenation to W_O.

    The chosen head's slice of the features, its columns of the concatenation and its rows of W_O light up, and so does
    what it adds to the output: output = Σ_h head_h W_O[rows of h] + bias. The head can be set to zero after attention;
    the cells that change are outlined then. Labels count heads from 1, as the text does: head 1 is `heads[0]`. Features
    count from 0, as in code.

    Args:
        features: `(L, d_model)`, what is split: the projected values (or queries, or keys) of all heads.
        heads: `(H, L, d_head)`, what each head brings home, with H · d_head = d_model.
        w_o: `(d_model, d_model)`, the weight of the output projection as `nn.Linear` keeps it, `(out, in)`. It is drawn
            transposed, so that rows belong to the heads' features, as in the equation.
        bias: `(d_model,)`, of the output projection.
        tokens: a word for each position; positions if not given.
        name: what the features are.

    Raises:
        TypeError: one of them is not a tensor.
        ValueError: shapes that do not fit, more than 8 heads, 6 tokens or 32 features, or entries that are not finite.
    """
    for what, x, axes in (("features", features, 2), ("heads", heads, 3), ("w_o", w_o, 2)):
        _check_tensor(
            what, x, axes, {"features": "(L, d_model)", "heads": "(H, L, d_head)", "w_o": "(d_model, d_model)"}[what]
        )
    length, d_model = features.shape
    num_heads, d_head = heads.shape[0], heads.shape[2]
    if heads.shape[1] != length or num_heads * d_head != d_model:
        raise ValueError(
            f"heads must be (H, L = {length}, d_head) with H · d_head = d_model = {d_model}, got {tuple(heads.shape)}; "
            f"the heads of one sentence before they are merged"
        )
    if w_o.shape != (d_model, d_model):
        raise ValueError(f"w_o must be ({d_model}, {d_model}), as out_proj.weight is, got {tuple(w_o.shape)}")
    if bias is not None and (not isinstance(bias, Tensor) or bias.shape != (d_model,)):
        raise ValueError(f"bias must be ({d_model},), as out_proj.bias is, got {got(bias)}")
    if num_heads > 8 or length > 6 or d_model > 32:
        raise ValueError(
            f"at most 8 heads, 6 tokens and 32 features can be drawn so that they are legible, got {num_heads}, "
            f"{length} and {d_model}; take fewer tokens, x[:, :6], or a narrower layer"
        )
    check_instance(str, name=name)
    labels = labels_for(tokens, length, "tokens")
    bias = torch.zeros(d_model) if bias is None else bias
    check_drawable(features=features, heads=heads, w_o=w_o, bias=bias)
    y0 = bias.detach().cpu().double()
    blocks = w_o.detach().cpu().double().T.unflatten(0, (num_heads, d_head))  # (H, d_head, d_model)
    parts = torch.einsum("hld,hdm->lhm", heads.detach().cpu().double(), blocks)  # (L, H, d_model)
    output = parts.sum(1) + y0  # (L, d_model)
    merged = heads.detach().cpu().transpose(0, 1).flatten(1)  # (L, d_model)
    digits = 3 if num_heads <= 3 else 2
    factors = blocks[:, :, 0]  # (H, d_head), what makes feature 0 of the output
    how = [
        [
            _how(h, labels[t], heads[h, t].tolist(), factors[h].tolist(), parts[t, h, 0], digits)
            for h in range(num_heads)
        ]
        for t in range(length)
    ]
    said = [[_said(h, d_head, labels[t], parts[t, h, 0].item()) for h in range(num_heads)] for t in range(length)]
    shown = [[fixed(x, digits) for x in row] for row in output.tolist()]
    without = [
        [[fixed(x, digits) for x in row] for row in (output[t] - parts[t]).tolist()] for t in range(length)
    ]  # (L, H, d_model)
    zeroed = [[_zeroed(h, d_head, labels[t], shown[t], without[t][h]) for h in range(num_heads)] for t in range(length)]
    return View(
        kind="head_split",
        title=f"{d_model} features, {num_heads} heads",
        description=cut(
            f"{d_model} features of {length} tokens are split into {num_heads} heads of {d_head}. Each head owns a "
            f"slice of the features, the same columns after attention, and the same rows of W_O. Their contributions "
            f"and the bias add up to the output. {said[0][0]}"
        ),
        body=_SPLIT_STYLE
        + controls(
            *(
                element("button", text_of(f"head {h + 1}"), type="button", data_h=h, aria_pressed=h == 0)
                for h in range(num_heads)
            ),
            button("zero", "set this head to zero", pressed=False),
            choice("token", "token", [(str(i), label) for i, label in enumerate(labels)], "0"),
        )
        + panels(
            _table(f"1  {name}, split", labels, features.detach().cpu(), num_heads, "value"),
            _table("2  after attention, concatenated", labels, merged, num_heads, "value", key="m"),
            _w_o_picture(w_o.detach().cpu().T, num_heads),
            _additions(parts, y0, output, num_heads, digits, labels),
        )
        + element("p", text_of(how[0][0]), data_k="how"),
        data={"said": said, "how": how, "zeroed": zeroed, "without": without, "digits": digits},
        hint="Choose a head, follow its outlined blocks to the output, and then set it to zero.",
        note="A tap on one of its blocks chooses a head as well. Dashed cells have changed.",
        status=said[0][0],
    )


def _check_tensor(name: str, x: Tensor, axes: int, shape: str) -> None:
    if not isinstance(x, Tensor):
        hint = (
            "; call the module's parts, or split_heads, for it"
            if x is None
            else "; torch.as_tensor makes one of an array"
        )
        raise TypeError(f"{name} must be a tensor {shape}, got {got(x)}{hint}")
    if x.dim() != axes or 0 in x.shape:
        raise ValueError(f"{name} must be {shape} of one sentence, got {tuple(x.shape)}; choose one with [0]")


def _said(head: int, d_head: int, token: str, added: float) -> str:
    return f"Head {head + 1} owns {_features(head, d_head)}, and adds {fixed(added)} to output feature 0 of “{token}”."


def _features(head: int, d_head: int) -> str:
    last = (head + 1) * d_head - 1
    return f"feature {last}" if d_head == 1 else f"features {head * d_head} to {last}"


def _zeroed(head: int, d_head: int, token: str, before: list[str], after: list[str]) -> str:
    """How many numbers change, as they are shown."""
    changed = sum(a != b for a, b in zip(before, after, strict=True))
    return (
        f"Head {head + 1} at zero changes {d_head} of {len(before)} cells of each token in 2, and {changed} of "
        f"{len(before)} output features of “{token}”."
    )


def _how(head: int, token: str, mine: list[float], factors: list[float], part: Tensor, digits: int) -> str:
    """The first number that a head adds, as the sum of products that it is."""
    products = [f"{_factor(x)} · {_factor(w)}" for x, w in zip(mine, factors, strict=True)]
    if len(products) > MOST_PRODUCTS:
        products = [*products[: MOST_PRODUCTS - 1], "…", products[-1]]
    return (
        f"How a number comes about: to feature 0 of “{token}” head {head + 1} adds {' + '.join(products)} ≈ "
        f"{fixed(part.item(), digits)}. The left factors are its features in 2, the right ones its part of the first "
        f"column of 3."
    )


def _factor(x: float) -> str:
    shown = fixed(x, 2)
    return f"({shown})" if shown[0] == MINUS else shown


def _block(x: float, y: float, width: float, height: float, head: int, role: str) -> str:
    on = head == 0
    return element(
        "rect", x=float(x), y=float(y), width=float(width), height=float(height), data_h=head, class_=role,
        fill_opacity=0.4 if on else 0.07, stroke_width=2 if on else 0,
    )  # fmt: skip


def _table(title: str, labels: list[str], x: Tensor, num_heads: int, role: str, key: str | None = None) -> str:
    """A row for each token, a column for each feature, a block for each head; with a key, numbers that can change."""
    left, top, row = 50, 40, 22
    length, d_model = x.shape
    size, d_head = (WIDTH - left - 2) / d_model, d_model // num_heads
    height = top + row * length
    parts = [words(2, 10, title, class_="start")]
    for h in range(num_heads):
        parts.append(_block(left + h * d_head * size, top, d_head * size, row * length, h, role))
        middle = left + (h + 0.5) * d_head * size
        parts.append(words(middle, top - 12, f"head {h + 1}" if d_head * size > 46 else h + 1, class_="small"))
    parts.append(_lines(left, top, size, row, d_model, length, d_head))
    for i, label in enumerate(labels):
        parts.append(words(left - 6, top + row * (i + 0.5), short(label, 6), class_="end small"))
        if d_model <= 8:
            parts += [
                words(
                    left + size * (j + 0.5), top + row * (i + 0.5), fixed(v, 2), class_="small",
                    key=key and f"{key}{i}.{j}",
                )
                for j, v in enumerate(x[i].tolist())
            ]  # fmt: skip
        if key:
            parts += [
                _changed(left + size * j, top + row * i, size, row, f"{key}{i}.{j}", j // d_head)
                for j in range(d_model)
            ]
    return drawing(WIDTH, height + 4, *parts, label=f"{title}: {length} tokens, {d_model} features, {num_heads} heads")


def _w_o_picture(matrix: Tensor, num_heads: int) -> str:
    """W_O with a row for each of the heads' features and a column for each feature of the output."""
    left, top = 50, 40
    d_model = len(matrix)
    size, d_head = (WIDTH - left - 2) / d_model, d_model // num_heads
    row = max(20 if d_model <= 8 else 9, 20 / d_head)
    parts = [
        words(2, 10, "3  W_O, a block of rows for each head", class_="start"),
        words(left + size * d_model / 2, top - 12, "features of the output", class_="small output"),
    ]
    for h in range(num_heads):
        y = top + h * d_head * row
        parts.append(_block(left, y, size * d_model, d_head * row, h, "value"))
        parts.append(words(left - 6, y + d_head * row / 2, f"head {h + 1}", class_="end small"))
    parts.append(_lines(left, top, size, row, d_model, d_model, d_model, d_head))
    if d_model <= 8:
        parts += [
            words(left + size * (j + 0.5), top + row * (i + 0.5), fixed(v, 2), class_="small")
            for i, line in enumerate(matrix.tolist())
            for j, v in enumerate(line)
        ]
    return drawing(
        WIDTH, top + row * d_model + 4, *parts, label=f"W_O: {d_model} rows, {d_model // num_heads} for each head"
    )


def _additions(parts: Tensor, bias: Tensor, output: Tensor, num_heads: int, digits: int, labels: list[str]) -> str:
    """Feature by feature: what each head adds, the bias, and the sum."""
    left, top, row = 24, 64, 20
    d_model = len(bias)
    size = (WIDTH - left - 2) / (num_heads + 2)
    drawn = [
        words(2, 10, "4  what each head adds to the output", class_="start"),
        words(2, 31, "↓ feature of the output", class_="start small output"),
    ]
    heads = [f"head {h}" if size > 44 else f"{'h' if size > 30 else ''}{h}" for h in range(1, num_heads + 1)]
    for column, name in enumerate([*heads, "bias", "output"]):
        role = "small output" if name == "output" else "small"
        drawn.append(
            words(left + size * (column + 0.5), top - 12, name if size > 36 or name != "output" else "out", class_=role)
        )
        if column < num_heads:
            drawn.append(_block(left + size * column, top, size, row * d_model, column, "output"))
    drawn.append(_lines(left, top, size, row, num_heads + 2, d_model, 1, d_model))
    drawn += [words(left - 6, top + row * (f + 0.5), f, class_="end small") for f in range(d_model)]
    # The contribution of each head and the output can change.
    drawn += [
        _changed(left + size * c, top + row * f, size, row, f"{f}.{c}", c if c < num_heads else None)
        for c in (*range(num_heads), num_heads + 1)
        for f in range(d_model)
    ]
    for t in range(len(labels)):
        rows = [[*parts[t, :, f].tolist(), bias[f].item(), output[t, f].item()] for f in range(d_model)]
        texts = [
            words(
                left + size * (c + 0.5), top + row * (f + 0.5), fixed(v, digits), key=f"n{t}.{f}.{c}",
                class_="small output" if c == num_heads + 1 else "small",
            )
            for f, line in enumerate(rows)
            for c, v in enumerate(line)
        ]  # fmt: skip
        drawn.append(element("g", *texts, data_t=t, style=None if t == 0 else "display:none"))
    return drawing(
        WIDTH, top + row * d_model + 4, *drawn, label="Contribution of each head to each feature of the output"
    )


def _changed(x: float, y: float, width: float, height: float, key: str, head: int | None) -> str:
    """The outline of a number that has changed, of a head or of the output; not seen at first."""
    return element(
        "rect", x=x + 2.0, y=y + 2.0, width=width - 4.0, height=height - 4.0, data_z=key, data_own=head,
        style="display:none",
    )  # fmt: skip


def _lines(
    x: float, y: float, width: float, height: float, columns: int, rows: int, every: int, every_row: int | None = None
) -> str:
    """The frame of a table, with lines between blocks of columns and of rows."""
    d = "".join(f"M{x + width * j:g} {y:g}v{height * rows:g}" for j in range(0, columns + 1, every))
    d += "".join(f"M{x:g} {y + height * i:g}h{width * columns:g}" for i in range(0, rows + 1, every_row or 1))
    return element("path", d=d, stroke="var(--grid)", fill="none", pointer_events="none")
