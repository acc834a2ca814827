"""Mistakes in `scaled_dot_product_attention`: what a mask does to the scores."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.scaled_dot_product.scaled_dot_product_attention_mistakes.parts import (
    attention_with,
    filled,
)

mistake = Mistakes()


MASKS = "scaled_dot_product: What an attention mask does"


def _causal(scores, mask=True):
    return scores.masked_fill(~(torch.ones(scores.shape[-2:], dtype=torch.bool).tril() & mask), -math.inf)


@mistake(look=MASKS)
def always_causal_without_mask(query, key, value, mask=None):
    """Without a mask, no query can attend to the keys after it. No causal mask is built in here: the caller passes one
    if it is needed."""
    return attention_with(softmax=lambda s: (s if s.isinf().any() else _causal(s)).softmax(-1))(query, key, value, mask)


@mistake(look=MASKS)
def always_causal(query, key, value, mask=None):
    """No query can attend to the keys after it, whatever the mask. No causal mask is built in here: the caller passes
    one if it is needed."""
    return attention_with(softmax=lambda s: _causal(s).softmax(-1))(query, key, value, mask)


@mistake(look=MASKS)
def zero_times_infinity(query, key, value, mask=None):
    """The mask is multiplied by infinity. Where the mask is 0, this gives 0 · ∞, which is `nan`. Which operation
    selects instead of multiplying?"""
    return attention_with(hide=lambda s, mask: s + (~mask) * -math.inf)(query, key, value, mask)


@mistake(look=MASKS)
def scores_times_infinity(query, key, value, mask=None):
    """Masked scores are multiplied by −∞. The sign of the result depends on the sign of the score; a masked score
    has to be −∞ itself."""
    return attention_with(hide=lambda s, mask: torch.where(mask, s, s * -math.inf))(query, key, value, mask)


@mistake(look=MASKS)
def filled_with_plus_infinity(query, key, value, mask=None):
    """Masked scores become +∞, and the softmax gives `nan`. Which score gets weight zero?"""
    return attention_with(hide=lambda s, mask: s.masked_fill(~mask, math.inf))(query, key, value, mask)


@mistake(look=MASKS)
def filled_with_one(query, key, value, mask=None):
    """Masked scores become 1. Which score gets a weight of zero beside any other?"""
    return attention_with(hide=lambda s, mask: s.masked_fill(~mask, 1.0))(query, key, value, mask)


@mistake(look=MASKS)
def filled_with_minus_ten_thousand(query, key, value, mask=None):
    """Masked scores become −10,000. Scores can be as low as that themselves; which score is below all others?"""
    return attention_with(hide=lambda s, mask: s.masked_fill(~mask, -1e4))(query, key, value, mask)


@mistake(look=MASKS)
def filled_with_minus_hundred(query, key, value, mask=None):
    """Masked scores become −100 or −1,000. Other scores can be lower than that; which score is below all others?"""
    return attention_with(hide=lambda s, mask: s.masked_fill(~mask, -100.0))(query, key, value, mask)


@mistake(look=MASKS)
def filled_with_the_smallest_positive(query, key, value, mask=None):
    """Masked scores become the smallest *positive* number of the dtype, which is nearly 0: `tiny` is not `min`. And the
    weight of a score near 0 is not small."""
    return attention_with(hide=lambda s, mask: s.masked_fill(~mask, 1e-3))(query, key, value, mask)


@mistake(look=MASKS)
def mask_in_the_indices(query, key, value, mask=None):
    """`scores[~mask] = …` needs a mask of exactly the shape of the scores, but this one may have fewer axes, or axes of
    length one."""
    return attention_with(hide=lambda s, mask: s.clone().index_put_((~mask,), torch.tensor(-math.inf, dtype=s.dtype)))(
        query, key, value, mask
    )


@mistake(look=MASKS)
def multiplied_by_a_large_number(query, key, value, mask=None):
    """The scores are multiplied by the mask and by a large negative number. A product changes the scores that are
    allowed; masking replaces those that are not."""
    return attention_with(hide=lambda s, mask: s * mask * -1e9)(query, key, value, mask)


@mistake(look=MASKS)
def allowed_filled_with_zero(query, key, value, mask=None):
    """The scores of the *allowed* keys become 0, and the masked ones are unchanged. True means *may attend*, and a
    score of 0 is not a small score."""
    return attention_with(hide=lambda s, mask: s.masked_fill(mask, 0.0))(query, key, value, mask)


@mistake(look=MASKS)
def mask_replaces_scores(query, key, value, mask=None):
    """The mask replaces the scores: all allowed keys get the same weight, whatever their scores."""
    return attention_with(hide=lambda s, mask: torch.zeros_like(s).masked_fill(~mask, -math.inf))(
        query, key, value, mask
    )


@mistake(look=MASKS)
def only_whole_mask_used(query, key, value, mask=None):
    """A mask has an effect only if it has as many axes as the scores. Masks broadcast: one with two axes applies to the
    whole batch."""
    return attention_with(hide=lambda s, mask: filled(s, mask) if mask.dim() == s.dim() else s)(query, key, value, mask)
