"""The mistakes in `fix_padding_mask`: the code as given, and repairs that leave or bring a fault."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from course_lib.exercises._mistakes import Mistakes

mistake = Mistakes()


def _fused(mask):
    """Fused attention with a mask made from the keys' numbers, which are given the axes of the scores first."""

    def attention(query, key, value, real):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask(real[:, None, None, :], query.dtype))

    return attention


def _by_hand(before=None, after=None):
    """Attention step by step, with a change of the scores or of the weights."""

    def attention(query, key, value, real):
        real = real[:, None, None, :].to(query.dtype)
        scores = query @ key.mT / math.sqrt(query.shape[-1])
        weights = (scores if before is None else before(scores, real)).softmax(-1)
        return (weights if after is None else after(weights, real)) @ value

    return attention


@mistake
def as_given(query, key, value, real):
    """Padded keys still get weight: compared with a real key, a fraction 1/e of what they would get without a mask."""
    return _fused(lambda real, dtype: real.to(dtype))(query, key, value, real)


@mistake
def floats_left(query, key, value, real):
    """Right where `real` holds integers. Where it holds numbers of the query's dtype, padded keys still get weight."""
    if real.is_floating_point():
        return _fused(lambda real, dtype: real)(query, key, value, real)
    return _fused(lambda real, dtype: real.bool())(query, key, value, real)


@mistake
def integers_left(query, key, value, real):
    """Right where `real` holds numbers of the query's dtype. Where it holds integers, padded keys still get weight."""
    if real.is_floating_point():
        return _fused(lambda real, dtype: real.bool())(query, key, value, real)
    return _fused(lambda real, dtype: real.to(dtype))(query, key, value, real)


@mistake
def handed_over_as_it_is(query, key, value, real):
    """Integers end in an error, and numbers of the query's dtype are still added to the scores, so that padded keys get
    weight."""
    return _fused(lambda real, dtype: real)(query, key, value, real)


@mistake(look="notation: Conventions")
def turned_round(query, key, value, real):
    """Now attention goes to the padding, and to it alone: in a bool mask, True means *may attend*."""
    return _fused(lambda real, dtype: real == 0)(query, key, value, real)


@mistake
def one_added_to_padding(query, key, value, real):
    """Padded keys get more weight than before: 1 is added to their scores and 0 to those of real keys."""
    return _fused(lambda real, dtype: 1 - real.to(dtype))(query, key, value, real)


for _number, _words in ((10, "ten"), (100, "a_hundred"), (1000, "a_thousand")):
    mistake.named(
        f"{_words}_subtracted",
        f"Padded keys get less weight, but still some: their scores are lowered by {_number}, which is not enough "
        "beside low scores of real keys. A padded key gets no weight at all, whatever its score.",
    )(_fused(lambda real, dtype, number=_number: (real.to(dtype) - 1) * number))
    mistake.named(
        f"score_of_minus_{_words}",
        f"Padded keys get less weight, but still some: their scores are replaced by −{_number}, and real keys may "
        "score as low. A padded key gets no weight at all.",
    )(_by_hand(before=lambda scores, real, number=_number: scores.masked_fill(real == 0, -number)))


@mistake
def ten_thousand_subtracted(query, key, value, real):
    """Right for ordinary scores. Padding that scores higher than the number that is subtracted still gets weight; a
    score can be as large."""
    return _fused(lambda real, dtype: (real.to(dtype) - 1) * 1e4)(query, key, value, real)


@mistake
def billion_added_to_padding(query, key, value, real):
    """All weight goes to the padding: a large number is added to its scores instead of being subtracted."""
    return _fused(lambda real, dtype: (1 - real.to(dtype)) * 1e9)(query, key, value, real)


@mistake
def infinity_times_zero(query, key, value, real):
    """Every output is `nan`: the mask is multiplied by −∞, and 0 · ∞ is `nan` for the real keys."""
    return _fused(lambda real, dtype: (1 - real.to(dtype)) * -math.inf)(query, key, value, real)


@mistake
def scores_times_mask(query, key, value, real):
    """Padded keys have the score 0 now, because they or their scores have been set to zero. That is not a small score:
    they still get weight, e⁰ over the sum."""
    return _by_hand(before=lambda scores, real: scores * real)(query, key, value, real)


@mistake
def weights_times_mask(query, key, value, real):
    """The values at padded positions have no effect, but the real keys do not share all the
    weight: theirs sum to less than one, since the padding was removed after the softmax."""
    return _by_hand(after=lambda weights, real: weights * real)(query, key, value, real)


@mistake
def weights_shared_out_again(query, key, value, real):
    """Right for ordinary scores. Where a padded key has by far the largest score, it takes all weight before it is
    removed, and what is left for the others is 0 divided by 0, or nearly so."""
    return _by_hand(after=lambda weights, real: weights * real / (weights * real).sum(-1, keepdim=True))(
        query, key, value, real
    )


@mistake
def mask_unused(query, key, value, real):
    """Padded keys are treated like real ones: the result does not depend on `real`."""
    return _fused(lambda real, dtype: None)(query, key, value, real)


@mistake
def one_mask_for_all(query, key, value, real):
    """The padding of the first sequence is used for all of them. Each sequence has a length of its own."""
    return _fused(lambda real, dtype: real[:1].bool())(query, key, value, real)


@mistake
def longest_for_all(query, key, value, real):
    """A key is left out only if it is padding in all sequences. Each sequence has a length of its own."""
    return _fused(lambda real, dtype: real.any(0, keepdim=True))(query, key, value, real)


@mistake
def axes_missing(query, key, value, real):
    """The mask is bool, but `(B, L_k)` has too few axes: it is lined up with the queries instead of the sequences, and
    most shapes end in an error."""
    return F.scaled_dot_product_attention(query, key, value, attn_mask=real.bool())


@mistake
def head_axis_missing(query, key, value, real):
    """The mask is bool, but as `(B, 1, L_k)` its first axis is lined up with the heads: most shapes end in an error,
    and with as many heads as sequences, each head has the padding of another sequence."""
    return F.scaled_dot_product_attention(query, key, value, attn_mask=real.bool()[:, None, :])


@mistake
def queries_masked(query, key, value, real):
    """The mask is bool, but it has been given to the queries instead of the keys, which is an error unless there are as
    many of them."""
    return F.scaled_dot_product_attention(query, key, value, attn_mask=real.bool()[:, None, :, None])


@mistake
def padding_cut_off(query, key, value, real):
    """Keys are cut off at the end, as many as the longest sequence leaves. Shorter ones still attend to their
    padding, and padding on the left or in between takes the place of real keys."""
    length = int(real.sum(-1).max())
    return F.scaled_dot_product_attention(query, key[..., :length, :], value[..., :length, :])


@mistake
def padding_at_the_end_only(query, key, value, real):
    """Right where the padding comes last. Counting the real tokens of a sequence does not tell where they are: padding
    can be on the left, too."""
    keep = torch.arange(real.shape[-1]) < real.sum(-1, keepdim=True)
    return _fused(lambda real, dtype: real)(query, key, value, keep)


@mistake
def float32_inside(query, key, value, real):
    """The values are right, but those of float64 only to seven digits: they go through float32 on the way."""
    keep = real.bool()[:, None, None, :]
    return F.scaled_dot_product_attention(query.float(), key.float(), value.float(), attn_mask=keep).to(query.dtype)


@mistake
def scale_lost(query, key, value, real):
    """Padded keys get no weight, but the others' weights are too concentrated: the scores are not divided by √d_k."""
    return F.scaled_dot_product_attention(query, key, value, attn_mask=real.bool()[:, None, None, :], scale=1.0)
