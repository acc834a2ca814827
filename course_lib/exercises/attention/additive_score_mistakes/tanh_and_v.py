"""Mistakes in `additive_score`: the hidden layer, and the sum over it."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.attention.additive_score_mistakes.parts import additive, swap

mistake = Mistakes()


@mistake
def no_tanh(query, key, w_query, w_key, v):
    """The hidden layer has no nonlinearity. Without one the score is a sum of something from the query and something
    from the key, and in the softmax the query's share cancels."""
    return additive(activation=lambda h: h)(query, key, w_query, w_key, v)


@mistake
def tanh_at_the_end(query, key, w_query, w_key, v):
    """The tanh is applied to the finished score. It belongs to the hidden layer, before the product with v."""
    return additive(activation=lambda h: h, after=torch.tanh)(query, key, w_query, w_key, v)


@mistake
def tanh_of_each(query, key, w_query, w_key, v):
    """The tanh is applied to queries and keys separately, and the results are added. Queries and keys interact only if
    they are added *inside* the tanh."""
    return (torch.tanh(query @ w_query.T).unsqueeze(-2) + torch.tanh(key @ w_key.T).unsqueeze(-3)) @ v


@mistake
def tanh_twice(query, key, w_query, w_key, v):
    """There is one tanh too many: the formula has only one, between the sum and the product with v."""
    return additive(after=torch.tanh)(query, key, w_query, w_key, v)


@mistake
def sigmoid_for_tanh(query, key, w_query, w_key, v):
    """The hidden layer uses a sigmoid. A sigmoid lies between 0 and 1; the tanh in the formula lies between −1 and
    1."""
    return additive(activation=torch.sigmoid)(query, key, w_query, w_key, v)


@mistake
def relu_for_tanh(query, key, w_query, w_key, v):
    """The hidden layer uses a ReLU. The formula has a tanh, which bounds every hidden number."""
    return additive(activation=torch.relu)(query, key, w_query, w_key, v)


@mistake
def tan_for_tanh(query, key, w_query, w_key, v):
    """This is the tangent of an angle. The formula has the hyperbolic tangent, which runs from −1 to 1 without a
    pole."""
    return additive(activation=torch.tan)(query, key, w_query, w_key, v)


@mistake
def tanh_by_exponentials(query, key, w_query, w_key, v):
    """The tanh is written with exponentials that overflow for large hidden values. PyTorch has one that does not."""
    return additive(activation=lambda h: (h.exp() - (-h).exp()) / (h.exp() + (-h).exp()))(query, key, w_query, w_key, v)


@mistake
def tanh_by_one_exponential(query, key, w_query, w_key, v):
    """The tanh is written as a fraction with exponentials in numerator and denominator; for large hidden values that is
    inf / inf. PyTorch has a tanh that stays in range."""
    return additive(activation=lambda h: ((2 * h).exp() - 1) / ((2 * h).exp() + 1))(query, key, w_query, w_key, v)


@mistake
def v_forgotten(query, key, w_query, w_key, v):
    """The hidden numbers are simply added up. `v` says how much each of them counts."""
    return additive(reduce=lambda h, v: h.sum(-1))(query, key, w_query, w_key, v)


@mistake
def mean_for_v(query, key, w_query, w_key, v):
    """The hidden numbers are averaged. `v` says how much each of them counts."""
    return additive(reduce=lambda h, v: h.mean(-1))(query, key, w_query, w_key, v)


@mistake
def v_averaged(query, key, w_query, w_key, v):
    """The products with `v` are averaged over the hidden layer. A dot product is their sum."""
    return additive(reduce=lambda h, v: (h * v).mean(-1))(query, key, w_query, w_key, v)


@mistake
def v_inside(query, key, w_query, w_key, v):
    """`v` is multiplied in before the tanh. In the formula it weights the output of the tanh."""
    return torch.tanh(((query @ w_query.T).unsqueeze(-2) + (key @ w_key.T).unsqueeze(-3)) * v).sum(-1)


@mistake
def not_summed(query, key, w_query, w_key, v):
    """Each hidden number is multiplied by its entry of `v`, but the products are not summed. There is one score per
    pair, so the last axis has to be summed."""
    return additive(reduce=torch.mul)(query, key, w_query, w_key, v)


@mistake
def v_from_the_left(query, key, w_query, w_key, v):
    """`v` is on the left of the hidden layer in the product, so it is summed with the wrong axis. A vector on the right
    of `@` is summed with the last axis."""
    return additive(reduce=lambda h, v: v @ h)(query, key, w_query, w_key, v)


@mistake
def matrix_from_the_left(query, key, w_query, w_key, v):
    """The matrices are on the left of the rows, as in the formula, which is written for column vectors. For row
    vectors, the matrix comes second and is transposed."""
    return torch.tanh((w_query @ query).unsqueeze(-2) + (w_key @ key).unsqueeze(-3)) @ v


@mistake
def features_not_last(query, key, w_query, w_key, v):
    """The hidden layer has its features before the queries and keys, and the product with `v` sums over the last
    axis, which is that of the keys. Keep the features last."""
    return torch.tanh((w_query @ swap(query)).unsqueeze(-1) + (w_key @ swap(key)).unsqueeze(-2)) @ v
