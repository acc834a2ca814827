"""Mistakes in `linear_attention`: the feature map."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.efficiency.linear_attention_mistakes.parts import linear_with, positive

mistake = Mistakes()


def _by_root(x):
    return x / math.sqrt(x.shape[-1])


@mistake
def scaled_before_the_map(query, key, value):
    """The queries are divided by √d_k before the feature map. The exponential of the softmax needed that factor; here
    nothing is scaled."""
    return linear_with(of_query=lambda x: positive(_by_root(x)))(query, key, value)


@mistake
def keys_scaled_before_the_map(query, key, value):
    """The keys are divided by √d_k before the feature map. Here nothing is scaled."""
    return linear_with(of_key=lambda x: positive(_by_root(x)))(query, key, value)


@mistake
def both_scaled_before_the_map(query, key, value):
    """Queries and keys are both divided by √d_k before the feature map. Here nothing is scaled."""
    return linear_with(features=lambda x: positive(_by_root(x)))(query, key, value)


@mistake
def fourth_root_of_the_width(query, key, value):
    """Queries and keys are both divided by the fourth root of d_k before the feature map, as if their dot product were
    to be divided by √d_k. Here nothing is scaled."""
    return linear_with(features=lambda x: positive(x / x.shape[-1] ** 0.25))(query, key, value)


@mistake
def elu_without_one(query, key, value):
    """The feature map is elu alone. It can be negative, so the weights can be too, and their sum may come close to
    zero. What has to be added to make every feature positive?"""
    return linear_with(features=F.elu)(query, key, value)


@mistake
def one_added_inside(query, key, value):
    """1 is added to the argument of elu and not to its result: elu(x + 1) can still be negative."""
    return linear_with(features=lambda x: F.elu(x + 1))(query, key, value)


@mistake
def one_added_to_the_scores(query, key, value):
    """1 is added to the dot products of elu(q) and elu(k). The feature map adds it to each feature, before the dot
    product."""
    return linear_with(features=F.elu, compare=lambda q, k: q @ k.transpose(-2, -1) + 1)(query, key, value)


@mistake
def relu(query, key, value):
    """The feature map is the ReLU. Where all features of a query are negative, its weights are all zero, and the output
    is 0 / 0."""
    return linear_with(features=F.relu)(query, key, value)


@mistake
def relu_plus_one(query, key, value):
    """The feature map is relu(x) + 1, which is 1 for every negative x. elu(x) + 1 still falls there, towards zero."""
    return linear_with(features=lambda x: F.relu(x) + 1)(query, key, value)


for small, size in (("1e-6", "a tiny number"), ("1e-3", "a number near 0.001")):
    mistake.named(
        f"relu_plus_{small}",
        f"The feature map is a ReLU with {size} added, so that nothing is 0 / 0. The exercise has elu(x) + 1, which is "
        f"positive by itself.",
    )(linear_with(features=lambda x, small=float(small): F.relu(x) + small))


@mistake
def softmax_of_the_features(query, key, value):
    """The feature map is a softmax over the features. Then all features of a vector depend on each other; elu(x) + 1 is
    applied to each by itself."""
    return linear_with(features=lambda x: x.softmax(-1))(query, key, value)


@mistake
def softmax_of_features_and_positions(query, key, value):
    """The queries go through a softmax over their features, and the keys through one over the positions. That looks at
    later positions, and is another feature map than elu(x) + 1."""
    return linear_with(of_query=lambda x: x.softmax(-1), of_key=lambda x: x.softmax(-2))(query, key, value)


@mistake
def exponential(query, key, value):
    """The feature map is the exponential. elu(x) + 1 is the exponential for negative x only, and x + 1 for positive."""
    return linear_with(features=torch.exp)(query, key, value)


@mistake
def branches_exchanged(query, key, value):
    """The two branches of elu are exchanged: elu(x) is x for positive x, and exp(x) − 1 for negative x."""
    return linear_with(features=lambda x: torch.where(x > 0, x.exp(), x + 1))(query, key, value)


@mistake
def identity(query, key, value):
    """Queries and keys are used as they are, without a feature map. The weights can be negative then."""
    return linear_with(features=lambda x: x)(query, key, value)


@mistake
def only_the_queries_mapped(query, key, value):
    """The feature map is applied to the queries only. The keys need it too."""
    return linear_with(of_key=lambda x: x)(query, key, value)


@mistake
def only_the_keys_mapped(query, key, value):
    """The feature map is applied to the keys only. The queries need it too."""
    return linear_with(of_query=lambda x: x)(query, key, value)


@mistake
def queries_without_one(query, key, value):
    """1 is added to the elu of the keys, but not to that of the queries."""
    return linear_with(of_query=F.elu)(query, key, value)


@mistake
def keys_without_one(query, key, value):
    """1 is added to the elu of the queries, but not to that of the keys."""
    return linear_with(of_key=F.elu)(query, key, value)


@mistake
def values_mapped_too(query, key, value):
    """The feature map is applied to the values too. They are only averaged, and stay as they are."""
    return linear_with(of_value=positive)(query, key, value)


@mistake
def map_of_the_scores(query, key, value):
    """elu(x) + 1 is applied to the dot products. It belongs to queries and keys, before the dot product: only then can
    the sum over the keys be computed without the query."""
    return linear_with(features=lambda x: x, compare=lambda q, k: positive(q @ k.transpose(-2, -1)))(query, key, value)


OTHER_MAPS = {
    "sigmoid": ("a sigmoid", torch.sigmoid),
    "softplus": ("softplus, log(1 + exp(x))", F.softplus),
    "square": ("the square", torch.square),
    "absolute_value": ("the absolute value", torch.abs),
    "tanh_plus_one": ("tanh(x) + 1", lambda x: x.tanh() + 1),
    "selu_plus_one": ("selu(x) + 1", lambda x: F.selu(x) + 1),
    "gelu_plus_one": ("gelu(x) + 1", lambda x: F.gelu(x) + 1),
    "silu_plus_one": ("silu(x) + 1", lambda x: F.silu(x) + 1),
    "leaky_relu_plus_one": ("leaky_relu(x) + 1", lambda x: F.leaky_relu(x) + 1),
    "unit_length": ("the vector divided by its length", lambda x: F.normalize(x, dim=-1)),
    "elu_plus_two": ("elu(x) + 2 (is 1 added twice?)", lambda x: F.elu(x) + 2),
}
for name, (words, function) in OTHER_MAPS.items():
    mistake.named(name, f"The feature map is {words}. The exercise has elu(x) + 1, for each feature of query and key.")(
        linear_with(features=function)
    )
