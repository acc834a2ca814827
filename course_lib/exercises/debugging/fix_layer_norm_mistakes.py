"""The mistakes in `fix_layer_norm`: the code as given, half repairs, and those of `layer_norm`."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.transformer.layer_norm import exercise as layer_norm
from course_lib.exercises.transformer.layer_norm_mistakes.parts import norm

mistake = Mistakes()


def _unbiased(x):
    return x.var(-1, keepdim=True)


def _biased_by(factor):
    """The unbiased variance times a number made from d, an attempt to make it the biased one."""
    return lambda x: x.var(-1, keepdim=True) * factor(x.shape[-1])


def _eps_outside(variance, eps):
    return variance.sqrt() + eps


@mistake
def as_given(x, gain, bias, eps=1e-5):
    """Two symptoms are left: the results are too small, most of all for narrow vectors (by the root of (d − 1)/d), and
    vectors whose features are nearly equal are enlarged far too much."""
    return norm(power=_unbiased, root=_eps_outside)(x, gain, bias, eps)


@mistake
def unbiased_left(x, gain, bias, eps=1e-5):
    """eps acts as it should. One symptom is left: the results are too small, by the root of (d − 1)/d, which is 0.71
    for two features and 0.999 for 512."""
    return norm(power=_unbiased)(x, gain, bias, eps)


@mistake
def eps_outside_left(x, gain, bias, eps=1e-5):
    """Ordinary vectors are right to four digits. One symptom is left: where the variance is as small as eps, the result
    is far too large."""
    return norm(root=_eps_outside)(x, gain, bias, eps)


@mistake
def corrected_twice(x, gain, bias, eps=1e-5):
    """The results are too large for narrow vectors now: the correction from d − 1 to d is made twice, or a factor that
    belongs to a variance is applied to a standard deviation."""
    return norm(power=lambda x: x.var(-1, keepdim=True, correction=0) * (x.shape[-1] - 1) / x.shape[-1])(
        x, gain, bias, eps
    )


@mistake
def corrected_the_other_way(x, gain, bias, eps=1e-5):
    """The results are even smaller than before for narrow vectors: the unbiased variance is multiplied by d/(d − 1),
    the inverse of what makes it the biased one."""
    return norm(power=_biased_by(lambda d: d / (d - 1)))(x, gain, bias, eps)


@mistake
def correction_of_two(x, gain, bias, eps=1e-5):
    """The results are even smaller than before: the sum of squares is divided by a number less than d − 1."""
    return norm(power=lambda x: (x - x.mean(-1, keepdim=True)).square().sum(-1, keepdim=True) / (x.shape[-1] - 1.5))(
        x, gain, bias, eps
    )


@mistake
def root_of_eps_outside(x, gain, bias, eps=1e-5):
    """The unit is right, but the place is not: the root of eps is added to the standard deviation. All results are a
    little too small, and those of nearly equal features most of all. The root of a sum is not the sum of the roots."""
    return norm(root=lambda variance, eps: variance.sqrt() + eps**0.5)(x, gain, bias, eps)


@mistake
def eps_inside_unbiased_deviation(x, gain, bias, eps=1e-5):
    """The root of eps is added to the standard deviation, which is still the unbiased one: results are too small, for
    narrow vectors and for nearly equal features."""
    return norm(power=_unbiased, root=lambda variance, eps: variance.sqrt() + eps**0.5)(x, gain, bias, eps)


@mistake
def eps_under_the_root_of_a_deviation(x, gain, bias, eps=1e-5):
    """The vectors are divided by the root of a standard deviation. eps belongs under the root together with the
    variance, and a standard deviation has a root already."""
    return norm(root=lambda variance, eps: (variance.sqrt() + eps).sqrt(), power=_unbiased)(x, gain, bias, eps)


@mistake
def root_before_eps(x, gain, bias, eps=1e-5):
    """The values are right, but where the features of a vector are all equal, the gradient is `nan`: a root is taken
    before eps is added, and the slope of the root at 0 is infinite."""
    return norm(root=lambda variance, eps: (variance.sqrt().square() + eps).sqrt())(x, gain, bias, eps)


@mistake
def eps_added_to_the_features(x, gain, bias, eps=1e-5):
    """eps is added to the features, where the mean removes it again: vectors whose features are all equal give `nan`,
    and nearly equal ones are enlarged as if eps were 0."""
    return norm(root=lambda variance, eps: variance.sqrt())(x + eps, gain, bias, eps)


mistake.contains(
    layer_norm,
    lambda wrong: wrong,
    called="layer norm",
    without=("unbiased_variance", "eps_outside_root", "unbiased_and_eps_outside"),
)
