"""The building blocks of the mistakes in `corpus_bleu`."""

from __future__ import annotations

__all__ = ["arithmetic", "shorter_only"]


def shorter_only(penalty):
    """1.0 for output that is long enough, and the given penalty for shorter output."""
    return lambda h, r: (1.0 if h >= r else penalty(h, r)) if h else 0.0


def arithmetic(precisions):
    return sum(precisions) / len(precisions)
