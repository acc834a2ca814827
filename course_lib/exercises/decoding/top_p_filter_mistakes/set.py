"""Mistakes in `top_p_filter`: which tokens belong to the set."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.decoding.top_p_filter_mistakes.parts import filter_with

mistake = Mistakes()


def _by_token(keep):
    """A filter that looks at each probability alone."""
    return lambda logits, p: logits.masked_fill(~keep(logits.softmax(-1), p), -math.inf)


@mistake
def crossing_token_dropped(logits, p):
    """The token that reaches `p` is not in the set, so the probability of the set is below `p`, and the set may be
    empty. Look at the sum *before* a token."""
    return filter_with(keep=lambda sums, probs, p: sums <= p, at_least_one=False)(logits, p)


@mistake
def crossing_token_dropped_but_one_kept(logits, p):
    """The token that reaches `p` is not in the set, so the probability of the set is below `p`. Look at the sum
    *before* a token."""
    return filter_with(keep=lambda sums, probs, p: sums <= p)(logits, p)


@mistake
def one_token_too_many(logits, p):
    """The set has one token more than it needs: it has already reached `p` without it."""
    return filter_with(restore=lambda keep, order: (keep | keep.roll(1))[order.argsort()])(logits, p)


@mistake
def order_not_restored(logits, p):
    """The result for rank 0, 1, 2, … is used for token 0, 1, 2, …. The sort also returns which token has which rank:
    use it to restore the order of the vocabulary."""
    return filter_with(restore=lambda keep, order: keep)(logits, p)


@mistake
def restored_with_the_wrong_order(logits, p):
    """The result is sorted once more by the same indices, which does not undo the sort. Undoing it needs the inverse:
    where does rank r belong?"""
    return filter_with(restore=lambda keep, order: keep[order])(logits, p)


@mistake
def sorted_logits_returned(logits, p):
    """The right logits are kept, but they are returned sorted. Token v has to stay at place v."""
    return filter_with(restore=lambda keep, order: keep, of=lambda logits: logits.sort(descending=True).values)(
        logits, p
    )


@mistake
def probable_on_their_own(logits, p):
    """A token is kept where its own probability reaches `p`. The sum over a set has to reach it."""
    return _by_token(lambda probs, p: probs >= p)(logits, p)


@mistake
def more_probable_than_the_rest_of_p(logits, p):
    """A token is kept where its own probability is above 1 − p. The sum over a set counts."""
    return _by_token(lambda probs, p: probs > 1 - p)(logits, p)


@mistake
def share_of_the_best(logits, p):
    """Tokens are compared with `p` times the best probability. That is another filter (min-p); here a sum has to
    reach `p`."""
    return _by_token(lambda probs, p: probs >= p * probs.max())(logits, p)


@mistake
def share_of_the_vocabulary(logits, p):
    """A share `p` of the vocabulary is kept, whatever the probabilities. The number of tokens should depend on them."""
    return filter_with(keep=lambda sums, probs, p: torch.arange(len(sums)) < p * len(sums))(logits, p)


@mistake
def least_probable_kept(logits, p):
    """The set is filled starting with the least probable token. Which end does the sort begin with?"""
    return filter_with(descending=False)(logits, p)


@mistake
def not_sorted(logits, p):
    """The sum runs in the order of the vocabulary. It has to start with the most probable token."""
    return logits.masked_fill(~((probs := logits.softmax(-1)).cumsum(-1) - probs < p), -math.inf)


@mistake
def logits_summed(logits, p):
    """The running sum is over logits. Probabilities should add up to `p`: a softmax is missing."""
    return filter_with(probs=lambda logits: logits)(logits, p)


@mistake
def logarithms_summed(logits, p):
    """Nothing is filtered. Is the running sum over log-probabilities? They are negative and never reach `p`."""
    return filter_with(probs=lambda logits: logits.log_softmax(-1))(logits, p)
