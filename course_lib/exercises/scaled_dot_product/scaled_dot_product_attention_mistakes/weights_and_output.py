"""Mistakes in `scaled_dot_product_attention`: the softmax, the average, and what is returned."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.scaled_dot_product.scaled_dot_product_attention_mistakes.parts import attention_with

mistake = Mistakes()


@mistake
def no_softmax(query, key, value, mask=None):
    """The scores are used as weights, without a softmax. The weights of a query have to be positive and sum to one."""
    return attention_with(softmax=lambda s: s)(query, key, value, mask)


@mistake
def not_normalised(query, key, value, mask=None):
    """The exponentials of the scores are used as weights. They are positive, but do not sum to one yet."""
    return attention_with(softmax=torch.exp)(query, key, value, mask)


@mistake
def softmax_twice(query, key, value, mask=None):
    """The softmax is applied twice. The second one flattens the weights, and gives masked keys a weight again."""
    return attention_with(softmax=lambda s: s.softmax(-1).softmax(-1))(query, key, value, mask)


@mistake
def softmax_of_everything(query, key, value, mask=None):
    """One softmax runs over all entries, batch dimensions included. Each query has its own unit of attention."""
    return attention_with(softmax=lambda s: s.flatten().softmax(0).view(s.shape))(query, key, value, mask)


@mistake(look="attention: The softmax turns scores into weights")
def largest_of_all(query, key, value, mask=None):
    """The largest score of the whole tensor is subtracted from every row. In rows far below it, all exponentials become
    0; each row may have its own constant."""
    return attention_with(softmax=lambda s: (lambda e: e / e.sum(-1, keepdim=True))((s - s.max()).exp()))(
        query, key, value, mask
    )


@mistake
def softmax_axis_dropped(query, key, value, mask=None):
    """The sum of the exponentials has lost its axis, so the division lines it up with the wrong one. There is an
    option that keeps the axis."""
    return attention_with(softmax=lambda s: (lambda e: e / e.sum(-1))((s - s.amax(-1, keepdim=True)).exp()))(
        query, key, value, mask
    )


@mistake
def softmax_axis_dropped_unstable(query, key, value, mask=None):
    """The sum of the exponentials has lost its axis, so the division lines it up with the wrong one; and large
    scores overflow."""
    return attention_with(softmax=lambda s: s.exp() / s.exp().sum(-1))(query, key, value, mask)


@mistake
def softmax_in_float32(query, key, value, mask=None):
    """The softmax is computed in float32 whatever comes in, so in float64 half of the digits are lost."""
    return attention_with(softmax=lambda s: s.float().softmax(-1).to(s.dtype))(query, key, value, mask)


@mistake
def weights_entry_by_entry(query, key, value, mask=None):
    """`*` multiplies weights and values entry by entry. The output is a weighted sum over the keys: a matrix
    product."""
    return attention_with(average=torch.mul)(query, key, value, mask)


@mistake
def values_first(query, key, value, mask=None):
    """The values are on the left of the weights in the product. Each row of the output is a row of weights times the
    values."""
    return attention_with(average=lambda w, v: v @ w)(query, key, value, mask)


@mistake
def weights_transposed(query, key, value, mask=None):
    """The transposed weights multiply the values. Which axis of the weights runs over the keys?"""
    return attention_with(average=lambda w, v: w.transpose(-2, -1) @ v)(query, key, value, mask)


@mistake
def values_transposed(query, key, value, mask=None):
    """The values are transposed before the product with the weights. Their rows belong to the keys already."""
    return attention_with(average=lambda w, v: w @ v.transpose(-2, -1))(query, key, value, mask)


@mistake
def output_divided_by_keys(query, key, value, mask=None):
    """The weighted sum of the values is divided by the number of keys. The weights sum to one already."""
    return attention_with(average=lambda w, v: w @ v / v.shape[-2])(query, key, value, mask)


@mistake
def output_summed(query, key, value, mask=None):
    """The output is summed over the queries. Each query gets an output of its own."""
    return attention_with(average=lambda w, v: (w @ v).sum(-2))(query, key, value, mask)


@mistake
def output_softmaxed(query, key, value, mask=None):
    """A softmax is applied to the output. Only scores go through the softmax; the output is an average of values."""
    return attention_with(average=lambda w, v: (w @ v).softmax(-1))(query, key, value, mask)


@mistake
def squeezed(query, key, value, mask=None):
    """`squeeze()` removes every axis of length one from the results, including that of a single query."""
    return attention_with(finish=lambda output, weights: (output.squeeze(), weights.squeeze()))(query, key, value, mask)


@mistake
def output_squeezed(query, key, value, mask=None):
    """`squeeze()` removes every axis of length one from the output, including that of a single query."""
    return attention_with(finish=lambda output, weights: (output.squeeze(), weights))(query, key, value, mask)


@mistake
def weights_squeezed(query, key, value, mask=None):
    """`squeeze()` removes every axis of length one from the weights, including that of a single query."""
    return attention_with(finish=lambda output, weights: (output, weights.squeeze()))(query, key, value, mask)


@mistake
def weights_returned_transposed(query, key, value, mask=None):
    """The weights are returned with one row per key. A row belongs to a query."""
    return attention_with(finish=lambda output, weights: (output, weights.transpose(-2, -1)))(query, key, value, mask)


@mistake
def weights_averaged(query, key, value, mask=None):
    """The returned weights are averaged over the queries. The contract asks for those of every query."""
    return attention_with(finish=lambda output, weights: (output, weights.mean(-2)))(query, key, value, mask)


@mistake
def weights_detached(query, key, value, mask=None):
    """The returned weights are detached from the graph, so no gradient flows through them."""
    return attention_with(finish=lambda output, weights: (output, weights.detach()))(query, key, value, mask)


@mistake
def weights_missing(query, key, value, mask=None):
    """None is returned instead of the weights. The contract asks for `(output, weights)`."""
    return attention_with(finish=lambda output, weights: (output, None))(query, key, value, mask)


@mistake
def output_twice(query, key, value, mask=None):
    """The output is returned twice, and the weights are not."""
    return attention_with(finish=lambda output, weights: (output, output))(query, key, value, mask)


@mistake
def only_weights(query, key, value, mask=None):
    """Only the weights are returned. The contract asks for `(output, weights)`."""
    return attention_with(finish=lambda output, weights: weights)(query, key, value, mask)
