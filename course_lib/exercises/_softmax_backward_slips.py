"""Further mistakes in `softmax_backward` and `attention_flops`."""

from __future__ import annotations

import torch

from course_lib.exercises._exercise import Exercise

__all__ = ["add_backward_slips", "add_flops_slips"]


def _row_sum(product):
    return product.sum(-1, keepdim=True)


def add_backward_slips(exercise: Exercise) -> None:
    """Add the mistakes of this module to those of `softmax_backward`."""
    for key, says, solution in (
        (
            "mean_for_sum",
            "The products of weights and gradients are averaged. The average under the weights is their *sum*, since "
            "the weights sum to one.",
            lambda w, g: w * (g - (w * g).mean(-1, keepdim=True)),
        ),
        (
            "sigmoid_factor_too",
            "There is a factor (1 − w) too many: the part of the other weights is in the sum already.",
            lambda w, g: w * (1 - w) * (g - _row_sum(w * g)),
        ),
        (
            "diagonal_taken_twice",
            "The weight's own entry is taken off twice: once as (1 − w), and once in the sum over all entries.",
            lambda w, g: w * (1 - w) * g - w * _row_sum(w * g),
        ),
        (
            "sum_of_others_added",
            "The terms of the other weights are added instead of taken off: raising one score lowers the other "
            "weights.",
            lambda w, g: w * (1 - w) * g + w * (_row_sum(w * g) - w * g),
        ),
        (
            "diagonal_forgotten",
            "Only the terms −w_i w_j are there. A score also moves its own weight up: what is the entry on the "
            "diagonal?",
            lambda w, g: -w * _row_sum(w * g),
        ),
        (
            "only_the_others",
            "A score's effect on its own weight is missing; only the terms of the other weights are there.",
            lambda w, g: -w * (_row_sum(w * g) - w * g),
        ),
        (
            "weights_squared",
            "The second term has the square of the weight as its factor; the weight itself belongs there.",
            lambda w, g: w * g - w**2 * _row_sum(w * g),
        ),
        (
            "weights_squared_in_the_sum",
            "The sum has squared weights. The average of the gradients is taken under the weights themselves.",
            lambda w, g: w * (g - _row_sum(w**2 * g)),
        ),
        (
            "square_of_weights_for_average",
            "The gradient is missing in the sum: it contains the weights alone.",
            lambda w, g: w * (g - _row_sum(w * w)),
        ),
        (
            "weights_sum_for_average",
            "The sum of the weights, which is 1, is taken off. It should be the average of the gradients under the "
            "weights.",
            lambda w, g: w * (g - _row_sum(w)),
        ),
        (
            "one_minus_weights_outside",
            "The factor outside is (1 − w). How far a score can move its own weight: what remains of that when w is "
            "nearly 0?",
            lambda w, g: (1 - w) * (g - _row_sum(w * g)),
        ),
        (
            "average_taken_from_weights",
            "Weights and gradients have changed places: the average is taken from the weights, and the gradients are "
            "the factor.",
            lambda w, g: g * (w - _row_sum(w * g)),
        ),
        (
            "divided_by_weights",
            "The gradient is divided by the weights. Where a weight is 0 that is infinite; the derivative of the "
            "exponential multiplies.",
            lambda w, g: (g - _row_sum(w * g)) / w,
        ),
        (
            "logarithm",
            "This is the gradient of a *log*-softmax: there the gradients themselves are summed, and w is the factor "
            "of "
            "the sum.",
            lambda w, g: g - w * _row_sum(g),
        ),
        (
            "matrix_product_for_the_sum",
            "`@` with a transposed factor compares every row with every other one. Each row needs the sum of its own "
            "products only.",
            lambda w, g: w * (g - w @ g.mT) if w.dim() > 1 else w * (g - w @ g),
        ),
        (
            "jacobian_times_rows",
            "Each row has a matrix of derivatives, and it is multiplied by all rows of gradients as if they were "
            "columns. A row of gradients needs an axis of length one to become a column.",
            lambda w, g: (torch.diag_embed(w) - w.unsqueeze(-1) * w.unsqueeze(-2)) @ g,
        ),
        (
            "jacobian_entry_by_entry",
            "The matrix of derivatives is multiplied by the gradients entry by entry, and not summed.",
            lambda w, g: (torch.diag_embed(w) - w.unsqueeze(-1) * w.unsqueeze(-2)) * g.unsqueeze(-1),
        ),
        (
            "column_left_over",
            "The numbers are right, but a last axis of length one is left over from the product with the matrix.",
            lambda w, g: (w * (g - _row_sum(w * g))).unsqueeze(-1),
        ),
        (
            "one_axis_too_few_for_vectors",
            "The sum runs over axis 1, counted from the left. A vector has none, and with a batch the rows are "
            "elsewhere.",
            lambda w, g: w * (g - (w * g).sum(1, keepdim=True)),
        ),
        (
            "float32_inside",
            "Somewhere inside, the numbers become float32, and float64 input loses half of its digits.",
            lambda w, g: (w.float() * (g.float() - _row_sum(w.float() * g.float()))).to(w.dtype),
        ),
    ):
        exercise.misconception(key, says)(solution)


def add_flops_slips(exercise: Exercise) -> None:
    """Add the mistakes of this module to those of `attention_flops`."""
    for key, says, solution in (
        (
            "two_in_the_first_product_only",
            "A multiply-add counts as 2 in both products; in the second one the 2 is missing.",
            lambda q, k, d, v: 2 * q * k * d + q * k * v,
        ),
        (
            "two_in_the_second_product_only",
            "A multiply-add counts as 2 in both products; in the first one the 2 is missing. Brackets?",
            lambda q, k, d, v: q * k * d + 2 * q * k * v,
        ),
        (
            "output_without_keys",
            "The second product is counted as queries times d_k times d_v. Weights times values sums over the keys.",
            lambda q, k, d, v: 2 * q * k * d + 2 * q * d * v,
        ),
        (
            "output_over_keys_only",
            "The second product is counted as keys times keys times d_v. It has one row per *query*.",
            lambda q, k, d, v: 2 * q * k * d + 2 * k * k * v,
        ),
        (
            "lengths_added",
            "The two lengths are added. Every query meets every key, so they multiply.",
            lambda q, k, d, v: 2 * (q + k) * (d + v),
        ),
        (
            "entries_only",
            "The entries of scores and output are counted. Each entry needs one multiply-add per term of its sum.",
            lambda q, k, d, v: q * k + q * v,
        ),
        (
            "output_entries_added",
            "The first product is right; of the second one only its entries are counted, not the terms of their sums.",
            lambda q, k, d, v: 2 * q * k * d + q * v,
        ),
        (
            "additions_one_less_first",
            "n products have n − 1 additions between them, true; the convention here counts a multiply-add as 2. And "
            "it "
            "is used in one of the products only.",
            lambda q, k, d, v: q * k * (2 * d - 1) + 2 * q * k * v,
        ),
        (
            "multiplications_times_additions",
            "The number is squared somewhere: multiplications and additions are counted one after the other, and "
            "added.",
            lambda q, k, d, v: (q * k * (d + v)) ** 2,
        ),
        (
            "three_for_two",
            "Half as much again as it should be: a multiply-add counts as 2.",
            lambda q, k, d, v: 3 * q * k * (d + v),
        ),
        (
            "wider_twice",
            "The larger of the two widths is used in both products.",
            lambda q, k, d, v: 4 * q * k * max(d, v),
        ),
        (
            "through_floats",
            "The number went through a float, and lost its last digits for long sequences. `/` and floats such as 2.0 "
            "or 1e0 are not exact; `*` and `//` of ints are.",
            lambda q, k, d, v: int(2.0 * q * k * (d + v)),
        ),
        (
            "tensor_result",
            "The number is right, but it is a tensor. A count is a plain int.",
            lambda q, k, d, v: torch.tensor(2 * q * k * (d + v)),
        ),
        (
            "pair_returned",
            "The two products come back as a pair. The exercise asks for their sum.",
            lambda q, k, d, v: (2 * q * k * d, 2 * q * k * v),
        ),
    ):
        exercise.misconception(key, says)(solution)
