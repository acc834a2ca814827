"""Mistakes in `masked_softmax`: dtypes, what is returned, and what is changed."""

from __future__ import annotations

import math
import operator

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.masking.masked_softmax import masked_softmax
from course_lib.exercises.masking.masked_softmax_mistakes.parts import add, as_it_is, divided, fill, repaired, zeroed

mistake = Mistakes()


EMPTY = "masking: Rows without a key"
BEFORE = "masking: A mask acts before the softmax"
EXP = "attention: The softmax turns scores into weights"
FILL = "masks_in_half_precision: Which number to fill in"


@mistake(look=FILL)
def infinity_times_zero(scores, mask):
    """The mask is multiplied with −∞, and 0 · ∞ is `nan`: every allowed score becomes `nan`. Select by a condition
    instead of multiplying."""
    return add(lambda scores, mask: ~mask * -math.inf)(scores, mask)


@mistake(look=FILL)
def bias_in_float32(scores, mask):
    """The values are right, but the numbers that are added to the scores are float32, so half-precision scores give a
    float32 result. Fully masked rows have a `nan` in the gradient, too."""
    return add(lambda scores, mask: torch.zeros(mask.shape).masked_fill(~mask, -math.inf), repaired)(scores, mask)


@mistake(look=EMPTY)
def bias_in_float32_nan(scores, mask):
    """Fully masked rows are `nan`, and half-precision scores give a float32 result: the numbers that are added to them
    have a dtype of their own."""
    return add(lambda scores, mask: torch.zeros(mask.shape).masked_fill(~mask, -math.inf))(scores, mask)


@mistake(look=FILL)
def billion_subtracted_in_float32(scores, mask):
    """A large number is *subtracted* from masked scores, as float32. So half-precision scores give a float32 result,
    and a fully masked row is a softmax of its scores after coarse rounding."""
    return add(lambda scores, mask: (1.0 - mask.float()) * -1e9)(scores, mask)


@mistake
def half_precision_lost(scores, mask):
    """The values are right, but half-precision scores give a float32 result: they are converted to float32, or combined
    with a float32 tensor made from the mask. The dtype of the scores should be kept."""
    return add(lambda scores, mask: (1.0 - mask.float()) * -1e9, zeroed)(scores, mask)


@mistake(look=FILL)
def billion_subtracted(scores, mask):
    """A large number is *subtracted* from masked scores. A fully masked row is still a softmax: of its scores after
    coarse rounding, or of −∞ where the number does not fit the dtype."""
    return add(lambda scores, mask: (1.0 - mask.to(scores.dtype)) * -1e9)(scores, mask)


@mistake(look=FILL)
def ten_thousand_subtracted(scores, mask):
    """10000 is subtracted from masked scores. Against scores of that size it is not enough, and in a fully masked row
    it is subtracted from all alike."""
    return add(lambda scores, mask: (1.0 - mask.to(scores.dtype)) * -1e4)(scores, mask)


@mistake(look=FILL)
def ten_thousand_subtracted_zeroed(scores, mask):
    """10000 is subtracted from masked scores. Against scores of that size it is not enough: masked keys keep a
    weight."""
    return add(lambda scores, mask: (1.0 - mask.to(scores.dtype)) * -1e4, zeroed)(scores, mask)


@mistake
def float32_comes_back(scores, mask):
    """The values are right, but the dtype is not: the scores are converted to float32, and the weights stay float32."""
    return masked_softmax(scores.float(), mask)


@mistake
def float32_inside(scores, mask):
    """Right to the accuracy of float32 only: float64 scores go through float32 on the way."""
    return masked_softmax(scores.float(), mask).to(scores.dtype)


@mistake
def scores_returned(scores, mask):
    """The masked scores are returned, with −∞ in them. The weights are the softmax of these scores."""
    return scores.masked_fill(~mask, -math.inf)


@mistake
def logarithm_returned(scores, mask):
    """The logarithms of the weights are returned: use `softmax`, not `log_softmax`."""
    return scores.masked_fill(~mask, -math.inf).log_softmax(-1)


@mistake(look=EXP)
def sigmoid(scores, mask):
    """Every weight depends only on its own score, and rows do not sum to one: this is a sigmoid, not a softmax."""
    return scores.sigmoid() * mask


@mistake
def scaled_again(scores, mask):
    """The scores are divided by the root of the number of keys. They are scaled already, and by another number."""
    return masked_softmax(scores / math.sqrt(scores.shape[-1]), mask)


@mistake(look=FILL)
def one_minus_a_bool(scores, mask):
    """`1 - mask` is not defined for a bool tensor. Its negation has its own operator. You could also convert the mask
    to numbers first; but then, what would you add?"""
    return add(lambda scores, mask: (1 - mask) * -1e9)(scores, mask)


@mistake
def minus_a_bool(scores, mask):
    """`-mask` is not defined for a bool tensor. The negation of a bool has its own operator."""
    return fill(hide=operator.neg)(scores, mask)


@mistake(look=EXP)
def largest_with_its_place(scores, mask):
    """`max` along an axis returns two things, the largest values and their indices; a subtraction needs only the
    values."""
    return divided(lambda scores, mask: (scores - scores.max(-1, keepdim=True)).exp())(scores, mask)


@mistake
def numpy(scores, mask):
    """NumPy has neither gradients nor bfloat16. Use tensors instead of arrays here."""
    return torch.from_numpy(scores.numpy() * 1.0).masked_fill(~mask, -math.inf).softmax(-1).nan_to_num(0.0)


@mistake
def allowed_scores_cut_out(scores, mask):
    """Indexing with a mask gives a list of the allowed scores, without rows, so one softmax runs over all of them. Keep
    the shape of the scores."""
    return scores[mask.expand_as(scores)].softmax(-1)


@mistake
def allowed_scores_indexed(scores, mask):
    """`scores[mask]` gives a list of the allowed scores, without rows, and needs a mask of exactly the shape of the
    scores. Keep the shape; which operation fills where a condition holds?"""
    return scores[mask].softmax(-1)


def _indexed(copy, then=as_it_is, number=-math.inf):
    def masked_softmax(scores, mask):
        scores = scores.clone() if copy else scores
        scores[~mask] = number
        return then(scores.softmax(-1), mask)

    return masked_softmax


def _filled_in_place(number=-math.inf, then=as_it_is):
    return lambda scores, mask: then(scores.masked_fill_(~mask, number).softmax(-1), mask)


@mistake
def indexing(scores, mask):
    """`scores[~mask] = …` needs a mask of exactly the shape of the scores, and this one broadcasts. Fully masked rows
    are a second problem."""
    return _indexed(copy=True)(scores, mask)


@mistake
def indexing_repaired(scores, mask):
    """`scores[~mask] = …` needs a mask of exactly the shape of the scores. A mask may have fewer axes, or axes of
    length one."""
    return _indexed(copy=True, then=repaired)(scores, mask)


@mistake
def indexing_in_place(scores, mask):
    """`scores[~mask] = …` changes the caller's scores, and it needs a mask of exactly their shape, while this one may
    broadcast. Fully masked rows are a third problem."""
    return _indexed(copy=False)(scores, mask)


@mistake
def indexing_in_place_repaired(scores, mask):
    """`scores[~mask] = …` changes the caller's scores, and it needs a mask of exactly their shape, while this one may
    broadcast."""
    return _indexed(copy=False, then=repaired)(scores, mask)


@mistake
def scores_overwritten(scores, mask):
    """The weights are right, but the scores, which belong to the caller, are changed in place: methods whose name ends
    in `_` do that."""
    return _filled_in_place(then=zeroed)(scores, mask)


@mistake
def scores_overwritten_nan(scores, mask):
    """The scores, which belong to the caller, are changed in place: methods whose name ends in `_` do that. Besides,
    fully masked rows are `nan`."""
    return _filled_in_place()(scores, mask)


@mistake(look=FILL)
def scores_overwritten_with_minus_a_billion(scores, mask):
    """A large negative number is filled in, and in place, although the scores belong to the caller. The number has two
    effects: float16 cannot represent it, and in other dtypes a fully masked row becomes uniform."""
    return _filled_in_place(-1e9)(scores, mask)


@mistake(look=BEFORE)
def minus_infinity_after_softmax(scores, mask):
    """−∞ is filled into the finished weights. It belongs in the scores, before the softmax, which turns it into
    zero."""
    return scores.softmax(-1).masked_fill(~mask, -math.inf)
