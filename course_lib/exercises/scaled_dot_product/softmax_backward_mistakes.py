"""The mistakes in `softmax_backward`."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.scaled_dot_product.softmax_backward import softmax_backward

mistake = Mistakes()


@mistake
def independent_weights(weights, grad_weights):
    """The weights are treated as if each depended on its own score only, like a sigmoid: w (1 − w). They share one
    sum, so every score moves every weight."""
    return grad_weights * weights * (1 - weights)


@mistake
def mean_forgotten(weights, grad_weights):
    """The arriving gradient is only multiplied by the weights. If all arriving gradients are equal, what
    should the scores do?"""
    return weights * grad_weights


@mistake
def plain_mean(weights, grad_weights):
    """The plain mean of the arriving gradients is subtracted. It should be their average under the weights."""
    return weights * (grad_weights - grad_weights.mean(-1, keepdim=True))


@mistake
def sum_over_everything(weights, grad_weights):
    """The sum runs over all rows together. Each row has its own softmax."""
    return weights * (grad_weights - (grad_weights * weights).sum())


@mistake
def sum_over_first_axis(weights, grad_weights):
    """The sum runs over the first axis. The softmax was taken over the last one."""
    return weights * (grad_weights - (grad_weights * weights).sum(0, keepdim=True))


@mistake
def outer_weight_missing(weights, grad_weights):
    """The average is subtracted, but the result is not multiplied by the weights: how far a score can change its own
    weight depends on that weight."""
    return grad_weights - (grad_weights * weights).sum(-1, keepdim=True)


@mistake
def sign_turned(weights, grad_weights):
    """Right except for the sign: a score must rise when its key is better than the average."""
    return -softmax_backward(weights, grad_weights)


@mistake
def sum_axis_dropped(weights, grad_weights):
    """The sum over the row has lost its axis, so it lines up with the wrong axis of `grad_weights`."""
    return weights * (grad_weights - (grad_weights * weights).sum(-1))


@mistake
def second_term_unweighted(weights, grad_weights):
    """The full average is subtracted from each score. How much is subtracted depends on the score's own weight."""
    return weights * grad_weights - (weights * grad_weights).sum(-1, keepdim=True)


@mistake
def sum_without_weights(weights, grad_weights):
    """The sum of the arriving gradients is subtracted. It should be their average under the weights."""
    return weights * (grad_weights - grad_weights.sum(-1, keepdim=True))


@mistake
def plus_for_minus(weights, grad_weights):
    """The second term has the wrong sign: raising one score lowers the other weights."""
    return weights * (grad_weights + (grad_weights * weights).sum(-1, keepdim=True))


@mistake
def softmax_again(weights, grad_weights):
    """Another softmax is applied to the weights. They are already the output of one."""
    return softmax_backward(weights.softmax(-1), grad_weights)


@mistake
def sum_over_rows(weights, grad_weights):
    """The sum runs over the rows, axis −2. The softmax was taken over the last axis."""
    return weights * (grad_weights - (grad_weights * weights).sum(-2, keepdim=True))


@mistake
def one_row_jacobian(weights, grad_weights):
    """The matrix of derivatives is built for one row. With a batch, there is one such matrix per row; the sum needs
    none of them."""
    return (torch.diag(weights) - torch.outer(weights, weights)) @ grad_weights


@mistake
def exponent_forgotten(weights, grad_weights):
    """The gradient is returned unchanged. There is a softmax between scores and weights, so it has to change."""
    return grad_weights.clone()


def _row_sum(product):
    return product.sum(-1, keepdim=True)


@mistake
def mean_for_sum(w, g):
    """The products of weights and gradients are averaged. The average under the weights is their *sum*, since the
    weights sum to one."""
    return w * (g - (w * g).mean(-1, keepdim=True))


@mistake
def sigmoid_factor_too(w, g):
    """There is an extra factor (1 − w): the contribution of the other weights is already in the sum."""
    return w * (1 - w) * (g - _row_sum(w * g))


@mistake
def diagonal_taken_twice(w, g):
    """The weight's own entry is subtracted twice: once as (1 − w), and once in the sum over all entries."""
    return w * (1 - w) * g - w * _row_sum(w * g)


@mistake
def sum_of_others_added(w, g):
    """The terms of the other weights are added instead of subtracted: raising one score lowers the other weights."""
    return w * (1 - w) * g + w * (_row_sum(w * g) - w * g)


@mistake
def diagonal_forgotten(w, g):
    """Only the terms −w_i w_j are there. A score also raises its own weight: what is the entry on the diagonal?"""
    return -w * _row_sum(w * g)


@mistake
def only_the_others(w, g):
    """A score's effect on its own weight is missing; only the terms of the other weights are there."""
    return -w * (_row_sum(w * g) - w * g)


@mistake
def weights_squared(w, g):
    """The second term has the square of the weight as its factor; it should be the weight itself."""
    return w * g - w**2 * _row_sum(w * g)


@mistake
def weights_squared_in_the_sum(w, g):
    """The sum has squared weights. The average of the gradients is taken under the weights themselves."""
    return w * (g - _row_sum(w**2 * g))


@mistake
def square_of_weights_for_average(w, g):
    """The gradient is missing in the sum: it contains the weights alone."""
    return w * (g - _row_sum(w * w))


@mistake
def weights_sum_for_average(w, g):
    """The sum of the weights, which is 1, is subtracted. It should be the average of the gradients under the
    weights."""
    return w * (g - _row_sum(w))


@mistake
def one_minus_weights_outside(w, g):
    """The outer factor is (1 − w). How far can a score change its own weight when w is nearly 0?"""
    return (1 - w) * (g - _row_sum(w * g))


@mistake
def average_taken_from_weights(w, g):
    """Weights and gradients are exchanged: the average is subtracted from the weights, and the gradients are the
    factor."""
    return g * (w - _row_sum(w * g))


@mistake
def divided_by_weights(w, g):
    """The gradient is divided by the weights. Where a weight is 0, the result is infinite; the derivative of the
    exponential gives a factor, not a divisor."""
    return (g - _row_sum(w * g)) / w


@mistake
def logarithm(w, g):
    """This is the gradient of a *log*-softmax: there the gradients themselves are summed, and w is the factor of the
    sum."""
    return g - w * _row_sum(g)


@mistake
def matrix_product_for_the_sum(w, g):
    """`@` with a transposed factor compares every row with every other one. Each row needs the sum of its own
    products only."""
    return w * (g - w @ g.mT) if w.dim() > 1 else w * (g - w @ g)


@mistake
def jacobian_times_rows(w, g):
    """Each row's matrix of derivatives is multiplied by all rows of gradients, as if they were columns. A
    row of gradients needs an axis of length one to become a column."""
    return (torch.diag_embed(w) - w.unsqueeze(-1) * w.unsqueeze(-2)) @ g


@mistake
def jacobian_entry_by_entry(w, g):
    """The matrix of derivatives is multiplied by the gradients entry by entry, and not summed."""
    return (torch.diag_embed(w) - w.unsqueeze(-1) * w.unsqueeze(-2)) * g.unsqueeze(-1)


@mistake
def column_left_over(w, g):
    """The numbers are right, but a last axis of length one is left over from the product with the matrix."""
    return (w * (g - _row_sum(w * g))).unsqueeze(-1)


@mistake
def one_axis_too_few_for_vectors(w, g):
    """The sum runs over axis 1, counted from the left. A vector has none, and with a batch the rows are elsewhere."""
    return w * (g - (w * g).sum(1, keepdim=True))


@mistake
def float32_inside(w, g):
    """Somewhere inside, the numbers become float32, and float64 input loses half of its digits."""
    return (w.float() * (g.float() - _row_sum(w.float() * g.float()))).to(w.dtype)
