"""Mistakes in attention rollout: the heads, the identity, the order and the number of the layers."""

from __future__ import annotations

import torch

from course_lib.exercises._exercise import Exercise

__all__ = ["add_slips"]


def _eye(weights):
    return torch.eye(weights.shape[-1], dtype=weights.dtype)


def _rescaled(matrix):
    return matrix / matrix.sum(-1, keepdim=True)


def _half(mean, eye):
    return (mean + eye) / 2


def _rollout(
    heads=lambda weights: weights.mean(2),
    mix=_half,
    join=lambda layer, rollout: layer @ rollout,
    layers=lambda mixed: mixed,
    begin=lambda mixed: mixed[0],
):
    """A rollout with heads, identity or product computed in another way."""

    def attention_rollout(weights):
        mixed = layers(mix(heads(weights), _eye(weights)))
        rollout = begin(mixed)
        for layer in mixed[1:]:
            rollout = join(layer, rollout)
        return rollout

    return attention_rollout


def _chained(weights):
    """The heads of each layer, multiplied."""
    product = weights[:, :, 0]
    for head in range(1, weights.shape[2]):
        product = weights[:, :, head] @ product
    return product


def add_slips(exercise: Exercise) -> None:
    """Add the mistakes to the exercise `attention_rollout`."""
    _add_products(exercise)
    _add_further_products(exercise)
    _add_identities(exercise)
    _add_further_identities(exercise)
    _add_heads(exercise)
    _add_conduct(exercise)


def _add_products(exercise: Exercise) -> None:
    exercise.misconception(
        "first_layer_leftmost",
        "The layers are multiplied in the wrong order. The last layer mixes what the earlier ones have produced, so "
        "it comes first from the left.",
    )(_rollout(join=lambda layer, rollout: rollout @ layer))
    exercise.misconception(
        "elementwise",
        "The layers are multiplied entry by entry. A path through two layers may pass through any position in "
        "between, and the sum over these positions is the product of two matrices.",
    )(_rollout(join=lambda layer, rollout: layer * rollout))
    exercise.misconception(
        "layers_averaged",
        "The layers are averaged. The weights of a later layer point at vectors that are mixtures already, so the "
        "layers have to be multiplied.",
    )(lambda weights: _half(weights.mean(2), _eye(weights)).mean(0))
    exercise.misconception(
        "layers_summed",
        "The layers are added. The weights of a later layer point at vectors that are mixtures already, so the layers "
        "have to be multiplied.",
    )(lambda weights: _half(weights.mean(2), _eye(weights)).sum(0))
    exercise.misconception(
        "last_layer_alone",
        "Only the last layer is used. What it attends to are hidden vectors, not tokens; the layers below say what "
        "these vectors contain.",
    )(lambda weights: _half(weights[-1].mean(1), _eye(weights)))
    exercise.misconception(
        "first_layer_alone",
        "Only the first layer is used. The layers above mix its vectors again.",
    )(lambda weights: _half(weights[0].mean(1), _eye(weights)))
    exercise.misconception(
        "first_layer_skipped",
        "The first layer is missing from the product.",
    )(_rollout(begin=lambda mixed: torch.eye(mixed.shape[-1], dtype=mixed.dtype).expand_as(mixed[0])))
    exercise.misconception(
        "last_layer_skipped",
        "The last layer is missing from the product, as with a range that ends one too early.",
    )(_rollout(layers=lambda mixed: mixed[: max(1, len(mixed) - 1)]))
    exercise.misconception(
        "first_layer_twice",
        "The first layer is multiplied in twice: it is where the product starts, and the loop includes it again.",
    )(_rollout(begin=lambda mixed: mixed[0] @ mixed[0]))
    exercise.misconception(
        "transposed",
        "The result is transposed. Its rows are positions after the last layer, its columns are input tokens.",
    )(lambda weights: exercise.reference(weights).mT)
    exercise.misconception(
        "transposed_in_each_step",
        "In each step the rows of one matrix are multiplied with the *rows* of the other. In a matrix product, the "
        "columns of the left factor meet the rows of the right one.",
    )(_rollout(join=lambda layer, rollout: layer @ rollout.mT))
    exercise.misconception(
        "maps_transposed",
        "The maps are transposed before they are multiplied, so columns are treated as queries. Here rows are queries, "
        "and each row sums to one.",
    )(_rollout(heads=lambda weights: weights.mean(2).mT))


def _add_identities(exercise: Exercise) -> None:
    exercise.misconception(
        "no_residual",
        "The residual connection is missing: without ½ I, a layer would keep nothing of what was at a position.",
    )(_rollout(mix=lambda mean, eye: mean))
    exercise.misconception(
        "identity_added_whole",
        "The identity is added, but the sum is not halved. Each row of a layer then sums to 2, and after N layers to "
        "2 to the power of N.",
    )(_rollout(mix=lambda mean, eye: mean + eye))
    exercise.misconception(
        "identity_not_halved",
        "Only the attention is halved and the identity is added whole, so the rows sum to 1½ in each layer.",
    )(_rollout(mix=lambda mean, eye: mean / 2 + eye))
    exercise.misconception(
        "attention_not_halved",
        "Only the identity is halved and the attention is added whole, so the rows sum to 1½ in each layer.",
    )(_rollout(mix=lambda mean, eye: mean + eye / 2))
    exercise.misconception(
        "identity_once",
        "The identity is mixed in once, after the product. Every layer has a residual connection of its own.",
    )(
        lambda weights: _half(
            _rollout(mix=lambda mean, eye: mean)(weights),
            _eye(weights),
        )
    )
    exercise.misconception(
        "identity_added_to_each_step",
        "The identity is mixed into the product so far, and not into each layer. The residual connection carries on "
        "what has reached a position already, not the token that was there at the beginning.",
    )(
        lambda weights: _rollout(
            mix=lambda mean, eye: mean,
            begin=lambda mean: _half(mean[0], _eye(mean)),
            join=lambda layer, rollout: _half(layer @ rollout, _eye(layer)),
        )(weights)
    )
    exercise.misconception(
        "ones_for_the_identity",
        "A matrix full of ones is mixed in. The identity has ones on its diagonal and zeros elsewhere, since the "
        "residual connection keeps a vector at its position.",
    )(_rollout(mix=lambda mean, eye: _rescaled(mean + torch.ones_like(eye))))
    exercise.misconception(
        "ones_added_and_halved",
        "1 is added to every entry, not only on the diagonal. The residual connection keeps a vector at its own "
        "position, which is what the identity matrix says.",
    )(_rollout(mix=lambda mean, eye: (mean + 1) / 2))
    exercise.misconception(
        "columns_rescaled",
        "After the identity is added, the *columns* are made to sum to one. Here rows are queries, and it is their "
        "weights that sum to one.",
    )(_rollout(mix=lambda mean, eye: (mean + eye) / (mean + eye).sum(-2, keepdim=True)))
    exercise.misconception(
        "softmax_of_the_mixture",
        "The rows go through another softmax to make them sum to one. It changes the proportions; half and half "
        "already has the right sum.",
    )(_rollout(mix=lambda mean, eye: (mean + eye).softmax(-1)))


def _add_further_identities(exercise: Exercise) -> None:
    exercise.misconception(
        "halved_once",
        "The identity is added in every layer, but the result is halved only once. Each layer has to be halved.",
    )(lambda weights: _rollout(mix=lambda mean, eye: mean + eye)(weights) / 2)
    exercise.misconception(
        "divided_by_the_number_of_layers",
        "The product is divided by the number of layers. Its rows sum to one without that if each layer is half "
        "attention and half identity.",
    )(lambda weights: exercise.reference(weights) / len(weights))
    exercise.misconception(
        "no_identity_in_the_first_layer",
        "The first layer is used without the identity. It has a residual connection like the others.",
    )(_rollout(begin=lambda mixed: 2 * mixed[0] - torch.eye(mixed.shape[-1], dtype=mixed.dtype)))
    exercise.misconception(
        "no_identity_in_the_last_layer",
        "The last layer is used without the identity. It has a residual connection like the others.",
    )(
        _rollout(
            layers=lambda mixed: torch.cat((mixed[:-1], 2 * mixed[-1:] - torch.eye(mixed.shape[-1], dtype=mixed.dtype)))
        )
    )
    exercise.misconception(
        "diagonal_replaced",
        "The diagonal of the maps is overwritten with ½ or 1, and the attention of a position to itself is lost. The "
        "identity is *added*.",
    )(_rollout(mix=lambda mean, eye: torch.where(eye > 0, 0.5, mean / 2)))
    exercise.misconception(
        "columns_rescaled_at_the_end",
        "The columns of the result are made to sum to one. It is the rows that do, without any rescaling.",
    )(lambda weights: exercise.reference(weights) / exercise.reference(weights).sum(-2, keepdim=True))
    exercise.misconception(
        "softmax_at_the_end",
        "The result goes through a softmax. It already consists of shares, and its rows sum to one.",
    )(lambda weights: exercise.reference(weights).softmax(-1))
    for attention, residual in ((0.9, 0.1), (0.1, 0.9), (0.75, 0.25), (0.25, 0.75)):
        exercise.misconception(
            f"mixed_{attention}_to_{residual}",
            f"Attention and identity are mixed in the proportion {attention} to {residual}. Here each of them is half.",
        )(_rollout(mix=lambda mean, eye, a=attention, r=residual: a * mean + r * eye))


def _add_further_products(exercise: Exercise) -> None:
    exercise.misconception(
        "power_of_the_mean_layer",
        "The mean of all layers is multiplied with itself, once per layer. The layers differ, and their order matters.",
    )(
        lambda weights: torch.linalg.matrix_power(
            _half(weights.mean(2), _eye(weights)).mean(0),
            len(weights),
        )
    )
    exercise.misconception(
        "power_of_the_last_layer",
        "The last layer is multiplied with itself, once per layer. Each layer has maps of its own.",
    )(lambda weights: torch.linalg.matrix_power(_half(weights[-1].mean(1), _eye(weights)), len(weights)))
    exercise.misconception(
        "power_of_the_first_layer",
        "The first layer is multiplied with itself, once per layer. Each layer has maps of its own.",
    )(lambda weights: torch.linalg.matrix_power(_half(weights[0].mean(1), _eye(weights)), len(weights)))
    exercise.misconception(
        "last_layer_twice",
        "The last layer is multiplied in twice.",
    )(lambda weights: _half(weights[-1].mean(1), _eye(weights)) @ exercise.reference(weights))
    exercise.misconception(
        "layer_transposed_in_each_step",
        "In each step the *columns* of the new layer are multiplied with the columns of the product so far. In a "
        "matrix product, the rows of the left factor meet the columns of the right one.",
    )(_rollout(join=lambda layer, rollout: layer.mT @ rollout))
    exercise.misconception(
        "every_layer_returned",
        "There is one rollout for each number of layers. Only that of the whole model is wanted, `(B, L, L)`.",
    )(lambda weights: torch.stack([exercise.reference(weights[: n + 1]) for n in range(len(weights))]))
    exercise.misconception(
        "first_two_layers_only",
        "Only two layers are multiplied. All of them are followed, however many there are.",
    )(lambda weights: exercise.reference(weights[:2]))
    exercise.misconception(
        "last_and_first_layer_only",
        "Only the first and the last layer are multiplied. Those in between mix the positions, too.",
    )(lambda weights: exercise.reference(weights[[0, -1]]))
    exercise.misconception(
        "averaged_over_the_rows",
        "The rows of the rollout are averaged, so it is lost which position each row belongs to. The result is "
        "`(B, L, L)`.",
    )(lambda weights: exercise.reference(weights).mean(1))


def _add_heads(exercise: Exercise) -> None:
    exercise.misconception(
        "last_head_alone",
        "Only the last head of each layer is followed. A layer mixes the positions with all its heads.",
    )(_rollout(heads=lambda weights: weights[:, :, -1]))
    exercise.misconception(
        "smallest_head",
        "The heads are combined by their minimum, and the rows are made to sum to one again. The rollout takes the "
        "mean of the heads.",
    )(_rollout(heads=lambda weights: weights.amin(2), mix=lambda mean, eye: _rescaled(mean + eye)))
    exercise.misconception(
        "heads_multiplied",
        "The heads of a layer are multiplied as matrices, one after the other. They work side by side, so they are "
        "averaged.",
    )(_rollout(heads=lambda weights: _chained(weights)))
    exercise.misconception(
        "softmax_of_the_mean",
        "The mean of the heads goes through another softmax. Its rows sum to one already.",
    )(_rollout(heads=lambda weights: weights.mean(2).softmax(-1)))
    exercise.misconception(
        "largest_head",
        "The heads are combined by their maximum, and the rows are made to sum to one again. The rollout takes the "
        "mean of the heads.",
    )(_rollout(heads=lambda weights: weights.amax(2), mix=lambda mean, eye: _rescaled(mean + eye)))
    exercise.misconception(
        "largest_head_halved",
        "The heads are combined by their maximum, so the rows no longer sum to one. The rollout takes their mean.",
    )(_rollout(heads=lambda weights: weights.amax(2)))
    exercise.misconception(
        "first_head_alone",
        "Only the first head of each layer is followed. A layer mixes the positions with all its heads.",
    )(_rollout(heads=lambda weights: weights[:, :, 0]))
    exercise.misconception(
        "heads_summed",
        "The heads are added, not averaged, so a row of a layer sums to more than one.",
    )(_rollout(heads=lambda weights: weights.sum(2)))
    exercise.misconception(
        "identity_as_one_more_head",
        "The heads are added, and the row is divided by its sum afterwards. The identity then counts as much as a "
        "single head; it should be half of the mixture, however many heads there are.",
    )(_rollout(heads=lambda weights: weights.sum(2), mix=lambda total, eye: _rescaled(total + eye)))
    exercise.misconception(
        "each_head_followed_alone",
        "Head 0 is followed through head 0 of every layer, head 1 through head 1, and so on, and the mean comes last. "
        "Every head of a layer reads what *all* heads below it have written, so the heads are averaged in each layer.",
    )(lambda weights: _rollout(heads=lambda w: w)(weights).mean(1))
    exercise.misconception(
        "heads_kept",
        "There is one rollout per head: the heads have not been averaged. The result is `(B, L, L)`.",
    )(_rollout(heads=lambda weights: weights))
    exercise.misconception(
        "mean_over_the_batch",
        "The mean runs over axis 1, which is the batch. The axes are layers, batch, heads, queries, keys.",
    )(_rollout(heads=lambda weights: weights.mean(1)))
    exercise.misconception(
        "mean_over_the_layers",
        "The mean runs over axis 0, which are the layers, and the product over the batch. The axes are layers, batch, "
        "heads, queries, keys.",
    )(_rollout(heads=lambda weights: weights.mean(0)))


def _add_conduct(exercise: Exercise) -> None:
    exercise.misconception(
        "squeezed",
        "Axes of length 1 are squeezed away. With one sentence in the batch, that removes the batch axis.",
    )(lambda weights: exercise.reference(weights).squeeze())
    exercise.misconception(
        "first_row_only",
        "This is the first row only: what reaches the first position, [CLS] in an encoder. All rows are wanted.",
    )(lambda weights: exercise.reference(weights)[:, 0])
    exercise.misconception(
        "float32_inside",
        "Somewhere inside, the weights become float32, so float64 input loses half of its digits.",
    )(lambda weights: exercise.reference(weights.float()).to(weights.dtype))

    @exercise.misconception(
        "caller_changed",
        "The rollout is right, but the caller's weights are changed: `+=`, `/=`, or a method whose name ends in `_`, "
        "works in place.",
    )
    def _(weights):
        weights += _eye(weights)
        weights /= 2
        return _rollout(mix=lambda mean, eye: mean)(weights)
