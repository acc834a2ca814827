"""Mistakes in `MultiHeadAttention`: two at once."""

from __future__ import annotations

import itertools
import math

from course_lib.exercises._headings import DIVIDE_BY_ROOT
from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.multi_head.multi_head_attention_mistakes.parts import variant
from course_lib.exercises.scaled_dot_product.scaled_dot_product_attention_mistakes.parts import attention_with

mistake = Mistakes()


def _view_straight(x, num_heads):
    return x.reshape(len(x), num_heads, x.shape[1], -1)


def _merged_as_it_lies(x):
    return x.reshape(len(x), x.shape[2], -1)


def _scaled(divisor):
    return attention_with(scale=lambda q, k, v: divisor(q, k))


WRONG_SCALES = (
    (
        "scale_of_the_model",
        "the scores are divided by the root of d_model",
        lambda q, k: math.sqrt(q.shape[1] * q.shape[-1]),
    ),
    ("no_scale", "the scores are not scaled", lambda q, k: 1.0),
    ("scale_without_root", "the scores are divided by d_head without a root", lambda q, k: q.shape[-1]),
)


HEADS = (
    (
        "view_straight",
        "the `view` straight to (B, H, L, d_head) gives a head some positions instead of some features",
        {"split": _view_straight},
    ),
    (
        "view_straight_both_ways",
        "splitting and merging only regroup the numbers in memory, without exchanging axes",
        {"split": _view_straight, "merge": _merged_as_it_lies},
    ),
    ("merged_without_transpose", "the heads are merged without moving their axis", {"merge": _merged_as_it_lies}),
    ("no_out_proj", "`out_proj` is not used", {"out": lambda self, merged, query: merged}),
    ("weights_averaged", "the weights are averaged over the heads", {"finish": lambda o, w: (o, w.mean(1))}),
    ("only_output", "only the output is returned", {"finish": lambda o, w: o}),
    ("outputs_swapped", "output and weights are returned in the wrong order", {"finish": lambda o, w: (w, o)}),
)


for (first, a, divisor), (second, b, parts) in itertools.product(WRONG_SCALES, HEADS):
    says = f"Two things: {a}; and {b}."
    mistake.named(f"{first}_and_{second}", says, look=DIVIDE_BY_ROOT)(variant(attend=_scaled(divisor), **parts))
