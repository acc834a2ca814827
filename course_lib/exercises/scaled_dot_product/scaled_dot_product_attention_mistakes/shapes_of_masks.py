"""Mistakes in `scaled_dot_product_attention`: masks that are given another shape or meaning."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.scaled_dot_product.scaled_dot_product_attention_mistakes.parts import (
    attention_with,
    filled,
)

mistake = Mistakes()


MASKS = "scaled_dot_product: What an attention mask does"


def _masks_changed(change):
    return attention_with(hide=lambda scores, mask: filled(scores, change(mask)))


@mistake(look=MASKS)
def mask_transposed(query, key, value, mask=None):
    """The mask is transposed: its rows belong to queries already."""
    return _masks_changed(lambda m: m.mT if m.dim() > 1 else m)(query, key, value, mask)


@mistake(look=MASKS)
def mask_per_sequence(query, key, value, mask=None):
    """A mask with three axes gets a fourth after its first one, as if it were one mask per sequence. It broadcasts from
    the right as it is: (H, L_q, L_k) is one mask per head."""
    return _masks_changed(lambda m: m[:, None] if m.dim() == 3 else m)(query, key, value, mask)


@mistake(look=MASKS)
def axis_after_the_first(query, key, value, mask=None):
    """A new axis is inserted after the mask's first one, so two axes (L_q, L_k) become (L_q, 1, L_k) and the scores
    get more axes than they had. The mask broadcasts as it is."""
    return _masks_changed(lambda m: m.unsqueeze(1) if m.dim() > 1 else m)(query, key, value, mask)


@mistake(look=MASKS)
def axis_in_front(query, key, value, mask=None):
    """A new axis is put in front of the mask, so without a batch the results get one axis too many. The mask broadcasts
    as it is."""
    return _masks_changed(lambda m: m.unsqueeze(0))(query, key, value, mask)


@mistake(look=MASKS)
def axis_before_the_keys(query, key, value, mask=None):
    """A new axis is put before the mask's last one: that is right only for a mask (L_k,) or (B, L_k). This mask
    broadcasts as it is."""
    return _masks_changed(lambda m: m.unsqueeze(-2))(query, key, value, mask)


@mistake(look=MASKS)
def two_axes_in_front(query, key, value, mask=None):
    """Two new axes are put in front of the mask, so with fewer than two batch dimensions the results get axes too
    many. The mask broadcasts as it is."""
    return _masks_changed(lambda m: m[None, None])(query, key, value, mask)


@mistake(look=MASKS)
def taken_for_padding(query, key, value, mask=None):
    """The mask is treated as (B, L_k) and gets two axes in the middle. It already has the shape of the scores, and
    broadcasts as it is."""
    return _masks_changed(lambda m: m[:, None, None] if m.dim() > 1 else m)(query, key, value, mask)


@mistake(look=MASKS)
def axis_at_the_end(query, key, value, mask=None):
    """A new axis is put after the mask's last one, so the keys are lined up with the queries. The mask broadcasts as it
    is."""
    return _masks_changed(lambda m: m.unsqueeze(-1))(query, key, value, mask)


@mistake(look=MASKS)
def first_row_for_all(query, key, value, mask=None):
    """The mask's first row is used for all queries. Each query has a row of its own."""
    return _masks_changed(lambda m: m[..., :1, :] if m.dim() > 1 else m)(query, key, value, mask)


@mistake(look=MASKS)
def first_sequence_for_all(query, key, value, mask=None):
    """The mask of the first sequence is used for the whole batch."""
    return _masks_changed(lambda m: m[:1] if m.dim() > 2 else m)(query, key, value, mask)


@mistake(look=MASKS)
def causal_too(query, key, value, mask=None):
    """Besides the masked keys, the keys after each query are hidden. No causal mask is built in here: the caller passes
    one if it is needed."""
    return _masks_changed(
        lambda m: m & torch.ones(m.shape[-2] if m.dim() > 1 else 1, m.shape[-1], dtype=torch.bool).tril()
    )(query, key, value, mask)
