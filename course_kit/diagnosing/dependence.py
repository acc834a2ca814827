"""Which tokens the logits depend on: causality, the order of the tokens, and the other sequences of the batch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from course_kit.diagnosing.calling import Batch
from course_kit.diagnosing.report import Finding
from course_kit.diagnosing.subject import TOLERANCE, Subject

__all__ = ["batch_independence", "causality", "depends_on_tokens", "order"]

_LEAK = "largest change of earlier logits, relative to the largest logit"


def depends_on_tokens(subject: Subject) -> Finding:
    """Do the logits change at all when a token is replaced?"""
    if not subject.logits.isfinite().all():
        return Finding("tokens", "not checked", subject.blind)
    number = subject.influence.max().item()
    measured = "largest change when one token is replaced, relative to the largest logit"
    if number > TOLERANCE:
        return Finding("tokens", "fine", "The logits depend on the tokens.", number, measured)
    return Finding(
        "tokens",
        "suspicious",
        "The logits are the same whatever the tokens are, so the checks of causality, padding and order have nothing "
        "to see. This is intended only if the last layer starts at zero.",
        number,
        measured,
    )


def causality(subject: Subject) -> Finding:
    """Do the logits at a position depend on later tokens?"""
    name, influence = "causality", subject.influence
    length = subject.batch.tokens.shape[1]
    real = subject.batch.real(subject.batch.streams[-1], subject.pad_id).to(influence.device)  # (B, L)
    rows, columns = torch.arange(length)[:, None], torch.tensor(subject.columns)
    both = (real[:, :, None] & real[:, None, columns]).any(dim=0).cpu()  # (L, columns)
    changes = influence.cpu() > TOLERANCE
    later, earlier = both & (columns > rows), both & (columns < rows)
    if not later.any():
        return Finding(name, "not checked", "It takes a sequence with at least two tokens that are not padding.")
    if subject.blind:
        return Finding(name, "not checked", subject.blind)
    number = influence.cpu()[later].max().item()
    share = f"{int(changes[later].sum())} of {int(later.sum())} pairs of a position and a later token"
    past = f"{int(changes[earlier].sum())} of {int(earlier.sum())}"
    if not changes[later].any():
        if subject.causal is False:
            message = (
                "No position depends on a later token, although causal=False: the model reads in one direction only."
            )
            return Finding(name, "suspicious", message, number, _LEAK)
        message = "No position depends on a later token, as a model that predicts the next token requires."
        if subject.causal is None:
            message += " An encoder that should read in both directions must not be restricted like this."
        return Finding(name, "fine", message, number, _LEAK)
    if subject.causal:
        message = (
            f"The future leaks: {share} show an effect. The training loss will be too good to be true; "
            f"look at the causal mask, its polarity and its diagonal."
        )
        return Finding(name, "wrong", message, number, _LEAK)
    if not changes[earlier].any() and both[rows > columns].any():
        message = (
            f"Positions depend on later tokens ({share}) but on no earlier one. The causal mask is probably the wrong "
            f"way round: in some functions True means that attention is allowed, in others that it is not."
        )
        return Finding(name, "suspicious", message, number, _LEAK)
    if changes[later].all() or _symmetric(changes, subject.columns, both):
        message = (
            f"Positions depend on later tokens ({share}). That is right for an encoder such as BERT, and a leak in a "
            f"language model; pass causal=True or causal=False to have it judged."
        )
        if subject.causal is False:
            message = (
                f"Positions depend on later tokens ({share}), as they should in a model that reads both directions."
            )
        return Finding(name, "fine", message, number, _LEAK)
    message = (
        f"Some later tokens leak and others do not: {share} show an effect, and {past} pairs with an earlier token. A "
        f"causal mask may be missing, shifted by one, or forgotten in one layer."
    )
    return Finding(name, "suspicious", message, number, _LEAK)


def _symmetric(changes: Tensor, columns: list[int], both: Tensor) -> bool:
    """Whether i depends on j just where j depends on i, as in a convolution around each position."""
    square, counted = changes[columns], both[columns]  # (columns, columns)
    return bool(((square == square.T) | ~counted | ~counted.T).all())


def order(subject: Subject) -> Finding:
    """Do the logits at the last token change when the tokens before it are put into reverse order?"""
    name, measured = "order", "smallest change of the last logits, relative to the largest logit"
    run, batch = subject.runner(), subject.batch
    usual = run(batch)
    last = _last_real(batch, batch.streams[-1], subject)
    found = {}
    for stream in batch.streams:
        target = stream == batch.streams[-1]
        tokens, end = batch.inputs[stream], _last_real(batch, stream, subject)
        turned, places = tokens.clone(), []
        for row in range(len(tokens)):
            size = end[row] if target else end[row] + 1
            turned[row, :size] = tokens[row, :size].flip(0)
            if not torch.equal(turned[row], tokens[row]) and not (target and end[row] < 2):
                places.append(row)
        if places:
            ends = [last[row] for row in places]
            change = (run(batch.changed(**{stream: turned})) - usual)[places, ends]
            found[stream] = (change.abs().max() / usual.abs().max().clamp(min=1e-30)).item()
    if not found:
        return Finding(name, "not checked", "It takes a sequence of at least three tokens that are not all the same.")
    if subject.blind:
        return Finding(name, "not checked", subject.blind)
    stream, number = min(found.items(), key=lambda pair: pair[1])
    if number > TOLERANCE:
        message = "The order of the tokens has an effect."
        return Finding(name, "fine", message, number, measured)
    where = f" of `{stream}`" if len(batch.streams) > 1 else ""
    message = (
        f"Putting the tokens{where} into another order changes nothing at the last position: a position code is "
        f"missing or not added, or earlier tokens are not used at all."
    )
    return Finding(name, "suspicious", message, number, measured)


def _last_real(batch: Batch, stream: str, subject: Subject) -> list[int]:
    real = batch.real(stream, subject.pad_id)
    places = torch.arange(real.shape[1], device=real.device)
    return (real * places).amax(dim=1).tolist()


def batch_independence(subject: Subject) -> Finding:
    """Do a sequence's logits change when the other sequences of the batch do?"""
    name, measured = "batch independence", "change of one sequence's logits, relative to the largest logit"
    if not subject.logits.isfinite().all():
        return Finding(name, "not checked", subject.blind)
    pair = subject.batch.rows([0, 1 if len(subject.batch.tokens) > 1 else 0])
    found = {}
    for train in (False, True):
        run = subject.runner(train=train)
        usual = run(pair)
        # Both ways, since a recurrent layer that takes the batch for time reads it in one direction only.
        changes = [(run(_with_other_row(subject, pair, row)) - usual)[1 - row].abs().max() for row in (0, 1)]
        found[train] = (max(changes) / usual.abs().max().clamp(min=1e-30)).item()
    if found[False] > TOLERANCE:
        message = (
            "A sequence's logits depend on the other sequences in the batch. Look for a softmax over the wrong axis, "
            "for a reshape or a transpose that mixes the batch with another axis, and for a missing batch_first=True."
        )
        return Finding(name, "wrong", message, found[False], measured)
    if found[True] > TOLERANCE:
        norms = [name for name, module in subject.model.named_modules() if isinstance(module, _BATCH_NORMS)]
        cause = f"batch norm ({norms[0]})" if norms else "a statistic of the whole batch"
        message = (
            f"In train mode, a sequence's logits depend on the other sequences in the batch: {cause}. Padding and "
            f"neighbours then change the training of each sentence; transformers use layer norm."
        )
        return Finding(name, "suspicious", message, found[True], measured)
    return Finding(name, "fine", "Sequences do not affect each other.", max(found.values()), measured)


def _with_other_row(subject: Subject, pair: Batch, row: int) -> Batch:
    """A batch of two sequences with other tokens in one of them."""
    values = {}
    for stream in pair.streams:
        tokens = pair.inputs[stream]
        other = subject.other_tokens(subject.batch.inputs[stream])[: len(tokens)]
        values[stream] = torch.where(torch.arange(2, device=tokens.device)[:, None] == row, other, tokens)
    return pair.changed(**values)


_BATCH_NORMS = (nn.modules.batchnorm._BatchNorm,)
