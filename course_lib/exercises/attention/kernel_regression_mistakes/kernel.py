"""Mistakes in `kernel_regression`: the distance, the bandwidth, and the sign."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.kernel_regression_mistakes.parts import kernel, ratio

mistake = Mistakes()


@mistake
def two_forgotten(x_query, x_key, y_key, bandwidth):
    """The 2 in the exponent's divisor is missing, so the kernel is narrower than the bandwidth says."""
    return kernel(lambda d, b: -((d / b) ** 2))(x_query, x_key, y_key, bandwidth)


@mistake
def two_squared(x_query, x_key, y_key, bandwidth):
    """The 2 in the exponent's divisor is squared along with the bandwidth: only the bandwidth is."""
    return kernel(lambda d, b: -((d / (2 * b)) ** 2))(x_query, x_key, y_key, bandwidth)


@mistake
def two_multiplied(x_query, x_key, y_key, bandwidth):
    """The 2 is in the numerator instead of the denominator, because of the order of `/` and `*`. Brackets help."""
    return kernel(lambda d, b: -2 * (d / b) ** 2)(x_query, x_key, y_key, bandwidth)


@mistake
def divided_by_two_times_square(x_query, x_key, y_key, bandwidth):
    """Without brackets, `d**2 / 2 * bandwidth**2` divides by 2 and *multiplies* by the square. A larger bandwidth
    has to make the kernel wider."""
    return kernel(lambda d, b: -(d**2) / 2 * b**2)(x_query, x_key, y_key, bandwidth)


@mistake
def multiplied_by_bandwidth(x_query, x_key, y_key, bandwidth):
    """Distances are multiplied by the bandwidth. Measured in bandwidths, a distance gets *smaller* when the
    bandwidth grows."""
    return kernel(lambda d, b: -((d * b) ** 2))(x_query, x_key, y_key, bandwidth)


@mistake
def multiplied_by_plain_bandwidth(x_query, x_key, y_key, bandwidth):
    """The squared distance is multiplied by the bandwidth. A larger bandwidth has to make the kernel wider, not
    narrower."""
    return kernel(lambda d, b: -(d**2) * b)(x_query, x_key, y_key, bandwidth)


@mistake
def half_and_plain_bandwidth(x_query, x_key, y_key, bandwidth):
    """Half the squared distance is multiplied by the bandwidth. A larger bandwidth has to make the kernel wider, and
    it enters squared."""
    return kernel(lambda d, b: -(d**2) * b / 2)(x_query, x_key, y_key, bandwidth)


@mistake
def bandwidth_not_squared(x_query, x_key, y_key, bandwidth):
    """The bandwidth in the exponent is not squared. The squared distance is measured in squared bandwidths."""
    return kernel(lambda d, b: -(d**2) / (2 * b))(x_query, x_key, y_key, bandwidth)


@mistake
def two_forgotten_and_not_squared(x_query, x_key, y_key, bandwidth):
    """The squared distance is divided by the bandwidth alone. In the exponent's divisor the bandwidth is squared,
    and there is a 2."""
    return kernel(lambda d, b: -(d**2) / b)(x_query, x_key, y_key, bandwidth)


@mistake
def half_bandwidth_outside(x_query, x_key, y_key, bandwidth):
    """The squared distance is divided by the bandwidth and halved, but the bandwidth has to be squared too. Is a root
    or a square in the wrong place?"""
    return kernel(lambda d, b: -(d**2) / (2 * b) ** 0.5)(x_query, x_key, y_key, bandwidth)


@mistake
def bandwidth_ignored(x_query, x_key, y_key, bandwidth):
    """The estimates do not depend on the bandwidth."""
    return kernel(lambda d, b: -(d**2) / 2)(x_query, x_key, y_key, bandwidth)


@mistake
def bandwidth_and_two_ignored(x_query, x_key, y_key, bandwidth):
    """The estimates do not depend on the bandwidth: the score is the squared distance alone."""
    return kernel(lambda d, b: -(d**2))(x_query, x_key, y_key, bandwidth)


@mistake
def not_squared(x_query, x_key, y_key, bandwidth):
    """The distance enters as it is, not squared: a kernel with a spike at the key instead of a Gaussian."""
    return kernel(lambda d, b: -d.abs() / b)(x_query, x_key, y_key, bandwidth)


@mistake
def not_squared_over_two_bandwidths(x_query, x_key, y_key, bandwidth):
    """Neither the distance nor the bandwidth is squared: a kernel with a spike at the key instead of a Gaussian."""
    return kernel(lambda d, b: -d.abs() / (2 * b))(x_query, x_key, y_key, bandwidth)


@mistake
def not_squared_over_two(x_query, x_key, y_key, bandwidth):
    """The distance enters as it is, not squared; the divisor is right."""
    return kernel(lambda d, b: -d.abs() / (2 * b**2))(x_query, x_key, y_key, bandwidth)


@mistake
def signed_distance(x_query, x_key, y_key, bandwidth):
    """The difference enters with its sign, neither squared nor absolute. A key on one side of the query then seems
    nearer the further away it is."""
    return kernel(lambda d, b: -d / (2 * b**2))(x_query, x_key, y_key, bandwidth)


@mistake
def minus_forgotten(x_query, x_key, y_key, bandwidth):
    """Far keys count most. The minus in the exponent is missing; and in Python `-d**2` and `(-d)**2` are not the
    same."""
    return kernel(lambda d, b: d**2 / (2 * b**2))(x_query, x_key, y_key, bandwidth)


@mistake
def minus_forgotten_unstable(x_query, x_key, y_key, bandwidth):
    """Far keys count most, and soon their kernels overflow: the minus in the exponent is missing."""
    return kernel(lambda d, b: d**2 / (2 * b**2), ratio)(x_query, x_key, y_key, bandwidth)
