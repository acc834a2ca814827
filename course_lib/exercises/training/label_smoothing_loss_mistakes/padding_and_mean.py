"""Mistakes in `label_smoothing_loss`: which positions count, and what the sum is divided by."""

from __future__ import annotations

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.training.label_smoothing_loss_mistakes.parts import by_label, smoothed

mistake = Mistakes()


def _with_mean(mean):
    return by_label(smoothed, mean=mean)


@mistake(look="training: The loss")
def pads_counted(logits, targets, smoothing, pad_id):
    """Padded positions count like all others: the model is rewarded for predicting padding."""
    return _with_mean(lambda each, real: each.mean())(logits, targets, smoothing, pad_id)


@mistake(look="training: The loss")
def divided_by_all_positions(logits, targets, smoothing, pad_id):
    """The sum excludes padding, but the divisor does not: a batch with more padding seems to be predicted better."""
    return _with_mean(lambda each, real: each[real].sum() / len(each))(logits, targets, smoothing, pad_id)


@mistake
def sum(logits, targets, smoothing, pad_id):
    """The losses are summed but not divided: the loss grows with the number of tokens in the batch."""
    return _with_mean(lambda each, real: each[real].sum())(logits, targets, smoothing, pad_id)


@mistake
def sum_of_all(logits, targets, smoothing, pad_id):
    """The losses of all positions are summed, including padding. The contract asks for a mean over those that count."""
    return _with_mean(lambda each, real: each.sum())(logits, targets, smoothing, pad_id)


@mistake
def one_loss_a_position(logits, targets, smoothing, pad_id):
    """There is a loss for each position. The contract asks for one number, their mean."""
    return _with_mean(lambda each, real: each.masked_fill(~real, 0.0))(logits, targets, smoothing, pad_id)


@mistake
def one_loss_a_real_position(logits, targets, smoothing, pad_id):
    """There is a loss for each position that counts. The contract asks for one number, their mean."""
    return _with_mean(lambda each, real: each[real])(logits, targets, smoothing, pad_id)


@mistake(look="training: The loss")
def only_padding_counts(logits, targets, smoothing, pad_id):
    """The mean runs over the padded positions: the condition is reversed."""
    return _with_mean(lambda each, real: each[~real].mean())(logits, targets, smoothing, pad_id)


@mistake(look="training: The loss")
def pads_set_to_zero_only(logits, targets, smoothing, pad_id):
    """Padded positions have loss 0 and are still counted in the mean, which makes it smaller, and the divisor is one
    too large."""
    return _with_mean(lambda each, real: each[real].sum() / (real.sum() + 1))(logits, targets, smoothing, pad_id)


@mistake
def median(logits, targets, smoothing, pad_id):
    """This is the median loss. The contract asks for the mean, which weights all tokens equally."""
    return _with_mean(lambda each, real: each[real].median())(logits, targets, smoothing, pad_id)


@mistake
def perplexity(logits, targets, smoothing, pad_id):
    """This is the exponential of the loss, the perplexity. Perplexity is reported, but the loss itself is minimised."""
    return _with_mean(lambda each, real: each[real].mean().exp())(logits, targets, smoothing, pad_id)


@mistake
def sign_missing(logits, targets, smoothing, pad_id):
    """The sign is missing: log-probabilities are negative, and the loss should fall when they rise."""
    return _with_mean(lambda each, real: -each[real].mean())(logits, targets, smoothing, pad_id)
