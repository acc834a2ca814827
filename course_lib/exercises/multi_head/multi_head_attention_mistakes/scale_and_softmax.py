"""Mistakes in `MultiHeadAttention`: the scale and the softmax."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._headings import DIVIDE_BY_ROOT
from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.multi_head.multi_head_attention_mistakes.parts import (
    attend_with,
    attending,
    fill_hidden,
    variant,
)

mistake = Mistakes()


@mistake.built(look=DIVIDE_BY_ROOT)
def scale_of_the_model():
    """The scores are divided by the root of d_model. The dot product of one head sums over fewer features: how many?"""
    return variant(attend=attend_with(scale=lambda q, k: math.sqrt(q.shape[1] * q.shape[-1])))


@mistake.built(look=DIVIDE_BY_ROOT)
def no_scale():
    """The scores are not scaled. Heads are narrow, but their dot products still have a spread: how does it grow?"""
    return variant(attend=attend_with(scale=lambda q, k: 1.0))


@mistake.built(look=DIVIDE_BY_ROOT)
def scale_without_root():
    """The scores are divided by d_head, or twice by its root. The spread of a dot product grows more slowly than
    that."""
    return variant(attend=attend_with(scale=lambda q, k: q.shape[-1]))


@mistake.built(look=DIVIDE_BY_ROOT)
def multiplied_by_root():
    """The scores are multiplied by the root, so they spread more with every feature instead of less."""
    return variant(attend=attend_with(scale=lambda q, k: q.shape[-1] ** -0.5))


@mistake.built(look=DIVIDE_BY_ROOT)
def scale_by_heads():
    """The divisor comes from the number of heads. What matters is how many features one dot product sums over."""
    return variant(attend=attend_with(scale=lambda q, k: math.sqrt(q.shape[1])))


@mistake.built(look=DIVIDE_BY_ROOT)
def scale_by_length():
    """The divisor grows with the number of keys. How many terms does one dot product sum: one per key, or one per
    feature?"""
    return variant(attend=attend_with(scale=lambda q, k: math.sqrt(k.shape[-2])))


@mistake.built(look=DIVIDE_BY_ROOT)
def scale_by_d_model_without_root():
    """The scores are divided by d_model. That is not the width of a head, and the spread does not grow that fast."""
    return variant(attend=attend_with(scale=lambda q, k: q.shape[1] * q.shape[-1]))


@mistake.built(look=DIVIDE_BY_ROOT)
def scale_by_queries():
    """The divisor grows with the number of queries. What matters is how many features one dot product sums over:
    which axis has them at this point?"""
    return variant(attend=attend_with(scale=lambda q, k: math.sqrt(q.shape[-2])))


@mistake.built(look=DIVIDE_BY_ROOT)
def root_by_precedence():
    """`d ** 1 / 2` is half of d: the power is taken before the division. The root needs an exponent in brackets, or
    a function."""
    return variant(attend=attend_with(scale=lambda q, k: q.shape[-1] / 2))


@mistake.built(look=DIVIDE_BY_ROOT)
def root_by_precedence_inline():
    """`scores / d ** 1 / 2` divides by d, and then by 2: the power is taken first, then the divisions in turn. The
    root needs an exponent in brackets, or a function."""
    return variant(attend=attend_with(scale=lambda q, k: q.shape[-1] * 2))


@mistake.built
def root_in_float32():
    """The root is a float32 tensor, so in float64 the scores are only as exact as that. A plain Python number fits
    every dtype."""
    return variant(
        attend=attend_with(scale=lambda q, k: torch.sqrt(torch.tensor(float(q.shape[-1]), dtype=torch.float32)))
    )


@mistake.built
def softmax_in_float32():
    """The softmax is computed in float32 whatever comes in, so in float64 half of the digits are lost."""
    return variant(attend=attend_with(softmax=lambda s, dim: s.float().softmax(dim).to(s.dtype)))


@mistake.built
def softmax_over_queries():
    """Each column of the weights sums to one, but each row should. Every query shares out one unit of attention: over
    which axis?"""
    return variant(attend=attend_with(dim=-2))


@mistake.built
def softmax_over_heads():
    """The softmax runs over the heads (that is also what a softmax without `dim` does to four axes), so the heads
    share one unit of attention. Each head has its own, to share out over the keys."""
    return variant(attend=attend_with(dim=1))


@mistake.built
def softmax_over_the_batch():
    """The softmax runs over the first axis, the batch. Sequences in the same batch are independent of each other."""
    return variant(attend=attend_with(dim=0))


@mistake.built
def softmax_over_heads_and_keys():
    """All entries of the scores of one sequence share one softmax. Each query of each head has its own unit of
    attention."""
    return variant(attend=attend_with(softmax=lambda s, dim: s.flatten(1).softmax(-1).view_as(s)))


@mistake.built(look="attention: The softmax turns scores into weights")
def unstable_softmax():
    """Large scores overflow: e¹⁰⁰ is more than a float32 can hold. Subtracting a constant from all scores of a row does
    not change the weights."""
    return variant(attend=attend_with(softmax=lambda s, dim: s.exp() / s.exp().sum(dim, keepdim=True)))


@mistake.built
def no_softmax():
    """The scores are used as weights, without a softmax: rows should sum to one."""
    return variant(attend=attend_with(softmax=lambda s, dim: s))


@mistake(look=DIVIDE_BY_ROOT, by=attending)
def scale_after_softmax(q, k, v, mask):
    """The weights are divided by the root, after the softmax, so they do not sum to one. The root should limit the
    scores."""
    weights = attend_with(scale=lambda q, k: 1.0)(q, k, v, mask)[1] / math.sqrt(q.shape[-1])
    return weights @ v, weights


@mistake(look=DIVIDE_BY_ROOT, by=attending)
def output_scaled(q, k, v, mask):
    """The root divides the heads' results, not the scores. It keeps the softmax from saturating, so the division has to
    come before it."""
    heads, weights = attend_with(scale=lambda q, k: 1.0)(q, k, v, mask)
    return heads / math.sqrt(q.shape[-1]), weights


@mistake(look=DIVIDE_BY_ROOT, by=attending)
def divided_and_rounded_down(q, k, v, mask):
    """`//` divides and rounds down, so the scores lose their fractional part and their gradient."""
    scores = q @ k.transpose(-2, -1) // math.sqrt(q.shape[-1])
    weights = (scores if mask is None else fill_hidden(scores, mask)).softmax(-1)
    return weights @ v, weights
