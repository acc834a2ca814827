"""Mistakes in `warmup_rate`: the two terms, and the exponents in them."""

from __future__ import annotations

import math

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.training.warmup_rate_mistakes.parts import rate

mistake = Mistakes()


@mistake
def max_for_min(step, d_model, warmup_steps):
    """The larger of the two terms is taken (or the condition is reversed): the rate falls first, and after the warm-up
    rises without end."""
    return rate(choose=max)(step, d_model, warmup_steps)


@mistake
def added(step, d_model, warmup_steps):
    """The two terms are added. At each step, only the smaller one counts."""
    return rate(choose=lambda a, b: a + b)(step, d_model, warmup_steps)


@mistake
def only_rise(step, d_model, warmup_steps):
    """The rate rises for ever: the term that falls is missing."""
    return rate(fall=lambda s, d, w: math.inf)(step, d_model, warmup_steps)


@mistake
def only_fall(step, d_model, warmup_steps):
    """The rate falls from the first step on: the warm-up is missing, or its term is never the smaller one."""
    return rate(rise=lambda s, d, w: math.inf)(step, d_model, warmup_steps)


@mistake
def constant_after_warmup(step, d_model, warmup_steps):
    """After the warm-up the rate stays where it is. It should fall with the root of the step."""
    return rate(fall=lambda s, d, w: w**-0.5)(step, d_model, warmup_steps)


@mistake
def falls_without_root(step, d_model, warmup_steps):
    """After the warm-up the rate falls with the step itself. It should fall with the root of the step."""
    return rate(fall=lambda s, d, w: 1 / s)(step, d_model, warmup_steps)


@mistake
def falls_with_three_halves(step, d_model, warmup_steps):
    """The exponent −3/2 is applied to the step. It belongs to `warmup_steps`; the step has −1/2."""
    return rate(fall=lambda s, d, w: s**-1.5)(step, d_model, warmup_steps)


@mistake
def exponents_exchanged(step, d_model, warmup_steps):
    """The exponents are exchanged: the step falls with −3/2, `warmup_steps` has −1/2."""
    return rate(fall=lambda s, d, w: s**-1.5, rise=lambda s, d, w: s * w**-0.5)(step, d_model, warmup_steps)


@mistake
def root_in_the_rise(step, d_model, warmup_steps):
    """The rise is too steep: `warmup_steps` has the exponent −1/2 there. With which one do both terms meet at the
    peak?"""
    return rate(rise=lambda s, d, w: s * w**-0.5)(step, d_model, warmup_steps)


@mistake
def rise_to_one(step, d_model, warmup_steps):
    """The rise is step / warmup_steps: it reaches 1 at the peak, where the falling term is much smaller. Both have
    to meet there."""
    return rate(rise=lambda s, d, w: s / w)(step, d_model, warmup_steps)


@mistake
def rise_too_flat(step, d_model, warmup_steps):
    """The rise is too flat: `warmup_steps` is squared. With which exponent do both terms meet?"""
    return rate(rise=lambda s, d, w: s / w**2)(step, d_model, warmup_steps)


@mistake
def three_halves_over_all(step, d_model, warmup_steps):
    """The whole quotient step / warmup_steps has the exponent. The step rises in a straight line: its exponent is 1."""
    return rate(rise=lambda s, d, w: (s / w) ** 1.5)(step, d_model, warmup_steps)


@mistake
def product_has_the_exponent(step, d_model, warmup_steps):
    """The exponent −3/2 is applied to the product of step and `warmup_steps`. It belongs to the latter alone: a
    power binds more tightly than a product."""
    return rate(rise=lambda s, d, w: (s * w) ** -1.5)(step, d_model, warmup_steps)
