"""What hidden states hold: the next token that each layer would predict, and the sense of a word."""

from __future__ import annotations

from contextlib import ExitStack

import torch
from torch import Tensor, nn

from course_kit._checks import check_floats, check_ids
from course_kit.nn import LanguageModel, Transformer
from course_lib._typing import Float, Int

__all__ = ["leave_one_out_labels", "logit_lens"]


def logit_lens(
    model: LanguageModel | Transformer, *inputs: Int[Tensor, "batch _"]
) -> Float[Tensor, "layers_and_one batch length vocab"]:
    """The logits that a model would give if its decoder ended after each of its layers.

    logits_l = W_out norm(x_l), where x_0 is the embedded input, x_l the output of layer l, and norm the model's last
    norm (nothing in a post-norm model, whose layers end with one of their own).

    Args:
        model: a decoder: `LanguageModel` or `Transformer`, in eval mode unless dropout is wanted.
        inputs: what the model is called with: `(B, L)` ids, for a `Transformer` source and target.

    Returns:
        `(num_layers + 1, B, L, vocabulary)`; the last are the model's own.

    Raises:
        TypeError: the model is of another class.

    Source: nostalgebraist (2020), "interpreting GPT: the logit lens".
    """
    if not isinstance(model, LanguageModel | Transformer):
        raise TypeError(
            f"model must be a LanguageModel or a Transformer, whose output projection reads each layer, got "
            f"{type(model).__name__}"
        )
    stack = model.layers if isinstance(model, LanguageModel) else model.decoder
    states: list[Tensor] = []

    def keep_input(_layer: nn.Module, args: tuple) -> None:
        states.append(args[0])

    def keep_output(_layer: nn.Module, _args: tuple, output: Tensor) -> None:
        states.append(output)

    with ExitStack() as hooks:
        hooks.enter_context(stack.layers[0].register_forward_pre_hook(keep_input))
        for layer in stack.layers:
            hooks.enter_context(layer.register_forward_hook(keep_output))
        model(*inputs)
    return torch.stack([model.output(stack.norm(x)) for x in states])


def leave_one_out_labels(
    vectors: Float[Tensor, "*batch n d"], labels: Int[Tensor, " n"], folds: Int[Tensor, " n"] | None = None
) -> Int[Tensor, "*batch n"]:
    """Label each vector like the nearest centroid, the centroids being those of all *other* vectors.

    c_ky = mean of the x_i with label y and i ≠ k; label k is argmin_y ‖x_k − c_ky‖. If a vector helped to make the
    centroid it is compared with, even noise would be told apart. If only its own label loses a vector, noise is told
    apart less often than by chance, because that centroid has moved away; `folds` leaves out one vector of each label.

    Args:
        vectors: `(..., n, d)`; for instance those of one word in n sentences, after each layer.
        labels: of the vectors, `(n,)`, such as the word's sense in each sentence.
        folds: vectors with the same number are left out together, `(n,)`; each vector alone if not given.

    Returns:
        Predicted labels, `(..., n)`; of several centroids that are equally near, to rounding, the first.

    Raises:
        TypeError: vectors is not a floating-point tensor, or labels or folds are not tensors of integers.
        ValueError: there is not one label per vector, or not one fold, or leaving out a fold leaves a label without a
            vector to compare with.

    Source: nearest centroids as Tibshirani et al. (2002), without shrinkage; of word senses: Reif et al. (2019).
    """
    check_floats(vectors=vectors, axes=2)
    check_ids(labels=labels)
    if labels.shape != vectors.shape[-2:-1]:
        raise ValueError(
            f"labels must be one for each of the {vectors.shape[-2]} vectors, got labels {tuple(labels.shape)} for "
            f"vectors {tuple(vectors.shape)}; label every vector"
        )
    folds = torch.arange(len(labels)) if folds is None else folds
    check_ids(folds=folds)
    if folds.shape != labels.shape:
        raise ValueError(f"folds must be one for each of the {len(labels)} vectors, got {tuple(folds.shape)}")
    names, places = labels.unique(return_inverse=True)
    member = nn.functional.one_hot(places).to(vectors)  # (n, labels)
    others = (folds[:, None] != folds).to(vectors)  # (n, n): row k without the fold of k
    counts = others @ member  # (n, labels)
    if (counts < 1).any():
        alone = names[(counts < 1).any(0)].tolist()
        raise ValueError(
            f"each label needs at least two vectors, in different folds, so that one can be left out, got only one of "
            f"{alone} in labels; add another example"
        )
    centroids = torch.einsum("ki,iy,...id->...kyd", others, member, vectors) / counts[..., None]
    distances = (vectors[..., :, None, :] - centroids).norm(dim=-1)  # (..., n, labels)
    # Rounding must not decide between centroids that are equally near: the first of them is taken.
    nearest = distances.amin(-1, keepdim=True) + 1e-5 * vectors.norm(dim=-1).amax(-1)[..., None, None]
    return names[(distances <= nearest).int().argmax(-1)]
