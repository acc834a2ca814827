"""The building blocks of the mistakes in `label_smoothing_loss`."""

from __future__ import annotations

import torch

__all__ = ["by_label", "column", "loss", "real_positions", "smoothed", "smoothed_labels"]


def _log_softmax(logits):
    return logits.log_softmax(-1)


def smoothed_labels(one_hot, e, pad):
    return (1 - e) * one_hot + e / one_hot.shape[1]


def _mean(each, real, vocab):
    return each[real].mean()


def loss(*, transform=_log_softmax, label=smoothed_labels, mean=_mean, real=lambda targets, pad: targets != pad):
    """The loss with parts replaced; unchanged, it is right."""

    def solution(logits, targets, smoothing, pad_id):
        vocab = logits.shape[1]
        one_hot = torch.nn.functional.one_hot(targets, vocab).to(logits.dtype)
        each = -(label(one_hot, smoothing, pad_id) * transform(logits)).sum(-1)
        return mean(each, real(targets, pad_id), vocab)

    return solution


def real_positions(targets, pad_id):
    return targets != pad_id


def by_label(label, transform=lambda logits: logits.log_softmax(-1), mean=None):
    """The loss with another label: `label(one_hot, V, smoothing, pad_id)` gives q, one row per position."""

    def loss(logits, targets, smoothing, pad_id):
        one_hot = torch.nn.functional.one_hot(targets, logits.shape[1]).to(logits.dtype)
        q = label(one_hot, logits.shape[1], smoothing, pad_id)
        each = -(q * transform(logits)).sum(-1)
        return (mean or _mean_of_real)(each, real_positions(targets, pad_id))

    return loss


def smoothed(one_hot, vocab, smoothing, pad_id):
    return (1 - smoothing) * one_hot + smoothing / vocab


def _mean_of_real(each, real):
    return each[real].mean()


def column(vocab, pad_id, like):
    return torch.nn.functional.one_hot(torch.tensor(pad_id), vocab).to(like.dtype)  # (V,): 1 at pad_id
