"""`diagnose`: all checks, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from course_kit._checks import check_ids, check_instance, check_whole
from course_kit.diagnosing import dependence, gradients, losses, modes, padding, precision, saturation
from course_kit.diagnosing.calling import Batch, find_logits, read_batch
from course_kit.diagnosing.report import Finding, Report
from course_kit.diagnosing.subject import Subject, copied, isolated, seeded
from course_lib.debugging import check_built

__all__ = ["CHECKS", "diagnose"]

CHECKS: dict[str, Callable[[Subject], Finding]] = {
    "logits": losses.logit_values,
    "determinism": modes.determinism,
    "train and eval mode": modes.train_and_eval,
    "side effects": modes.side_effects,
    "tokens": dependence.depends_on_tokens,
    "causality": dependence.causality,
    "padding": padding.padding,
    "order": dependence.order,
    "batch independence": dependence.batch_independence,
    "attention weights": saturation.attention_weights,
    "unregistered parameters": gradients.hidden_parameters,
    "trainable parameters": gradients.trainable,
    "unused parameters": gradients.unused_parameters,
    "dead gradients": gradients.dead_gradients,
    "start loss": losses.starting_loss,
    "one batch": losses.one_batch,
    "float64": precision.double_precision,
    "half precision": precision.half_precision,
    "device": precision.other_device,
}


def diagnose(
    model: nn.Module,
    batch: Tensor | tuple[Tensor, ...] | Mapping[str, Tensor],
    *,
    targets: Tensor | None = None,
    pad_id: int | None = None,
    causal: bool | None = None,
) -> Report:
    """Examine a model with tokens in and logits out: does it leak, ignore, lose or forget something?

    Every check runs copies of the model, so that weights, buffers, gradients, mode and random numbers are afterwards
    what they were. Hooks run with the copies; what they write outside the model is not undone. A check that fails or
    cannot run is reported as "not checked", with the reason.

    Args:
        model: any module that returns logits `(B, L, V)`, a tuple that contains them, or an object with `.logits`.
        batch: what it is called with: tokens `(B, L)`; a tuple, passed in order, such as source and target; or a dict,
            passed by name, as for models of Hugging Face. The last of the inputs that are tokens is what is predicted
            from; `targets` that the model can do without are its right answers. A few short sequences are enough, and
            two or more are better than one.
        targets: int `(B, L)`, the right answers at each position, −100 or pad_id where there is none. If they are not
            given, they are the `labels` of a dict or the `targets` in the batch, or else the tokens, one position on.
        pad_id: the padding token.
        causal: whether a position must not depend on later tokens. None: yes for a source and a target, and where the
            labels are the inputs or the tokens that follow them; otherwise what is measured is reported, and an alarm
            is given only if some later tokens leak and others do not.

    Returns:
        A report; it prints as text, and as HTML in a notebook.

    Raises:
        TypeError: model is not a module (but, for example, its class), batch has no integer tensor `(B, L)`, targets
            are not integers, pad_id is not a whole number, causal is not a bool, or no logits come back.
        ValueError: the batch is empty, pad_id or a target is not in the vocabulary, targets have another shape than the
            tokens, the logits are not `(B, L, V)`, the model has no weights yet, or it cannot be copied or run on this
            batch.
    """
    _check_model(model)
    if causal is not None:
        check_instance(bool, causal=causal)
    if pad_id is not None:
        check_whole(pad_id=pad_id, least=0, hint="; pass the padding token of the inputs")
    with isolated(model):
        read = read_batch(model, batch)
        with isolated(model):  # a model that changes PyTorch's switches does so for the next call only
            logits = _first_logits(model, read)
        vocab_size = logits.shape[-1]
        if pad_id is not None and pad_id >= vocab_size:
            raise ValueError(f"pad_id must be in the vocabulary, 0 … {vocab_size - 1}, got {pad_id}; pass a token")
        if causal is None and (
            len(read.streams) > 1 or _predicts_its_input(read) or _predicts_its_input(read, later=1)
        ):
            causal = True
        found, aligned = _targets(read, targets, pad_id, vocab_size)
        subject = Subject(model, read, found, aligned, pad_id, causal, logits)
        return Report(_described(model, subject), [_tried(name, check, subject) for name, check in CHECKS.items()])


def _check_model(model: nn.Module) -> None:
    if isinstance(model, type):
        raise TypeError(f"model must be a module, got the class {model.__name__}; build a model from it first")
    check_instance(nn.Module, model=model)
    check_built(model)


def _first_logits(model: nn.Module, batch: Batch) -> Tensor:
    try:
        used = copied(model).eval()
    except Exception as error:
        raise ValueError(
            f"model must be copyable, got {type(error).__name__}: {error}; diagnose runs copies only, so remove what "
            f"copy.deepcopy refuses"
        ) from error
    with torch.no_grad(), seeded(0):
        try:
            output = batch.output(used)
        except Exception as error:
            text = f"{type(error).__name__}: {error}".rstrip(": ")
            raise ValueError(
                f"model must run in eval mode on this batch ({', '.join(batch.inputs)}), got {text}; "
                f"{_remedy(error, batch)}"
            ) from error
    return find_logits(output, batch.tokens).detach()


def _remedy(error: Exception, batch: Batch) -> str:
    """What to look at when a model does not run."""
    if isinstance(error, IndexError):
        tokens = [batch.inputs[name] for name in batch.streams]
        largest, length = max(int(each.max()) for each in tokens), max(each.shape[1] for each in tokens)
        return f"compare the largest token, {largest}, and the length, {length}, with the sizes of its embeddings"
    if isinstance(error, TypeError):
        return "pass a tuple for several inputs in order, or a dict for inputs by name"
    return "call it on the batch yourself, or pass what is missing: a tuple in order, or a dict by name"


def _predicts_its_input(batch: Batch, *, later: int = 0) -> bool:
    """Whether each label is the token at its own position, or one so many positions later."""
    labels, tokens = batch.labels, batch.tokens
    if labels is None or labels.shape != tokens.shape:
        return False
    labels, tokens = labels[:, : labels.shape[1] - later], tokens[:, later:]
    counted = labels != -100
    return bool(counted.any() and (labels == tokens)[counted].all())


def _targets(batch: Batch, targets: Tensor | None, pad_id: int | None, vocab_size: int) -> tuple[Tensor | None, str]:
    """Targets with −100 where there is none, and what they are in words."""
    tokens = batch.tokens
    if targets is not None:
        check_ids(targets=targets)
        if targets.shape != tokens.shape:
            raise ValueError(
                f"targets must have the shape of the tokens, {tuple(tokens.shape)}, got {tuple(targets.shape)}; one "
                f"target per position, −100 where there is none"
            )
        found, aligned = targets.long(), "against the targets"
    elif batch.labels is not None and not _predicts_its_input(batch) and batch.labels.shape == tokens.shape:
        found, aligned = batch.labels.long(), "against the labels"
    elif tokens.shape[1] > 1:
        found, aligned = tokens.long().roll(-1, dims=1), "against the next tokens"
        found[:, -1] = -100
        found = found.where(batch.real(batch.streams[-1], pad_id).roll(-1, dims=1), -100)
        found = found.where(found < vocab_size, -100)
    else:
        return None, ""
    if pad_id is not None:
        found = found.where(found != pad_id, -100)
    counted = found[found != -100]
    if len(counted) and (counted.min() < 0 or counted.max() >= vocab_size):
        raise ValueError(
            f"targets must be tokens of the vocabulary, 0 … {vocab_size - 1}, or −100 for none, got "
            f"{int(counted.min())} … {int(counted.max())}; does the model have as many logits as there are tokens?"
        )
    return (found, aligned) if len(counted) else (None, "")


def _tried(name: str, check: Callable[[Subject], Finding], subject: Subject) -> Finding:
    try:
        with isolated(subject.model):
            return check(subject)
    except Exception as error:
        text = " ".join(str(error).split())[:200]
        return Finding(name, "not checked", f"The check ended with {type(error).__name__}: {text}")


def _described(model: nn.Module, subject: Subject) -> str:
    numbers = sum(p.numel() for p in model.parameters())
    batch, length, vocab_size = subject.logits.shape
    return f"{type(model).__name__} with {numbers:,} parameters, {batch} × {length} tokens, {vocab_size} logits each"
