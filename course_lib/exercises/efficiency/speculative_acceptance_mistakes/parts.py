"""The building blocks of the mistakes in `speculative_acceptance`."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["acceptance", "excess", "kept", "rule"]


def kept(target, draft):
    """The probability with which each token is kept."""
    never = draft == 0
    return (target / draft.masked_fill(never, 1.0)).clamp(max=1.0).masked_fill(never, 1.0)


def excess(target, draft):
    """By how much a token is drafted too rarely."""
    return (target - draft).clamp(min=0.0)


def normalised(x):
    return x / x.sum(-1, keepdim=True)


def rule(
    *,
    accept: Callable = kept,
    rest: Callable = excess,
    normalise: Callable = normalised,
    finish: Callable = lambda accept, residual: (accept, residual),
) -> Callable:
    """The rule of speculative sampling with some of its parts replaced.

    Args:
        accept: the probability with which a token is kept, from target and draft.
        rest: what is left for the residual, from target and draft.
        normalise: the residual, from what is left.
        finish: what is returned, from both.
    """

    def solution(target, draft):
        return finish(accept(target, draft), normalise(rest(target, draft)))

    return solution


def acceptance(accept: Callable) -> Callable:
    """The rule with another probability of keeping a token."""
    return rule(accept=accept)
