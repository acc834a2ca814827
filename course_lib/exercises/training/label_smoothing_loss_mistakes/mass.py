"""Mistakes in `label_smoothing_loss`: which class gets how much of the mass ε."""

from __future__ import annotations

import torch

from course_lib.exercises._mistakes import Mistakes
from course_lib.exercises.training.label_smoothing_loss_mistakes.parts import by_label, column

mistake = Mistakes()


@mistake
def mass_over_the_others(logits, targets, smoothing, pad_id):
    """The mass ε is shared among the V − 1 wrong classes. Here it goes to all V, the right one included, which
    then has a little more than 1 − ε."""
    return by_label(lambda one_hot, vocab, e, pad: (1 - e) * one_hot + e / (vocab - 1) * (1 - one_hot))(
        logits, targets, smoothing, pad_id
    )


@mistake
def mass_over_others_but_padding(logits, targets, smoothing, pad_id):
    """The mass goes to the V − 2 classes that are neither the target nor padding. That is another convention; here
    it goes to all V."""
    return by_label(
        lambda one_hot, vocab, e, pad: (
            (1 - e) * one_hot + e / (vocab - 2) * (1 - one_hot) * (1 - column(vocab, pad, one_hot))
        )
    )(logits, targets, smoothing, pad_id)


@mistake
def mass_over_others_but_padding_v(logits, targets, smoothing, pad_id):
    """Padding gets none of the mass, and the target only 1 − ε: the rest is missing, so the label does not sum to one.
    All V classes get ε / V."""
    return by_label(
        lambda one_hot, vocab, e, pad: (1 - e) * one_hot + e / vocab * (1 - one_hot) * (1 - column(vocab, pad, one_hot))
    )(logits, targets, smoothing, pad_id)


@mistake
def mass_without_padding(logits, targets, smoothing, pad_id):
    """Padding gets none of the mass. That is another convention; here the mass goes to all V classes, as in PyTorch."""
    return by_label(
        lambda one_hot, vocab, e, pad: (1 - e) * one_hot + e / (vocab - 1) * (1 - column(vocab, pad, one_hot))
    )(logits, targets, smoothing, pad_id)


@mistake
def padding_loses_its_mass(logits, targets, smoothing, pad_id):
    """The label of padding is set to zero, so the label no longer sums to one. Padded *positions* do not count; the
    class gets its ε / V."""
    return by_label(lambda one_hot, vocab, e, pad: ((1 - e) * one_hot + e / vocab) * (1 - column(vocab, pad, one_hot)))(
        logits, targets, smoothing, pad_id
    )


@mistake
def v_minus_one_for_all(logits, targets, smoothing, pad_id):
    """Every class gets ε / (V − 1), the target too, so the label sums to more than one. How many shares are there?"""
    return by_label(lambda one_hot, vocab, e, pad: (1 - e) * one_hot + e / (vocab - 1))(
        logits, targets, smoothing, pad_id
    )


@mistake
def target_without_its_share(logits, targets, smoothing, pad_id):
    """The target has 1 − ε and the others ε / V: that does not sum to one. The target has its own share of ε too."""
    return by_label(lambda one_hot, vocab, e, pad: (1 - e) * one_hot + e / vocab * (1 - one_hot))(
        logits, targets, smoothing, pad_id
    )


def _any_target(one_hot):
    """1 for each class that is the target of some position, in every row."""
    return one_hot.amax(0, keepdim=True).expand_as(one_hot)


@mistake
def every_target_in_every_row(logits, targets, smoothing, pad_id):
    """In every row, the targets of *all* positions get 1 − ε, so a label sums to more than one. A position has one
    target: row 0 goes with the first target, row 1 with the second."""
    return by_label(lambda one_hot, vocab, e, pad: (1 - e) * _any_target(one_hot) + e / vocab)(
        logits, targets, smoothing, pad_id
    )


@mistake
def every_target_in_every_row_without_its_share(logits, targets, smoothing, pad_id):
    """In every row, the targets of *all* positions get 1 − ε, and the other classes ε / V. A position has one target,
    which gets a share of ε too."""
    return by_label(
        lambda one_hot, vocab, e, pad: (1 - e) * _any_target(one_hot) + e / vocab * (1 - _any_target(one_hot))
    )(logits, targets, smoothing, pad_id)


@mistake
def smoothing_ignored(logits, targets, smoothing, pad_id):
    """The result does not depend on `smoothing`."""
    return by_label(lambda one_hot, vocab, e, pad: one_hot)(logits, targets, smoothing, pad_id)


@mistake
def only_scaled(logits, targets, smoothing, pad_id):
    """The target term is multiplied by 1 − ε, and the other term is missing. Where does the mass ε go?"""
    return by_label(lambda one_hot, vocab, e, pad: (1 - e) * one_hot)(logits, targets, smoothing, pad_id)


@mistake
def mass_added(logits, targets, smoothing, pad_id):
    """The smoothing is added, but nothing is subtracted from the target: the label sums to 1 + ε."""
    return by_label(lambda one_hot, vocab, e, pad: one_hot + e / vocab)(logits, targets, smoothing, pad_id)


@mistake
def mass_added_in_full(logits, targets, smoothing, pad_id):
    """Every class gets ε instead of its share: all V classes together get the mass ε. Did you use a sum instead of a
    mean?"""
    return by_label(lambda one_hot, vocab, e, pad: (1 - e) * one_hot + e)(logits, targets, smoothing, pad_id)


@mistake
def weights_exchanged(logits, targets, smoothing, pad_id):
    """1 − ε and ε are exchanged: with a small ε nearly all of the label is spread out."""
    return by_label(lambda one_hot, vocab, e, pad: e * one_hot + (1 - e) / vocab)(logits, targets, smoothing, pad_id)


@mistake
def only_uniform(logits, targets, smoothing, pad_id):
    """The target is not used in the loss: there is only the term in which all classes count the same."""
    return by_label(lambda one_hot, vocab, e, pad: torch.full_like(one_hot, 1 / vocab))(
        logits, targets, smoothing, pad_id
    )
