"""How grader and submission talk: frames of JSON and raw bytes over pipes. No pickle, nothing that is ever executed.

What comes from a submission's process is hostile until it is decoded: sizes, types and shapes are checked, strings are
cut and cleaned, and whatever does not fit becomes a `ProtocolError`.
"""

from __future__ import annotations

import json
import math
import re
import struct
from typing import Any

import torch
from torch import Tensor

from course_kit.checker import sanitize as texts
from course_kit.checker.memory_layout import copied, laid_out
from course_kit.checker.observing import (
    DEEPEST,
    LARGEST_INT,
    LONGEST,
    Foreign,
    Observation,
    Problem,
    Sequence,
    unwrapped,
)
from course_kit.exercises import Case, Exercise
from course_kit.exercises._language_model import NextLogProbs

__all__ = ["LARGEST_FRAME", "ProtocolError", "decode", "encode", "pack_case", "pack_exercise", "pack_observation"]
__all__ += ["bounded_text", "lengths", "pack_problem", "unpack_case", "unpack_observation", "unpack_problem"]

LARGEST_FRAME = 8 * 2**20  # bytes, of which JSON:
LARGEST_HEAD = 2**18
LARGEST_TENSOR = 2**17  # numbers; no case comes near
LARGEST_DIM = 12
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
        *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    )
}
_LENGTHS = struct.Struct(">II")  # of the JSON, of the bytes


class ProtocolError(Exception):
    """What came is not what was agreed on."""


# Frames


def encode(message: dict[str, Any], blobs: bytes = b"") -> bytes:
    """A frame: lengths, JSON, bytes."""
    head = json.dumps(message).encode()
    return _LENGTHS.pack(len(head), len(blobs)) + head + blobs


def lengths(prefix: bytes, *, trusted: bool = False) -> tuple[int, int]:
    """Lengths of JSON and bytes, from the first eight bytes of a frame.

    Args:
        prefix: the eight bytes.
        trusted: whether the frame comes from the grader; a submission's code may be long.

    Raises:
        ProtocolError: the frame would be too large.
    """
    head, blobs = _LENGTHS.unpack(prefix)
    if trusted:
        return head, blobs
    if head > LARGEST_HEAD or head + blobs > LARGEST_FRAME:
        raise ProtocolError(f"a message of {head + blobs} bytes is too large")
    return head, blobs


def decode(head: bytes) -> dict[str, Any]:
    """The JSON of a frame.

    Raises:
        ProtocolError: it is not a JSON object.
    """
    try:
        message = json.loads(head)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("the message is no JSON") from error
    if not isinstance(message, dict):
        raise ProtocolError("the message is not a JSON object")
    return message


# Values


class _Packer:
    def __init__(self):
        self.blobs = bytearray()

    def __call__(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, Sequence):
            return {"seq": value.type, "items": [self(item) for item in value.items]}
        if isinstance(value, list | tuple):  # an argument
            return {"seq": type(value).__name__, "items": [self(item) for item in value]}
        if isinstance(value, NextLogProbs):
            return {"model": [self._tensor(value.log_probs), value.bos_id, value.eos_id, value.max_length]}
        if isinstance(value, Foreign):
            return {"other": value.type[:80]}
        if type(value) is float:
            return {"float": value.hex()}
        if type(value) is int:
            return (
                {"int": str(value)}
                if abs(value) < 10**LARGEST_INT
                else {"other": f"int of more than {LARGEST_INT} digits"}
            )
        return {"plain": value}

    def _tensor(self, tensor: Tensor) -> dict:
        name = str(tensor.dtype).removeprefix("torch.")
        if name not in DTYPES or tensor.layout != torch.strided:
            return {"other": f"Tensor ({name}, {tensor.layout})"}
        if tensor.dim() > LARGEST_DIM or math.prod(max(n, 1) for n in tensor.shape) > LARGEST_TENSOR:
            return {"other": f"Tensor of shape {tuple(tensor.shape)}, too large to compare"}
        # A copy, since a single number counts as contiguous whatever its stride is, and could not be viewed as bytes.
        flat = tensor.detach().cpu().reshape(-1).clone(memory_format=torch.contiguous_format)
        raw = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
        start = len(self.blobs)
        self.blobs += raw
        return {"dtype": name, "shape": list(tensor.shape), "at": start}


class _Blobs:
    """The bytes of a frame; together, tensors take no more of them than there are."""

    def __init__(self, raw: bytes):
        self.raw = raw
        self.left = len(raw)

    def take(self, start: int, size: int) -> bytearray:
        self.left -= size
        if self.left < 0 or start + size > len(self.raw):
            raise ProtocolError("tensors are larger than their bytes")
        return bytearray(self.raw[start : start + size])


def _unpack(spec: Any, blobs: _Blobs, depth: int = 0) -> Any:
    if not isinstance(spec, dict) or depth > DEEPEST:
        raise ProtocolError("a value violates the protocol")
    if "dtype" in spec:
        return _tensor(spec, blobs)
    if "seq" in spec:
        items = spec.get("items")
        if spec["seq"] not in ("tuple", "list") or not isinstance(items, list) or len(items) > LONGEST:
            raise ProtocolError("a sequence violates the protocol")
        return Sequence(spec["seq"], tuple(_unpack(item, blobs, depth + 1) for item in items))
    if "other" in spec:
        return Foreign(bounded_text(spec["other"], 120))
    if "float" in spec:
        return _float(spec["float"])
    if "int" in spec:
        text = spec["int"]
        if not isinstance(text, str) or not re.fullmatch(r"-?\d{1,301}", text):
            raise ProtocolError("an int violates the protocol")
        return int(text)
    value = spec.get("plain")
    if value is None or type(value) is bool:
        return value
    if type(value) is str:
        return bounded_text(value, 200)
    raise ProtocolError("a value violates the protocol")


def _float(text: Any) -> float:
    try:
        return float.fromhex(text)
    except (ValueError, TypeError, OverflowError) as error:
        raise ProtocolError("a float violates the protocol") from error


def _tensor(spec: dict, blobs: _Blobs) -> Tensor:
    dtype, shape, start = (
        DTYPES.get(spec["dtype"] if isinstance(spec["dtype"], str) else ""),
        spec.get("shape"),
        spec.get("at"),
    )
    whole = (
        isinstance(shape, list)
        and len(shape) <= LARGEST_DIM
        and all(type(n) is int and 0 <= n <= LARGEST_TENSOR for n in shape)
    )
    if dtype is None or not whole or type(start) is not int or start < 0:
        raise ProtocolError("a tensor violates the protocol")
    count = math.prod(shape)
    if count > LARGEST_TENSOR or math.prod(max(n, 1) for n in shape) > LARGEST_TENSOR:
        raise ProtocolError("a tensor is too large")
    raw = blobs.take(start, count * dtype.itemsize)
    if count == 0:
        return torch.empty(shape, dtype=dtype)
    if dtype == torch.bool:  # a byte that is neither 0 nor 1 would be a bool that is not a bool
        return (torch.frombuffer(raw, dtype=torch.uint8) != 0).reshape(shape)
    return torch.frombuffer(raw, dtype=dtype).reshape(shape)


def bounded_text(text: Any, longest: int, *, lines: bool = False) -> str:
    """A string from outside: of bounded length, without control characters and memory addresses.

    Args:
        text: what came.
        longest: characters that are kept.
        lines: whether it may have several lines; in a report they are indented.

    Raises:
        ProtocolError: it is not a string.
    """
    if not isinstance(text, str):
        raise ProtocolError("a text violates the protocol")
    return texts.clean(text, longest, lines=lines)


# Exercises and cases, from grader to submission


def pack_exercise(exercise: Exercise) -> dict[str, Any]:
    """What a submission's process needs to know of an exercise, as `Signature` has it; nothing else of it is sent."""
    return {
        "name": exercise.name,
        "arguments": list(exercise.arguments),
        "is_class": exercise.is_class,
        "forbidden": list(exercise.forbidden),
    }


def pack_case(case: Case, cotangents: tuple, train_too: bool) -> tuple[dict[str, Any], bytes]:
    """What a submission needs to know of a case: not what is expected, nor what it is about."""
    pack = _Packer()
    message = {
        "args": [pack(arg) for arg in case.args],
        "layouts": [_layout(arg) for arg in case.args],
        "init": [pack(arg) for arg in case.init],
        "state": {name: pack(parameter) for name, parameter in case.state.items()},
        "cotangents": [pack(tensor) for tensor in cotangents],
        "train_too": train_too,
        "largest": case.max_numel,
    }
    return message, bytes(pack.blobs)


def unpack_case(message: dict[str, Any], blobs: bytes) -> tuple[Case, tuple, bool]:
    """Case, cotangents, whether to test train mode."""
    blobs = _Blobs(blobs)
    args, init, cotangents = (
        tuple(_argument(spec, blobs) for spec in message[key]) for key in ("args", "init", "cotangents")
    )
    # As they lie in memory in a notebook, so that `view` works or fails here as it does there.
    args = tuple(
        laid_out(arg, *layout) if layout else arg for arg, layout in zip(args, message["layouts"], strict=True)
    )
    state = {name: _unpack(spec, blobs) for name, spec in message["state"].items()}
    case = Case(args=args, init=init, state=state, max_numel=message["largest"])
    return case, cotangents, message["train_too"]


def _layout(arg: Any) -> tuple[tuple[int, ...], int] | None:
    """Strides and offset of the copy that a solution gets; None where the numbers follow each other in their order."""
    if not isinstance(arg, Tensor) or arg.is_contiguous():
        return None
    copy = copied(arg)
    return copy.stride(), copy.storage_offset()


def _argument(spec: dict[str, Any], blobs: _Blobs) -> Any:
    if "model" in spec:
        table, *numbers = spec["model"]
        return NextLogProbs(_tensor(table, blobs), *numbers)
    return unwrapped(_unpack(spec, blobs))


# Observations, from submission to grader


def pack_observation(seen: Observation) -> tuple[dict[str, Any], bytes]:
    """An observation as message and bytes."""
    pack = _Packer()
    problem = seen.problem
    message = {
        "value": pack(seen.value),
        "training": pack(seen.training),
        "problem": problem and pack_problem(problem),
        "stage": seen.stage,
        "changed": list(seen.changed),
        "random": seen.random,
        "parameters": {name: list(shape) for name, shape in list(seen.parameters.items())[:128]},
        "gradients": {name: g if g is None else pack(g) for name, g in list(seen.gradients.items())[:128]},
        "used": list(seen.used),
    }
    return message, bytes(pack.blobs)


def unpack_observation(message: dict[str, Any], blobs: bytes) -> Observation:
    """An observation from a process that is not trusted.

    Raises:
        ProtocolError: anything violates the protocol.
    """
    try:
        blobs = _Blobs(blobs)
        if len(message["gradients"]) > 128 or len(message["parameters"]) > 128:
            raise ProtocolError("more names than any exercise has")
        gradients = {
            bounded_text(name, 120): None if spec is None else _unpack(spec, blobs)
            for name, spec in message["gradients"].items()
        }
        if any(not (g is None or isinstance(g, Tensor)) for g in gradients.values()):
            raise ProtocolError("a gradient is not a tensor")
        stage = message["stage"]
        if stage not in ("", "build", "load", "call", "gradients"):
            raise ProtocolError("a stage violates the protocol")
        return Observation(
            value=_unpack(message["value"], blobs),
            training=_unpack(message["training"], blobs),
            problem=unpack_problem(message["problem"]),
            stage=stage,
            changed=_texts(message["changed"]),
            random=message["random"] is not False,
            parameters={
                bounded_text(name, 120): tuple(int(n) for n in shape[:8])
                for name, shape in message["parameters"].items()
            },
            gradients=gradients,
            used=_texts(message["used"]),
        )
    except ProtocolError:
        raise
    except (ArithmeticError, AttributeError, LookupError, MemoryError, RuntimeError, TypeError, ValueError) as error:
        raise ProtocolError("the answer violates the protocol") from error


def _texts(items: Any) -> tuple[str, ...]:
    if not isinstance(items, list) or len(items) > 16:
        raise ProtocolError("a list of texts violates the protocol")
    return tuple(bounded_text(item, 120) for item in items)


def pack_problem(problem: Problem) -> list:
    """A problem as a list."""
    bases = list(problem.bases)
    return [problem.type, problem.message, problem.line, problem.code, bases, problem.file, problem.refused]


def unpack_problem(spec: Any) -> Problem | None:
    """A problem from a process that is not trusted."""
    if spec is None:
        return None
    kind, message, line, code, bases, file, refused = spec
    if type(line) is not int or not 0 <= line < 10**7:
        raise ProtocolError("a line number violates the protocol")
    return Problem(
        bounded_text(kind, 80),
        bounded_text(message, 500, lines=True),
        line,
        bounded_text(code, 200),
        _texts(bases),
        bounded_text(file, 120),
        bounded_text(refused, 20),
    )
