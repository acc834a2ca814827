"""Mistakes in `warmup_rate`: the factor of the width, and how steps are counted."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.training.warmup_rate import warmup_rate
from course_lib.exercises.training.warmup_rate_mistakes.parts import rate

mistake = Mistakes()


@mistake
def root_missing_at_width(step, d_model, warmup_steps):
    """The divisor is d_model itself. It should be its root."""
    return rate(width=lambda s, d, w: 1 / d)(step, d_model, warmup_steps)


@mistake
def multiplied_by_the_root_of_width(step, d_model, warmup_steps):
    """The rate grows with d_model. Wider models take smaller steps: the exponent is negative."""
    return rate(width=lambda s, d, w: d**0.5)(step, d_model, warmup_steps)


@mistake
def width_forgotten(step, d_model, warmup_steps):
    """The rate does not depend on d_model."""
    return rate(width=lambda s, d, w: 1.0)(step, d_model, warmup_steps)


@mistake
def width_in_the_fall_only(s, d, w):
    """The factor of d_model reaches one of the two terms only. It is a factor of the whole minimum."""
    return float(min(d**-0.5 * s**-0.5, s * w**-1.5))


@mistake
def width_in_the_rise_only(s, d, w):
    """The factor of d_model reaches the rising term only. It is a factor of the whole minimum."""
    return float(min(s**-0.5, d**-0.5 * s * w**-1.5))


@mistake
def counted_from_zero(s, d, w):
    """One step too few: the first update has step 1, and a rate that is not zero."""
    return rate()(s - 1, d, w) if s > 1 else 0.0


@mistake
def one_step_ahead(s, d, w):
    """One step too many: this is the rate of the next update. `step` counts from 1 already."""
    return rate()(s + 1, d, w)


@mistake
def fall_begins_anew(s, d, w):
    """After the warm-up the falling term counts its steps from the end of the warm-up, so the rate jumps there. It
    counts from the first update."""
    return float(d**-0.5 * (s * w**-1.5 if s <= w else (s - w) ** -0.5))


@mistake
def fall_from_the_peak_without_warmup(s, d, w):
    """The rise ends at d_model^(−1/2), not at the peak (d_model · warmup_steps)^(−1/2), and the rate jumps."""
    return float(d**-0.5 * (s / w if s <= w else s**-0.5))


@mistake
def constant_without_the_peak(s, d, w):
    """The rate rises to d_model^(−1/2) and stays there. It should rise to (d_model · warmup_steps)^(−1/2) and then fall
    with the root of the step."""
    return float(d**-0.5 * min(1.0, s / w))


@mistake
def relative_to_the_peak(s, d, w):
    """This is the rate relative to its peak: 1 at step = warmup_steps. The factor (d_model · warmup_steps)^(−1/2) is
    missing."""
    return float(min(s / w, (w / s) ** 0.5))


@mistake
def warmup_factor_missing(s, d, w):
    """This has its peak at d_model^(−1/2). The factor warmup_steps^(−1/2) is missing: the exponent of the rise is
    −3/2, not −1."""
    return float(d**-0.5 * min(s / w, (w / s) ** 0.5))


@mistake
def linear_fall(step, d_model, warmup_steps):
    """The rate falls in a straight line after the peak. It falls with the root of the step, ever more slowly."""
    return rate(fall=lambda s, d, w: w**-0.5 * max(0.0, 2 - s / w))(step, d_model, warmup_steps)


@mistake
def width_and_warmup_exchanged(s, d, w):
    """d_model and `warmup_steps` are exchanged."""
    return rate()(s, w, d)


@mistake
def rising_root(step, d_model, warmup_steps):
    """The root of the step is a factor instead of a divisor: the exponent is negative."""
    return rate(fall=lambda s, d, w: s**0.5)(step, d_model, warmup_steps)


@mistake
def whole_division(step, d_model, warmup_steps):
    """`//` rounds down to 0: the rise of the warm-up is a fraction."""
    return rate(rise=lambda s, d, w: s // w**1.5)(step, d_model, warmup_steps)


@mistake
def tensor(s, d, w):
    """The rate is right, but it is a tensor. An optimizer's rate is a float: use `.item()`, or `math`."""
    return torch.tensor(warmup_rate(s, d, w))
