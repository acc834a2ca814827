"""The mistakes in `online_softmax_step`."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes

mistake = Mistakes()


def _grown(maximum, scores):
    return torch.maximum(maximum, scores.amax(-1))


def _factor(maximum, larger, scores):
    return (maximum - larger).exp()


def _weights(scores, larger, maximum):
    return (scores - larger[..., None]).exp()


def _same(old, *others):
    return old


def step_with(
    *,
    larger=_grown,
    correction=_factor,
    weights=_weights,
    rescaled_total=lambda total, factor: total * factor,
    rescaled_output=lambda output, factor: output * factor[..., None],
    block_total=lambda weights: weights.sum(-1),
    average=torch.matmul,
    finish=lambda maximum, total, output: (maximum, total, output),
):
    """The step with parts replaced; unchanged, it is right."""

    def step(maximum, total, output, scores, value):
        new_maximum = larger(maximum, scores)
        factor = correction(maximum, new_maximum, scores)
        shares = weights(scores, new_maximum, maximum)
        total = rescaled_total(total, factor) + block_total(shares)
        output = rescaled_output(output, factor) + average(shares, value)
        return finish(new_maximum, total, output)

    return step


# Rescaling.
@mistake
def nothing_rescaled(*args):
    """When the maximum grows, the old total and the old output keep their size, although their terms were computed with
    the old maximum. Both need the same factor."""
    return step_with(rescaled_total=_same, rescaled_output=_same)(*args)


@mistake
def output_not_rescaled(*args):
    """The total is rescaled when the maximum grows, but the output so far is not. Both are sums of exponentials with
    the old maximum in them."""
    return step_with(rescaled_output=_same)(*args)


@mistake
def total_not_rescaled(*args):
    """The output is rescaled when the maximum grows, but the total so far is not. Both are sums of exponentials with
    the old maximum in them."""
    return step_with(rescaled_total=_same)(*args)


@mistake
def factor_turned_round(*args):
    """The factor of the old sums is the wrong way round: it is above 1 where the maximum has grown. A larger maximum
    makes every term smaller."""
    return step_with(correction=lambda old, new, scores: (new - old).exp())(*args)


@mistake
def factor_without_exponential(*args):
    """The old sums are multiplied by a difference of the maxima. It belongs in an exponent, because the maximum is
    subtracted in one."""
    return step_with(correction=lambda old, new, scores: old - new)(*args)


@mistake
def factor_is_a_ratio(*args):
    """The old sums are multiplied by the ratio of the two maxima. The maximum is subtracted inside an exponential, so
    what matters is the difference of the maxima."""
    return step_with(correction=lambda old, new, scores: old / new)(*args)


@mistake
def everything_rescaled(*args):
    """The block's own terms are rescaled together with the old ones. They are computed with the new maximum already."""
    return step_with(weights=lambda scores, new, old: (scores + old[..., None] - 2 * new[..., None]).exp())(*args)


@mistake
def rescaled_by_the_block(*args):
    """The factor compares the old maximum with the largest score of the *block*. Where the maximum does not grow, the
    old sums must not change."""
    return step_with(correction=lambda old, new, scores: (old - scores.amax(-1)).exp())(*args)


@mistake
def old_sums_dropped(*args):
    """Only the keys of the block are left in total and output. The old sums have to be added to those of the block."""
    return step_with(
        rescaled_total=lambda total, factor: torch.zeros_like(total),
        rescaled_output=lambda output, factor: torch.zeros_like(output),
    )(*args)


# The maximum.
@mistake
def maximum_of_the_block_only(*args):
    """The new maximum is the largest score of the block alone. A key of an earlier block may have a larger one."""
    return step_with(larger=lambda maximum, scores: scores.amax(-1))(*args)


@mistake
def maximum_returned_unchanged(maximum, total, output, scores, value):
    """Total and output are right, but the old maximum is returned. The next block would be computed with a maximum that
    does not belong to these sums."""
    return step_with(finish=lambda new, total, output: (maximum.clone(), total, output))(
        maximum, total, output, scores, value
    )


@mistake
def block_maximum_returned(maximum, total, output, scores, value):
    """Total and output are right, but the largest score of the block is returned as the maximum, even where an earlier
    key has a larger score."""
    return step_with(finish=lambda new, total, output: (scores.amax(-1), total, output))(
        maximum, total, output, scores, value
    )


@mistake
def one_maximum_for_all(*args):
    """All queries share one maximum. Each query has its own: it is the maximum over the keys, the last axis of the
    scores."""
    return step_with(larger=lambda maximum, scores: torch.maximum(maximum, scores.max()))(*args)


@mistake
def smallest_score(*args):
    """The smallest score of the block is taken instead of the largest, so exponentials may overflow."""
    return step_with(larger=lambda maximum, scores: torch.maximum(maximum, scores.amin(-1)))(*args)


@mistake
def maximum_detached(*args):
    """The values are right, but the maximum is detached, so its gradient is missing. In an ordinary softmax it cancels;
    here total and maximum are results of their own."""
    return step_with(larger=lambda maximum, scores: _grown(maximum, scores).detach())(*args)


# The exponentials.
@mistake
def old_maximum_subtracted(*args):
    """The old maximum is subtracted from the new scores. Before the first block it is −∞, and later the block may
    contain larger scores: both overflow."""
    return step_with(weights=lambda scores, new, old: (scores - old[..., None]).exp())(*args)


@mistake
def block_maximum_subtracted(*args):
    """The largest score of the block is subtracted from the scores, even where the maximum of all keys is larger. Old
    and new terms have to refer to the same maximum."""
    return step_with(weights=lambda scores, new, old: (scores - scores.amax(-1, keepdim=True)).exp())(*args)


@mistake
def nothing_subtracted(*args):
    """The exponential is taken of the scores themselves, without the maximum. That overflows for large scores, and it
    does not fit the old sums."""
    return step_with(weights=lambda scores, new, old: scores.exp())(*args)


@mistake
def no_exponentials(*args):
    """The scores of the block are added up as they are, less the maximum. The exponential is missing."""
    return step_with(weights=lambda scores, new, old: scores - new[..., None])(*args)


@mistake
def softmax_of_the_block(*args):
    """The block has a softmax of its own, so its weights sum to one whatever the other blocks contain. Divide once,
    after the last block."""
    return step_with(weights=lambda scores, new, old: scores.softmax(-1))(*args)


# Total and output.
@mistake
def output_normalised(*args):
    """The output is divided by the total. The next block needs the sum itself; the division comes after the last
    block."""
    return step_with(finish=lambda maximum, total, output: (maximum, total, output / total[..., None]))(*args)


@mistake
def state_taken_as_normalised(maximum, total, output, scores, value):
    """The output is multiplied by the old total and divided by the new one, as if it were an average. Here it is a sum:
    the division comes after the last block."""
    new, grown, added = step_with()(maximum, total, output * total[..., None], scores, value)
    return new, grown, added / grown[..., None]


@mistake
def total_of_the_values(*args):
    """The total is the sum over the queries. For each query it is the sum over the keys, the last axis of the
    scores."""
    return step_with(block_total=lambda weights: weights.sum(-2))(*args)


@mistake
def one_total_for_all(*args):
    """The exponentials of all queries are added up. Each query has a total of its own."""
    return step_with(block_total=lambda weights: weights.sum())(*args)


@mistake
def mean_for_total(*args):
    """The exponentials of the block are averaged. The total is their sum, so that a longer block counts for more."""
    return step_with(block_total=lambda weights: weights.mean(-1))(*args)


@mistake
def keys_counted(*args):
    """The total counts the keys of the block. It should be the sum of their exponentials."""
    return step_with(block_total=lambda weights: torch.full_like(weights[..., 0], weights.shape[-1]))(*args)


@mistake
def values_summed(*args):
    """The values of the block are added up with equal weights. Each value is multiplied by the exponential of its
    score."""
    return step_with(average=lambda weights, value: torch.ones_like(weights) @ value)(*args)


@mistake
def factor_along_the_values(*args):
    """The factor, one number per query, lines up with the last axis of the output, the features. It needs another axis
    at the end."""
    return step_with(rescaled_output=lambda output, factor: output * factor)(*args)


@mistake
def maximum_along_the_keys(*args):
    """The maximum, one number per query, lines up with the last axis of the scores, the keys. It needs another axis at
    the end."""
    return step_with(weights=lambda scores, new, old: (scores - new).exp())(*args)


@mistake
def state_changed_in_place(maximum, total, output, scores, value):
    """The results are right, but the old total and output are changed in place. They are arguments, and belong to the
    caller."""
    larger = _grown(maximum, scores)
    factor = (maximum - larger).exp()
    weights = _weights(scores, larger, maximum)
    total *= factor
    total += weights.sum(-1)
    output *= factor[..., None]
    output += weights @ value
    return larger, total, output


# What is returned, and how exact it is.
@mistake
def axis_left_over(*args):
    """Maximum and total are returned with a last axis of length one. They have the shape `(..., L_q)`."""
    return step_with(finish=lambda maximum, total, output: (maximum[..., None], total[..., None], output))(*args)


@mistake
def output_first(*args):
    """The results are in the wrong order. The contract asks for `(maximum, total, output)`."""
    return step_with(finish=lambda maximum, total, output: (output, maximum, total))(*args)


@mistake
def total_first(*args):
    """Maximum and total are exchanged. The contract asks for `(maximum, total, output)`."""
    return step_with(finish=lambda maximum, total, output: (total, maximum, output))(*args)


@mistake
def only_the_output(*args):
    """Only the output is returned. The next block also needs the maximum and the total."""
    return step_with(finish=lambda maximum, total, output: output)(*args)


@mistake
def logarithm_of_the_total(*args):
    """The logarithm of the total is returned. That is a useful number, but the contract asks for the sum itself."""
    return step_with(finish=lambda maximum, total, output: (maximum, total.log(), output))(*args)


@mistake
def small_number_added(*args):
    """A small number is added to the total. It is not needed, because the total is never below 1, and it changes the
    result."""
    return step_with(finish=lambda maximum, total, output: (maximum, total + 1e-6, output))(*args)


@mistake
def float32_inside(*args):
    """Somewhere inside, the numbers become float32, and float64 input loses half of its digits."""
    return tuple(x.to(args[0].dtype) for x in step_with()(*(arg.float() for arg in args)))


@mistake
def large_finite_start(maximum, total, output, scores, value):
    """A maximum of −∞ is replaced by −100. Scores may be lower than that, and then their exponentials vanish."""
    return step_with()(maximum.clamp(min=-100.0), total, output, scores, value)


@mistake
def infinity_minus_infinity(*args):
    """Before the first block, −∞ is subtracted from −∞ somewhere, which gives `nan`. Subtract the new maximum, which is
    finite, from the old one."""
    return step_with(correction=lambda old, new, scores: (old - new + (old - old)).exp())(*args)


@mistake
def base_two(*args):
    """The exponentials have base 2. The softmax has base e."""
    return step_with(
        correction=lambda old, new, scores: torch.exp2(old - new),
        weights=lambda scores, new, old: torch.exp2(scores - new[..., None]),
    )(*args)


@mistake
def zero_for_the_first_maximum(maximum, total, output, scores, value):
    """The maximum is never below 0, as if the first block came after a key with score 0. If all scores are far below,
    their exponentials vanish."""
    return step_with(larger=lambda maximum, scores: torch.maximum(maximum.clamp(min=0.0), scores.amax(-1)))(
        maximum, total, output, scores, value
    )


@mistake
def scores_scaled_again(maximum, total, output, scores, value):
    """The scores are divided by a root. They arrive as the softmax needs them; any scaling has been done before."""
    return step_with()(maximum, total, output, scores / math.sqrt(value.shape[-1]), value)
