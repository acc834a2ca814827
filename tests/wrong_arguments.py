"""What can be wrong with an argument, and what has to come of it.

A table gives each public function valid arguments. One of them is replaced by each wrong value that its type suggests.
Then either the function refuses it on purpose, with a message that names the argument and says what came, or it
computes something that its own signature admits. Neither may leave a trace.
"""

from __future__ import annotations

import copy
import inspect
import math
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from opcode import opmap
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from course_kit._packages import OURS


@dataclass(frozen=True)
class Call:
    """A call that is right.

    Args:
        function: what is called with the arguments.
        arguments: by name; each call gets copies.
        covers: public objects that the function stands for, itself if not given.
        called: the name of an argument in messages, where it is another one.
        open: kinds of wrong values (see `wrong`) that an argument admits although its type suggests otherwise.
        draws: whether a right call takes numbers from the global generator, as the making of a module does.
    """

    function: Callable
    arguments: Mapping[str, Any]
    covers: tuple = ()
    called: Mapping[str, str] = field(default_factory=dict)
    open: Mapping[str, str] = field(default_factory=dict)
    draws: bool = False


def floats(*shape: int) -> Tensor:
    """Numbers about zero, the same in each run."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def weights(*shape: int) -> Tensor:
    """Attention weights."""
    return floats(*shape).softmax(-1)


# What is wrong

_OBJECTS = {"None": None, "text": "text", "object": object(), "list": [1.0, 2.0], "dictionary": {}}
_WHOLE = {
    "text": "3", "half": 2.5, "bool": True, "minus one": -1, "zero": 0, "huge": 2**70, "NaN": math.nan, "list": [2],
}  # fmt: skip
_REAL = {
    "text": "0.5", "bool": True, "NaN": math.nan, "infinite": math.inf, "minus infinite": -math.inf, "negative": -1.0,
    "zero": 0.0, "1e308": 1e308, "list": [0.5], "complex": 1j,
}  # fmt: skip


def wrong(value: Any) -> dict[str, Any]:
    """Kind to value: what may be given in place of a valid one."""
    if isinstance(value, bool):
        return {}  # what is true and what is false is Python's business
    if isinstance(value, Tensor):
        return {**_OBJECTS, **_tensors(value)}
    if isinstance(value, int):
        return {"None": None, **_WHOLE}
    if isinstance(value, float):
        return {"None": None, **_REAL}
    if isinstance(value, str):
        return {"None": None, "number": 5, "bytes": b"text", "list": ["text"], "another text": "no such name"}
    if isinstance(value, list | tuple):
        return {"None": None, "number": 5, "text": "text", "empty": type(value)(), **_sequences(value)}
    if isinstance(value, dict):
        return {"None": None, "number": 5, "text": "text", "list": [3], "wrong keys": {None: None}}
    if isinstance(value, nn.Module):
        return {"None": None, "number": 5, "text": "text", "a module": nn.Flatten(), "a class": nn.Linear}
    if callable(value):
        return {"None": None, "number": 5, "text": "text", "returns None": lambda *_, **__: None}
    return {"None": None, "number": 5, "text": "text", "object": object()}


def _tensors(value: Tensor) -> dict[str, Tensor | np.ndarray]:
    """Tensors of another dtype, rank or size, or with other values."""
    found: dict[str, Any] = {
        "array": value.numpy(),
        "no axis": value.new_ones(()),
        "one axis more": value[None],
        "empty": value[:0],
        "complex": value.to(torch.complex64),
    }
    if value.dim():
        found["one axis less"] = value[0]
        found["longer"] = torch.cat((value, value[:1]))
        found["wider"] = torch.cat((value, value[..., :1]), dim=-1)
        found["no columns"] = value[..., :0]
    if value.dtype == torch.bool:
        return found | {"float": value.float(), "integers": value.long()}
    found["bool"] = value > 0
    if not value.is_floating_point():
        far = value + 2**40
        return found | {"negative": -1 - value, "far": far, "float": value.float(), "bytes": value.byte()}
    infinite = {"NaN": value * math.nan, "infinite": value + math.inf, "1e30": value * 1e30}
    return found | infinite | {"negative": -1 - value.abs(), "integers": value.long(), "double": value.double()}


def _sequences(value: list | tuple) -> dict[str, Any]:
    inner = (
        {f"{kind} inside": type(value)([*value[:-1], each]) for kind, each in wrong(value[-1]).items()} if value else {}
    )
    return {"longer": value + value[:1], "None inside": type(value)([None]), **inner}


# What has to come of it


def check_fault(call: Call, name: str, value: Any) -> str:
    """Say what is wrong with how a call takes a wrong argument; empty where it is right."""
    arguments = {**copied(call.arguments), name: value}
    error = trace = None
    given, before = copied(arguments), (_surroundings(), _surroundings(without_random=True))
    try:
        result = call.function(**arguments)
    except (TypeError, ValueError, KeyError, OSError) as raised:
        error = raised
    except Exception as raised:
        return f"raw {type(raised).__name__}: {str(raised)[:150]}"
    if _surroundings(without_random=call.draws and error is None) != before[call.draws and error is None]:
        trace = "left a trace in the random state or in the folder"
    elif not same(given, arguments):
        trace = "changed an argument"
    if trace or error is not None:
        return trace or _wrong_error(error, f"{name}|{call.called[name]}" if name in call.called else name, value)
    return _not_admitted(call, {**copied(call.arguments), name: value}) or _not_finite(given, result)


def check_call(call: Call) -> None:
    """The property: whatever is wrong with an argument, the call refuses it by name, or computes what it may."""
    faults = {
        f"{name} = {kind}": check_fault(call, name, wrong_value)
        for name, value in call.arguments.items()
        for kind, wrong_value in wrong(value).items()
        if not re.fullmatch(call.open.get(name, ""), kind)
    }
    assert not {fault: says for fault, says in faults.items() if says}


def right_and_wrong(calls: Mapping[str, Call]) -> tuple[Callable, Callable]:
    """Two tests of a table of calls: with right arguments, and with wrong ones."""

    @pytest.mark.parametrize("name", calls)
    def right(name):
        calls[name].function(**calls[name].arguments)

    @pytest.mark.parametrize("name", calls)
    def wrong(name, unchecked, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        check_call(calls[name])

    return right, wrong


def _wrong_error(error: Exception, name: str, value: Any) -> str:
    message = str(error.args[0])
    frame = error.__traceback__
    while frame.tb_next:
        frame = frame.tb_next
    code = frame.tb_frame.f_code
    if not code.co_filename.startswith(OURS) or code.co_code[frame.tb_lasti] != opmap["RAISE_VARARGS"]:
        return f"raised by {Path(code.co_filename).name}, not by a check: {type(error).__name__}: {message[:150]}"
    if error.__context__ is not None and not error.__suppress_context__:
        return f"raised while {type(error.__context__).__name__} was handled: {message[:150]}"
    if not re.search(rf"\b({name})\b", message):
        return f"does not name {name}: {message[:200]}"
    came = [value, *(value if isinstance(value, list | tuple | dict | str) else ())]
    shown = "got" in message or any(repr(each) in message for each in came)
    return "" if shown else f"does not say what came: {message[:200]}"


def _not_admitted(call: Call, arguments: dict) -> str:
    """Whether the signature refuses what the function took."""
    jaxtyping.config.update("jaxtyping_disable", False)
    try:
        call.function(**arguments)
    except Exception as error:
        return f"taken, although the signature does not admit it: {' '.join(str(error).split())[:100]}"
    finally:
        jaxtyping.config.update("jaxtyping_disable", True)
    return ""


def _not_finite(arguments: Mapping[str, Any], result: Any) -> str:
    numbers = [value for value in tensors(arguments) if value.is_floating_point()]
    if all(value.isfinite().all() and (value.abs() < 1e20).all() for value in numbers):
        for value in tensors(result):
            if value.isnan().any():
                return "returned NaN for finite arguments"
        if isinstance(result, float) and not math.isfinite(result):
            return f"returned {result} for finite arguments"
    return ""


def tensors(value: Any) -> list[Tensor]:
    """All tensors in nested containers."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    return [tensor for each in value for tensor in tensors(each)] if isinstance(value, list | tuple | set) else []


def copied(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Copies of tensors and containers; models and functions as they are."""
    return {name: _copy(value) for name, value in arguments.items()}


def _copy(value: Any) -> Any:
    if isinstance(value, nn.Module) or callable(value):
        return value
    try:
        return copy.deepcopy(value)
    except TypeError:
        return value


def same(one: Any, other: Any) -> bool:
    """Whether nothing has changed."""
    if isinstance(one, Tensor):
        return isinstance(other, Tensor) and one.shape == other.shape and torch.equal(*map(_bits, (one, other)))
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return True


def _bits(tensor: Tensor) -> Tensor:
    return tensor.detach().resolve_conj().contiguous().view(torch.uint8) if tensor.dim() else tensor.detach().reshape(1)


def _surroundings(*, without_random: bool = False) -> tuple:
    drawn = () if without_random else (torch.get_rng_state().numpy().tobytes(), random.getstate())
    state = np.random.get_state()
    return (
        *drawn, state[1].tobytes(), state[2:], torch.is_grad_enabled(), torch.get_default_dtype(),
        sorted(Path.cwd().iterdir()),
    )  # fmt: skip


def public_names(module: Any) -> dict[str, Any]:
    """Functions and classes that a module offers."""
    found = {name: getattr(module, name) for name in module.__all__}
    return {name: thing for name, thing in found.items() if inspect.isfunction(thing) or inspect.isclass(thing)}
