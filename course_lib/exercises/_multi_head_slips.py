"""Further mistakes in `MultiHeadAttention`: slips of masks, of the constructor, and two common ones at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import torch
from torch import nn

from course_lib.exercises._exercise import Exercise
from course_lib.exercises.scaled_dot_product.scaled_dot_product_attention_mistakes.steps import attention_with

__all__ = ["add_slips"]

ROOT = "scaled_dot_product: Why divide by the root of d"
CONVENTIONS = "notation: Conventions"
BUG = "multi_head: The bug"


def _right_split(x, num_heads):
    return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2)


def _view_straight(x, num_heads):
    return x.reshape(len(x), num_heads, x.shape[1], -1)


def _merged_as_it_lies(x):
    return x.reshape(len(x), x.shape[2], -1)


def _scaled(divisor):
    return attention_with(scale=lambda q, k, v: divisor(q, k))


SCALES = (
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
        "splitting and merging only cut the memory anew, without exchanging axes",
        {"split": _view_straight, "merge": _merged_as_it_lies},
    ),
    ("merged_without_transpose", "the heads are merged as they lie in memory", {"merge": _merged_as_it_lies}),
    ("no_out_proj", "`out_proj` is not used", {"out": lambda self, merged, query: merged}),
    ("weights_averaged", "the weights are averaged over the heads", {"finish": lambda o, w: (o, w.mean(1))}),
    ("only_output", "only the output comes back", {"finish": lambda o, w: o}),
    ("outputs_swapped", "output and weights come back in the wrong order", {"finish": lambda o, w: (w, o)}),
)
MASKS = (
    (
        "mask_per_sequence",
        "A mask of three axes gets another one after its first, as if it were one mask per sequence. It broadcasts "
        "from "
        "the right without help: (H, L_q, L_k) is one mask per head.",
        lambda m: m[:, None] if m.dim() == 3 else m,
    ),
    (
        "mask_up_to_three_axes_per_sequence",
        "A mask of fewer than four axes gets an axis after its first one, as if its first axis were the batch. It "
        "broadcasts from the right without help.",
        lambda m: m.unsqueeze(1) if m.dim() in (2, 3) else m,
    ),
    (
        "mask_transposed",
        "The mask is transposed: its rows belong to queries.",
        lambda m: m.mT if m.dim() > 1 else m,
    ),
    (
        "mask_of_the_first_sequence",
        "The mask of the first sequence is used for the whole batch.",
        lambda m: m[:1] if m.dim() == 4 else m,
    ),
    (
        "mask_axis_in_front",
        "A new axis is put in front of the mask, so a mask of four axes gets five, and so do the scores. It broadcasts "
        "as it comes.",
        lambda m: m.unsqueeze(0),
    ),
    (
        "mask_axis_before_the_keys",
        "A new axis is put before the mask's last one. That fits (B, L_k) only; this mask broadcasts as it comes.",
        lambda m: m.unsqueeze(-2),
    ),
    (
        "mask_axis_at_the_end",
        "A new axis is put after the mask's last one, so the keys are lined up with the queries.",
        lambda m: m.unsqueeze(-1),
    ),
    (
        "first_row_of_the_mask",
        "The mask's first row is used for all queries. Each query has a row of its own.",
        lambda m: m[..., :1, :] if m.dim() > 1 else m,
    ),
    (
        "minus_a_bool",
        "`-mask` does not exist for bool tensors. The opposite of a bool mask is its logical *not*.",
        lambda m: -m,
    ),
)


def add_slips(exercise: Exercise, variant: Callable, unchecked: type[nn.Module]) -> None:
    """Add the mistakes of this module to those of `MultiHeadAttention`.

    Args:
        exercise: it.
        variant: makes the module with some steps exchanged.
        unchecked: the module without the check of its constructor.
    """
    for (first, a, divisor), (second, b, parts) in itertools.product(SCALES, HEADS):
        says = f"Two things: {a}; and {b}."
        exercise.misconception(f"{first}_and_{second}", says, look=ROOT)(variant(attend=_scaled(divisor), **parts))
    for key, says, change in MASKS:
        exercise.misconception(key, says, look=CONVENTIONS)(variant(mask_as=change))

    def checked(wrong: Callable[[int, int], bool]) -> type[nn.Module]:
        class Checked(unchecked):
            def __init__(self, d_model, num_heads):
                if wrong(d_model, num_heads):
                    raise ValueError("num_heads must divide d_model")
                super().__init__(d_model, num_heads)

        return Checked

    exercise.misconception(
        "divides_the_other_way_round",
        "The check of the constructor is turned round: it asks whether d_model divides num_heads.",
    )(checked(lambda d_model, num_heads: num_heads % d_model != 0))
    exercise.misconception(
        "raises_where_it_divides",
        "The check of the constructor is turned round: it raises where the number of heads divides d_model.",
    )(checked(lambda d_model, num_heads: d_model % num_heads == 0))
    exercise.misconception(
        "more_heads_than_features_accepted",
        "The constructor compares sizes only. 4 heads for 6 features do not divide either: look at the remainder.",
    )(checked(lambda d_model, num_heads: d_model < num_heads))
    exercise.misconception(
        "weights_missing",
        "None comes back in place of the weights. The contract asks for `(output, weights)`, of every head.",
    )(variant(finish=lambda output, weights: (output, None)))
    exercise.misconception(
        "width_is_a_float",
        "`/` gives a float even where it divides, and the size of an axis has to be an int. Which division of ints "
        "gives an int?",
    )(variant(split=lambda x, n: x.reshape(len(x), -1, n, x.shape[-1] / n).transpose(1, 2)))
    exercise.misconception(
        "width_is_a_float_in_view",
        "`/` gives a float even where it divides, and `view` wants ints. Which division of ints gives an int?",
    )(variant(split=lambda x, n: x.view(len(x), -1, n, x.shape[-1] / n).transpose(1, 2)))
    exercise.misconception(
        "heads_averaged",
        "The results of the heads are averaged and repeated. They found different things: all their features are kept, "
        "side by side.",
    )(variant(merge=lambda x: x.mean(1).repeat(1, 1, x.shape[1])))
    exercise.misconception(
        "projected_twice",
        "The inputs go through their projections twice: once before the heads are split, and once more in a helper?",
    )(
        variant(
            project=lambda self, query, key, value: (
                self.q_proj(self.q_proj(query)),
                self.k_proj(self.k_proj(key)),
                self.v_proj(self.v_proj(value)),
            )
        )
    )
    exercise.misconception(
        "residual_of_the_projected_query",
        "Something is added to what `out_proj` gives. Attention returns the output of `out_proj` itself.",
    )(variant(out=lambda self, merged, query: self.out_proj(merged) + merged))
    exercise.misconception(
        "relu_on_the_projections",
        "The projections are followed by a nonlinearity. Queries, keys and values are linear in the inputs.",
    )(
        variant(
            project=lambda self, query, key, value: (
                torch.relu(self.q_proj(query)),
                torch.relu(self.k_proj(key)),
                torch.relu(self.v_proj(value)),
            )
        )
    )
