"""Mistakes in `attention_rollout`: the product of the layers."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.inspection.attention_rollout import attention_rollout
from course_lib.exercises.inspection.attention_rollout_mistakes.parts import half, identity, rollout_with

mistake = Mistakes()


@mistake
def first_layer_leftmost(weights):
    """The layers are multiplied in the wrong order. The last layer mixes what the earlier ones have produced, so it
    comes first from the left."""
    return rollout_with(join=lambda layer, rollout: rollout @ layer)(weights)


@mistake
def elementwise(weights):
    """The layers are multiplied entry by entry. A path through two layers may pass through any position in between,
    and the sum over these positions is the product of two matrices."""
    return rollout_with(join=lambda layer, rollout: layer * rollout)(weights)


@mistake
def layers_averaged(weights):
    """The layers are averaged. The weights of a later layer point at vectors that are mixtures already, so the
    layers have to be multiplied."""
    return half(weights.mean(2), identity(weights)).mean(0)


@mistake
def layers_summed(weights):
    """The layers are added. The weights of a later layer point at vectors that are mixtures already, so the layers
    have to be multiplied."""
    return half(weights.mean(2), identity(weights)).sum(0)


@mistake
def last_layer_alone(weights):
    """Only the last layer is used. What it attends to are hidden vectors, not tokens; the layers below say what
    these vectors contain."""
    return half(weights[-1].mean(1), identity(weights))


@mistake
def first_layer_alone(weights):
    """Only the first layer is used. The layers above mix its vectors again."""
    return half(weights[0].mean(1), identity(weights))


@mistake
def first_layer_skipped(weights):
    """The first layer is missing from the product."""
    return rollout_with(begin=lambda mixed: torch.eye(mixed.shape[-1], dtype=mixed.dtype).expand_as(mixed[0]))(weights)


@mistake
def last_layer_skipped(weights):
    """The last layer is missing from the product, as with a range that ends one too early."""
    return rollout_with(layers=lambda mixed: mixed[: max(1, len(mixed) - 1)])(weights)


@mistake
def first_layer_twice(weights):
    """The first layer is multiplied in twice: it is where the product starts, and the loop includes it again."""
    return rollout_with(begin=lambda mixed: mixed[0] @ mixed[0])(weights)


@mistake
def transposed(weights):
    """The result is transposed. Its rows are positions after the last layer, its columns are input tokens."""
    return attention_rollout(weights).mT


@mistake
def transposed_in_each_step(weights):
    """In each step the rows of one matrix are multiplied with the *rows* of the other. In a matrix product, the
    columns of the left factor meet the rows of the right one."""
    return rollout_with(join=lambda layer, rollout: layer @ rollout.mT)(weights)


@mistake
def maps_transposed(weights):
    """The maps are transposed before they are multiplied, so columns are treated as queries. Here rows are queries,
    and each row sums to one."""
    return rollout_with(heads=lambda weights: weights.mean(2).mT)(weights)


@mistake
def power_of_the_mean_layer(weights):
    """The mean of all layers is multiplied with itself, once per layer. The layers differ, and their order matters."""
    return torch.linalg.matrix_power(
        half(weights.mean(2), identity(weights)).mean(0),
        len(weights),
    )


@mistake
def power_of_the_last_layer(weights):
    """The last layer is multiplied with itself, once per layer. Each layer has maps of its own."""
    return torch.linalg.matrix_power(half(weights[-1].mean(1), identity(weights)), len(weights))


@mistake
def power_of_the_first_layer(weights):
    """The first layer is multiplied with itself, once per layer. Each layer has maps of its own."""
    return torch.linalg.matrix_power(half(weights[0].mean(1), identity(weights)), len(weights))


@mistake
def last_layer_twice(weights):
    """The last layer is multiplied in twice."""
    return half(weights[-1].mean(1), identity(weights)) @ attention_rollout(weights)


@mistake
def layer_transposed_in_each_step(weights):
    """In each step the *columns* of the new layer are multiplied with the columns of the product so far. In a matrix
    product, the rows of the left factor meet the columns of the right one."""
    return rollout_with(join=lambda layer, rollout: layer.mT @ rollout)(weights)


@mistake
def every_layer_returned(weights):
    """There is one rollout for each number of layers. Only that of the whole model is wanted, `(B, L, L)`."""
    return torch.stack([attention_rollout(weights[: n + 1]) for n in range(len(weights))])


@mistake
def first_two_layers_only(weights):
    """Only two layers are multiplied. All of them are followed, however many there are."""
    return attention_rollout(weights[:2])


@mistake
def last_and_first_layer_only(weights):
    """Only the first and the last layer are multiplied. Those in between mix the positions, too."""
    return attention_rollout(weights[[0, -1]])


@mistake
def averaged_over_the_rows(weights):
    """The rows of the rollout are averaged, so it is lost which position each row belongs to. The result is `(B, L,
    L)`."""
    return attention_rollout(weights).mean(1)
