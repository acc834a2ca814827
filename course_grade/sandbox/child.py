"""The inside of a submission's process: read its code, run cases, write down what happened. Nothing here is trusted.

The process knows neither expected values nor verdicts, and none of its answers is more than a claim. Of the exercises
it knows names, arguments and forbidden functions, and no reference, mistake or solution.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import random
import signal
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from course_grade.sandbox.loading import Code
from course_kit.checker.observing import Foreign, Observation, Problem, Signature, observe
from course_kit.checker.protocol import (
    ProtocolError,
    decode,
    encode,
    lengths,
    pack_case,
    pack_observation,
    pack_problem,
    unpack_case,
)
from course_kit.exercises import Case

__all__ = ["SCRATCH", "serve", "warm"]

SCRATCH = "(scratch folder)"  # in messages


def serve(requests: int, answers: int, scratch: str) -> None:
    """Answer requests until the pipe is closed.

    Args:
        requests: file descriptor to read from.
        answers: file descriptor to write to.
        scratch: path of the scratch folder, which differs from run to run and is not written into messages.
    """
    # Behind the walls no signal can be sent, not even to itself: C's `abort` would end in a crash.
    os.abort = functools.partial(os._exit, 128 + signal.SIGABRT)
    # PyTorch makes its pool of threads anew at the first use after a fork, and two threads that do so at once crash.
    torch.set_num_threads(1)
    place = functools.partial(_placeless, scratch)
    exercises: dict[str, Signature] = {}
    code: Code | None = None
    while (request := _read(requests)) is not None:
        message, blobs = request
        if message["do"] == "load":
            exercises = {one["name"]: Signature.of(one) for one in message["exercises"]}
            code = Code(message, exercises, place)
            reply, raw = _loaded(code), b""
        else:
            reply, raw = _case(code, exercises[message["exercise"]], message, blobs, place)
        _flush()
        _write(answers, encode(reply, raw))


def warm() -> None:
    """Observe a function and a class once, and send what was seen, so that no submission's process is the first."""
    numbers = torch.ones(2, 3)
    for solution, signature, case in (
        (torch.exp, Signature("exp", ("x",)), Case(args=(numbers,))),
        (nn.Linear, Signature("Linear", ("x",), is_class=True), Case(init=(3, 3), args=(numbers,))),
    ):
        seen = observe(solution, signature, case, (numbers,), train_too=True)
        encode(*pack_observation(seen))
        unpack_case(*_through(pack_case(case, (numbers,), False)))


def _through(message: tuple[dict[str, Any], bytes]) -> tuple[dict[str, Any], bytes]:
    """A message as it arrives."""
    data = encode(*message)
    head, _ = lengths(data[:8], trusted=True)
    return decode(data[8 : 8 + head]), data[8 + head :]


def _placeless(scratch: str, problem: Problem | None) -> Problem | None:
    """A problem whose message is the same in every run."""
    return problem and dataclasses.replace(problem, message=problem.message.replace(scratch, SCRATCH))


def _loaded(code: Code) -> dict[str, Any]:
    """Which statements failed, and which forbidden functions were called, by exercise."""
    return {
        "failed": {
            exercise: {name: pack_problem(problem) for name, problem in problems.items()}
            for exercise, problems in code.failed.items()
        },
        "used": {exercise: sorted(names) for exercise, names in code.used.items() if names},
    }


def _case(
    code: Code, exercise: Signature, message: dict[str, Any], blobs: bytes, place: Callable
) -> tuple[dict[str, Any], bytes]:
    solution = code.solution(exercise.name)
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
