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
    """The sum leaves padding out, the number that divides it does not: a batch with more padding looks as if it were
    predicted better."""
    return _with_mean(lambda each, real: each[real].sum() / len(each))(logits, targets, smoothing, pad_id)


@mistake
def sum(logits, targets, smoothing, pad_id):
    """The losses are added up and not divided: the loss grows with the number of tokens in the batch."""
    return _with_mean(lambda each, real: each[real].sum())(logits, targets, smoothing, pad_id)


@mistake
def sum_of_all(logits, targets, smoothing, pad_id):
    """The losses of all positions are added up, padding too. A mean over those that count is asked for."""
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
    """Padded positions have loss 0 and still take part in the mean, which they make smaller, and their count grows
    by one."""
    return _with_mean(lambda each, real: each[real].sum() / (real.sum() + 1))(logits, targets, smoothing, pad_id)


@mistake
def median(logits, targets, smoothing, pad_id):
    """The middle loss is taken. The mean is asked for: it weighs every token alike."""
    return _with_mean(lambda each, real: each[real].median())(logits, targets, smoothing, pad_id)


@mistake
def perplexity(logits, targets, smoothing, pad_id):
    """This is the exponential of the loss, the perplexity. It is reported; what is minimised is the loss itself."""
    return _with_mean(lambda each, real: each[real].mean().exp())(logits, targets, smoothing, pad_id)


@mistake
def sign_missing(logits, targets, smoothing, pad_id):
    """The sign is missing: log-probabilities are negative, a loss is what gets smaller when they grow."""
    return _with_mean(lambda each, real: -each[real].mean())(logits, targets, smoothing, pad_id)
