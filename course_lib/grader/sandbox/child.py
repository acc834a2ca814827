"""The inside of a submission's process: read its code, run cases, write down what happened. Nothing here is trusted.

The process knows neither expected values nor verdicts, and none of its answers is more than a claim.
"""

from __future__ import annotations
import __future__

import dataclasses
import functools
import importlib.abc
import importlib.util
import linecache
import os
import random
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch

from course_lib.exercises import Case, find
from course_lib.grader.sandbox.observing import Foreign, Observation, Problem, observe, problem_of
from course_lib.grader.sandbox.protocol import (
    ProtocolError,
    decode,
    encode,
    lengths,
    pack_case,
    pack_observation,
    pack_problem,
    unpack_case,
)
from course_lib.grader.sandbox.watching import Watcher, names_of

__all__ = ["SCRATCH", "serve", "warm"]

NAME = "submission"
SCRATCH = "(scratch folder)"  # in messages


def serve(requests: int, answers: int, scratch: str) -> None:
    """Answer requests until the pipe is closed.

    Args:
        requests: file descriptor to read from.
        answers: file descriptor to write to.
        scratch: path of the scratch folder, which differs from run to run and is not written into messages.
    """
    place = functools.partial(_placeless, scratch)
    module = ModuleType(NAME)
    sys.modules[NAME] = module
    while (request := _read(requests)) is not None:
        message, blobs = request
        if message["do"] == "load":
            reply, raw = _load(module, message, place), b""
        else:
            reply, raw = _case(module, message, blobs, place)
        _flush()
        _write(answers, encode(reply, raw))


def warm() -> None:
    """Observe a function and a class once, and send what was seen, so that no submission's process is the first."""
    numbers = torch.ones(2, 3)
    for name, case, cotangents in (
        ("softmax", Case(args=(numbers,)), (numbers,)),
        ("FeedForward", Case(init=(3, 4), args=(numbers,)), (numbers,)),
    ):
        exercise = find(name)
        seen = observe(exercise.reference, exercise, case, cotangents, train_too=True)
        encode(*pack_observation(seen))
        unpack_case(*_through(pack_case(case, cotangents, False)))


def _through(message: tuple[dict[str, Any], bytes]) -> tuple[dict[str, Any], bytes]:
    """A message as it arrives."""
    data = encode(*message)
    head, _ = lengths(data[:8], trusted=True)
    return decode(data[8 : 8 + head]), data[8 + head :]


def _placeless(scratch: str, problem: Problem | None) -> Problem | None:
    """A problem whose message is the same in every run."""
    return problem and dataclasses.replace(problem, message=problem.message.replace(scratch, SCRATCH))


def _load(module: ModuleType, message: dict[str, Any], place: Callable) -> dict[str, Any]:
    """Run the pieces of code that the grader chose, in its order, and say which of them failed."""
    sys.meta_path.insert(0, _Siblings(message["siblings"]))
    for name, text in message["files"].items():
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    failed: dict[str, list] = {}
    used: dict[str, set[str]] = {}
    for piece in message["pieces"]:
        watcher = Watcher(*map(find, piece.get("exercises", ())))
        try:
            # Blank lines in front keep the line numbers of the file.
            text = "\n" * (piece["line"] - 1) + piece["code"]
            # Annotations are never evaluated: they may name types that are not installed here.
            code = compile(text, piece["file"], "exec", __future__.annotations.compiler_flag, dont_inherit=True)
            with watcher:  # a table may be filled by what a solution may not call
                exec(code, module.__dict__)
        except (Exception, SystemExit) as error:
            problem = place(problem_of(error))
            for name in piece["names"]:
                failed[name] = pack_problem(problem)
        for name in piece.get("exercises", ()):
            used.setdefault(name, set()).update(watcher.used & names_of(find(name)))
    return {"failed": failed, "used": {name: sorted(twins) for name, twins in used.items() if twins}}


def _case(module: ModuleType, message: dict[str, Any], blobs: bytes, place: Callable) -> tuple[dict[str, Any], bytes]:
    exercise = find(message["exercise"])
    solution = module.__dict__.get(exercise.name)
    if solution is None:
        seen = Observation(problem=Problem("NameError", f"{exercise.name} is not defined"), stage="call")
        return pack_observation(seen)
    case, cotangents, train_too = unpack_case(message, blobs)
    _same_chance(message["seed"])
    seen = observe(solution, exercise, case, cotangents, train_too=train_too)
    seen.problem = place(seen.problem)
    try:
        return pack_observation(seen)
    except Exception as error:  # something that looks like a tensor and is none
        seen = Observation(value=Foreign(type(error).__name__))
        return pack_observation(seen)


def _same_chance(seed: int) -> None:
    """Where a solution draws random numbers, let it draw the same ones in every run of the grader."""
    import numpy as np

    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


class _Siblings(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the other files of the same submission, from memory."""

    def __init__(self, sources: dict[str, str]):
        self.sources = sources

    def find_spec(self, fullname, path=None, target=None):
        return importlib.util.spec_from_loader(fullname, self) if fullname in self.sources else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(compile(self.sources[module.__name__], f"{module.__name__}.py", "exec"), module.__dict__)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # over the limit, closed, or replaced by something else
            continue


def _read(fd: int) -> tuple[dict[str, Any], bytes] | None:
    prefix = _exactly(fd, 8)
    if prefix is None:
        return None
    head, blobs = lengths(prefix, trusted=True)
    return decode(_exactly(fd, head) or b""), _exactly(fd, blobs) or b""


def _exactly(fd: int, count: int) -> bytes | None:
    chunks = bytearray()
    while len(chunks) < count:
        chunk = os.read(fd, count - len(chunks))
        if not chunk:
            if chunks:
                raise ProtocolError("the grader's message was incomplete")
            return None
        chunks += chunk
    return bytes(chunks)


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
