"""What training on text needs beside a model: pairs of input and target, the loss, the rate, the batches."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from course_kit._checks import check_floats, check_ids, check_number, check_sequence, check_whole
from course_lib._typing import Float, Int

__all__ = ["label_smoothing_loss", "teacher_forcing_pair", "token_batches", "warmup_rate"]


def teacher_forcing_pair(
    tokens: Int[Tensor, "batch length"],
) -> tuple[Int[Tensor, "batch length-1"], Int[Tensor, "batch length-1"]]:
    """What a decoder reads and what it has to predict: the same sentences, one position apart.

    `inputs_t = y_t` and `targets_t = y_{t+1}`. A model that attends to inputs 0 … t (a causal mask ensures this) learns
    `p(y_{t+1} | y_0 … y_t)` for every t at once.

    Args:
        tokens: ids of whole sentences, start token first and end token last, padded at the end, `(B, L)`, L ≥ 1.

    Returns:
        `(inputs, targets)`, both `(B, L − 1)`, views of `tokens`: all but the last column, all but the first.

    Raises:
        TypeError: tokens is not a tensor of integers.
        ValueError: tokens is not `(B, L)`, or has no position.

    Source: Williams & Zipser (1989), who name it teacher forcing; Vaswani et al. (2017), figure 1 ("shifted right").
    """
    _check_batch(tokens)
    return tokens[:, :-1], tokens[:, 1:]  # (B, L - 1) both


def _check_batch(tokens: Tensor) -> None:
    check_ids(tokens=tokens)
    if tokens.dim() != 2 or tokens.shape[1] < 1:
        raise ValueError(
            f"tokens must be (B, L) with the start token in column 0, got {tuple(tokens.shape)}; "
            f"for one sentence pass tokens[None]"
        )


def label_smoothing_loss(
    logits: Float[Tensor, "count vocab"], targets: Int[Tensor, " count"], smoothing: float, pad_id: int
) -> Float[Tensor, ""]:
    """Cross-entropy with smoothed labels, averaged over the targets that are not padding.

    With ε = smoothing, the label of a position is `q_k = (1 − ε) · [k = target] + ε / V`: the mass ε is spread over
    all V classes, the right one included. The loss of the position is

        −Σ_k q_k log p_k = (1 − ε) · (−log p_target) + ε · mean_k(−log p_k),   p = softmax(logits).

    `torch.nn.functional.cross_entropy` gives the same with `label_smoothing=ε, ignore_index=pad_id`. The smallest
    possible loss is the entropy of q, not zero.

    Args:
        logits: unnormalised scores of the V classes, `(N, V)`.
        targets: the right class of each position, `(N,)`; at least one is not `pad_id`.
        smoothing: ε, 0 ≤ ε ≤ 1; 0 gives plain cross-entropy.
        pad_id: targets with this id do not count; it need not be a class (PyTorch's default is −100).

    Returns:
        A scalar.

    Raises:
        TypeError: logits are not floating-point, targets are not integers, smoothing is not a number, or pad_id is not
            a whole number.
        ValueError: shapes do not fit, or smoothing is out of range. If the targets are on the CPU, also: every target
            is padding, or one is not a class. On a GPU this is not checked, since the check would have to wait for the
            GPU; if every target is padding, the loss is then NaN.

    Source: Szegedy et al. (2016), section 7; Vaswani et al. (2017), section 5.4, with ε = 0.1.
    """
    check_loss(logits, targets, smoothing, pad_id)
    real = targets != pad_id  # (N,)
    if targets.device.type == "cpu":
        check_targets(targets[real], logits.shape[1], pad_id)
    classes = targets.long().masked_fill(~real, 0)  # a padded position may name no class; what it picks is thrown away
    log_probs = torch.log_softmax(logits, dim=-1)  # (N, V)
    log_prob_of_target = log_probs.gather(1, classes[:, None])[:, 0]  # (N,)
    loss = -(1 - smoothing) * log_prob_of_target  # (N,)
    if smoothing > 0:
        # A sum and a division of (N,), not a mean: backwards, a mean would divide all (N, V) entries.
        loss = loss - smoothing / log_probs.shape[1] * log_probs.sum(dim=1)  # (N,)
    return loss.masked_fill(~real, 0.0).sum() / real.sum()


def check_loss(logits: Tensor, targets: Tensor, smoothing: float, pad_id: int) -> None:
    """Refuse what no loss with smoothed labels can be computed of; arguments as in `label_smoothing_loss`.

    Raises:
        TypeError: an argument is of another type.
        ValueError: shapes do not fit, or smoothing is out of range.
    """
    check_floats(logits=logits)
    check_ids(targets=targets)
    if logits.dim() != 2 or not logits.shape[1] or targets.shape != logits.shape[:1]:
        raise ValueError(
            f"logits must be (N, V) and targets (N,), got {tuple(logits.shape)} and {tuple(targets.shape)}; "
            f"flatten (B, L, V) and (B, L) with logits.flatten(0, 1) and targets.flatten()"
        )
    check_number("smoothing", smoothing)
    if not 0.0 <= smoothing <= 1.0:
        raise ValueError(f"smoothing must be between 0 and 1, got {smoothing}; the paper has 0.1")
    check_whole(pad_id=pad_id, least=-(2**63))


def check_targets(real: Tensor, num_classes: int, pad_id: int) -> None:
    """Refuse targets, other than padding, that are not classes.

    Raises:
        ValueError: there is none, or one is not among the classes.
    """
    if len(real) == 0:
        raise ValueError(
            f"expected a target that is not pad_id, got padding ({pad_id}) only; leave such batches out, "
            f"their mean is 0 / 0"
        )
    low, high = (int(bound) for bound in real.aminmax())
    if low < 0 or high >= num_classes:
        raise ValueError(
            f"targets must be classes 0 … {num_classes - 1} or pad_id = {pad_id}, got {low if low < 0 else high}; "
            f"do vocabulary and output layer have the same size?"
        )


def warmup_rate(step: int, d_model: int, warmup_steps: int) -> float:
    """The learning rate of the Transformer paper: a linear rise, then a fall in proportion to `1 / √step`.

    `rate = d_model^(−1/2) · min(step^(−1/2), step · warmup_steps^(−3/2))`.

    Both terms are equal at `step = warmup_steps`, where the rate has its peak, `(d_model · warmup_steps)^(−1/2)`.

    Args:
        step: number of the update, from 1 on.
        d_model: width of the model.
        warmup_steps: length of the rise.

    Returns:
        The rate of this update.

    Raises:
        TypeError: an argument is not a number.
        ValueError: an argument is below 1, or not finite.

    Source: Vaswani et al. (2017), section 5.3, equation 3.
    """
    check_whole(step=step, hint="; count updates from 1: a schedule that starts at 0 passes step + 1")
    check_whole(d_model=d_model, warmup_steps=warmup_steps)
    return min(1 / math.sqrt(step), step / warmup_steps**1.5) / math.sqrt(d_model)


def token_batches(lengths: Sequence[int], max_tokens: int) -> list[list[int]]:
    """Put sentences of similar length together, as many as fit when all are padded to the longest.

    Greedy in order of rising length: a sentence joins the open batch while `sentences · longest ≤ max_tokens`, and
    otherwise opens the next one. No grouping has fewer batches, since a batch that fits still fits without its shortest
    or its longest sentence. Sentences of equal length keep their order.

    Args:
        lengths: number of tokens of each sentence, start and end token included.
        max_tokens: largest number of tokens in a batch, padding included.

    Returns:
        The batches, from short sentences to long ones: lists of indices into `lengths`, each index once.

    Raises:
        TypeError: lengths is not a list of whole numbers, or max_tokens is not a whole number.
        ValueError: a sentence is longer than max_tokens, or a length is negative.

    Source: Vaswani et al. (2017), section 5.1 (batches by approximate length, some 25,000 tokens per side).
    """
    _check_lengths(lengths, max_tokens)
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


def _check_lengths(lengths: Sequence[int], max_tokens: int) -> None:
    check_whole(max_tokens=max_tokens, least=0)
    check_sequence(lengths=lengths)
    for index, length in enumerate(lengths):
        check_whole(lengths=length, least=-math.inf, most=math.inf, hint=f" at index {index}")
