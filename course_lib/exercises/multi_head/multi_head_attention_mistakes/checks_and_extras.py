"""Mistakes in `MultiHeadAttention`: the check in the constructor, and extra steps."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.multi_head.multi_head_attention_mistakes.parts import Unchecked, variant

mistake = Mistakes()


def checked(wrong: Callable[[int, int], bool]) -> type[nn.Module]:
    class Checked(Unchecked):
        def __init__(self, d_model, num_heads):
            if wrong(d_model, num_heads):
                raise ValueError("num_heads must divide d_model")
            super().__init__(d_model, num_heads)

    return Checked


@mistake.built
def divides_the_other_way_round():
    """The check in the constructor is reversed: it tests whether d_model divides num_heads."""
    return checked(lambda d_model, num_heads: num_heads % d_model != 0)


@mistake.built
def raises_where_it_divides():
    """The check in the constructor is reversed: it raises where the number of heads divides d_model."""
    return checked(lambda d_model, num_heads: d_model % num_heads == 0)


@mistake.built
def more_heads_than_features_accepted():
    """The constructor only compares sizes. But 4 heads do not divide 6 features either: test the remainder."""
    return checked(lambda d_model, num_heads: d_model < num_heads)


@mistake.built
def weights_missing():
    """None is returned instead of the weights. The contract asks for `(output, weights)`, of every head."""
    return variant(finish=lambda output, weights: (output, None))


@mistake.built
def width_is_a_float():
    """`/` gives a float even if the division is exact, and the size of an axis has to be an int. Which division of ints
    gives an int?"""
    return variant(split=lambda x, n: x.reshape(len(x), -1, n, x.shape[-1] / n).transpose(1, 2))


@mistake.built
def width_is_a_float_in_view():
    """`/` gives a float even if the division is exact, and `view` needs ints. Which division of ints gives an int?"""
    return variant(split=lambda x, n: x.view(len(x), -1, n, x.shape[-1] / n).transpose(1, 2))


@mistake.built
def heads_averaged():
    """The results of the heads are averaged and repeated. Each head contributes features of its own, so keep them all,
    side by side."""
    return variant(merge=lambda x: x.mean(1).repeat(1, 1, x.shape[1]))


@mistake.built
def projected_twice():
    """The inputs go through their projections twice: once before the heads are split, and once more in a helper?"""
    return variant(
        project=lambda self, query, key, value: (
            self.q_proj(self.q_proj(query)),
            self.k_proj(self.k_proj(key)),
            self.v_proj(self.v_proj(value)),
        )
    )


@mistake.built
def residual_of_the_projected_query():
    """Something is added to the output of `out_proj`. Attention returns the output of `out_proj` itself."""
    return variant(out=lambda self, merged, query: self.out_proj(merged) + merged)


@mistake.built
def relu_on_the_projections():
    """The projections are followed by a nonlinearity. Queries, keys and values are linear in the inputs."""
    return variant(
        project=lambda self, query, key, value: (
            torch.relu(self.q_proj(query)),
            torch.relu(self.k_proj(key)),
            torch.relu(self.v_proj(value)),
        )
    )
