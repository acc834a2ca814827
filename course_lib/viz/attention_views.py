"""Views of the chapter `attention`: a query among keys in the plane, and an alignment with linked words."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from course_lib.viz.view import (
    View,
    button,
    controls,
    drawing,
    element,
    fixed,
    labels_for,
    numbers,
    panels,
    words,
)

__all__ = ["query_plane"]

_SIDE, _MARGIN = 320, 16


def query_plane(
    key: Tensor, value: Tensor, query: Tensor | None = None, *, labels: Sequence[str] | None = None
) -> View:
    """A query that can be dragged among keys in the plane; weights and output follow.

    The score is the dot product, and the weights are the softmax of the scores, or all to the best key ("hard").

    Args:
        key: `(L_k, 2)`, the place of each key.
        value: `(L_k,)`, a number filed under each key.
        query: `(2,)`, where the query is at first; near the first key if not given.
        labels: a word for each key; k1, k2, … if not given.

    Raises:
        ValueError: shapes that do not fit, more than 12 keys, or entries that are not finite.
    """
    if key.dim() != 2 or key.shape[1] != 2 or not 1 <= len(key) <= 12:
        raise ValueError(f"key must be (L_k, 2) with 1 to 12 keys, since they are drawn in a plane; got {tuple(key.shape)}")
    if value.shape != key.shape[:1]:
        raise ValueError(f"value must be ({len(key)},), one number for each key, got {tuple(value.shape)}")
    query = 0.6 * key[0] if query is None else query
    if query.shape != (2,):
        raise ValueError(f"query must be (2,), got {tuple(query.shape)}")
    names = labels_for(labels, len(key), "labels", "k")
    reach = 1.15 * max(1e-6, *key.abs().flatten().tolist(), *query.abs().tolist())
    scale = (_SIDE / 2 - _MARGIN) / reach
    data = {"key": numbers(key), "value": numbers(value), "query": numbers(query), "names": names, "scale": scale}

    weights = torch.softmax(key.double() @ query.double(), 0)
    output = (weights @ value.double()).item()
    middle = _SIDE / 2
    parts = [
        element("path", d=f"M0 {middle}H{_SIDE}M{middle} 0V{_SIDE}", class_="line", stroke_opacity=0.4),
    ]
    for i, (place, name, weight) in enumerate(zip(key.tolist(), names, weights.tolist(), strict=True)):
        x, y = middle + scale * place[0], middle - scale * place[1]
        parts.append(element("circle", cx=x, cy=y, r=4.0 + 22 * weight**0.5, class_="key", fill_opacity=0.35, data_k=f"disc{i}"))
        parts.append(element("circle", cx=x, cy=y, r=4.0, class_="key"))
        parts.append(words(x, y - 14, name, class_="key small"))
    x, y = middle + scale * query[0].item(), middle - scale * query[1].item()
    parts.append(element("path", d=f"M{middle} {middle}L{x:.6g} {y:.6g}", class_="line", data_k="arrow"))
    parts.append(
        element(
            "g", element("circle", cx=x, cy=y, r=11.0, class_="query"), data_drag="", data_k="query", tabindex=0,
            role="slider", aria_label="query: drag it, or move it with the arrow keys", aria_valuenow=0,
            aria_valuetext=f"query at {fixed(query[0].item(), 2)}, {fixed(query[1].item(), 2)}",
        )
    )  # fmt: skip
    plane = drawing(_SIDE, _SIDE, *parts, label="Keys in a plane, and the query among them")
    rows = []
    for i, (name, weight, filed) in enumerate(zip(names, weights.tolist(), value.tolist(), strict=True)):
        top = 34 + 23 * i
        rows += [
            words(4, top, name, class_="start key"),
            words(110, top, fixed(weight), key=f"weight{i}", class_="end"),
            element("rect", x=118.0, y=top - 7.0, height=14.0, width=130 * weight, fill="var(--weight)", data_k=f"bar{i}"),
            words(316, top, fixed(filed, 2), class_="end value"),
        ]
    bottom = 42 + 23 * len(names)
    rows += [
        words(4, 12, "key", class_="start small"),
        words(110, 12, "weight", class_="end small"),
        words(316, 12, "value", class_="end small"),
        words(4, bottom, "output", class_="start output"),
        words(316, bottom, fixed(output), key="output", class_="end output"),
    ]
    table = drawing(_SIDE, bottom + 20, *rows, label="The weight and the value of each key, and the output")
    described = ", ".join(f"{name} {fixed(weight)}" for name, weight in zip(names, weights.tolist(), strict=True))
    return View(
        kind="query_plane",
        title="A query among keys",
        description=f"{len(names)} keys in a plane. The query at {fixed(query[0].item(), 2)}, {fixed(query[1].item(), 2)} gives them "
        f"the weights {described}. The output is {fixed(output)}.",
        body=controls(button("hard", "hard: all to the best key", pressed=False)) + panels(plane, table),
        data=data,
        hint="Drag the blue disc, or move it with the arrow keys. The disc round a key grows with its weight.",
    )
