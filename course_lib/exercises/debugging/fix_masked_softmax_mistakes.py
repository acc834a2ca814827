"""The mistakes in `fix_masked_softmax`: the code as given, half repairs, and those of `masked_softmax`."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.masking.masked_softmax import exercise as masked_softmax
from course_lib.exercises.masking.masked_softmax_mistakes.parts import as_it_is, fill, zeroed

mistake = Mistakes()


def _filling_in_place(number=-math.inf, then=as_it_is):
    """A fill that changes the caller's scores."""
    return lambda scores, mask: then(scores.masked_fill_(~mask, number).softmax(-1), mask)


def _times_mask(number):
    """A number that is filled in, and weights that are multiplied by the mask."""
    return fill(number, lambda weights, mask: weights * mask)


@mistake
def as_given(scores, mask):
    """Three symptoms are left: an error in float16, equal weights in a fully masked row, and scores of the caller that
    are different after the call."""
    return _filling_in_place(-1e9)(scores, mask)


@mistake
def number_left(scores, mask):
    """The caller's scores stay as they are now. Two symptoms are left: an error in float16, whose largest number is
    65504, and equal weights in a fully masked row. Both have the same cause."""
    return fill(-1e9)(scores, mask)


@mistake(look="mask_bugs: Masking in place changes the caller's scores")
def scores_changed_left(scores, mask):
    """The weights are right in all dtypes and rows. One symptom is left: after the call, the caller's scores are not
    what they were."""
    return _filling_in_place(then=zeroed)(scores, mask)


@mistake
def number_left_for_float16(scores, mask):
    """The caller's scores stay as they are, and fully masked rows are zero. An error in float16 is left, whose largest
    number is 65504."""
    return fill(-1e9, zeroed)(scores, mask)


@mistake
def float16_and_scores_changed_left(scores, mask):
    """Fully masked rows are zero now. Two symptoms are left: an error in float16, and scores of the caller that are
    different after the call."""
    return _filling_in_place(-1e9, zeroed)(scores, mask)


@mistake
def empty_rows_nan_and_scores_changed(scores, mask):
    """It runs in all dtypes now, but a fully masked row is `nan`, and the caller's scores are different after the
    call."""
    return _filling_in_place()(scores, mask)


@mistake
def lowest_half_in_place(scores, mask):
    """It runs in all dtypes now. What is left: a fully masked row has equal weights, because all its scores are equally
    low, and the caller's scores are different after the call."""
    return _filling_in_place(-65504.0)(scores, mask)


@mistake
def lowest_half_for_all(scores, mask):
    """It runs in all dtypes, and the caller's scores stay as they are. A fully masked row still has equal weights,
    because all its scores are equally low."""
    return fill(-65504.0)(scores, mask)


@mistake
def low_number_for_float16(scores, mask):
    """Ordinary scores get the right weights in all dtypes. One symptom is left: where allowed scores in float16 are as
    low as the number filled in, masked keys take weight from them, and the row no longer sums to 1."""
    return _times_mask(-1e4 if scores.dtype == torch.float16 else -1e9)(scores, mask)


@mistake
def low_number_for_all(scores, mask):
    """Ordinary scores get the right weights in all dtypes. One symptom is left: where the allowed scores are as low as
    the number filled in, masked keys take weight from them, and the row no longer sums to 1."""
    return _times_mask(-6e4)(scores, mask)


@mistake
def ten_thousand_in_place(scores, mask):
    """It runs in all dtypes. What is left: equal weights in a fully masked row, masked keys that get a weight where
    allowed scores are as low as the number filled in, and scores of the caller that are different after the call."""
    return _filling_in_place(-1e4)(scores, mask)


def _lowest_added(then):
    """The lowest number of the dtype is added where the mask is False."""

    def solution(scores, mask):
        hidden = torch.zeros_like(scores).masked_fill(~mask, torch.finfo(scores.dtype).min)
        return then((scores + hidden).softmax(-1), mask)

    return solution


@mistake
def lowest_added_then_zeroed(scores, mask):
    """Ordinary scores get the right weights in all dtypes. What is left shows in float16: a masked score still has an
    influence, because the low number is added to it. A very large one stays above the allowed scores, and if all scores
    of a row are masked and negative, the sums are below the lowest number of the dtype and the row becomes `nan`."""
    return _lowest_added(lambda weights, mask: weights * mask)(scores, mask)


@mistake
def lowest_added(scores, mask):
    """It runs in all dtypes. Two symptoms are left: a fully masked row gets weights or becomes `nan`, and a masked
    score still has an influence, because the low number is added to it: in float16, a very large one stays above the
    allowed scores."""
    return _lowest_added(as_it_is)(scores, mask)


# Whatever is wrong in a masked softmax may be wrong in a repaired one; these are the same mistakes as some above.
mistake.contains(
    masked_softmax,
    lambda wrong: wrong,
    called="masked softmax",
    without=(
        "minus_a_billion",
        "minus_a_billion_then_zeroed",
        "scores_overwritten",
        "scores_overwritten_nan",
        "scores_overwritten_with_minus_a_billion",
    ),
)
