"""Mistakes in `layer_norm`: mean, variance and eps."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.transformer.layer_norm_mistakes.parts import mean, norm

mistake = Mistakes()


@mistake
def unbiased_variance(x, gain, bias, eps=1e-5):
    """The variance is divided by d − 1. Nothing is estimated from a sample here: the d features are all there are.
    `torch.var` has an argument for that."""
    return norm(power=lambda x: x.var(-1, keepdim=True))(x, gain, bias, eps)


@mistake
def eps_outside_root(x, gain, bias, eps=1e-5):
    """eps is added to the standard deviation, outside the root. It belongs to the variance; where the variance is
    small, that is a large difference."""
    return norm(root=lambda variance, eps: variance.sqrt() + eps)(x, gain, bias, eps)


@mistake
def unbiased_and_eps_outside(x, gain, bias, eps=1e-5):
    """Two slips at once, seen in many tutorials: the standard deviation is the unbiased one (divided by d − 1), and
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
    """The centred vector is multiplied by its standard deviation, so what is spread out gets spread out more."""
    return norm(root=lambda variance, eps: (variance + eps) ** -0.5)(x, gain, bias, eps)


@mistake
def eps_missing(x, gain, bias, eps=1e-5):
    """eps is not used. A vector of equal features has variance 0, and 0 / 0 is nan."""
    return norm(root=lambda variance, eps: variance.sqrt())(x, gain, bias, eps)


@mistake
def eps_fixed(x, gain, bias, eps=1e-5):
    """The argument eps makes no difference: a fixed number stands in its place."""
    return norm(root=lambda variance, eps: (variance + 1e-5).sqrt())(x, gain, bias, eps)


@mistake.built
def eps_default_1e6():
    """Right where eps is given, and wrong where its default is used: the default is not 1e-6."""
    return norm(default=1e-6)


@mistake.built
def eps_default_1e8():
    """Right where eps is given, and wrong where its default is used: 1e-8 is another function's default."""
    return norm(default=1e-8)


@mistake.built
def eps_default_1e12():
    """Right where eps is given, and wrong where its default is used: 1e-12 is BERT's default."""
    return norm(default=1e-12)


@mistake
def eps_squared(x, gain, bias, eps=1e-5):
    """The square of eps is added to the variance; eps itself belongs there."""
    return norm(root=lambda variance, eps: (variance + eps**2).sqrt())(x, gain, bias, eps)


@mistake
def eps_as_bound(x, gain, bias, eps=1e-5):
    """eps is used as the least variance allowed. It is added, to every variance, small or large."""
    return norm(root=lambda variance, eps: variance.clamp(min=eps).sqrt())(x, gain, bias, eps)


@mistake
def deviation_bounded(x, gain, bias, eps=1e-5):
    """eps is used as the least standard deviation allowed. It is added, under the root, whatever the variance is."""
    return norm(root=lambda variance, eps: variance.sqrt().clamp(min=eps))(x, gain, bias, eps)


@mistake
def sum_of_squares(x, gain, bias, eps=1e-5):
    """The squares are summed up and not divided by d, so wide vectors come out smaller than narrow ones."""
    return norm(power=lambda x: (x - mean(x)).square().sum(-1, keepdim=True))(x, gain, bias, eps)


@mistake
def unit_length(x, gain, bias, eps=1e-5):
    """The centred vector is brought to length 1. What should be 1 is its variance; its length is then √d."""
    return norm(
        root=lambda variance, eps: variance.sqrt(), power=lambda x: (x - mean(x)).square().sum(-1, keepdim=True)
    )(x, gain, bias, eps)


@mistake
def mean_of_deviations(x, gain, bias, eps=1e-5):
    """The spread is the mean of absolute deviations. The variance is the mean of their squares."""
    return norm(root=lambda spread, eps: spread + eps, power=lambda x: (x - mean(x)).abs().mean(-1, keepdim=True))(
        x, gain, bias, eps
    )


@mistake
def unstable_variance(x, gain, bias, eps=1e-5):
    """The variance is computed as the mean of squares minus the square of the mean. For a large mean these are two
    huge numbers whose difference has lost its digits; the order of the two steps, centring and squaring, saves them."""
    return norm(power=lambda x: x.square().mean(-1, keepdim=True) - mean(x).square())(x, gain, bias, eps)


@mistake
def not_centred(x, gain, bias, eps=1e-5):
    """The mean is not taken off what is scaled: divided by the right root, the vector still has its old mean."""
    return norm(centre=lambda x: 0)(x, gain, bias, eps)


@mistake
def rms_norm(x, gain, bias, eps=1e-5):
    """No mean is taken off anywhere: this is RMSNorm, the mean of squares about zero. Layer norm takes it about the
    mean."""
    return norm(centre=lambda x: 0, power=lambda x: x.square().mean(-1, keepdim=True))(x, gain, bias, eps)


@mistake
def square_about_zero(x, gain, bias, eps=1e-5):
    """The vector is centred, but its squares are averaged before that, about zero instead of about the mean."""
    return norm(power=lambda x: x.square().mean(-1, keepdim=True))(x, gain, bias, eps)


@mistake
def not_scaled(x, gain, bias, eps=1e-5):
    """The mean is taken off, and that is all: the features keep their spread."""
    return norm(root=lambda variance, eps: 1.0)(x, gain, bias, eps)
