"""Mistakes in `attention_rollout`: the identity for the residual connection."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.inspection.attention_rollout import attention_rollout
from course_lib.exercises.inspection.attention_rollout_mistakes.parts import half, identity, rescaled, rollout_with

mistake = Mistakes()


@mistake
def no_residual(weights):
    """The residual connection is missing: without ½ I, a layer would keep nothing of what was at a position."""
    return rollout_with(mix=lambda mean, eye: mean)(weights)


@mistake
def identity_added_whole(weights):
    """The identity is added, but the sum is not halved. Each row of a layer then sums to 2, and after N layers to 2
    to the power of N."""
    return rollout_with(mix=lambda mean, eye: mean + eye)(weights)


@mistake
def identity_not_halved(weights):
    """Only the attention is halved and the identity is added whole, so the rows sum to 1½ in each layer."""
    return rollout_with(mix=lambda mean, eye: mean / 2 + eye)(weights)


@mistake
def attention_not_halved(weights):
    """Only the identity is halved and the attention is added whole, so the rows sum to 1½ in each layer."""
    return rollout_with(mix=lambda mean, eye: mean + eye / 2)(weights)


@mistake
def identity_once(weights):
    """The identity is mixed in once, after the product. Every layer has a residual connection of its own."""
    return half(
        rollout_with(mix=lambda mean, eye: mean)(weights),
        identity(weights),
    )


@mistake
def identity_added_to_each_step(weights):
    """The identity is mixed into the product so far, and not into each layer. The residual connection carries on
    what has reached a position already, not the token that was there at the beginning."""
    return rollout_with(
        mix=lambda mean, eye: mean,
        begin=lambda mean: half(mean[0], identity(mean)),
        join=lambda layer, rollout: half(layer @ rollout, identity(layer)),
    )(weights)


@mistake
def ones_for_the_identity(weights):
    """A matrix full of ones is mixed in. The identity has ones on its diagonal and zeros elsewhere, since the
    residual connection keeps a vector at its position."""
    return rollout_with(mix=lambda mean, eye: rescaled(mean + torch.ones_like(eye)))(weights)


@mistake
def ones_added_and_halved(weights):
    """1 is added to every entry, not only on the diagonal. The residual connection keeps a vector at its own
    position, which is what the identity matrix says."""
    return rollout_with(mix=lambda mean, eye: (mean + 1) / 2)(weights)


@mistake
def columns_rescaled(weights):
    """After the identity is added, the *columns* are made to sum to one. Here rows are queries, and it is their
    weights that sum to one."""
    return rollout_with(mix=lambda mean, eye: (mean + eye) / (mean + eye).sum(-2, keepdim=True))(weights)


@mistake
def softmax_of_the_mixture(weights):
    """The rows go through another softmax to make them sum to one. It changes the proportions; half and half already
    has the right sum."""
    return rollout_with(mix=lambda mean, eye: (mean + eye).softmax(-1))(weights)


@mistake
def halved_once(weights):
    """The identity is added in every layer, but the result is halved only once. Each layer has to be halved."""
    return rollout_with(mix=lambda mean, eye: mean + eye)(weights) / 2


@mistake
def divided_by_the_number_of_layers(weights):
    """The product is divided by the number of layers. Its rows sum to one without that if each layer is half
    attention and half identity."""
    return attention_rollout(weights) / len(weights)


@mistake
def no_identity_in_the_first_layer(weights):
    """The first layer is used without the identity. It has a residual connection like the others."""
    return rollout_with(begin=lambda mixed: 2 * mixed[0] - torch.eye(mixed.shape[-1], dtype=mixed.dtype))(weights)


@mistake
def no_identity_in_the_last_layer(weights):
    """The last layer is used without the identity. It has a residual connection like the others."""
    return rollout_with(
        layers=lambda mixed: torch.cat((mixed[:-1], 2 * mixed[-1:] - torch.eye(mixed.shape[-1], dtype=mixed.dtype)))
    )(weights)


@mistake
def diagonal_replaced(weights):
    """The diagonal of the maps is overwritten with ½ or 1, and the attention of a position to itself is lost. The
    identity is *added*."""
    return rollout_with(mix=lambda mean, eye: torch.where(eye > 0, 0.5, mean / 2))(weights)


@mistake
def columns_rescaled_at_the_end(weights):
    """The columns of the result are made to sum to one. It is the rows that do, without any rescaling."""
    return attention_rollout(weights) / attention_rollout(weights).sum(-2, keepdim=True)


@mistake
def softmax_at_the_end(weights):
    """The result goes through a softmax. It already consists of shares, and its rows sum to one."""
    return attention_rollout(weights).softmax(-1)


for attention, residual in ((0.9, 0.1), (0.1, 0.9), (0.75, 0.25), (0.25, 0.75)):
    mistake.named(
        f"mixed_{attention}_to_{residual}",
        f"Attention and identity are mixed in the proportion {attention} to {residual}. Here each of them is half.",
    )(rollout_with(mix=lambda mean, eye, a=attention, r=residual: a * mean + r * eye))
