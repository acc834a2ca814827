"""Mistakes in `attention_rollout`: heads, and what comes back."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.inspection.attention_rollout import attention_rollout
from course_lib.exercises.inspection.attention_rollout_mistakes.parts import identity, rescaled, rollout_with

mistake = Mistakes()


def _chained(weights):
    """The heads of each layer, multiplied."""
    product = weights[:, :, 0]
    for head in range(1, weights.shape[2]):
        product = weights[:, :, head] @ product
    return product


@mistake
def last_head_alone(weights):
    """Only the last head of each layer is followed. A layer mixes the positions with all its heads."""
    return rollout_with(heads=lambda weights: weights[:, :, -1])(weights)


@mistake
def smallest_head(weights):
    """The heads are combined by their minimum, and the rows are made to sum to one again. The rollout takes the mean
    of the heads."""
    return rollout_with(heads=lambda weights: weights.amin(2), mix=lambda mean, eye: rescaled(mean + eye))(weights)


@mistake
def heads_multiplied(weights):
    """The heads of a layer are multiplied as matrices, one after the other. They work side by side, so they are
    averaged."""
    return rollout_with(heads=lambda weights: _chained(weights))(weights)


@mistake
def softmax_of_the_mean(weights):
    """The mean of the heads goes through another softmax. Its rows sum to one already."""
    return rollout_with(heads=lambda weights: weights.mean(2).softmax(-1))(weights)


@mistake
def largest_head(weights):
    """The heads are combined by their maximum, and the rows are made to sum to one again. The rollout takes the mean
    of the heads."""
    return rollout_with(heads=lambda weights: weights.amax(2), mix=lambda mean, eye: rescaled(mean + eye))(weights)


@mistake
def largest_head_halved(weights):
    """The heads are combined by their maximum, so the rows no longer sum to one. The rollout takes their mean."""
    return rollout_with(heads=lambda weights: weights.amax(2))(weights)


@mistake
def first_head_alone(weights):
    """Only the first head of each layer is followed. A layer mixes the positions with all its heads."""
    return rollout_with(heads=lambda weights: weights[:, :, 0])(weights)


@mistake
def heads_summed(weights):
    """The heads are added, not averaged, so a row of a layer sums to more than one."""
    return rollout_with(heads=lambda weights: weights.sum(2))(weights)


@mistake
def identity_as_one_more_head(weights):
    """The heads are added, and the row is divided by its sum afterwards. The identity then counts as much as a
    single head; it should be half of the mixture, however many heads there are."""
    return rollout_with(heads=lambda weights: weights.sum(2), mix=lambda total, eye: rescaled(total + eye))(weights)


@mistake
def each_head_followed_alone(weights):
    """Head 0 is followed through head 0 of every layer, head 1 through head 1, and so on, and the mean comes last.
    Every head of a layer reads what *all* heads below it have written, so the heads are averaged in each layer."""
    return rollout_with(heads=lambda w: w)(weights).mean(1)


@mistake
def heads_kept(weights):
    """There is one rollout per head: the heads have not been averaged. The result is `(B, L, L)`."""
    return rollout_with(heads=lambda weights: weights)(weights)


@mistake
def mean_over_the_batch(weights):
    """The mean runs over axis 1, which is the batch. The axes are layers, batch, heads, queries, keys."""
    return rollout_with(heads=lambda weights: weights.mean(1))(weights)


@mistake
def mean_over_the_layers(weights):
    """The mean runs over axis 0, which are the layers, and the product over the batch. The axes are layers, batch,
    heads, queries, keys."""
    return rollout_with(heads=lambda weights: weights.mean(0))(weights)


@mistake
def squeezed(weights):
    """Axes of length 1 are squeezed away. With one sentence in the batch, that removes the batch axis."""
    return attention_rollout(weights).squeeze()


@mistake
def first_row_only(weights):
    """This is the first row only: what reaches the first position, [CLS] in an encoder. All rows are wanted."""
    return attention_rollout(weights)[:, 0]


@mistake
def float32_inside(weights):
    """Somewhere inside, the weights become float32, so float64 input loses half of its digits."""
    return attention_rollout(weights.float()).to(weights.dtype)


@mistake
def caller_changed(weights):
    """The rollout is right, but the caller's weights are changed: `+=`, `/=`, or a method whose name ends in `_`,
    works in place."""
    weights += identity(weights)
    weights /= 2
    return rollout_with(mix=lambda mean, eye: mean)(weights)


def mixed(weights):
    return (weights.mean(2) + torch.eye(weights.shape[-1], dtype=weights.dtype)) / 2


def product(matrices):
    result = matrices[0]
    for matrix in matrices[1:]:
        result = matrix @ result
    return result


@mistake
def identity_missing_but_halved(weights):
    """The attention is halved, but the identity is not added, so the rows of each layer sum to one half."""
    return product(weights.mean(2) / 2)


@mistake
def larger_of_attention_and_identity(weights):
    """Of the attention and the identity, the larger entry is taken. The two are added, and the sum is halved."""
    return product(
        (m := torch.maximum(weights.mean(2), torch.eye(weights.shape[-1], dtype=weights.dtype)))
        / m.sum(-1, keepdim=True)
    )


@mistake
def partial_rollouts_averaged(weights):
    """The rollouts up to each layer are averaged. Only that through all layers is wanted."""
    return torch.stack([attention_rollout(weights[: n + 1]) for n in range(len(weights))]).mean(0)


@mistake
def first_sentence_for_all(weights):
    """The maps of the first sentence are used for the whole batch. Each sentence has its own."""
    return attention_rollout(weights[:, :1]).expand(weights.shape[1], -1, -1)


@mistake
def batch_averaged(weights):
    """The sentences of the batch are averaged. Each sentence has a rollout of its own."""
    return attention_rollout(weights).mean(0)


@mistake
def identity_at_the_end_again(weights):
    """The identity is mixed in once more after the last layer. Each layer has one residual connection."""
    return (attention_rollout(weights) + torch.eye(weights.shape[-1], dtype=weights.dtype)) / 2


@mistake
def identity_taken_away_at_the_end(weights):
    """The diagonal of the result is set to zero. What a position keeps of its own token belongs to the rollout."""
    return attention_rollout(weights) * (1 - torch.eye(weights.shape[-1], dtype=weights.dtype))


@mistake
def divided_by_the_largest(weights):
    """The result is divided by its largest entry. Its rows should sum to one, as they do without this step."""
    return attention_rollout(weights) / attention_rollout(weights).amax((-1, -2), keepdim=True)


@mistake
def each_layer_with_itself(weights):
    """Each layer is multiplied in twice."""
    return product(mixed(weights) @ mixed(weights))
