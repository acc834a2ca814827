"""A view of the chapter `transformer`: where the parameters are."""

from __future__ import annotations

from course_kit._checks import check_whole
from course_kit.viz.view import View
from course_kit.viz.view_elements import button, controls, drawing, element, number_box, panels, text_of, words

__all__ = ["parameter_calculator"]

_TERMS = (
    ("embedding", "embeddings"),
    ("encoder_attention", "encoder: attention"),
    ("encoder_feed_forward", "encoder: feed-forward"),
    ("decoder_attention", "decoder: both attentions"),
    ("decoder_feed_forward", "decoder: feed-forward"),
    ("norms", "layer norms"),
)
_SIDE = 320
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
