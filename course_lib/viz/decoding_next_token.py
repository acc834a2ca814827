"""A view of the next token's distribution, its temperature and its filters."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from course_lib._checks import check_whole
from course_lib.viz.describing import cut, shortened
from course_lib.viz.view import (
    View,
    check_drawable,
    drawing,
    element,
    fixed,
    labels_for,
    panels,
    slider,
    text_of,
    words,
)

__all__ = ["next_token_bars"]

WIDTH = 320  # units of a panel
_MOST_TOKENS, _MOST_BARS = 10_000, 20
_BAR, _BARS_AT, _BAR_ROW = 140, 118, 24  # units of a probability of one; where bars begin; from bar to bar
_NOTHING = 200.0  # a logit so far below the best has no probability in any digit that is shown, at temperature 2 too

_BARS_STYLE = """<style>
attention-view .token.out text{fill:var(--muted)}
attention-view .token.out text.end:first-child{text-decoration:line-through}
</style>"""


def next_token_bars(
    logits: Tensor, tokens: Sequence[str] | None = None, *, shown: int = 12, title: str = "The next token"
) -> View:
    """Bars of the distribution of the next token, with sliders for temperature, top-k and top-p.

    In this order, which is also that of `transformers`: the logits are divided by the temperature; of these, the k
    largest stay (with all that equal the k-th); of their softmax, the smallest set of most probable tokens whose
    probability reaches p stays; what stays is made to sum to one. Of tokens that are equally probable, the first in the
    vocabulary counts as the more probable one for top-p. A pale bar is the probability before filtering.

    Args:
        logits: `(V,)`, of one position, V of 10,000 or fewer.
        tokens: a label for each of the V tokens; their ids if not given.
        shown: bars, of the most probable tokens; all others share one more bar.
        title: what the picture is called.

    Raises:
        TypeError: logits is not a tensor.
        ValueError: logits is no vector, is empty, has over 10,000 entries or entries that are not finite, the labels do
            not fit, or shown is not a whole number from 1 to 20.
    """
    if not isinstance(logits, Tensor):
        raise TypeError(f"logits must be a tensor (V,), got {type(logits).__name__}; a model's are logits[batch, -1]")
    if logits.dim() != 1 or not 1 <= len(logits) <= _MOST_TOKENS:
        raise ValueError(
            f"logits must be (V,) with 1 to {_MOST_TOKENS:,} tokens, got {tuple(logits.shape)}; take one position, "
            f"logits[batch, -1], and of a larger vocabulary the most probable tokens, logits.topk({_MOST_TOKENS})"
        )
    if not torch.isfinite(logits).all():
        raise ValueError(
            "logits must be finite, got NaN or infinity; give them as they are before a filter such as top_p_filter, "
            "whose -inf the view sets itself"
        )
    check_whole(shown=shown, most=_MOST_BARS, hint="; the other tokens share one more bar")
    check_drawable(logits=logits)
    vocabulary = len(logits)
    names = [shortened(name) for name in labels_for(tokens, vocabulary, "tokens")]
    exact, order = logits.detach().cpu().double().sort(descending=True, stable=True)
    probabilities = exact.softmax(0)
    entropy = torch.special.entr(probabilities).sum().item()
    shown = min(shown, vocabulary)
    best = [names[i] for i in order[:shown].tolist()]
    heights = probabilities[:shown].tolist()
    if vocabulary > shown:
        best.append(f"all {vocabulary - shown} others")
        heights.append(probabilities[shown:].sum().item())
    rows = [_bar(12 + _BAR_ROW * i, name, p) for i, (name, p) in enumerate(zip(best, heights, strict=True))]
    axis = element("path", d=f"M{_BARS_AT} 0v{_BAR_ROW * len(rows)}", class_="line")
    chart = drawing(
        WIDTH,
        _BAR_ROW * len(rows),
        *rows,
        axis,
        label="Probability of the most probable next tokens, and of all others",
    )
    remain = f"{vocabulary} of {vocabulary} tokens remain,\nentropy {fixed(entropy)} nats."
    sizes = _sizes(vocabulary)
    top_k = slider("k", "top-k", 0, len(sizes) - 1, len(sizes) - 1)
    top_k = top_k.replace("<input ", '<input aria-valuetext="all tokens" ').replace(
        f">{len(sizes) - 1}</output>", ">all</output>"
    )
    sliders = [slider("t", "temperature", 0.2, 2, 1, 0.1), top_k, slider("p", "top-p", 0.05, 1, 1, 0.05)]
    listed = ", ".join(f"“{name}” {fixed(p)}" for name, p in zip(best[:6], heights[:6], strict=True))
    return View(
        kind="next_token",
        title=title,
        description=cut(
            f"Probability of the next token at temperature 1, without a filter: {listed}. " + remain.replace("\n", " "),
        ),
        body=_BARS_STYLE
        + panels(
            element(
                "div",
                *(element("p", text, style="display:flex;gap:.5rem") for text in map(_in_columns, sliders)),
                element("p", text_of(remain), data_k="remain", style="white-space:pre-line"),
            ),
            chart,
        ),
        data={"gaps": _gaps(exact), "sizes": sizes, "shown": shown},
        hint="Change the temperature, then filter with top-k or top-p: which tokens can still be sampled?",
        status=f"{remain} “{cut(best[0], 15)}” has {fixed(heights[0])}.",
        note="Pale: probability at this temperature before a filter. Strong: after it. Struck out: cannot be sampled.",
    )


def _bar(y: float, name: str, probability: float) -> str:
    """A row of four: name, bar before filtering, bar after it, number."""
    pale, strong = (
        element(
            "rect", x=_BARS_AT, y=y - 8.0, height=16.0, width=_BAR * probability, fill="var(--weight)",
            fill_opacity=opacity,
        )
        for opacity in (0.3, 1)
    )  # fmt: skip
    return element(
        "g",
        words(_BARS_AT - 6, y, cut(name, 15), class_="end"),
        pale,
        strong,
        words(WIDTH - 2, y, fixed(probability), class_="end"),
        class_="token",
    )


def _in_columns(labelled: str) -> str:
    """A slider's label, its handle and its value, below those of the next."""
    return labelled.replace(
        "<label>", '<label style="display:grid;grid-template-columns:6.2rem 10rem auto;gap:.4rem;align-items:center">'
    )


def _sizes(vocabulary: int) -> list[int | str]:
    """What the slider for k goes through: 1, 2, … up to 20, then 50, 100, 200, 500, …, and the whole vocabulary."""
    sizes = {*range(1, 21), *(step * 10**power for power in (1, 2, 3) for step in (2, 5, 10))}
    return [*sorted(size for size in sizes if size < vocabulary), "all"]


def _gaps(ordered: Tensor) -> list[int]:
    """Falling logits as their distances from one to the next in millionths, which takes half the characters.

    Rounding does not add up, equal logits stay equal, and different ones different.
    """
    logits = ordered.tolist()
    places = [0]
    for before, logit in itertools.pairwise(logits):
        place = round(1e6 * min(logits[0] - logit, _NOTHING))
        places.append(max(place, places[-1] + (logit < before)))
    return [0, *(after - before for before, after in itertools.pairwise(places))]
