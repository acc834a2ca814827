"""Mistakes in `scaled_dot_product_attention`: the common ones, from the scale to the mask."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._headings import DIVIDE_BY_ROOT
from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.scaled_dot_product.scaled_dot_product_attention_mistakes.parts import attention_with
from course_lib.masking import masked_softmax

mistake = Mistakes()

MASKS = "scaled_dot_product: What an attention mask does"


def _attention(query, key, value, mask=None):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (..., L_q, L_k)
    weights = torch.softmax(scores, dim=-1) if mask is None else masked_softmax(scores, mask)
    return weights @ value, weights  # (..., L_q, d_v)


def _variant(scale=None, transform=None, fill=float("-inf"), dim=-1):
    """Attention with one step replaced."""

    def attention(query, key, value, mask=None):
        scores = query @ key.transpose(-2, -1)
        scores = scores / (math.sqrt(query.shape[-1]) if scale is None else scale(query, key, value))
        if mask is not None:
            scores = scores.masked_fill(~mask, fill)
        weights = (transform or torch.softmax)(scores, dim)
        return weights @ value, weights

    return attention


@mistake(look=DIVIDE_BY_ROOT)
def no_scale(query, key, value, mask=None):
    """The scores are used as they are. What keeps their spread the same when the vectors get longer?"""
    return _variant(scale=lambda q, k, v: 1.0)(query, key, value, mask)


@mistake(look=DIVIDE_BY_ROOT)
def scale_without_root(query, key, value, mask=None):
    """The scores are divided by d_k. The spread of a dot product grows more slowly than that: how does it grow, and
    why?"""
    return _variant(scale=lambda q, k, v: q.shape[-1])(query, key, value, mask)


@mistake(look=DIVIDE_BY_ROOT)
def multiplied_by_root(query, key, value, mask=None):
    """The scores are multiplied by the root, so they spread more with every feature instead of less."""
    return _variant(scale=lambda q, k, v: q.shape[-1] ** -0.5)(query, key, value, mask)


@mistake(look=DIVIDE_BY_ROOT)
def scale_by_length(query, key, value, mask=None):
    """The divisor grows with the number of keys. How many terms does one dot product sum: one per key, or one per
    feature?"""
    return _variant(scale=lambda q, k, v: k.shape[-2] ** 0.5)(query, key, value, mask)


@mistake
def scale_by_value_width(query, key, value, mask=None):
    """The divisor comes from the width of the values. Values take no part in the scores: which features are multiplied
    there?"""
    return _variant(scale=lambda q, k, v: v.shape[-1] ** 0.5)(query, key, value, mask)


@mistake
def softmax_over_queries(query, key, value, mask=None):
    """Each column of the weights sums to one, but each row should. Every query shares out one unit of attention: over
    which axis?"""
    return _variant(dim=-2)(query, key, value, mask)


@mistake
def softmax_first_axis(query, key, value, mask=None):
    """The softmax runs over the first axis. That is wrong for any number of batch dimensions; count axes from the
    right."""
    return _variant(dim=0)(query, key, value, mask)


@mistake
def softmax_dim_1(query, key, value, mask=None):
    """The softmax runs over axis 1, counted from the left. That is the axis of the keys only if there is no batch;
    count from the right."""
    return _variant(dim=1)(query, key, value, mask)


@mistake(look=MASKS)
def mask_turned_round(query, key, value, mask=None):
    """Attention goes exactly where the mask forbids it. True means *may attend*; check the condition of the fill."""
    return attention_with(hide=lambda scores, mask: scores.masked_fill(mask, float("-inf")))(query, key, value, mask)


@mistake(look=MASKS)
def mask_ignored(query, key, value, mask=None):
    """The weights do not depend on the mask."""
    return _attention(query, key, value)


@mistake(look=MASKS)
def mask_filled_with_zero(query, key, value, mask=None):
    """Masked scores become 0, by filling or multiplying. A score of 0 is not a small score: its weight is e⁰ over the
    sum. Which score gives weight zero?"""
    return _variant(fill=0.0)(query, key, value, mask)


@mistake(look="attention: The softmax turns scores into weights")
def unstable_softmax(query, key, value, mask=None):
    """Large scores overflow: e¹⁰⁰ is more than a float32 can hold. Subtracting a constant from all scores of a row does
    not change the weights."""
    return _variant(transform=lambda s, dim: s.exp() / s.exp().sum(dim, keepdim=True))(query, key, value, mask)


@mistake(look=MASKS)
def mask_after_softmax(query, key, value, mask=None):
    """The mask is applied to the finished weights, so the remaining weights of a row sum to less than one. At which
    step must a key be excluded?"""
    weights = (query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])).softmax(-1)
    if mask is not None:
        weights = weights * mask
    return weights @ value, weights


@mistake(look=MASKS)
def mask_added(query, key, value, mask=None):
    """The mask is added as it is: True adds 1 to a score. Use a bool mask to select scores, not as a number to add."""
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores + mask
    weights = scores.softmax(-1)
    return weights @ value, weights


@mistake
def if_mask(query, key, value, mask=None):
    """`if mask:` needs one truth value for a whole tensor, which is not defined. Test whether there is a mask
    instead."""
    return _attention(query, key, value, mask if mask else None)


@mistake
def transposes_all_axes(query, key, value, mask=None):
    """The key is transposed for a tensor of two axes: `.T` reverses all axes, and `transpose(0, 1)` exchanges the first
    two. With a batch, the matrix is in the last two axes."""
    scores = query @ key.T / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(-1)
    return weights @ value, weights


@mistake
def transposes_axes_1_and_2(query, key, value, mask=None):
    """`transpose(1, 2)` counts axes from the left and works only with exactly one batch dimension. Counted from the
    right, the axes fit any number."""
    scores = query @ key.transpose(1, 2) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(-1)
    return weights @ value, weights


@mistake
def outputs_swapped(query, key, value, mask=None):
    """Weights and output are returned in the wrong order: the contract says `(output, weights)`."""
    return _attention(query, key, value, mask)[::-1]


@mistake
def only_output(query, key, value, mask=None):
    """Only the output is returned. The contract asks for `(output, weights)`."""
    return _attention(query, key, value, mask)[0]


@mistake
def scores_returned(query, key, value, mask=None):
    """The second result holds the scores before the softmax; it should hold the weights."""
    output, _ = _attention(query, key, value, mask)
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    return output, scores if mask is None else scores.masked_fill(~mask, float("-inf"))


def _implicit_softmax(scores, dim):
    return torch.softmax(scores, 0 if scores.dim() in (1, 3) else 1)


def _on_scores(change):
    """Attention with something done to the scaled and masked scores instead of a softmax."""
    return _variant(transform=lambda scores, dim: change(scores))


@mistake
def softmax_without_dim(query, key, value, mask=None):
    """A softmax without `dim` chooses an axis according to the number of axes, and for three it takes the first. Name
    the axis of the keys."""
    return _variant(transform=_implicit_softmax)(query, key, value, mask)


@mistake
def softmax_over_all(query, key, value, mask=None):
    """One softmax runs over all queries and keys together. Each query shares out its own unit of attention."""
    return _on_scores(lambda scores: scores.flatten(-2).softmax(-1).view_as(scores))(query, key, value, mask)


@mistake
def sigmoid(query, key, value, mask=None):
    """A sigmoid looks at each score alone; the weights of a query have to compete and sum to one."""
    return _on_scores(torch.sigmoid)(query, key, value, mask)


@mistake
def logarithm_of_the_weights(query, key, value, mask=None):
    """These are logarithms of weights: they are negative, and their exponentials sum to one."""
    return _on_scores(lambda scores: scores.log_softmax(-1))(query, key, value, mask)


@mistake
def key_not_transposed(query, key, value, mask=None):
    """Queries are multiplied by the keys without a transpose. A score is one query times one key, so which axes are
    summed over?"""
    return _without_transpose(query, key, value, mask)


@mistake
def hard_choice(query, key, value, mask=None):
    """Only the best key gets a weight. Attention distributes the weight: the softmax is the soft form of this
    choice."""
    return _on_scores(lambda scores: torch.zeros_like(scores).scatter(-1, scores.argmax(-1, keepdim=True), 1.0))(
        query, key, value, mask
    )


@mistake
def divided_by_the_sum(query, key, value, mask=None):
    """The scores are divided by their sum as they are. Scores can be negative, and cancel: what makes them positive
    first?"""
    return _on_scores(lambda scores: scores / scores.sum(-1, keepdim=True))(query, key, value, mask)


@mistake(look=DIVIDE_BY_ROOT)
def scale_after_softmax(query, key, value, mask=None):
    """The division comes after the softmax, so the weights no longer sum to one. The division controls the spread of
    the scores."""
    return _variant(scale=lambda q, k, v: 1.0, transform=lambda s, dim: s.softmax(dim) / s.shape[-1] ** 0.5)(
        query, key, value, mask
    )


@mistake(look=DIVIDE_BY_ROOT)
def weights_divided_by_root(query, key, value, mask=None):
    """The weights are divided by √d_k after the softmax, so they no longer sum to one. Divide the scores, because their
    spread is the problem."""
    return _scaled_late(query, key, value, mask)


@mistake(look=DIVIDE_BY_ROOT)
def scale_by_number_of_queries(query, key, value, mask=None):
    """The divisor grows with the number of queries. How many terms does one dot product sum up?"""
    return _variant(scale=lambda q, k, v: q.shape[-2] ** 0.5)(query, key, value, mask)


@mistake
def scale_by_first_axis(query, key, value, mask=None):
    """The divisor comes from the first axis of the query. The number of features is the last axis."""
    return _variant(scale=lambda q, k, v: q.shape[0] ** 0.5)(query, key, value, mask)


@mistake
def scale_by_axis_1(query, key, value, mask=None):
    """The divisor comes from axis 1 of the query. The number of features is the last axis, with any number of batch
    axes."""
    return _variant(scale=lambda q, k, v: q.shape[1] ** 0.5)(query, key, value, mask)


@mistake
def cosine(query, key, value, mask=None):
    """The vectors are normalised first, so this is the cosine between them. Attention takes the dot product, lengths
    included."""
    return _attention(
        torch.nn.functional.normalize(query, dim=-1) * query.shape[-1] ** 0.5,
        torch.nn.functional.normalize(key, dim=-1),
        value,
        mask,
    )


@mistake
def filled_with_minus_one(query, key, value, mask=None):
    """Masked scores are set to a moderate negative number. It still leaves a weight; which score leaves none?"""
    return _variant(fill=-1.0)(query, key, value, mask)


@mistake
def filled_with_large_number(query, key, value, mask=None):
    """Masked scores are set to a large *positive* number, so they get all of the weight."""
    return _variant(fill=1e9)(query, key, value, mask)


@mistake
def opposite_added(query, key, value, mask=None):
    """The mask works with the opposite sign: allowed keys become impossible, and masked keys get the weight.
    True means *may attend*."""
    return _with_added(query, key, value, mask, -1e9)


@mistake
def keys_averaged(query, key, value, mask=None):
    """The keys are averaged. The keys determine the weights, but the values should be averaged."""
    return (lambda weights: (weights @ key, weights))(_attention(query, key, value, mask)[1])


@mistake
def raw_scores_average(query, key, value, mask=None):
    """The values are weighted by the raw scores; the softmax is computed, but only returned."""
    return _raw(query, key, value, mask)


@mistake
def weights_from_values(query, key, value, mask=None):
    """The scores compare queries with values. The values take no part in the scores: which tensor does?"""
    return (lambda weights: (weights @ value, weights))(_attention(query, value, value, mask)[1])


@mistake
def mask_in_bool_arithmetic(query, key, value, mask=None):
    """`1 - mask` or `-mask` does not work with bool tensors: they are not numbers. The opposite of a bool mask is
    `~mask`."""
    return _attention(query, key, value, None if mask is None else (1 - mask).bool())


@mistake
def query_scaled_in_place(query, key, value, mask=None):
    """The query is divided in place, and it belongs to the caller. `x / y` creates a new tensor; `x /= y` changes the
    old one."""
    return _in_place(query, key, value, mask)


def _without_transpose(query, key, value, mask):
    scores = query @ key / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(-1)
    return weights @ value, weights


def _scaled_late(query, key, value, mask):
    _, weights = _variant(scale=lambda q, k, v: 1.0)(query, key, value, mask)
    weights = weights / query.shape[-1] ** 0.5
    return weights @ value, weights


def _with_added(query, key, value, mask, number):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    weights = (scores if mask is None else scores + mask * number).softmax(-1)
    return weights @ value, weights


def _raw(query, key, value, mask):
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    scores = scores if mask is None else scores.masked_fill(~mask, 0.0)
    return scores @ value, _attention(query, key, value, mask)[1]


def _in_place(query, key, value, mask):
    query /= query.shape[-1] ** 0.5
    return _attention(query * query.shape[-1] ** 0.5, key, value, mask)
