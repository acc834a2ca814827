"""Train and eval mode, random numbers, state that is kept between calls, and other side effects of a call."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from course_kit.diagnosing.calling import find_logits
from course_kit.diagnosing.report import Finding
from course_kit.diagnosing.subject import Subject, seeded

__all__ = ["determinism", "side_effects", "train_and_eval"]


def determinism(subject: Subject) -> Finding:
    """Do two equal calls in eval mode return the same logits?"""
    name, measured = "determinism", "largest difference between two equal calls in eval mode"
    model = subject.copied()
    with torch.no_grad(), seeded(0):
        first, second = subject.batch.logits(model), subject.batch.logits(model)
    number = _difference(first, second)
    if subject.keeps_state:
        message = (
            "A second call with the same inputs and the same random numbers returns other logits: the model keeps "
            "something from call to call, such as a hidden state, a cache or a counter."
        )
        return Finding(name, "wrong", message, number, measured)
    if subject.is_random:
        message = (
            "The logits are random in eval mode. Look for F.dropout without training=self.training, for noise, for a "
            "layer that is built anew in each call, and for dropout in modules that are not registered."
        )
        return Finding(name, "wrong", message, number, measured)
    return Finding(name, "fine", "Two equal calls return the same logits.", number, measured)


def train_and_eval(subject: Subject) -> Finding:
    """Is dropout active in train mode?"""
    name, measured = "train and eval mode", "largest difference between two calls in train mode"
    dropping = [name for name, module in subject.model.named_modules() if _drops(module)]
    model = subject.copied(train=True)
    stuck = [name or "the model" for name, module in model.named_modules() if not module.training]
    if stuck:
        message = f"After `train()`, {stuck[0]} is still in eval mode ({len(stuck)} modules are)."
        return Finding(name, "suspicious", message, len(stuck), "modules that stay in eval mode")
    stuck = [name or "the model" for name, module in subject.copied().named_modules() if module.training]
    if stuck:
        message = f"After `eval()`, {stuck[0]} is still in train mode ({len(stuck)} modules are)."
        return Finding(name, "wrong", message, len(stuck), "modules that stay in train mode")
    with torch.no_grad():
        found = []
        for seed in (1, 2, 3):
            with seeded(seed):
                found.append(subject.batch.logits(subject.copied(train=True)))
    number = max(_difference(found[0], each) for each in found[1:])
    if dropping and not number:
        message = (
            f"There is dropout ({dropping[0]}, {len(dropping)} in all), but nothing is dropped in train mode: it is "
            f"not called, or its result is not used."
        )
        return Finding(name, "suspicious", message, number, measured)
    if dropping:
        message = "Dropout is active in train mode; the check of determinism says whether it is silent in eval mode."
    elif number:
        message = "The model is random in train mode, although no module has dropout."
    else:
        message = "There is no dropout."
    return Finding(name, "fine", message, number, measured)


def _drops(module: nn.Module) -> bool:
    if isinstance(module, nn.modules.dropout._DropoutNd):
        return module.p > 0
    if isinstance(module, nn.MultiheadAttention):
        return module.dropout > 0
    return isinstance(module, nn.RNNBase) and module.dropout > 0 and module.num_layers > 1


def side_effects(subject: Subject) -> Finding:
    """Does a call change the inputs, the parameters, the buffers or PyTorch's own switches?"""
    name, measured = "side effects", "tensors that a call has changed"
    changed: dict[str, str] = {}
    for train in (False, True):
        model = subject.copied(train=train)
        inputs = {n: v.clone() if isinstance(v, Tensor) else v for n, v in subject.batch.inputs.items()}
        before = _tensors(model)
        with seeded(0), torch.enable_grad():
            find_logits(subject.batch.passed(inputs, model), subject.batch.tokens)
            if not torch.is_grad_enabled():
                changed["torch.is_grad_enabled()"] = "the switch for gradients"
        kinds = {"parameter", "input"} | (set() if train else {"buffer"})  # running statistics belong to training
        now = _tensors(model)
        for (kind, tensor), old in before.items():
            if kind in kinds and not _same(now.get((kind, tensor)), old):
                changed[f"{kind} `{tensor}`"] = kind
        for key, value in subject.batch.inputs.items():
            if isinstance(value, Tensor) and not _same(inputs[key], value):
                changed[f"input `{key}`"] = "input"
    if not changed:
        message = "A call changes neither its inputs nor the parameters, nor the buffers in eval mode."
        return Finding(name, "fine", message, 0, measured)
    message = (
        f"A call changes {', '.join(list(changed)[:4])}. An operation that works in place (with a name that ends in _, "
        f"or an assignment to an index) is meant for a copy."
    )
    wrong = {"parameter", "input", "the switch for gradients"} & set(changed.values())
    return Finding(name, "wrong" if wrong else "suspicious", message, len(changed), measured)


def _tensors(model: nn.Module) -> dict[tuple[str, str], Tensor]:
    named = [("parameter", n, t) for n, t in model.named_parameters()]
    named += [("buffer", n, t) for n, t in model.named_buffers()]
    return {(kind, n): t.detach().clone() for kind, n, t in named}


def _same(one: Tensor | None, other: Tensor) -> bool:
    if one is None or one.shape != other.shape:
        return False
    return torch.equal(one.nan_to_num(), other.nan_to_num()) if one.is_floating_point() else torch.equal(one, other)


def _difference(one: Tensor, other: Tensor) -> float:
    return (one.nan_to_num() - other.nan_to_num()).abs().max().item()
