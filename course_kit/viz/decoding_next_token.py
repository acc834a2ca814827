"""A view of the next token's distribution, its temperature and its filters."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from course_kit._checks import check_finite, check_whole
from course_kit.viz.describing import cut, shortened
from course_kit.viz.view import View
from course_kit.viz.view_elements import drawing, element, labels_for, panels, slider, words
from course_kit.viz.view_numbers import check_drawable, fixed

__all__ = ["next_token_bars"]

WIDTH = 320  # units of a panel
_MOST_TOKENS, _MOST_BARS = 10_000, 20
_TOP = 16  # below the end of the scale
_BAR, _BARS_AT, _BAR_ROW = 140, 118, 24  # length of the longest possible bar; where bars begin; from bar to bar
_FULL = (0.25, 0.5, 1.0)  # probabilities at which the scale of the bars may end
_NOTHING = 200.0  # a logit so far below the best has no probability in any digit that is shown, at temperature 2 too

_BARS_STYLE = """<style>
attention-view .token.out text{fill:var(--muted)}
attention-view .token.out text.end:first-child{text-decoration:line-through}
</style>"""


def next_token_bars(
    logits: Tensor,
    tokens: Sequence[str] | None = None,
    *,
    shown: int = 12,
    title: str = "The next token",
    top_p: float = 1.0,
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
        top_p: where the slider of top-p stands at first, a multiple of 0.05 from 0.05 to 1.

    Raises:
        TypeError: logits is not a tensor, or top_p not a number.
        ValueError: logits is no vector, is empty, has over 10,000 entries or entries that are not finite, the labels do
            not fit, or shown or top_p is not one of those above.
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
    check_finite("top_p", top_p, 0.05, 1)
    if abs(top_p * 20 - round(top_p * 20)) > 1e-9:
        raise ValueError(f"top_p must be a multiple of 0.05 from 0.05 to 1, where the slider can stand, got {top_p!r}")
    check_drawable(logits=logits)
    vocabulary = len(logits)
    names = [shortened(name) for name in labels_for(tokens, vocabulary, "tokens")]
    exact, order = logits.detach().cpu().double().sort(descending=True, stable=True)
    probabilities = exact.softmax(0)
    count = int((probabilities.cumsum(0) < top_p).sum()) + 1 if top_p < 1 else vocabulary
    kept = exact[:count].softmax(0)
    entropy = torch.special.entr(kept).sum().item()
    shown = min(shown, vocabulary)
    best = [names[i] for i in order[:shown].tolist()]
    if vocabulary > shown:
        best.append(f"all {vocabulary - shown} others")
    after = torch.cat([kept, torch.zeros(vocabulary - count, dtype=torch.double)])
    heights = [
        [*p[:shown].tolist(), *([p[shown:].sum().item()] if vocabulary > shown else [])] for p in (probabilities, after)
    ]
    full = next(x for x in _FULL if x == 1 or x >= max(map(max, heights)))
    rows = [
        _bar(_TOP + 12 + _BAR_ROW * i, name, before / full, now / full, now, i >= count)
        for i, (name, before, now) in enumerate(zip(best, *heights, strict=True))
    ]
    axis = element("path", d=f"M{_BARS_AT} {_TOP}v{_BAR_ROW * len(rows)}M{_BARS_AT + _BAR} {_TOP}v6", class_="line")
    scale = words(_BARS_AT + _BAR, 8, f"{full:g}", key="full", class_="small")
    chart = drawing(
        WIDTH,
        _TOP + _BAR_ROW * len(rows),
        *rows,
        axis,
        scale,
        label="Probability of the most probable next tokens, and of all others",
    )
    remain = f"Of {vocabulary} tokens, {count} remain; the entropy is {fixed(entropy)} nats"
    sizes = _sizes(vocabulary)
    top_k = slider("k", "top-k", 0, len(sizes) - 1, len(sizes) - 1)
    top_k = top_k.replace("<input ", '<input aria-valuetext="all tokens" ').replace(
        f">{len(sizes) - 1}</output>", ">all</output>"
    )
    sliders = [slider("t", "temperature", 0.2, 2, 1, 0.1), top_k, slider("p", "top-p", 0.05, 1, top_p, 0.05)]
    listed = ", ".join(f"“{name}” {fixed(p)}" for name, p in zip(best[:6], heights[0][:6], strict=True))
    return View(
        kind="next_token",
        title=title,
        description=cut(
            f"Probability of the next token at temperature 1, without a filter: {listed}. "
            f"At top-p {top_p:g}: {remain}.",
        ),
        body=_BARS_STYLE
        + panels(
            element(
                "div",
                *(element("p", text, style="display:flex;gap:.5rem") for text in map(_in_columns, sliders)),
            ),
            chart,
        ),
        data={"gaps": _gaps(exact), "sizes": sizes, "shown": shown},
        hint="Change the temperature, then filter with top-k or top-p: which tokens can still be sampled?",
        status=f"{remain}, and “{cut(best[0], 15)}” has {fixed(after[0].item())}.",
        note="Pale: probability at this temperature before a filter. Strong: after it. Struck out: cannot be sampled. "
        "The number above the bars is the probability at which their scale ends.",
    )


def _bar(y: float, name: str, before: float, after: float, probability: float, out: bool) -> str:
    """A row of four: name, bar before filtering, bar after it, number."""
    pale, strong = (
        element(
            "rect", x=_BARS_AT, y=y - 8.0, height=16.0, width=_BAR * share, fill="var(--weight)", fill_opacity=opacity
        )
        for share, opacity in ((before, 0.3), (after, 1))
    )
    return element(
        "g",
        words(_BARS_AT - 6, y, cut(name, 15), class_="end"),
        pale,
        strong,
        words(WIDTH - 2, y, fixed(probability), class_="end"),
        class_="token out" if out else "token",
    )


def _in_columns(labelled: str) -> str:
    """A slider's label, its handle and its value, below those of the next."""
    return labelled.replace(
        "<label>",
        '<label style="display:grid;grid-template-columns:6.2rem minmax(0,10rem) auto;gap:.4rem;align-items:center">',
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
