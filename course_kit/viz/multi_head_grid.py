"""A view of the maps of all heads, one of them large."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from course_kit._checks import check_sequence, check_whole
from course_kit.viz.describing import checked, cut
from course_kit.viz.map_axes import WIDTH, axis_labels, frame
from course_kit.viz.multi_head_removal import moved_outputs, output_table, told
from course_kit.viz.view import View
from course_kit.viz.view_elements import button, controls, drawing, element, labels_for, panels, words
from course_kit.viz.view_numbers import fixed, numbers, packed, rounded

__all__ = ["head_grid"]

EXACT = 4096  # so many numbers are handed over as they are; more are packed
MOST_NUMBERS = 400_000
MOST_TOKENS = 200
SHADES = 20
NAMED = 3  # weights of the chosen map that are said

_GRID_STYLE = """<style>
attention-view :is(.map,.heads) rect{width:1px;height:1px;stroke:var(--grid);vector-effect:non-scaling-stroke}
attention-view .map rect{fill:var(--weight)}
attention-view .map [data-more]:not([data-more^="−"],[data-more="0.0"]){fill:var(--output)}
attention-view .map [data-more^="−"]{fill:var(--value);rx:.5px}
attention-view .heads rect{fill:var(--grid)}
attention-view .heads [aria-pressed=true]{stroke:var(--output);stroke-width:3}
attention-view :is(.map,.heads) rect:focus{outline:none;stroke:var(--output);stroke-width:4}
attention-view:has(.map) .say::first-letter{text-transform:uppercase}
attention-view .shades{stroke:var(--weight);pointer-events:none}
attention-view .kept:empty{display:none}
attention-view .outlined{fill:none;stroke:var(--key);stroke-width:3;vector-effect:non-scaling-stroke}
attention-view .outlined{pointer-events:none}
</style>"""


def head_grid(
    weights: Tensor,
    tokens: Sequence[str] | None = None,
    *,
    keys: Sequence[str] | None = None,
    contributions: Tensor | None = None,
    bias: Tensor | None = None,
    outlined: Sequence[Sequence[int]] | None = None,
) -> View:
    """The maps of all heads; one is large. Heads can be averaged, compared, and taken out of the output.

    Labels count from 1, as the text does: head 1 is `weights[0]`, and layer 1, head 2 is `weights[0, 1]`. An average is
    shown with all heads in the output: it puts a removed head back, and a removal ends the average.

    Args:
        weights: `(H, L_q, L_k)`, or `(num_layers, H, L_q, L_k)`, each in [0, 1].
        tokens: a label for each query, and for each key too where L_q = L_k; positions if not given.
        keys: a label for each key, if they differ.
        contributions: `(H, L_q, d_model)`, what each head adds to the output, head_h W_O[rows of h]. With it, a head
            can be removed and the output looked at. For the weights of one layer.
        bias: `(d_model,)`, what the output has beside the contributions.
        outlined: for each query the positions of the keys to outline in its row, such as those that it should find.

    Raises:
        TypeError: weights is not a tensor: None (the fused path computes none; ask for `need_weights=True`), or a pair;
            or outlined is not a list of lists of whole numbers.
        ValueError: weights has another shape, NaN or entries outside [0, 1], too many of them (400,000 numbers, 200
            tokens), or labels, contributions or outlined that do not fit.
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
    outlines = _outlines(outlined, len_q, len_k)
    moved = None if contributions is None else moved_outputs(contributions, bias, layered, num_heads, len_q)
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
        "is": {"mean": False, "keep": False} | ({"remove": False} if moved is not None else {}),
        "mean": "average of" if exact else "about the average of",
        "digits": 3 if exact else 2,
        "moved": [] if moved is None else [told(n, table, titles) for n, table in enumerate(moved.tolist())],
    } | ({"exact": numbers(flat.flatten())} if exact else {"packed": packed(flat)})
    buttons = [button("mean", "average", pressed=False), button("keep", "keep to compare", pressed=False)]
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
            element("div", _large(flat[0], queries, names, titles[0], outlines), data_k="map"),
            element("div", data_k="kept", class_="kept", inert=""),
            *([] if moved is None else [output_table(moved, queries, titles)]),
        ),
        data=data,
        hint=("Which of the outlined keys does each head attend to? " if outlines else "")
        + "Choose a head among the small maps.",
        status=_status(flat[0], queries, names, titles[0]),
        note=("The outlined keys are those that the query should find. " if outlines else "")
        + "Beside a kept map, purple squares have more weight than there, green discs less: "
        "these are as strong as the kept weight."
        + ("" if moved is None else " The average puts a removed head back into the output."),
    )  # fmt: skip


def _outlines(outlined: Sequence[Sequence[int]] | None, len_q: int, len_k: int) -> str:
    """The outlines of the keys that belong to each query, as a path in units of cells."""
    if outlined is None:
        return ""
    check_sequence(outlined=outlined)
    if len(outlined) != len_q:
        raise ValueError(f"outlined must have a list of keys for each of the {len_q} queries, got {len(outlined)}")
    for keys in outlined:
        check_sequence(outlined=keys)
        for key in keys:
            check_whole(outlined=key, least=0, most=len_k - 1)
    return "".join(f"M{key} {query}h1v1h-1z" for query, keys in enumerate(outlined) for key in keys)


def _status(matrix: Tensor, queries: list[str], keys: list[str], title: str) -> str:
    """A map's largest weights, as the script says them."""
    shown = [rounded(x) for x in matrix.double().flatten().tolist()]
    best = sorted(range(len(shown)), key=lambda n: -shown[n])[:NAMED]
    listed = (f"{queries[n // len(keys)]} to {keys[n % len(keys)]} {fixed(shown[n])}" for n in best)
    return f"Largest weights, {title}: {', '.join(listed)}."


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


def _large(matrix: Tensor, queries: list[str], keys: list[str], title: str, outlines: str) -> str:
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
        element(
            "path", d=outlines, class_="outlined", transform=f"translate({left:g} {top:g})scale({size:.4g})",
        )
        if outlines
        else "",
        label="The chosen map: queries on rows, keys on columns",
    )  # fmt: skip


def _short(weight: float) -> str:
    return f"{weight:.2f}".removeprefix("0").removesuffix("0").removesuffix(".0") or "0"
