"""Call a solution once and write down what happened; no judgement here, and nothing that knows the right answer.

The same function runs in a learner's notebook and in the process that holds an untrusted submission.
"""

from __future__ import annotations

import contextlib
import linecache
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_kit._packages import OURS
from course_kit.checker.blocked_by_sandbox import refused
from course_kit.checker.forbidden_calls import CallWatcher
from course_kit.checker.memory_layout import copied
from course_kit.checker.tensor_limit import TensorSizeLimit
from course_kit.exercises import Case, Exercise
from course_kit.exercises._language_model import NextLogProbs

__all__ = ["DEEPEST", "LONGEST", "Foreign", "Observation", "Problem", "Sequence", "Signature", "leaves", "observe"]
__all__ += ["LARGEST_INT", "problem_of", "unwrapped"]

# Sequences that are looked into: items of one, and how many lie in one another. No exercise's result comes near.
LONGEST = 256
LARGEST_INT = 300  # digits
DEEPEST = 2


@dataclass(frozen=True)
class Signature:
    """What a submission's process knows of an exercise; an `Exercise` has the same attributes.

    Args:
        name: of the function or class.
        arguments: names of the positional arguments, of `forward` for a class.
        is_class: whether the solution is a class.
        forbidden: functions that are the whole exercise, see `Exercise.forbidden`.
    """

    name: str
    arguments: tuple[str, ...]
    is_class: bool = False
    forbidden: tuple[str, ...] = ()

    @classmethod
    def of(cls, message: dict[str, Any]) -> Signature:
        """From the grader's message."""
        return cls(message["name"], tuple(message["arguments"]), message["is_class"], tuple(message["forbidden"]))


@dataclass(frozen=True)
class Foreign:
    """A value that no exercise uses, known only by the name of its type."""

    type: str


@dataclass(frozen=True)
class Sequence:
    """A tuple or a list."""

    type: str
    items: tuple


@dataclass(frozen=True)
class Problem:
    """An exception in a solution's code.

    Args:
        type: class of the exception.
        message: its text.
        line: number of the solution's own line that was running, 0 if unknown.
        code: that line.
        bases: names of the classes that the exception is an instance of.
        file: where the line is, such as "cell 3".
        refused: whose attempt the grader's walls refused, see `sandbox.refusals`; "" if they did nothing.
    """

    type: str
    message: str
    line: int = 0
    code: str = ""
    bases: tuple[str, ...] = ()
    file: str = ""
    refused: str = ""


@dataclass
class Observation:
    """What one case did to a solution.

    Args:
        value: what was returned: tensors, numbers, `Sequence`, `Foreign`.
        problem: the exception that ended the call, or None.
        stage: where it came: "build", "load", "call", "gradients".
        changed: names of arguments that the call changed.
        random: whether the global random state was changed by the call.
        parameters: a class's parameters, name to shape.
        gradients: of the result with respect to the floating arguments, then parameters by name; None where none flows.
        training: what the call returned in train mode, where it was asked for.
        used: forbidden functions that were called.
    """

    value: Any = None
    problem: Problem | None = None
    stage: str = ""
    changed: tuple[str, ...] = ()
    random: bool = False
    parameters: dict[str, tuple[int, ...]] = field(default_factory=dict)
    gradients: dict[str, Tensor | None] = field(default_factory=dict)
    training: Any = None
    used: tuple[str, ...] = ()


class Stop(Exception):  # noqa: N818 - nothing is wrong when an observation ends early
    """Ends an observation; the problem has been written down."""


def observe(
    solution: Callable,
    exercise: Exercise | Signature,
    case: Case,
    cotangents: tuple[Tensor | None, ...] = (),
    *,
    train_too: bool = False,
    watch: bool = True,
) -> Observation:
    """Run one case.

    Args:
        solution: the learner's function or class.
        exercise: which exercise it answers.
        case: what goes in; its tensors are copied before they are handed over.
        cotangents: one for each returned tensor, contracted with it before gradients are taken; none, no gradients.
        train_too: for a class, call it in train mode as well.
        watch: note the use of forbidden functions.
    """
    seen = Observation()
    # Only what may run the solution's code is watched: it takes twice as long.
    watcher = CallWatcher(exercise) if watch else contextlib.nullcontext()
    with contextlib.suppress(Stop), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call = solution
        if exercise.is_class:
            with watcher:
                call = _build(solution, case, seen)
            if not case.args:
                raise Stop  # the case is about the constructor
        args = _copies(case.args)
        before = torch.get_rng_state()
        with torch.no_grad(), watcher, _sparing(exercise, case, args):
            seen.value = plain(_try(seen, "call", lambda: call(*args)))
        seen.random = not torch.equal(before, torch.get_rng_state())
        seen.changed = tuple(
            name
            for name, mine, given in zip(exercise.arguments, case.args, args, strict=False)
            if isinstance(mine, Tensor | list | tuple) and not _same(mine, given)
        )
        if train_too and exercise.is_class:
            call.train()
            with torch.no_grad(), watcher:
                seen.training = plain(_try(seen, "call", lambda: call(*_copies(case.args))))
            call.eval()
        if cotangents:
            _gradients(call, exercise, case, cotangents, seen, watcher)
    if watch:
        seen.used = tuple(sorted(watcher.used))
    return seen


def _sparing(exercise: Exercise | Signature, case: Case, args: list) -> contextlib.AbstractContextManager:
    """What ends the call where it takes more memory than the case allows."""
    if case.max_numel is None:
        return contextlib.nullcontext()
    return TensorSizeLimit((args[0], args[1]), exercise.arguments[:2], case.max_numel)


def _build(solution: Callable, case: Case, seen: Observation) -> nn.Module:
    module = _try(seen, "build", lambda: solution(*case.init))
    if not isinstance(module, nn.Module):
        seen.stage, seen.problem = "build", Problem("TypeError", f"{type(module).__name__} is not an nn.Module")
        raise Stop
    if case.state:
        dtype = next(iter(case.state.values())).dtype
        module = _try(seen, "load", lambda: module.to(dtype))
        named = dict(module.named_parameters())  # buffers are not part of the contract
        seen.parameters = {name: tuple(p.shape) for name, p in named.items()}
        if seen.parameters != {name: tuple(p.shape) for name, p in case.state.items()}:
            seen.stage, seen.problem = "load", Problem("KeyError", "the parameters are not the ones asked for")
            raise Stop
        with torch.no_grad():
            for name, parameter in named.items():
                parameter.copy_(case.state[name])
    return module.eval()


def _gradients(call, exercise: Exercise | Signature, case: Case, cotangents: tuple, seen: Observation, watcher) -> None:
    inputs: dict[str, Tensor] = {}
    args = zip(exercise.arguments, _copies(case.args), strict=False)
    handed = [_followed(name, arg, inputs) for name, arg in args]
    if exercise.is_class:
        inputs |= dict(call.named_parameters())
    with watcher:
        result = plain(_try(seen, "gradients", lambda: call(*handed)), detach=False)
    pairs = [
        (tensor, cotangent)
        for tensor, cotangent in zip(leaves(result), cotangents, strict=False)
        if isinstance(tensor, Tensor) and cotangent is not None and tensor.shape == cotangent.shape
    ]
    total = [(tensor * cotangent.to(tensor.dtype)).sum() for tensor, cotangent in pairs if tensor.requires_grad]
    if not total:
        seen.gradients = dict.fromkeys(inputs)
        return
    for tensor in inputs.values():
        tensor.grad = None
    # Not `torch.autograd.grad`: PyTorch's reentrant checkpoints refuse to work with it.
    result = sum(total)
    with watcher:
        _try(seen, "gradients", lambda: torch.autograd.backward([result]))
    seen.gradients = {name: tensor.grad for name, tensor in inputs.items()}


def _followed(name: str, arg: Any, inputs: dict[str, Tensor]) -> Any:
    """An argument whose floating tensors collect gradients, under their names in `inputs`."""
    if isinstance(arg, list | tuple):
        return type(arg)(_followed(f"{name}[{i}]", item, inputs) for i, item in enumerate(arg))
    if not isinstance(arg, Tensor) or not arg.is_floating_point():
        return arg
    inputs[name] = arg.requires_grad_()
    return copied(arg)  # a leaf may not be changed in place, a copy may, and knows where it comes from


def plain(value: Any, *, detach: bool = True, depth: int = 0) -> Any:
    """A returned value as tensors, numbers, None, `Sequence` and `Foreign`; nothing of it runs code of its own."""
    if isinstance(value, Tensor):
        if detach:
            value = Tensor.detach(value)
        return value.as_subclass(Tensor) if type(value) is not Tensor else value
    if type(value) is int and abs(value) >= 10**LARGEST_INT:
        return Foreign(f"int of more than {LARGEST_INT} digits")  # no float holds it, and no one reads it
    if value is None or type(value) in (bool, int, float):
        return value
    if isinstance(value, float):  # NumPy's float64 is one
        return float.__pos__(value)
    if type(value) is str:
        return value[:200]
    named = isinstance(value, tuple) and hasattr(value, "_fields")  # a named tuple is a tuple
    if (type(value) in (tuple, list) or named) and depth < DEEPEST and len(value) <= LONGEST:
        kind = "list" if type(value) is list else "tuple"
        return Sequence(kind, tuple(plain(item, detach=detach, depth=depth + 1) for item in tuple(value)))
    return Foreign(type(value).__name__)


def unwrapped(value: Any) -> Any:
    """A value with lists and tuples in place of each `Sequence`."""
    if not isinstance(value, Sequence):
        return value
    return (list if value.type == "list" else tuple)(map(unwrapped, value.items))


def leaves(value: Any) -> tuple:
    """What lies in a `Sequence` and in those within it; any other value alone."""
    return tuple(x for item in value.items for x in leaves(item)) if isinstance(value, Sequence) else (value,)


def _copies(args: tuple | list) -> list:
    return [_copy(arg) for arg in args]


def _copy(arg: Any) -> Any:
    if isinstance(arg, NextLogProbs):
        return arg.function()
    if isinstance(arg, list | tuple):
        return type(arg)(map(_copy, arg))
    return copied(arg) if isinstance(arg, Tensor) else arg


def _same(a: Any, b: Any) -> bool:
    """Whether an argument is still what it was; `b` may hold anything by now."""
    if isinstance(a, Tensor):
        return isinstance(b, Tensor) and a.shape == b.shape and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, list | tuple):
        return type(b) is type(a) and len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and a == b


def _try(seen: Observation, stage: str, function: Callable) -> Any:
    try:
        return function()
    except (Exception, SystemExit) as error:
        seen.stage, seen.problem = stage, problem_of(error)
        raise Stop from None


def problem_of(error: BaseException) -> Problem:
    """What went wrong, at the last line of the learner's own code."""
    line, code, file = 0, "", ""
    for frame in traceback.extract_tb(error.__traceback__, limit=-50):
        if not _is_library(frame.filename):
            line, code = frame.lineno, (frame.line or linecache.getline(frame.filename, frame.lineno)).strip()
            file = Path(frame.filename).name
    try:
        message = str(error)
    except Exception:
        message = "(the message could not be read)"
    bases = tuple(cls.__name__ for cls in type(error).__mro__)
    kind = type(error).__name__
    return Problem(kind, message[:1000], line or 0, code[:200], bases[:8], file, refused(error))


def _is_library(filename: str) -> bool:
    installed = "site-packages" in filename or "dist-packages" in filename
    return installed or filename.startswith((*OURS, sys.base_prefix, "<frozen"))
