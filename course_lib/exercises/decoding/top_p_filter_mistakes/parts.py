"""The building blocks of the mistakes in `top_p_filter`."""

from __future__ import annotations

import math

__all__ = ["filter_with"]


def filter_with(
    *,
    probs=lambda logits: logits.softmax(-1),
    descending=True,
    keep=lambda sums, probs, p: sums - probs < p,
    at_least_one=True,
    restore=lambda keep, order: keep[order.argsort()],
    fill=-math.inf,
    of=lambda logits: logits,
):
    """The filter with one part exchanged."""

    def top_p(logits, p):
        order = logits.argsort(descending=descending)
        ranked = probs(logits)[order]
        kept = keep(ranked.cumsum(-1), ranked, p)
        if at_least_one:
            kept[0] = True
        return of(logits).masked_fill(~restore(kept, order), fill)

    return top_p
