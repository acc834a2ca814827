"""Mistakes in `layer_norm`: mean, variance and eps."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.transformer.layer_norm_mistakes.parts import mean, norm

mistake = Mistakes()


@mistake
def unbiased_variance(x, gain, bias, eps=1e-5):
    """The variance is divided by d − 1. Here, nothing is estimated from a sample: the d features are all there are.
    `torch.var` has an argument for that."""
    return norm(power=lambda x: x.var(-1, keepdim=True))(x, gain, bias, eps)


@mistake
def eps_outside_root(x, gain, bias, eps=1e-5):
    """eps is added to the standard deviation, outside the root. It belongs to the variance; where the variance is
    small, that is a large difference."""
    return norm(root=lambda variance, eps: variance.sqrt() + eps)(x, gain, bias, eps)


@mistake
def unbiased_and_eps_outside(x, gain, bias, eps=1e-5):
    """Two slips at once, found in many tutorials: the standard deviation is the unbiased one (divided by d − 1), and
    eps is added to it outside the root."""
    return norm(power=lambda x: x.var(-1, keepdim=True), root=lambda variance, eps: variance.sqrt() + eps)(
        x, gain, bias, eps
    )


@mistake
def root_missing(x, gain, bias, eps=1e-5):
    """The vector is divided by its variance. Multiply x by 2: by how much does the variance grow, and what has the
    same unit as x?"""
    return norm(root=lambda variance, eps: variance + eps)(x, gain, bias, eps)


@mistake
def multiplied_by_root(x, gain, bias, eps=1e-5):
    """The centred vector is multiplied by its standard deviation, so the features are spread even further."""
    return norm(root=lambda variance, eps: (variance + eps) ** -0.5)(x, gain, bias, eps)


@mistake
def eps_missing(x, gain, bias, eps=1e-5):
    """eps is not used. A vector of equal features has variance 0, and 0 / 0 is nan."""
    return norm(root=lambda variance, eps: variance.sqrt())(x, gain, bias, eps)


@mistake
def eps_fixed(x, gain, bias, eps=1e-5):
    """The argument eps makes no difference: a fixed number is used instead."""
    return norm(root=lambda variance, eps: (variance + 1e-5).sqrt())(x, gain, bias, eps)


@mistake.built
def eps_default_1e6():
    """Right if eps is given, but wrong if its default is used: the default is not 1e-6."""
    return norm(default=1e-6)


@mistake.built
def eps_default_1e8():
    """Right if eps is given, but wrong if its default is used: 1e-8 is another function's default."""
    return norm(default=1e-8)


@mistake.built
def eps_default_1e12():
    """Right if eps is given, but wrong if its default is used: 1e-12 is BERT's default."""
    return norm(default=1e-12)


@mistake
def eps_squared(x, gain, bias, eps=1e-5):
    """The square of eps is added to the variance; eps itself belongs there."""
    return norm(root=lambda variance, eps: (variance + eps**2).sqrt())(x, gain, bias, eps)


@mistake
def eps_as_bound(x, gain, bias, eps=1e-5):
    """eps is used as a lower bound on the variance. It should be added to every variance, small or large."""
    return norm(root=lambda variance, eps: variance.clamp(min=eps).sqrt())(x, gain, bias, eps)


@mistake
def deviation_bounded(x, gain, bias, eps=1e-5):
    """eps is used as a lower bound on the standard deviation. It should be added under the root, whatever the variance
    is."""
    return norm(root=lambda variance, eps: variance.sqrt().clamp(min=eps))(x, gain, bias, eps)


@mistake
def sum_of_squares(x, gain, bias, eps=1e-5):
    """The squares are summed but not divided by d, so wide vectors become smaller than narrow ones."""
    return norm(power=lambda x: (x - mean(x)).square().sum(-1, keepdim=True))(x, gain, bias, eps)


@mistake
def unit_length(x, gain, bias, eps=1e-5):
    """The centred vector is scaled to length 1. Its variance should be 1, so its length should be √d."""
    return norm(
        root=lambda variance, eps: variance.sqrt(), power=lambda x: (x - mean(x)).square().sum(-1, keepdim=True)
    )(x, gain, bias, eps)


@mistake
def mean_of_deviations(x, gain, bias, eps=1e-5):
    """The spread is the mean of the absolute deviations. It should come from the mean of their squares, the
    variance."""
    return norm(root=lambda spread, eps: spread + eps, power=lambda x: (x - mean(x)).abs().mean(-1, keepdim=True))(
        x, gain, bias, eps
    )


@mistake
def unstable_variance(x, gain, bias, eps=1e-5):
    """The variance is computed as the mean of squares minus the square of the mean. For a large mean, these are two
    huge numbers whose difference loses its digits; centre first and then square, which keeps them."""
    return norm(power=lambda x: x.square().mean(-1, keepdim=True) - mean(x).square())(x, gain, bias, eps)


@mistake
def not_centred(x, gain, bias, eps=1e-5):
    """The mean is not subtracted from the vector that is scaled: it is divided by the right root, but still has its old
    mean."""
    return norm(centre=lambda x: 0)(x, gain, bias, eps)


@mistake
def rms_norm(x, gain, bias, eps=1e-5):
    """No mean is subtracted anywhere: this is RMSNorm, with the mean of squares about zero. Layer norm takes it about
    the mean."""
    return norm(centre=lambda x: 0, power=lambda x: x.square().mean(-1, keepdim=True))(x, gain, bias, eps)


@mistake
def square_about_zero(x, gain, bias, eps=1e-5):
    """The vector is centred, but the squares are averaged before that, about zero instead of about the mean."""
    return norm(power=lambda x: x.square().mean(-1, keepdim=True))(x, gain, bias, eps)


@mistake
def not_scaled(x, gain, bias, eps=1e-5):
    """Only the mean is subtracted: the features keep their spread."""
    return norm(root=lambda variance, eps: 1.0)(x, gain, bias, eps)


@mistake
def unbiased_without_eps(x, gain, bias, eps=1e-5):
    """Two things: the standard deviation is the unbiased one, divided by d − 1, where all d features are there; and eps
    is not used."""
    return norm(power=lambda x: x.var(-1, keepdim=True), root=lambda variance, eps: variance.sqrt())(x, gain, bias, eps)


@mistake
def mean_divided_alone(x, gain, bias, eps=1e-5):
    """Only the mean is divided by the root, and x is not: `*` and `/` come before `-`. Centre x first, in brackets."""
    return gain * x - mean(x) / (x.var(-1, keepdim=True, correction=0) + eps).sqrt() + bias


@mistake
def bias_in_the_divisor(x, gain, bias, eps=1e-5):
    """bias is added to the root, in the divisor. It is added at the end, after the multiplication by gain."""
    return gain * (x - mean(x)) / ((x.var(-1, keepdim=True, correction=0) + eps).sqrt() + bias)
