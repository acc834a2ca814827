"""Mistakes in `MultiHeadAttention`: the mask."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.multi_head.merge_heads import merge_heads
from course_lib.exercises.multi_head.multi_head_attention_mistakes.parts import attend_with, attending, variant

mistake = Mistakes()


CONVENTIONS = "notation: Conventions"


@mistake.built(look=CONVENTIONS)
def mask_turned_round():
    """Attention goes exactly where the mask forbids it. True means *may attend* (`nn.MultiheadAttention` has it the
    other way round); check the condition of the fill."""
    return variant(mask_as=torch.logical_not)


@mistake.built
def mask_ignored():
    """The weights do not depend on the mask."""
    return variant(attend=lambda q, k, v, mask: attend_with()(q, k, v))


@mistake.built
def mask_filled_with_zero():
    """Masked scores become 0 or nearly 0, by filling or multiplying. A score of 0 is not a small score: its weight is
    e⁰ over the sum. Which score gives weight zero?"""
    return variant(attend=attend_with(hide=lambda scores, mask: scores * mask))


@mistake.built
def mask_added():
    """The mask is added as it is: True adds 1 to a score. Use a bool mask to select scores, not as a number to add."""
    return variant(attend=attend_with(hide=lambda scores, mask: scores + mask))


@mistake.built
def zero_times_infinity():
    """The mask is multiplied by −inf. Where the mask is 0, this gives 0 · ∞, which is `nan`."""
    return variant(attend=attend_with(hide=lambda scores, mask: scores + (~mask) * float("-inf")))


@mistake.built
def filled_with_plus_infinity():
    """Masked scores become as large as possible, +∞ or nearly. Which score has weight zero?"""
    return variant(attend=attend_with(hide=lambda scores, mask: scores.masked_fill(~mask, float("inf"))))


@mistake.built
def filled_with_plus_a_billion():
    """Masked scores become a large positive number, so the masked keys get all the weight. Is a sign missing?"""
    return variant(attend=attend_with(hide=lambda scores, mask: scores.masked_fill(~mask, 1e9)))


@mistake.built(look=CONVENTIONS)
def mask_of_two_axes_only():
    """The mask is treated as (L_q, L_k), and two axes are put before it. It may have up to four axes, and broadcasts as
    it is."""
    return variant(mask_as=lambda mask: mask[None, None])


@mistake.built(look=CONVENTIONS)
def mask_of_two_axes_moved():
    """A mask with two axes gets more axes between them, as if it were (B, L_k). It is (L_q, L_k), and broadcasts as it
    is."""
    return variant(mask_as=lambda mask: mask[:, None, None] if mask.dim() == 2 else mask)


@mistake.built(look=CONVENTIONS)
def only_masks_of_two_axes_used():
    """Only a mask (L_q, L_k) has an effect. It may have up to four axes: `(B, 1, 1, L_k)` marks which keys are
    padding."""
    return variant(
        attend=lambda q, k, v, mask: attend_with()(q, k, v, mask if mask is not None and mask.dim() == 2 else None)
    )


@mistake.built(look=CONVENTIONS)
def only_masks_of_four_axes_used():
    """A mask (L_q, L_k) has no effect. Masks broadcast, so one with two axes applies to all sequences and heads."""
    return variant(
        attend=lambda q, k, v, mask: attend_with()(q, k, v, mask if mask is not None and mask.dim() == 4 else None)
    )


@mistake.built(look=CONVENTIONS)
def mask_of_the_first_head():
    """The mask's first entry along the heads is used for all of them. A mask may differ from head to head."""
    return variant(mask_as=lambda mask: mask[:, :1] if mask.dim() == 4 else mask)


@mistake.built(look=CONVENTIONS)
def always_causal():
    """No query can attend to the keys after it, with or without a mask. No causal mask is built in here: the caller
    passes one if it is needed."""
    return variant(
        attend=lambda q, k, v, mask: attend_with()(
            q, k, v, (True if mask is None else mask) & torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
        )
    )


@mistake.built(look=CONVENTIONS)
def one_minus_a_bool():
    """`1 - mask` does not negate a bool tensor: PyTorch does not subtract bools. Use the logical *not*."""
    return variant(mask_as=lambda mask: 1 - mask)


@mistake.built
def if_mask():
    """`if mask:` needs one truth value for a whole tensor, which is not defined. Test whether there is a mask
    instead."""
    return variant(mask_as=lambda mask: mask if mask else None)


# More than four axes show up differently for each way of merging.
for _key, _merge, _then in (
    ("", merge_heads, "Merging the heads then moves the wrong axes."),
    ("_from_the_left", lambda x: x.transpose(1, 2).flatten(2), "Merging the heads then merges too many axes."),
    (
        "_by_minus_one",
        lambda x: x.transpose(1, 2).reshape(len(x), -1, x.shape[-3] * x.shape[-1]),
        "A −1 in the merging of the heads hides this until the shape of the output shows it.",
    ),
    (
        "_and_not_merged",
        lambda x: x.transpose(1, 2).reshape(len(x), x.shape[-2], x.shape[-3] * x.shape[-1]),
        "The result then does not fit the shape for merging.",
    ),
):
    mistake.named(
        "mask_of_five_axes" + _key,
        "The mask gets another axis, and so do the scores, which then have at least five. A mask that "
        "broadcasts to (B, H, L_q, L_k) has a 1 there already, or needs none. " + _then,
        look=CONVENTIONS,
    )(variant(mask_as=lambda mask: mask.unsqueeze(1), merge=_merge))
    if _key in ("", "_by_minus_one"):
        mistake.named(
            "mask_of_six_axes" + _key,
            "The mask is treated as (B, L_k), a padding mask without its extra axes, and gets two more, so the scores "
            "have six. A mask that broadcasts to (B, H, L_q, L_k) needs none. " + _then,
            look=CONVENTIONS,
        )(variant(mask_as=lambda mask: mask[:, None, None], merge=_merge))


@mistake(look="masking: A mask acts before the softmax", by=attending)
def mask_after_softmax(q, k, v, mask):
    """The mask is applied to the finished weights, so the remaining weights of a row sum to less than one. At which
    step must a key be excluded?"""
    weights = attend_with()(q, k, v)[1]
    weights = weights if mask is None else weights * mask
    return weights @ v, weights


@mistake(by=attending)
def mask_for_the_output_only(q, k, v, mask):
    """The output obeys the mask, but the returned weights do not: they were stored before masking."""
    return attend_with()(q, k, v, mask)[0], attend_with()(q, k, v)[1]
