"""Mistakes in `MultiHeadAttention`: masks that are given another shape or meaning."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.multi_head.multi_head_attention_mistakes.parts import variant

mistake = Mistakes()


CONVENTIONS = "notation: Conventions"


@mistake.built(look=CONVENTIONS)
def mask_per_sequence():
    """A mask with three axes gets another one after its first, as if it were one mask per sequence. It broadcasts from
    the right as it is: (H, L_q, L_k) is one mask per head."""
    return variant(mask_as=lambda m: m[:, None] if m.dim() == 3 else m)


@mistake.built(look=CONVENTIONS)
def mask_up_to_three_axes_per_sequence():
    """A mask with fewer than four axes gets an axis after its first one, as if its first axis were the batch. It
    broadcasts from the right as it is."""
    return variant(mask_as=lambda m: m.unsqueeze(1) if m.dim() in (2, 3) else m)


@mistake.built(look=CONVENTIONS)
def mask_transposed():
    """The mask is transposed: its rows belong to queries."""
    return variant(mask_as=lambda m: m.mT if m.dim() > 1 else m)


@mistake.built(look=CONVENTIONS)
def mask_of_the_first_sequence():
    """The mask of the first sequence is used for the whole batch."""
    return variant(mask_as=lambda m: m[:1] if m.dim() == 4 else m)


@mistake.built(look=CONVENTIONS)
def mask_axis_in_front():
    """A new axis is put in front of the mask, so a mask with four axes gets five, and so do the scores. It broadcasts
    as it is."""
    return variant(mask_as=lambda m: m.unsqueeze(0))


@mistake.built(look=CONVENTIONS)
def mask_axis_before_the_keys():
    """A new axis is put before the mask's last one. That is right only for (B, L_k); this mask broadcasts as it is."""
    return variant(mask_as=lambda m: m.unsqueeze(-2))


@mistake.built(look=CONVENTIONS)
def mask_axis_at_the_end():
    """A new axis is put after the mask's last one, so the keys are lined up with the queries."""
    return variant(mask_as=lambda m: m.unsqueeze(-1))


@mistake.built(look=CONVENTIONS)
def first_row_of_the_mask():
    """The mask's first row is used for all queries. Each query has a row of its own."""
    return variant(mask_as=lambda m: m[..., :1, :] if m.dim() > 1 else m)


@mistake.built(look=CONVENTIONS)
def minus_a_bool():
    """`-mask` is not defined for bool tensors. Use the logical *not*."""
    return variant(mask_as=lambda m: -m)
