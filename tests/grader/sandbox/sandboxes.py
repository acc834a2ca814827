"""What the tests of the sandbox share: small limits, code to be run inside, and questions to a session."""

import dataclasses
import json
import os
import sys
import textwrap
from pathlib import Path

import pytest

from course_grade.sandbox.session import Ended, ForkServer, Session
from course_grade.sandbox.walls import Limits
from course_kit.checker.protocol import encode, pack_case
from course_kit.exercises import Case
from tests.grader.session_code import code_of, problem_in

__all__ = ["CASE", "HASTY", "LOOP", "MASK", "SMALL", "call", "children", "code_of"]
__all__ += ["end_of", "found_in", "linux", "problem_in"]

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="namespaces, Landlock and seccomp are Linux's")

SMALL = Limits(seconds=8.0, load_seconds=8.0, total_seconds=10.0, memory_mb=300)
HASTY = dataclasses.replace(SMALL, seconds=0.6, load_seconds=0.6)  # for what hangs
CASE, CASE_BYTES = pack_case(Case(args=(3,)), (), False)
MASK = "import torch\ndef causal_mask(length):\n    return torch.ones(length, length, dtype=torch.bool).tril()\n"
LOOP = "while True:\n    try:\n        while True: pass\n    except BaseException: pass"


def call(seed: int = 1) -> bytes:
    return encode({"do": "case", "exercise": "causal_mask", "seed": seed, **CASE}, CASE_BYTES)


def found_in(server: ForkServer, expression: str, before: str = ""):
    """The value of an expression inside of a session."""
    code = f"{textwrap.dedent(before)}\nimport json\nraise KeyError(json.dumps({expression}))"
    problem = problem_in(server, code)
    assert problem.type == "KeyError", problem
    return json.loads(problem.message.strip("'"))


def end_of(server: ForkServer, code: str, *, in_call: bool = False) -> Ended:
    """How a session ends whose code ends the process: when it is loaded, or in a call of the function that it is."""
    if in_call:
        code = "def causal_mask(length):\n" + textwrap.indent(code, "    ")
    with Session(server) as session:
        if in_call:
            session.load(code_of(code))
        with pytest.raises(Ended) as ended:
            session.observe(call()) if in_call else session.load(code_of(code))
    assert not os.path.exists(session.scratch)
    return ended.value


def children(server: ForkServer) -> list[str]:
    pid = server._process.pid
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
