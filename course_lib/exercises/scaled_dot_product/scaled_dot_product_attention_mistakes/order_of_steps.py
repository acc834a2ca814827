"""Mistakes in `scaled_dot_product_attention`: steps in another order, and two at once."""

from __future__ import annotations

import itertools
import math

from course_lib.exercises._headings import DIVIDE_BY_ROOT
from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.scaled_dot_product.scaled_dot_product_attention_mistakes.parts import (
    attention_with,
    dot_products,
    root,
)

mistake = Mistakes()


MASKS = "scaled_dot_product: What an attention mask does"


def _unscaled(query, key, value):
    return 1.0


def _floats(function):
    def attention(query, key, value, mask=None):
        output, weights = function(query.float(), key.float(), value.float(), mask)
        return output.to(query.dtype), weights.to(query.dtype)

    return attention


# Mistakes that are often made together, by the part of the computation in which they lie.
SCALES = (
    ("no_scale", "the scores are not scaled", _unscaled),
    ("scale_without_root", "the scores are divided by d_k without a root", lambda q, k, v: q.shape[-1]),
    ("multiplied_by_root", "the scores are multiplied by the root", lambda q, k, v: q.shape[-1] ** -0.5),
    ("scale_by_value_width", "the divisor comes from the values", lambda q, k, v: v.shape[-1] ** 0.5),
)


OTHERS = (
    (
        "softmax_over_queries",
        "the softmax runs over the queries",
        {"softmax": lambda s: s.softmax(-2)},
    ),
    ("softmax_dim_1", "the softmax runs over axis 1, counted from the left", {"softmax": lambda s: s.softmax(1)}),
    ("softmax_first_axis", "the softmax runs over the first axis", {"softmax": lambda s: s.softmax(0)}),
    (
        "unstable_softmax",
        "the softmax overflows for large scores",
        {"softmax": lambda s: s.exp() / s.exp().sum(-1, keepdim=True)},
    ),
    ("transposes_axes_1_and_2", "the axes are counted from the left", {"compare": lambda q, k: q @ k.transpose(1, 2)}),
    ("outputs_swapped", "output and weights are returned in the wrong order", {"finish": lambda o, w: (w, o)}),
    ("only_output", "only the output is returned", {"finish": lambda o, w: o}),
)


def _masked_late(change, scale=root):
    """Attention whose mask changes the finished weights."""

    def attention(query, key, value, mask=None):
        weights = (dot_products(query, key) / scale(query, key, value)).softmax(-1)
        weights = weights if mask is None else change(weights, mask)
        return weights @ value, weights

    return attention


def _late(when, divide):
    """Attention without a scale, in which something else is divided by the root."""

    def attention(query, key, value, mask=None):
        output, weights = attention_with(scale=_unscaled)(query, key, value, mask)
        return divide(output, weights, math.sqrt(query.shape[-1]))

    return attention


def _mask_for_the_output_only(query, key, value, mask=None):
    return attention_with()(query, key, value, mask)[0], attention_with()(query, key, value)[1]


def _mask_for_the_weights_only(query, key, value, mask=None):
    return attention_with()(query, key, value)[0], attention_with()(query, key, value, mask)[1]


def _zeroed_when_returned(query, key, value, mask=None):
    output, weights = attention_with()(query, key, value)
    return output, weights if mask is None else weights * mask


def _minus_mask(query, key, value, mask=None):
    return attention_with()(query, key, value, None if mask is None else -mask)


def _columns_of_the_mask(query, key, value, mask=None):
    if mask is not None:  # values of masked keys are zeroed, their weights are not
        value = value.masked_fill(~mask.reshape(-1, mask.shape[-1])[0][:, None], 0.0)
    return attention_with()(query, key, value)


@mistake(look=MASKS)
def mask_after_softmax_turned_round(query, key, value, mask=None):
    """The mask is applied to the finished weights, and the wrong way round: the allowed keys get zero. A masked key has
    to be excluded before the softmax."""
    return _masked_late(lambda w, mask: w.masked_fill(mask, 0.0))(query, key, value, mask)


@mistake(look=MASKS)
def minus_infinity_after_softmax(query, key, value, mask=None):
    """−∞ is filled into the finished weights. It belongs in the scores: the softmax turns it into zero."""
    return _masked_late(lambda w, mask: w.masked_fill(~mask, -math.inf))(query, key, value, mask)


@mistake(look=MASKS)
def large_number_after_softmax(query, key, value, mask=None):
    """A large negative number is filled into the finished weights. It belongs in the scores: the softmax turns it into
    zero."""
    return _masked_late(lambda w, mask: w.masked_fill(~mask, -1e9))(query, key, value, mask)


@mistake(look=MASKS)
def mask_after_softmax_softmax_again(query, key, value, mask=None):
    """The mask is applied to the finished weights, and a second softmax is meant to repair them. If you mask the scores
    before the first softmax, no second one is needed."""
    return _masked_late(lambda w, mask: w.masked_fill(~mask, -math.inf).softmax(-1))(query, key, value, mask)


@mistake
def mask_after_softmax_unscaled(query, key, value, mask=None):
    """Two things: the mask is applied to the finished weights, so rows do not sum to one; and the scores are not
    scaled."""
    return _masked_late(lambda w, mask: w * mask, scale=_unscaled)(query, key, value, mask)


@mistake
def output_divided_by_root(query, key, value, mask=None):
    """The root divides the output, not the scores. It keeps the softmax from saturating, so the division has to come
    before it."""
    return _late("output", lambda output, weights, root: (output / root, weights))(query, key, value, mask)


@mistake
def root_between_weights_and_output(query, key, value, mask=None):
    """The weights are right except for the missing scale, and only the returned weights are divided by the root, not
    those that average the values."""
    return _late("weights", lambda output, weights, root: (output, weights / root))(query, key, value, mask)


for (first, a, scale), (second, b, parts) in itertools.product(SCALES, OTHERS):
    says = f"Two things: {a}; and {b}."
    mistake.named(f"{first}_and_{second}", says, look=DIVIDE_BY_ROOT)(attention_with(scale=scale, **parts))


@mistake(look=MASKS)
def mask_for_the_output_only(query, key, value, mask=None):
    """The output obeys the mask, but the returned weights do not: they were stored before masking."""
    return _mask_for_the_output_only(query, key, value, mask)


@mistake(look=MASKS)
def mask_for_the_weights_only(query, key, value, mask=None):
    """The returned weights obey the mask, but the output does not: it was computed before masking."""
    return _mask_for_the_weights_only(query, key, value, mask)


@mistake(look=MASKS)
def mask_on_the_returned_weights(query, key, value, mask=None):
    """The mask zeroes the returned weights after the output has been computed, and their rows no longer sum to one.
    It belongs before the softmax."""
    return _zeroed_when_returned(query, key, value, mask)


@mistake(look=MASKS)
def minus_a_bool(query, key, value, mask=None):
    """`-mask` is not defined for bool tensors. Use the logical *not*."""
    return _minus_mask(query, key, value, mask)


@mistake(look=MASKS)
def values_masked(query, key, value, mask=None):
    """The mask is applied to the values. A masked key then still gets a weight, which the others lack: mask its
    score."""
    return _columns_of_the_mask(query, key, value, mask)


@mistake
def float32_inside(query, key, value, mask=None):
    """Somewhere inside, the numbers become float32, and float64 input loses half of its digits."""
    return _floats(attention_with())(query, key, value, mask)
