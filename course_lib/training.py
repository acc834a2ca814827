"""What training on text needs besides a model: pairs of input and target, the loss, the rate, the batches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

from torch import Tensor

from course_lib._checks import check_that, check_whole, checked
from course_lib._typing import Bounds, Count, Float, Int, Size

__all__ = ["label_smoothing_loss", "teacher_forcing_pair", "token_batches", "warmup_rate"]


@checked
def teacher_forcing_pair(
    tokens: Int[Tensor, "batch length"],
) -> tuple[Int[Tensor, "batch shifted"], Int[Tensor, "batch shifted"]]:
    """What a decoder reads and what it has to predict: the same sentences, one position apart.

    `inputs_t = y_t` and `targets_t = y_{t+1}`. A model that attends to inputs 0 … t (a causal mask ensures this) learns
    `p(y_{t+1} | y_0 … y_t)` for every t at once. Sentences begin with a start token and end with an end token; padding
    comes after it. Both results are views of `tokens`.

    Raises:
        ValueError: the sentences have length 0.

    Source: Williams & Zipser (1989), who name it teacher forcing; Vaswani et al. (2017), figure 1 ("shifted right").
    """
    check_that(tokens.shape[1] > 0, "tokens must have the start token in column 0", tokens, "put it there")
    return tokens[:, :-1], tokens[:, 1:]  # (B, L - 1) both


@checked(
    logits="flatten (B, L, V) with logits.flatten(0, 1), and pass floats",
    targets="flatten (B, L) with targets.flatten(), and pass classes as .long()",
    count="flatten both, with logits.flatten(0, 1) and targets.flatten()",
    smoothing="the paper has 0.1",
)
def label_smoothing_loss(
    logits: Float[Tensor, "count vocab"],
    targets: Int[Tensor, " count"],
    smoothing: Annotated[float, Bounds(0, 1)],
    pad_id: int,
) -> Float[Tensor, ""]:
    """Cross-entropy with smoothed labels, averaged over the targets that are not padding.

    With ε = smoothing, the label of a position is `q_k = (1 − ε) · [k = target] + ε / V`: the mass ε is spread over
    all V classes, the right one included. The loss of the position is

        −Σ_k q_k log p_k = (1 − ε) · (−log p_target) + ε · mean_k(−log p_k),   p = softmax(logits).

    `torch.nn.functional.cross_entropy` gives the same with `label_smoothing=ε, ignore_index=pad_id`. The smallest
    possible loss is the entropy of q, not zero. `pad_id` need not be a class (PyTorch's default is −100).

    Raises:
        ValueError: every target is padding, or one is not a class.

    Source: Szegedy et al. (2016), section 7; Vaswani et al. (2017), section 5.4, with ε = 0.1.
    """
    check_targets(targets, logits.shape[1], pad_id)
    real = targets != pad_id  # (N,)
    log_probs = logits[real].log_softmax(dim=-1)  # (R, V)
    of_target = log_probs.gather(1, targets[real].long()[:, None])[:, 0]  # (R,)
    of_all = log_probs.mean(dim=-1)  # (R,)
    return (-(1 - smoothing) * of_target - smoothing * of_all).mean()


def check_targets(targets: Tensor, num_classes: int, pad_id: int) -> None:
    """Refuse, with a ValueError, targets that are neither classes nor padding, and padding alone."""
    real = targets[targets != pad_id]
    if len(real) == 0:
        raise ValueError(
            f"expected a target that is not pad_id, got padding ({pad_id}) only; leave such batches out, "
            f"their mean is 0 / 0"
        )
    low, high = (int(bound) for bound in real.aminmax())
    if low < 0 or high >= num_classes:
        raise ValueError(
            f"targets must be classes 0 … {num_classes - 1} or pad_id = {pad_id}, got {low if low < 0 else high}; "
            f"logits have {num_classes} columns: do vocabulary and output layer have the same size?"
        )


@checked(step="count updates from 1: a schedule that starts at 0 passes step + 1")
def warmup_rate(step: Size, d_model: Size, warmup_steps: Size) -> float:
    """The learning rate of the Transformer paper: a linear rise, then a fall in proportion to `1 / √step`.

    `rate = d_model^(−1/2) · min(step^(−1/2), step · warmup_steps^(−3/2))`. Updates count from 1. Both terms are equal
    at `step = warmup_steps`, where the rate has its peak, `(d_model · warmup_steps)^(−1/2)`.

    Source: Vaswani et al. (2017), section 5.3, equation 3.
    """
    return min(1 / math.sqrt(step), step / warmup_steps**1.5) / math.sqrt(d_model)


@checked
def token_batches(lengths: Sequence[int], max_tokens: Count) -> list[list[int]]:
    """Put sentences of similar length together, as many as fit when all are padded to the longest.

    Greedy in order of rising length: a sentence joins the open batch while `sentences · longest ≤ max_tokens`, and
    otherwise opens the next one. No grouping has fewer batches, since a batch that fits still fits without its shortest
    or its longest sentence. Sentences of equal length keep their order. The batches are lists of indices into
    `lengths`, each index once.

    Raises:
        TypeError: a length is not a whole number.
        ValueError: a sentence is longer than max_tokens, or a length is negative.

    Source: Vaswani et al. (2017), section 5.1 (batches by approximate length, some 25,000 tokens per side).
    """
    _check_lengths(lengths)
    for index, length in enumerate(lengths):
        if not 0 <= length <= max_tokens:
            raise ValueError(
                f"lengths must be between 0 and max_tokens = {max_tokens}, got {length} at index {index}; "
                f"drop or cut longer sentences, or raise max_tokens"
            )
    batches: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: lengths[index]):
        # In rising order the newcomer is the longest, so it alone decides how wide the batch becomes.
        if not batches or (len(batches[-1]) + 1) * lengths[index] > max_tokens:
            batches.append([])
        batches[-1].append(index)
    return batches


def _check_lengths(lengths: Sequence[int]) -> None:
    for index, length in enumerate(lengths):
        check_whole(lengths=length, least=-math.inf, most=math.inf, hint=f" at index {index}")
