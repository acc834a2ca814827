"""Views of the chapter `multi_head`: features split into heads and mixed again, and the maps of all heads."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from course_lib.viz.describing import checked, shortened
from course_lib.viz.view import (
    View,
    button,
    choice,
    controls,
    drawing,
    element,
    fixed,
    labels_for,
    numbers,
    packed,
    panels,
    text_of,
    words,
)

__all__ = ["head_grid", "head_split"]

WIDTH = 340  # units of a panel
EXACT = 4096  # so many numbers are handed over as they are; more are packed
SMALL = 16  # heads, and tokens, up to which all maps are drawn in Python
MOST_NUMBERS = 400_000
MOST_TOKENS = 200
SHADES = 20
MOST_PRODUCTS = 4  # of a sum that are written out

_SPLIT_STYLE = """<style>
attention-view rect[data-h]{stroke:currentColor;cursor:pointer}
</style>"""

_GRID_STYLE = """<style>
attention-view :is(.map,.heads) rect{width:1px;height:1px;stroke:var(--grid);vector-effect:non-scaling-stroke}
attention-view .map rect{fill:var(--weight)}
attention-view .map [data-more]:not([data-more^="-"],[data-more="0.0"]){fill:var(--output)}
attention-view .map [data-more^="-"]{fill:var(--value);rx:.5px}
attention-view .heads rect{fill:var(--grid)}
attention-view .heads [aria-pressed=true]{stroke:var(--output);stroke-width:3}
attention-view :is(.map,.heads) rect:focus{outline:none;stroke:var(--output);stroke-width:4}
attention-view .shades{stroke:var(--weight);pointer-events:none}
attention-view .kept:empty{display:none}
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
    what it adds to the output: output = Σ_h head_h W_O[rows of h] + bias. Labels count heads from 1, as the text does:
    head 1 is `heads[0]`. Features count from 0, as in code.

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
        raise ValueError(f"bias must be ({d_model},), as out_proj.bias is, got {_shape_of(bias)}")
    if num_heads > 8 or length > 6 or d_model > 32:
        raise ValueError(
            f"at most 8 heads, 6 tokens and 32 features can be drawn so that they are legible, got {num_heads}, "
            f"{length} and {d_model}; take fewer tokens, x[:, :6], or a narrower layer"
        )
    labels = labels_for(tokens, length, "tokens")
    y0 = torch.zeros(d_model, dtype=torch.float64) if bias is None else bias.detach().cpu().double()
    blocks = w_o.detach().cpu().double().T.unflatten(0, (num_heads, d_head))  # (H, d_head, d_model)
    parts = torch.einsum("hld,hdm->lhm", heads.detach().cpu().double(), blocks)  # (L, H, d_model)
    numbers(features), numbers(parts), numbers(y0)  # refuses what is not finite
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
    said = [[_said(h, d_head, labels[t], parts[t, h], output[t]) for h in range(num_heads)] for t in range(length)]
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
                element("button", text_of(f"head {h + 1}"), type="button", data_h=h, aria_pressed=str(h == 0).lower())
                for h in range(num_heads)
            ),
            choice("token", "output of", [(str(i), label) for i, label in enumerate(labels)], "0"),
        )
        + panels(
            _table(f"1  {name}, split", labels, features.detach().cpu(), num_heads, "value"),
            _table("2  after attention, concatenated", labels, merged, num_heads, "value"),
            _w_o_picture(w_o.detach().cpu().T, num_heads),
            _additions(parts, y0, output, num_heads, digits, labels),
        )
        + element("p", text_of(how[0][0]), data_k="how"),
        data={"said": said, "how": how},
        hint="Choose a head with the buttons, or tap one of its blocks. Outlined blocks belong to it.",
    )


def _said(head: int, d_head: int, token: str, part: Tensor, output: Tensor) -> str:
    last = (head + 1) * d_head - 1
    which = f"feature {last}" if d_head == 1 else f"features {head * d_head} to {last}"
    shown = [", ".join(fixed(x) for x in vector.tolist()) for vector in (part, output)]
    return (
        f"Head {head + 1} owns {which}, and the same rows of W_O. To the output of “{token}” it adds {shown[0]}. "
        f"All heads and the bias together give {shown[1]}."
    )


def _how(head: int, token: str, mine: list[float], factors: list[float], part: Tensor, digits: int) -> str:
    """The first number that a head adds, as the sum of products that it is."""
    products = [f"{_factor(x)} · {_factor(w)}" for x, w in zip(mine, factors, strict=True)]
    if len(products) > MOST_PRODUCTS:
        products = [*products[: MOST_PRODUCTS - 1], "…", products[-1]]
    return (
        f"How a number comes about: to feature 0 of “{token}” head {head + 1} adds {' + '.join(products)} ≈ "
        f"{_minus(part.item(), digits)}. The left factors are its features in 2, the right ones its part of the first "
        f"column of 3."
    )


def _minus(x: float, digits: int = 2) -> str:
    return fixed(x, digits).replace("-", "−")


def _factor(x: float) -> str:
    return f"({_minus(x)})" if _minus(x)[0] == "−" else _minus(x)


def _block(x: float, y: float, width: float, height: float, head: int, role: str) -> str:
    on = head == 0
    return element(
        "rect", x=float(x), y=float(y), width=float(width), height=float(height), data_h=head, class_=role,
        fill_opacity=0.4 if on else 0.07, stroke_width=2 if on else 0,
    )  # fmt: skip


def _table(title: str, labels: list[str], x: Tensor, num_heads: int, role: str) -> str:
    """A row for each token, a column for each feature, a block for each head."""
    left, top, row = 50, 46, 26
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
        parts.append(words(left - 6, top + row * (i + 0.5), _label(label, 6), class_="end small"))
        if d_model <= 8:
            parts += [
                words(left + size * (j + 0.5), top + row * (i + 0.5), fixed(v, 2), class_="small")
                for j, v in enumerate(x[i].tolist())
            ]
    return drawing(WIDTH, height + 4, *parts, label=f"{title}: {length} tokens, {d_model} features, {num_heads} heads")


def _w_o_picture(matrix: Tensor, num_heads: int) -> str:
    """W_O with a row for each of the heads' features and a column for each feature of the output."""
    left, top = 50, 46
    d_model = len(matrix)
    size, d_head = (WIDTH - left - 2) / d_model, d_model // num_heads
    row = max(24 if d_model <= 8 else 9, 20 / d_head)
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


def _lines(
    x: float, y: float, width: float, height: float, columns: int, rows: int, every: int, every_row: int | None = None
) -> str:
    """The frame of a table, with lines between blocks of columns and of rows."""
    d = "".join(f"M{x + width * j:g} {y:g}v{height * rows:g}" for j in range(0, columns + 1, every))
    d += "".join(f"M{x:g} {y + height * i:g}h{width * columns:g}" for i in range(0, rows + 1, every_row or 1))
    return element("path", d=d, stroke="var(--grid)", fill="none", pointer_events="none")


def head_grid(
    weights: Tensor,
    tokens: Sequence[str] | None = None,
    *,
    keys: Sequence[str] | None = None,
    contributions: Tensor | None = None,
    bias: Tensor | None = None,
) -> View:
    """The maps of all heads; one is large. Heads can be hidden, averaged, compared, and taken out of the output.

    Labels count from 1, as the text does: head 1 is `weights[0]`, and layer 1, head 2 is `weights[0, 1]`. An average is
    shown with all heads in the output: it puts a removed head back, and a removal ends the average.

    Args:
        weights: `(H, L_q, L_k)`, or `(num_layers, H, L_q, L_k)`, each in [0, 1].
        tokens: a label for each query, and for each key too where L_q = L_k; positions if not given.
        keys: a label for each key, if they differ.
        contributions: `(H, L_q, d_model)`, what each head adds to the output, head_h W_O[rows of h]. With it, a head
            can be removed and the output looked at. For the weights of one layer.
        bias: `(d_model,)`, what the output has beside the contributions.

    Raises:
        TypeError: weights is not a tensor: None (the fused path computes none; ask for `need_weights=True`), or a pair.
        ValueError: weights has another shape, NaN or entries outside [0, 1], too many of them (400,000 numbers, 200
            tokens), labels that do not fit, or contributions that do not fit.
    """
    layers = _layers(weights)
    num_layers, num_heads, len_q, len_k = layers.shape
    count = num_layers * num_heads
    if max(len_q, len_k) > MOST_TOKENS or layers.numel() > MOST_NUMBERS:
        raise ValueError(
            f"at most {MOST_TOKENS} tokens and {MOST_NUMBERS:,} weights can be shown, got {len_q} × {len_k} tokens and "
            f"{layers.numel():,} weights; take a part of them, such as weights[:4, :64, :64]"
        )
    queries = labels_for(tokens, len_q, "tokens")
    names = labels_for(tokens if keys is None and len_q == len_k else keys, len_k, "keys")
    layered = weights.dim() == 4
    flat = layers.flatten(0, 1)  # (N · H, L_q, L_k)
    exact = flat.numel() <= EXACT
    moved = None if contributions is None else _moved(contributions, bias, layered, num_heads, len_q)
    if layered or not exact:
        columns = num_heads if layered else min(num_heads, 12)
    else:
        columns = next(c for c in range(1, count + 1) if c * c >= count)
    titles = [
        f"layer {h // num_heads + 1}, head {h % num_heads + 1}" if layered else f"head {h + 1}" for h in range(count)
    ]
    data = {
        "queries": queries,
        "keys": names,
        "columns": columns,
        "is": {"mean": False, "keep": False, "hide": False} | ({"remove": False} if moved is not None else {}),
        "mean": "average of" if exact else "about the average of",
        "digits": 3 if exact else 2,
        "moved": [] if moved is None else [_told(n, table, titles) for n, table in enumerate(moved.tolist())],
    } | ({"exact": numbers(flat.flatten())} if exact else {"packed": packed(flat)})
    buttons = [button("mean", "average", pressed=False), button("keep", "keep to compare", pressed=False)]
    buttons.append(button("hide", "hide this head", pressed=False))
    if moved is not None:
        buttons.append(button("remove", "remove this head from the output", pressed=False))
    size = f"{num_layers} layers of {num_heads} heads" if layered else f"{num_heads} heads"
    top = flat[0].max(-1)
    found = "; ".join(
        f"{queries[i]}: {names[j]} {fixed(w)}"
        for i, (w, j) in enumerate(zip(top.values.double().tolist(), top.indices.tolist(), strict=True))
    )
    return View(
        kind="head_grid",
        title="All heads" if count > 1 else "One head",
        description=cut(f"The attention weights of {size}, {len_q} queries over {len_k} keys. "
        f"{titles[0].capitalize()} is large; the largest weight of each query there: {found}."),
        body=_GRID_STYLE
        + controls(*buttons)
        + panels(
            _overview(flat, columns, titles, layered, exact),
            element("div", _large(flat[0], queries, names, titles[0]), data_k="map"),
            element("div", data_k="kept", class_="kept", inert=""),
            *([] if moved is None else [_output_table(moved, queries, titles)]),
        ),
        data=data,
        hint="Choose a head among the small maps, by tapping or with Enter. In the large map arrow keys walk over the "
        "weights. Beside a kept map, purple squares have more weight than there, green discs less."
        + ("" if moved is None else " The average puts a removed head back into the output."),
    )  # fmt: skip


def cut(text: str, most: int = 600) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _layers(weights: Tensor) -> Tensor:
    """The weights as `(num_layers, H, L_q, L_k)` of the CPU, after everything that could be wrong was looked at."""
    if not isinstance(weights, Tensor) or weights.dim() != 4:
        if isinstance(weights, Tensor) and weights.dim() != 3:
            raise ValueError(
                f"weights must be (H, L_q, L_k), or (num_layers, H, L_q, L_k), got {tuple(weights.shape)}; choose one "
                f"sentence, weights[batch], or stack layers: torch.stack([w[batch] for w in maps])"
            )
        checked(weights, None, None, heads=True)
        return weights.detach().cpu()[None]
    if 0 in weights.shape:
        raise ValueError(f"weights must have at least one entry, got {tuple(weights.shape)}; is the sentence empty?")
    for number, layer in enumerate(weights):
        try:
            checked(layer, None, None, heads=True)
        except ValueError as error:
            raise ValueError(f"layer {number + 1} (index {number}): {error}") from None
    return weights.detach().cpu()


def _overview(flat: Tensor, columns: int, titles: list[str], layered: bool, exact: bool) -> str:
    """All maps, small. Many are left to the script, which draws them into the path `small`."""
    count, len_q, len_k = flat.shape
    rows = -(-count // columns)
    outside = layered or not exact
    left, top = (22, 38) if outside else (1, 20)
    width = min(110.0, (WIDTH - left - 1) / columns)
    strip = 0 if outside else 20
    height = width + strip
    parts = [words(2, 9, "layers (rows) and heads (columns)" if layered else "heads", class_="start")]
    if outside:
        parts += [
            words(left + width * (c + 0.5), top - 9, c + 1 if layered or rows == 1 else f"+{c}", class_="small")
            for c in range(columns)
        ]
        parts += [
            words(left - 5, top + height * (r + 0.5), r + 1 if layered else r * columns + 1, class_="end small")
            for r in range(rows)
        ]
    else:
        parts += [
            words(left + width * (h % columns + 0.5), top + height * (h // columns) + 11, title, class_="small")
            for h, title in enumerate(titles)
        ]
    if exact:
        inner = width - (2 if outside else 10)
        for h, matrix in enumerate(flat):
            x, y = (
                left + width * (h % columns) + (width - inner) / 2,
                top + height * (h // columns) + strip + (width - inner) / 2 - strip / 5,
            )
            parts.append(
                element(
                    "g",
                    *_shades(matrix),
                    class_="shades",
                    transform=f"translate({x:g} {y:g})scale({inner / len_k:.4g} {inner / len_q:.4g})",
                )
            )
    else:
        place = f"translate({left} {top})scale({width / len_k:.4g} {width / len_q:.4g})translate(0 .5)"
        parts.append(element("g", element("path", data_k="small"), class_="shades", transform=place))
    boxes = []
    for r in range(rows):
        inside = "".join(
            f'<rect x={c} aria-label="{title}" />' for c, title in enumerate(titles[r * columns : (r + 1) * columns])
        )
        boxes.append(f'<g transform="translate(0 {r})">{inside}</g>')
    parts.append(
        element(
            "g",
            *boxes,
            class_="heads",
            fill_opacity=0,
            transform=f"translate({left} {top})scale({width:.4g} {height:.4g})",
        )
    )
    return drawing(WIDTH, top + rows * height + 2, *parts, label="Small maps of all heads")


def _shades(matrix: Tensor) -> list[str]:
    """A map as a path for each shade; a cell is a stroke of length one."""
    found: dict[int, str] = {}
    for i, row in enumerate((matrix.double() * SHADES + 0.5).floor().clamp(0, SHADES).int().tolist()):
        for j, shade in enumerate(row):
            found[shade] = found.get(shade, "") + f"M{j} {i + 0.5:g}h1"
    return [element("path", d=d, stroke_opacity=shade / SHADES) for shade, d in sorted(found.items()) if shade]


def _large(matrix: Tensor, queries: list[str], keys: list[str], title: str) -> str:
    """One map with a cell for each weight."""
    left, top, size = frame(queries, keys)
    return drawing(
        WIDTH, top + size * len(queries) + 3,
        words(2, 9, title, key="name", class_="start"),
        *axis_labels(queries, keys, left, top, size),
        element(
            "g",
            *(
                f'<g transform="translate(0 {i})">'
                + "".join(f"<rect x={j} fill-opacity={_short(w)} />" for j, w in enumerate(row))
                + "</g>"
                for i, row in enumerate(matrix.double().tolist())
            ),
            class_="map", transform=f"translate({left:g} {top:g})scale({size:.4g})",
        ),
        label="The chosen map: queries on rows, keys on columns",
    )  # fmt: skip


def _short(weight: float) -> str:
    return f"{weight:.2f}".removeprefix("0").removesuffix("0").removesuffix(".0") or "0"


def frame(
    queries: Sequence[str], keys: Sequence[str], most: float = 46.0, titled: bool = False
) -> tuple[float, float, float]:
    """Where a map begins (left, top) and how large its cells are, so that it fits a panel with its labels; `titled`
    leaves room for the titles "query" and "key" of its axes."""
    left = 12 + 6.6 * max(len(_label(name)) for name in [*queries, *["query"] * titled])
    size = min(most, (WIDTH - left - 3) / len(keys), 300 / len(queries))
    longest = 6.6 * max(len(_label(name)) for name in keys)
    return left, 22 + 16 * titled + (18 if longest < size - 2 else longest + 8), size


def axis_labels(
    queries: Sequence[str], keys: Sequence[str], left: float, top: float, size: float, role: str = "query"
) -> list[str]:
    """The labels of a map's rows and columns; keys are written upwards where they would overlap."""
    every = next(n for n in (1, 2, 5, 10, 20, 50) if n * size >= 12)
    rows = [
        words(left - 6, top + size * (i + 0.5), _label(queries[i]), class_=f"end small {role}")
        for i in range(0, len(queries), every)
    ]
    if 6.6 * max(len(_label(name)) for name in keys) < size - 2:
        return rows + [
            words(left + size * (j + 0.5), top - 10, _label(name), class_="small key") for j, name in enumerate(keys)
        ]
    columns = []
    for j in range(0, len(keys), every):
        x, y = left + size * (j + 0.5), top - 5
        columns.append(
            element(
                "text", text_of(_label(keys[j])), x=float(x), y=float(y), class_="start small key",
                transform=f"rotate(-90 {x:.5g} {y:.5g})",
            )
        )  # fmt: skip
    return rows + columns


def _label(name: str, most: int = 9) -> str:
    return cut(shortened(name), most)


def _moved(contributions: Tensor, bias: Tensor | None, layered: bool, num_heads: int, len_q: int) -> Tensor:
    """How long the output is and how far it has moved: with all heads, and without each: `(1 + H, L_q, 2)`."""
    if layered:
        raise ValueError("contributions belong to one layer, got weights of several; pass weights[layer] with them")
    if (
        not isinstance(contributions, Tensor)
        or contributions.dim() != 3
        or contributions.shape[:2] != (num_heads, len_q)
    ):
        raise ValueError(
            f"contributions must be (H = {num_heads}, L_q = {len_q}, d_model), what each head adds to the output, got "
            f"{_shape_of(contributions)}; with the heads' outputs (H, L_q, d_head) it is "
            f"heads @ out_proj.weight.T.unflatten(0, (H, -1))"
        )
    if num_heads > SMALL or len_q > SMALL:
        raise ValueError(
            f"the output can be shown for at most {SMALL} heads and {SMALL} tokens, got {num_heads} and {len_q}; "
            f"leave contributions out, or take fewer tokens"
        )
    if bias is not None and (not isinstance(bias, Tensor) or bias.shape != contributions.shape[2:]):
        raise ValueError(f"bias must be ({contributions.shape[2]},), as out_proj.bias is, got {_shape_of(bias)}")
    parts = contributions.detach().cpu().double()
    numbers(parts)  # refuses what is not finite
    whole = parts.sum(0) + (0 if bias is None else bias.detach().cpu().double())  # (L_q, d_model)
    outputs = torch.cat([whole[None], whole - parts])  # (1 + H, L_q, d_model)
    return torch.stack([outputs.norm(dim=-1), (outputs - whole).norm(dim=-1)], -1)


def _told(number: int, table: list[list[float]], titles: list[str]) -> str:
    if number == 0:
        return ": no head is removed."
    shown = ", ".join(fixed(distance) for _, distance in table)
    return f": without {titles[number - 1]} the outputs move by {shown}."


def _output_table(moved: Tensor, queries: list[str], titles: list[str]) -> str:
    """How long each output is and how far it moved, with all heads and without each; one of these is shown."""
    top, row = 86, 22
    longest = max(1e-9, moved.max().item())
    pictures = []
    for n, table in enumerate(moved.tolist()):
        what = f"output without {titles[n - 1]}" if n else "output of all heads"
        drawn = [
            words(2, 9, what, class_="start"),
            words(2, 29, "length of each query's output; how far it moves", class_="start small"),
            words(2, 45, "without the removed head", class_="start small"),
            words(2, top - 12, "output of", class_="start small"),
            words(190, top - 12, "length", class_="end small output"),
            words(338, top - 12, "moves by", class_="end small"),
        ]
        for i, (length, distance) in enumerate(table):
            y = top + row * (i + 0.5)
            drawn += [
                words(2, y, _label(queries[i]), class_="start small query"),
                element(
                    "rect", x=70.0, y=y - 7, width=70 * length / longest, height=14.0, class_="output", fill_opacity=0.5
                ),
                words(190, y, fixed(length), key=f"length{n}.{i}", class_="end small"),
                element("rect", x=204.0, y=y - 7, width=84 * distance / longest, height=14.0, class_="output"),
                words(338, y, fixed(distance), key=f"moved{n}.{i}", class_="end small"),
            ]
        picture = drawing(
            WIDTH, top + row * len(queries) + 4, *drawn, label=f"The {what}: its length, and how far it moved"
        )
        pictures.append(element("div", picture, class_="part", hidden="" if n else None))
    return element("div", *pictures)


def _check_tensor(name: str, x: Tensor, axes: int, shape: str) -> None:
    if not isinstance(x, Tensor):
        hint = (
            "; call the module's parts, or split_heads, for it"
            if x is None
            else "; torch.as_tensor makes one of an array"
        )
        raise TypeError(f"{name} must be a tensor {shape}, got {_shape_of(x)}{hint}")
    if x.dim() != axes or 0 in x.shape:
        raise ValueError(f"{name} must be {shape} of one sentence, got {tuple(x.shape)}; choose one with [0]")


def _shape_of(x: object) -> str:
    return str(tuple(x.shape)) if isinstance(x, Tensor) else "None" if x is None else type(x).__name__
