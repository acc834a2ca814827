"""Mistakes in `scaled_dot_product_attention`: those of the softmax and of the masked softmax inside it."""

from __future__ import annotations

import math

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.softmax import exercise as softmax_exercise
from course_lib.exercises.masking.masked_softmax import exercise as masked_softmax_exercise
from course_lib.exercises.scaled_dot_product.scaled_dot_product_attention_mistakes.parts import attention_with

mistake = Mistakes()


def _masked_by(masked):
    """Attention whose mask is applied by a masked softmax."""

    def attention(query, key, value, mask=None):
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        weights = scores.softmax(-1) if mask is None else masked(scores, mask)
        return weights @ value, weights

    return attention


# The learner's own softmax and masking are parts of attention.
mistake.contains(
    softmax_exercise,
    lambda wrong: attention_with(softmax=lambda scores: wrong(scores, -1)),
    called="softmax",
    without=("max_gives_a_pair",),
)


mistake.contains(
    masked_softmax_exercise,
    lambda wrong: _masked_by(wrong),
    called="masked softmax",
    # These end in errors of many causes; here they are explained as such.
    without=(
        "row_axis_dropped",
        "float32_comes_back",
        "largest_with_its_place",
        "allowed_scores_cut_out",
        "allowed_scores_indexed",
    ),
)
