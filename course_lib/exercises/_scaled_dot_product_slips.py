"""Further mistakes in `scaled_dot_product_attention`: single slips, and two common ones at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import torch

from course_lib.exercises._exercise import Exercise

__all__ = ["add_attention_slips", "attention_with"]

ROOT = "scaled_dot_product: Why divide by the root of d"
CONVENTIONS = "notation: Conventions"
INF = float("inf")


def _root(query, key, value):
    return math.sqrt(query.shape[-1])


def _dot_products(query, key):
    return query @ key.transpose(-2, -1)


def _hide(scores, mask):
    return scores.masked_fill(~mask, -INF)


def _softmax(scores):
    return scores.softmax(-1)


def attention_with(
    *,
    compare: Callable = _dot_products,
    scale: Callable = _root,
    hide: Callable = _hide,
    softmax: Callable = _softmax,
    average: Callable = torch.matmul,
    finish: Callable | None = None,
) -> Callable:
    """Attention with some of its steps exchanged.

    Args:
        compare: scores from query and key.
        scale: divisor from query, key and value.
        hide: masked scores from scores and mask.
        softmax: weights from scores.
        average: output from weights and value.
        finish: what comes back, from output and weights.
    """

    def attention(query, key, value, mask=None):
        scores = compare(query, key) / scale(query, key, value)
        weights = softmax(scores if mask is None else hide(scores, mask))
        output = average(weights, value)
        return (output, weights) if finish is None else finish(output, weights)

    return attention


def _unscaled(query, key, value):
    return 1.0


def _in_float32(query, key, value):
    return torch.tensor(float(query.shape[-1]), dtype=torch.float32).sqrt()


def _floats(function):
    def attention(query, key, value, mask=None):
        output, weights = function(query.float(), key.float(), value.float(), mask)
        return output.to(query.dtype), weights.to(query.dtype)

    return attention


def _masks_changed(change):
    return attention_with(hide=lambda scores, mask: _hide(scores, change(mask)))


def _causal(scores, mask=True):
    return scores.masked_fill(~(torch.ones(scores.shape[-2:], dtype=torch.bool).tril() & mask), -INF)


# What is compared, how it is scaled, what comes back: (key, message, what differs, where to look).
SINGLE = (
    (
        "root_by_precedence",
        "`d ** 1 / 2` is half of d: Python takes the power before the division. Put the exponent in brackets, or use a "
        "function for the root.",
        {"scale": lambda q, k, v: q.shape[-1] / 2},
        ROOT,
    ),
    (
        "root_by_precedence_inline",
        "`scores / d ** 1 / 2` divides by d and then by 2, and `d ** -1 / 2` is half of 1/d: Python takes the power "
        "first. Put the exponent in brackets, or use a function for the root.",
        {"scale": lambda q, k, v: q.shape[-1] * 2},
        ROOT,
    ),
    (
        "root_rounded_down",
        "The root is rounded down to an int. The divisor need not be a whole number.",
        {"scale": lambda q, k, v: int(math.sqrt(q.shape[-1]))},
        ROOT,
    ),
    (
        "fourth_root",
        "The scores are divided by the fourth root of d_k. Was the root taken twice, or was only one of query and key "
        "scaled?",
        {"scale": lambda q, k, v: q.shape[-1] ** 0.25},
        ROOT,
    ),
    (
        "scale_by_square",
        "The scores are divided by d_k². Their spread grows more slowly than d_k itself.",
        {"scale": lambda q, k, v: q.shape[-1] ** 2},
        ROOT,
    ),
    (
        "scale_by_keys_without_root",
        "The scores are divided by the number of keys. What matters is how many features one dot product sums over.",
        {"scale": lambda q, k, v: k.shape[-2]},
        ROOT,
    ),
    (
        "scale_by_value_width_without_root",
        "The scores are divided by the width of the values. The values take no part in the scores: which width does?",
        {"scale": lambda q, k, v: v.shape[-1]},
        ROOT,
    ),
    (
        "scale_by_features_of_all",
        "The divisor is the root of the number of all entries of the query. One dot product sums over the features of "
        "one query alone.",
        {"scale": lambda q, k, v: math.sqrt(q.numel())},
        ROOT,
    ),
    (
        "scale_by_length_of_query",
        "The scores are divided by the length (the norm) of each query vector. The divisor depends on how many "
        "features "
        "there are, not on what they contain.",
        {"compare": lambda q, k: _dot_products(q / q.norm(dim=-1, keepdim=True), k)},
        ROOT,
    ),
    (
        "root_in_float32",
        "The root is computed as a float32 tensor, so in float64 the scores are only as exact as float32. A plain "
        "Python "
        "number fits every dtype.",
        {"scale": _in_float32},
        "",
    ),
    (
        "divided_and_rounded_down",
        "`//` divides and rounds down, so the scores lose what comes after the decimal point, and their gradient.",
        {"compare": lambda q, k: (_dot_products(q, k) // math.sqrt(q.shape[-1])) * math.sqrt(q.shape[-1])},
        "",
    ),
    (
        "entry_by_entry",
        "`*` multiplies query and key entry by entry. A score is a dot product of one query with one key, for every "
        "pair: which operation on matrices computes that?",
        {"compare": lambda q, k: q * k},
        "",
    ),
    (
        "entry_by_entry_summed",
        "The i-th query meets the i-th key only: `*` works entry by entry. Every query has to be compared with every "
        "key.",
        {"compare": lambda q, k: (q * k).sum(-1)},
        "",
    ),
    (
        "entry_by_entry_with_transpose",
        "`*` multiplies the query with the transposed key entry by entry. The shapes need not even fit; a table of dot "
        "products is another operation.",
        {"compare": lambda q, k: q * k.transpose(-2, -1)},
        "",
    ),
    (
        "features_compared",
        "The query is transposed instead of the key, so features are compared with features. The axis that is summed "
        "over has to be the features.",
        {"compare": lambda q, k: q.transpose(-2, -1) @ k},
        "",
    ),
    (
        "keys_by_queries",
        "The scores have one row per key and one column per query. Rows belong to queries: which factor comes first?",
        {"compare": lambda q, k: k @ q.transpose(-2, -1)},
        "",
    ),
    (
        "queries_with_queries",
        "The queries are compared with each other, and the keys are never used.",
        {"compare": lambda q, k: _dot_products(q, q)},
        "",
    ),
    (
        "keys_with_keys",
        "The keys are compared with each other, and the queries are never used.",
        {"compare": lambda q, k: _dot_products(k, k)},
        "",
    ),
    (
        "distances",
        "The scores are distances between queries and keys, so the farthest key gets the largest weight. Attention "
        "compares with dot products.",
        {"compare": torch.cdist},
        "",
    ),
    (
        "signs_turned",
        "The scores have the wrong sign, so the key that fits worst gets the largest weight.",
        {"compare": lambda q, k: -_dot_products(q, k)},
        "",
    ),
    (
        "no_softmax",
        "The scores are used as weights, without a softmax. The weights of a query have to be positive and sum to one.",
        {"softmax": lambda s: s},
        "",
    ),
    (
        "not_normalised",
        "The exponentials of the scores are used as weights. They are positive, but do not sum to one yet.",
        {"softmax": torch.exp},
        "",
    ),
    (
        "softmax_twice",
        "The softmax is applied twice. The second one flattens the weights, and gives masked keys a weight again.",
        {"softmax": lambda s: s.softmax(-1).softmax(-1)},
        "",
    ),
    (
        "softmax_of_everything",
        "One softmax runs over all entries, batch dimensions included. Each query has a unit of attention of its own.",
        {"softmax": lambda s: s.flatten().softmax(0).view(s.shape)},
        "",
    ),
    (
        "largest_of_all",
        "The largest score of the whole tensor is subtracted from every row. Rows that lie far below it vanish; each "
        "row "
        "may have its own constant.",
        {"softmax": lambda s: (lambda e: e / e.sum(-1, keepdim=True))((s - s.max()).exp())},
        "attention: The mathematics",
    ),
    (
        "softmax_axis_dropped",
        "The sum of the exponentials has lost its axis, so the division lines it up with the wrong one. There is an "
        "option that keeps the axis.",
        {"softmax": lambda s: (lambda e: e / e.sum(-1))((s - s.amax(-1, keepdim=True)).exp())},
        "",
    ),
    (
        "softmax_axis_dropped_unstable",
        "The sum of the exponentials has lost its axis, so the division lines it up with the wrong one; and large "
        "scores "
        "overflow.",
        {"softmax": lambda s: s.exp() / s.exp().sum(-1)},
        "",
    ),
    (
        "softmax_in_float32",
        "The softmax is computed in float32 whatever comes in, so in float64 half of the digits are lost.",
        {"softmax": lambda s: s.float().softmax(-1).to(s.dtype)},
        "",
    ),
    (
        "weights_entry_by_entry",
        "`*` multiplies weights and values entry by entry. The output is a weighted sum over the keys: a matrix "
        "product.",
        {"average": torch.mul},
        "",
    ),
    (
        "values_first",
        "The values stand left of the weights in the product. Each row of the output is a row of weights times the "
        "values.",
        {"average": lambda w, v: v @ w},
        "",
    ),
    (
        "weights_transposed",
        "The transposed weights multiply the values. Which axis of the weights runs over the keys?",
        {"average": lambda w, v: w.transpose(-2, -1) @ v},
        "",
    ),
    (
        "values_transposed",
        "The values are transposed before the product with the weights. Their rows belong to the keys already.",
        {"average": lambda w, v: w @ v.transpose(-2, -1)},
        "",
    ),
    (
        "output_divided_by_keys",
        "The weighted sum of the values is divided by the number of keys. The weights sum to one already.",
        {"average": lambda w, v: w @ v / v.shape[-2]},
        "",
    ),
    (
        "output_summed",
        "The output is summed over the queries. Each query gets an output of its own.",
        {"average": lambda w, v: (w @ v).sum(-2)},
        "",
    ),
    (
        "output_softmaxed",
        "A softmax is applied to the output. Only scores go through the softmax; the output is an average of values.",
        {"average": lambda w, v: (w @ v).softmax(-1)},
        "",
    ),
    (
        "squeezed",
        "`squeeze()` removes every axis of length one from the results, that of a single query among them.",
        {"finish": lambda output, weights: (output.squeeze(), weights.squeeze())},
        "",
    ),
    (
        "output_squeezed",
        "`squeeze()` removes every axis of length one from the output, that of a single query among them.",
        {"finish": lambda output, weights: (output.squeeze(), weights)},
        "",
    ),
    (
        "weights_squeezed",
        "`squeeze()` removes every axis of length one from the weights, that of a single query among them.",
        {"finish": lambda output, weights: (output, weights.squeeze())},
        "",
    ),
    (
        "weights_returned_transposed",
        "The weights come back with one row per key. A row belongs to a query.",
        {"finish": lambda output, weights: (output, weights.transpose(-2, -1))},
        "",
    ),
    (
        "weights_averaged",
        "The weights that come back are averaged over the queries. The contract asks for those of every query.",
        {"finish": lambda output, weights: (output, weights.mean(-2))},
        "",
    ),
    (
        "weights_detached",
        "The weights that come back are cut off from the graph, so no gradient flows through them.",
        {"finish": lambda output, weights: (output, weights.detach())},
        "",
    ),
    (
        "weights_missing",
        "None comes back in place of the weights. The contract asks for `(output, weights)`.",
        {"finish": lambda output, weights: (output, None)},
        "",
    ),
    (
        "output_twice",
        "The output comes back twice, and the weights do not.",
        {"finish": lambda output, weights: (output, output)},
        "",
    ),
    (
        "only_weights",
        "Only the weights come back. The contract asks for `(output, weights)`.",
        {"finish": lambda output, weights: weights},
        "",
    ),
    (
        "always_causal_without_mask",
        "Without a mask no query sees the keys after it. Causality is not built in here: a caller who wants it passes "
        "a "
        "mask.",
        {"softmax": lambda s: (s if s.isinf().any() else _causal(s)).softmax(-1)},
        CONVENTIONS,
    ),
    (
        "always_causal",
        "No query sees the keys after it, whatever the mask. Causality is not built in here: a caller who wants it "
        "passes a mask.",
        {"softmax": lambda s: _causal(s).softmax(-1)},
        CONVENTIONS,
    ),
    (
        "zero_times_infinity",
        "The mask is multiplied by an infinity. Where it is 0 that is 0 · ∞, which is `nan`. Which operation chooses "
        "instead of multiplying?",
        {"hide": lambda s, mask: s + (~mask) * -INF},
        "",
    ),
    (
        "scores_times_infinity",
        "Masked scores are multiplied by −∞. The sign of the result depends on the sign of the score; a masked score "
        "has "
        "to be −∞ itself.",
        {"hide": lambda s, mask: torch.where(mask, s, s * -INF)},
        "",
    ),
    (
        "filled_with_plus_infinity",
        "Masked scores become +∞, and the softmax gives `nan`. Which score gets weight zero?",
        {"hide": lambda s, mask: s.masked_fill(~mask, INF)},
        "",
    ),
    (
        "filled_with_one",
        "Masked scores become 1. Which score gets a weight of zero beside any other?",
        {"hide": lambda s, mask: s.masked_fill(~mask, 1.0)},
        "",
    ),
    (
        "filled_with_minus_ten_thousand",
        "Masked scores become −10,000. Scores can be as low as that themselves; which score is below all others?",
        {"hide": lambda s, mask: s.masked_fill(~mask, -1e4)},
        "",
    ),
    (
        "filled_with_minus_hundred",
        "Masked scores become −100 or −1,000. Other scores can be lower than that; which score is below all others?",
        {"hide": lambda s, mask: s.masked_fill(~mask, -100.0)},
        "",
    ),
    (
        "filled_with_the_smallest_positive",
        "Masked scores become the smallest *positive* number of the dtype, which is nearly 0: `tiny` is not `min`. The "
        "weight of a score near 0 is not small.",
        {"hide": lambda s, mask: s.masked_fill(~mask, 1e-3)},
        "",
    ),
    (
        "mask_in_the_indices",
        "`scores[~mask] = …` needs a mask of the very shape of the scores, and this one may have fewer axes, or axes "
        "of "
        "length one.",
        {"hide": lambda s, mask: s.clone().index_put_((~mask,), torch.tensor(-INF, dtype=s.dtype))},
        CONVENTIONS,
    ),
    (
        "multiplied_by_a_large_number",
        "The scores are multiplied by the mask and by a large negative number. A product changes the scores that are "
        "allowed; masking replaces those that are not.",
        {"hide": lambda s, mask: s * mask * -1e9},
        "",
    ),
    (
        "allowed_filled_with_zero",
        "The scores of the *allowed* keys become 0, and the masked ones stay. True means *may attend*, and a score of "
        "0 "
        "is not a small score.",
        {"hide": lambda s, mask: s.masked_fill(mask, 0.0)},
        CONVENTIONS,
    ),
    (
        "mask_replaces_scores",
        "The mask replaces the scores: all allowed keys get the same weight, whatever their scores.",
        {"hide": lambda s, mask: torch.zeros_like(s).masked_fill(~mask, -INF)},
        "",
    ),
    (
        "only_whole_mask_used",
        "A mask has an effect only if it has as many axes as the scores. It broadcasts: one of two axes holds for the "
        "whole batch.",
        {"hide": lambda s, mask: _hide(s, mask) if mask.dim() == s.dim() else s},
        CONVENTIONS,
    ),
)

# Wrong ways to bring a mask into shape.
MASKS = (
    (
        "mask_transposed",
        "The mask is transposed: its rows belong to queries already.",
        lambda m: m.mT if m.dim() > 1 else m,
    ),
    (
        "mask_per_sequence",
        "A mask of three axes gets a fourth after its first one, as if it were one mask per sequence. It broadcasts "
        "from the right without help: (H, L_q, L_k) is one mask per head.",
        lambda m: m[:, None] if m.dim() == 3 else m,
    ),
    (
        "axis_after_the_first",
        "A new axis is inserted after the mask's first one, so two axes (L_q, L_k) become (L_q, 1, L_k) and the scores "
        "get more axes than they had. The mask broadcasts as it comes.",
        lambda m: m.unsqueeze(1) if m.dim() > 1 else m,
    ),
    (
        "axis_in_front",
        "A new axis is put in front of the mask, so without a batch the results get an axis too many. The mask "
        "broadcasts as it comes.",
        lambda m: m.unsqueeze(0),
    ),
    (
        "axis_before_the_keys",
        "A new axis is put before the mask's last one: that is right for a mask (L_k,) or (B, L_k) only. This mask "
        "broadcasts as it comes.",
        lambda m: m.unsqueeze(-2),
    ),
    (
        "two_axes_in_front",
        "Two new axes are put in front of the mask, so with fewer than two batch dimensions the results get axes too "
        "many. The mask broadcasts as it comes.",
        lambda m: m[None, None],
    ),
    (
        "taken_for_padding",
        "The mask is taken for (B, L_k) and gets two axes in the middle. It is a mask against the scores already, and "
        "broadcasts as it comes.",
        lambda m: m[:, None, None] if m.dim() > 1 else m,
    ),
    (
        "axis_at_the_end",
        "A new axis is put after the mask's last one, so the keys are lined up with the queries. The mask broadcasts "
        "as "
        "it comes.",
        lambda m: m.unsqueeze(-1),
    ),
    (
        "first_row_for_all",
        "The mask's first row is used for all queries. Each query has a row of its own.",
        lambda m: m[..., :1, :] if m.dim() > 1 else m,
    ),
    (
        "first_sequence_for_all",
        "The mask of the first sequence is used for the whole batch.",
        lambda m: m[:1] if m.dim() > 2 else m,
    ),
    (
        "causal_too",
        "Besides the mask, the keys after each query are hidden. Causality is not built in here: a caller who wants it "
        "passes a mask.",
        lambda m: m & torch.ones(m.shape[-2] if m.dim() > 1 else 1, m.shape[-1], dtype=torch.bool).tril(),
    ),
)

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
    ("outputs_swapped", "output and weights come back in the wrong order", {"finish": lambda o, w: (w, o)}),
    ("only_output", "only the output comes back", {"finish": lambda o, w: o}),
)


def _masked_late(change, scale=_root):
    """Attention whose mask changes the finished weights."""

    def attention(query, key, value, mask=None):
        weights = (_dot_products(query, key) / scale(query, key, value)).softmax(-1)
        weights = weights if mask is None else change(weights, mask)
        return weights @ value, weights

    return attention


def _late(when, divide):
    """Attention without a scale, in which something else is divided by the root."""

    def attention(query, key, value, mask=None):
        output, weights = attention_with(scale=_unscaled)(query, key, value, mask)
        return divide(output, weights, math.sqrt(query.shape[-1]))

    return attention


LATE = (
    (
        "mask_after_softmax_turned_round",
        "The mask is applied to the finished weights, and the wrong way round: the allowed keys get zero. A masked key "
        "has to be out before the softmax.",
        _masked_late(lambda w, mask: w.masked_fill(mask, 0.0)),
    ),
    (
        "minus_infinity_after_softmax",
        "−∞ is filled into the finished weights. It belongs in the scores: the softmax makes a zero of it.",
        _masked_late(lambda w, mask: w.masked_fill(~mask, -INF)),
    ),
    (
        "large_number_after_softmax",
        "A large negative number is filled into the finished weights. It belongs in the scores: the softmax makes a "
        "zero of it.",
        _masked_late(lambda w, mask: w.masked_fill(~mask, -1e9)),
    ),
    (
        "mask_after_softmax_softmax_again",
        "The mask is applied to finished weights, and a second softmax is to repair them. Hide the keys before the "
        "first "
        "one, and none is needed.",
        _masked_late(lambda w, mask: w.masked_fill(~mask, -INF).softmax(-1)),
    ),
    (
        "mask_after_softmax_unscaled",
        "Two things: the mask is applied to the finished weights, so rows do not sum to one; and the scores are not "
        "scaled.",
        _masked_late(lambda w, mask: w * mask, scale=_unscaled),
    ),
    (
        "output_divided_by_root",
        "The root divides the output, not the scores. It is there to keep the softmax from saturating, so it has to "
        "come "
        "before it.",
        _late("output", lambda output, weights, root: (output / root, weights)),
    ),
    (
        "root_between_weights_and_output",
        "The weights are right but for the missing scale, and the returned ones are divided by the root, unlike those "
        "that average the values.",
        _late("weights", lambda output, weights, root: (output, weights / root)),
    ),
)


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


def add_attention_slips(exercise: Exercise) -> None:
    """Add the mistakes of this module to those of `scaled_dot_product_attention`."""
    for key, says, parts, look in SINGLE:
        exercise.misconception(key, says, look=look)(attention_with(**parts))
    for key, says, change in MASKS:
        exercise.misconception(key, says, look=CONVENTIONS)(_masks_changed(change))
    for key, says, solution in LATE:
        exercise.misconception(key, says)(solution)
    for (first, a, scale), (second, b, parts) in itertools.product(SCALES, OTHERS):
        says = f"Two things: {a}; and {b}."
        exercise.misconception(f"{first}_and_{second}", says, look=ROOT)(attention_with(scale=scale, **parts))
    exercise.misconception(
        "mask_for_the_output_only",
        "The output obeys the mask, the returned weights do not: they were kept from before the mask.",
    )(_mask_for_the_output_only)
    exercise.misconception(
        "mask_for_the_weights_only",
        "The returned weights obey the mask, the output does not: it was computed before the mask.",
    )(_mask_for_the_weights_only)
    exercise.misconception(
        "mask_on_the_returned_weights",
        "The mask zeroes weights that are returned, after the output was computed, and their rows no longer sum to "
        "one. "
        "It belongs before the softmax.",
    )(_zeroed_when_returned)
    exercise.misconception(
        "minus_a_bool",
        "`-mask` does not exist for bool tensors. The opposite of a bool mask is its logical *not*.",
        look=CONVENTIONS,
    )(_minus_mask)
    exercise.misconception(
        "values_masked",
        "The mask is applied to the values. A masked key still gets its weight then, and takes it from the others: "
        "hide "
        "its score.",
    )(_columns_of_the_mask)
    exercise.misconception(
        "float32_inside",
        "Somewhere inside, the numbers become float32, and float64 input loses half of its digits.",
    )(_floats(attention_with()))
