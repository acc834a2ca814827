"""The mistakes in `fix_loss`."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from course_lib.exercises._mistakes import Mistakes

mistake = Mistakes()


def _losses(logits, targets):
    return F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")  # (B, L)


def _real(logits, targets, pad_id):
    return (targets != pad_id).to(logits.dtype)  # (B, L)


def _sum_over_real(logits, targets, pad_id):
    return (_losses(logits, targets) * _real(logits, targets, pad_id)).sum()


@mistake
def as_given(logits, targets, pad_id):
    """Padding still lowers the loss: with half of the targets padded, it is half of what a real target costs on
    average."""
    return _sum_over_real(logits, targets, pad_id) / targets.numel()


@mistake
def padding_in_the_loss(logits, targets, pad_id):
    """The padded targets count like all others, so the model is trained to predict padding, and the loss depends on
    its logits there."""
    return _losses(logits, targets).mean()


@mistake
def padded_logits_zeroed(logits, targets, pad_id):
    """The logits of padded positions are set to zero, and the positions still count: each of them costs log V, whatever
    the model predicts."""
    real = _real(logits, targets, pad_id)
    return _losses(logits * real[..., None], targets).mean()


@mistake
def padded_logits_zeroed_and_divided(logits, targets, pad_id):
    """The sum is divided by the number of real targets, but it still contains log V for each padded one, whose logits
    are set to zero. So the loss rises with padding."""
    real = _real(logits, targets, pad_id)
    return _losses(logits * real[..., None], targets).sum() / real.sum()


@mistake
def padding_turned_into_another_class(logits, targets, pad_id):
    """Padded targets are replaced by class 0 and then count as if 0 were the right answer. They should not count at
    all."""
    return _losses(logits, targets * (targets != pad_id)).mean()


@mistake
def padding_in_the_sum_only(logits, targets, pad_id):
    """You now divide by the right number, but the sum also contains the losses of the padded targets, so padding makes
    the loss larger."""
    return _losses(logits, targets).sum() / _real(logits, targets, pad_id).sum()


@mistake
def mean_of_the_sequences(logits, targets, pad_id):
    """The mean is taken over each sequence first and then over the sequences, so a target in a short sequence counts
    more than one in a long sequence; a sequence of padding only gives nan. Every real target counts the same."""
    real = _real(logits, targets, pad_id)
    return ((_losses(logits, targets) * real).sum(1) / real.sum(1)).mean()


@mistake
def mean_of_the_sequences_without_nan(logits, targets, pad_id):
    """The mean is taken over each sequence first and then over the sequences, so a target in a short sequence counts
    more than one in a long sequence, and an empty sequence counts with a loss of 0. Every real target counts the
    same."""
    real = _real(logits, targets, pad_id)
    return ((_losses(logits, targets) * real).sum(1) / real.sum(1).clamp(min=1)).mean()


@mistake
def mean_of_the_positions(logits, targets, pad_id):
    """The mean is taken over each position of the batch first and then over the positions, so a target that few
    sequences reach counts more. Every real target counts the same."""
    real = _real(logits, targets, pad_id)
    return ((_losses(logits, targets) * real).sum(0) / real.sum(0).clamp(min=1)).mean()


@mistake
def sum_of_the_losses(logits, targets, pad_id):
    """The padding is left out, but the losses are added up and not averaged: a batch with more targets has a larger
    loss."""
    return _sum_over_real(logits, targets, pad_id)


@mistake
def divided_by_the_sequences(logits, targets, pad_id):
    """The sum is divided by the number of sequences. That is the loss per sentence; the contract asks for the loss per
    real target."""
    return _sum_over_real(logits, targets, pad_id) / len(targets)


@mistake
def divided_by_the_positions(logits, targets, pad_id):
    """The sum is divided by the length of the sequences, padding included. It should be divided by the number of real
    targets in the whole batch."""
    return _sum_over_real(logits, targets, pad_id) / targets.shape[1]


@mistake
def divided_by_the_longest(logits, targets, pad_id):
    """The sum is divided as if every sequence were as long as the longest one. Shorter ones then lower the loss, as
    padding did before."""
    return _sum_over_real(logits, targets, pad_id) / (len(targets) * _real(logits, targets, pad_id).sum(1).max())


@mistake
def divided_by_the_padding(logits, targets, pad_id):
    """The sum is divided by the number of *padded* targets. Without padding, that is 0."""
    return _sum_over_real(logits, targets, pad_id) / (targets == pad_id).sum()


@mistake
def divided_twice(logits, targets, pad_id):
    """The sum is divided by the number of all targets *and* by the number of real ones."""
    return _sum_over_real(logits, targets, pad_id) / targets.numel() / _real(logits, targets, pad_id).sum()


@mistake
def one_added_to_the_count(logits, targets, pad_id):
    """A number is added to the count of real targets, presumably against a division by 0. At least one target is real,
    and the loss comes out too low."""
    return _sum_over_real(logits, targets, pad_id) / (_real(logits, targets, pad_id).sum() + 1)


@mistake
def small_number_added_to_the_count(logits, targets, pad_id):
    """A small number is added to the count of real targets. At least one target is real, so nothing is divided by 0,
    and in float64 the loss differs."""
    return _sum_over_real(logits, targets, pad_id) / (_real(logits, targets, pad_id).sum() + 1e-8)


@mistake
def padding_only(logits, targets, pad_id):
    """The mean is taken over the padded targets. It should be taken over all others."""
    return _losses(logits, targets)[targets == pad_id].mean()


@mistake
def pad_id_taken_as_zero(logits, targets, pad_id):
    """Class 0 counts as padding, whatever `pad_id` is."""
    return _losses(logits, targets)[targets != 0].mean()


@mistake
def greater_than_pad_id(logits, targets, pad_id):
    """Only classes above `pad_id` count as real. That is right only where padding is class 0."""
    return _losses(logits, targets)[targets > pad_id].mean()


@mistake
def until_the_first_padding(logits, targets, pad_id):
    """All targets after the first padded one of a sequence are left out, real ones too."""
    real = (targets == pad_id).cumsum(1) == 0
    return _losses(logits, targets)[real].mean()


@mistake
def log_of_a_softmax(logits, targets, pad_id):
    """For large logits, a probability becomes 0 and its logarithm −inf. Log-probabilities are computed in one step."""
    log_probs = logits.softmax(-1).log()
    return -log_probs.gather(-1, targets[..., None])[..., 0][targets != pad_id].mean()


@mistake
def log_of_a_bounded_softmax(logits, targets, pad_id):
    """A small number is added to the probabilities before the logarithm. The loss is finite, but it is wrong for large
    logits: the cost of a confident error ends at about 20 nats."""
    log_probs = (logits.softmax(-1) + 1e-9).log()
    return -log_probs.gather(-1, targets[..., None])[..., 0][targets != pad_id].mean()


@mistake
def exponentials_overflow(logits, targets, pad_id):
    """Right for small logits. Large ones give inf or nan, because the sum of their exponentials overflows, or becomes
    0, before its logarithm is taken. What may be subtracted from all logits of a position without changing the
    loss?"""
    right = logits.gather(-1, targets[..., None])[..., 0]
    return (logits.exp().sum(-1).log() - right)[targets != pad_id].mean()


@mistake
def largest_logit_of_the_batch(logits, targets, pad_id):
    """The loss is infinite where the logits of a position are all far below the largest one of the batch: what is
    subtracted before the exponentials is the maximum of the whole tensor. Each position needs its own."""
    shifted = logits - logits.max()
    right = shifted.gather(-1, targets[..., None])[..., 0]
    return (shifted.exp().sum(-1).log() - right)[targets != pad_id].mean()


@mistake
def difference_of_large_numbers(logits, targets, pad_id):
    """For large logits, the loss is right to three or four digits only: it is the difference of two numbers of the size
    of the logits, whose last digits are lost in float32. A number that is subtracted from all logits of a position
    changes neither its probabilities nor its loss."""
    right = logits.gather(-1, targets[..., None])[..., 0]
    return (logits.logsumexp(-1) - right)[targets != pad_id].mean()


@mistake
def negative(logits, targets, pad_id):
    """The sign is wrong: this is the mean log-probability, which training would push down."""
    return -_losses(logits, targets)[targets != pad_id].mean()


@mistake
def bits(logits, targets, pad_id):
    """The loss is in bits. The contract asks for nats, the natural logarithm."""
    return _losses(logits, targets)[targets != pad_id].mean() / math.log(2)


@mistake
def perplexity(logits, targets, pad_id):
    """This is the exponential of the loss, the perplexity."""
    return torch.exp(_losses(logits, targets)[targets != pad_id].mean())


@mistake
def one_loss_per_target(logits, targets, pad_id):
    """The losses of the real targets are returned one by one. Their mean is wanted."""
    return _losses(logits, targets)[targets != pad_id]


@mistake
def one_loss_per_sequence(logits, targets, pad_id):
    """The result is one mean per sequence. The contract asks for one over all real targets of the batch."""
    real = _real(logits, targets, pad_id)
    return (_losses(logits, targets) * real).sum(1) / real.sum(1)


@mistake
def one_number_per_target(logits, targets, pad_id):
    """The result is one number per target, each divided by the number of real targets. They still have to be added
    up."""
    real = _real(logits, targets, pad_id)
    return _losses(logits, targets) * real / real.sum()


@mistake
def classes_on_the_last_axis(logits, targets, pad_id):
    """`cross_entropy` raises an error, because it looks for the classes on axis 1 of its input, and the last axis of
    `logits` has them. Either exchange two axes, or flatten logits and targets to one row per target."""
    return F.cross_entropy(logits, targets, ignore_index=pad_id)


@mistake
def rows_unlike_targets(logits, targets, pad_id):
    """`cross_entropy` raises an error, because it gets more rows of logits than targets, or fewer. What is flattened,
    turned or picked out of one of them has to be done to the other as well."""
    return F.cross_entropy(logits.flatten(0, 1), targets, ignore_index=pad_id)


@mistake
def flattened_after_the_exchange(logits, targets, pad_id):
    """The logits are flattened to rows of V numbers after their axes have been exchanged, so a row holds numbers of
    different positions. To be flattened, the classes have to be on the last axis."""
    rows = logits.transpose(1, 2).reshape(-1, logits.shape[-1])
    return _losses(rows.view_as(logits), targets)[targets != pad_id].mean()


@mistake
def shifted_by_one(logits, targets, pad_id):
    """Each position is compared with the target after it. The targets are given in line with the logits: nothing has to
    be shifted."""
    return _losses(logits[:, :-1], targets[:, 1:])[targets[:, 1:] != pad_id].mean()


@mistake
def axes_reshaped(logits, targets, pad_id):
    """The logits are *reshaped* to `(B, V, L)`. That regroups the numbers, so that each class gets logits of other
    classes and positions; the axes have to be exchanged."""
    turned = logits.reshape(logits.shape[0], logits.shape[2], logits.shape[1])
    return F.cross_entropy(turned, targets, reduction="none")[targets != pad_id].mean()


@mistake
def softmax_first(logits, targets, pad_id):
    """A softmax is applied to the logits before the cross-entropy, which contains one already. The loss can no longer
    come near 0."""
    return _losses(logits.softmax(-1), targets)[targets != pad_id].mean()


@mistake
def number_without_a_graph(logits, targets, pad_id):
    """The value is right, but no gradient gets back to the logits: the loss has been detached from the graph."""
    return _losses(logits, targets)[targets != pad_id].mean().detach()
