"""What a right solution may use works behind the walls; what the walls break is not the learner's mistake."""

import json
import os
import re
import sys

import pytest

from course_grade.grading.assignment import AssignedExercise, Assignment
from course_grade.grading.grade import Grader
from course_grade.sandbox.child import SCRATCH
from course_grade.sandbox.session import ForkServer
from course_grade.sandbox.walls import Limits
from course_grade.submission.submissions import read_submission
from course_kit.checker.blocked_by_sandbox import LIBRARY, OWN, refused
from tests.grader.features import FEATURES, PREAMBLE
from tests.grader.session_code import problem_in

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the walls are Linux's"),
    pytest.mark.usefixtures("lent_fork_servers"),
]

LIMITS = Limits(seconds=10.0, load_seconds=60.0, total_seconds=200.0)
LENIENT = {"asyncio"}  # needs calls that are permitted at the second try only
SHARED = {"share_memory", "multiprocessing.Lock", "mp dummy"}
LEVELS = {
    "all": ("limits", "user", "namespaces", "landlock", "seccomp"),
    "no Landlock": ("limits", "user", "namespaces", "seccomp"),
    "no namespaces": ("limits", "user", "landlock", "seccomp"),
    "no seccomp": ("limits", "user", "namespaces", "landlock"),
}


@pytest.fixture(scope="module", params=LEVELS)
def server(request):
    try:
        server = ForkServer(LIMITS, LEVELS[request.param])
    except OSError as error:  # root, and Python's files where no other user can read them
        pytest.skip(str(error))
    with server:
        yield server


@pytest.mark.parametrize("name", FEATURES)
def test_a_feature_works_at_its_first_use_in_a_process(server, name):
    if name in SHARED and not {"namespaces", "landlock"} <= set(server.walls.up):
        pytest.skip("needs a folder for shared memory of its own")
    problem = problem_in(server, PREAMBLE + FEATURES[name], lenient=name in LENIENT)
    if problem and "namespaces" not in server.walls.up and problem.refused == LIBRARY:
        return  # not the learner's: the exercise is not graded
    assert problem is None or problem.type == "ModuleNotFoundError"


def test_the_fork_server_has_no_second_thread(server):
    assert len(os.listdir(f"/proc/{server._process.pid}/task")) == 1


# Whose attempt was refused

REFUSED = {
    "own open": ("open('/usr/new', 'w')", OWN),
    "own path": ("from pathlib import Path\nPath('/usr/new').write_text('x')", OWN),
    "own process": ("import subprocess\nsubprocess.run(['true'])", OWN),
    "own socket": ("import socket\nsocket.create_connection(('127.0.0.1', 9))", OWN),
    "own threads": (
        "from threading import Event, Thread\nfor _ in range(200): Thread(target=Event().wait, daemon=True).start()",
        OWN,
    ),
    "own path by a library": ("import numpy\nnumpy.savetxt('/usr/new', [1])", OWN),
    "a process by a library": ("import torch.utils.data as d\nlist(d.DataLoader([1, 2], num_workers=1))", LIBRARY),
    "a file by a library": ("import numpy\nnumpy.savetxt('/us' + 'r/' + 'n' + 'ew', [1])", LIBRARY),
    "an ordinary mistake": ("1 / 0", ""),
    "a missing file": ("open('weights.pt')", ""),
    "a wrong shape": ("import torch\ntorch.ones(2) @ torch.ones(3)", ""),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_it_is_known_whose_attempt_was_refused(server, kind):
    if server.walls.level != "full":
        pytest.skip("some are permitted")
    code, whose = REFUSED[kind]
    problem = problem_in(server, code)
    assert problem.refused == whose, problem


def test_texts_of_pytorch_are_known():
    for text in ("Failed to initialize cpuinfo!", "unable to open: Permission denied (13)"):
        assert refused(RuntimeError(text)) == LIBRARY
    assert refused(RuntimeError("\"addmm\" not implemented for 'Half'")) == ""
    wrapped = ValueError("wrapped")
    wrapped.__cause__ = RuntimeError("Failed to initialize cpuinfo!")
    assert refused(wrapped) == LIBRARY


# Graded

HALF = """
import torch
def masked_softmax(scores, mask):
    torch.ones(2).{dtype}()
    wide = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    lowest = torch.finfo(wide.dtype).min
    weights = wide.masked_fill(~mask, lowest).softmax(-1) * mask
    return weights.to(scores.dtype)
"""
CHECKPOINTED = """
import socket, torch
from torch.utils.checkpoint import checkpoint
def softmax(scores, dim=-1):
    def inner(scores):
        e = (scores - scores.amax(dim, keepdim=True)).exp()
        return e / e.sum(dim, keepdim=True)
    return checkpoint(inner, scores, use_reentrant=False)
"""
RIGHT = {
    "half precision": HALF.format(dtype="half"),
    "bfloat16": HALF.format(dtype="bfloat16"),
    "checkpointed": CHECKPOINTED,
    "at the second try": CHECKPOINTED.replace("return checkpoint", "socket.socketpair()\n    return checkpoint"),
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    tasks = AssignedExercise("softmax", 4.0), AssignedExercise("masked_softmax")
    path = tmp_path_factory.mktemp("submissions") / "student.py"

    def grade(code):
        """The result of the exercise that the code is about."""
        path.write_text(code)
        softmax, masked = grader.grade(read_submission("student", [path])).tasks
        return masked if "def masked_softmax" in code else softmax

    with Grader(Assignment(tasks=tasks, seed=9)) as grader:
        grade.level = grader.server.walls.level
        yield grade


@pytest.mark.parametrize("kind", RIGHT)
def test_what_a_right_solution_uses_is_there_at_its_first_call(graded, kind):
    if kind == "at the second try" and graded.level != "full":
        pytest.skip("nothing is permitted at the second try")
    task = graded(RIGHT[kind])
    assert task.status == "passed", task.text


def test_what_a_library_is_refused_twice_is_not_graded(graded):
    task = graded("""
from torch.utils.data import DataLoader
def softmax(scores, dim=-1):
    list(DataLoader([1, 2], num_workers=1))
    return scores.exp() / scores.exp().sum(dim, keepdim=True)
""")
    assert (task.status, task.points) == ("not graded", 0.0)
    assert "refused what a library does" in task.note


LIES = {
    "the text": "raise RuntimeError('Failed to initialize cpuinfo!')",
    "in every case but one": "CALLS.append(1)\n    if len(CALLS) > 1: raise RuntimeError('Permission denied')",
    "the mark itself": """
    from course_kit.checker import observing
    real = observing.problem_of
    import dataclasses
    observing.problem_of = lambda error: dataclasses.replace(real(error), refused='library')
    raise ValueError""",
}


@pytest.mark.parametrize("lie", LIES)
def test_who_claims_falsely_to_have_been_refused_gets_no_points(graded, lie):
    task = graded(
        f"import torch\nCALLS = []\ndef softmax(scores, dim=-1):\n    {LIES[lie]}\n    return scores.softmax(dim)\n"
    )
    assert task.points == 0
    assert task.status in {"not graded", "failed", "not counted"}


@pytest.mark.parametrize("error", ["ValueError", "KeyboardInterrupt"])
def test_neither_messages_nor_last_words_name_the_scratch_folder(graded, error):
    code = f"import os\ndef softmax(scores, dim=-1):\n    raise {error}(os.environ['TMPDIR'] + os.sep + 'x')\n"
    first, second = graded(code), graded(code)
    assert (first.note, first.text) == (second.note, second.text)
    said = first.note + first.text + first.html + json.dumps(first.lines)
    assert (f"{SCRATCH}/x" if error == "ValueError" else error) in said
    assert not re.search("course-lib-[a-z0-9_]{8}", said)
