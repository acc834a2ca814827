"""The distribution of the next token, and its cuts: temperature, top-k and top-p.

`course_lib.decoding.top_p_filter` is the version to read, of top-p alone; this is the one that `search` draws from.
"""

from __future__ import annotations

import torch
from torch import Tensor

from course_kit._checks import check_floats, check_number, check_whole
from course_lib._typing import Float

__all__ = ["check_cuts", "next_token_distribution"]


def next_token_distribution(
    logits: Float[Tensor, "*batch vocab"],
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Float[Tensor, "*batch vocab"]:
    """Probabilities to draw the next token from: softmax(logits / temperature), of the most probable tokens only.

    top_k keeps the k most probable tokens. top_p keeps, of what is left and with probabilities that sum to one again,
    the smallest set of most probable tokens whose probability reaches p: at least one. Of equally probable tokens the
    one with the smaller id counts as more probable.

    Args:
        logits: `(..., V)`; -inf for a token that is not to come.
        temperature: above 0; 1 leaves the distribution as it is, towards 0 it becomes the greedy choice.
        top_k: at least 1; None for no cut.
        top_p: in (0, 1]; None or 1 for no cut.

    Returns:
        `(..., V)`, each row sums to one; float32 for logits of less precision.

    Raises:
        ValueError: temperature, top_k or top_p out of range; a row without a token that may come, or with NaN (on a
            CPU; on a GPU the row becomes NaN).

    Source: top-k: Fan, Lewis & Dauphin (2018), section 5.2; top-p: Holtzman et al. (2020), section 3.1.
    """
    check_cuts(temperature, top_k, top_p)
    check_floats(logits=logits, axes=1)
    if not logits.shape[-1]:
        raise ValueError(f"logits must be (..., V) of at least one token, got {tuple(logits.shape)}")
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    largest = logits.amax(-1, keepdim=True)
    if largest.device.type == "cpu" and not largest.isfinite().all():
        raise ValueError(
            f"each row of logits must have a finite largest entry, got {largest[~largest.isfinite()][0].item()}"
        )
    # The largest is 0 before the division, so that a low temperature gives 0 and -inf, and no NaN.
    probabilities = ((logits - largest) / temperature).softmax(-1)  # (..., V)
    if (top_k is None or top_k >= logits.shape[-1]) and (top_p is None or top_p == 1.0):
        return probabilities
    # Sorted by logits: two tokens may differ in these and have the same probability, 0, at a low temperature.
    order = logits.argsort(dim=-1, descending=True, stable=True)
    ordered = probabilities.gather(-1, order)
    if top_k is not None:
        ordered[..., top_k:] = 0.0
        ordered = ordered / ordered.sum(-1, keepdim=True)
    if top_p is not None:
        before = ordered.cumsum(-1) - ordered  # probability of all that are more probable
        ordered = ordered.masked_fill(before >= top_p, 0.0)
        ordered = ordered / ordered.sum(-1, keepdim=True)
    return torch.zeros_like(ordered).scatter(-1, order, ordered)


def check_cuts(temperature: float, top_k: int | None, top_p: float | None) -> None:
    """Refuse what does not cut a distribution.

    Raises:
        TypeError: one of them is not a number.
        ValueError: one is out of its range.
    """
    check_number("temperature", temperature)
    if not 0.0 < temperature < 1e38:  # beyond, -inf divided by it is NaN in float32
        raise ValueError(
            f"temperature must be a finite number above 0 and below 1e38, got {temperature}; for the most probable "
            f"token each time use greedy"
        )
    if top_k is not None:
        check_whole(top_k=top_k, hint="; None draws from all tokens")
    if top_p is not None:
        check_number("top_p", top_p)
    if top_p is not None and not 0.0 < top_p <= 1.0:
        raise ValueError(f"top_p must be a probability in (0, 1], got {top_p}; None draws from all tokens")
