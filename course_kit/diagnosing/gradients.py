"""Which parameters can learn: modules that were never registered, parameters without a gradient, frozen ones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from types import FunctionType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_kit.diagnosing.report import Finding
from course_kit.diagnosing.subject import Subject, seeded
from course_lib.debugging import idle_parameters

__all__ = ["batch_loss", "dead_gradients", "hidden_parameters", "step", "trainable", "unused_parameters"]

_STEPS = 3  # of training, after which a layer that started at zero has gradients
_DEPTH = 4  # of lists in lists


def batch_loss(subject: Subject, model: nn.Module) -> Tensor:
    """Cross-entropy per target of a copy on the batch, with the same random numbers each time."""
    in_float32 = {p.dtype for p in model.parameters()} == {torch.float32}
    batch = subject.batch.to(torch.float32) if in_float32 else subject.batch
    with seeded(0):
        logits = batch.logits(model)
    targets = subject.targets
    if targets is None:  # nothing to predict: some loss that every logit takes part in
        return logits.float().logsumexp(dim=-1).mean() - logits.float()[..., 0].mean()
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten().to(logits.device).long())


def step(optimizer: torch.optim.Optimizer, parameters: list[Tensor], loss: Tensor) -> None:
    """One update. `loss.backward()` would also add to gradients of what a copy shares with its model, as a closure."""
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    for parameter, gradient in zip(parameters, found, strict=True):
        parameter.grad = gradient
    optimizer.step()


def trainable(subject: Subject) -> Finding:
    """Are there parameters to train, and which are frozen?"""
    name, measured = "trainable parameters", "numbers that can be trained"
    parameters = dict(subject.model.named_parameters())
    frozen = [name for name, p in parameters.items() if not p.requires_grad]
    number = sum(p.numel() for p in parameters.values() if p.requires_grad)
    if not parameters:
        message = "The model has no parameters, so that an optimizer would have nothing to train."
        return Finding(name, "wrong", message, 0, measured)
    if len(frozen) == len(parameters):
        message = "All parameters are frozen (requires_grad is False), so that nothing can be trained."
        return Finding(name, "suspicious", message, 0, measured)
    if frozen:
        return Finding(name, "fine", f"Frozen, and not judged: {_some(frozen)}.", number, measured)
    return Finding(name, "fine", "No parameter is frozen.", number, measured)


def hidden_parameters(subject: Subject) -> Finding:
    """Are there parameters that `parameters()` does not list, such as those of modules in a plain list?"""
    name, measured = "unregistered parameters", "numbers that no optimizer would see"
    model = subject.copied()
    hidden = dict(_hidden(model, subject.model))
    number = sum(p.numel() for p in hidden.values())
    if not hidden:
        return Finding(name, "fine", "Every parameter is listed by `parameters()`.", 0, measured)
    leaves = {name: p for name, p in hidden.items() if p.requires_grad}
    loss = batch_loss(subject, model)
    used = []
    if leaves and loss.requires_grad:
        found = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
        used = [name for name, grad in zip(leaves, found, strict=True) if grad is not None]
    if used:
        message = (
            f"{_some(used)} take part in the loss but `parameters()` does not list them: an optimizer never trains "
            f"them, `to()` never moves them and `state_dict()` never saves them. Use nn.ModuleList, nn.ModuleDict or "
            f"nn.Parameter."
        )
        return Finding(name, "wrong", message, number, measured)
    message = f"{_some(list(hidden))} are not listed by `parameters()`; they are not trained by this loss either."
    return Finding(name, "suspicious" if leaves else "fine", message, number, measured)


def _hidden(model: nn.Module, original: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Name and tensor of every parameter that is found in attributes only.

    A function in an attribute or a hook may refer to the original, since `copy.deepcopy` copies no functions.
    """
    known = {id(p) for each in (model, original) for p in each.parameters()}
    modules = {id(module) for each in (model, original) for module in each.modules()}
    for path, module in model.named_modules():
        for attribute, value in vars(module).items():
            if attribute in ("_parameters", "_buffers", "_modules"):
                continue
            for name, found in _inside(f"{path}.{attribute}".lstrip("."), value, _DEPTH):
                inner = found.named_parameters() if isinstance(found, nn.Module) else [("", found)]
                if id(found) in modules:
                    continue
                for last, parameter in inner:
                    if id(parameter) not in known:
                        known.add(id(parameter))
                        yield f"{name}.{last}".rstrip("."), parameter


def _inside(name: str, value: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if isinstance(value, nn.Module):
        yield name, value
    elif isinstance(value, Tensor):
        if value.is_leaf and (value.requires_grad or isinstance(value, nn.Parameter)):
            yield name, value
    elif depth and isinstance(value, list | tuple | set):
        for number, each in enumerate(value):
            yield from _inside(f"{name}[{number}]", each, depth - 1)
    elif depth and isinstance(value, dict):
        for key, each in value.items():
            yield from _inside(f"{name}[{key!r}]", each, depth - 1)
    elif depth and isinstance(value, FunctionType):
        for variable, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            with suppress(ValueError):  # a variable that has no value yet
                yield from _inside(f"{name}({variable})", cell.cell_contents, depth - 1)


def unused_parameters(subject: Subject) -> Finding:
    """Are there parameters from which no path leads to the loss?"""
    name, measured = "unused parameters", "parameters without a path to the loss"
    if not any(p.requires_grad for p in subject.model.parameters()):
        return Finding(name, "not checked", "There is nothing to train.")
    model = subject.copied()
    loss = batch_loss(subject, model)
    if not loss.requires_grad:
        message = (
            "The loss has no gradient at all: the forward pass runs under no_grad, or its result is detached or "
            "rounded (argmax)."
        )
        count = sum(p.requires_grad for p in model.parameters())
        return Finding(name, "wrong", message, count, measured)
    unused = [name for name, kind in idle_parameters(model, loss).items() if kind == "unused"]
    if not unused:
        return Finding(name, "fine", "A path leads from every parameter to the loss.", 0, measured)
    message = (
        f"No path leads to the loss from {_some(unused)}. They are never trained: a layer is not called, or its result "
        f"is detached, computed under no_grad or thrown away. (Experts that no token has chosen are harmless.)"
    )
    return Finding(name, "suspicious", message, len(unused), measured)


def dead_gradients(subject: Subject) -> Finding:
    """Are there parameters whose gradient is zero everywhere, and stays so while the others are trained?"""
    name, measured = "dead gradients", "parameters with a gradient of zeros"
    if subject.batch.tokens.shape[1] < 2:  # nothing to attend to, and no state to take over
        return Finding(name, "not checked", "It takes a sequence with at least two tokens.")
    model = subject.trained_copy()
    loss = batch_loss(subject, model)
    if not loss.requires_grad:
        return Finding(name, "not checked", "The loss has no gradient.")
    first = dead = {name for name, kind in idle_parameters(model, loss).items() if kind == "zero"}
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    for _ in range(_STEPS if dead else 0):
        step(optimizer, parameters, loss)
        loss = batch_loss(subject, model)
        dead = dead & {name for name, kind in idle_parameters(model, loss).items() if kind == "zero"}
    if dead and all("expert" in each for each in dead):
        message = (
            f"The gradient is exactly zero for {_some(sorted(dead))}. Experts that none of these tokens has chosen are "
            f"harmless; try a batch with more tokens."
        )
        return Finding(name, "suspicious", message, len(dead), measured)
    if dead:
        message = (
            f"The gradient is exactly zero, and stays so while the rest is trained, for {_some(sorted(dead))}. Look "
            f"for ReLUs that never fire, weights that all start at zero, and masks that remove everything."
        )
        return Finding(name, "wrong", message, len(dead), measured)
    message = "Every gradient has entries that are not zero."
    if first:
        message = (
            f"At the start, {_some(sorted(first))} had a gradient of zeros, but not after {_STEPS} steps of training."
        )
    return Finding(name, "fine", message, 0, measured)


def _some(names: list[str], most: int = 4) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
