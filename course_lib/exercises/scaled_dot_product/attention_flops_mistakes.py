"""The mistakes in `attention_flops`."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes

mistake = Mistakes()


@mistake
def multiplications_only(len_q, len_k, d_k, d_v):
    """Half of the right number: a multiply-add counts as 2."""
    return len_q * len_k * (d_k + d_v)


@mistake
def scores_only(len_q, len_k, d_k, d_v):
    """Only the product of queries and keys is counted. What happens to the values?"""
    return 2 * len_q * len_k * d_k


@mistake
def values_only(len_q, len_k, d_k, d_v):
    """Only the product of weights and values is counted. Where do the weights come from?"""
    return 2 * len_q * len_k * d_v


@mistake
def d_k_twice(len_q, len_k, d_k, d_v):
    """The width of the queries is used in both products. How wide is a value?"""
    return 4 * len_q * len_k * d_k


@mistake
def square_of_queries(len_q, len_k, d_k, d_v):
    """The number of queries is squared. Queries and keys may differ in number."""
    return 2 * len_q * len_q * (d_k + d_v)


@mistake
def square_of_keys(len_q, len_k, d_k, d_v):
    """The number of keys is squared. Queries and keys may differ in number."""
    return 2 * len_k * len_k * (d_k + d_v)


@mistake
def float_result(len_q, len_k, d_k, d_v):
    """The number is right, but its type is not: a count is an int. `/` gives a float, and for long sequences it is not
    exact."""
    return 2 * len_q * len_k * (d_k + d_v) / 1


@mistake
def widths_multiplied(len_q, len_k, d_k, d_v):
    """The two widths are multiplied by each other. The products come one after the other, so their costs add up."""
    return 2 * len_q * len_k * d_k * d_v


@mistake
def exact_additions(len_q, len_k, d_k, d_v):
    """It is true that n products have only n − 1 additions between them, but the convention here counts a multiply-add
    as 2, so 2n."""
    return len_q * len_k * (2 * d_k - 1) + len_q * d_v * (2 * len_k - 1)


for key, extra in {
    "softmax_counted_once": 1,
    "softmax_counted": 3,
    "softmax_counted_with_scale": 4,
    "softmax_counted_5": 5,
}.items():
    mistake.named(
        key,
        f"{extra} operation{'s' * (extra > 1)} for each score too many: the softmax is not counted here, only the two "
        f"products.",
    )(lambda len_q, len_k, d_k, d_v, extra=extra: 2 * len_q * len_k * (d_k + d_v) + extra * len_q * len_k)


@mistake
def twice_too_many(len_q, len_k, d_k, d_v):
    """Twice the right number: the 2 for a multiply-add is counted twice."""
    return 4 * len_q * len_k * (d_k + d_v)


@mistake
def d_v_twice(len_q, len_k, d_k, d_v):
    """The width of the values is used in both products. How wide are query and key?"""
    return 4 * len_q * len_k * d_v


@mistake
def output_over_queries(len_q, len_k, d_k, d_v):
    """The second product sums over the keys: one multiply-add for each query, key and feature of a value."""
    return 2 * len_q * len_k * d_k + 2 * len_q * len_q * d_v


@mistake
def two_in_the_first_product_only(q, k, d, v):
    """A multiply-add counts as 2 in both products, but the 2 is missing in the second."""
    return 2 * q * k * d + q * k * v


@mistake
def two_in_the_second_product_only(q, k, d, v):
    """A multiply-add counts as 2 in both products, but the 2 is missing in the first. Are brackets missing?"""
    return q * k * d + 2 * q * k * v


@mistake
def output_without_keys(q, k, d, v):
    """The second product is counted as queries times d_k times d_v. Weights times values sums over the keys."""
    return 2 * q * k * d + 2 * q * d * v


@mistake
def output_over_keys_only(q, k, d, v):
    """The second product is counted as keys times keys times d_v. It has one row per *query*."""
    return 2 * q * k * d + 2 * k * k * v


@mistake
def lengths_added(q, k, d, v):
    """The two lengths are added. Every query meets every key, so the lengths have to be multiplied."""
    return 2 * (q + k) * (d + v)


@mistake
def entries_only(q, k, d, v):
    """Only the entries of scores and output are counted. Each entry needs one multiply-add per term of its sum."""
    return q * k + q * v


@mistake
def output_entries_added(q, k, d, v):
    """The first product is right; for the second, only the entries are counted, not the terms of their sums."""
    return 2 * q * k * d + q * v


@mistake
def additions_one_less_first(q, k, d, v):
    """It is true that n products have only n − 1 additions between them, but the convention here counts a multiply-add
    as 2. Besides, it is used in only one of the products."""
    return q * k * (2 * d - 1) + 2 * q * k * v


@mistake
def multiplications_times_additions(q, k, d, v):
    """The number is squared somewhere: multiplications and additions should be counted separately and added."""
    return (q * k * (d + v)) ** 2


@mistake
def three_for_two(q, k, d, v):
    """One and a half times the right number: a multiply-add counts as 2."""
    return 3 * q * k * (d + v)


@mistake
def wider_twice(q, k, d, v):
    """The larger of the two widths is used in both products."""
    return 4 * q * k * max(d, v)


@mistake
def through_floats(q, k, d, v):
    """The number was converted to a float, which loses the last digits for long sequences. `/` and floats such as 2.0
    or 1e0 are not exact; `*` and `//` of ints are."""
    return int(2.0 * q * k * (d + v))


@mistake
def tensor_result(q, k, d, v):
    """The number is right, but it is a tensor. A count is a plain int."""
    return torch.tensor(2 * q * k * (d + v))


@mistake
def pair_returned(q, k, d, v):
    """The counts of the two products are returned as a pair. The exercise asks for their sum."""
    return (2 * q * k * d, 2 * q * k * v)
