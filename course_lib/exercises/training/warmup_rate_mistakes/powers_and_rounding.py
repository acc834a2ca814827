"""Mistakes in `warmup_rate`: powers that bind more tightly than meant, rounding, and two at once."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes

mistake = Mistakes()


def _schedule(
    *,
    rise=lambda s, w: s * w**-1.5,
    fall=lambda s, w: s**-0.5,
    width=lambda d: d**-0.5,
    choose=min,
    form=float,
):
    return lambda s, d, w: form(width(d) * choose(fall(s, w), rise(s, w)))


_COMMON_IN_RATE: dict[str, tuple[str, dict]] = {
    "max_for_min": ("the larger term is taken", {"choose": max}),
    "added": ("the two terms are added", {"choose": lambda a, b: a + b}),
    "width_forgotten": ("d_model is missing", {"width": lambda d: 1.0}),
    "root_missing_at_width": ("d_model is without its root", {"width": lambda d: 1 / d}),
    "multiplied_by_the_root_of_width": ("the exponent of d_model is positive", {"width": lambda d: d**0.5}),
    "root_in_the_rise": ("`warmup_steps` has the exponent −1/2", {"rise": lambda s, w: s * w**-0.5}),
    "rise_to_one": ("the rise is step / warmup_steps", {"rise": lambda s, w: s / w}),
    "falls_without_root": ("the step is without its root", {"fall": lambda s, w: 1 / s}),
    "rising_root": ("the exponent of the step is positive", {"fall": lambda s, w: s**0.5}),
}


@mistake
def falls_with_the_square(step, d_model, warmup_steps):
    """After the warm-up the rate falls with the square of the step. It falls with its root."""
    return _schedule(fall=lambda s, w: s**-2)(step, d_model, warmup_steps)


@mistake
def three_halves_at_width(step, d_model, warmup_steps):
    """The exponent −3/2 is applied to `d_model`. It belongs to `warmup_steps`; `d_model` has −1/2."""
    return _schedule(width=lambda d: d**-1.5)(step, d_model, warmup_steps)


@mistake
def negative_rate(step, d_model, warmup_steps):
    """The rate is negative: a minus before a power is applied to its result; here it belongs in the exponent."""
    return _schedule(width=lambda d: -(d**0.5))(step, d_model, warmup_steps)


@mistake
def terms_multiplied(step, d_model, warmup_steps):
    """The two terms are multiplied. At each step, only the smaller one counts."""
    return _schedule(choose=lambda a, b: a * b)(step, d_model, warmup_steps)


@mistake
def half_of_the_inverse_step(step, d_model, warmup_steps):
    """`step ** -1 / 2` is half of 1/step: a power binds more tightly than a division. The exponent is −1/2."""
    return _schedule(fall=lambda s, w: s**-1 / 2)(step, d_model, warmup_steps)


@mistake
def half_of_the_inverse_width(step, d_model, warmup_steps):
    """`d_model ** -1 / 2` is half of 1/d_model: a power binds more tightly than a division. The exponent is −1/2."""
    return _schedule(width=lambda d: d**-1 / 2)(step, d_model, warmup_steps)


@mistake
def half_of_a_cube(step, d_model, warmup_steps):
    """`warmup_steps ** -3 / 2` is half of a cube: a power binds more tightly than a division. The exponent is −3/2."""
    return _schedule(rise=lambda s, w: s * w**-3 / 2)(step, d_model, warmup_steps)


@mistake
def all_powers_before_their_division(step, d_model, warmup_steps):
    """`x ** -1 / 2` is half of 1/x: a power binds more tightly than a division, in all three factors."""
    return _schedule(fall=lambda s, w: s**-1 / 2, width=lambda d: d**-1 / 2, rise=lambda s, w: s * w**-3 / 2)(
        step, d_model, warmup_steps
    )


@mistake
def rise_without_step(step, d_model, warmup_steps):
    """The rate does not rise: `step` is missing in the term of the warm-up."""
    return _schedule(rise=lambda s, w: w**-1.5)(step, d_model, warmup_steps)


@mistake
def rise_with_the_square(step, d_model, warmup_steps):
    """The rate rises with the square of the step. It rises in a straight line."""
    return _schedule(rise=lambda s, w: s**2 * w**-1.5)(step, d_model, warmup_steps)


@mistake
def fall_one_after_the_peak(s, d, w):
    """After the warm-up the falling term counts its steps from the peak, so the rate jumps up to d_model^(−1/2). It
    counts from the first update."""
    return d**-0.5 * (s * w**-1.5 if s < w else (s - w + 1) ** -0.5)


@mistake
def in_percent(step, d_model, warmup_steps):
    """The rate is a hundred times too large."""
    return _schedule(form=lambda x: 100 * x)(step, d_model, warmup_steps)


@mistake
def as_text(step, d_model, warmup_steps):
    """The rate is returned as a string. The contract asks for a float."""
    return _schedule(form=str)(step, d_model, warmup_steps)


@mistake
def whole_number(step, d_model, warmup_steps):
    """The rate is rounded to a whole number, which is 0 nearly everywhere."""
    return _schedule(form=lambda x: float(int(x)))(step, d_model, warmup_steps)


for digits in (3, 4, 5, 6, 8):
    says = f"The rate is rounded to {digits} decimals, but it is so small that most of it is lost. Do not round it."
    mistake.named(f"rounded_to_{digits}", says)(_schedule(form=lambda x, digits=digits: float(round(x, digits))))


mistake.two_at_once(_COMMON_IN_RATE, _schedule)
