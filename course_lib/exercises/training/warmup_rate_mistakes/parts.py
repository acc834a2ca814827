"""The building blocks of the mistakes in `warmup_rate`."""

from __future__ import annotations

__all__ = ["rate"]


def rate(rise=None, fall=None, width=None, choose=min):
    """The schedule with one part replaced; all parts are functions of (step, d_model, warmup_steps)."""
    rise = rise or (lambda s, d, w: s * w**-1.5)
    fall = fall or (lambda s, d, w: s**-0.5)
    width = width or (lambda s, d, w: d**-0.5)
    return lambda s, d, w: float(width(s, d, w) * choose(fall(s, d, w), rise(s, d, w)))
