"""Mistakes in `label_smoothing_loss`: one part of the computation is replaced."""

from __future__ import annotations

import math

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.training.label_smoothing_loss_mistakes.parts import loss, smoothed_labels

mistake = Mistakes()


def _terms(combine):
    """The loss from its two terms, `(N,)` each: `combine(of_target, of_all, smoothing, real, vocab)`."""

    def solution(logits, targets, smoothing, pad_id):
        log_probs = logits.log_softmax(-1)
        of_target = -log_probs.gather(1, targets[:, None])[:, 0]
        return combine(of_target, -log_probs.mean(-1), smoothing, targets != pad_id, logits.shape[1])

    return solution


def _other_columns(one_hot, pad):
    """1 for the classes that are neither target nor padding."""
    others = 1 - one_hot
    others[:, pad] = 0
    return others


def _without_class(value):
    def solution(logits, targets, smoothing, pad_id):
        column = torch.arange(logits.shape[1]) == pad_id
        return loss()(logits.masked_fill(column, value), targets, smoothing, pad_id)

    return solution


def _stabilised(dim):
    def transform(logits):
        largest = logits.max() if dim is None else logits.max(dim, keepdim=True).values
        shifted = logits - largest
        return shifted - shifted.exp().sum(-1, keepdim=True).log()

    return transform


def _most_probable(logits, targets, smoothing, pad_id):
    log_probs = logits.log_softmax(-1)
    each = -(1 - smoothing) * log_probs.max(-1).values - smoothing * log_probs.mean(-1)
    return each[targets != pad_id].mean()


def _every_target(logits, targets, smoothing, pad_id):
    log_probs = logits.log_softmax(-1)
    each = -(1 - smoothing) * log_probs[:, targets] - smoothing * log_probs.mean(-1)
    real = targets != pad_id
    return each[real].sum() / real.sum()


def _divergence(divide):
    def solution(logits, targets, smoothing, pad_id):
        vocab, real = logits.shape[1], targets != pad_id
        q = smoothed_labels(torch.nn.functional.one_hot(targets, vocab).to(logits.dtype), smoothing, pad_id)
        each = (torch.xlogy(q, q) - q * logits.log_softmax(-1)).sum(-1)
        return divide(each, real, vocab)

    return solution


@mistake
def divided_by_classes(logits, targets, smoothing, pad_id):
    """The sum is divided by the number of classes. The mean should be over positions."""
    return loss(mean=lambda each, real, vocab: each[real].sum() / vocab)(logits, targets, smoothing, pad_id)


@mistake
def mean_over_classes_too(logits, targets, smoothing, pad_id):
    """The mean is taken over the classes, too. The label already weights the classes: its shares sum to one, so the
    terms are summed."""
    return loss(mean=lambda each, real, vocab: each[real].mean() / vocab)(logits, targets, smoothing, pad_id)


@mistake
def mean_of_everything(logits, targets, smoothing, pad_id):
    """The mean is taken over all positions and all classes. The classes, weighted by the label, are summed; the mean is
    only over the positions that count."""
    return loss(mean=lambda each, real, vocab: each[real].sum() / (len(each) * vocab))(
        logits, targets, smoothing, pad_id
    )


@mistake
def ids_above_padding(logits, targets, smoothing, pad_id):
    """Only targets with an id above `pad_id` count. Padding is a single id; all others count, whether smaller or
    larger."""
    return loss(real=lambda targets, pad: targets > pad)(logits, targets, smoothing, pad_id)


@mistake
def worst_position(logits, targets, smoothing, pad_id):
    """The largest loss of all positions is returned. The contract asks for the mean."""
    return loss(mean=lambda each, real, vocab: each[real].max())(logits, targets, smoothing, pad_id)


@mistake
def shares_of_the_mean(logits, targets, smoothing, pad_id):
    """Each position's loss is divided by the number of positions, but the losses are not summed."""
    return loss(mean=lambda each, real, vocab: each[real] / real.sum())(logits, targets, smoothing, pad_id)


@mistake
def number_returned(logits, targets, smoothing, pad_id):
    """A Python number is returned: no gradient flows through `.item()` or `float(…)`. The contract asks for a scalar
    tensor."""
    return loss(mean=lambda each, real, vocab: each[real].mean().item())(logits, targets, smoothing, pad_id)


@mistake
def sign_of_the_target_term(logits, targets, smoothing, pad_id):
    """The target term has the wrong sign; the smoothing term has the right one."""
    return _terms(lambda a, b, e, real, vocab: (-(1 - e) * a + e * b)[real].mean())(logits, targets, smoothing, pad_id)


@mistake
def spread_term_subtracted(logits, targets, smoothing, pad_id):
    """The smoothing term has the wrong sign: both terms are losses and should be added."""
    return _terms(lambda a, b, e, real, vocab: ((1 - e) * a - e * b)[real].mean())(logits, targets, smoothing, pad_id)


@mistake
def share_divided_twice(logits, targets, smoothing, pad_id):
    """The smoothing term is divided by V twice: its mean over the classes is a sum with shares of 1/V already."""
    return _terms(lambda a, b, e, real, vocab: ((1 - e) * a + e * b / vocab)[real].mean())(
        logits, targets, smoothing, pad_id
    )


@mistake
def more_than_one_for_the_target(logits, targets, smoothing, pad_id):
    """The target term is multiplied by 1 + ε. It should be 1 − ε."""
    return _terms(lambda a, b, e, real, vocab: ((1 + e) * a + e * b)[real].mean())(logits, targets, smoothing, pad_id)


@mistake
def smoothing_always_a_tenth(logits, targets, smoothing, pad_id):
    """ε is 0.1, whatever `smoothing` is."""
    return _terms(lambda a, b, e, real, vocab: (0.9 * a + 0.1 * b)[real].mean())(logits, targets, smoothing, pad_id)


@mistake
def spread_term_of_all_positions(logits, targets, smoothing, pad_id):
    """The sum of the smoothing terms includes the padded positions, while the divisor excludes them. A
    padded position counts in neither term."""
    return _terms(lambda a, b, e, real, vocab: ((1 - e) * a[real].sum() + e * b.sum()) / real.sum())(
        logits, targets, smoothing, pad_id
    )


@mistake
def padding_in_the_target_term(logits, targets, smoothing, pad_id):
    """The target term averages over all positions, while the smoothing term excludes padding. A padded position should
    count in neither."""
    return _terms(lambda a, b, e, real, vocab: (1 - e) * a.mean() + e * b[real].mean())(
        logits, targets, smoothing, pad_id
    )


@mistake
def most_probable_class(logits, targets, smoothing, pad_id):
    """The most probable class is used. The target determines the right class."""
    return _most_probable(logits, targets, smoothing, pad_id)


@mistake
def every_position_with_every_target(logits, targets, smoothing, pad_id):
    """`log_probs[:, targets]` pairs every position with every target, (N, N) of them. Each position has one."""
    return _every_target(logits, targets, smoothing, pad_id)


@mistake
def added_along_a_wrong_axis(logits, targets, smoothing, pad_id):
    """One term has the shape (N, 1) and the other (N,): together they are (N, N), each position with every other
    one. The result of `gather` has an axis of length one."""
    return _terms(lambda a, b, e, real, vocab: ((1 - e) * a[:, None] + e * b)[real].sum() / real.sum())(
        logits, targets, smoothing, pad_id
    )


@mistake
def mass_over_two_less(logits, targets, smoothing, pad_id):
    """All wrong classes get ε / (V − 2), padding too: the label sums to more than one."""
    return loss(label=lambda q, e, pad: (1 - e) * q + e / (q.shape[1] - 2) * (1 - q))(
        logits, targets, smoothing, pad_id
    )


@mistake
def padding_without_its_share_of_others(logits, targets, smoothing, pad_id):
    """The wrong classes get ε / (V − 1), and that of padding is set to zero: the label does not sum to one."""
    return loss(label=lambda q, e, pad: (1 - e) * q + e / (q.shape[1] - 1) * _other_columns(q, pad))(
        logits, targets, smoothing, pad_id
    )


@mistake
def padding_at_minus_infinity(logits, targets, smoothing, pad_id):
    """The logit of padding is set to −∞, and with smoothing that class has a share of the label: an infinite loss.
    Padded *positions* are excluded, but the class stays."""
    return _without_class(-math.inf)(logits, targets, smoothing, pad_id)


@mistake
def padding_at_a_large_number(logits, targets, smoothing, pad_id):
    """The logit of padding is set to a large negative number, and with smoothing that class has a share of the
    label: a huge loss. Padded *positions* are excluded, but the class stays."""
    return _without_class(-1e9)(logits, targets, smoothing, pad_id)


@mistake
def largest_of_all_subtracted(logits, targets, smoothing, pad_id):
    """The largest logit of the *whole batch* is subtracted. In a row far below it, all exponentials are 0.
    Each row has its own largest logit."""
    return loss(transform=_stabilised(None))(logits, targets, smoothing, pad_id)


@mistake
def largest_of_each_class_subtracted(logits, targets, smoothing, pad_id):
    """The largest logit of each *class* is subtracted, which changes the probabilities. Subtract the largest of each
    row instead."""
    return loss(transform=_stabilised(0))(logits, targets, smoothing, pad_id)


@mistake
def infinities_replaced_by_zero(logits, targets, smoothing, pad_id):
    """Where the logarithm is −∞, 0 is put in its place: an impossible class would cost nothing. The logarithm can be
    computed exactly from the logits."""
    return loss(transform=lambda logits: logits.softmax(-1).log().nan_to_num(neginf=0.0))(
        logits, targets, smoothing, pad_id
    )


@mistake
def infinities_replaced(logits, targets, smoothing, pad_id):
    """Where the logarithm is −∞, the lowest number of the dtype is put in its place, which falsifies the result. It can
    be computed exactly from the logits."""
    return loss(transform=lambda logits: logits.softmax(-1).log().nan_to_num())(logits, targets, smoothing, pad_id)


@mistake
def decimal_logarithm(logits, targets, smoothing, pad_id):
    """The logarithm has base 10. Use the natural logarithm."""
    return loss(transform=lambda logits: logits.log_softmax(-1) / math.log(10))(logits, targets, smoothing, pad_id)


@mistake
def divergence_summed(logits, targets, smoothing, pad_id):
    """This is a Kullback–Leibler divergence, summed over the positions. The contract asks for the cross-entropy, and
    its mean."""
    return _divergence(lambda each, real, vocab: each[real].sum())(logits, targets, smoothing, pad_id)


@mistake
def divergence_of_all_positions(logits, targets, smoothing, pad_id):
    """This is a Kullback–Leibler divergence, padding included. The contract asks for the cross-entropy over the
    positions that count."""
    return _divergence(lambda each, real, vocab: each.mean())(logits, targets, smoothing, pad_id)


@mistake
def divergence_averaged_over_classes(logits, targets, smoothing, pad_id):
    """This is a Kullback–Leibler divergence, averaged over positions and classes, as `reduction='mean'` does. The
    contract asks for the cross-entropy, with a mean over the positions only."""
    return _divergence(lambda each, real, vocab: each[real].mean() / vocab)(logits, targets, smoothing, pad_id)
