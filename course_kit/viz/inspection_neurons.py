"""A view of one score: query times key, feature by feature, and what the softmax makes of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from course_kit._checks import check_finite, check_instance, check_whole
from course_kit.viz.map_axes import short
from course_kit.viz.view import View
from course_kit.viz.view_elements import (
    HIGH,
    button,
    choice,
    controls,
    drawing,
    element,
    labels_for,
    panels,
    slider,
    text_of,
    words,
)
from course_kit.viz.view_numbers import MINUS, check_drawable, fixed, numbers

__all__ = ["neuron_view"]

WIDTH, ROW, TOP = 340, 24, 44
STRIP, STRIP_WIDTH = 82, 144  # where the products of a row begin, and how wide they are
BARS, BARS_TOP, BAND = 308, 62, 78  # width of the three rows of bars, middle of the first, distance of the next
LEVELS = 8
MOST_NUMBERS = 16_384
MOST_TOKENS, MOST_FEATURES = 128, 256
NAMED = 3

_STYLE = """<style>
attention-view .strips{stroke-width:.8}
attention-view .plus{stroke:var(--output);fill:none}
attention-view .minus{stroke:var(--value);fill:none}
attention-view .of-query{stroke:var(--query);fill:none}
attention-view .of-key{stroke:var(--key);fill:none}
attention-view .row.chosen>rect:first-child{stroke:currentColor;stroke-width:2}
attention-view .row rect{stroke:none}
attention-view .at{stroke:currentColor;stroke-dasharray:2 3}
</style>"""


def neuron_view(
    query: Tensor,
    keys: Tensor,
    tokens: Sequence[str] | None = None,
    *,
    queries: Sequence[str] | None = None,
    chosen: int = 0,
    scale: float | None = None,
    mask: Tensor | None = None,
    name: str = "",
) -> View:
    """Query and keys of one head, their product feature by feature, the scores, and the weights after the softmax.

    score_j = scale · Σ_f q_f k_jf and weights = softmax(scores); the products that are shown contain the scale, so that
    they add up to the score. Features count from 0, as in code.

    Args:
        query: `(d_k,)`, or `(L_q, d_k)`, of which one is chosen at a time.
        keys: `(L_k, d_k)`.
        tokens: one per key; positions if not given.
        queries: one per query. If not given, they are the tokens where L_q = L_k, and positions otherwise.
        chosen: index of the query to begin with.
        scale: factor of the scores; 1 / √d_k if not given.
        mask: bool, `(L_q, L_k)` or `(L_k,)`, True = may attend.
        name: of the head, such as "layer 3, head 7".

    Raises:
        TypeError: query or keys is not a tensor, or the mask is not bool.
        ValueError: shapes or labels that do not fit, NaN or infinity, a query that may attend to no key, or too many
            numbers to be drawn.
    """
    check_instance(str, name=name)
    query, keys, mask, scale = _checked(query, keys, mask, scale, chosen)
    names = labels_for(tokens, len(keys), "tokens")
    same = queries is None and tokens is not None and len(query) == len(keys)
    asked = names if same else labels_for(queries, len(query), "queries", "query ")
    drawn = _Drawn(query[chosen], keys, mask[chosen], scale)
    best = int(drawn.weights.argmax())
    of = f"{name[:1].upper()}{name[1:]}: query" if name else "Query"
    features = query.shape[1]
    return View(
        kind="neuron_view",
        title="Which features make a score" + (f" ({name})" if name else ""),
        description=f"{of} “{asked[chosen]}” and {len(keys)} keys of {features} features. Largest weights: "
        + ", ".join(
            f"“{names[j]}” {fixed(drawn.weights[j].item())} (score {fixed(drawn.scores[j].item())})"
            for j in drawn.weights.argsort(descending=True, stable=True).tolist()[:NAMED]
        )
        + f". {_told(drawn, best, names[best])}",
        body=_STYLE
        + controls(
            *([choice("query", "query", [(str(i), q) for i, q in enumerate(asked)], str(chosen))] * (len(asked) > 1)),
            button("sort", "sort features by their product", pressed=False),
        )
        + panels(
            _keys_picture(drawn, names, asked[chosen], best),
            element(
                "div",
                _bars_picture(drawn, query[chosen], keys[best], best, f"“{asked[chosen]}” and “{names[best]}”"),
                controls(slider("feature", "feature", 0, features - 1, drawn.order(best)[0])),
                element("p", text_of(_told(drawn, best, names[best])), data_k="told"),
            ),
        ),
        data={
            "q": numbers(query),
            "k": numbers(keys),
            "open": mask.int().tolist(),
            "scale": scale,
            "queries": asked,
            "keys": names,
            "query": chosen,
            "key": best,
        },
        hint="Choose a key to see, feature by feature, how its score comes about.",
        status=f"“{asked[chosen]}” and “{names[best]}”: score {fixed(drawn.scores[best].item())}, "
        f"weight {fixed(drawn.weights[best].item())}.",
        note="Purple features raise the score, green ones lower it; a strip shows the products of one key. "
        "With the keyboard: Tab to the keys, arrow keys along them; the slider walks through the features.",
    )


class _Drawn:
    """The numbers of one query: products `(L_k, d_k)`, scores and weights `(L_k,)`, in double precision."""

    def __init__(self, query: Tensor, keys: Tensor, allowed: Tensor, scale: float):
        self.products = query.double() * keys.double() * scale
        self.scores = self.products.sum(-1)
        self.allowed = allowed
        self.weights = self.scores.masked_fill(~allowed, -math.inf).softmax(-1)

    def order(self, key: int) -> list[int]:
        """Features by how much they change the score, either way."""
        return self.products[key].abs().argsort(descending=True, stable=True).tolist()


def _checked(
    query: Tensor, keys: Tensor, mask: Tensor | None, scale: float | None, chosen: int
) -> tuple[Tensor, Tensor, Tensor, float]:
    for what, x, shape in (("query", query, "(d_k,) or (L_q, d_k)"), ("keys", keys, "(L_k, d_k)")):
        if not isinstance(x, Tensor):
            raise TypeError(f"{what} must be a tensor {shape}, got {type(x).__name__}")
    query = query[None] if query.dim() == 1 else query
    if query.dim() != 2 or keys.dim() != 2 or query.shape[1] != keys.shape[1] or 0 in (*query.shape, *keys.shape):
        raise ValueError(
            f"expected query (d_k,) or (L_q, d_k) and keys (L_k, d_k) of one head, got {tuple(query.shape)} and "
            f"{tuple(keys.shape)}; split the heads first and choose one, q[batch, head]"
        )
    len_q, len_k, d_k = len(query), *keys.shape
    if max(len_q, len_k) > MOST_TOKENS or d_k > MOST_FEATURES or query.numel() + keys.numel() > MOST_NUMBERS:
        raise ValueError(
            f"expected at most {MOST_TOKENS} tokens, {MOST_FEATURES} features and {MOST_NUMBERS:,} numbers, got "
            f"{len_q} queries and {len_k} keys of {d_k} features; pass one query or fewer keys"
        )
    check_drawable(query=query, keys=keys)
    check_whole(chosen=chosen, least=0, most=len_q - 1)
    if mask is None:
        mask = torch.ones(len_q, len_k, dtype=torch.bool)
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        got = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(f"mask must be bool with True = may attend, got {got}; convert it with mask.bool()")
    if mask.shape not in ((len_q, len_k), (len_k,)):
        raise ValueError(f"mask must be ({len_q}, {len_k}) or ({len_k},), got {tuple(mask.shape)}")
    mask = mask.detach().cpu().expand(len_q, len_k)
    if not mask.any(-1).all():
        raise ValueError(f"query {int((~mask.any(-1)).nonzero()[0])} may attend to no key, so it has no weights")
    scale = 1 / math.sqrt(d_k) if scale is None else scale
    check_finite("scale", scale, -1e9, 1e9)
    return query.detach().cpu(), keys.detach().cpu(), mask, float(scale)


def _told(drawn: _Drawn, key: int, name: str) -> str:
    """Which features carry a score."""
    parts = drawn.products[key]
    order = drawn.order(key)
    listed = ", ".join(f"{f} ({_signed(parts[f].item())})" for f in order[:NAMED])
    rest = f"; the other {len(order) - NAMED} together {_signed(parts[order[NAMED:]].sum().item())}"
    return f"The features that change the score of “{name}” most: {listed}{rest if len(order) > NAMED else ''}."


def _signed(x: float) -> str:
    return fixed(x) if fixed(x)[0] == MINUS else f"+{fixed(x)}"


def _keys_picture(drawn: _Drawn, names: list[str], query: str, best: int) -> str:
    """One row per key: its products as a strip, its score and its weight."""
    d_k = drawn.products.shape[1]
    rows = []
    for j, (name, score, weight) in enumerate(zip(names, drawn.scores.tolist(), drawn.weights.tolist(), strict=True)):
        y = TOP + ROW * j
        rows.append(
            element(
                "g",
                f'<rect x="0" y="{y}" width="{WIDTH}" height="{ROW}" rx="3" fill-opacity="0" pointer-events="all"/>',
                words(2, y + ROW / 2, short(name), class_="start key"),
                words(284, y + ROW / 2, fixed(score), class_="end small", key=f"s{j}"),
                element(
                    "g",
                    f'<rect x="290" y="{y + 2}" width="48" height="{ROW - 4}" fill-opacity="{weight:.4g}"/>',
                    words(314, y + ROW / 2, fixed(weight) if drawn.allowed[j] else "masked", class_="small"),
                    class_="cell high" if weight > HIGH else "cell", data_k=f"w{j}",
                ),
                class_="row chosen" if j == best else "row", role="button", tabindex=0 if j == 0 else -1,
                aria_pressed=str(j == best).lower(),
            )
        )  # fmt: skip
    strips = [
        f'<path class="{sign}" data-k="{sign}{n}" stroke-opacity="{n / LEVELS:g}" d="{d}"/>'
        for (sign, n), d in _strips(drawn.products).items()
    ]
    return drawing(
        WIDTH, TOP + ROW * len(names) + 4,
        words(2, 12, "key", class_="start key"),
        words(STRIP, 12, "query × key, by feature", class_="start small"),
        words(284, 12, "score", class_="end small"),
        words(314, 12, "weight", class_="small"),
        words(2, 31, f"query: {short(query)}", key="asked", class_="start small query"),
        element("g", *rows, data_k="rows"),
        element("g", *strips, class_="strips", pointer_events="none",
                transform=f"translate({STRIP} {TOP})scale({STRIP_WIDTH / d_k:.6g} {ROW})"),
        label=f"Keys with their products with the query, scores and weights: {len(names)} keys, {d_k} features",
    )  # fmt: skip


def _strips(products: Tensor) -> dict[tuple[str, int], str]:
    """A path for each sign and strength of a product; a product is a stroke of length one."""
    found = {(sign, n): "" for sign in ("plus", "minus") for n in range(1, LEVELS + 1)}
    largest = products.abs().max().item() or 1.0
    for j, row in enumerate(products.tolist()):
        for f, x in enumerate(row):
            if level := math.floor(LEVELS * abs(x) / largest + 0.5):
                found["plus" if x > 0 else "minus", level] += f"M{f} {j}.5h1"
    return found


def _bars_picture(drawn: _Drawn, query: Tensor, key: Tensor, best: int, title: str) -> str:
    """Query, key and product of one key as bars over the features."""
    d_k = len(query)
    step = BARS / d_k
    parts = [words(2, 12, title, key="pair", class_="start")]
    rows = (
        ("query", "query q", query.double().tolist(), ("of-query",)),
        ("key", "key k", key.double().tolist(), ("of-key",)),
        ("product", "query × key × scale", drawn.products[best].tolist(), ("plus", "minus")),
    )
    for n, (what, label, values, classes) in enumerate(rows):
        y = BARS_TOP + BAND * n
        parts.append(words(2, y - 32, label, class_=f"start small {what}" if what != "product" else "start small"))
        parts.append(words(WIDTH - 2, y - 32, "", key=f"at-{what}", class_="end small"))
        parts.append(f'<path d="M16 {y}h{BARS}" class="line"/>')
        for sign, name in enumerate(classes):
            wanted = values if len(classes) == 1 else [x if (x < 0) == bool(sign) else 0.0 for x in values]
            largest = max(map(abs, values)) or 1.0
            d = "".join(f"M{16 + step * (f + 0.5):.5g} {y}v{-22 * x / largest:.3g}" for f, x in enumerate(wanted) if x)
            parts.append(f'<path class="{name}" data-k="bars-{what}-{sign}" stroke-width="{0.8 * step:.4g}" d="{d}"/>')
    parts.append(f'<path class="at" data-k="at" d="M16 {BARS_TOP - 24}v0"/>')
    return drawing(
        WIDTH, BARS_TOP + 2 * BAND + 30, *parts, label="Query, key and their product, one bar for each feature"
    )
