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
    "a process by a library": (
        "import torch.utils.data as d\nlist(d.DataLoader([1, 2], num_workers=1))",
        LIBRARY,
    ),
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

SOFTMAX = """
def masked_softmax(scores, mask):
    {first}
    wide = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    lowest = torch.finfo(wide.dtype).min
    weights = wide.masked_fill(~mask, lowest).softmax(-1) * mask
    return weights.to(scores.dtype)
"""
CHECKPOINTED = """
import torch
from torch.utils.checkpoint import checkpoint
def softmax(scores, dim=-1):
    def inner(scores):
        e = (scores - scores.amax(dim, keepdim=True)).exp()
        return e / e.sum(dim, keepdim=True)
    return checkpoint(inner, scores, use_reentrant=False)
"""


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    grader = Grader(Assignment(tasks=(AssignedExercise("softmax", 4.0), AssignedExercise("causal_mask")), seed=9))
    folder = tmp_path_factory.mktemp("submissions")

    def grade(code):
        path = folder / "student.py"
        path.write_text(code)
        return grader.grade(read_submission("student", [path])).tasks[0]

    with grader:
        grade.grader = grader
        yield grade


@pytest.mark.parametrize("dtype", ["half", "bfloat16"])
def test_masked_softmax_in_half_precision_is_right_at_its_first_call(dtype, tmp_path):
    code = "import torch\n" + SOFTMAX.format(first=f"torch.ones(2).{dtype}()")
    path = tmp_path / "s.py"
    path.write_text(code)
    with Grader(Assignment(tasks=(AssignedExercise("masked_softmax"),), seed=9)) as grader:
        task = grader.grade(read_submission("s", [path])).tasks[0]
    assert task.status == "passed", task.text


def test_a_checkpointed_softmax_is_right(graded):
    assert graded(CHECKPOINTED).status == "passed"


def test_what_works_at_the_second_try_only_counts(graded):
    code = CHECKPOINTED.replace(
        "    return checkpoint", "    import socket\n    socket.socketpair()\n    return checkpoint"
    )
    if graded.grader.server.walls.level != "full":
        pytest.skip("nothing is permitted at the second try")
    assert graded(code).status == "passed"


def test_what_a_library_is_refused_twice_is_not_graded_and_the_next_exercise_is(tmp_path, graded):
    code = """
import torch
from torch.utils.data import DataLoader
def softmax(scores, dim=-1):
    list(DataLoader([1, 2], num_workers=1))
    return scores.exp() / scores.exp().sum(dim, keepdim=True)
"""
    task = graded(code)
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


def test_messages_do_not_name_the_scratch_folder(graded):
    code = "import os\ndef softmax(scores, dim=-1):\n    raise ValueError(os.environ['TMPDIR'] + os.sep + 'x')\n"
    first, second = graded(code), graded(code)
    assert first.text == second.text
    assert f"{SCRATCH}/x" in first.text + json.dumps(first.lines)
    assert not re.search("course-lib-[a-z0-9_]{8}", first.text + first.html)


def test_last_words_do_not_name_the_scratch_folder(graded):
    code = "import os\ndef softmax(scores, dim=-1):\n    raise KeyboardInterrupt(os.environ['TMPDIR'])\n"
    first, second = graded(code), graded(code)
    assert "KeyboardInterrupt" in first.note
    assert (first.note, first.text) == (second.note, second.text)
    assert not re.search("course-lib-[a-z0-9_]{8}", first.note + first.text)
