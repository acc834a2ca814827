"""Mistakes in `online_softmax_step`: which maximum is taken, and where it is subtracted."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.online_softmax_step_mistakes.parts import grown, step_with

mistake = Mistakes()


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
    return step_with(larger=lambda maximum, scores: grown(maximum, scores).detach())(*args)


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
def nothing_subtracted_at_first(*args):
    """In the first block, the exponential is taken of the scores themselves. Their maximum has to be subtracted there
    too: the sums belong to the maximum that is returned with them, and large scores overflow."""
    return step_with(
        weights=lambda scores, new, old: (
            scores - torch.where(old.isinf(), torch.zeros_like(new), new)[..., None]
        ).exp()
    )(*args)


@mistake
def no_exponentials(*args):
    """The scores of the block are added up as they are, less the maximum. The exponential is missing."""
    return step_with(weights=lambda scores, new, old: scores - new[..., None])(*args)


@mistake
def softmax_of_the_block(*args):
    """The block has a softmax of its own, so its weights sum to one whatever the other blocks contain. Divide once,
    after the last block."""
    return step_with(weights=lambda scores, new, old: scores.softmax(-1))(*args)


def _neither_subtracted_nor_rescaled(**parts):
    return step_with(
        correction=lambda old, new, scores: torch.ones_like(old),
        weights=lambda scores, new, old: scores.exp(),
        **parts,
    )


@mistake
def no_maximum_at_all(maximum, total, output, scores, value):
    """The maximum plays no part: it is returned as it came, and the exponentials are those of the scores themselves.
    They overflow for large scores, and do not fit sums to which a maximum belongs."""
    return _neither_subtracted_nor_rescaled(finish=lambda new, total, output: (maximum.clone(), total, output))(
        maximum, total, output, scores, value
    )


@mistake
def maximum_without_effect(*args):
    """The right maximum is returned, but it has no effect on the sums: the exponentials are those of the scores
    themselves, and the old sums stay as they are. Total and output belong to the maximum that is returned with them."""
    return _neither_subtracted_nor_rescaled()(*args)


@mistake
def softmax_of_the_block_beside_unscaled_sums(*args):
    """The block has a softmax of its own, so its weights sum to one whatever the other blocks contain, and the old sums
    are never rescaled. All terms refer to one maximum; divide once, after the last block."""
    return step_with(
        correction=lambda old, new, scores: torch.ones_like(old), weights=lambda scores, new, old: scores.softmax(-1)
    )(*args)


@mistake
def softmax_of_the_block_in_the_output(*args):
    """The total is right, but the values of the block are weighted with a softmax of their own. The output is a sum
    with the same terms as the total; divide once, after the last block."""
    return step_with(average=lambda weights, value: weights / weights.sum(-1, keepdim=True) @ value)(*args)
