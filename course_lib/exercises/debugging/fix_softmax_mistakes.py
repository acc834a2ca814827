"""The mistakes in `fix_softmax`: repairs of what was right."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.softmax import exercise as softmax

mistake = Mistakes()


def _powers(scores, dim):
    return (scores - scores.amax(dim, keepdim=True)).exp()


@mistake
def maximum_removed(scores, dim=-1):
    """Small scores give the right weights, but large ones now overflow to inf, and very negative ones give 0 divided by
    0. What protected the exponentials is gone; it cancels in the fraction, so it did no harm."""
    powers = scores.exp()
    return powers / powers.sum(dim, keepdim=True)


@mistake
def maximum_of_all_scores(scores, dim=-1):
    """The largest score of the whole tensor is subtracted. In a row far below it, all exponentials are 0, and the
    weights are nan. Each row along `dim` needs a number of its own."""
    powers = (scores - scores.max()).exp()
    return powers / powers.sum(dim, keepdim=True)


@mistake
def small_number_added(scores, dim=-1):
    """A small number such as 1e-8 is added to the sum, which is at least 1 already. The weights no longer sum to one,
    which float64 shows and float32 hides."""
    powers = _powers(scores, dim)
    return powers / (powers.sum(dim, keepdim=True) + 1e-8)


@mistake
def computed_in_float32(scores, dim=-1):
    """The weights are right in float32, but float64 scores lose half of their digits: somewhere inside, they become
    float32."""
    powers = _powers(scores.float(), dim)
    return (powers / powers.sum(dim, keepdim=True)).to(scores.dtype)


@mistake
def scores_detached(scores, dim=-1):
    """The weights are right, but no gradient reaches the scores: now they are detached as a whole. Detaching a number
    that cancels loses nothing; detaching the scores loses everything."""
    powers = _powers(scores.detach(), dim)
    return powers / powers.sum(dim, keepdim=True)


@mistake
def powers_detached(scores, dim=-1):
    """The weights are right, but the numerator is detached, so the gradient comes from the sum alone. Both parts of the
    fraction depend on the scores."""
    powers = _powers(scores, dim)
    return powers.detach() / powers.sum(dim, keepdim=True)


@mistake
def maximum_with_a_gradient_over_a_detached_sum(scores, dim=-1):
    """The weights are right, but the gradient is not: the sum is cut off from the graph, and the maximum in the
    numerator is not. Every part of the fraction that does not cancel needs its gradient."""
    powers = _powers(scores, dim)
    return powers / powers.sum(dim, keepdim=True).detach()


@mistake
def gradient_of_the_maximum_added(scores, dim=-1):
    """The weights are right, but the gradient is not: it contains the derivative of the maximum in one part of the
    fraction and not in the other. The subtracted number cancels only if both parts treat it alike."""
    largest = scores.amax(dim, keepdim=True)
    return (scores - largest).exp() / (scores - largest.detach()).exp().sum(dim, keepdim=True)


# Whatever else is wrong in a solution to that exercise may be wrong here too.
mistake.contains(
    softmax,
    lambda wrong: wrong,
    called="softmax",
    without=("unstable", "largest_of_all", "small_number_in_a_safe_sum", "float32_inside"),
)
